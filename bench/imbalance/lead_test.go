package imbalance

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/score"
)

// grouped returns a cell of the decisions on each of its groups.
func grouped(method string, trial, fold int, groups ...score.Confusion) Cell {
	c := Cell{Key: Key{drillTools, method, trial, fold}, Groups: groups}
	for _, m := range groups {
		c.TP, c.FN, c.FP, c.TN = c.TP+m[1][1], c.FN+m[1][0], c.FP+m[0][1], c.TN+m[0][0]
	}
	c.GMean = math.Sqrt(float64(c.TP) / float64(c.TP+c.FN) * float64(c.TN) / float64(c.FP+c.TN))
	return c
}

// Of B bad tools among five draws, the G-mean is √(1 − B/5). One in five being bad,
// P(B ≥ 3) = 0.058 and P(B ≥ 4) = 0.0067, so the 97.5 % quantile of B is 3, and the 2.5 % quantile is 0.
func TestLeadsAgainstBinomial(t *testing.T) {
	good, bad := score.Confusion{{1, 0}, {0, 1}}, score.Confusion{{0, 1}, {0, 1}}
	one := []Cell{grouped("one", 1, 1, good, bad, good, good, good)}
	none := []Cell{grouped("none", 1, 1, good, good, good, good, good)}
	got := leads([][2][]Cell{{one, none}, {one, one}})
	if l := got[0]; math.Abs(l.ahead-(math.Sqrt(0.8)-1)) > 1e-12 || math.Abs(l.over.Low-(math.Sqrt(0.4)-1)) > 1e-12 || l.over.High != 0 {
		t.Errorf("one bad tool: %v, want %v [%v, 0]", l, math.Sqrt(0.8)-1, math.Sqrt(0.4)-1)
	}
	if got[1] != (lead{}) {
		t.Errorf("a method is ahead of itself by %v", got[1])
	}
}

// All 5⁵ draws of five tools in two folds, of two trials, are as likely. Each end of the interval
// is at its quantile of them. The middle is the difference of the means of cells.
func TestLeadsAgainstAllDraws(t *testing.T) {
	const tools = 5
	fold, place := [tools]int{1, 1, 2, 2, 2}, [tools]int{0, 1, 0, 1, 2}
	counts := func(tp, fn, fp, tn int) score.Confusion { return score.Confusion{{tn, fp}, {fn, tp}} }
	a := []Cell{
		grouped("a", 1, 1, counts(8, 2, 10, 90), counts(3, 7, 5, 45)), grouped("a", 1, 2, counts(5, 5, 2, 98), counts(9, 1, 60, 40), counts(6, 4, 20, 80)),
		grouped("a", 2, 1, counts(7, 3, 12, 88), counts(4, 6, 2, 48)), grouped("a", 2, 2, counts(4, 6, 1, 99), counts(9, 1, 70, 30), counts(7, 3, 25, 75)),
	}
	b := []Cell{
		grouped("b", 1, 1, counts(6, 4, 30, 70), counts(5, 5, 5, 45)), grouped("b", 1, 2, counts(7, 3, 20, 80), counts(8, 2, 20, 80), counts(2, 8, 1, 99)),
		grouped("b", 2, 1, counts(9, 1, 40, 60), counts(6, 4, 9, 41)), grouped("b", 2, 2, counts(6, 4, 20, 80), counts(7, 3, 10, 90), counts(3, 7, 1, 99)),
	}
	gmean := func(cells []Cell, times [tools]float64) float64 {
		var sum, n float64
		for _, c := range cells {
			var right, all [2]float64
			for i := range tools {
				if fold[i] == c.Fold {
					for class, row := range c.Groups[place[i]] {
						right[class] += times[i] * float64(row[class])
						all[class] += times[i] * float64(row[0]+row[1])
					}
				}
			}
			if all[0] > 0 {
				sum, n = sum+math.Sqrt(right[0]/all[0]*right[1]/all[1]), n+1
			}
		}
		return sum / n
	}
	var every []float64
	for draw := range 5 * 5 * 5 * 5 * 5 {
		var times [tools]float64
		for range tools {
			times[draw%5]++
			draw /= 5
		}
		every = append(every, gmean(a, times)-gmean(b, times))
	}
	l := leads([][2][]Cell{{a, b}})[0]
	var means float64
	for i := range a {
		means += (a[i].GMean - b[i].GMean) / 4
	}
	if math.Abs(l.ahead-means) > 1e-12 {
		t.Errorf("%v ahead, want %v", l.ahead, means)
	}
	slices.Sort(every)
	for end, want := range []float64{0.025, 0.975} {
		i, _ := slices.BinarySearch(every, []float64{l.over.Low, l.over.High}[end]-1e-9)
		j, _ := slices.BinarySearch(every, []float64{l.over.Low, l.over.High}[end]+1e-9)
		if below, upTo := float64(i)/float64(len(every)), float64(j)/float64(len(every)); below > want+0.01 || upTo < want-0.01 {
			t.Errorf("%v is from quantile %v to %v of all draws, want %v", []float64{l.over.Low, l.over.High}[end], below, upTo, want)
		}
	}
}

// Counts by group are of each group's rows, sum to the counts of all rows, and survive a file. A file
// whose counts do not sum is refused.
func TestCountsByGroup(t *testing.T) {
	k := Key{"s", "m", 1, 1}
	a := methodAnswer{Decision: []int{1, 0, 0, 1, 0, 1}, Score: []float64{1, 0, 0, 1, 0, 1}}
	c := newCell(k, []int{1, 1, 0, 0, 0, 1}, []string{"b", "b", "a", "b", "a", "a"}, a)
	want := grouped("m", 1, 1, score.Confusion{{0, 1}, {1, 1}}, score.Confusion{{2, 0}, {0, 1}}) // b, which begins first, then a
	if !slices.EqualFunc(c.Groups, want.Groups, func(a, b score.Confusion) bool { return slices.EqualFunc(a, b, slices.Equal) }) ||
		c.TP != want.TP || c.FN != want.FN || c.FP != want.FP || c.TN != want.TN {
		t.Errorf("got %+v, want %+v", c, want)
	}
	header := strings.Join(cellColumns, ",") + "\n"
	read, err := readCells(strings.NewReader(header+c.line()), "cells.csv")
	if err != nil || len(read) != 1 || read[0].line() != c.line() || !strings.HasSuffix(c.line(), ",1/1/1/0 1/0/0/2\n") {
		t.Errorf("%v: read %+v of %s", err, read, c.line())
	}
	for text, reason := range map[string]string{
		"1/1/1/0 1/0/0/1":  "cells.csv:2: by_group sums to [2 1 1 1], but tp, fn, fp and tn are [2 1 1 2]",
		"1/1/1/0 1/0/0":    `by_group "1/0/0" must be tp/fn/fp/tn`,
		"1/1/1/0 1/0/-1/3": "must be tp/fn/fp/tn",
	} {
		line := strings.Replace(c.line(), "1/1/1/0 1/0/0/2", text, 1)
		if _, err := readCells(strings.NewReader(header+line), "cells.csv"); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %s", text, err, reason)
		}
	}
}

// The committed page is what the committed cells give.
func TestCommittedDrillPage(t *testing.T) {
	cells, err := LoadCells("../../docs/figures/study/drill/cells.csv")
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile("../../docs/figures/study/drill/drill.md")
	if err != nil {
		t.Fatal(err)
	}
	if DrillPage(cells) != string(made) {
		t.Error("docs/figures/study/drill/drill.md is not the page of the cells next to it")
	}
}
