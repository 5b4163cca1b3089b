"""What the reference readers find in recordings, for TestPeers of internal/source.

    reference.py FOLDER FILE...

writes for every FILE a folder FOLDER/NAME.ref with an index.json, which names
the recording and for every channel a file of its values as little-endian
float64. npTDMS reads TDMS, scipy MAT and WAV, numpy NPY and NPZ, pyarrow
Parquet and Arrow.
"""

import json
import sys
from pathlib import Path

import numpy as np


def tdms(path):
    from nptdms import TdmsFile

    with TdmsFile.open(path) as f:
        for group in f.groups():
            for channel in group.channels():
                if channel.dtype.kind in "iufb":
                    yield f"{group.name}/{channel.name}", channel[:]


READERS = {".tdms": tdms}


def main(folder, files):
    for file in files:
        reader = READERS.get(file.suffix)
        if reader is None:
            continue
        out = folder / (file.name + ".ref")
        if out.exists():
            continue
        out.mkdir()
        channels = []
        for i, (name, values) in enumerate(reader(file)):
            np.asarray(values).astype("<f8").tofile(out / f"{i}.f64")
            channels.append({"name": name, "file": f"{i}.f64"})
        index = {"recording": str(file.resolve()), "channels": channels}
        (out / "index.json").write_text(json.dumps(index))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(f) for f in sys.argv[2:]])
