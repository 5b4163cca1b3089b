"""Reference values of SciPy for bench/study/stat.

    python bench/peers/study/stat.py bench/study/stat/testdata/scipy.json         # compare
    python bench/peers/study/stat.py bench/study/stat/testdata/scipy.json --write

The file holds scores, made from a fixed seed, and what SciPy says of them; a
test holds the Go code to it. Comparing computes the values anew and fails where
they are off by more than a relative 1e-9.
"""

import json
import math
import sys

import numpy
import scipy
from scipy import stats


def pairs(name, x, y):
    d = x - y
    d = d[d != 0]
    ties = len(set(abs(d))) < len(d)
    how = {"method": "asymptotic" if ties or len(d) > 50 else "exact", "correction": False}
    greater = stats.wilcoxon(d, alternative="greater", **how)
    minus = len(d) * (len(d) + 1) / 2 - greater.statistic
    u = stats.mannwhitneyu(x, y).statistic
    return {
        "name": name,
        "x": x.tolist(),
        "y": y.tolist(),
        "pairs": len(d),
        "exact": how["method"] == "exact",
        "plus": greater.statistic,
        "two_sided": stats.wilcoxon(d, **how).pvalue,
        "greater": greater.pvalue,
        "biserial": (greater.statistic - minus) / (greater.statistic + minus),
        "spearman": stats.spearmanr(x, y).statistic,
        "cliff": 2 * u / (len(x) * len(y)) - 1,
    }


def table(name, scores):
    n, k = scores.shape
    chi = stats.friedmanchisquare(*scores.T)
    f = (n - 1) * chi.statistic / (n * (k - 1) - chi.statistic)
    return {
        "name": name,
        "scores": scores.tolist(),
        "ranks": stats.rankdata(-scores, axis=1).mean(axis=0).tolist(),
        "chi_square": chi.statistic,
        "p": chi.pvalue,
        "f": f,
        "f_p": stats.f.sf(f, k - 1, (k - 1) * (n - 1)),
        "critical_difference": stats.studentized_range.ppf(0.95, k, math.inf) * math.sqrt(k * (k + 1) / (12 * n)),
    }


def values():
    rng = numpy.random.default_rng(1804)
    x = rng.normal(size=80)
    shifted = x - rng.normal(0.3, 1, size=80)
    scores = rng.uniform(size=(58, 7)) + numpy.linspace(0, 0.5, 7)
    return {
        "pairs": [
            pairs("12 pairs", x[:12], shifted[:12]),
            pairs("50 pairs, the most that are counted", x[:50], shifted[:50]),
            pairs("51 pairs, by the normal law", x[:51], shifted[:51]),
            pairs("ties and zeros", numpy.round(2 * x[:40]) / 2, numpy.round(2 * shifted[:40]) / 2),
            pairs("far apart", x, x - numpy.linspace(1, 2, 80)),
        ],
        "tables": [
            table("58 rows of 7", scores),
            table("10 rows of 32", rng.uniform(size=(10, 32))),
            table("many ties", numpy.round(3 * scores[:20, :4])),
        ],
    }


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
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{where}/{i}")
    elif isinstance(a, str) or isinstance(b, str):
        if a != b:
            yield f"{where}: {a} and {b}"
    elif not math.isclose(a, b, rel_tol=1e-9):
        yield f"{where}: {a} and {b}"


def main():
    path = sys.argv[1]
    origin = f"bench/peers/study/stat.py, scipy {scipy.__version__}, numpy {numpy.__version__}"
    now = {"origin": origin, **json.loads(json.dumps(values(), default=float))}
    if sys.argv[2:] == ["--write"]:
        with open(path, "w") as f:
            json.dump(now, f)
            f.write("\n")
        return
    with open(path) as f:
        kept = json.load(f)
    found = [line for key in ("pairs", "tables") for line in differences(now[key], kept[key], key)]
    for line in found:
        print(line, file=sys.stderr)
    print(f"{path} ({kept['origin']}): {len(found)} differences to {origin}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
