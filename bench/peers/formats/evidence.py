"""Reads the evidence of an alert as schemas/evidence.arrow.md says, with pyarrow alone.

    evidence.py FOLDER

compares FOLDER/A-K3ZQ7M2P-5.arrow with what FOLDER/want.json says it holds.
"""

import json
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow.ipc

folder = Path(sys.argv[1])
want = json.loads((folder / "want.json").read_text())
windows = pyarrow.ipc.open_file(folder / "A-K3ZQ7M2P-5.arrow").read_all()

samples = 0
for name, x in want["channels"].items():
    got = np.concatenate([np.asarray(w.values) for w in windows[name]])
    assert got.dtype == np.float32 and np.array_equal(got, np.array(x, np.float32)), f"{name} differs"
    assert windows.schema.field(name).metadata[b"unit"], f"{name} has no unit"
    samples += len(got)
starts = [t.to_pydatetime() if hasattr(t, "to_pydatetime") else t for t in windows["start"].to_pylist()]
assert starts == [datetime.fromisoformat(t) for t in want["starts"]], starts
assert windows.schema.metadata[b"at"].decode() == want["at"], windows.schema.metadata
print(f"evidence: {len(starts)} windows, {samples} samples equal to those that were judged")
