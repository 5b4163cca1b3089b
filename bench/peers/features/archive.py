"""Runs the SQL of docs/how-to/archive.md on an archive with DuckDB, compares it with what was sent, and reads the features
with pandas.

    archive.py PAGE FOLDER

The folder has archive/ and expected.json, which `go test ./internal/train/archive -run TestForPeers -peers FOLDER` writes.
"""

import json
import os
import re
import sys

import duckdb
import pandas as pd


def plain(value):
    """Returns a value of DuckDB as expected.json has it."""
    return str(value)[:10] if hasattr(value, "isoformat") else value


def main(page, folder):
    text = open(page, encoding="utf-8").read()
    views, *queries = re.findall(r"```sql\n(.*?)```", text, re.S)
    code = re.findall(r"```python\n(.*?)```", text, re.S)
    os.chdir(folder)
    want = json.load(open("expected.json", encoding="utf-8"))
    assert len(queries) == len(want["queries"]) == 5 and len(code) == 1, "the page has other examples"
    db = duckdb.connect()
    db.execute(views)
    for query, rows in zip(queries, want["queries"]):
        got = sorted([plain(v) for v in row] for row in db.execute(query).fetchall())
        assert got == sorted(rows), f"{query}\n{got}\nexpected\n{sorted(rows)}"
        print(f"DuckDB: {len(got)} rows as they were sent")
    names = {}
    exec(compile(code[0], page, "exec"), names)
    table = names["table"]
    assert isinstance(table, pd.DataFrame) and len(table) == want["features"], f"pandas: {len(table)} rows"
    assert table["machine"].nunique() == 2 and not table.duplicated(["kafka_partition", "kafka_offset"]).any()
    print(f"pandas: {len(table)} rows, {len(table.columns)} columns")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), sys.argv[2])
