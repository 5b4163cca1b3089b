"""Python's classifiers on KEEL's own folds, cell by cell.

    python bench/peers/study/peers.py --keel DIR --out docs/figures/study/peers.csv

A cell is one data set, method, trial and fold: a fit on the fold's training
part, scored on its test part, the minority class being the positive one. Cells
that the file has already are kept, so a run that was stopped goes on. Methods:

- As the paper has them, with scikit-learn's defaults: svm, mlp, knn, gb,
  logistic, adaboost, sgd, and lasso. The paper does not say how Lasso, a
  regression, classifies. With its default penalty of 1 and standardised inputs
  it cannot: no covariance of an input with labels of 0 and 1 exceeds 0.5, so
  all its coefficients are zero. Here lasso is the logistic regression with that
  penalty, L1, and C = 1.
- As one would do it today: balanced class weights, ensembles that balance each
  member's rows, and -tuned: the threshold by TunedThresholdClassifierCV for the
  G-mean on five inner folds.

Nominal inputs are one-hot. svm, mlp, knn, logistic, lasso and sgd get inputs
standardised by the training part; trees and their ensembles get them as they are.

A fit that its library refuses (RUSBoost's, when its first member is worse than
chance) is tried again with other seeds, ten in all; after that it decides as the
larger class throughout. Both are told on standard error.
"""

import argparse
import csv
import os
import pathlib
import sys
import time
import warnings

import keel
import numpy
from imblearn.ensemble import (
    BalancedBaggingClassifier,
    BalancedRandomForestClassifier,
    EasyEnsembleClassifier,
    RUSBoostClassifier,
)
from imblearn.metrics import geometric_mean_score
from lightgbm import LGBMClassifier
from sklearn import metrics
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

HEADER = "dataset,method,trial,fold,accuracy,gmean,auc,precision,recall,f1,seconds,mcc,balanced_accuracy".split(",")


def methods(seed):
    def scaled(m):
        return make_pipeline(StandardScaler(), m)

    def tuned(m):
        inner = StratifiedKFold(5, shuffle=True, random_state=seed)
        return TunedThresholdClassifierCV(m, scoring=metrics.make_scorer(geometric_mean_score), cv=inner)

    def lightgbm(**more):
        return LGBMClassifier(random_state=seed, n_jobs=1, deterministic=True, verbose=-1, **more)

    return {
        "svm": scaled(SVC()),
        "mlp": scaled(MLPClassifier(random_state=seed)),
        "knn": scaled(KNeighborsClassifier()),
        "gb": GradientBoostingClassifier(random_state=seed),
        "logistic": scaled(LogisticRegression()),
        "adaboost": AdaBoostClassifier(random_state=seed),
        "lasso": scaled(LogisticRegression(l1_ratio=1, solver="liblinear", random_state=seed)),
        "sgd": scaled(SGDClassifier(random_state=seed)),
        "logistic-balanced": scaled(LogisticRegression(class_weight="balanced")),
        "extratrees-tuned": tuned(ExtraTreesClassifier(300, random_state=seed)),
        "rf-tuned": tuned(RandomForestClassifier(300, random_state=seed)),
        "mlp-tuned": tuned(scaled(MLPClassifier((30, 30), max_iter=500, random_state=seed))),
        "hgb-tuned": tuned(HistGradientBoostingClassifier(random_state=seed)),
        "balanced-rf": BalancedRandomForestClassifier(300, random_state=seed),
        "easy-ensemble": EasyEnsembleClassifier(random_state=seed),
        "balanced-bagging": BalancedBaggingClassifier(n_estimators=50, random_state=seed),
        "rusboost": RUSBoostClassifier(random_state=seed),
        "lightgbm-balanced": lightgbm(class_weight="balanced"),
        "lightgbm-tuned": tuned(lightgbm()),
    }


def fit(name, seed, x, y):
    """The fitted method; the training part's larger class if ten seeds are refused."""
    for attempt in range(10):
        try:
            return methods(seed + 1000 * attempt)[name].fit(x, y)
        except ValueError as e:
            print(f"  {name}, seed {seed + 1000 * attempt}, refused: {e}", file=sys.stderr)
    return DummyClassifier(strategy="prior").fit(x, y)


def cell(name, seed, train_x, train_y, test_x, test_y):
    """The scores of one fit. Its time is the processor's, so that a busy machine
    does not lengthen it."""
    began = time.process_time()
    model = fit(name, seed, train_x, train_y)
    seconds = time.process_time() - began
    decided = model.predict(test_x)
    try:
        score = model.decision_function(test_x)
    except AttributeError:
        score = model.predict_proba(test_x)[:, 1]
    recall = metrics.recall_score(test_y, decided)
    specificity = metrics.recall_score(test_y, decided, pos_label=0)
    return {
        "accuracy": metrics.accuracy_score(test_y, decided),
        "gmean": numpy.sqrt(recall * specificity),
        "auc": metrics.roc_auc_score(test_y, score),
        "precision": metrics.precision_score(test_y, decided, zero_division=0),
        "recall": recall,
        "f1": metrics.f1_score(test_y, decided, zero_division=0),
        "seconds": seconds,
        "mcc": metrics.matthews_corrcoef(test_y, decided),
        "balanced_accuracy": (recall + specificity) / 2,
    }


def begin(path):
    """The cells that the file has; a line cut off by a stop is taken out."""
    if not path.exists() or path.stat().st_size == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(HEADER) + "\n")
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
    lines = list(csv.reader(data[:whole].decode().splitlines()))
    if not lines or lines[0] != HEADER:
        raise SystemExit(f"{path}: its header is not {','.join(HEADER)}; name another file with --out")
    return {tuple(line[:4]) for line in lines[1:]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keel", required=True, help="folder of KEEL's data sets")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="file of cells, appended to")
    parser.add_argument("--sets", help="comma list of data sets; default all")
    parser.add_argument("--methods", help="comma list of methods; default all")
    parser.add_argument("--trials", type=int, default=1)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    sets = [s for s in keel.names(args.keel) if not args.sets or s in args.sets.split(",")]
    chosen = [m for m in methods(0) if not args.methods or m in args.methods.split(",")]
    if not sets or not chosen:
        raise SystemExit(f"no such data set or method; methods are {', '.join(methods(0))}")
    done = begin(args.out)
    with args.out.open("a") as out:
        for i, name in enumerate(sets):
            began = time.perf_counter()
            for trial in range(1, args.trials + 1):
                for number in range(1, 6):
                    rows = None
                    for method in chosen:
                        if (name, method, str(trial), str(number)) in done:
                            continue
                        rows = rows or keel.fold(args.keel, name, number)
                        scores = cell(method, 5 * (trial - 1) + number, *rows)
                        texts = [f"{v:.4g}" if k == "seconds" else f"{v:.6f}" for k, v in scores.items()]
                        out.write(",".join([name, method, str(trial), str(number), *texts]) + "\n")
                        out.flush()
            print(f"{i + 1}/{len(sets)} {name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{args.out}: complete", file=sys.stderr)


if __name__ == "__main__":
    main()
