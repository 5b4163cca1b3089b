package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/bench/keel"
	"github.com/flank-tcm/flank/pkg/classify"
)

// write makes a file in dir.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// turning is a recording of three tools whose second feature triples with wear,
// and whose first rows hold an outlier.
func turning(t *testing.T) *recording {
	var b strings.Builder
	b.WriteString("a,b,tool,Vb\n")
	for tool := 1; tool <= 3; tool++ {
		for i := range 40 {
			vb, x := 10*i, float64(tool)
			if vb >= faultyVB {
				x *= 3
			}
			if i == 2 {
				x = 1000
			}
			empty := fmt.Sprint(i)
			if i%7 == 0 {
				empty = ""
			}
			fmt.Fprintf(&b, "%s,%g,%d,%d\n", empty, x, tool, vb)
		}
	}
	rec, err := readRecording(write(t, t.TempDir(), "turning.csv", b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestRelative(t *testing.T) {
	rec := turning(t)
	for _, tc := range []struct {
		ref           reference
		healthy, worn float64 // second feature of the first tool
	}{
		{medianRatio, 0, 2}, {medianDifference, 0, 2}, {noReference, 1, 3},
		{meanRatio, 1/100.9 - 1, 3/100.9 - 1}, // of nine times 1 and once 1000
	} {
		r := rec.relative(tc.ref)
		if r.x.Rows != 90 || r.groups[0] != "1" || r.groups[89] != "3" {
			t.Fatalf("%s: %d rows from %s to %s", tc.ref.name, r.x.Rows, r.groups[0], r.groups[89])
		}
		for i := range 30 {
			want := tc.healthy
			if r.y[i] == 1 {
				want = tc.worn
			}
			if got := float64(r.x.Row(i)[1]); math.Abs(got-want) > 1e-6 || (r.y[i] == 1) != (i >= 20) {
				t.Errorf("%s: row %d of class %d: %v, want %v", tc.ref.name, i, r.y[i], got, want)
			}
		}
	}
}

func TestFeaturesAreWhatPeersRead(t *testing.T) {
	rec := turning(t)
	path := filepath.Join(t.TempDir(), "features.csv")
	if err := rec.relative(medianRatio).writeCSV(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) != 91 || strings.Join(lines[0], " ") != "tool faulty a b" {
		t.Fatalf("%d lines from %v: %v", len(lines), lines[0], err)
	}
	if got := strings.Join(lines[21], " "); !strings.HasPrefix(got, "1 1 ") || !strings.HasSuffix(got, " 2") {
		t.Errorf("line 21 is %q", got)
	}
}

// keelDir holds a set that everything solves.
func keelDir(t *testing.T) string {
	dir := t.TempDir()
	header := "@relation x\n@attribute a real\n@attribute b {M, F, I}\n@attribute c {positive, negative}\n@data\n"
	peers := "dataset,method,fold,gmean\n"
	var parts [keel.Folds]string
	for f := range parts {
		for i := range 12 {
			class := "negative"
			if i%4 == 0 {
				class = "positive"
			}
			parts[f] += fmt.Sprintf("%d.%d, %s, %s\n", i%4, f, string("MFI"[i%3]), class)
		}
		peers += fmt.Sprintf("pima,rf-tuned,%d,0.5\n", f+1)
	}
	for f, test := range parts {
		train := strings.Join(parts[:f], "") + strings.Join(parts[f+1:], "")
		write(t, dir, fmt.Sprintf("pima/pima-5-%dtst.dat", f+1), header+test)
		write(t, dir, fmt.Sprintf("pima/pima-5-%dtra.dat", f+1), header+train)
	}
	write(t, dir, "peers.csv", peers)
	return dir
}

// The report of a problem that every arm solves says so.
func TestReport(t *testing.T) {
	if testing.Short() {
		t.Skip("trains some dozens of networks")
	}
	old, oldSets := arms, keelSets
	defer func() { arms, keelSets = old, oldSets }()
	keelSets = []string{"pima"}
	arms = nil
	for _, a := range old {
		change := a.change
		a.change = func(s *classify.Settings) {
			if change != nil {
				change(s)
			}
			s.Network.Hidden = []int{4}
			s.Network.Pretrain.Epochs, s.Network.FineTune.Epochs = 2, 30
			s.Network.FineTune.Rate = 0.03
		}
		arms = append(arms, a)
	}
	peers := write(t, t.TempDir(), "peers.json", `{"versions":{"scikit-learn":"1.9"},"methods":[
		{"name":"coin","gmean":[0.5],"recall":[0.5],"specificity":[0.5],"auc":[0.5],"plain_gmean":[0.5]}]}`)
	r, err := measure(t.Context(), turning(t), keelDir(t), peers, 2, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	text := r.markdown()
	for _, want := range []string{
		"3 tools, one row of 2 features", "90 windows, 30 of them faulty", "| **recommended: all defaults but the weights** | 1.000 | 1.000–1.000 | 1.000 |",
		"**held**.\n- Goal: ahead of every peer. The best is coin with 0.5000: **held**", "| pima |", "| coin | 0.500 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}
