"""The peers of an ECS-DBN on the rows that `quality features` wrote.

    python bench/peers/quality.py features.csv bench/peers/quality.json [seeds]

Every tool is held out in turn. A method's threshold is the exact optimum of
the G-mean on posteriors of the other tools, each by a fit without it. One fit
without tools a and b serves both as they are held out: fits are shared, which
changes nothing. Methods without randomness run once.
"""

import csv
import json
import sys

import numpy
import sklearn
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC


def methods(seed):
    """Name, whether it draws at random, and the method."""

    def imputed(*steps):
        return make_pipeline(SimpleImputer(keep_empty_features=True), *steps)

    def scaled(m):
        return imputed(StandardScaler(), m)

    def clipped(m):
        clip = FunctionTransformer(numpy.clip, kw_args={"a_min": -5, "a_max": 5})
        return imputed(StandardScaler(), clip, m)

    logistic = LogisticRegression(max_iter=5000)
    mlp = MLPClassifier((30, 30), max_iter=500, random_state=seed)
    return [
        ("logistic regression", False, scaled(logistic)),
        ("logistic regression, clipped", False, clipped(logistic)),
        ("SVM, RBF kernel", False, scaled(SVC())),
        ("SVM, RBF kernel, clipped", False, clipped(SVC())),
        ("random forest, 300", True, imputed(RandomForestClassifier(300, random_state=seed))),
        ("extra trees, 300", True, imputed(ExtraTreesClassifier(300, random_state=seed))),
        ("histogram gradient boosting", False, imputed(HistGradientBoostingClassifier())),
        ("MLP (30, 30)", True, scaled(mlp)),
        ("MLP (30, 30), clipped", True, clipped(mlp)),
    ]


def read(path):
    with open(path, newline="") as f:
        lines = list(csv.reader(f))[1:]
    x = numpy.array([[float(v) if v else numpy.nan for v in line[2:]] for line in lines], dtype=numpy.float32)
    names = list(dict.fromkeys(line[0] for line in lines))
    tool = numpy.array([names.index(line[0]) for line in lines])
    return x, numpy.array([int(line[1]) for line in lines]), tool


def decision(model, x):
    """The score and the threshold that the method itself decides at."""
    if hasattr(model, "decision_function"):
        return model.decision_function(x), 0.0
    return model.predict_proba(x)[:, 1], 0.5


def best_threshold(score, y):
    """The middle of the widest interval of thresholds with the best G-mean."""
    order = numpy.argsort(score)
    s, c = score[order], y[order]
    product = numpy.cumsum(c == 0) / (c == 0).sum() * (1 - numpy.cumsum(c == 1) / (c == 1).sum())
    end = numpy.append(s[1:] > s[:-1], True)  # a threshold fits behind the row
    s, product = s[end], product[end]
    above = numpy.append(s[1:], s[-1])
    best, run = (0.0, s[0], s[0]), None
    for i in numpy.flatnonzero(product >= product.max() - 1e-12):
        run = (run[0], i) if run and run[1] == i - 1 else (i, i)
        low, high = s[run[0]], above[run[1]]
        best = max(best, (high - low, low, high))
    return (best[1] + best[2]) / 2


def rates(y, d):
    recall, specificity = d[y == 1].mean(), 1 - d[y == 0].mean()
    return numpy.sqrt(recall * specificity), recall, specificity


def judge(method, x, y, tool):
    tools = range(tool.max() + 1)
    pairs = [(a, b) for a in tools for b in tools if a <= b]

    def fit(a, b):
        train = (tool != a) & (tool != b)
        model = clone(method).fit(x[train], y[train])
        return decision(model, x)

    scores = dict(zip(pairs, Parallel(n_jobs=-1)(delayed(fit)(a, b) for a, b in pairs)))
    score, tuned, plain = numpy.zeros(len(y)), numpy.zeros(len(y)), numpy.zeros(len(y))
    for a in tools:
        held = numpy.zeros(len(y))
        for b in tools:
            s, own = scores[min(a, b), max(a, b)]
            held[tool == b] = s[tool == b]
        test = tool == a
        score[test] = held[test]
        tuned[test] = held[test] > best_threshold(held[~test], y[~test])
        plain[test] = held[test] > own
    gmean, recall, specificity = rates(y, tuned)
    return gmean, recall, specificity, roc_auc_score(y, score), rates(y, plain)[0]


def main():
    x, y, tool = read(sys.argv[1])
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    out = {"versions": {"numpy": numpy.__version__, "scikit-learn": sklearn.__version__}, "methods": []}
    for i, (name, random, _) in enumerate(methods(0)):
        runs = [judge(methods(seed)[i][2], x, y, tool) for seed in range(seeds if random else 1)]
        keys = ["gmean", "recall", "specificity", "auc", "plain_gmean"]
        columns = [[round(float(v), 6) for v in column] for column in zip(*runs)]
        out["methods"].append({"name": name, **dict(zip(keys, columns))})
        print(name, columns[0], file=sys.stderr, flush=True)
        with open(sys.argv[2], "w") as f:
            json.dump(out, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
