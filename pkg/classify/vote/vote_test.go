package vote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

var nan = float32(math.NaN())

// part is a simulated sensor: its level grows by exp(change) over the life of a worn tool.
type part struct {
	name, unit    string
	change, noise float64
}

var parts = []part{{"feed", "N", 0.9, 0.05}, {"cutting", "N", 0.3, 0.04}, {"passive", "N", 0.6, 0.06}, {"torque", "Nm", 0.5, 0.08}, {"sound", "V", 0.5, 0.12}}

// shop is the raw windows of simulated tools: of each sensor RMS, mean, maximum and kurtosis.
type shop struct {
	tools []string
	raw   map[string][][]float32
	y     map[string][]int
}

// newShop simulates tools, worn ones and others that are taken out before.
func newShop(seed uint64, worn, healthy int) *shop {
	rng := rand.New(rand.NewPCG(seed, 9))
	s := &shop{raw: make(map[string][][]float32), y: make(map[string][]int)}
	for k := range worn + healthy {
		tool, last := string(rune('a'+k)), 1.4
		if k >= worn {
			last = 0.7
		}
		n := 50 + rng.IntN(20)
		s.tools = append(s.tools, tool)
		gains, own := make([]float64, len(parts)), make([]float64, len(parts))
		for p := range parts {
			gains[p], own[p] = math.Exp(0.4*rng.NormFloat64()), 1+0.05*rng.NormFloat64()
		}
		for i := range n {
			wear := last * float64(i) / float64(n-1)
			depth := 0.06 * rng.NormFloat64() // of the cut: forces follow it alike, so that their ratios say more than they do
			row := make([]float32, 0, 4*len(parts))
			for p, of := range parts {
				log := of.change*own[p]*wear + of.noise*rng.NormFloat64()
				if of.unit == "N" {
					log += depth
				}
				level := gains[p] * math.Exp(log)
				row = append(row, float32(level), float32(0.8*level*math.Exp(0.02*rng.NormFloat64())), float32(3*level*math.Exp(0.05*rng.NormFloat64())), float32(3+rng.NormFloat64()))
			}
			class := 0
			if wear >= 1 {
				class = 1
			}
			s.raw[tool], s.y[tool] = append(s.raw[tool], row), append(s.y[tool], class)
		}
	}
	return s
}

var shopLogs = func() (logs []bool) {
	for range parts {
		logs = append(logs, true, true, true, false)
	}
	return logs
}()

func (s *shop) table(tools []string) vote.Table {
	t := vote.Table{Log: shopLogs, X: dbn.Matrix{Cols: len(shopLogs)}}
	for p, of := range parts {
		t.Sensors = append(t.Sensors, vote.Sensor{Name: of.name, Unit: of.unit, Columns: []int{4 * p, 4*p + 1, 4*p + 2, 4*p + 3}, Kinds: []vote.Kind{vote.RMS, vote.Mean, vote.Max, vote.Other}})
	}
	for _, tool := range tools {
		for n, row := range relative(s.raw[tool], shopLogs) {
			t.X.Rows++
			t.X.Data = append(t.X.Data, row...)
			t.Y, t.Groups = append(t.Y, s.y[tool][reference+n]), append(t.Groups, tool)
		}
	}
	t.Weights = weigher(&t)
	return t
}

func fitted(t testing.TB, table vote.Table) *vote.Guard {
	t.Helper()
	g, r, err := vote.Fit(t.Context(), table, vote.Settings{Steps: true})
	if err != nil || g == nil {
		t.Fatal(err, r)
	}
	return g
}

// The guarded margin is within the bound of the vote's, it is the network's if that is, and the
// score says what the margin does.
func TestMarginIsBounded(t *testing.T) {
	table := newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"})
	g := fitted(t, table)
	s := g.NewScorer()
	rapid.Check(t, func(t *rapid.T) {
		row := slices.Clone(table.X.Row(rapid.IntRange(0, table.X.Rows-1).Draw(t, "row")))
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			row[rapid.IntRange(0, len(row)-1).Draw(t, "column")] = rapid.SampledFrom([]float32{0, 5, -5, nan, float32(math.Inf(1)), math.MaxFloat32}).Draw(t, "value")
		}
		network := rapid.OneOf(rapid.SampledFrom([]float64{0, 0.5, math.Nextafter(0.5, 0), 1, math.NaN()}), rapid.Float64Range(0, 1)).Draw(t, "network")
		failed := make([]bool, len(g.Sensors()))
		for k := range failed {
			failed[k] = rapid.IntRange(0, 9).Draw(t, "failed") == 0
		}
		j := s.Judge(s.Without(row, failed), network)
		own := j.Vote - g.Cut()
		if math.Abs(j.Margin-own) > g.Bound()+1e-12 || math.Abs(j.Vote) > 6 {
			t.Fatalf("margin %v, the vote's %v, vote %v", j.Margin, own, j.Vote)
		}
		if (network != network || slices.Contains(failed, true)) && j.Margin != own {
			t.Fatalf("the network moves the margin from %v to %v", own, j.Margin)
		}
		m := math.Log(network / (1 - network))
		if !slices.Contains(failed, true) && math.Abs(m-own) < g.Bound() && math.Abs(j.Margin-m) > 1e-9 {
			t.Fatalf("margin %v, the network's %v", j.Margin, m)
		}
		if (j.Score >= 0.5) != (j.Margin >= 0) || !(j.Score >= 0 && j.Score <= 1) {
			t.Fatalf("score %v of margin %v", j.Score, j.Margin)
		}
		odds := slices.DeleteFunc(slices.Clone(s.Odds()), func(v float64) bool { return v != v })
		slices.Sort(odds)
		if n := len(odds); n != j.Voting || n > 0 && (j.Vote < odds[0] || j.Vote > odds[n-1]) {
			t.Fatalf("vote %v of %d experts, log odds %v", j.Vote, j.Voting, odds)
		}
		if j.Sensor < -1 || j.Sensor >= len(g.Sensors()) {
			t.Fatalf("sensor %d", j.Sensor)
		}
	})
}

// Without a sensor the vote is 0 and the margin less its cut; the same if all values are missing.
func TestAllAbstain(t *testing.T) {
	table := newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"})
	g := fitted(t, table)
	all := slices.Repeat([]bool{true}, len(g.Sensors()))
	s := g.NewScorer()
	if j := s.Judge(s.Without(table.X.Row(0), all), 0.99); j.Vote != 0 || j.Voting != 0 || j.Margin != -g.Cut() || j.Sensor != -1 {
		t.Errorf("all failed: %+v, cut %v", j, g.Cut())
	}
	if j := g.NewScorer().Judge(slices.Repeat([]float32{nan}, g.Columns()), math.NaN()); j.Vote != 0 || j.Margin != -g.Cut() {
		t.Errorf("all missing: %+v, cut %v", j, g.Cut())
	}
}

// While a sensor has failed its values do not count.
func TestFailedSensorDoesNotCount(t *testing.T) {
	table := newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"})
	g := fitted(t, table)
	s := g.NewScorer()
	for k, name := range g.Sensors() {
		failed := make([]bool, len(g.Sensors()))
		failed[k] = true
		at := slices.IndexFunc(table.Sensors, func(s vote.Sensor) bool { return s.Name == name })
		for i := 0; i < table.X.Rows; i += 7 {
			row := slices.Clone(table.X.Row(i))
			want := s.Judge(s.Without(row, failed), 0.2)
			for _, j := range table.Sensors[at].Columns {
				row[j] = -5
			}
			if got := s.Judge(s.Without(row, failed), 0.9); got != want {
				t.Fatalf("%s, row %d: %+v, with other values and another network %+v", name, i, want, got)
			}
		}
	}
}

// An expert of two sensors that change alike abstains once both have failed, a ratio if one
// of its sensors has.
func TestAbstaining(t *testing.T) {
	p, table := readPeer(t)
	g := fitted(t, table)
	s := g.NewScorer()
	for name, tc := range map[string]struct {
		failed, abstaining []string
	}{
		"none":              {nil, nil},
		"one of D and E":    {[]string{"D"}, nil},
		"both":              {[]string{"D", "E"}, []string{"[D E]"}},
		"a numerator":       {[]string{"A"}, []string{"[A]", "[A B]"}},
		"the denominator":   {[]string{"B"}, []string{"[B]", "[A B]", "[C B]"}},
		"one without ratio": {[]string{"F"}, []string{"[F]"}},
	} {
		flags := make([]bool, len(p.Kept))
		for k, of := range p.Kept {
			flags[k] = slices.Contains(tc.failed, of)
		}
		s.Judge(s.Without(table.X.Row(50), flags), 0.5)
		var abstaining []string
		for e, sensors := range append(slices.Clone(p.Groups), p.Pairs...) {
			if s.Odds()[e] != s.Odds()[e] {
				abstaining = append(abstaining, fmt.Sprint(sensors))
			}
		}
		if !slices.Equal(abstaining, tc.abstaining) {
			t.Errorf("%s: %v abstain, want %v", name, abstaining, tc.abstaining)
		}
	}
}

// Of an expert of two sensors that change alike, the one that has failed does not count.
func TestFailedPartnerDoesNotCount(t *testing.T) {
	p, table := readPeer(t)
	s := fitted(t, table).NewScorer()
	at := slices.IndexFunc(p.Groups, func(g []string) bool { return slices.Equal(g, []string{"D", "E"}) })
	flags := make([]bool, len(p.Kept))
	flags[slices.Index(p.Kept, "D")] = true
	row := slices.Clone(table.X.Row(50))
	s.Judge(s.Without(row, flags), 0.5)
	want := s.Odds()[at]
	for _, j := range table.Sensors[3].Columns {
		row[j] = -5
	}
	s.Judge(s.Without(row, flags), 0.5)
	if got := s.Odds()[at]; got != want {
		t.Errorf("log odds %v, with other values of the sensor that has failed %v", want, got)
	}
	s.Judge(row, 0.5)
	if s.Odds()[at] == want {
		t.Error("the values of a sensor that has not failed do not count")
	}
}

// Scores are at least 0.5 exactly if margins are not negative, however small.
func TestScoreOf(t *testing.T) {
	for margin, want := range map[float64]float64{0: 0.5, -1e-300: 0.5, -1e-17: 0.5, 1e-17: 0.5, math.Log(3): 0.75, -math.Log(3): 0.25, 800: 1, -800: 0} {
		if got := vote.ScoreOf(margin); math.Abs(got-want) > 1e-15 || (got >= 0.5) != (margin >= 0) {
			t.Errorf("margin %v: score %v, want %v", margin, got, want)
		}
	}
}

// Votes that no cut tells apart have the inverse prior as their cut; others are half-way from it.
func TestCutOf(t *testing.T) {
	prior := math.Log(1.0 / 3)
	if got := vote.CutOf([2][]float64{{4, 4, 4}, {-4}}); got != prior {
		t.Errorf("cut of votes the wrong way round %v, want %v", got, prior)
	}
	if got := vote.CutOf([2][]float64{{-4, -4, -4}, {3}}); math.Abs(got-(-0.5+prior)/2) > 0.01 {
		t.Errorf("cut of votes -4 and 3: %v, want %v", got, (-0.5+prior)/2)
	}
}

// A column that is constant in training counts for nothing and does no harm.
func TestConstantColumn(t *testing.T) {
	s := newShop(1, 4, 2)
	table := s.table(s.tools)
	weigh := table.Weights
	for i := range table.X.Rows {
		table.X.Row(i)[3] = 0
	}
	table.Weights = func(without []string) []float64 {
		w := slices.Clone(weigh(without))
		w[3] = 0.5
		return w
	}
	scorer := fitted(t, table).NewScorer()
	row := slices.Clone(table.X.Row(20))
	want := scorer.Judge(row, 0.5).Vote
	row[3] = 9
	if got := scorer.Judge(row, 0.5).Vote; math.Abs(got-want) > 1e-6 || want != want {
		t.Errorf("vote %v, with another value of the constant %v", want, got)
	}
}

// Sensors that share an expert are not compared with each other, and only the one that counts most can be a
// denominator.
func TestNoRatioWithinAnExpert(t *testing.T) {
	p, table := readPeer(t)
	table.Sensors[4].Unit = table.Sensors[3].Unit // of D and E
	for i := range table.X.Rows {
		for _, j := range table.Sensors[4].Columns {
			table.X.Row(i)[j] *= 0.5
		}
	}
	_, r, err := vote.Fit(t.Context(), table, vote.Settings{})
	if err != nil || len(r.Experts) != len(p.Groups)+len(p.Pairs) {
		t.Errorf("error %v, experts %+v, want as many as of other units", err, r.Experts)
	}
}

// An expert is compared with the median of at least three experts of other sensors.
func TestDifference(t *testing.T) {
	p, table := readPeer(t)
	s := fitted(t, table).NewScorer()
	flags := make([]bool, len(p.Kept))
	for _, failed := range []string{"D", "E", "F"} {
		flags[slices.Index(p.Kept, failed)] = true
	}
	s.Judge(s.Without(table.X.Row(60), flags), 0.5)
	odds := s.Odds() // of A, C, B, D and E, F, A/B, C/B
	others := []float64{odds[1], odds[2], odds[6]}
	slices.Sort(others)
	if got, want := s.Difference(0), math.Abs(odds[0]-others[1]); got != want || want == 0 {
		t.Errorf("A differs by %v, want %v", got, want)
	}
	if got := s.Difference(2); got != 0 { // from A and C
		t.Errorf("B differs by %v from two experts", got)
	}
}

func TestLasting(t *testing.T) {
	for name, tc := range map[string]struct {
		x    []float64
		want float64
	}{
		"four":                   {[]float64{9, 9, 9, 9}, 0},
		"five":                   {[]float64{9, 8, 7, 6, 5}, 5},
		"five of eight":          {[]float64{0, 3, 0, 3, 3, 0, 3, 3, 0}, 3},
		"five of nine are not":   {[]float64{0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0}, 0},
		"the greatest stretch":   {[]float64{1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 2, 2, 2, 0}, 2},
		"short, great ones pass": {[]float64{1, 1, 1, 1, 50, 50, 50, 50, 1, 1, 1, 1}, 1},
	} {
		if got := vote.Lasting(tc.x); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A gain that a sensor had from the beginning of a tool on changes nothing.
func TestConstantGain(t *testing.T) {
	s := newShop(2, 5, 2)
	g := fitted(t, s.table(s.tools))
	for _, gain := range []float32{0.25, 4} { // exact in float32
		for p := range parts {
			raw := make([][]float32, len(s.raw["a"]))
			for n, row := range s.raw["a"] {
				raw[n] = slices.Clone(row)
				for j := range 3 {
					raw[n][4*p+j] *= gain
				}
			}
			scorer, changed := g.NewScorer(), relative(raw, shopLogs)
			for n, row := range relative(s.raw["a"], shopLogs) {
				a, b := scorer.Judge(row, 0.4), scorer.Judge(changed[n], 0.4)
				if math.Abs(a.Margin-b.Margin) > 1e-4 {
					t.Fatalf("%s times %v, window %d: margin %v, without %v", parts[p].name, gain, n, b.Margin, a.Margin)
				}
			}
		}
	}
}

// Equal tables give equal bytes, in any order of sensors as far as they do not weigh the same.
func TestFitRepeats(t *testing.T) {
	s := newShop(3, 4, 3)
	table := s.table(s.tools)
	before := slices.Clone(table.X.Data)
	one, err := fitted(t, table).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(table.Sensors)
	two, _ := fitted(t, table).AppendBinary(nil)
	if !slices.Equal(one, two) {
		t.Error("two fits differ")
	}
	if !slices.Equal(before, table.X.Data) {
		t.Error("the rows are changed")
	}
}

// Of forces the one that changes least is the denominator.
func TestDenominator(t *testing.T) {
	s := newShop(4, 4, 2)
	_, r, err := vote.Fit(t.Context(), s.table(s.tools), vote.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var ratios []string
	for _, x := range r.Experts {
		if x.Ratio {
			ratios = append(ratios, strings.Join(x.Sensors, "/"))
		}
	}
	slices.Sort(ratios)
	if !slices.Equal(ratios, []string{"feed/cutting", "passive/cutting"}) {
		t.Errorf("ratios %v", ratios)
	}
	table := s.table(s.tools)
	for i, tool := range table.Groups { // of a tool that is never worn the changes do not count
		for j := 4; j < 7 && tool == "e"; j++ {
			table.X.Row(i)[j] += float32(i % 1000 / 20)
		}
	}
	if _, other, err := vote.Fit(t.Context(), table, vote.Settings{}); err != nil || !slices.ContainsFunc(other.Sensors, func(s vote.SensorReport) bool { return s.Name == "cutting" && s.Change < 0.4 }) {
		t.Errorf("cutting changes in a tool that is never worn: error %v, %+v", err, other)
	}
	table = s.table(s.tools)
	table.Log = nil // of another mode of the reference
	if _, r, err = vote.Fit(t.Context(), table, vote.Settings{}); err != nil || len(r.Experts) != len(parts) {
		t.Errorf("without logarithms: error %v, experts %+v", err, r.Experts)
	}
}

func TestNoGuard(t *testing.T) {
	s := newShop(5, 4, 2)
	for name, tc := range map[string]struct {
		change func(*vote.Table)
		want   string
	}{
		"two worn tools": {func(t *vote.Table) {
			for i, g := range t.Groups {
				if g == "a" || g == "b" {
					t.Y[i] = 0
				}
			}
		}, "2 of the tools have worn windows"},
		"three classes": {func(t *vote.Table) { t.Y[0] = 2 }, "3 classes"},
		"no healthy rows": {func(t *vote.Table) {
			for i := range t.Y {
				t.Y[i] = 1
			}
		}, "no healthy windows"},
		"no sensors": {func(t *vote.Table) { t.Sensors = nil }, "not grouped by sensor"},
		"no weights": {func(t *vote.Table) { t.Weights = nil }, "not weighed"},
		"one sensor": {func(t *vote.Table) { t.Sensors = t.Sensors[:1] }, "1 experts, and a vote takes 3"},
		"all zero":   {func(t *vote.Table) { t.Weights = func([]string) []float64 { return make([]float64, len(shopLogs)) } }, "0 experts"},
		"healthy rows in one tool": {func(t *vote.Table) {
			for i, g := range t.Groups {
				if t.Y[i] = 1; g == "e" {
					t.Y[i] = 0
				}
			}
		}, "no healthy windows are left"},
	} {
		table := s.table(s.tools)
		tc.change(&table)
		g, r, err := vote.Fit(t.Context(), table, vote.Settings{})
		if err != nil || g != nil || !strings.Contains(r.Off, tc.want) {
			t.Errorf("%s: guard %v, error %v, report %+v; want %q", name, g, err, r, tc.want)
		}
	}
}

func TestFitErrors(t *testing.T) {
	s := newShop(5, 4, 2)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := vote.Fit(stopped, s.table(s.tools), vote.Settings{}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	for name, tc := range map[string]struct {
		change func(*vote.Table)
		want   error
	}{
		"labels":       {func(t *vote.Table) { t.Y = t.Y[1:] }, vote.ErrSize},
		"tools":        {func(t *vote.Table) { t.Groups = t.Groups[1:] }, vote.ErrSize},
		"wear":         {func(t *vote.Table) { t.Wear = make([]float64, 3) }, vote.ErrSize},
		"rows":         {func(t *vote.Table) { t.X.Data = t.X.Data[1:] }, vote.ErrSize},
		"logarithms":   {func(t *vote.Table) { t.Log = t.Log[1:] }, vote.ErrSize},
		"weights":      {func(t *vote.Table) { t.Weights = func([]string) []float64 { return []float64{1} } }, vote.ErrSize},
		"class":        {func(t *vote.Table) { t.Y[3] = -1 }, vote.ErrSize},
		"kinds":        {func(t *vote.Table) { t.Sensors[0].Kinds = nil }, vote.ErrSize},
		"column":       {func(t *vote.Table) { t.Sensors[0].Columns[0] = len(shopLogs) }, vote.ErrSensors},
		"column twice": {func(t *vote.Table) { t.Sensors[0].Columns[0] = 5 }, vote.ErrSensors},
		"infinite":     {func(t *vote.Table) { t.X.Data[9] = float32(math.Inf(-1)) }, vote.ErrNotFinite},
	} {
		table := s.table(s.tools)
		tc.change(&table)
		if g, _, err := vote.Fit(t.Context(), table, vote.Settings{}); !errors.Is(err, tc.want) || g != nil {
			t.Errorf("%s: guard %v, error %v", name, g, err)
		}
	}
	if _, _, err := vote.Fit(t.Context(), s.table(s.tools), vote.Settings{Bound: math.NaN()}); err == nil {
		t.Error("a bound that is NaN")
	}
}

// One sensor reads 1.25 or 0.8 of what it did from the middle of a tool's life on: with the
// guard the G-mean over tools held out is no less than with a logistic regression on all
// columns alone, in its place for the network, and no worn tool is missed.
func TestGainOfOneSensor(t *testing.T) {
	s := newShop(6, 5, 3)
	type change struct {
		part int
		gain float32
	}
	changes := []change{{0, 1}}
	for p := range parts {
		changes = append(changes, change{p, 0.8}, change{p, 1.25})
	}
	network, guarded := make([]score.Confusion, len(changes)), make([]score.Confusion, len(changes))
	for c := range changes {
		network[c], guarded[c] = score.NewConfusion(2), score.NewConfusion(2)
	}
	for _, held := range s.tools {
		table := s.table(slices.DeleteFunc(slices.Clone(s.tools), func(tool string) bool { return tool == held }))
		scorer := fitted(t, table).NewScorer()
		test := dbn.Matrix{Cols: len(shopLogs)}
		for _, c := range changes {
			for _, row := range relative(s.changed(held, c.part, c.gain), shopLogs) {
				test.Rows++
				test.Data = append(test.Data, row...)
			}
		}
		answer, err := study.LogisticRegression.Judge(t.Context(), study.Task{X: table.X, Y: table.Y, Groups: table.Groups, Test: test, Weights: table.Weights(nil)})
		if err != nil {
			t.Fatal(err)
		}
		y, scores := s.y[held][reference:], answer.Scores()
		for c, of := range changes {
			var decided []bool
			for n := range y {
				i := c*len(y) + n
				j := scorer.Judge(test.Row(i), scores[i])
				network[c].Add(y[n], class(scores[i] >= 0.5))
				guarded[c].Add(y[n], class(j.Score >= 0.5))
				decided = append(decided, j.Score >= 0.5)
			}
			if slices.Contains(y, 1) && !alarms(decided) {
				t.Errorf("%s times %v: tool %s is missed", parts[of.part].name, of.gain, held)
			}
		}
	}
	worst := [2]float64{1, 1}
	for c, of := range changes {
		a, b := network[c].GMean(), guarded[c].GMean()
		t.Logf("%s times %v: network %.3f, guard %.3f", parts[of.part].name, of.gain, a, b)
		if of.gain == 1 && b < a-0.02 {
			t.Errorf("clean windows: network %.3f, guard %.3f", a, b)
		}
		worst[0], worst[1] = min(worst[0], a), min(worst[1], b)
	}
	if worst[1] < worst[0] {
		t.Errorf("worst: network %.3f, guard %.3f", worst[0], worst[1])
	}
}

// changed returns the windows of a tool, of which one sensor reads gain times as much from
// the middle on.
func (s *shop) changed(tool string, part int, gain float32) [][]float32 {
	raw := make([][]float32, len(s.raw[tool]))
	for n, row := range s.raw[tool] {
		raw[n] = slices.Clone(row)
		for j := 4 * part; j < 4*part+3 && n >= len(raw)/2; j++ {
			raw[n][j] *= gain
		}
	}
	return raw
}

func class(worn bool) int {
	if worn {
		return 1
	}
	return 0
}

// The sensor whose gain changes a lot is named, and in training tools none is for long.
func TestSensorIsNamed(t *testing.T) {
	s := newShop(7, 5, 3)
	table := s.table(s.tools)
	g := fitted(t, table)
	named := func(rows [][]float32, k int) bool {
		scorer, at := g.NewScorer(), []bool{}
		for _, row := range rows {
			at = append(at, scorer.Judge(row, 0.5).Sensor == k)
		}
		return alarms(at)
	}
	for k, name := range g.Sensors() {
		for _, tool := range s.tools {
			if named(relative(s.raw[tool], shopLogs), k) {
				t.Errorf("%s is named in training tool %s", name, tool)
			}
		}
	}
	k := slices.Index(g.Sensors(), "cutting")
	if !named(relative(s.changed("a", 1, 1.5), shopLogs), k) {
		t.Error("the cutting force that reads 1.5 times as much is not named")
	}
}

// Judging takes no memory.
func TestJudgeDoesNotAllocate(t *testing.T) {
	table := newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"})
	g := fitted(t, table)
	s, n, sensed := g.NewScorer(), 0, make([]vote.Sensed, len(g.Sensors()))
	var m vote.Memory
	g.Watch(&m, table.X.Row(0), true, sensed)
	if n := testing.AllocsPerRun(100, func() {
		n++
		g.Watch(&m, table.X.Row(n), true, sensed)
		s.Judge(table.X.Row(n), 0.7)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLengthsMustAgree(t *testing.T) {
	table := newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"})
	g := fitted(t, table)
	for name, do := range map[string]func(){
		"row":         func() { g.NewScorer().Judge(table.X.Row(0)[1:], 0.5) },
		"flags":       func() { g.Watch(new(vote.Memory), table.X.Row(0), true, make([]vote.Sensed, 1)) },
		"watched row": func() { g.Watch(new(vote.Memory), nil, true, make([]vote.Sensed, len(g.Sensors()))) },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "vote: ") {
					t.Errorf("%s: no panic of this package: %q", name, text)
				}
			}()
			do()
		}()
	}
}

// What Watch says of scripted windows of a sensor with the sizes 1, 2, 3 and a kurtosis.
func TestWatch(t *testing.T) {
	g := fitted(t, newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"}))
	good := []float32{1, 2, 3, 4}
	for name, tc := range map[string]struct {
		windows [][]float32
		want    string // f: failed, .: not
	}{
		"changing":                      {[][]float32{{1, 2, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 4}, {2, 2, 3, 4}}, "...."},
		"missing":                       {[][]float32{good, {nan, nan, nan, 4}, {nan, 2, 3, 4}, {nan, nan, nan, nan}}, ".f.f"},
		"zero":                          {[][]float32{{0, 0, 0, 3}, {0, 1, 0, 3}, {0, 0, 0, nan}}, "f.f"},
		"negative":                      {[][]float32{{-1, -2, -3, 4}, {-1, 0, -4, 4}}, ".."},
		"equal in three windows":        {[][]float32{good, good, good, good, {1, 2, 3.5, 4}, good, good}, "..ff..."},
		"equal but for the kurtosis":    {[][]float32{good, {1, 2, 3, 5}, {1, 2, 3, 6}}, "..f"},
		"equal, a value that's missing": {[][]float32{{1, nan, 3, 4}, {1, nan, 3, 4}, {1, nan, 3, 4}}, "..f"},
	} {
		var m vote.Memory
		got := ""
		for n, window := range tc.windows {
			raw := make([]float32, g.Columns())
			for j := range raw {
				raw[j] = float32(n + 1)
			}
			copy(raw[4:], window) // of the second simulated sensor
			failed := make([]vote.Sensed, len(g.Sensors()))
			b, err := json.Marshal(m) // as across a restart
			if err != nil {
				t.Fatal(err)
			}
			if m = nil; json.Unmarshal(b, &m) != nil {
				t.Fatalf("%s", b)
			}
			g.Watch(&m, raw, true, failed)
			mark := "."
			for k, of := range g.Sensors() {
				if failed[k].Failed && of == parts[1].name {
					mark = "f"
				} else if failed[k].Failed {
					t.Errorf("%s, window %d: %s has failed", name, n, of)
				}
			}
			got += mark
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A sensor of coarse steps, which repeats itself in training, may read zero or the same again; it fails only if it is missing.
func TestSensorThatRepeatsItself(t *testing.T) {
	s := newShop(1, 4, 2)
	for n, tools := range [][]string{nil, s.tools[:1], s.tools[:3]} {
		s := newShop(1, 4, 2)
		for _, tool := range tools {
			for i := 20; i < 24; i++ {
				copy(s.raw[tool][i][4:7], s.raw[tool][20][4:7])
			}
		}
		g := fitted(t, s.table(s.tools))
		k := slices.Index(g.Sensors(), parts[1].name)
		raw, failed := slices.Clone(s.raw[s.tools[4]][30]), make([]vote.Sensed, len(g.Sensors()))
		zero, missing := slices.Clone(raw), slices.Clone(raw)
		for j := 4; j < 7; j++ {
			zero[j], missing[j] = 0, nan
		}
		var m vote.Memory
		for range 3 {
			g.Watch(&m, raw, true, failed)
		}
		stuck := failed[k].Failed
		g.Watch(&m, zero, true, failed)
		if want := n < 2; stuck != want || failed[k].Failed != want {
			t.Errorf("%d of %d tools repeat themselves: stuck %t, zero %t", len(tools), len(s.tools), stuck, failed[k].Failed)
		}
		if g.Watch(&m, missing, true, failed); !failed[k].Failed {
			t.Errorf("%d tools repeat themselves: a missing one has not failed", len(tools))
		}
	}
}

// A sensor whose levels move by far less than they ever did in training is stuck: a converter has noise in its last bit. Others, and
// the sensor itself in the training, are not.
func TestStuckWithATraceOfNoise(t *testing.T) {
	s := newShop(1, 4, 2)
	g := fitted(t, s.table(s.tools))
	k := slices.Index(g.Sensors(), parts[1].name)
	sensed := make([]vote.Sensed, len(g.Sensors()))
	for _, tool := range s.tools {
		var m vote.Memory
		for i, raw := range s.raw[tool] {
			if g.Watch(&m, raw, true, sensed); slices.ContainsFunc(sensed, func(s vote.Sensed) bool { return s.Failed }) {
				t.Errorf("tool %s, window %d: %v", tool, i, sensed)
			}
		}
	}
	for jitter, want := range map[float32]bool{0: true, 1e-6: true, 1e-5: true, 0.05: false} {
		var m vote.Memory
		for i, raw := range s.raw[s.tools[4]][20:40] {
			raw = slices.Clone(raw)
			for j := 4; j < 7; j++ {
				raw[j] = s.raw[s.tools[4]][20][j] * (1 + jitter*float32(i*7%5-2))
			}
			g.Watch(&m, raw, true, sensed)
			if sensed[k].Failed != (want && i >= 2) {
				t.Errorf("jitter %v, window %d: failed %t", jitter, i, sensed[k].Failed)
			}
		}
	}
}

func TestReportSaysWhatTheGuardIs(t *testing.T) {
	s := newShop(8, 4, 2)
	g, r, err := vote.Fit(t.Context(), s.table(s.tools), vote.Settings{Bound: 0.3})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	share := 0.0
	for _, of := range r.Sensors {
		names, share = append(names, of.Name), share+of.Share
	}
	if !reflect.DeepEqual(names, g.Sensors()) || r.Worn != 4 || r.Cut != g.Cut() || g.Bound() != 0.3 || math.Abs(share-1) > 0.1 {
		t.Errorf("report %+v of sensors %v, shares %v, bound %v", r, g.Sensors(), share, g.Bound())
	}
}

// Few windows of each tool: none is enough to tell what an expert differs by for long, so that no
// sensor is named.
func TestShortLives(t *testing.T) {
	s := newShop(9, 4, 2)
	for _, tool := range s.tools {
		n := len(s.raw[tool])
		keep := func(i int) bool { return i < reference || i == n/2 || i >= n-2 }
		var raw [][]float32
		var y []int
		for i := range n {
			if keep(i) {
				raw, y = append(raw, s.raw[tool][i]), append(y, s.y[tool][i])
			}
		}
		s.raw[tool], s.y[tool] = raw, y
	}
	table := s.table(s.tools)
	weights := newShop(9, 4, 2)
	whole := weights.table(weights.tools)
	table.Weights = whole.Weights
	scorer := fitted(t, table).NewScorer()
	row := slices.Clone(table.X.Row(0))
	for j := range 4 {
		row[j] = 5
	}
	if j := scorer.Judge(row, 0.5); j.Sensor != -1 {
		t.Errorf("sensor %d is named", j.Sensor)
	}
}

// Time and memory of a fit to eight tools.
func BenchmarkFit(b *testing.B) {
	s := newShop(6, 5, 3)
	table := s.table(s.tools)
	for b.Loop() {
		fitted(b, table)
	}
}

func BenchmarkJudge(b *testing.B) {
	table := newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"})
	g := fitted(b, table)
	s, row := g.NewScorer(), table.X.Row(9)
	b.ReportAllocs()
	for b.Loop() {
		s.Judge(row, 0.7)
	}
}

func BenchmarkWatch(b *testing.B) {
	table := newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"})
	g := fitted(b, table)
	sensed := make([]vote.Sensed, len(g.Sensors()))
	var m vote.Memory
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		g.Watch(&m, table.X.Row(n%table.X.Rows), true, sensed)
	}
}
