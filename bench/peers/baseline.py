"""Reference values of scikit-learn for the methods of internal/train/study.

    python bench/peers/baseline.py internal/train/study/testdata/scikit-learn.json         # compare
    python bench/peers/baseline.py internal/train/study/testdata/scikit-learn.json --write

The file holds rows, made from a fixed seed, and what scikit-learn makes of them:
the coefficients of logistic regressions on columns standardised by the training
rows, and what random forests and extra trees of 100 trees, as their defaults are,
say of test rows, as the mean over ten seeds and the standard deviation. A test of
internal/train/study holds the Go code to it. Comparing computes the values again.
"""

import json
import math
import sys

import numpy
import sklearn
from sklearn import metrics
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

SEEDS = 10


def linear(rng, n):
    """Four columns, of which two count, and labels that are noisy."""
    x = rng.normal(size=(n, 4)) * [1, 10, 0.1, 3] + [0, 100, -1, 0]
    return x, x[:, 0] + 0.1 * (x[:, 1] - 100) + rng.normal(size=n) > 0.5


def exclusive(rng, n):
    """Class 1 where two columns have different signs, which no line can tell."""
    x = rng.normal(size=(n, 5))
    return x, (x[:, 0] > 0) != (x[:, 1] > 0)


def rare(rng, n):
    """A tenth of the rows in class 1, around another centre; the last column has few values."""
    y = rng.random(n) < 0.1
    x = rng.normal(size=(n, 6)) + numpy.outer(y, [1.5, 1, 0.5, 0, 0, 0])
    x[:, 5] = numpy.round(x[:, 5])
    return x, y


def correlated(rng, n):
    """More columns than rows can tell apart: noisy copies of three."""
    base = rng.normal(size=(n, 3))
    x = numpy.repeat(base, 10, axis=1) + 0.1 * rng.normal(size=(n, 30))
    return x, base.sum(axis=1) + 0.5 * rng.normal(size=n) > 0


def forest(make, x, y, test, truth):
    """Accuracy and AUC of forests: the mean over seeds and the standard deviation."""
    accuracy, auc = [], []
    for seed in range(SEEDS):
        p = make(random_state=seed).fit(x, y).predict_proba(test)[:, 1]
        accuracy.append(metrics.accuracy_score(truth, p > 0.5))
        auc.append(metrics.roc_auc_score(truth, p))
    return {
        "accuracy": float(numpy.mean(accuracy)),
        "accuracy_sd": float(numpy.std(accuracy, ddof=1)),
        "auc": float(numpy.mean(auc)),
        "auc_sd": float(numpy.std(auc, ddof=1)),
    }


def case(make, train, tested):
    rng = numpy.random.default_rng(1804)
    x, y = make(rng, train + tested)
    x, y = numpy.round(x, 3).astype(numpy.float32), y.astype(int)
    x, test, y, truth = x[:train], x[train:], y[:train], y[train:]
    z = x.astype(float)
    z = ((z - z.mean(axis=0)) / z.std(axis=0)).astype(numpy.float32)
    out = {"name": make.__name__, "columns": x.shape[1], "x": rounded(x), "y": y.tolist(), "test": rounded(test), "truth": truth.tolist()}
    for name, settings in {"logistic": {}, "balanced": {"class_weight": "balanced"}, "weak": {"C": 0.01}}.items():
        fit = LogisticRegression(tol=1e-10, max_iter=100_000, **settings).fit(z.astype(float), y)
        out[name] = {"bias": float(fit.intercept_[0]), "weights": fit.coef_[0].tolist()}
    out["random_forest"] = forest(RandomForestClassifier, x, y, test, truth)
    out["extra_trees"] = forest(ExtraTreesClassifier, x, y, test, truth)
    return out


def rounded(x):
    """The values row by row, with the digits that they have."""
    return [round(float(v), 3) for v in x.ravel()]


def cases():
    return [case(linear, 150, 400), case(exclusive, 200, 400), case(rare, 300, 600), case(correlated, 120, 120)]


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
    elif not math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5):
        yield f"{where}: {a} and {b}"


def main():
    path = sys.argv[1]
    now = {"origin": f"bench/peers/baseline.py, scikit-learn {sklearn.__version__}, numpy {numpy.__version__}", "cases": cases()}
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
