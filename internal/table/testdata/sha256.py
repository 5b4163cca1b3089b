# Writes small.sha256, the reference value of TestWriteGolden, from small.csv.
# Needs Python 3 only: python3 sha256.py > small.sha256
import csv, hashlib, struct
from datetime import datetime, timezone

h = hashlib.sha256()

def integer(v): h.update(struct.pack("<Q", v & (1 << 64) - 1))

def text(s):
    integer(len(s.encode()))
    h.update(s.encode())

with open("small.csv", newline="") as f:
    header, *rows = csv.reader(f)
integer(len(header) - 6)
for name in header[6:]:
    text(name)
zero = datetime(1, 1, 1, tzinfo=timezone.utc)
epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
for machine, tool, hole, start, label, vb, *features in rows:
    text(machine)
    text(tool)
    text(hole)
    at = datetime.fromisoformat(start.replace("Z", "+00:00")) if start else zero
    seconds = (at - epoch).days * 86400 + (at - epoch).seconds
    integer(seconds)
    integer(at.microsecond * 1000)
    integer(int(label) if label else -1)
    # Go's math.NaN is 0x7ff8000000000001, as a float32 0x7fc00000.
    h.update(struct.pack("<d", float(vb)) if vb else struct.pack("<Q", 0x7FF8000000000001))
    for v in features:
        h.update(struct.pack("<f", float(v)) if v else struct.pack("<I", 0x7FC00000))
print(h.hexdigest())
