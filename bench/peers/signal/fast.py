"""From the bytes of a window's message to Flank's default features, as a good engineer writes it in Python.

PyArrow without a copy, NumPy and SciPy in float32, one Fourier transform for power, envelope and lines,
PyWavelets on all channels at once. What the features are: docs/reference/features.md. The reference of
their values is features.py, which is written to be read, in float64.

    python fast.py check    compare with features.py on its test signals
    python fast.py          answer the requests of TestGoals from standard input
"""

import os

for name in "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS":
    os.environ[name] = "1"

import functools
import platform
import sys
import time
from importlib.metadata import version

import numpy as np
import pyarrow as pa
import pywt
import scipy
import scipy.fft

import features

BANDS = [f"band{i:02d}" for i in range(1, 11)]
HARMONICS = [f"harmonic{i:02d}" for i in range(1, 7)]
ENVELOPES = [f"envelope{i:02d}" for i in range(1, 5)]
PACKETS = [f"packet{i:02d}" for i in range(1, 17)]


class Plan:
    """What depends on the length and the rate of channels alone."""

    def __init__(self, n, rate):
        size = features.segment_length(n)
        k = np.arange(size)
        taper = 0.5 - 0.5 * np.cos(2 * np.pi * k / size)
        self.size, self.hop, self.hz = size, size // 2, rate / size
        self.taper = taper.astype(np.float32)
        self.segments = (n - size) // self.hop + 1
        self.scale = 2 / (self.segments * size * np.sum(taper**2))
        self.bins = np.arange(1, size // 2 + 1) * self.hz
        self.edges = np.array(features.bands(size // 2))
        self.envelope = np.arange(3, size // 8 + 1) * self.hz


plan_of = functools.lru_cache(Plan)


def squared(z):
    return z.real * z.real + z.imag * z.imag


def rows_dot(a, b):
    return np.array([np.dot(u, v) for u, v in zip(a, b)], np.float64)


def around(spectrum, frequency, hz, least):
    k = int(np.floor(frequency / hz + 0.5))
    if not k - 1 >= least or k + 1 >= spectrum.shape[1]:
        return np.full(len(spectrum), np.nan)
    return spectrum[:, k - 1 : k + 2].sum(1)


def shape_of(x, rate):
    """The features of the samples, and the samples less their mean."""
    n = x.shape[1]
    mean = x.mean(1, dtype=np.float64)
    rest = x - mean.astype(np.float32)[:, None]
    squares = rest * rest
    m2 = squares.sum(1, dtype=np.float64) / n
    m3, m4 = rows_dot(squares, rest) / n, rows_dot(squares, squares) / n
    rms = np.sqrt(m2 + mean * mean)
    magnitude = np.abs(x)
    peak, absolute = magnitude.max(1), magnitude.mean(1, dtype=np.float64)
    np.sqrt(magnitude, out=magnitude)
    roots = magnitude.mean(1, dtype=np.float64)
    steps = rest[:, 1:] - rest[:, :-1]
    bends = steps[:, 1:] - steps[:, :-1]
    v1 = rows_dot(steps, steps) / (n - 1) - ((rest[:, -1] - rest[:, 0]) / (n - 1)) ** 2
    v2 = rows_dot(bends, bends) / (n - 2) - ((steps[:, -1] - steps[:, 0]) / (n - 2)) ** 2
    below = np.signbit(rest)
    mobility = np.sqrt(v1 / m2)
    return rest, {
        "rms": rms, "peak": peak, "crest": peak / rms, "shape": rms / absolute, "impulse": peak / absolute,
        "clearance": peak / roots**2, "skewness": m3 / m2**1.5, "kurtosis": m4 / m2**2,
        "zero_crossings": np.count_nonzero(below[:, 1:] != below[:, :-1], axis=1) / (n - 1) * rate,
        "mobility": mobility * rate, "complexity": np.sqrt(v2 / v1) / mobility,
    }


def spectrum_of(bins, plan, spindle):
    full = squared(bins).sum(1, dtype=np.float64) * plan.scale
    full[:, -1] /= 2
    p = full[:, 1:]
    cumulative = np.cumsum(p, 1)
    total = cumulative[:, -1]
    out = {}
    low = np.zeros(len(p))
    for name, edge in zip(BANDS, plan.edges[1:]):
        high = cumulative[:, edge - 1]
        out[name] = np.log10(high - low)
        low = high
    centroid = p @ plan.bins / total
    out["centroid"] = centroid
    out["spread"] = np.sqrt(np.maximum(p @ plan.bins**2 / total - centroid**2, 0))
    rows, edge = np.arange(len(p)), 0.85 * total
    k = np.array([np.searchsorted(c, e) for c, e in zip(cumulative, edge)])
    out["rolloff"] = (k + 1 - (cumulative[rows, k] - edge) / p[rows, k]) * plan.hz
    logs = np.log(p.astype(np.float32))
    out["flatness"] = np.exp(logs.mean(1, dtype=np.float64)) * p.shape[1] / total
    out["entropy"] = (np.log(total) - rows_dot(p, logs) / total) / np.log(p.shape[1])
    for h, name in enumerate(HARMONICS, 1):
        out[name] = np.log10(around(full, h * spindle, plan.hz, 1))
    return out


def envelope_of(bins, plan, spindle):
    eighth = plan.size // 8
    band = np.zeros(bins.shape[:2] + (2 * eighth,), bins.dtype)
    band[:, :, :eighth] = bins[:, :, eighth : 2 * eighth]
    power = squared(scipy.fft.ifft(band, axis=2, overwrite_x=True))
    e = squared(scipy.fft.rfft(power, axis=2, overwrite_x=True)).sum(1, dtype=np.float64)
    tail = e[:, 3:]
    total = tail.sum(1)
    out = {"envelope_depth": np.log10(1e-6 + total / e[:, 0]), "envelope_centroid": tail @ plan.envelope / total}
    for h, name in enumerate(ENVELOPES, 1):
        out[name] = np.log10(1e-6 + around(e, h * spindle, plan.hz, 3) / e[:, 0])
    return out


def packets_of(rest):
    n = rest.shape[1] // 16 * 16
    out = {}

    def split(x, level, place):
        if level == 4:
            out[place] = np.log10(rows_dot(x, x) / n)
            return
        for i, half in enumerate(pywt.dwt(x, "db4", "periodization", axis=1)):
            split(half, level + 1, 2 * place + i)

    split(rest[:, :n], 0, 0)
    return {name: out[i ^ (i >> 1)] for i, name in enumerate(PACKETS)}  # by frequency: Gray's code


def coherence_of(bins, plan, spindle):
    if not spindle > 0:
        return np.full(len(bins), np.nan)
    lines = bins[:, :, [int(np.floor(h * spindle / plan.hz + 0.5)) for h in range(1, 5)]]
    cross = squared(np.sum(lines[1:] * np.conj(lines[:-1]), 1))
    power = squared(lines).sum(1)
    return np.concatenate([[np.nan], np.mean(cross / (power[1:] * power[:-1]), 1)])


def extract(x, rate, rpm):
    """The default features of channels×n samples of vibration in float32, by name."""
    plan = plan_of(x.shape[1], rate)
    spindle = rpm / 60 if rpm > 0 else np.nan
    parts = [shape_of(x[i : i + 3], rate) for i in range(0, len(x), 3)]  # three channels stay in the second cache
    rest = np.concatenate([part[0] for part in parts])
    out = {name: np.concatenate([part[1][name] for part in parts]) for name in parts[0][1]}
    segments = np.lib.stride_tricks.sliding_window_view(rest, plan.size, 1)[:, :: plan.hop]
    bins = scipy.fft.rfft(segments * plan.taper, axis=2, overwrite_x=True)
    out |= spectrum_of(bins, plan, spindle)
    out |= envelope_of(bins, plan, spindle)
    out |= packets_of(rest)
    out["coherence"] = coherence_of(bins, plan, spindle)
    return out


def extract_slow(x, rate):
    """The default features of channels of forces of less than 1024 samples."""
    x = x.astype(np.float64)
    t = np.arange(x.shape[1]) / rate
    t -= t.mean()
    mean, var = x.mean(1), x.var(1)
    slope = x @ t / np.dot(t, t)
    return {
        "mean": mean, "std": np.sqrt(var), "rms": np.sqrt(var + mean * mean), "peak_to_peak": np.ptp(x, 1), "slope": slope,
        "residual": np.sqrt(np.maximum(var - slope**2 * np.mean(t * t), 0)),
    }


def opened(value):
    """The record batch of a window, from the value of its message."""
    return pa.ipc.open_stream(pa.py_buffer(value)).read_next_batch()


def features_of(value):
    return features_in(opened(value))


def features_in(batch):
    """Names and values of the features of a window."""
    schema = batch.schema
    rpm = batch.column(schema.get_field_index("spindle_speed"))[0].as_py()
    groups = {}
    for i, field in enumerate(schema):
        if field.metadata and b"rate" in field.metadata:
            key = field.metadata[b"kind"] == b"vibration", float(field.metadata[b"rate"])
            groups.setdefault(key, []).append(i)
    names, values = [], []
    for (vibration, rate), columns in groups.items():
        x = np.stack([batch.column(i).flatten().to_numpy() for i in columns])
        of = extract(x, rate, rpm) if vibration else extract_slow(x, rate)
        table = np.stack(list(of.values()), 1).astype(np.float32)
        labels = [f"{schema.names[i]}.{name}" for i in columns for name in of]
        flat = table.ravel()
        if vibration:  # the first channel has no coherence
            at = list(of).index("coherence")
            flat = np.delete(flat, at)
            del labels[at]
        names += labels
        values.append(flat)
    return names, np.concatenate(values)


def check():
    """The features are the reference's, within what float32 leaves of their scale."""
    compared = 0
    for n, channels in (20_000, 3), (4999, 2), (2048, 2):
        x = features.test_signals(n, channels)
        got, want = extract(x, features.RATE, features.RPM), features.extract(x, features.RATE, features.RPM)
        if len(got) != 55:
            sys.exit(f"{len(got)} features a channel, want 55")
        for name, values in got.items():
            scale = np.maximum(np.abs(want[name]), 1)
            if not np.array_equal(np.isnan(values), np.isnan(want[name])) or np.nanmax(np.abs(values - want[name]) / scale, initial=0) > 1e-4:
                sys.exit(f"{n} samples: {name} is {values}, the reference says {want[name]}")
            compared += len(values)
    x = features.test_signals(100, 2)
    got, want = extract_slow(x, 100.0), features.time_domain(x.astype(np.float64), 100.0)
    for name, values in got.items():
        if np.max(np.abs(values - want[name]) / np.maximum(np.abs(want[name]), 1)) > 1e-9:
            sys.exit(f"{name} is {values}, the reference says {want[name]}")
        compared += len(values)
    print(f"{compared} values as the reference has them ({versions()})")


def versions():
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"PyWavelets {version('PyWavelets')}, PyArrow {pa.__version__}"
    )


def fastest(value, windows, trials):
    """Wall and processor seconds of so many windows, the least of the trials."""
    least = [np.inf, np.inf]
    for _ in range(trials):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(windows):
            features_of(value)
        least = [min(least[0], time.perf_counter() - wall), min(least[1], time.process_time() - cpu)]
    return least


def serve():
    """Requests of TestGoals: "values FILE" and "features FILE windows trials"."""
    for line in sys.stdin:
        try:
            what, *words = line.split()
            with open(words[0], "rb") as f:
                value = f.read()
            if what == "values":
                names, values = features_of(value)
                print(" ".join(f"{name} {v:.9g}" for name, v in zip(names, values)), flush=True)
            else:
                features_of(value)
                print("%.9f %.9f" % tuple(fastest(value, int(words[1]), int(words[2]))), flush=True)
        except Exception as e:  # answered, so that bench can say who failed
            print("error:", repr(e).replace("\n", " "), flush=True)


if __name__ == "__main__":
    np.seterr(divide="ignore", invalid="ignore")
    check() if sys.argv[1:] == ["check"] else serve()
