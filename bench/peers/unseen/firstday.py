"""One-class methods of scikit-learn on the first day: how new the windows of a tool are to what healthy lives taught.

    python bench/peers/unseen/firstday.py --tables flank-data/unseen

Tables are those that `unseen tables` wrote, splits those of `firstday splits` in the same folder. For each split a line of
firstday-peers.jsonl there has, by method, a score of each window after its tool's reference, greater for a newer one. Only windows
below the limit are learnt from. The scores of a life that taught are by a fit to the other ones, so that limits are not taught by
windows that were learnt by heart; a life that taught alone is scored by itself.

Features are relative to the tool's first windows as Flank's, standardised and clipped to ±5. "Screened" are multiplied by Flank's
weights of columns that follow the lives. What a support vector machine says is minus the logarithm of its kernel sum over the
boundary's: far from all training windows the sum itself says 0 of all.
"""

import argparse
import json
import pathlib

import numpy
from peers import SEED, Table, correlations, stability
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM


def support(x, rows):
    m = OneClassSVM(nu=0.05).fit(x[rows])
    return -numpy.log(numpy.maximum(m.score_samples(x) / m.offset_[0], 1e-300))


def forest(x, rows):
    return -IsolationForest(random_state=SEED).fit(x[rows]).score_samples(x)


METHODS = {"one-class SVM": support, "isolation forest": forest}


class Peers:
    def __init__(self, table):
        self.t, self.known = table, {}
        self.healthy = [table.rows([k])[table.y[table.rows([k])] == 0] for k in range(len(table.tools))]
        self.rho = [numpy.array([correlations(v[rows]) for rows in self.healthy]) for v in (table.log, table.difference)]

    def inputs(self, taught, screened):
        t, seen = self.t, numpy.concatenate([self.healthy[k] for k in taught])
        logs = t.above_zero[list(taught)].all(axis=0)
        z = numpy.where(logs, t.log, t.difference).astype(float)
        mean, sd = numpy.nanmean(z[seen], axis=0), numpy.nanstd(z[seen], axis=0)
        sd[~(sd > 1e-9 * numpy.abs(mean))] = numpy.inf
        x = numpy.clip(numpy.nan_to_num((z - mean) / sd), -5, 5)
        if screened:
            w = stability(numpy.where(logs, self.rho[0][list(taught)], self.rho[1][list(taught)]))
            x = x[:, w > 0] * w[w > 0] if w.any() else x
        return x, seen

    def score(self, taught, method, screened):
        key = (taught, method, screened)
        if key not in self.known:
            x, seen = self.inputs(taught, screened)
            self.known[key] = METHODS[method](x, seen)
        return self.known[key]

    def split(self, taught, judged):
        out = {}
        for method in METHODS:
            for screened in (False, True):
                scores = {self.t.tools[k]: self.score(taught, method, screened)[self.t.rows([k])] for k in judged}
                for k in taught:
                    rest = tuple(o for o in taught if o != k) or taught
                    scores[self.t.tools[k]] = self.score(rest, method, screened)[self.t.rows([k])]
                out[method + (", screened" if screened else "")] = {tool: [float(f"{v:.6g}") for v in s] for tool, s in scores.items()}
        return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=pathlib.Path, default="flank-data/unseen")
    folder = parser.parse_args().tables
    with (folder / "firstday-peers.jsonl").open("w") as out, numpy.errstate(all="ignore"):
        for name, splits in json.loads((folder / "firstday.json").read_text()).items():
            peers = Peers(Table(folder, name))
            for s in splits:
                scores = peers.split(peers.t.numbers(s["taught"]), peers.t.numbers(s["judged"]))
                out.write(json.dumps({"data": name, "taught": s["taught"], "scores": scores}) + "\n")
            print(f"{name}: {len(splits)} splits")


if __name__ == "__main__":
    main()
