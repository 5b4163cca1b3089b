package dbn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/kernel"
)

// exclusiveOr returns rows of two noisy values in [0, 1]; the class is whether
// exactly one of them is high, which no linear rule can tell.
func exclusiveOr(n int, rng *rand.Rand) (Matrix, []int) {
	x, y := NewMatrix(n, 2), make([]int, n)
	for i := range n {
		a, b := rng.IntN(2), rng.IntN(2)
		y[i] = a ^ b
		for j, bit := range []int{a, b} {
			x.Row(i)[j] = float32(min(max(float64(bit)*0.8+0.1+0.08*rng.NormFloat64(), 0), 1))
		}
	}
	return x, y
}

// standardise scales rows of exclusiveOr to a mean of about 0 and a standard
// deviation of about 1.
func standardise(x Matrix) Matrix {
	z := NewMatrix(x.Rows, x.Cols)
	for i, v := range x.Data {
		z.Data[i] = (v - 0.5) / 0.4
	}
	return z
}

func accuracy(n *Network, x Matrix, y []int) float64 {
	p := NewMatrix(x.Rows, n.Classes())
	n.PosteriorTo(p, x)
	right := 0
	for i, label := range y {
		best := 0
		for j, v := range p.Row(i) {
			if v > p.Row(i)[best] {
				best = j
			}
		}
		if best == label {
			right++
		}
	}
	return float64(right) / float64(len(y))
}

func TestTrainLearnsExclusiveOr(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := exclusiveOr(300, rng)
	unseen, classes := exclusiveOr(300, rng)
	// Small weights see almost no slope here, and the penalty would pull them to
	// zero before they grow; from pre-trained Bernoulli units it does not.
	free := FineTuneSettings{Rate: 0.03, Decay: -1}
	for name, s := range map[string]Settings{
		"defaults":        {},
		"gaussian":        {Visible: Gaussian, FineTune: free},
		"one layer, sgd":  {Hidden: []int{12}, FineTune: FineTuneSettings{Method: "sgd", Rate: 1, Decay: -1}},
		"no pre-training": {Pretrain: PretrainSettings{Epochs: -1}, FineTune: free},
		"CD-3, weighted":  {Pretrain: PretrainSettings{Steps: 3}, ClassWeights: []float64{1, 3}, FineTune: free},
	} {
		t.Run(name, func(t *testing.T) {
			x, unseen := x, unseen
			if s.Visible == Gaussian {
				x, unseen = standardise(x), standardise(unseen)
			}
			n, h, err := Train(context.Background(), x, y, 2, s)
			if err != nil {
				t.Fatal(err)
			}
			if got := accuracy(n, unseen, classes); got < 0.98 {
				t.Errorf("accuracy on unseen rows = %v", got)
			}
			if first, last := h.Loss[0], h.Loss[len(h.Loss)-1]; len(h.Loss) != 150 || last > first/4 {
				t.Errorf("loss %v in the first of %d epochs, %v in the last", first, len(h.Loss), last)
			}
		})
	}
}

// crossEntropy is Σ w[y]·(-ln P(y|x)) in float64, from the definition.
func crossEntropy(params [][]float64, widths []int, x [][]float64, y []int, w []float64) float64 {
	var loss float64
	for r, row := range x {
		values := row
		for l := range len(widths) - 1 {
			in, out := widths[l], widths[l+1]
			next := make([]float64, out)
			for j := range next {
				z := params[l][in*out+j]
				for i, v := range values {
					z += v * params[l][i*out+j]
				}
				if next[j] = z; l < len(widths)-2 {
					next[j] = 1 / (1 + math.Exp(-z))
				}
			}
			values = next
		}
		var sum float64
		for _, z := range values {
			sum += math.Exp(z)
		}
		loss += w[y[r]] * (math.Log(sum) - values[y[r]])
	}
	return loss
}

// TestBackpropagation holds every derivative to central differences of the
// float64 loss, whose own error is below 1e-9. What remains is the rounding of
// float32.
func TestBackpropagation(t *testing.T) {
	for _, classes := range []int{2, 4} {
		rng := rand.New(rand.NewPCG(3, uint64(classes)))
		widths := []int{5, 4, 3, classes}
		n := &Network{layers: randomLayers(5, widths[1:], rng)}
		var params [][]float64
		for _, l := range n.layers {
			var p []float64
			for i := range l.bias {
				l.bias[i] = float32(rng.NormFloat64())
			}
			for _, part := range [][]float32{l.weights.Data, l.bias} {
				for _, v := range part {
					p = append(p, float64(v))
				}
			}
			params = append(params, p)
		}
		var rows [][]float64
		var y []int
		for i := range 11 {
			row := make([]float64, 5)
			for j := range row {
				row[j] = float64(float32(rng.NormFloat64()))
			}
			rows, y = append(rows, row), append(y, i%classes)
		}
		weights := make([]float64, classes)
		for j := range weights {
			weights[j] = 1
		}
		weights[1] = 2.5

		b := newBackprop(n, len(rows), 1, weights)
		gradient, loss := b.gradient(matrixOf(rows), y, ordered(len(rows)))
		if want := crossEntropy(params, widths, rows, y, weights); math.Abs(loss-want) > 1e-5*want {
			t.Errorf("K=%d: loss %v, want %v", classes, loss, want)
		}
		for l := range params {
			g := append(append([]float32(nil), gradient[l].weights.Data...), gradient[l].bias...)
			for i, p := range params[l] {
				const d = 1e-5
				params[l][i] = p + d
				up := crossEntropy(params, widths, rows, y, weights)
				params[l][i] = p - d
				down := crossEntropy(params, widths, rows, y, weights)
				params[l][i] = p
				want := (up - down) / (2 * d)
				if math.Abs(float64(g[i])-want) > 4e-6 {
					t.Errorf("K=%d: layer %d, weight %d: derivative %v, want %v", classes, l, i, g[i], want)
				}
			}
		}
	}
}

// A row of weight 3 does to a step over all rows what three copies of it do.
func TestClassWeightsAreCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	x, y := exclusiveOr(60, rng)
	for i := range y {
		y[i] = min(y[i]+i%2, 2) // three classes
	}
	weights := []float64{1, 3, 2}
	copies := Matrix{Cols: x.Cols}
	var labels []int
	for i, label := range y {
		for range int(weights[label]) {
			copies.Rows++
			copies.Data = append(copies.Data, x.Row(i)...)
			labels = append(labels, label)
		}
	}
	for _, method := range []string{"adam", "sgd"} {
		s := Settings{
			Hidden:   []int{6},
			Pretrain: PretrainSettings{Epochs: -1},
			FineTune: FineTuneSettings{Method: method, Rate: 0.05, Epochs: 20, Batch: 1000},
		}
		repeated, _, err := Train(context.Background(), copies, labels, 3, s)
		if err != nil {
			t.Fatal(err)
		}
		s.ClassWeights = weights
		weighted, _, err := Train(context.Background(), x, y, 3, s)
		if err != nil {
			t.Fatal(err)
		}
		s.ClassWeights = []float64{10, 30, 20}
		scaled, _, err := Train(context.Background(), x, y, 3, s)
		if err != nil {
			t.Fatal(err)
		}
		s.ClassWeights = []float64{1, 1, 1}
		equal, _, err := Train(context.Background(), x, y, 3, s)
		if err != nil {
			t.Fatal(err)
		}
		if d := distance(weighted, repeated); d > 1e-4 {
			t.Errorf("%s: weights and copies differ by %v", method, d)
		}
		if d := distance(weighted, scaled); d > 1e-4 {
			t.Errorf("%s: weights and ten times the weights differ by %v", method, d)
		}
		if d := distance(weighted, equal); d < 1e-2 {
			t.Errorf("%s: weights change nothing", method)
		}
		s.ClassWeights = nil
		plain, _, err := Train(context.Background(), x, y, 3, s)
		if err != nil {
			t.Fatal(err)
		}
		if distance(plain, equal) != 0 {
			t.Errorf("%s: no weights and weights of 1 differ", method)
		}
	}
}

// distance is the largest difference between the weights of two networks.
func distance(a, b *Network) float64 {
	var d float64
	for i := range a.layers {
		for j, v := range a.layers[i].weights.Data {
			d = max(d, math.Abs(float64(v)-float64(b.layers[i].weights.Data[j])))
		}
	}
	return d
}

// The gradient of a batch of many shards and chunks is the sum of its
// parts' gradients.
func TestGradientOfManyShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	x, y := exclusiveOr(2600, rng)
	n := &Network{layers: randomLayers(x.Cols, []int{5, 2}, rng)}
	weights, order := []float64{1, 2}, ordered(x.Rows)
	sum, loss := newBackprop(n, x.Rows, 3, weights).gradient(x, y, order)
	small := newBackprop(n, 50, 1, weights)
	want := randomLayers(x.Cols, []int{5, 2}, rng)
	var wantLoss float64
	for l := range want {
		clear(want[l].weights.Data)
	}
	for from := 0; from < x.Rows; from += 50 {
		g, more := small.gradient(x, y, order[from:from+50])
		wantLoss += more
		for l := range g {
			kernel.AddRows(want[l].weights.Data, g[l].weights.Data)
			kernel.AddRows(want[l].bias, g[l].bias)
		}
	}
	if math.Abs(loss/wantLoss-1) > 1e-9 {
		t.Errorf("loss %v, want %v", loss, wantLoss)
	}
	for l := range want {
		for i, w := range append(want[l].weights.Data, want[l].bias...) {
			g := append(sum[l].weights.Data, sum[l].bias...)[i]
			if math.Abs(float64(g-w)) > 1e-3 {
				t.Errorf("layer %d, weight %d: derivative %v, want %v", l, i, g, w)
			}
		}
	}
}

func TestTrainIsDeterministic(t *testing.T) {
	x, y := exclusiveOr(1101, rand.New(rand.NewPCG(5, 1)))
	encode := func(seed uint64, procs, workers int) []byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		n, _, err := Train(context.Background(), x, y, 2, Settings{
			Seed: seed, Workers: workers,
			Pretrain: PretrainSettings{Epochs: 2, Batch: 250}, FineTune: FineTuneSettings{Epochs: 2, Batch: 400},
		})
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one := encode(7, 1, 1)
	for _, workers := range []int{1, 2, 3, 40} {
		for _, procs := range []int{1, 4} {
			if !bytes.Equal(one, encode(7, procs, workers)) {
				t.Errorf("equal seeds give other bytes with %d workers on %d processors", workers, procs)
			}
		}
	}
	if bytes.Equal(one, encode(8, 1, 1)) {
		t.Error("another seed gives the same bytes")
	}
}

func TestTrainStops(t *testing.T) {
	x, y := exclusiveOr(50, rand.New(rand.NewPCG(6, 1)))
	reason := errors.New("the shift is over")
	for _, phase := range []string{"pretrain", "finetune"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		calls := 0
		_, _, err := Train(ctx, x, y, 2, Settings{Progress: func(p string, done, total int) {
			if p == phase && done == 2 {
				cancel(reason)
				calls = 0
			}
			calls++
		}})
		if !errors.Is(err, reason) || calls != 1 {
			t.Errorf("%s: error %v after %d more epochs", phase, err, calls-1)
		}
	}
}

func TestTrainReportsProgress(t *testing.T) {
	x, y := exclusiveOr(20, rand.New(rand.NewPCG(7, 1)))
	var got []string
	_, h, err := Train(context.Background(), x, y, 2, Settings{
		Hidden:   []int{3, 2},
		Pretrain: PretrainSettings{Epochs: 2, Validation: x},
		FineTune: FineTuneSettings{Epochs: 3},
		Progress: func(phase string, done, total int) {
			got = append(got, phase[:1]+string(rune('0'+done))+"/"+string(rune('0'+total)))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "p1/4 p2/4 p3/4 p4/4 f1/3 f2/3 f3/3"; strings.Join(got, " ") != want {
		t.Errorf("progress %v, want %v", got, want)
	}
	if len(h.Pretrain) != 2 || len(h.Pretrain[1].ReconstructionError) != 2 || len(h.Pretrain[1].FreeEnergyGap) != 2 || len(h.Loss) != 3 {
		t.Errorf("history %+v", h)
	}
	if gap := h.Pretrain[0].FreeEnergyGap[1]; gap != 0 {
		t.Errorf("gap of the training rows to themselves = %v", gap)
	}
}

func TestTrainRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	good := [][]float64{{0, 1}, {1, 0}, {1, 1}}
	labels := []int{0, 1, 1}
	for name, tc := range map[string]struct {
		x       Matrix
		y       []int
		classes int
		s       Settings
		is      error
		text    string
	}{
		"nothing":               {Matrix{}, nil, 2, Settings{}, nil, "nothing to train on"},
		"no features":           {NewMatrix(3, 0), labels, 2, Settings{}, nil, "nothing to train on"},
		"short data":            {Matrix{3, 2, make([]float32, 5)}, labels, 2, Settings{}, nil, "5 values for 3 training rows of 2"},
		"NaN":                   {matrixOf([][]float64{{0, 1}, {1, nan}, {1, 1}}), labels, 2, Settings{}, errNotFinite, "row 1, feature 1"},
		"infinity":              {matrixOf([][]float64{{0, 1}, {inf, 0}, {1, 1}}), labels, 2, Settings{Visible: Gaussian}, errNotFinite, "row 1, feature 0"},
		"not in [0,1]":          {matrixOf([][]float64{{0, 1}, {1, 0}, {1, 1.5}}), labels, 2, Settings{}, nil, "row 2, feature 1: 1.5 is outside [0, 1]"},
		"one class":             {matrixOf(good), []int{1, 1, 1}, 2, Settings{}, errOneClass, "all 3 rows are of class 1"},
		"label too high":        {matrixOf(good), []int{0, 1, 2}, 2, Settings{}, nil, "row 2: label 2: must be from 0 to 1"},
		"label too low":         {matrixOf(good), []int{0, -1, 1}, 2, Settings{}, nil, "row 1: label -1"},
		"labels missing":        {matrixOf(good), []int{0, 1}, 2, Settings{}, nil, "2 labels for 3 rows"},
		"one class wanted":      {matrixOf(good), []int{0, 0, 0}, 1, Settings{}, nil, "1 classes"},
		"empty layer":           {matrixOf(good), labels, 2, Settings{Hidden: []int{3, 0}}, nil, "dbn: hidden: layer 2 has 0 units"},
		"unknown unit":          {matrixOf(good), labels, 2, Settings{Visible: "binary"}, nil, `dbn: visible: "binary"`},
		"unknown method":        {matrixOf(good), labels, 2, Settings{FineTune: FineTuneSettings{Method: "lbfgs"}}, nil, `dbn: fine_tune.optimizer: "lbfgs"`},
		"negative rate":         {matrixOf(good), labels, 2, Settings{FineTune: FineTuneSettings{Rate: -1}}, nil, "dbn: fine_tune.rate: -1"},
		"NaN rate":              {matrixOf(good), labels, 2, Settings{Pretrain: PretrainSettings{Rate: nan}}, nil, "dbn: pretrain.rate: NaN"},
		"momentum":              {matrixOf(good), labels, 2, Settings{Pretrain: PretrainSettings{Momentum: 1}}, nil, "dbn: pretrain.momentum: 1"},
		"NaN decay":             {matrixOf(good), labels, 2, Settings{FineTune: FineTuneSettings{Decay: nan}}, nil, "dbn: fine_tune.decay: NaN"},
		"negative epochs":       {matrixOf(good), labels, 2, Settings{FineTune: FineTuneSettings{Epochs: -1}}, nil, "dbn: fine_tune.epochs: -1"},
		"negative batch":        {matrixOf(good), labels, 2, Settings{Pretrain: PretrainSettings{Batch: -1}}, nil, "dbn: pretrain.batch: -1"},
		"negative steps":        {matrixOf(good), labels, 2, Settings{Pretrain: PretrainSettings{Steps: -1}}, nil, "dbn: pretrain.steps: -1"},
		"weights missing":       {matrixOf(good), labels, 2, Settings{ClassWeights: []float64{1}}, nil, "dbn: class_weights: 1 weights for 2 classes"},
		"weight NaN":            {matrixOf(good), labels, 2, Settings{ClassWeights: []float64{1, nan}}, nil, "dbn: class_weights: class 1: NaN"},
		"weights all zero":      {matrixOf(good), labels, 3, Settings{ClassWeights: []float64{0, 0, 1}}, nil, "weight zero"},
		"validation width":      {matrixOf(good), labels, 2, Settings{Pretrain: PretrainSettings{Validation: NewMatrix(1, 3)}}, nil, "validation rows of 3 features"},
		"validation NaN":        {matrixOf(good), labels, 2, Settings{Pretrain: PretrainSettings{Validation: matrixOf([][]float64{{0, nan}})}}, errNotFinite, "validation row 0, feature 1"},
		"diverges, fine-tuning": {matrixOf(good), labels, 2, Settings{FineTune: FineTuneSettings{Method: "sgd", Rate: 1e30}}, ErrDiverged, "fine-tuning, epoch"},
		"diverges, pre-training": {matrixOf([][]float64{{1e20, 0}, {0, -1e20}, {1e20, 1e20}}), labels, 2,
			Settings{Visible: Gaussian}, ErrDiverged, "pre-training layer 1, epoch"},
	} {
		t.Run(name, func(t *testing.T) {
			n, _, err := Train(context.Background(), tc.x, tc.y, tc.classes, tc.s)
			if err == nil || n != nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %q does not say %q", err, tc.text)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("error %q is not %q", err, tc.is)
			}
		})
	}
}

// A class may be absent from the rows of a fold.
func TestTrainWithAnAbsentClass(t *testing.T) {
	x, y := exclusiveOr(40, rand.New(rand.NewPCG(8, 1)))
	n, _, err := Train(context.Background(), x, y, 3, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	p := n.NewScorer().Posterior(x.Row(0))
	if len(p) != 3 || p[2] > 0.05 {
		t.Errorf("posteriors %v: the last class was never seen", p)
	}
}

// Benchmarks report the time of a row in one of several epochs.
const epochs = 4

func BenchmarkContrastiveDivergence(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := NewMatrix(5000, 196)
	for i := range x.Data {
		x.Data[i] = rng.Float32()
	}
	r := newRBM(x, 50, Bernoulli, rng)
	for b.Loop() {
		if _, err := trainAlone(r, x, PretrainSettings{Epochs: epochs, Batch: 100}, rng); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*x.Rows*epochs), "ns/row")
}

func BenchmarkFineTune(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := NewMatrix(1000, 112), make([]int, 1000)
	for i := range x.Data {
		x.Data[i] = rng.Float32()
	}
	for i := range y {
		y[i] = rng.IntN(2)
	}
	s := Settings{Pretrain: PretrainSettings{Epochs: -1}, FineTune: FineTuneSettings{Epochs: epochs}}
	for b.Loop() {
		if _, _, err := Train(context.Background(), x, y, 2, s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*x.Rows*epochs), "ns/row")
}

// What is pre-trained on decides the lowest weights before fine-tuning, and nothing
// else of the training sees it.
func TestPretrainOnOtherRows(t *testing.T) {
	x, y := exclusiveOr(200, rand.New(rand.NewPCG(1, 2)))
	more, _ := exclusiveOr(300, rand.New(rand.NewPCG(7, 8)))
	s := Settings{Hidden: []int{6}, Pretrain: PretrainSettings{Epochs: 3}, FineTune: FineTuneSettings{Epochs: 2}, Seed: 4}
	bytesOf := func(rows Rows) []byte {
		t.Helper()
		s := s
		s.Pretrain.Rows = rows
		n, _, err := Train(context.Background(), x, y, 2, s)
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	plain := bytesOf(nil)
	if !bytes.Equal(bytesOf(more), bytesOf(more)) {
		t.Error("equal rows to pre-train on give two networks")
	}
	if bytes.Equal(bytesOf(more), plain) {
		t.Error("pre-training on other rows changes nothing")
	}

	s.Pretrain.Rows = NewMatrix(5, x.Cols+1)
	if _, _, err := Train(context.Background(), x, y, 2, s); err == nil || !strings.Contains(err.Error(), "to pre-train on") {
		t.Errorf("rows of another width: %v", err)
	}
	bad := NewMatrix(5, x.Cols)
	bad.Data[3] = float32(math.NaN())
	s.Pretrain.Rows = bad
	if _, _, err := Train(context.Background(), x, y, 2, s); !errors.Is(err, errNotFinite) {
		t.Errorf("a missing value in rows to pre-train on: %v", err)
	}
}

func TestScaleInputs(t *testing.T) {
	x, y := exclusiveOr(200, rand.New(rand.NewPCG(1, 2)))
	n, _, err := Train(context.Background(), x, y, 2, Settings{Hidden: []int{6, 4}, Pretrain: PretrainSettings{Epochs: 3}, FineTune: FineTuneSettings{Epochs: 5}})
	if err != nil {
		t.Fatal(err)
	}
	w := make([]float64, x.Cols)
	scaled := NewMatrix(x.Rows, x.Cols)
	rng := rand.New(rand.NewPCG(9, 9))
	for j := range w {
		w[j] = 3 * rng.Float64()
	}
	w[0] = 0
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			scaled.Row(i)[j] = float32(float64(v) * w[j])
		}
	}
	want, got := NewMatrix(x.Rows, 2), NewMatrix(x.Rows, 2)
	n.PosteriorTo(want, scaled)
	n.ScaleInputs(w).PosteriorTo(got, x)
	for i, p := range want.Data {
		if math.Abs(float64(p-got.Data[i])) > 1e-5 {
			t.Fatalf("posterior %d: %v of scaled rows, %v of a scaled network", i, p, got.Data[i])
		}
	}
}

func TestWidenInputs(t *testing.T) {
	x, y := exclusiveOr(200, rand.New(rand.NewPCG(1, 2)))
	n, _, err := Train(context.Background(), x, y, 2, Settings{Hidden: []int{6, 4}, Pretrain: PretrainSettings{Epochs: 3}, FineTune: FineTuneSettings{Epochs: 5}})
	if err != nil {
		t.Fatal(err)
	}
	places := []int{1, 4}
	wide := NewMatrix(x.Rows, 6)
	rng := rand.New(rand.NewPCG(9, 9))
	for i := range x.Rows {
		for j := range wide.Row(i) {
			wide.Row(i)[j] = 1e6 * rng.Float32()
		}
		for j, at := range places {
			wide.Row(i)[at] = x.Row(i)[j]
		}
	}
	want, got := NewMatrix(x.Rows, 2), NewMatrix(x.Rows, 2)
	n.PosteriorTo(want, x)
	n.WidenInputs(6, places).PosteriorTo(got, wide)
	if !slices.Equal(want.Data, got.Data) {
		t.Error("a wider network says something else")
	}
}

// States of a training, and the networks that pkg/classify keeps, are known by
// how fmt prints Settings. A field that moves or changes its name makes all that
// older versions kept useless.
func TestSettingsKeepTheirText(t *testing.T) {
	want := "{Hidden:[3] Visible:gaussian " +
		"Pretrain:{Epochs:1 Batch:2 Steps:3 Rate:0.4 Momentum:0.5 Decay:0.6 Persistent:true Sparsity:0.7 SparsityCost:0.8 Rows:<nil> Validation:{Rows:0 Cols:0 Data:[]}} " +
		"FineTune:{Epochs:1 Batch:2 Rate:0.3 Decay:0.4 Method:sgd Momentum:0.5 Validation:{Rows:0 Cols:0 Data:[]} Labels:[] Patience:6} " +
		"ClassWeights:[1 2] Seed:7 Workers:8 Progress:<nil> Checkpoint:<nil> Resume:[]}"
	got := fmt.Sprintf("%+v", Settings{
		Hidden: []int{3}, Visible: Gaussian,
		Pretrain:     PretrainSettings{Epochs: 1, Batch: 2, Steps: 3, Rate: 0.4, Momentum: 0.5, Decay: 0.6, Persistent: true, Sparsity: 0.7, SparsityCost: 0.8},
		FineTune:     FineTuneSettings{Epochs: 1, Batch: 2, Rate: 0.3, Decay: 0.4, Method: "sgd", Momentum: 0.5, Patience: 6},
		ClassWeights: []float64{1, 2}, Seed: 7, Workers: 8,
	})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
