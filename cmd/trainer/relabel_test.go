package main

import (
	"os"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/model"
)

// A model whose labels came later is another file, which names its parent, has a card, and is published as any other; its parent stays.
func TestRelabel(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", strings.Replace(unscored, "epochs: 20", "epochs: 200", 1), "wear.csv", "tool,state\nT1,worn\n")
	if out, log, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model m.flank"); err != nil {
		t.Fatalf("%v\n%s%s", err, out, log)
	}
	before, err := os.ReadFile(dir.path("m.flank"))
	if err != nil {
		t.Fatal(err)
	}
	parent, err := model.Load(dir.path("m.flank"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, path, says string }{
		{"relabel --quiet --model m.flank --data tools.csv", "m.relabelled.flank", "nothing speaks for a whole fit"},
		{"relabel --quiet --model m.flank --wear wear.csv --out other.flank", "other.flank", "a whole fit would be better: "},
	} {
		out, log, err := dir.trainer(t, c.args)
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", c.args, err, out, log)
		}
		m, err := model.Load(dir.path(c.path))
		if err != nil {
			t.Fatal(err)
		}
		h := card.HeadlineOf(m)
		if m.Provenance.Parent != parent.ID() || h.Relabelled == nil || h.Verdict == nil || !strings.Contains(out, c.says) || !strings.Contains(out, "("+m.ID()+", of "+parent.ID()+")") {
			t.Errorf("%s: parent %s, %s", c.args, m.Provenance.Parent, out)
		}
		base := strings.TrimSuffix(c.path, ".flank") + ".report"
		if page, err := os.ReadFile(dir.path(base + ".html")); err != nil || !strings.Contains(string(page), "What later labels changed") {
			t.Errorf("%s: card: %v", c.args, err)
		}
		if text, err := os.ReadFile(dir.path(base + ".json")); err != nil || !strings.Contains(string(text), `"relabelled": {`) {
			t.Errorf("%s: report: %v", c.args, err)
		}
		if out, _, err := dir.trainer(t, "inspect "+c.path); err != nil || !strings.Contains(out, "parent      "+parent.ID()) {
			t.Errorf("inspect: %v, %s", err, out)
		}
	}
	if after, err := os.ReadFile(dir.path("m.flank")); err != nil || string(after) != string(before) {
		t.Errorf("the parent changed: %v", err)
	}
	for args, says := range map[string]string{
		"--model m.flank":                                          "no labels: name a wear file with --wear",
		"--model m.flank --labels floor":                           "name the broker with --kafka",
		"--model m.flank --wear wear.csv --out m.flank":            "it is the model that is relabelled",
		"--model m.flank --wear wear.csv --out nowhere/m.flank":    "no folder nowhere",
		"--model none.flank --wear wear.csv":                       "none.flank",
		"--model m.flank --wear wear.csv --data tools.csv --table": "",
	} {
		if _, _, err := dir.trainer(t, "relabel --quiet "+args); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
