package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// wearing returns a set of four tools: force F doubles until its limit of 100 and triples by 200, T is noise. The third and the fourth tool get worn.
func wearing(t *testing.T) *set {
	t.Helper()
	s := &set{Name: "small", Reference: 4, Limit: 100, columns: []string{"F_rms", "F_var", "T_rms"}}
	if err := s.see(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var ref model.Reference
	for k, windows := range []int{30, 40, 60, 80} {
		for i := range windows {
			wear := float64(max(0, i-4)) * 2.5
			force := (1 + float64(k)) * (1 + wear/100)
			s.add(string(rune('a'+k)), wear, []float32{float32(force), float32(force * force), float32(1 + 0.3*rng.Float64())}, &ref, model.ReferenceSpec{Mode: model.ReferenceDifference, Windows: 4})
		}
	}
	return s
}

// own returns Flank's method.
func own() *method { return &methods(nil)[0] }

// A doubling is warned of where it is reached, at the limit, and no healthy tool is.
func TestOwn(t *testing.T) {
	s := wearing(t)
	of := learn(s, own(), []split{{Taught: []string{"a", "b"}, Judged: []string{"c", "d"}}, {Taught: []string{"c", "d"}, Judged: []string{"a", "b"}}})
	f := sum(judge(s, of, setting{k: 3, n: 4, least: score.LeastDifferent, share: score.ShareDifferent}), false)
	if f.Warned != 1 || f.False != 0 || f.FalseNine != 0 || f.Worn != 2 || f.Tools != 4 {
		t.Errorf("%+v", f)
	}
	early := sum(judge(s, of, setting{k: 3, n: 4, least: 0.3, share: 0}), false)
	if early.Warned != 1 || early.False != 1 {
		t.Errorf("limit of 0.3: %+v", early)
	}
	for _, v := range of[0].score(s.lifeOf("d"))[39:41] { // about a wear of 100
		if math.Abs(v-math.Ln2) > 0.05 {
			t.Errorf("level %v at a doubling", v)
		}
	}
	asOne := learn(s, &methods(nil)[2], []split{{Taught: []string{"a", "b"}, Judged: []string{"d"}}})
	if got := asOne[0].score(s.lifeOf("d"))[40]; math.IsNaN(got) || got <= 0 {
		t.Errorf("all sensors as one: level %v", got)
	}
}

// The alarm is the one of the product, and what Reach says of a life.
func TestFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		scores := make([]float64, 30)
		for i := range scores {
			scores[i] = rng.Float64() + float64(i)/60
		}
		limit := rng.Float64() * 1.5
		set := setting{k: 5, n: 8}
		want, state := -1, alarm.State{}
		for i, v := range scores {
			at := time.Time{}.Add(time.Duration(i) * time.Second)
			if state.Observe(alarm.Default, false, v > limit, at, at.Add(time.Second), at.Add(time.Second)) == alarm.Raised && want < 0 {
				want = i
			}
		}
		got := score.FirstAbove(scores, set.k, set.n, limit)
		if got != want || (got >= 0) != (limit < score.ReachedLevel(scores, set.k, set.n)) {
			t.Fatalf("limit %v: alarm at window %d, the product's at %d", limit, got, want)
		}
	}
}

// Channels have limits of the first tool alone; a cumulative sum grows while the level is beyond its slack, and falls to 0 and not below.
func TestPeers(t *testing.T) {
	s := wearing(t)
	taught := []*life{s.lifeOf("a"), s.lifeOf("b")}
	raw, relative := rms(false)(s, split{}, taught), rms(true)(s, split{}, taught)
	if got := score.ReachedLevel(raw(taught[0])[:taught[0].healthy], 5, 8); math.Abs(got-1) > 0.05 {
		t.Errorf("the first tool reached %v of its own limits", got)
	}
	if v := raw(taught[1]); !math.IsNaN(v[0]) {
		t.Errorf("the second tool teaches %v", v[0])
	}
	d := s.lifeOf("d")
	if r, w := relative(d)[0], raw(d)[0]; !(r < w) {
		t.Errorf("a tool of four times the force: %v of the limits, relative to its reference %v", w, r)
	}
	slack, none := cusum(3)(s, split{}, taught)(d), cusum(0)(s, split{}, taught)(d)
	if slices.Min(slack) != 0 || !slices.IsSorted(none) || slack[len(slack)-1] >= none[len(none)-1] {
		t.Errorf("cumulative sums %v with a slack, %v without", slack, none)
	}
}

func TestSplits(t *testing.T) {
	s := wearing(t)
	if got := s.splits(3); len(got) != 4 || len(got[0].Judged) != 1 || s.splits(4) != nil {
		t.Errorf("%+v", got)
	}
	s.Name = drill
	for k, l := range s.lives {
		l.tool = []string{"1-a", "1-b", "2-a", "2-b"}[k]
	}
	got := s.splits(1)
	if len(got) != 24 || !slices.Equal(slices.Sorted(slices.Values(append(got[23].Taught, got[23].Judged...))), []string{"2-a", "2-b"}) {
		t.Errorf("%+v", got)
	}
}

// The best choice has false alarms in at most a tenth of lives if one has, then warns of most; a tool's own outcomes do not choose for it.
func TestBest(t *testing.T) {
	lives := func(warned, false_ string) []outcome {
		var out []outcome
		for i := range warned {
			out = append(out, outcome{tool: string(rune('a' + i)), worn: true, warned: warned[i] == '1', false_: false_[i] == '1'})
		}
		return out
	}
	for _, c := range []struct {
		name string
		of   []choice
		want float64
	}{
		{"false alarms in too many lives", []choice{{setting{least: 1}, lives("11", "10")}, {setting{least: 2}, lives("01", "00")}}, 2},
		{"warns of more", []choice{{setting{least: 1}, lives("01", "00")}, {setting{least: 2}, lives("11", "00")}}, 2},
		{"the same: the first", []choice{{setting{least: 1}, lives("01", "00")}, {setting{least: 2}, lives("10", "00")}}, 1},
		{"all have too many: the fewest", []choice{{setting{least: 1}, lives("11", "11")}, {setting{least: 2}, lives("00", "01")}}, 2},
	} {
		if got := best(c.of, nil).least; got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	s := &set{lives: []*life{{tool: "a"}, {tool: "b"}}}
	for _, o := range nested(s, []choice{{setting{}, lives("10", "00")}, {setting{}, lives("01", "00")}}) {
		if o.warned {
			t.Errorf("%s was warned of by what is best for itself", o.tool)
		}
	}
}

// Equal outcomes give equal figures, bit for bit: choices go by them.
func TestSumIsTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var os []outcome
	for i := range 400 {
		os = append(os, outcome{tool: string(rune('a' + i%23)), worn: i%23 > 4, warned: rng.IntN(3) == 0, false_: rng.IntN(7) == 0})
	}
	want := sum(os, true)
	for range 50 {
		if got := sum(os, true); got != want {
			t.Fatalf("%+v, then %+v", want, got)
		}
	}
}

// The page says what was measured, and whether the bar is held.
func TestPage(t *testing.T) {
	f := figures{Warned: 0.8, Worn: 5, Tools: 9}
	p := &page{Compared: []row{{Name: ownName, Of: []figures{f, f, f}}}, Own: []row{{Name: ownName, Of: []figures{f}}, {Name: "peer", Of: []figures{{Warned: 0.9, False: 0.2}}}}}
	for _, c := range []struct {
		nested figures
		want   string
	}{
		{figures{Warned: 0.8, False: 0.115}, "false alarms in 0.115 of lives | **not held** |"},
		{figures{Warned: 0.9, False: 0.05}, "false alarms in 0.050 of lives | **held** |"},
	} {
		p.Goals, p.Nested = nil, []row{{Name: ownName, Of: []figures{c.nested}}}
		p.goals()
		text := p.markdown()
		if !strings.Contains(text, c.want) || !strings.Contains(text, "0.80 of worn tools, false alarms in 0.000 of lives | **held** |") || !strings.Contains(text, "up to 0.28") {
			t.Error(text)
		}
	}
}

// Cells of the network become rows by how many tools had labels; a data set without such cells has dashes, and a file that lacks some is refused.
func TestLabelled(t *testing.T) {
	f := figures{Warned: 0.8, Worn: 5, Tools: 9}
	data := map[string]*set{turning: {Name: turning, Limit: 300}, phm: {Name: phm, Limit: 150}, drill: {Name: drill, Limit: 300}}
	write := func(without string) string {
		var b strings.Builder
		b.WriteString("data,protocol,variant,tool,worst_um,alarm_um\n")
		for _, l := range labelledProtocols {
			for name, protocol := range l.of {
				if name+" "+protocol == without {
					continue
				}
				limit := data[name].Limit
				for _, line := range []struct {
					tool         string
					worst, alarm float64
				}{{"worn", 2, 1.1}, {"late", 2, 1.3}, {"healthy", 0.9, 0.7}, {"quiet", 0.9, math.NaN()}} {
					fmt.Fprintf(&b, "%s,%s,default,%s,%v,%s\n", name, protocol, line.tool, line.worst*limit, columns.Number(line.alarm*limit, 1))
				}
				fmt.Fprintf(&b, "%s,%s,log,worn,%v,\n", name, protocol, 2*limit)
			}
		}
		path := filepath.Join(t.TempDir(), "cells.csv")
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := &page{Compared: []row{{}, {Of: []figures{f, f, f}}}}
	if err := p.labelled(write(""), data); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Labelled); n != 1+len(labelledProtocols) {
		t.Fatalf("%d rows", n)
	}
	if one := p.Labelled[1]; one.Of[0].Warned != 0.5 || one.Of[0].False != 0.25 || one.Of[0].Worn != 2 || one.Of[1].Warned == one.Of[1].Warned || one.Of[2].Warned != 0.5 {
		t.Errorf("%+v", one)
	}
	if err := p.labelled(write("drill 5-fold"), data); err == nil || !strings.Contains(err.Error(), "drill, 5-fold") {
		t.Errorf("no error of cells that are missing: %v", err)
	}
}
