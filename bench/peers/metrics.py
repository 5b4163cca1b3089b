"""Reference values of scikit-learn for the metrics of pkg/score.

    python bench/peers/metrics.py pkg/score/testdata/scikit-learn.json         # compare
    python bench/peers/metrics.py pkg/score/testdata/scikit-learn.json --write

The file holds rows, made from a fixed seed, and what scikit-learn says of
them; a test of pkg/score holds the Go code to it. Comparing computes the
values anew and fails where they are off by more than 1e-12.
"""

import json
import math
import sys

import numpy
import sklearn
from scipy.optimize import minimize_scalar
from sklearn import metrics
from sklearn.calibration import calibration_curve


def case(name, rng, k, n, ties):
    """Rows of k classes, the last one rare, with posteriors that say something."""
    y = rng.choice(k, size=n, p=numpy.array([2.0] * (k - 1) + [1.0]) / (2 * k - 1))
    y[:k] = numpy.arange(k)
    z = rng.normal(size=(n, k)) + 1.2 * numpy.eye(k)[y]
    p = numpy.exp(z) / numpy.exp(z).sum(axis=1, keepdims=True)
    if ties:
        p = numpy.round(8 * p) / 8 + 1e-3
    p = p / p.sum(axis=1, keepdims=True)
    decided = p.argmax(axis=1)
    last, positive, score = k - 1, y == k - 1, p[:, k - 1]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        y, decided, labels=[last], average=None, zero_division=0
    )
    recalls = metrics.recall_score(y, decided, labels=range(k), average=None)
    fpr, tpr, thresholds = metrics.roc_curve(positive, score, drop_intermediate=False)
    curve_precision, curve_recall, _ = metrics.precision_recall_curve(positive, score)
    observed, predicted = calibration_curve(positive, score, n_bins=10)

    def cross_entropy(b):
        q = numpy.log(p) * b
        return numpy.mean(numpy.logaddexp.reduce(q, axis=1) - q[numpy.arange(n), y])

    best = minimize_scalar(cross_entropy, bounds=(1 / 50, 2), method="bounded", options={"xatol": 1e-12})
    brier = numpy.mean(((p - numpy.eye(k)[y]) ** 2).sum(axis=1)) / (2 if k == 2 else 1)
    if k == 2:
        assert abs(brier - metrics.brier_score_loss(positive, score)) < 1e-12
    return {
        "name": name,
        "classes": k,
        "y": y.tolist(),
        "posterior": p.ravel().tolist(),
        "confusion": metrics.confusion_matrix(y, decided).tolist(),
        "accuracy": metrics.accuracy_score(y, decided),
        "precision": precision[0],
        "recall": recall[0],
        "f1": f1[0],
        "specificity": metrics.recall_score(~positive, decided != last),
        "recalls": recalls.tolist(),
        "auc_one_vs_rest": [metrics.roc_auc_score(y == j, p[:, j]) for j in range(k)],
        "gmean": float(numpy.prod(recalls) ** (1 / k)),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, decided),
        "mcc": metrics.matthews_corrcoef(y, decided),
        "auc": metrics.roc_auc_score(positive, score),
        "auc_hard_labels": metrics.roc_auc_score(positive, decided == last),
        "average_precision": metrics.average_precision_score(positive, score),
        "brier": brier,
        "roc": {"fpr": fpr.tolist(), "tpr": tpr.tolist(), "threshold": thresholds[1:].tolist()},
        "pr": {"precision": curve_precision[::-1].tolist(), "recall": curve_recall[::-1].tolist()},
        "reliability": {"predicted": predicted.tolist(), "observed": observed.tolist()},
        "temperature": 1 / best.x,
    }


def cases():
    rng = numpy.random.default_rng(1804)
    return [
        case("two classes", rng, 2, 60, False),
        case("two classes with ties", rng, 2, 60, True),
        case("four classes", rng, 4, 80, False),
    ]


def differences(a, b, where=""):
    if isinstance(a, dict):
        if a.keys() != b.keys():
            yield f"{where}: keys {sorted(a)} and {sorted(b)}"
            return
        for key in a:
            yield from differences(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, list):
        if len(a) != len(b):
            yield f"{where}: {len(a)} and {len(b)} values"
            return
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{where}/{i}")
    elif isinstance(a, str):
        if a != b:
            yield f"{where}: {a} and {b}"
    elif not math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) and "temperature" not in where:
        yield f"{where}: {a} and {b}"
    elif "temperature" in where and not math.isclose(a, b, rel_tol=1e-6):
        yield f"{where}: {a} and {b}"


def main():
    path = sys.argv[1]
    now = {"origin": f"bench/peers/metrics.py, scikit-learn {sklearn.__version__}, numpy {numpy.__version__}", "cases": cases()}
    if sys.argv[2:] == ["--write"]:
        with open(path, "w") as f:
            json.dump(now, f)
            f.write("\n")
        return
    with open(path) as f:
        kept = json.load(f)
    found = list(differences(now["cases"], kept["cases"]))
    for line in found:
        print(line, file=sys.stderr)
    print(f"{path} ({kept['origin']}): {len(kept['cases'])} cases, {len(found)} differences to {now['origin']}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
