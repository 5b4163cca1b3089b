"""The features of version 2 by NumPy, SciPy and PyWavelets.

What docs/reference/features.md defines, written from there with the functions that an engineer
would take: scipy.signal.welch, scipy.stats, pywt.WaveletPacket. Run by `make peers-signal`.

    python features.py write GOLDEN   compute reference values of the test signals
    python features.py check GOLDEN   compute them and compare with the file
"""

import json
import sys
from importlib.metadata import version

import numpy as np
import pywt
import scipy
from scipy import signal, stats

RATE, RPM = 20_000.0, 1650.0


def test_signals(n, channels):
    """Signals that any language makes bit for bit: 64-bit integers, and IEEE
    additions and multiplications one at a time."""
    out = np.empty((channels, n), np.float32)
    for c in range(channels):
        state = 0x9E3779B97F4A7C15 * (c + 1) % 2**64
        y1 = y2 = 0.0
        for i in range(n):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            u = (state >> 40) / 2**23 - 1.0
            if i % 727 < 2:  # once a turn
                u += 8.0 + c
            y = (1.5 - 0.125 * c) * y1 - 0.875 * y2 + u
            y2, y1 = y1, y
            out[c, i] = y + 0.25 * c + i / 65536.0
    return out


def segment_length(n):
    return min(max(64, 1 << (int(n // 4).bit_length() - 1)), 4096)


def bands(top):
    edges = [top]
    while len(edges) < 10:
        e = int(top * 2.0 ** (-2.0 * len(edges) / 3.0))
        if e < 2 or e == edges[0]:
            break
        edges.insert(0, e)
    return [0] + edges


def time_domain(x, rate):
    """x is channels×n in float64."""
    n = x.shape[1]
    mean = x.mean(1)
    var = x.var(1)
    rms = np.sqrt(np.mean(x * x, 1))
    peak = np.abs(x).max(1)
    absolute = np.abs(x).mean(1)
    t = np.arange(n) / rate
    slope = ((t - t.mean()) @ (x - mean[:, None]).T) / np.sum((t - t.mean()) ** 2)
    d1, d2 = np.diff(x), np.diff(x, n=2)
    below = x < mean.astype(np.float32)[:, None]
    mobility = np.sqrt(d1.var(1) / var)
    return {
        "mean": mean, "variance": var, "std": x.std(1), "rms": rms, "min": x.min(1), "max": x.max(1),
        "peak": peak, "peak_to_peak": np.ptp(x, 1), "slope": slope,
        "residual": np.sqrt(var - slope**2 * t.var()),
        "crest": peak / rms, "shape": rms / absolute, "impulse": peak / absolute,
        "clearance": peak / np.sqrt(np.abs(x)).mean(1) ** 2,
        "skewness": stats.skew(x, 1), "kurtosis": stats.kurtosis(x, 1, fisher=False),
        "zero_crossings": np.count_nonzero(np.diff(below, axis=1), 1) / (n - 1) * rate,
        "mobility": mobility * rate,
        "complexity": np.sqrt(d2.var(1) / d1.var(1)) / mobility,
    }


def around(spectrum, f, hz, least):
    k = int(np.floor(f / hz + 0.5))
    if k - 1 < least or k + 1 >= spectrum.shape[1]:
        return np.full(len(spectrum), np.nan)
    return spectrum[:, k - 1 : k + 2].sum(1)


def spectra(x, rate, spindle):
    rest = x - x.mean(1, keepdims=True)
    n = x.shape[1]
    size = segment_length(n)
    hz = rate / size
    f, density = signal.welch(rest, rate, "hann", size, size // 2, detrend=False)
    p, f = density[:, 1:] * hz, f[1:]
    total = p.sum(1)
    out = {}
    for j, (low, high) in enumerate(zip(bands(size // 2), bands(size // 2)[1:])):
        out[f"band{j+1:02d}"] = np.log10(p[:, low:high].sum(1))
    share = p / total[:, None]
    out["centroid"] = share @ f
    out["spread"] = np.sqrt(np.sum(share * (f - out["centroid"][:, None]) ** 2, 1))
    cumulative = np.cumsum(p, 1)
    edge = 0.85 * total
    k = np.argmax(cumulative >= edge[:, None], 1)
    rows = np.arange(len(p))
    out["rolloff"] = (k + (edge - cumulative[rows, k] + p[rows, k]) / p[rows, k]) * hz
    out["flatness"] = stats.gmean(p, 1) / p.mean(1)
    out["entropy"] = stats.entropy(p, axis=1) / np.log(p.shape[1])
    full = density * hz
    for h in range(1, 7):
        out[f"harmonic{h:02d}"] = np.log10(around(full, h * spindle, hz, 1))

    # Segments once more, for what scipy has no function for.
    taper = signal.get_window("hann", size)
    segments = np.lib.stride_tricks.sliding_window_view(rest, size, 1)[:, :: size // 2]
    bins = np.fft.rfft(segments * taper, axis=2)
    band = np.zeros(bins.shape[:2] + (size // 4,), complex)
    band[:, :, : size // 8] = bins[:, :, size // 8 : size // 4]
    squared = np.abs(np.fft.ifft(band, axis=2)) ** 2
    e = np.sum(np.abs(np.fft.rfft(squared, axis=2)) ** 2, 1)
    q = np.arange(3, e.shape[1])
    out["envelope_depth"] = np.log10(1e-6 + e[:, 3:].sum(1) / e[:, 0])
    out["envelope_centroid"] = e[:, 3:] @ (q * hz) / e[:, 3:].sum(1)
    for h in range(1, 5):
        out[f"envelope{h:02d}"] = np.log10(1e-6 + around(e, h * spindle, hz, 3) / e[:, 0])

    lines = bins[:, :, [int(np.floor(h * spindle / hz + 0.5)) for h in range(1, 5)]]
    cross = np.abs(np.sum(lines[1:] * np.conj(lines[:-1]), 1)) ** 2
    auto = np.sum(np.abs(lines) ** 2, 1)
    out["coherence"] = np.concatenate([[np.nan], np.mean(cross / (auto[1:] * auto[:-1]), 1)])
    return out


def packets(x):
    rest = x - x.mean(1, keepdims=True)
    n = x.shape[1] // 16 * 16
    out = {f"packet{i+1:02d}": np.empty(len(x)) for i in range(16)}
    tree = pywt.WaveletPacket(rest[:, :n], "db4", mode="periodization", maxlevel=4, axis=1)
    for i, node in enumerate(tree.get_level(4, order="freq")):
        out[f"packet{i+1:02d}"] = np.log10(np.sum(node.data**2, 1) / n)
    return out


def extract(x, rate, rpm):
    """All features of channels×n samples, by name."""
    x = x.astype(np.float64)
    return time_domain(x, rate) | spectra(x, rate, rpm / 60) | packets(x)


def reference():
    cases = []
    for n, channels in (20_000, 3), (1000, 2), (4999, 2):
        values = extract(test_signals(n, channels), RATE, RPM)
        cases.append({"samples": n, "channels": channels, "rate": RATE, "rpm": RPM,
                      "features": {k: [None if np.isnan(u) else float(u) for u in v] for k, v in values.items()}})
    return {"origin": f"bench/peers/signal/features.py: NumPy {np.__version__}, SciPy {scipy.__version__}, PyWavelets {version('PyWavelets')}", "cases": cases}


def main():
    command, path = sys.argv[1:]
    got = reference()
    if command == "write":
        with open(path, "w") as f:
            json.dump(got, f, indent=1)
            f.write("\n")
        return
    with open(path) as f:
        want = json.load(f)
    compared = 0
    for a, b in zip(got["cases"], want["cases"], strict=True):
        assert a["features"].keys() == b["features"].keys(), "features differ"
        for name, values in a["features"].items():
            for u, v in zip(values, b["features"][name], strict=True):
                if (u is None) != (v is None) or u is not None and abs(u - v) > 1e-10 * max(1, abs(v)):
                    sys.exit(f"{a['samples']} samples: {name} is {u}, the file has {v}")
                compared += 1
    print(f"{compared} values as in {path} ({got['origin']}; the file: {want['origin']})")


if __name__ == "__main__":
    main()
