"""KEEL's data sets in their own five folds, for Python peers."""

import pathlib
import re

import numpy


def names(folder):
    """The data sets in folder, smallest training part first."""
    sets = [p.name for p in pathlib.Path(folder).iterdir() if (p / f"{p.name}-5-1tra.dat").exists()]
    if not sets:
        raise SystemExit(f"{folder}: no NAME/NAME-5-1tra.dat in it; --keel names the folder of KEEL's data sets")
    return sorted(sets, key=lambda name: ((pathlib.Path(folder) / name / f"{name}-5-1tra.dat").stat().st_size, name))


def part(path):
    """Columns (name, values if nominal, cells) and whether a row is positive."""
    columns, rows = [], []
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.lower().startswith("@attribute"):
            rest = line.split(None, 1)[1]
            values = re.search(r"\{(.*)\}", rest)
            columns.append((rest.split()[0], values and [v.strip() for v in values.group(1).split(",")]))
        elif line and line[0] not in "@%":
            rows.append([cell.strip() for cell in line.split(",")])
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"{path}: a row does not have {len(columns)} cells")
    return columns[:-1], rows, numpy.array([row[-1] == "positive" for row in rows], dtype=int)


def numbers(columns, rows):
    """A nominal column of two values is 0 and 1, one of more is one column each."""
    missing = {"?", "<null>"}
    out = []
    for j, (_, values) in enumerate(columns):
        cells = [row[j] for row in rows]
        if values is None:
            out.append([numpy.nan if c.lower() in missing else float(c) for c in cells])
            continue
        for value in values[1:] if len(values) == 2 else values:
            out.append([numpy.nan if c.lower() in missing else float(c == value) for c in cells])
    return numpy.array(out, dtype=float).T


def fold(folder, name, number):
    """Training and test rows of fold 1 to 5; what is missing is the training mean."""
    at = pathlib.Path(folder) / name
    columns, rows, train_y = part(at / f"{name}-5-{number}tra.dat")
    _, test_rows, test_y = part(at / f"{name}-5-{number}tst.dat")
    train_x, test_x = numbers(columns, rows), numbers(columns, test_rows)
    mean = numpy.nanmean(train_x, axis=0)
    for x in train_x, test_x:
        i, j = numpy.where(numpy.isnan(x))
        x[i, j] = mean[j]
    return train_x, train_y, test_x, test_y
