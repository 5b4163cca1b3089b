#!/usr/bin/env python3
"""Writes the figures of docs/figures/relabel.md.

    scripts/relabel-turning.py bin/trainer turning_wear_dev.csv examples/turning/layout.yaml

Each tool is held out of everything. A model is fitted to the others with all labels, and to
the others with labels that are wrong: of three tools they are missing, or all wear is 30 % too
high. `trainer relabel` then brings the right labels. All models judge the tool held out.
"""
import csv, json, math, os, subprocess, sys, tempfile, time

trainer, data, layout = (os.path.abspath(p) for p in sys.argv[1:])
rows = list(csv.reader(open(data)))
head, rows = rows[0], rows[1:]
TOOL, WEAR, LIMIT = head.index("tool"), head.index("Vb"), 300
tools = list(dict.fromkeys(r[TOOL] for r in rows))
worn = {r[TOOL] for r in rows if float(r[WEAR]) >= LIMIT}
confusion, windows, seconds = {}, {}, {}


def write(name, keep, label):
    with open(name, "w") as f:
        w = csv.writer(f)
        w.writerow(head)
        for r in rows:
            if r[TOOL] in keep:
                w.writerow(label(r[TOOL], v) if j == WEAR else v for j, v in enumerate(r))


def run(kind, *args):
    began = time.time()
    out = subprocess.run([trainer, *args, "--quiet"], check=True, capture_output=True, text=True).stdout
    seconds.setdefault(kind, []).append(time.time() - began)
    return out


def judge(name, model):
    e = json.loads(run("evaluate", "evaluate", "--format", "json", "--model", model, "--data", "test.csv"))
    c = confusion.setdefault(name, [[0, 0], [0, 0]])
    for i, row in enumerate(e["pooled"]["confusion"]):
        for j, n in enumerate(row):
            c[i][j] += n
    w = windows.setdefault(name, [0, 0])
    w[0] += e["pooled"]["rows"]
    w[1] += e["counting_unknown"]["pooled"]["rows"]


os.chdir(tempfile.mkdtemp())
with open("train.yaml", "w") as f:
    f.write(f'layout: {layout}\nevaluate: {{by_tool: "off", random_split: false}}\n')
for tool in tools:
    others = [t for t in tools if t != tool]
    late = set([t for t in others if t in worn][1::2][:2] + [t for t in others if t not in worn][1:2])
    write("test.csv", [tool], lambda t, v: v)
    write("right.csv", others, lambda t, v: v)
    write("late.csv", others, lambda t, v: "" if t in late else v)
    write("high.csv", others, lambda t, v: repr(1.3 * float(v)))
    for kind in ("right", "late", "high"):
        run("fit", "fit", "--config", "train.yaml", "--data", kind + ".csv", "--model", kind + ".flank")
        judge(kind, kind + ".flank")
        if kind != "right":
            run("relabel", "relabel", "--model", kind + ".flank", "--data", "right.csv", "--out", "new.flank")
            judge(kind + ", relabelled", "new.flank")
            r = json.load(open("new.report.json"))["relabelled"]
            print(f"{tool} {kind}: a whole fit would be better: {len(r.get('fit', []))} reasons", flush=True)
for name, ((tn, fp), (fn, tp)) in confusion.items():
    known, of = windows[name]
    print(f"{name}: G-mean {math.sqrt(tp / (tp + fn) * tn / (tn + fp)):.3f}, recall {tp / (tp + fn):.3f}, specificity {tn / (tn + fp):.3f}, known {known / of:.3f}")
for kind, s in seconds.items():
    print(f"{kind}: {sum(s) / len(s):.2f} s")
