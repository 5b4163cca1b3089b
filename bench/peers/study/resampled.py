"""Rows that Flank's resamplers make up, beside those of imbalanced-learn.

    resampled.py FOLDER    (what `go test -C bench ./imbalance -peers FOLDER` wrote)

Both resample the same rows in as many trials. Fails if the mean number of rows
made up differs by more than four standard errors, or the law of a column, or of
the distance from the mean of the smaller class, by the test of Kolmogorov and
Smirnov (p < 1e-3). All seeds are fixed: it fails always or never.
"""

import json
import pathlib
import sys
import warnings

import numpy
from imblearn.over_sampling import ADASYN, SMOTE, SVMSMOTE, BorderlineSMOTE
from scipy import stats


def theirs(name, seed):
    return {
        "smote-dbn": SMOTE(random_state=seed),
        "adasyn-dbn": ADASYN(random_state=seed),
        "smote-borderline1-dbn": BorderlineSMOTE(random_state=seed),
        "smote-borderline2-dbn": BorderlineSMOTE(kind="borderline-2", random_state=seed),
        "smote-svm-dbn": SVMSMOTE(random_state=seed),
    }[name]


def main(folder):
    warnings.filterwarnings("ignore")
    failed = False
    for problem in json.loads((pathlib.Path(folder) / "resampled.json").read_text()):
        columns, y = problem["Columns"], numpy.array(problem["Y"])
        x = numpy.array(problem["X"]).reshape(-1, columns)
        center = x[y == 1].mean(axis=0)
        for name, counts in problem["Rows"].items():
            ours = numpy.array(problem["Values"][name]).reshape(-1, columns)
            made = [theirs(name, seed).fit_resample(x, y)[0][len(x) :] for seed in range(problem["Trials"])]
            rows = [len(m) for m in made]
            made = numpy.concatenate(made)
            spread = numpy.sqrt((numpy.var(rows) + numpy.var(counts)) / len(rows))
            gap = abs(numpy.mean(rows) - numpy.mean(counts))
            laws = [(ours[:, j], made[:, j]) for j in range(columns)]
            laws.append((numpy.linalg.norm(ours - center, axis=1), numpy.linalg.norm(made - center, axis=1)))
            p = min(stats.ks_2samp(a, b).pvalue for a, b in laws)
            bad = gap > 4 * spread + 1e-9 or p < 1e-3
            failed |= bad
            print(f"{len(x):4d} rows  {name:22s} made up {numpy.mean(counts):6.2f}, imbalanced-learn {numpy.mean(rows):6.2f}  least p {p:.3f}" + ("  FAILED" if bad else ""))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(sys.argv[1])
