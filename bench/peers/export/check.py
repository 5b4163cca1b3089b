"""Recompute exported models with onnxruntime, and with numpy from safetensors.

usage: check.py FOLDER    (what `go test ./internal/train/export -peers FOLDER` wrote)

Fails if a posterior differs from the model's by more than 1e-6, or a decision
at all.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from safetensors import safe_open

TOLERANCE = 1e-6


def encode(kinds, x, t):
    """The encoding, as classify.Encoder.Column describes it, of a committee its members' beside each other."""
    columns, k, v = [], 0, 0
    for i, fill in enumerate(t["encoder.fill"]):
        kind, j = kinds[i // x.shape[1]], i % x.shape[1]
        nk, nv = t["encoder.knot_count"][i], t["encoder.value_count"][i]
        knots, values = t["encoder.knots"][k : k + nk], t["encoder.values"][v : v + nv]
        k, v = k + nk, v + nv
        col = np.where(np.isnan(x[:, j]), fill, x[:, j].astype(np.float64))
        if nk == 0:
            columns.append(np.zeros(len(col)))
        elif kind == "standard":
            columns.append(np.clip((col - knots[0]) / values[0], -5, 5))
        elif kind == "normalscore":
            columns.append(np.interp(col, knots, values))
        else:
            columns += [np.clip((col - a) / (b - a), 0, 1) for a, b in zip(knots[:-1], knots[1:])]
    return np.stack(columns, axis=1)


def from_tensors(kinds, x, t):
    a = encode(kinds, x, t)
    layers = sum(name.startswith("layers.") and name.endswith(".weight") for name in t)
    for i in range(layers):
        a = a @ t[f"layers.{i}.weight"].astype(np.float64) + t[f"layers.{i}.bias"]
        if i < layers - 1:
            a = 1 / (1 + np.exp(-a))
    a = np.exp(a - a.max(axis=1, keepdims=True))
    return a / a.sum(axis=1, keepdims=True)


def lists(t, name):
    return np.split(t[name], np.cumsum(t[name + "_count"])[:-1])


def bound(x, p, t):
    """What a guard leaves of the posteriors p of a network, as vote.Expert and the documents describe it."""
    x = x.astype(np.float64)
    cut, width = t["guard.cut_and_bound"]
    failed = np.array([np.isnan(x[:, w]).all(axis=1) for w in lists(t, "guard.watched")]).T
    worth = np.log(np.clip(1 - t["costs"], 1e-300, None))
    out = p.copy()
    for i in range(len(x)):
        odds = []
        for e, sensors in enumerate(lists(t, "guard.expert.sensors")):
            if t["guard.expert.ratio"][e] and failed[i, sensors].any():
                continue
            parts = []
            for k in np.flatnonzero(t["guard.input.expert"] == e):
                a, b = t["guard.input.a"][k], t["guard.input.b"][k]
                with np.errstate(invalid="ignore"):
                    v = x[i, a] - (x[i, b] if b >= 0 else 0)
                if not np.isnan(v) and not failed[i, t["guard.input.sensor"][k]]:
                    parts.append(t["guard.input.weight"][k] * np.clip((v - t["guard.input.mean"][k]) / t["guard.input.sd"][k], -5, 5))
            if parts:
                odds.append(np.clip(sum(parts) + t["guard.expert.bias"][e], -6, 6))
        if not odds:
            continue
        margin = np.median(odds) - cut
        network = np.log(p[i, 1]) - np.log(p[i, 0]) + worth[1] - worth[0]
        if not failed[i].any():
            margin += np.clip(network - margin, -width, width)
        out[i, 1] = 1 / (1 + np.exp(worth[1] - worth[0] - margin))
        out[i, 0] = 1 - out[i, 1]
    return out


def main(folder):
    models = sorted(pathlib.Path(folder).glob("*.onnx"))
    failed = not models
    for path in models:
        said = json.loads(path.with_suffix(".json").read_text())
        x = np.array([[float(c) for c in row] for row in said["features"]], dtype=np.float32)
        want = np.array(said["posterior"])
        onnx.checker.check_model(onnx.load(path), full_check=True)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        posterior, score, decided = session.run(["posterior", "score", "class"], {"features": x})
        with safe_open(path.with_suffix(".safetensors"), framework="np") as f:
            tensors = {name: f.get_tensor(name) for name in f.keys()}
            kinds = f.metadata()["flank.encoding"].split(", ")
        again = from_tensors(kinds, x, tensors)
        if "guard.cut_and_bound" in tensors:
            again = bound(x, again, tensors)
        gaps = {
            "onnx posterior": np.abs(posterior - want).max(),
            "onnx score": np.abs(score - np.array(said["score"])).max(),
            "safetensors posterior": np.abs(again - want).max(),
        }
        wrong = int((decided != np.array(said["class"])).sum())
        bad = wrong > 0 or not all(g <= TOLERANCE for g in gaps.values())
        failed |= bad
        print(f"{path.stem:12s} {len(x)} rows  " + "  ".join(f"{k} {v:.1e}" for k, v in gaps.items()) + f"  decisions that differ {wrong}" + ("  FAILED" if bad else ""))
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1])
