package classify

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
	"time"

	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/jade"
)

// clusters draws n rows of d features for each count in rows: class j around
// gap·j in every feature, with standard deviation 1.
func clusters(seed uint64, d int, gap float64, rows ...int) (dbn.Matrix, []int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var y []int
	for j, n := range rows {
		y = append(y, slices.Repeat([]int{j}, n)...)
	}
	rng.Shuffle(len(y), func(a, b int) { y[a], y[b] = y[b], y[a] })
	x := dbn.NewMatrix(len(y), d)
	for i, label := range y {
		for j := range d {
			x.Row(i)[j] = float32(gap*float64(label) + rng.NormFloat64())
		}
	}
	return x, y
}

// tools names n groups, the rows of each next to each other.
func tools(rows, n int) []string {
	groups := make([]string, rows)
	for i := range groups {
		groups[i] = fmt.Sprintf("T%02d", i*n/rows)
	}
	return groups
}

// quick settings learn the easy problems of these tests in milliseconds.
func quick() Settings {
	return Settings{
		Network: dbn.Settings{
			Hidden:   []int{6},
			Pretrain: dbn.PretrainSettings{Epochs: 5},
			FineTune: dbn.FineTuneSettings{Epochs: 40, Rate: 0.02},
		},
		Costs: CostSettings{Folds: 3, JADE: jade.Settings{Generations: 40}},
		Seed:  1,
	}
}

func fitted(t *testing.T, x dbn.Matrix, y []int, groups []string, s Settings) (*Classifier, *Report) {
	t.Helper()
	c, r, err := Fit(t.Context(), x, y, groups, s)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func choice(t *testing.T, r *Report, name string) Choice {
	t.Helper()
	i := slices.IndexFunc(r.Costs.Choices, func(c Choice) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no choice %q in %v", name, r.Costs.Choices)
	}
	return r.Costs.Choices[i]
}

// Two clusters four standard deviations apart in four features, 2:1, 150 rows:
// as easy as KEEL's iris0, on which anything below 0.98 is a defect.
func TestDefaultsOnAnEasyProblem(t *testing.T) {
	x, y := clusters(1, 4, 3, 100, 50)
	for _, encoding := range []Encoding{Standard, Bins} {
		s := Settings{Encoding: encoding, Seed: 3}
		v, err := crossValidate(t.Context(), x, y, nil, s, StratifiedKFold(y, 3, rand.New(rand.NewPCG(1, 0))))
		if err != nil {
			t.Fatal(err)
		}
		if v.Pooled.GMean < 0.98 || v.Pooled.AUC < 0.99 {
			t.Errorf("%s: G-mean %v, AUC %v", encoding, v.Pooled.GMean, v.Pooled.AUC)
		}
	}
}

// With labels dealt out at random there is nothing to learn. What looks better
// has seen its test rows.
func TestPermutedLabels(t *testing.T) {
	x, y := clusters(2, 5, 3, 160, 40)
	rand.New(rand.NewPCG(8, 0)).Shuffle(len(y), func(a, b int) { y[a], y[b] = y[b], y[a] })
	v, err := crossValidate(t.Context(), x, y, nil, quick(), StratifiedKFold(y, 5, rand.New(rand.NewPCG(1, 0))))
	if err != nil {
		t.Fatal(err)
	}
	if v.Pooled.AUC < 0.35 || v.Pooled.AUC > 0.65 || v.Pooled.GMean > 0.65 {
		t.Errorf("G-mean %v, AUC %v on labels without meaning", v.Pooled.GMean, v.Pooled.AUC)
	}
}

// Costs do what they are for: on overlapping, imbalanced classes the plain
// network misses the rare one.
func TestCostsFindTheRareClass(t *testing.T) {
	x, y := clusters(4, 2, 1.2, 380, 20)
	c, r := fitted(t, x, y, nil, quick())
	plain, kept, exact := choice(t, r, "argmax"), choice(t, r, "kept"), choice(t, r, "exact")
	if plain.GMean > 0.5 || kept.GMean < 0.7 {
		t.Errorf("G-mean %v by argmax, %v with costs", plain.GMean, kept.GMean)
	}
	for _, other := range r.Costs.Choices {
		if other.GMean > exact.GMean+1e-12 {
			t.Errorf("%s has G-mean %v, above the optimum %v", other.Name, other.GMean, exact.GMean)
		}
	}
	if !slices.Equal(kept.Costs, c.Costs()) || kept.GMean != float64(r.Held.GMean) || r.Held.Rows != 400 {
		t.Errorf("the classifier has costs %v, the report %v and %v", c.Costs(), kept, r.Held)
	}
	if p := r.Costs.Plateau; !(p[0] < p[1] && p[1] < 0.5) || !(r.Costs.Kept > 0 && r.Costs.Kept < 0.5) {
		t.Errorf("plateau %v, kept threshold %v: want both below a half", p, r.Costs.Kept)
	}
	if r.Costs.Posteriors != "out-of-fold by row" || r.Costs.Folds != 3 || r.Costs.NearConstant || len(r.Warnings) > 0 {
		t.Errorf("report %+v, warnings %v", r.Costs, r.Warnings)
	}
	if !slices.Equal(r.ClassCounts, []int{380, 20}) || r.Rows != 400 || r.Columns != 2 || r.Inputs != 2 {
		t.Errorf("report %+v", r)
	}
}

func TestCostSettings(t *testing.T) {
	x, y := clusters(4, 2, 1.2, 280, 20)
	s := quick()
	s.Costs.Unmixed = true
	c, r := fitted(t, x, y, nil, s)
	if want := choice(t, r, "smoothed").Costs; !slices.Equal(c.Costs(), want) {
		t.Errorf("unmixed costs %v, want the smoothed optimum %v", c.Costs(), want)
	}
	s.Costs.Fitness = Raw
	c, r = fitted(t, x, y, nil, s)
	if want := choice(t, r, "exact").Costs; !slices.Equal(c.Costs(), want) {
		t.Errorf("raw unmixed costs %v, want the exact optimum %v", c.Costs(), want)
	}
	s.Costs = CostSettings{Posteriors: Training}
	c, r = fitted(t, x, y, nil, s)
	if r.Costs.Posteriors != "training" || r.Costs.Folds != 0 || r.Held.GMean != r.Training.GMean {
		t.Errorf("report %+v", r.Costs)
	}
	mix := (choice(t, r, "smoothed").Costs.cutOf() + choice(t, r, "inverse_prior").Costs.cutOf()) / 2
	if got := c.Costs().cutOf(); math.Abs(got-mix) > 1e-6 {
		t.Errorf("kept cut %v, want half-way, %v", got, mix)
	}
	// 20 rows of the rarest class go a fifth of the way past an inverse prior
	// that counts for 80, as it does by default with a committee.
	for _, encoding := range []Encoding{Standard, Committee} {
		s.Encoding = encoding
		if encoding == Standard {
			s.Costs.PriorRows = 80
		}
		c, r = fitted(t, x, y, nil, s)
		mix = 0.2*choice(t, r, "smoothed").Costs.cutOf() + 0.8*choice(t, r, "inverse_prior").Costs.cutOf()
		if got := c.Costs().cutOf(); math.Abs(got-mix) > 1e-6 {
			t.Errorf("%s: kept cut %v, want %v", encoding, got, mix)
		}
		s.Costs.PriorRows = 0
	}
}

// A balanced network is one trained with the weights that the classes' numbers
// give, whose posteriors are then as if all rows had counted alike.
func TestBalance(t *testing.T) {
	x, y := clusters(4, 2, 1.2, 270, 30)
	s := quick()
	s.Costs = CostSettings{Posteriors: Training, Uncalibrated: true}
	s.Network.ClassWeights = []float64{math.Sqrt(300. / 270), math.Sqrt(300. / 30)}
	weighed, _ := fitted(t, x, y, nil, s)
	s.Network.ClassWeights, s.Balance = nil, 0.5
	balanced, _ := fitted(t, x, y, nil, s)
	odds := func(c *Classifier, i int) float64 {
		p := c.NewScorer().Posterior(x.Row(i))
		return math.Log(p[1] / p[0])
	}
	for i := range y {
		if got, want := odds(balanced, i), odds(weighed, i)-math.Log(3); math.Abs(got-want) > 1e-4*(1+math.Abs(want)) {
			t.Fatalf("row %d: log odds %v, want ln 3 less than the weighed network's, %v", i, got, want)
		}
	}
	// With a committee it is a default, which -1 undoes.
	s = quick()
	s.Encoding = Committee
	byDefault, _ := fitted(t, x, y, nil, s)
	s.Balance = 0.5
	half, _ := fitted(t, x, y, nil, s)
	s.Balance = -1
	none, _ := fitted(t, x, y, nil, s)
	if odds(byDefault, 0) != odds(half, 0) || odds(half, 0) == odds(none, 0) {
		t.Error("a committee is not balanced half-way by default, or always")
	}
}

func TestThreeClasses(t *testing.T) {
	x, y := clusters(5, 3, 2.5, 120, 60, 24)
	s := quick()
	v, err := crossValidate(t.Context(), x, y, nil, s, StratifiedKFold(y, 3, rand.New(rand.NewPCG(1, 0))))
	if err != nil {
		t.Fatal(err)
	}
	if v.Classes != 3 || v.Pooled.GMean < 0.9 || len(v.Pooled.Confusion) != 3 {
		t.Errorf("G-mean %v of %d classes: %v", v.Pooled.GMean, v.Classes, v.Pooled.Confusion)
	}
	r := v.Reports[0]
	if !math.IsNaN(float64(r.Costs.Kept)) || strings.Contains(mustJSON(t, r), "NaN") {
		t.Errorf("threshold %v of three classes", r.Costs.Kept)
	}
}

func TestCostsOutOfFoldByGroup(t *testing.T) {
	x, y := clusters(6, 2, 3, 120, 40)
	_, r := fitted(t, x, y, tools(160, 8), quick())
	if r.Costs.Posteriors != "out-of-fold by group" || r.Costs.Folds != 3 || r.Groups != 8 {
		t.Errorf("costs on %s posteriors of %d folds and %d groups", r.Costs.Posteriors, r.Costs.Folds, r.Groups)
	}
	_, r = fitted(t, x, y, tools(160, 2), quick())
	if r.Costs.Posteriors != "out-of-fold by group" || r.Costs.Folds != 2 {
		t.Errorf("costs on %s posteriors of %d folds of two groups", r.Costs.Posteriors, r.Costs.Folds)
	}
}

func TestWarnings(t *testing.T) {
	x, y := clusters(7, 2, 3, 60, 20)
	groups := slices.Repeat([]string{"T1"}, 80)
	for i, label := range y {
		if label == Healthy && i%2 == 0 {
			groups[i] = "T2"
		}
	}
	few := slices.Clone(y)
	faulty := 0
	for i, label := range few {
		if faulty += label; label == Faulty && faulty > 2 {
			few[i] = Healthy
		}
	}
	lazy := quick()
	lazy.Network.Pretrain.Epochs = -1
	lazy.Network.FineTune = dbn.FineTuneSettings{Method: "sgd", Epochs: 1, Rate: 1e-6}
	for name, tc := range map[string]struct {
		y          []int
		groups     []string
		s          Settings
		posteriors string
		want       string
	}{
		"a class of one group":             {y, groups, quick(), "out-of-fold by row", `class 1 occurs in group "T1" only`},
		"a class smaller than the folds":   {few, nil, quick(), "out-of-fold by row", "class 1 has 2 rows, fewer than the 3 folds"},
		"a network that has hardly learnt": {y, nil, lazy, "training", "near constant"},
	} {
		c, r := fitted(t, x, tc.y, tc.groups, tc.s)
		if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, tc.want) }) {
			t.Errorf("%s: warnings %q, want one that says %q", name, r.Warnings, tc.want)
		}
		if r.Costs.Posteriors != tc.posteriors {
			t.Errorf("%s: costs on %q posteriors, want %q", name, r.Costs.Posteriors, tc.posteriors)
		}
		if r.Costs.NearConstant && !slices.Equal(c.Costs(), choice(t, r, "smoothed").Costs) {
			t.Errorf("%s: costs %v are not the optimum on training posteriors", name, c.Costs())
		}
	}
}

func TestMissingAndConstantColumns(t *testing.T) {
	x, y := clusters(8, 4, 3, 60, 30)
	for i := range x.Rows {
		x.Row(i)[1] = 5
		x.Row(i)[2] = nan
		if i%9 == 0 {
			x.Row(i)[0] = nan
		}
	}
	c, r := fitted(t, x, y, nil, quick())
	if r.Imputed != 90+10 || !slices.Equal(r.Constant, []int{1, 2}) || !slices.Equal(r.Empty, []int{2}) {
		t.Errorf("%d cells imputed, constant %v, empty %v", r.Imputed, r.Constant, r.Empty)
	}
	if r.Training.GMean < 0.85 {
		t.Errorf("G-mean %v with two columns that say nothing", r.Training.GMean)
	}
	for _, row := range [][]float32{{nan, nan, nan, nan}, {float32(math.Inf(1)), 0, 0, 0}, {math.MaxFloat32, 0, 0, -math.MaxFloat32}} {
		p := c.NewScorer().Posterior(row)
		if sum := p[0] + p[1]; !(math.Abs(sum-1) < 1e-6) {
			t.Errorf("posterior %v of %v", p, row)
		}
	}
	useless := dbn.NewMatrix(40, 1)
	_, r = fitted(t, useless, y[:40], nil, quick())
	if len(r.Warnings) == 0 || !r.Costs.NearConstant {
		t.Errorf("no warning of a table that says nothing: %+v", r)
	}
}

// Equal seeds give equal bytes for any number of workers, another seed gives
// others.
func TestDeterminism(t *testing.T) {
	x, y := clusters(9, 3, 2, 90, 30)
	groups := tools(120, 6)
	s := quick()
	s.Network.FineTune.Epochs = 10
	folds := LeaveOneGroupOut(groups)
	var first []byte
	var validation *Validation
	for _, workers := range []int{1, 2, 7} {
		s.Workers = workers
		c, _ := fitted(t, x, y, groups, s)
		b, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := crossValidate(t.Context(), x, y, groups, s, folds)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first, validation = b, v
		}
		if !slices.Equal(b, first) {
			t.Errorf("%d workers fit another classifier than 1", workers)
		}
		if !reflect.DeepEqual(v.Posterior, validation.Posterior) || !slices.Equal(v.Decision, validation.Decision) {
			t.Errorf("%d workers validate otherwise than 1", workers)
		}
	}
	s.Encoding = Committee
	first = nil
	for _, workers := range []int{1, 5} {
		s.Workers = workers
		c, _ := fitted(t, x, y, groups, s)
		b, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !slices.Equal(b, first) {
			t.Errorf("%d workers fit another committee than 1", workers)
		}
		first = b
	}
	s.Seed++
	c, _ := fitted(t, x, y, groups, s)
	if b, _ := c.AppendBinary(nil); slices.Equal(b, first) {
		t.Error("another seed fits the same classifier")
	}
}

// A row of absurd values that is held out changes nothing for the other rows of
// its fold: encoder, network and costs have not seen it.
func TestHeldOutRowsAreNotSeen(t *testing.T) {
	x, y := clusters(10, 3, 2, 60, 30)
	folds := StratifiedKFold(y, 3, rand.New(rand.NewPCG(1, 0)))[:1]
	for _, encoding := range encodings {
		s := quick()
		s.Encoding, s.Network.FineTune.Epochs = encoding, 5
		plain, err := crossValidate(t.Context(), x, y, nil, s, folds)
		if err != nil {
			t.Fatal(err)
		}
		marked := dbn.Matrix{Rows: x.Rows, Cols: x.Cols, Data: slices.Clone(x.Data)}
		marker := folds[0].Test[0]
		copy(marked.Row(marker), []float32{1e30, -1e30, 1e6})
		v, err := crossValidate(t.Context(), marked, y, nil, s, folds)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Rows {
			if p, q := plain.Posterior[2*i:2*i+2], v.Posterior[2*i:2*i+2]; i != marker && !slices.Equal(p, q) {
				t.Fatalf("%s: row %d has posterior %v, and %v where another row is marked", encoding, i, p, q)
			}
		}
		if plain.Posterior[2*marker] == v.Posterior[2*marker] {
			t.Errorf("%s: the marked row was not judged as it is", encoding)
		}
		if v.Fold[folds[0].Train[0]] != -1 || v.Decision[folds[0].Train[0]] != -1 || v.Pooled.Rows != len(folds[0].Test) {
			t.Errorf("%s: rows that no fold holds out are judged", encoding)
		}
	}
}

func TestCrossValidateByGroup(t *testing.T) {
	x, y := clusters(11, 3, 4, 90, 30)
	groups := tools(120, 4)
	for i, g := range groups {
		if g == "T03" { // a tool that never wore out
			y[i] = Healthy
			for j := range x.Cols {
				x.Row(i)[j] = float32(0.1 * float64(i%7))
			}
		}
	}
	v, err := crossValidate(t.Context(), x, y, groups, quick(), LeaveOneGroupOut(groups))
	if err != nil {
		t.Fatal(err)
	}
	rows, right := 0, 0
	for g, s := range v.Groups {
		if want := fmt.Sprintf("T%02d", g); s.Group != want || s.Rows != 30 {
			t.Errorf("group %d is %q with %d rows", g, s.Group, s.Rows)
		}
		rows += s.Rows
		right += s.Confusion.Right()
	}
	if rows != v.Pooled.Rows || right != v.Pooled.Confusion.Right() {
		t.Errorf("groups have %d rows, %d right; pooled %d and %d", rows, right, v.Pooled.Rows, v.Pooled.Confusion.Right())
	}
	if last := v.Groups[3]; !math.IsNaN(float64(last.GMean)) || math.IsNaN(float64(last.Specificity)) {
		t.Errorf("a tool without faulty rows: %+v", last)
	}
	for i := range y {
		p := v.Posterior[2*i : 2*i+2]
		if (v.Score[i] >= 0.5) != (v.Decision[i] == Faulty) || math.Abs(p[0]+p[1]-1) > 1e-6 {
			t.Fatalf("row %d: posterior %v, score %v, decision %d", i, p, v.Score[i], v.Decision[i])
		}
	}
}

func TestScorerDoesNotAllocate(t *testing.T) {
	x, y := clusters(12, 3, 2, 40, 20)
	for _, encoding := range encodings {
		s := quick()
		s.Encoding = encoding
		c, _ := fitted(t, x, y, nil, s)
		scorer := c.NewScorer()
		i := 0
		if n := testing.AllocsPerRun(100, func() {
			p := scorer.Posterior(x.Row(i % x.Rows))
			if (c.Score(p) >= 0.5) != (c.Decide(p) == Faulty) {
				t.Fatal("score and decision disagree")
			}
			i++
		}); n != 0 {
			t.Errorf("%s: %v allocations a row", encoding, n)
		}
	}
}

func TestProgressAndCancel(t *testing.T) {
	x, y := clusters(13, 2, 2, 40, 20)
	s := quick()
	last := 0
	s.Progress = func(phase string, done, total int) {
		if phase != "train" || done < last || done > total {
			t.Errorf("progress %s %d of %d after %d", phase, done, total, last)
		}
		if last = done; done == total {
			last = 0
		}
	}
	if fitted(t, x, y, nil, s); last != 0 {
		t.Errorf("progress ended at %d", last)
	}
	if _, err := crossValidate(t.Context(), x, y, nil, s, StratifiedKFold(y, 2, rand.New(rand.NewPCG(1, 0)))); err != nil || last != 0 {
		t.Errorf("error %v, progress ended at %d", err, last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Progress = func(string, int, int) { cancel() }
	if _, _, err := Fit(ctx, x, y, nil, s); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestFitErrors(t *testing.T) {
	x, y := clusters(14, 2, 2, 20, 10)
	inf := dbn.Matrix{Rows: 30, Cols: 2, Data: slices.Clone(x.Data)}
	inf.Row(7)[1] = float32(math.Inf(1))
	single := make([]int, 30)
	single[3] = 1
	with := func(change func(*Settings)) Settings {
		s := quick()
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		x      dbn.Matrix
		y      []int
		groups []string
		s      Settings
		want   error
		says   string
	}{
		"no rows":                 {dbn.Matrix{Cols: 2}, nil, nil, quick(), ErrSize, "nothing to fit"},
		"ragged":                  {dbn.Matrix{Rows: 30, Cols: 3, Data: x.Data}, y, nil, quick(), ErrSize, "60 values for 30 rows of 3"},
		"labels missing":          {x, y[1:], nil, quick(), ErrSize, "29 labels for 30 rows"},
		"groups missing":          {x, y, tools(29, 2), quick(), ErrSize, "29 groups for 30 rows"},
		"infinity":                {inf, y, nil, quick(), ErrNotFinite, "row 7, feature 1"},
		"negative label":          {x, append([]int{-1}, y[1:]...), nil, quick(), errClasses, "row 0: label -1"},
		"one class":               {x, make([]int, 30), nil, quick(), errClasses, "all 30 rows are of class 0"},
		"one class, and not 0":    {x, slices.Repeat([]int{1}, 30), nil, quick(), errClasses, "all 30 rows are of class 1"},
		"a gap in classes":        {x, append(slices.Repeat([]int{0}, 29), 2), nil, quick(), errClasses, "class 1 has no rows"},
		"a class with one row":    {x, single, nil, quick(), ErrTooFew, "class 1 has a single row"},
		"unknown encoding":        {x, y, nil, with(func(s *Settings) { s.Encoding = "onehot" }), ErrSettings, `network.encoding: "onehot"`},
		"negative bins":           {x, y, nil, with(func(s *Settings) { s.Bins = -1 }), ErrSettings, "network.bins: -1"},
		"unknown posteriors":      {x, y, nil, with(func(s *Settings) { s.Costs.Posteriors = "test" }), ErrSettings, `costs.posteriors: "test"`},
		"one fold":                {x, y, nil, with(func(s *Settings) { s.Costs.Folds = 1 }), ErrSettings, "costs.folds: 1"},
		"negative workers":        {x, y, nil, with(func(s *Settings) { s.Workers = -1 }), ErrSettings, "workers: -1"},
		"validation rows":         {x, y, nil, with(func(s *Settings) { s.Network.Pretrain.Validation = x }), ErrSettings, "leave them empty"},
		"negative prior rows":     {x, y, nil, with(func(s *Settings) { s.Costs.PriorRows = -1 }), ErrSettings, "costs.prior_rows: -1"},
		"balance beyond classes":  {x, y, nil, with(func(s *Settings) { s.Balance = 1.5 }), ErrSettings, "network.fine_tune.balance: 1.5"},
		"weighed twice":           {x, y, nil, with(func(s *Settings) { s.Balance, s.Network.ClassWeights = 1, []float64{1, 2} }), ErrSettings, "give one of them"},
		"unknown search":          {x, y, nil, with(func(s *Settings) { s.Costs.Search = "shade" }), ErrSettings, `costs.search: jade: variant "shade"`},
		"network without a layer": {x, y, nil, with(func(s *Settings) { s.Network.Hidden = []int{0} }), ErrSettings, "network.hidden: layer 1"},
	} {
		_, _, err := Fit(t.Context(), tc.x, tc.y, tc.groups, tc.s)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: Fit says %v, want %v that says %q", name, err, tc.want, tc.says)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "classify: ") {
			t.Errorf("%s: error %q does not say where it comes from", name, err)
		}
	}
	if _, err := crossValidate(t.Context(), x, y, tools(30, 2), quick(), nil); !errors.Is(err, ErrSize) {
		t.Errorf("no folds: %v", err)
	}
	pair := make([]int, 30)
	pair[3], pair[4] = 1, 1
	_, err := crossValidate(t.Context(), x, pair, nil, quick(), StratifiedKFold(pair, 2, rand.New(rand.NewPCG(1, 0))))
	if want := "classify: fold 1 of 2: class 1 has a single row"; !errors.Is(err, ErrTooFew) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a fold that leaves one row of a class: %v, want %q", err, want)
	}
	defer func() {
		if r := fmt.Sprint(recover()); !strings.HasPrefix(r, "classify: ") {
			t.Errorf("a row of the wrong width: panic %q", r)
		}
	}()
	c, _ := fitted(t, x, y, nil, quick())
	c.NewScorer().Posterior([]float32{1, 2, 3})
}

// Training posteriors need no second row of a class.
func TestTrainingPosteriorsOfASingleRow(t *testing.T) {
	x, y := clusters(14, 2, 4, 29, 1)
	s := quick()
	s.Costs.Posteriors = Training
	if _, r := fitted(t, x, y, nil, s); r.Costs.Posteriors != "training" {
		t.Errorf("costs on %q posteriors", r.Costs.Posteriors)
	}
}

func BenchmarkScorer(b *testing.B) {
	x, y := clusters(15, 152, 2, 40, 20)
	for _, encoding := range []Encoding{Standard, Bins} {
		s := quick()
		s.Encoding, s.Network.Hidden = encoding, []int{30, 30}
		c, _, err := Fit(b.Context(), x, y, nil, s)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(encoding), func(b *testing.B) {
			b.ReportAllocs()
			scorer := c.NewScorer()
			for b.Loop() {
				c.Score(scorer.Posterior(x.Row(0)))
			}
		})
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1e-12 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The error is the one of the lowest index that fails, also if a higher one fails first.
func TestParallelReturnsTheLowestError(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		failed := make(chan struct{})
		err := parallel(t.Context(), 8, workers, func(ctx context.Context, i int) error {
			switch {
			case i == 2 && workers > 1: // fails after 3, and must not be cut off by it
				<-failed
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(20 * time.Millisecond):
				}
			case i == 3:
				defer close(failed)
			case i < 2:
				return ctx.Err()
			}
			return fmt.Errorf("index %d", i)
		})
		if err == nil || err.Error() != "index 2" {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := parallel(ctx, 8, 4, func(ctx context.Context, _ int) error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// crossValidate is CrossValidateTable of rows with classes and groups.
func crossValidate(ctx context.Context, x dbn.Rows, y []int, groups []string, s Settings, folds []Fold) (*Validation, error) {
	return CrossValidateTable(ctx, &Table{X: x, Y: y, Groups: groups}, s, folds)
}
