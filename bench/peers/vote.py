"""Reference values of NumPy and scikit-learn for the guard of pkg/classify/vote.

    python bench/peers/vote.py pkg/classify/vote/testdata/scikit-learn.json         # compare
    python bench/peers/vote.py pkg/classify/vote/testdata/scikit-learn.json --write

The file holds a table, made from a fixed seed, and what a guard of it is: the sensors
that are kept and merged and, from classes alone and from wear, the coefficients of each
expert, its log odds of each row, the votes and their cut. A test of pkg/classify/vote holds the
Go code to it. Comparing computes the values again.
"""

import json
import sys

import numpy
import sklearn
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

KINDS = ["RMS", "MEAN", "MAX", "KURT"]
# Name, unit, change of the logarithm of the level over a life, its noise, weights of columns.
SENSORS = [
    ("A", "N", 0.7, 0.10, [0.9, 0.8, 0.6, 0.1]),
    ("B", "N", 0.2, 0.06, [0.5, 0.5, 0.4, 0.0]),
    ("C", "N", 0.5, 0.12, [0.7, 0.6, 0.0, 0.0]),
    ("D", "%", 0.3, 0.10, [0.4, 0.4, 0.3, 0.0]),
    ("E", "A", 0.3, 0.10, [0.3, 0.3, 0.3, 0.0]),  # changes as D does
    ("F", "V", 0.3, 0.30, [0.2, 0.1, 0.1, 0.2]),
    ("G", "N", 0.0, 0.10, [0.05, 0.0, 0.0, 0.0]),  # less than 1 % of the squares of weights
]
TOOLS = [("w0", 40), ("h0", 25), ("w1", 35), ("w2", 45), ("h1", 30), ("w3", 38)]
CLIP, INPUT, SURE = 6, 5, 2e-3
LEVELS = [2 / 3, 5 / 6, 7 / 6, 4 / 3]  # of wear, besides the limit
FREE = 1e4  # a column of this size has a coefficient that is hardly penalised


def table():
    """Rows relative to their tool's beginning, wear in limits and tools."""
    rng = numpy.random.default_rng(7)
    rows, worn, tools = [], [], []
    for tool, n in TOOLS:
        wear = numpy.linspace(0, 1.3 if tool[0] == "w" else 0.8, n)
        out = []
        noise = {name: rng.normal(size=n) for name, *_ in SENSORS}
        noise["E"] = noise["D"]
        for name, _, change, sd, _ in SENSORS:
            own = 1 + 0.25 * rng.normal()
            level = change * own * wear + sd * noise[name]
            out += [level, level + 0.01 * rng.normal(size=n), level + 0.05 * rng.normal(size=n), rng.normal(size=n) + (0.5 if name == "A" else 0) * wear]
        rows.append(numpy.array(out).T)
        worn += list(wear)
        tools += [tool] * n
    x = numpy.round(numpy.vstack(rows), 3)
    x[5, 0] = x[70, 4] = x[71, 4] = numpy.nan
    return x, numpy.round(worn, 6), numpy.array(tools)


def columns(name):
    k = [s[0] for s in SENSORS].index(name)
    return list(range(4 * k, 4 * k + 4))


def groups_of(x, tools, w):
    """Kept sensors by share, groups of them that change alike, and pairs."""
    share = {s[0]: (w[columns(s[0])] ** 2).sum() / (w**2).sum() for s in SENSORS}
    kept = sorted((n for n in share if share[n] >= 0.01), key=lambda n: -share[n])
    change = {}
    for n in kept:
        d = numpy.concatenate([numpy.diff(x[tools == t, columns(n)[0]]) for t, _ in TOOLS])
        change[n] = d
    groups = []
    for n in kept:
        for g in groups:
            ok = ~numpy.isnan(change[n]) & ~numpy.isnan(change[g[0]])
            if numpy.corrcoef(change[n][ok], change[g[0]][ok])[0, 1] >= 0.95:
                g.append(n)
                break
        else:
            groups.append([n])
    unit = {s[0]: s[1] for s in SENSORS}
    least = {}
    for g in groups:
        n, ends = g[0], []
        for t, _ in TOOLS:
            if t[0] != "w":
                continue
            level = x[tools == t][:, columns(n)[:3]]
            tenth = -(-len(level) // 10)
            ends.append(abs(numpy.nanmean(level[-tenth:]) - numpy.nanmean(level[:tenth])))
        c = numpy.mean(ends)
        if unit[n] not in least or c < least[unit[n]][0]:
            least[unit[n]] = (c, n)
    pairs = [(g[0], least[unit[g[0]]][1]) for g in groups if least[unit[g[0]]][1] != g[0]]
    return kept, groups, pairs


def inputs(x, w, groups, pairs):
    """For each expert its values and their weights, without those of weight 0."""
    out = []
    for g in groups:
        at = [j for n in g for j in columns(n) if w[j] > 0]
        out.append((x[:, at], w[at]))
    for a, b in pairs:
        at = [(i, j) for i, j in zip(columns(a)[:3], columns(b)[:3]) if w[i] * w[j] > 0]
        out.append((numpy.array([x[:, i] - x[:, j] for i, j in at]).T, numpy.array([(w[i] * w[j]) ** 0.5 for i, j in at])))
    return out


def fit(value, weight, square, sides, train):
    """Bias and coefficients of the clipped standardised values, and the log odds of all rows, from sides of one level or more."""
    m, s = numpy.nanmean(value[train], 0), numpy.nanstd(value[train], 0)
    scale = weight * (48 / square) ** 0.5
    z = numpy.nan_to_num(numpy.clip((value - m) / s, -INPUT, INPUT) * scale)
    sides = [y for y in sides if 0 < y[train].sum() < train.sum()]
    stacked = numpy.vstack([numpy.hstack([z[train], FREE * (numpy.arange(len(sides)) == k) * numpy.ones((train.sum(), 1))]) for k in range(len(sides))])
    l = LogisticRegression(C=0.1 / len(sides), tol=1e-12, solver="newton-cholesky", max_iter=1000, fit_intercept=False)
    l.fit(stacked, numpy.concatenate([y[train] for y in sides]))
    slope, bias = l.coef_[0][: z.shape[1]], l.coef_[0][z.shape[1]] * FREE
    odds = numpy.clip(z @ slope + bias, -CLIP, CLIP)
    odds[numpy.isnan(value).all(1)] = numpy.nan
    return bias, slope * scale, odds


def smoothed_cut(v, y):
    """Half-way from the optimum of the smoothed G-mean to the inverse prior."""
    h = []
    for k in (0, 1):
        z = v[y == k]
        q = numpy.quantile(z, [0.25, 0.75])
        h.append(0.9 * min(z.std(), (q[1] - q[0]) / 1.34) * len(z) ** -0.2)
    t = numpy.linspace(v.min(), v.max(), 40001)
    g = norm.cdf((t[:, None] - v[y == 0]) / h[0]).mean(1) * norm.cdf((v[y == 1] - t[:, None]) / h[1]).mean(1)
    return (t[g.argmax()] + numpy.log(y.sum() / (y == 0).sum())) / 2


def guard(experts, square, sides, tools):
    """What a guard computes whose experts learn from sides, the class first."""
    y = sides[0]
    every = numpy.ones(len(y), bool)
    fits = [fit(v, k, square, sides, every) for v, k in experts]
    worn, healthy = [t for t, _ in TOOLS if t[0] == "w"], [t for t, _ in TOOLS if t[0] == "h"]
    votes, classes, mean = [], [], numpy.zeros(len(y))
    for deal in range(3):
        for k, t in enumerate(worn):
            held = [t] + [u for n, u in enumerate(healthy) if (n + deal) % len(worn) == k]
            test = numpy.isin(tools, held)
            odds = [fit(v, s, square, sides, ~test)[2] for v, s in experts]
            votes.append(numpy.nanmedian(odds, 0)[test])
            mean[test] += votes[-1] / 3
            classes.append(y[test])
    return {
        "bias": [round(float(f[0]), 9) for f in fits],
        "weights": [[round(float(v), 9) for v in f[1]] for f in fits],
        "odds": [nullable(f[2]) for f in fits],
        "votes": nullable(numpy.nanmedian([f[2] for f in fits], 0)),
        "held": nullable(mean),
        "cut": round(float(smoothed_cut(numpy.concatenate(votes), numpy.concatenate(classes))), 6),
    }


def nullable(a):
    return [None if numpy.isnan(v) else round(float(v), 9) for v in a]


def reference():
    x, wear, tools = table()
    w = numpy.array([v for s in SENSORS for v in s[4]])
    square = (w**2).sum()
    kept, groups, pairs = groups_of(x, tools, w)
    experts = inputs(x, w, groups, pairs)
    sides = [(wear >= level).astype(int) for level in [1, *LEVELS]]
    return {
        "origin": f"bench/peers/vote.py, scikit-learn {sklearn.__version__}, numpy {numpy.__version__}",
        "rows": nullable(x.ravel()),
        "wear": nullable(wear),
        "tools": tools.tolist(),
        "sensors": [{"name": n, "unit": u, "weights": k} for n, u, _, _, k in SENSORS],
        "kept": kept,
        "groups": groups,
        "pairs": pairs,
        "by_class": guard(experts, square, sides[:1], tools),
        "by_wear": guard(experts, square, sides, tools),
    }


def near(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(near(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, float):
        return isinstance(b, (int, float)) and abs(a - b) < 1e-5
    return a == b


if __name__ == "__main__":
    found = reference()
    if "--write" in sys.argv:
        with open(sys.argv[1], "w") as f:
            json.dump(found, f, separators=(",", ":"))
            f.write("\n")
    else:
        with open(sys.argv[1]) as f:
            kept = json.load(f)
        kept["origin"] = found["origin"]
        if not near(kept, json.loads(json.dumps(found))):
            sys.exit(f"{sys.argv[1]} has other values than those of {found['origin']}")
