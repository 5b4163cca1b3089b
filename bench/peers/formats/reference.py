"""What the reference readers find in recordings, for TestPeers of internal/source.

    reference.py FOLDER FILE...

writes files of the reference writers to FOLDER, and for every file there and
every FILE a folder FOLDER/NAME.ref with an index.json, which names
the recording and for every channel a file of its values as little-endian
float64. npTDMS reads TDMS, scipy MAT and WAV, numpy NPY and NPZ, pyarrow
Parquet and Arrow, pyuff UFF, lvm_read LVM.
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


def mat(path):
    from scipy.io import loadmat

    def walk(name, value):
        if value.dtype.names:
            for i, row in enumerate(value.ravel(order="F")):
                at = name if value.size == 1 else f"{name}({i + 1})"
                for field in value.dtype.names:
                    yield from walk(f"{at}.{field}", row[field])
        elif value.dtype.kind in "iufb":
            long = max(value.shape)
            if value.size == 0:
                return
            if value.size == long:
                yield name, value.ravel()
            elif value.ndim == 2 and value.shape[0] == long:
                for j in range(value.shape[1]):
                    yield f"{name}(:,{j + 1})", value[:, j]
            elif value.ndim == 2:
                for j in range(value.shape[0]):
                    yield f"{name}({j + 1},:)", value[j]

    for name, value in loadmat(path).items():
        if not name.startswith("__"):
            yield from walk(name, value)


def wav(path):
    from scipy.io import wavfile

    _, x = wavfile.read(path)
    if x.dtype == np.uint8:
        x = (x.astype(float) - 128) / 128
    elif x.dtype.kind == "i":  # 24 bits come as the upper three bytes of 32
        x = x / -float(np.iinfo(x.dtype).min)
    for i, column in enumerate(x.reshape(len(x), -1).T):
        yield str(i + 1), column


def arrays(path):
    def split(name, value):
        if value.ndim > 2 or value.dtype.kind not in "iufb":
            return
        if value.ndim < 2:
            yield name or "1", value.ravel()
            return
        tall = value.shape[0] >= value.shape[1]
        columns = value.T if tall else value
        for i, column in enumerate(columns):
            index = f"[:,{i}]" if tall else f"[{i},:]"
            yield name + index if name and len(columns) > 1 else name or str(i + 1), column

    loaded = np.load(path)
    if isinstance(loaded, np.ndarray):
        yield from split("", loaded)
        return
    for name in loaded.files:
        if not name.startswith("README"):
            yield from split(name, loaded[name])


def columns(path):
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else feather.read_table(path, memory_map=False)
    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_timestamp(column.type):
            per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
            yield name, column.cast(pa.int64()).to_numpy() / per_second
        elif pa.types.is_boolean(column.type):
            yield name, column.cast(pa.uint8()).to_numpy()
        elif not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
            yield name, column.to_numpy()


def functions(path):
    """The time responses of a universal file, by point and direction."""
    import pyuff

    sets = pyuff.UFF(str(path)).read_sets()
    for s in sets if isinstance(sets, list) else [sets]:
        if s["type"] == 58 and s["func_type"] == 1 and s["abscissa_spacing"] == 1:
            name = f"{s['rsp_node']}{'+-'[s['rsp_dir'] < 0]}{' XYZ'[abs(s['rsp_dir'])]}"
            if np.iscomplexobj(s["data"]):
                yield name + " (re)", s["data"].real
                yield name + " (im)", s["data"].imag
            else:
                yield name, s["data"]


def measurement(path):
    """The channels of a measurement file of LabVIEW whose segments go on one after another."""
    import lvm_read

    read = lvm_read.read(str(path), read_from_pickle=False, dump_file=False)
    segments = [read[i] for i in range(read["Segments"])]
    for c, name in enumerate(segments[0]["Channel names"]):
        if name not in ("X_Value", "Comment"):
            values = np.concatenate([s["data"][:, c] for s in segments])
            yield name, values[:len(values) - np.argmin(np.isnan(values[::-1]))]  # a slower channel is shorter


READERS = {".lvm": measurement, ".uff": functions, ".tdms": tdms, ".mat": mat, ".wav": wav, ".npy": arrays, ".npz": arrays, ".parquet": columns, ".arrow": columns, ".feather": columns}


def write(folder):
    """Writes files of other writers than ours."""
    from nptdms import ChannelObject, GroupObject, RootObject, TdmsWriter
    from scipy.io import savemat, wavfile
    import pyarrow as pa
    from pyarrow import feather, parquet

    rng = np.random.default_rng(1)
    x = rng.normal(size=(5000, 3))
    with TdmsWriter(folder / "peer.tdms") as w:
        for _ in range(3):
            w.write_segment([RootObject({"name": "peer"}), GroupObject("g"), *[
                ChannelObject("g", f"PXI1Slot2/ai{i}", x[:, i].astype(t), {"wf_increment": 1e-5, "unit_string": "g"})
                for i, t in enumerate(["f8", "f4", "f8"])
            ]])
        w.write_segment([ChannelObject("g", "PXI1Slot2/ai0", x[:7, 0])])
    for compress in (False, True):
        savemat(folder / f"peer-{compress}.mat", {
            "x": x, "y": (100 * x[:, 0]).astype("i2"), "wide": x.T, "name": "tool 8", "flag": x[:90] > 0, "small": x[:11, :1],
            "s": {"a": x[:, 1].astype("f4"), "inner": {"b": np.arange(50, dtype="u8"), "t": "text"}}, "c": x[:5] + 1j,
            "cell": np.array([1, "a"], dtype=object),
        }, do_compression=compress)
    wavfile.write(folder / "peer.wav", 48000, (20000 * np.tanh(x)).astype("i2"))
    np.save(folder / "peer.npy", x)
    table = pa.table({
        "t": pa.array(1_800_000_000_000_000_000 + 1_000_000 * np.arange(len(x)), pa.timestamp("ns")), "x": x[:, 0], "f": x[:, 1].astype("f4"),
        "missing": pa.array([None if i % 5 == 0 else i for i in range(len(x))], pa.int32()), "u": np.arange(len(x), dtype="u8") << np.uint64(50),
        "b": x[:, 2] > 0, "tool": pa.array([f"T{i // 1000}" for i in range(len(x))]).dictionary_encode(),
    })
    for codec in ("snappy", "zstd", "gzip", "none"):
        parquet.write_table(table, folder / f"peer-{codec}.parquet", compression=codec, row_group_size=1500)
    parquet.write_table(table, folder / "peer-v1.parquet", data_page_version="1.0", use_dictionary=True)
    for codec in ("lz4", "zstd", "uncompressed"):
        feather.write_feather(table, folder / f"peer-{codec}.feather", compression=codec, chunksize=1500)
    import pyuff

    def time_response(i, values, **more):
        return pyuff.prepare_58(
            id1=f"channel {i}", id3="26-Nov-26 10:20:30", func_type=1, rsp_node=i + 1, rsp_dir=(1, -2, 3)[i % 3], ref_node=1, ref_dir=1, abscissa_spacing=1,
            num_pts=len(values), abscissa_min=0.0, abscissa_inc=1 / 5000, abscissa_spec_data_type=17, ordinate_spec_data_type=12, orddenom_spec_data_type=0, z_axis_spec_data_type=0,
            ordinate_axis_units_lab="m/s2", abscissa_axis_units_lab="s", data=values, x=np.arange(len(values)) / 5000, **more)

    for name, n, more in [
        ("text-single", 5000, {"ord_data_type": 2}), ("text-double", 17, {"ord_data_type": 4}), ("little", 5000, {"ord_data_type": 4, "binary": 1, "byte_ordering": 1}),
        ("big-single", 101, {"ord_data_type": 2, "binary": 1, "byte_ordering": 2}), ("text-complex", 7, {"ord_data_type": 6}), ("complex", 9, {"ord_data_type": 5, "binary": 1, "byte_ordering": 1}),
    ]:
        uff = pyuff.UFF(str(folder / f"peer-{name}.uff"))
        out = [time_response(i, x[:n, i] * 10 ** i + (1j * x[:n, i - 1] if "complex" in name else 0), **more) for i in range(3)]
        uff.write_sets([pyuff.prepare_164(units_code=1, units_description="SI", temp_mode=1, length=1.0, force=1.0, temp=1.0, temp_offset=0.0), *out], "overwrite")
    np.savez_compressed(folder / "peer.npz", a=x, b=np.asfortranarray(x.astype("f4")), c=x.T.astype("i8"), d=x[:, 0] > 0)


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
    folder = Path(sys.argv[1])
    write(folder)
    main(folder, [*sorted(folder.iterdir()), *map(Path, sys.argv[2:])])
