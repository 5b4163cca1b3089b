package classify

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// wearing is tools that wear out: column 0 rises over every life, column 1 falls, 2 is
// an offset of the tool, 3 is noise. The last third of a life is faulty. The rows of
// the tools in bare have no class.
func wearing(seed uint64, length int, labelled, bare []string) *Table {
	rng := rand.New(rand.NewPCG(seed, 1))
	t := &Table{Ordered: true}
	var x, more dbn.Matrix
	x.Cols, more.Cols = 4, 4
	for _, tool := range slices.Concat(labelled, bare) {
		offset := 3 * rng.NormFloat64()
		for i := range length {
			at := 4 * float64(i) / float64(length)
			row := []float32{float32(at + 0.3*rng.NormFloat64()), float32(-at + 0.3*rng.NormFloat64()), float32(offset), float32(rng.NormFloat64())}
			if slices.Contains(bare, tool) {
				more.Data, more.Rows = append(more.Data, row...), more.Rows+1
				t.Unlabelled.Groups, t.Unlabelled.After = append(t.Unlabelled.Groups, tool), append(t.Unlabelled.After, x.Rows)
				continue
			}
			class := 0
			if 3*i >= 2*length {
				class = 1
			}
			x.Data, x.Rows = append(x.Data, row...), x.Rows+1
			t.Y, t.Groups = append(t.Y, class), append(t.Groups, tool)
		}
	}
	t.X = x
	if more.Rows > 0 {
		t.Unlabelled.X = more
	}
	return t
}

func tableFitted(t *testing.T, tb *Table, s Settings) (*Classifier, *Report) {
	t.Helper()
	c, r, err := FitTable(t.Context(), tb, s)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func bytesOf(t *testing.T, c *Classifier) []byte {
	t.Helper()
	b, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTableIsChecked(t *testing.T) {
	good := func() *Table { return wearing(1, 12, []string{"A", "B", "C"}, []string{"D"}) }
	for name, change := range map[string]func(*Table, *Settings){
		"rows without a class and no groups": func(t *Table, _ *Settings) { t.Groups = nil },
		"groups of other rows":               func(t *Table, _ *Settings) { t.Unlabelled.Groups = t.Unlabelled.Groups[1:] },
		"places of other rows":               func(t *Table, _ *Settings) { t.Unlabelled.After = nil },
		"places that go back":                func(t *Table, _ *Settings) { t.Unlabelled.After[0] = 99 },
		"another width":                      func(t *Table, _ *Settings) { t.Unlabelled.X = dbn.NewMatrix(12, 3) },
		"an infinity": func(t *Table, _ *Settings) {
			t.Unlabelled.X.(dbn.Matrix).Data[5] = float32(math.Inf(1))
		},
		"an excluded column that is not there": func(_ *Table, s *Settings) { s.Exclude = []int{4} },
		"a stability that is not known":        func(_ *Table, s *Settings) { s.Stability = "on" },
	} {
		tb, s := good(), quick()
		change(tb, &s)
		_, _, err := FitTable(t.Context(), tb, s)
		if !errors.Is(err, ErrSize) && !errors.Is(err, ErrNotFinite) && !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Columns that follow every life count, an offset of the tool and noise do not; in
// memory and on disk, and for every encoding.
func TestWeightsFollowLives(t *testing.T) {
	tools := []string{"A", "B", "C", "D"}
	for _, encoding := range encodings {
		s := quick()
		s.Encoding = encoding
		tb := wearing(1, 30, tools, nil)
		c, r := tableFitted(t, tb, s)
		var kept []int
		for _, w := range r.Weights.Columns {
			kept = append(kept, w.Column)
		}
		slices.Sort(kept)
		if !slices.Equal(kept, []int{0, 1}) || r.Weights.Off != "" || r.Weights.Ended != 4 || !slices.Equal(r.Weights.Tools, tools) {
			t.Errorf("%s: %+v", encoding, r.Weights)
		}
		sc := c.NewScorer()
		row := []float32{2, -2, 0, 0}
		want := slices.Clone(sc.Posterior(row))
		row[2], row[3] = 50, -50
		if got := sc.Posterior(row); !slices.Equal(got, want) {
			t.Errorf("%s: columns that do not count make %v of %v", encoding, got, want)
		}
		onDisk := *tb
		onDisk.X = onDiskRows(tb.X.(dbn.Matrix))
		if disk, _ := tableFitted(t, &onDisk, s); !slices.Equal(disk.NewScorer().Posterior(row), sc.Posterior(row)) {
			// Rows on disk are mixed otherwise, so networks differ, but columns must not count.
			a := slices.Clone(disk.NewScorer().Posterior(row))
			row[2], row[3] = 0, 0
			if b := disk.NewScorer().Posterior(row); !slices.Equal(a, b) {
				t.Errorf("%s, on disk: columns that do not count make %v of %v", encoding, a, b)
			}
		}
	}
}

func TestWeightsAreOff(t *testing.T) {
	four := func() *Table { return wearing(1, 30, []string{"A", "B", "C", "D"}, nil) }
	for name, tc := range map[string]struct {
		table  *Table
		change func(*Table, *Settings)
		why    string
	}{
		"switched off":   {four(), func(_ *Table, s *Settings) { s.Stability = StabilityOff }, "switched off"},
		"no order":       {four(), func(t *Table, _ *Settings) { t.Ordered = false }, "no order"},
		"two tools":      {wearing(1, 30, []string{"A", "B"}, nil), func(*Table, *Settings) {}, "2 of the tools went on to the end of their life, and it takes 3"},
		"two ended":      {four(), func(t *Table, _ *Settings) { t.Ended = func(g string) bool { return g < "C" } }, "2 of the tools"},
		"nothing steady": {four(), func(_ *Table, s *Settings) { s.Exclude = []int{0, 1} }, "no column follows"},
	} {
		s := quick()
		tc.change(tc.table, &s)
		if _, r := tableFitted(t, tc.table, s); !strings.Contains(r.Weights.Off, tc.why) || len(r.Weights.Columns) > 0 {
			t.Errorf("%s: %+v", name, r.Weights)
		}
	}
	// Without groups there is nothing to say.
	tb := four()
	tb.Groups = nil
	if _, r := tableFitted(t, tb, quick()); r.Weights != nil {
		t.Errorf("without groups: %+v", r.Weights)
	}
	// What is excluded does not count, with weights and without.
	for _, stability := range []Stability{stabilityAuto, StabilityOff} {
		s := quick()
		s.Stability, s.Exclude = stability, []int{1}
		c, _ := tableFitted(t, four(), s)
		sc := c.NewScorer()
		a := slices.Clone(sc.Posterior([]float32{1, 7, 0, 0}))
		if b := sc.Posterior([]float32{1, -7, 0, 0}); !slices.Equal(a, b) {
			t.Errorf("%s: an excluded column makes %v of %v", stability, b, a)
		}
	}
}

// Rows without a class fit the encoder and the weights and are pre-trained on, and of a
// tool without any class the first ones are healthy. None of them is counted.
func TestUnlabelledRows(t *testing.T) {
	tb := wearing(3, 40, []string{"A", "B"}, []string{"C", "D"})
	c, r := tableFitted(t, tb, quick())
	if want := (Bare{Rows: 80, Groups: 2, Healthy: 20}); r.Unlabelled == nil || *r.Unlabelled != want {
		t.Errorf("%+v, want %+v", r.Unlabelled, want)
	}
	if r.Rows != 80 || !slices.Equal(r.ClassCounts, []int{54, 26}) || len(r.Posterior) != 160 || r.Held.Rows != 80 {
		t.Errorf("%d rows, classes %v, %d posteriors, %d held", r.Rows, r.ClassCounts, len(r.Posterior), r.Held.Rows)
	}
	if r.Weights.Ended != 4 || len(r.Weights.Columns) != 2 {
		t.Errorf("weights %+v", r.Weights)
	}
	again, _ := tableFitted(t, tb, quick())
	if !bytes.Equal(bytesOf(t, c), bytesOf(t, again)) {
		t.Error("equal tables give two classifiers")
	}
	onDisk := *tb
	onDisk.Unlabelled.X = onDiskRows(tb.Unlabelled.X.(dbn.Matrix))
	if _, disk := tableFitted(t, &onDisk, quick()); *disk.Unlabelled != *r.Unlabelled || disk.Held.GMean < 0.8 {
		t.Errorf("on disk: %+v, G-mean %v", disk.Unlabelled, disk.Held.GMean)
	}
}

func TestEarlyWindows(t *testing.T) {
	for length, want := range map[int]int{3: 0, 8: 2, 60: 15, 120: 30, 500: 30} {
		tb := wearing(1, length, []string{"A"}, []string{"B"})
		if got := tb.whole().early(); got.rows != want || want > 0 && got.row(0) != 0 {
			t.Errorf("of %d windows %d are early, want %d", length, got.rows, want)
		}
	}
	// A tool of which some window has a class is not taken for healthy at first.
	tb := wearing(1, 40, []string{"A"}, []string{"B"})
	tb.Unlabelled.Groups = slices.Repeat([]string{"A"}, 40)
	if got := tb.whole().early(); got.rows != 0 {
		t.Errorf("%d windows of a tool with labels", got.rows)
	}
}

// A tool that is held out is held out whole, its rows without a class too, unless the
// settings are transductive: what these rows hold then changes nothing.
func TestHeldOutWhole(t *testing.T) {
	posteriors := func(spoilt, transductive bool) []float64 {
		t.Helper()
		tb := wearing(5, 24, []string{"A", "B", "C", "D"}, []string{"E"})
		for i := range tb.Unlabelled.Groups {
			if tb.Unlabelled.Groups[i] = "A"; spoilt {
				tb.Unlabelled.X.(dbn.Matrix).Row(i)[0] = 40
			}
		}
		s := quick()
		s.Transductive = transductive
		v, err := CrossValidateTable(t.Context(), tb, s, LeaveOneGroupOut(tb.Groups)[:1])
		if err != nil {
			t.Fatal(err)
		}
		return v.Posterior
	}
	if !slices.Equal(posteriors(false, false), posteriors(true, false)) {
		t.Error("a tool that is held out was learnt from")
	}
	if slices.Equal(posteriors(false, true), posteriors(true, true)) {
		t.Error("transductive settings learn nothing of the tool")
	}
}

// With few worn groups costs follow other rules, and weights decay faster. What the
// settings say themselves stays.
func TestFewWornGroups(t *testing.T) {
	for tools, decay := range map[int]float64{1: 4e-3, 2: 3e-3, 3: 3e-4} {
		names := []string{"A", "B", "C"}[:tools]
		tb := wearing(2, 30, names, nil)
		healthy := wearing(9, 30, []string{"H", "I"}, nil)
		for i, y := range healthy.Y {
			if y == 0 {
				x := tb.X.(dbn.Matrix)
				x.Data, x.Rows = append(x.Data, healthy.X.(dbn.Matrix).Row(i)...), x.Rows+1
				tb.X, tb.Y, tb.Groups = x, append(tb.Y, 0), append(tb.Groups, healthy.Groups[i])
			}
		}
		_, r := tableFitted(t, tb, quick())
		set := quick().withDefaults().settle(tb.Y, tb.Groups, 2, &Report{})
		if set.Network.FineTune.Decay != decay || set.Costs.priorAlone != (tools == 1) || set.Costs.Uncalibrated != (tools < 3) || (r.Costs.Rule == "") != (tools == 3) {
			t.Errorf("%d worn tools: decay %v, prior alone %v, uncalibrated %v, rule %q", tools, set.Network.FineTune.Decay, set.Costs.priorAlone, set.Costs.Uncalibrated, r.Costs.Rule)
		}
		kept, inverse := r.Costs.Choices[len(r.Costs.Choices)-1].Costs, InversePrior(r.ClassCounts)
		if tools == 1 && math.Abs(kept.cutOf()-inverse.cutOf()) > 1e-9 {
			t.Errorf("one worn tool: costs %v, the inverse prior is %v", kept, inverse)
		}
		own := quick()
		own.Network.FineTune.Decay = 1e-3
		if got := own.withDefaults().settle(tb.Y, tb.Groups, 2, &Report{}).Network.FineTune.Decay; got != 1e-3 {
			t.Errorf("%d worn tools: the decay that was asked for became %v", tools, got)
		}
	}
}

// Fit keeps the view that tells classes apart, the first if several do, and each view learns
// from the rows of the fold only.
func TestViews(t *testing.T) {
	tb := wearing(4, 24, []string{"A", "B", "C", "D"}, []string{"E"})
	x, more := tb.X.(dbn.Matrix), tb.Unlabelled.X.(dbn.Matrix)
	noise := func(m dbn.Matrix) dbn.Matrix {
		rng := rand.New(rand.NewPCG(8, 8))
		out := dbn.NewMatrix(m.Rows, m.Cols)
		for i := range out.Data {
			out.Data[i] = rng.Float32()
		}
		return out
	}
	held := ""
	plain := func(labelled, unlabelled []int) (dbn.Rows, dbn.Rows) {
		for _, i := range labelled {
			if tb.Groups[i] == held {
				t.Errorf("a view learns from row %d of tool %s, which is held out", i, held)
			}
		}
		return x, more
	}
	bad := func(_, _ []int) (dbn.Rows, dbn.Rows) { return noise(x), noise(more) }
	for _, tc := range []struct {
		views []View
		want  string
	}{
		{[]View{{Name: "plain", Rows: plain}, {Name: "noise", Rows: bad}}, "plain"},
		{[]View{{Name: "noise", Rows: bad}, {Name: "plain", Rows: plain}}, "plain"},
		{[]View{{Name: "plain", Rows: plain}, {Name: "the same", Rows: plain}}, "plain"},
	} {
		tb.Views, held = tc.views, ""
		c, r := tableFitted(t, tb, quick())
		if r.View != tc.want || len(r.Views) != 2 {
			t.Errorf("kept %q of %v", r.View, r.Views)
		}
		three := wearing(4, 24, []string{"A", "B", "C"}, []string{"E"})
		three.Views = []View{{Name: "noise", Rows: func(_, _ []int) (dbn.Rows, dbn.Rows) { return noise(three.X.(dbn.Matrix)), noise(more) }}, {Name: "plain", Rows: nil}}
		if _, r := tableFitted(t, three, quick()); r.View != "noise" || len(r.Views) > 0 {
			t.Errorf("three worn groups: %q was kept of %v, want the first untried", r.View, r.Views)
		}
		alone := *tb
		alone.Views = nil
		if want, _ := tableFitted(t, &alone, quick()); !bytes.Equal(bytesOf(t, c), bytesOf(t, want)) {
			t.Error("the view that was kept makes another classifier than alone")
		}
		held = "A"
		if _, err := CrossValidateTable(t.Context(), tb, quick(), LeaveOneGroupOut(tb.Groups)[:1]); err != nil {
			t.Error(err)
		}
	}
}

// Every view is scored on the tools that folds hold out, as if it were the only one, also
// where few tools have rows of a class; and the view that tells classes apart beats noise.
func TestScoreViews(t *testing.T) {
	tb := wearing(4, 24, []string{"A", "B", "C"}, nil)
	x := tb.X.(dbn.Matrix)
	rng := rand.New(rand.NewPCG(8, 8))
	noise := dbn.NewMatrix(x.Rows, x.Cols)
	for i := range noise.Data {
		noise.Data[i] = rng.Float32()
	}
	plainRows := func(_, _ []int) (dbn.Rows, dbn.Rows) { return x, nil }
	tb.Views = []View{{Name: "noise", Rows: func(_, _ []int) (dbn.Rows, dbn.Rows) { return noise, nil }}, {Name: "plain", Rows: plainRows}, {Name: "the same", Rows: plainRows}}
	folds := LeaveOneGroupOut(tb.Groups)
	var phases []int
	s := quick()
	s.Progress = func(_ string, done, total int) { phases = append(phases, done*100/total) }
	scores, err := ScoreViews(t.Context(), tb, s, folds)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(phases) || phases[len(phases)-1] != 100 {
		t.Errorf("progress %v", phases)
	}
	for v, got := range scores {
		alone := *tb
		alone.Views = tb.Views[v : v+1]
		want, err := CrossValidateTable(t.Context(), &alone, quick(), folds)
		if err != nil {
			t.Fatal(err)
		}
		var loss float64 // the tools have as many rows of a class as each other
		n := countClasses(tb.Y)
		for i, y := range tb.Y {
			loss -= math.Log(want.Posterior[2*i+y]) / float64(2*n[y])
		}
		if math.Abs(got.Loss-loss) > 1e-6 {
			t.Errorf("%s: loss %v, by hand %v", got.Name, got.Loss, loss)
		}
		for g, of := range got.Groups {
			if of.Group != want.Groups[g].Group || !slices.EqualFunc(of.Confusion, want.Groups[g].Confusion, slices.Equal) || len(of.Loss) != 2 {
				t.Errorf("%s: tool %+v, alone %+v", got.Name, of, want.Groups[g])
			}
		}
	}
	if best := BestView(scores); best != 1 {
		t.Errorf("the best of %+v is %d, want 1", scores, best)
	}
	if best := BestView(scores[1:]); best != 0 {
		t.Errorf("of two that are the same the best is %d, want the first", best)
	}
}

// Networks that were kept are known by the rows without a class too.
func TestKeptWithUnlabelledRows(t *testing.T) {
	d := &drawer{kept: make(map[string][]byte), stop: func() {}}
	s := quick()
	s.Keep = d
	tb := wearing(6, 20, []string{"A", "B", "C"}, []string{"D"})
	want, _ := tableFitted(t, tb, s)
	trained := d.saved
	again, _ := tableFitted(t, tb, s)
	if d.saved != trained || !bytes.Equal(bytesOf(t, again), bytesOf(t, want)) {
		t.Errorf("%d networks were trained again", d.saved-trained)
	}
	tb.Unlabelled.X.(dbn.Matrix).Row(19)[1] += 0.5
	if _, _ = tableFitted(t, tb, s); d.saved != 2*trained {
		t.Errorf("of other rows %d networks were trained, want %d", d.saved-trained, trained)
	}
}

// Rows one after the other are what the two hold, wherever they are; places are those
// in the set.
func TestStackAndPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(1, 9).Draw(t, "a"), rapid.IntRange(1, 9).Draw(t, "b")
		m, n := dbn.NewMatrix(a, 2), dbn.NewMatrix(b, 2)
		for i := range m.Data {
			m.Data[i] = float32(i)
		}
		for i := range n.Data {
			n.Data[i] = float32(100 + i)
		}
		want := slices.Concat(m.Data, n.Data)
		for _, rows := range []dbn.Rows{stack(m, n), stack(onDiskRows(m), n), stack(m, onDiskRows(n))} {
			from := rapid.IntRange(0, a+b-1).Draw(t, "from")
			count := rapid.IntRange(1, a+b-from).Draw(t, "count")
			got := make([]float32, 2*count)
			if err := rows.ReadRows(got, from); err != nil || !slices.Equal(got, want[2*from:2*(from+count)]) {
				t.Fatalf("rows from %d: %v, %v", from, got, err)
			}
		}
		all := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 1, 20, rapid.ID).Draw(t, "set")
		slices.Sort(all)
		var some, places []int
		for i, row := range all {
			if rapid.Bool().Draw(t, fmt.Sprint(row)) {
				some, places = append(some, row), append(places, i)
			}
		}
		if got := setOf(all).placesOf(setOf(some)).list(); !slices.Equal(got, places) && len(places) > 0 {
			t.Fatalf("places %v, want %v", got, places)
		}
	})
}

// With two worn groups, rows far beyond the limit are not fine-tuned on: what they hold
// then only matters to the encoder and to pre-training, and they are judged and counted
// like all others. With three, and where a class would lose all rows, they are learnt
// from.
func TestFarRows(t *testing.T) {
	for _, tc := range []struct {
		tools []string
		all   bool // rows of the class are worn far beyond the limit
		used  bool
	}{
		{[]string{"A", "B"}, false, false},
		{[]string{"A", "B"}, true, true},
		{[]string{"A", "B", "C"}, false, true},
	} {
		tb := wearing(7, 30, tc.tools, nil)
		tb.Ordered = false // so that no rows are put where wear jumps
		tb.Wear = make([]float64, len(tb.Y))
		for i, y := range tb.Y {
			if tb.Wear[i] = 0.99; y == 1 {
				tb.Wear[i] = 1.01
			}
			if y == 1 && (tc.all || i%30 >= 25) {
				tb.Wear[i] = 1.6
			}
		}
		s := quick()
		s.Stability = StabilityOff
		s.Network.Pretrain.Epochs = -1
		c, r := tableFitted(t, tb, s)
		plain := *tb
		plain.Wear = nil
		other, _ := tableFitted(t, &plain, s)
		if same := bytes.Equal(bytesOf(t, c), bytesOf(t, other)); same != tc.used {
			t.Errorf("%d tools, all worn far beyond %v: the same network as with all rows: %v", len(tc.tools), tc.all, same)
		}
		if r.Rows != len(tb.Y) || r.Held.Rows != len(tb.Y) || !slices.Equal(r.ClassCounts, countClasses(tb.Y)) {
			t.Errorf("%d rows, %d held, classes %v: all are counted", r.Rows, r.Held.Rows, r.ClassCounts)
		}
	}
	tb := wearing(7, 30, []string{"A", "B"}, nil)
	tb.Wear = make([]float64, 3)
	if _, _, err := FitTable(t.Context(), tb, quick()); !errors.Is(err, ErrSize) {
		t.Errorf("wear of other rows: %v", err)
	}
	tb.Wear, tb.Y[0] = make([]float64, len(tb.Y)), 2
	if _, _, err := FitTable(t.Context(), tb, quick()); !errors.Is(err, errClasses) {
		t.Errorf("wear of three classes: %v", err)
	}
}
