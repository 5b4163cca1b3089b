"""Reference values for bench/imbalance: which rows imbalanced-learn's resamplers
build on, how many they make, and the support vector machine under SVM-SMOTE.

    resamplers.py bench/imbalance/testdata/imbalanced-learn.json [write]

Without write it computes them anew and compares.
"""

import json
import sys

import imblearn
import numpy as np
import sklearn
from imblearn.over_sampling import ADASYN, SMOTE, SVMSMOTE, BorderlineSMOTE
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC


def problem(seed, frequent, rare, columns, apart):
    """Two normal clouds in float32, which is what Flank reads."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(frequent + rare, columns))
    x[frequent:] += apart
    return x.astype(np.float32).astype(float).round(4), np.array([0] * frequent + [1] * rare)


def reference(seed, frequent, rare, columns, apart):
    x, y = problem(seed, frequent, rare, columns, apart)
    minority = np.flatnonzero(y == 1)

    def neighbours(bases, among, k):
        found = NearestNeighbors(n_neighbors=k + 1).fit(x[among]).kneighbors(x[bases], return_distance=False)
        return [[int(among[j]) for j in row if among[j] != base][:k] for base, row in zip(bases, found)]

    everything = np.arange(len(y))
    few = min(5, len(minority) - 1)
    svc = SVC(tol=1e-3).fit(x, y)
    border = BorderlineSMOTE(random_state=0)
    counts = {}
    for name, resampler in {
        "smote": SMOTE(k_neighbors=few, random_state=0), "borderline1": border,
        "borderline2": BorderlineSMOTE(kind="borderline-2", random_state=0),
        "svm": SVMSMOTE(random_state=0), "adasyn": ADASYN(random_state=0),
    }.items():
        try:
            counts[name] = int(len(resampler.fit_resample(x, y)[1]))
        except ValueError:  # all are noise, or none has a neighbour of the other class
            counts[name] = None
    danger = getattr(border, "in_danger_indices", {}).get(1, [])
    return {
        "x": x.tolist(), "y": y.tolist(),
        "minority_neighbours": neighbours(minority, minority, few),
        "all_neighbours": neighbours(minority, everything, 5),
        "danger": [int(i) for i in danger],
        "rows": counts,
        "svc": {"support": [int(i) for i in svc.support_], "values": svc.decision_function(x).round(6).tolist(), "rho": float(-svc.intercept_[0])},
    }


def main():
    path = sys.argv[1]
    cases = [reference(1, 60, 12, 3, 1.0), reference(2, 40, 9, 2, 2.5), reference(3, 80, 20, 5, 0.5)]
    found = {
        "origin": f"bench/peers/study/resamplers.py with imbalanced-learn {imblearn.__version__}, scikit-learn {sklearn.__version__}",
        "cases": cases,
    }
    if sys.argv[2:] == ["write"]:
        with open(path, "w") as f:
            json.dump(found, f, indent=None, separators=(",", ":"))
            f.write("\n")
        return
    with open(path) as f:
        kept = json.load(f)
    if kept["cases"] != cases:
        sys.exit(f"{path}: {kept['origin']} found something else than {found['origin']}")
    print(f"{path}: as {found['origin']} finds it")


main()
