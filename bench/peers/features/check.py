"""Runs the Python of docs/how-to/features-in-python.md on a table of features, and compares the
formats: pandas, pyarrow and DuckDB must read the same values from all of them.

    check.py PAGE FOLDER

The folder has features.parquet, features.arrow and features.csv, of the same recordings.
"""

import json
import os
import re
import sys

import duckdb
import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


def same(name, a, b):
    """Fails unless two columns have the same values, bit for bit, and miss the same ones."""
    missing = a.isna()
    assert (missing == b.isna()).all(), f"{name}: other values are missing"
    a, b = a[~missing], b[~missing]
    if pd.api.types.is_float_dtype(a.dtype):
        bits = {4: np.uint32, 8: np.uint64}[a.dtype.itemsize]
        a, b = a.to_numpy().view(bits), b.to_numpy().astype(a.dtype).view(bits)
    assert (np.asarray(a) == np.asarray(b)).all(), f"{name}: other values"


def main(page, folder):
    code = re.findall(r"```python\n(.*?)```", open(page, encoding="utf-8").read(), re.S)
    assert len(code) == 2 and len(code[0].strip().splitlines()) <= 20, "the page has other examples"
    os.chdir(folder)

    first = pd.read_parquet("features.parquet")
    labels = ["machine", "tool", "hole", "start", "class", "vb_max_um", "vb_mean_um", "state"]
    features = [c for c in first.columns if c not in labels and not c.startswith("window.")]
    assert (first.dtypes[features] == np.float32).all(), "features are not float32"
    assert first["start"].notna().all() and len(features) > 100 and len(first) > 50
    types = {c: np.float32 for c in features} | {c: str for c in first.columns if first[c].dtype == object or first[c].dtype == "str"}
    tables = {
        "pandas, Feather": pd.read_feather("features.arrow"),
        "pandas, CSV": pd.read_csv("features.csv", dtype=types, parse_dates=["start"]),
        "pyarrow, Parquet": pa.parquet.read_table("features.parquet").to_pandas(),
        "pyarrow, Arrow": pa.ipc.open_file("features.arrow").read_all().to_pandas(),
        "pyarrow, CSV": pa.csv.read_csv(
            "features.csv",
            convert_options=pa.csv.ConvertOptions(
                column_types={c: pa.float32() for c in features}
                | {c: pa.string() for c in types if c not in features}
                | {c: pa.float64() for c in first.columns if first[c].dtype == np.float64}
                | {"start": pa.timestamp("ns", "UTC")},
                strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        ).to_pandas(),
        "DuckDB, Parquet": duckdb.sql("select * from 'features.parquet'").df(),
    }
    for reader, table in tables.items():
        assert list(table.columns) == list(first.columns), f"{reader}: other columns"
        assert len(table) == len(first), f"{reader}: {len(table)} rows of {len(first)}"
        for name in first.columns:
            if name == "start":
                a, b = (pd.to_datetime(t[name], utc=True).dt.as_unit("us") for t in (first, table))
            else:
                a, b = first[name], table[name]
            same(f"{reader}, {name}", a, b)
        print(f"{reader}: {len(table)} rows, {len(table.columns)} columns, as pandas reads the Parquet file")

    metas = [
        json.loads(pa.parquet.read_schema("features.parquet").metadata[b"flank"]),
        json.loads(pa.ipc.open_file("features.arrow").schema.metadata[b"flank"]),
        json.load(open("features.csv.flank.json", encoding="utf-8")),
    ]
    assert metas[0] == metas[1] == metas[2], "the descriptions differ"
    assert sum(r["windows"] for r in metas[0]["recordings"]) == len(first)

    matplotlib.use("Agg")
    for text in code:
        exec(compile(text, page, "exec"), {})
    assert os.path.getsize("features.png") > 10_000, "there is no plot"


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), sys.argv[2])
