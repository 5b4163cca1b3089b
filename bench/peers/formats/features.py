"""Reads features as schemas/features.arrow.md says, with pyarrow alone.

    features.py FOLDER

compares FOLDER/features.arrow with what FOLDER/want.json says it holds, bit by bit, and with what
NumPy makes of the samples in FOLDER/window.arrow.
"""

import base64
import json
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow.ipc

folder = Path(sys.argv[1])
want = json.loads((folder / "want.json").read_text())
with open(folder / "features.arrow", "rb") as f:
    message = pyarrow.ipc.open_stream(f.read()).read_all()
with open(folder / "window.arrow", "rb") as f:
    window = pyarrow.ipc.open_stream(f.read()).read_all()

assert message.num_rows == 1 and all(c.null_count == 0 for c in message.columns)
for name in ("machine", "tool_life", "seq", "level"):
    assert message[name][0].as_py() == want[name], name
start = message["start"].to_pylist()[0]
assert getattr(start, "to_pydatetime", lambda: start)() == datetime.fromisoformat(want["start"]), start
for name in message.schema.names[:11]:
    assert message[name][0].as_py() == window[name][0].as_py(), f"{name} is another than in the window"
md = {k.decode(): v.decode() for k, v in message.schema.field("features").metadata.items()}
assert md == {"version": "2", "layout": want["layout"], "fingerprint": want["fingerprint"]}, md

for name in ("features", "window"):
    _, said = pyarrow.ipc.open_stream((folder / f"{name}.arrow").read_bytes()).read_next_batch_with_custom_metadata()
    assert {k.decode(): v.decode() for k, v in said.items()} == want["control"], (name, said)

x = np.asarray(message["features"][0].values)
assert x.dtype == np.float32 and x.tobytes() == base64.b64decode(want["values"]), "features differ"
frames = np.asarray(message["frames"][0].values)
assert frames.tobytes() == base64.b64decode(want["frames"]), "frames differ"

samples = {name: np.asarray(window[name][0].values, np.float64) for name in window.schema.names[11:]}
value = dict(zip(want["names"], x, strict=True))
for name in ("ch01", "ch12"):
    assert np.isclose(value[name + ".rms"], np.sqrt(np.mean(samples[name] ** 2)), rtol=1e-5), name
    assert np.isclose(value[name + ".peak"], np.abs(samples[name]).max(), rtol=1e-5), name
assert np.isclose(want["level"], np.abs(samples["thrust"]).mean(), rtol=1e-12)
parts = [samples[name].reshape(10, -1) for name in ("thrust", "torque", "ch01")]
columns = [parts[0].mean(1), parts[1].mean(1), parts[2].std(1)]
assert np.allclose(frames.reshape(10, 3), np.array(columns).T, rtol=1e-4), "frames are not what the samples give"
print(f"features: {len(x)} values and {len(frames)} measures of frames equal to those that were sent, {message.nbytes} bytes")
