"""scikit-learn's classifiers on tools never seen, cell by cell.

    python bench/peers/unseen/peers.py --tables flank-data/unseen --out docs/figures/unseen/peers.csv
    python bench/peers/unseen/peers.py --reference bench/unseen/testdata/stability.json

Tables and splits are those that `unseen tables` wrote. A cell is one data set,
protocol, split, method, variant and tool that is judged: how many of its windows
were called faulty rightly (tp), missed (fn), called healthy rightly (tn) and
called faulty wrongly (fp), and the AUC of all windows of the split. Cells that
the file has are kept, so a run that was stopped goes on. The second line writes
the weights of columns of a small table, which a Go test compares with
pkg/score.

Variants:

- plain: as people do it. Features are relative to the tool's first windows by
  their ratio; the threshold is the exact optimum of the G-mean on tools left
  out of the training part. One labelled worn tool cannot be left out: then it is
  the optimum on five parts of its windows, drawn at random.
- aided: with Flank's aids. Features that are positive throughout the training
  part are relative by the logarithm of the ratio, others by the difference.
  Columns are screened by how steadily they follow the life of every tool
  (pkg/score; from three tools on): they are scaled by their weight, or, for
  trees, the best 40 are kept, of regressions 10. (Trials on the turning tools
  gave these two numbers, which flatters trees there.)
  Tools without labels take part in scaling and screening, and their first
  windows after the reference are rows of the healthy class. Of six worn tools or
  fewer, rows are put where wear jumps over the limit. The cut is half-way
  between the inverse prior and the optimum of the smoothed G-mean on tools left
  out; with two worn tools or fewer it is the inverse prior's.
- aided-raw: aided without the temperature, where any is chosen.
- aided-wear: aided, learning the root of the wear. What it estimates on
  tools left out is made log odds by a logistic regression of one input, and the
  cut is chosen as above; with two worn tools or fewer it is the limit itself.

Nothing is chosen on the tools that are judged: all of it, from which features are
positive to the number of columns, is decided in the training part.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import sys
import time
import warnings

import numpy
from scipy.optimize import minimize_scalar
from scipy.special import erfc
from scipy.stats import rankdata
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

HEADER = "data,protocol,unit,split,method,variant,tool,tp,fn,tn,fp,auc".split(",")
SEED = 1
TREES = 200

# Name, whether it is a forest or boosted trees, and the method.
METHODS = {
    "logistic regression": (False, lambda: LogisticRegression(max_iter=5000)),
    "random forest": (True, lambda: RandomForestClassifier(TREES, random_state=SEED)),
    "extra trees": (True, lambda: ExtraTreesClassifier(TREES, random_state=SEED)),
    "gradient boosting": (True, lambda: HistGradientBoostingClassifier(random_state=SEED)),
    "MLP (30, 30)": (False, lambda: MLPClassifier((30, 30), max_iter=500, random_state=SEED)),
    "ridge": (False, None),
}
WEAR = {
    "random forest": lambda: RandomForestRegressor(TREES, random_state=SEED, max_features="sqrt"),
    "extra trees": lambda: ExtraTreesRegressor(TREES, random_state=SEED, max_features="sqrt"),
    "gradient boosting": lambda: HistGradientBoostingRegressor(random_state=SEED),
}
PENALTIES = (10, 30, 100, 300, 1000, 3000)  # of ridge
FEW_PENALTY = 100  # where no tool can be left out to choose
COLUMNS = {"aided": 40, "aided-raw": 40, "aided-wear": 10}  # that trees keep
PARTS = 5  # of the windows of one worn tool
LEAST_TOOLS = 3  # for screening
MOST_CROSSING = 6  # worn tools with which rows are put where wear jumps over the limit
STEP, FAR = 0.05, 1.5  # how far apart they are and how far they reach, in limits
SURE = 2e-3  # probabilities are kept within SURE and 1 − SURE
SUREST = numpy.log((1 - SURE) / SURE)


class Table:
    """The rows of a data set, but for those that make references, which are there as
    `ratio`, `log` and `difference` relative to them."""

    def __init__(self, folder, name):
        self.about = json.loads((folder / f"{name}.json").read_text())
        with (folder / f"{name}.csv").open(newline="") as f:
            lines = csv.reader(f)
            self.columns = next(lines)[3:]
            names, y, wear, x = [], [], [], []
            for line in lines:
                names.append(line[0])
                y.append(int(line[1]))
                wear.append(float(line[2] or "nan"))
                x.append([float(v) if v else numpy.nan for v in line[3:]])
        x, y, wear = numpy.array(x), numpy.array(y), numpy.array(wear)
        self.tools = list(dict.fromkeys(names))
        tool = numpy.array([self.tools.index(n) for n in names])
        first = self.about["reference"]
        parts = []
        self.above_zero = numpy.zeros((len(self.tools), x.shape[1]), bool)
        for t in range(len(self.tools)):
            rows = numpy.flatnonzero(tool == t)
            v = x[rows]
            self.above_zero[t] = numpy.all((v > 0) | numpy.isnan(v), axis=0)
            r, rest = numpy.nanmedian(v[:first], axis=0), v[first:]
            parts.append((ratio(rest, r), log_ratio(rest, r), rest - r, rows[first:]))
        self.ratio, self.log, self.difference = (numpy.vstack([p[k] for p in parts]).astype(numpy.float32) for k in range(3))
        keep = numpy.concatenate([p[3] for p in parts])
        self.y, self.wear, self.tool = y[keep], wear[keep], tool[keep]
        self.order = numpy.concatenate([numpy.arange(len(p[3])) for p in parts])
        self.part = numpy.zeros(len(self.y), int)  # of each row, both classes of a tool dealt evenly
        draw = numpy.random.default_rng(SEED)
        for t in range(len(self.tools)):
            for k in (0, 1):
                of = draw.permutation(numpy.flatnonzero((self.tool == t) & (self.y == k)))
                self.part[of] = numpy.arange(len(of)) % PARTS
        self.rho_log, self.rho_difference = (
            numpy.array([correlations(v[self.tool == t]) for t in range(len(self.tools))]) for v in (self.log, self.difference)
        )

    def numbers(self, names):
        return tuple(self.tools.index(n) for n in names)

    def rows(self, tools):
        return numpy.flatnonzero(numpy.isin(self.tool, tools))


def ratio(x, r):
    """x/|r| − sign(r) within ±20; with a reference of zero anything else is at the limit."""
    with numpy.errstate(divide="ignore", invalid="ignore"):
        v = numpy.clip(x / numpy.abs(r) - numpy.sign(r), -20, 20)
    return numpy.where(r == 0, numpy.where(x == 0, 0, numpy.where(numpy.isnan(x), numpy.nan, 20 * numpy.sign(x))), v)


def log_ratio(x, r):
    with numpy.errstate(invalid="ignore"):
        return numpy.clip(numpy.log(numpy.maximum(x, 1e-12) / numpy.maximum(r, 1e-12)), -5, 5)


def with_order(v):
    """Spearman's rank correlation of v, missing values left out, with its order."""
    v = v[~numpy.isnan(v)]
    if len(v) < 3:
        return 0.0
    ranks, at = rankdata(v), numpy.arange(len(v))
    ranks, at = ranks - ranks.mean(), at - at.mean()
    square = (ranks @ ranks) * (at @ at)
    return ranks @ at / numpy.sqrt(square) if square > 0 else 0.0


def correlations(life):
    """with_order of each column of the rows of one tool, in the order of time."""
    return numpy.array([with_order(life[:, j]) for j in range(life.shape[1])])


def stability(rho):
    """The weight of each column: how steadily it follows the lives of all tools, as
    in pkg/score, of their correlations by tool and column."""
    mean = rho.mean(axis=0)
    sd = numpy.sqrt((2 * 0.3**2 + ((rho - mean) ** 2).sum(axis=0)) / (2 + len(rho) - 1))
    return numpy.maximum(0, numpy.abs(mean) - sd) ** 2


def best_threshold(score, y):
    """The middle of the widest interval of thresholds with the best G-mean."""
    order = numpy.argsort(score, kind="stable")
    s, c = score[order], y[order]
    product = numpy.cumsum(c == 0) / (c == 0).sum() * (1 - numpy.cumsum(c == 1) / (c == 1).sum())
    end = numpy.append(s[1:] > s[:-1], True)  # a threshold fits behind the row
    s, product = s[end], product[end]
    above = numpy.append(s[1:], s[-1])
    best, run = (-1.0, s[0], s[0]), None
    for i in numpy.flatnonzero(product >= product.max() - 1e-12):
        run = (run[0], i) if run and run[1] == i - 1 else (i, i)
        low, high = s[run[0]], above[run[1]]
        best = max(best, (high - low, low, high))
    return (best[1] + best[2]) / 2


def smoothed(z, y):
    """The cut of log odds z that maximises the smoothed G-mean, as pkg/classify chooses it: recalls by the normal distribution around each row with
    the bandwidth of Silverman's rule."""
    of = [numpy.sort(z[y == k]) for k in (0, 1)]
    width = []
    for v in of:
        scale = v.std()
        q = numpy.quantile(v, 0.75) - numpy.quantile(v, 0.25)
        if q > 0:
            scale = min(scale, q / 1.34)
        width.append(max(0.9 * scale * len(v) ** -0.2, 1e-9 * max(1, abs(v.mean()))))

    def value(t):
        above = [0.5 * erfc((t[:, None] - v) / (h * numpy.sqrt(2))).mean(axis=1) for v, h in zip(of, width)]
        return (1 - above[0]) * above[1]

    def best(low, high, n):
        t = numpy.linspace(low, high, n + 1)
        f = value(t)
        top = numpy.flatnonzero(f >= f.max() - 1e-12)
        end = top[0]
        while end + 1 in top:
            end += 1
        return (t[top[0]] + t[end]) / 2

    low, high = z.min(), z.max()
    t = best(low, high, 512)
    step = (high - low) / 512
    t = best(max(t - step, low), min(t + step, high), 64)
    return t


def temperature(z, y):
    """What log odds are divided by for the least log loss, as pkg/classify calibrates."""
    sign = numpy.where(y == 1, -1.0, 1.0)

    def loss(t):
        return numpy.logaddexp(0, sign * z / numpy.exp(t)).mean()

    return numpy.exp(minimize_scalar(loss, bounds=numpy.log((0.05, 50)), method="bounded").x)


class Method:
    """One method and variant on one table. Fits are shared between splits: what is
    learnt of some tools does not depend on which others are judged."""

    def __init__(self, table, name, variant):
        self.table, self.name, self.variant = table, name, variant
        self.trees, self.classifier = METHODS[name]
        self.aided = variant != "plain"
        self.raw = variant == "aided-raw"
        self.wear = name == "ridge" or variant == "aided-wear"
        self.scores, self.inputs_of = {}, {}
        self.crossing = False

    def inputs(self, train, unlabelled, screen):
        """The inputs of all rows, as rows of the given tools teach to prepare them, and
        the order of columns, the best first."""
        key = (train, unlabelled, screen)
        if key in self.inputs_of:
            return self.inputs_of[key]
        t = self.table
        seen = t.rows(train + unlabelled)
        if not self.aided:
            z, best = t.ratio.astype(float), None
        else:
            tools = list(train + unlabelled)
            logs = t.above_zero[tools].all(axis=0)
            z = numpy.where(logs, t.log, t.difference).astype(float)
        mean = numpy.nanmean(z[seen], axis=0)
        mean[numpy.isnan(mean)] = 0
        sd = numpy.nanstd(z[seen], axis=0)
        sd[~(sd > 1e-9 * numpy.abs(mean))] = 1
        x = (z - mean) / sd
        x[numpy.isnan(x)] = 0
        if self.aided:
            x = numpy.clip(x, -5, 5)
            weight = numpy.zeros(x.shape[1])
            if screen:
                weight = stability(numpy.where(logs, t.rho_log[tools], t.rho_difference[tools]))
            best = numpy.argsort(-weight, kind="stable")[: max(1, (weight > 0).sum())]
            if not weight.any():
                best = None
            elif not self.trees:
                x = x * (weight * numpy.sqrt(48 / (weight**2).sum()))
        self.inputs_of = {key: (x, best)}  # the next call mostly has the same
        return x, best

    def fit(self, train, split, screen, setting, without=None):
        """What a fit to the tools of train says of every row: log odds, or the root of
        the wear. Without is a part of their rows that is left out, or None."""
        unlabelled = split["unlabelled"] if self.aided else ()
        key = (train, unlabelled, screen, setting, without, self.crossing)
        if key in self.scores:
            return self.scores[key]
        t = self.table
        x, best = self.inputs(train, unlabelled, screen)
        if self.trees and best is not None:
            x = x[:, best[:setting]]
        rows = t.rows(train)
        if without is not None:
            rows = rows[t.part[rows] != without]
        if self.wear:
            rows = rows[~numpy.isnan(t.wear[rows])]
            between, wear = self.between(x, rows)
            model = Ridge(alpha=setting) if self.name == "ridge" else WEAR[self.name]()
            score = model.fit(numpy.vstack([x[rows], between]), numpy.sqrt(numpy.concatenate([t.wear[rows], wear]))).predict(x)
        else:
            between, wear = self.between(x, rows)
            y = t.y[rows]
            if unlabelled:
                healthy = numpy.flatnonzero(numpy.isin(t.tool, unlabelled) & (t.order < split["healthy"]))
                rows, y = numpy.concatenate([rows, healthy]), numpy.concatenate([y, numpy.zeros(len(healthy), int)])
            least = SURE if self.trees else 1e-12  # a forest is never wrong about what it learnt
            y = numpy.concatenate([y, wear >= t.about["limit"]]).astype(int)
            p = numpy.clip(self.classifier().fit(numpy.vstack([x[rows], between]), y).predict_proba(x)[:, 1], least, 1 - least)
            score = numpy.log(p / (1 - p))
        self.scores[key] = score
        return score

    def between(self, x, rows):
        """Rows, and their wear, on the way between two windows of a tool where wear jumps
        over the limit, as pkg/classify puts them."""
        t, limit = self.table, self.table.about["limit"]
        between, wear = [x[:0]], [numpy.zeros(0)]
        for a, b in zip(rows, rows[1:]) if self.crossing else ():
            v, w = t.wear[a] / limit, t.wear[b] / limit
            if t.tool[a] == t.tool[b] and v < 1 <= w and w - v > STEP:
                at = v + STEP * numpy.arange(1, 2 + FAR / STEP)
                at = at[at < min(w, FAR)]
                between.append(x[a] + ((at - v) / (w - v))[:, None] * (x[b] - x[a]))
                wear.append(at * limit)
        return numpy.vstack(between), numpy.concatenate(wear)

    def held(self, train, worn, split, screen, setting):
        """What is said of the rows of train by fits that were made without them: without
        their tools, or, of one worn tool, without a fifth of the rows."""
        t = self.table
        held = numpy.zeros(len(t.y))
        if len(worn) > 1:
            for fold in left_out(train, worn):
                at = t.rows(fold)
                held[at] = self.fit(tuple(k for k in train if k not in fold), split, screen, setting)[at]
            return held
        for part in range(PARTS):
            at = t.part == part
            held[at] = self.fit(train, split, screen, setting, without=part)[at]
        return held

    def setting(self, train, worn, split, screen):
        """How many columns trees keep, None for all; of ridge the penalty with the least
        square error on what was left out."""
        if self.name != "ridge":
            return COLUMNS[self.variant] if self.trees and screen else None
        if self.aided and len(train) == 1:
            return FEW_PENALTY
        rows = self.table.rows(train)
        rows = rows[~numpy.isnan(self.table.wear[rows])]
        root = numpy.sqrt(self.table.wear[rows])
        return min(PENALTIES, key=lambda p: ((self.held(train, worn, split, screen, p)[rows] - root) ** 2).mean())

    def judge(self, split):
        """The score of every row and the cut from which on it is called faulty."""
        t = self.table
        train = split["train"]
        worn = [k for k in train if t.y[t.tool == k].any()]
        screen = self.aided and len(train) + len(split["unlabelled"]) >= LEAST_TOOLS
        self.crossing = self.aided and len(worn) <= MOST_CROSSING
        rows = t.rows(train)
        y = t.y[rows]
        choose = not self.aided or len(worn) > 2
        setting = self.setting(train, worn, split, screen)
        score = self.fit(train, split, screen, setting)
        limit = numpy.sqrt(t.about["limit"])
        if not choose:
            if self.wear:
                return score, limit
            healthy = (t.y[rows] == 0).sum() + sum(min(split["healthy"], (t.tool == k).sum()) for k in split["unlabelled"])
            return score, numpy.log(y.sum() / healthy)
        held = self.held(train, worn, split, screen, setting)[rows]
        if not self.aided:
            return score, best_threshold(held, y)
        if self.wear:
            line = LogisticRegression(C=1e6, max_iter=1000).fit((held - limit)[:, None], y)
            held, score = (line.decision_function((s - limit)[:, None]) for s in (held, score))
        else:
            warmth = 1 if self.raw else temperature(held, y)
            held, score = (numpy.clip(s / warmth, -SUREST, SUREST) for s in (held, score))
        return score, (smoothed(held, y) + numpy.log(y.sum() / (y == 0).sum())) / 2


def left_out(train, worn):
    """Tools that are left out together: each alone of up to eight, else five parts with
    as many worn tools each as can be."""
    if len(train) <= 8:
        return [(k,) for k in train]
    order = sorted(train, key=lambda k: (k not in worn, k))
    return [tuple(order[i::5]) for i in range(5)]


def variants(name, table, splits):
    """The variants of a method; the temperature is chosen from three worn tools on."""
    worn = {k for k in range(len(table.tools)) if table.y[table.tool == k].any()}
    chosen = name != "ridge" and any(len(worn.intersection(s["train"])) > 2 for s in splits)
    return ["plain", "aided"] + (["aided-raw"] if chosen else []) + (["aided-wear"] if name in WEAR else [])


def cells(table, split, score, cut):
    """A line for each tool that is judged."""
    test = table.rows(split["test"])
    y = table.y[test]
    auc = f"{roc_auc_score(y, score[test]):.4f}" if 0 < y.sum() < len(y) else ""
    for k in split["test"]:
        rows = table.tool == k
        y, called = table.y[rows], score[rows] > cut
        counts = [(called & (y == 1)).sum(), (~called & (y == 1)).sum(), (~called & (y == 0)).sum(), (called & (y == 0)).sum()]
        yield [table.tools[k], *map(int, counts), auc]


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
    return {(line[0], line[1], line[3], line[4], line[5]) for line in lines[1:]}


def reference(path):
    """Writes a small table with its weights for the test of pkg/score."""
    draw = numpy.random.default_rng(7)
    lives = []
    for n, sign in ((12, 1), (20, -1), (17, 1), (9, 1)):
        at = numpy.arange(n)
        life = numpy.stack([at + draw.normal(0, 2, n), -(at**2.0), sign * at, numpy.full(n, 3.0), draw.normal(0, 1, n), numpy.round(at / 4)], axis=1)
        life[draw.random(life.shape) < 0.05] = numpy.nan
        lives.append(life.astype(numpy.float32))
    out = {
        "lives": [[[None if numpy.isnan(v) else float(v) for v in row] for row in life] for life in lives],
        "weight": stability(numpy.array([correlations(v) for v in lives])).tolist(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=pathlib.Path, default="flank-data/unseen", help="folder of tables and splits")
    parser.add_argument("--out", type=pathlib.Path, default="docs/figures/unseen/peers.csv", help="file of cells, appended to")
    parser.add_argument("--sets", default="turning,phm2010,uniwear,lmas,drill", help="comma list of data sets")
    parser.add_argument("--protocols", help="comma list; default all")
    parser.add_argument("--methods", help="semicolon list; default all")
    parser.add_argument("--reference", type=pathlib.Path, help="write reference values of the screening to this file, and nothing else")
    args = parser.parse_args()
    if args.reference:
        reference(args.reference)
        return
    warnings.filterwarnings("ignore")
    done = begin(args.out)
    with args.out.open("a", newline="") as f:
        for data in args.sets.split(","):
            table = Table(args.tables, data)
            protocols = list(dict.fromkeys(s["protocol"] for s in table.about["splits"]))
            splits = [
                {**s, "train": table.numbers(s["train"]), "test": table.numbers(s["test"]), "unlabelled": table.numbers(s.get("unlabelled", []))}
                for s in table.about["splits"]
            ]
            for protocol in protocols:
                if args.protocols and protocol not in args.protocols.split(","):
                    continue
                some = [s for s in splits if s["protocol"] == protocol]
                for name in METHODS:
                    if args.methods and name not in args.methods.split(";"):
                        continue
                    method = None
                    for variant in variants(name, table, some):
                        began, before = time.process_time(), method
                        method = Method(table, name, variant)
                        if method.raw:
                            method.scores = before.scores  # the same fits
                        for split in some:
                            key = (data, protocol, split["name"], name, variant)
                            if key in done:
                                continue
                            about = [data, protocol, split["unit"], split["name"], name, variant]
                            lines = io.StringIO()
                            csv.writer(lines, lineterminator="\n").writerows([*about, *line] for line in cells(table, split, *method.judge(split)))
                            f.write(lines.getvalue())  # all tools of a split, or none
                            f.flush()
                        print(f"{data} {protocol} {name}, {variant}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
