//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/jade"
)

// work answers requests: this program as a peer. What was asked for is kept, so
// that a request made again finds its data.
func work(in io.Reader, out io.Writer) error {
	makers := map[string]func(of string) (task, error){
		"gemm":   newGemm,
		"gonum":  newGonum,
		"train":  newTraining,
		"pair":   newPairSearch,
		"scan":   newScan,
		"online": newOnline,
	}
	made := map[string]task{}
	answer := func(request string) (any, error) {
		if request == "version" {
			return "kernel family " + kernel.Family(), nil
		}
		if made[request] == nil {
			name, of, _ := strings.Cut(request, " ")
			if makers[name] == nil {
				return nil, errors.New("unknown request")
			}
			run, err := makers[name](of)
			if err == nil {
				_, err = run()
			}
			if err != nil {
				return nil, err
			}
			made[request] = run
		}
		return made[request]()
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text, err := answer(lines.Text())
		if err != nil {
			text = fmt.Sprintf("error: %v", err)
		}
		fmt.Fprintln(out, text)
	}
	return lines.Err()
}

// task is something to be timed, ready to run again and again.
type task func() (seconds, error)

// seconds is an answer: the seconds of the clock, and the seconds that the processor spent
// on this process.
type seconds struct{ wall, cpu float64 }

func (s seconds) String() string { return fmt.Sprintf("%.9f %.9f", s.wall, s.cpu) }

func timed(run func()) seconds {
	start, cpu := time.Now(), processorSeconds()
	run()
	return seconds{time.Since(start).Seconds(), processorSeconds() - cpu}
}

// best returns the least that one of several short trials takes: one that
// nothing interrupted.
func best(trials int, run func()) seconds {
	least := seconds{math.Inf(1), math.Inf(1)}
	for range trials {
		t := timed(run)
		least = seconds{min(least.wall, t.wall), min(least.cpu, t.cpu)}
	}
	return least
}

// processorSeconds returns what this process has used so far.
func processorSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic("bench: processor time: " + err.Error())
	}
	return time.Duration(t.Nano()).Seconds()
}

// product is what "gemm nn|nt|tn m n k repetitions trials" asks for: C, m×n, of A and B
// as they lie or transposed.
type product struct {
	op                  string
	m, n, k             int
	repetitions, trials int
	a, b, c             []float32
}

func parseProduct(of string) (*product, error) {
	p := &product{}
	if _, err := fmt.Sscan(of, &p.op, &p.m, &p.n, &p.k, &p.repetitions, &p.trials); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	p.a, p.b, p.c = randoms(rng, p.m*p.k), randoms(rng, p.k*p.n), make([]float32, p.m*p.n)
	return p, nil
}

func (p *product) task(multiply func()) task {
	return func() (seconds, error) {
		return best(p.trials, func() {
			for range p.repetitions {
				multiply()
			}
		}), nil
	}
}

func randoms(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = rng.Float32() - 0.5
	}
	return x
}

func newGemm(of string) (task, error) {
	p, err := parseProduct(of)
	if err != nil {
		return nil, err
	}
	op := map[string]kernel.Op{"nn": 0, "nt": kernel.TransB, "tn": kernel.TransA}[p.op]
	return p.task(func() { kernel.Gemm(op, p.m, p.n, p.k, p.a, p.b, nil, p.c) }), nil
}

func newGonum(of string) (task, error) {
	p, err := parseProduct(of)
	if err != nil {
		return nil, err
	}
	ta, tb := blas.NoTrans, blas.NoTrans
	a := blas32.General{Rows: p.m, Cols: p.k, Stride: p.k, Data: p.a}
	b := blas32.General{Rows: p.k, Cols: p.n, Stride: p.n, Data: p.b}
	switch p.op {
	case "tn":
		ta, a = blas.Trans, blas32.General{Rows: p.k, Cols: p.m, Stride: p.m, Data: p.a}
	case "nt":
		tb, b = blas.Trans, blas32.General{Rows: p.n, Cols: p.k, Stride: p.k, Data: p.b}
	}
	c := blas32.General{Rows: p.m, Cols: p.n, Stride: p.n, Data: p.c}
	return p.task(func() { blas32.Gemm(ta, tb, 1, a, b, 0, c) }), nil
}

// newTraining makes a task of "train pretrain|finetune rows inputs hidden batch
// workers trials": the best of so many epochs of CD-1, or of fine-tuning with Adam
// a network for two classes. Training is held up between two epochs until the next
// is asked for.
func newTraining(of string) (task, error) {
	var phase string
	var rows, inputs, hidden, batch, workers, trials int
	if _, err := fmt.Sscan(of, &phase, &rows, &inputs, &hidden, &batch, &workers, &trials); err != nil {
		return nil, err
	}
	x, y := dbn.NewMatrix(rows, inputs), make([]int, rows)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range x.Data {
		x.Data[i] = rng.Float32()
	}
	for i := range y {
		y[i] = rng.IntN(2)
	}
	const forever = 1 << 20
	next, done := make(chan struct{}), make(chan error)
	s := dbn.Settings{
		Hidden: []int{hidden}, Workers: workers,
		Pretrain: dbn.PretrainSettings{Epochs: forever, Batch: batch},
		FineTune: dbn.FineTuneSettings{Epochs: forever, Batch: batch},
		Progress: func(string, int, int) {
			done <- nil
			<-next
		},
	}
	if phase == "finetune" {
		s.Pretrain.Epochs = -1
	}
	go func() {
		<-next
		_, _, err := dbn.Train(context.Background(), x, y, 2, s)
		done <- err
	}()
	return func() (seconds, error) {
		var err error
		t := best(trials, func() {
			if err == nil {
				next <- struct{}{}
				err = <-done
			}
		})
		return t, err
	}, nil
}

// newOnline makes a task of "online features repetitions trials": the decision
// and the score for one row of features. It fails if that allocates.
func newOnline(of string) (task, error) {
	var features, repetitions, trials int
	if _, err := fmt.Sscan(of, &features, &repetitions, &trials); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := dbn.NewMatrix(400, features), make([]int, 400)
	for i := range y {
		y[i] = i % 2
		for j := range features {
			x.Row(i)[j] = float32(rng.NormFloat64() + float64(y[i]))
		}
	}
	s := classify.Settings{}
	s.Network.Pretrain.Epochs, s.Network.FineTune.Epochs = 1, 1
	c, _, err := classify.Fit(context.Background(), x, y, nil, s)
	if err != nil {
		return nil, err
	}
	scorer, row := c.NewScorer(), x.Row(7)
	sum := 0.0
	return func() (seconds, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		t := best(trials, func() {
			for range repetitions {
				p := scorer.Posterior(row)
				sum += float64(c.Decide(p)) + c.Score(p)
			}
		})
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > 100 { // the runtime and the clock allocate as well
			return t, fmt.Errorf("%d allocations in %d decisions", n, repetitions*trials)
		}
		return t, nil
	}, nil
}

const generations, population = 100, 30 // of the search that is timed

// posteriors returns posteriors of n rows of k classes, each class half as
// frequent as the one before: a softmax of normal scores, 1.5 apart.
func posteriors(n, k int) (p []float64, y []int) {
	rng := rand.New(rand.NewPCG(1, uint64(k)))
	p, y = make([]float64, n*k), make([]int, n)
	for i := range y {
		label := 0
		for label < k-1 && rng.IntN(2) == 1 {
			label++
		}
		y[i] = label
		row, sum := p[i*k:(i+1)*k], 0.0
		for j := range row {
			z := rng.NormFloat64() - float64(j)*math.Ln2
			if j == label {
				z += 1.5
			}
			row[j] = math.Exp(z)
			sum += row[j]
		}
		for j := range row {
			row[j] = float64(float32(row[j] / sum))
		}
	}
	return p, y
}

// newPairSearch makes a task of "pair sort|jade|sweep n": for two classes, the
// sorting of odds with all that goes before it, the search on sorted odds, and
// the exact sweep over them.
func newPairSearch(of string) (task, error) {
	var part string
	var n int
	if _, err := fmt.Sscan(of, &part, &n); err != nil {
		return nil, err
	}
	p, y := posteriors(n, 2)
	sorted := func() *kernel.SortedOdds {
		var odds [2][]float64
		for k := range odds {
			odds[k] = make([]float64, 0, n)
		}
		for i, label := range y {
			odds[label] = append(odds[label], p[2*i+1]/p[2*i])
		}
		return kernel.NewSortedOdds(odds[0], odds[1])
	}
	pair := sorted()
	switch part {
	case "sort":
		return func() (seconds, error) { return timed(func() { sorted() }), nil }, nil
	case "sweep":
		return func() (seconds, error) { return timed(func() { pair.Best(30) }), nil }, nil
	case "jade":
		counts := []int{len(pair.Odds(0)), len(pair.Odds(1))}
		return func() (seconds, error) {
			return search(2, func(t []kernel.Tally, w [][]float64) {
				for i := range t {
					pair.Count(&t[i], w[i][0], w[i][1], true)
				}
			}, counts)
		}, nil
	}
	return nil, fmt.Errorf("no part %q", part)
}

// search times JADE on the G-mean with a soft tie-break.
func search(k int, count func([]kernel.Tally, [][]float64), counts []int) (seconds, error) {
	problem := jade.Problem{Lower: make([]float64, k), Upper: make([]float64, k)}
	for j := range problem.Upper {
		problem.Upper[j] = 1
	}
	tallies, weights := kernel.NewTallies(population, k), make([][]float64, population)
	for i := range weights {
		weights[i] = make([]float64, k)
	}
	problem.Evaluate = func(f []float64, costs [][]float64) {
		for i, c := range costs {
			for j, v := range c {
				weights[i][j] = 1 - v
			}
		}
		count(tallies[:len(costs)], weights[:len(costs)])
		for i := range f {
			hard, easy := 1.0, 1.0
			for j, right := range tallies[i].Right {
				hard *= float64(right) / float64(counts[j])
				easy *= tallies[i].Share[j]
			}
			f[i] = -math.Pow(hard, 1/float64(k)) - 1e-4*math.Pow(easy, 1/float64(k))
		}
	}
	var err error
	t := timed(func() {
		_, err = jade.Minimize(context.Background(), problem, jade.Settings{Population: population, Generations: generations, Stall: -1})
	})
	return t, err
}

// newScan makes a task of "scan naive|batched|sampled n k": one evaluation of
// one cost vector by the plain loop; of a whole generation; and the search on
// 50,000 rows of each class with its check on all rows.
func newScan(of string) (task, error) {
	var part string
	var n, k int
	if _, err := fmt.Sscan(of, &part, &n, &k); err != nil {
		return nil, err
	}
	p, y := posteriors(n, k)
	rng := rand.New(rand.NewPCG(2, 2))
	weights := make([][]float64, population)
	for i := range weights {
		for range k {
			weights[i] = append(weights[i], rng.Float64())
		}
	}
	if part == "naive" {
		return func() (seconds, error) {
			right := make([]int, k)
			return timed(func() { naive(right, p, y, weights[0]) }), nil
		}, nil
	}
	all := kernel.NewPosteriors(k, p, y, 0)
	tallies := kernel.NewTallies(population, k)
	if part == "batched" {
		return func() (seconds, error) { return timed(func() { all.Count(tallies, weights) }), nil }, nil
	}
	return func() (seconds, error) {
		var err error
		t := timed(func() {
			sample := kernel.NewPosteriors(k, p, y, 50_000)
			_, err = search(k, sample.Count, sample.Counts())
			kernel.NewPosteriors(k, p, y, 0).Count(tallies[:5], weights[:5])
		})
		return t, err
	}, nil
}

// naive counts the rows of each class that the weights w decide right.
func naive(right []int, p []float64, y []int, w []float64) {
	k := len(w)
	clear(right)
	for i, label := range y {
		best, most := 0, 0.0
		for j, v := range p[i*k : (i+1)*k] {
			if v *= w[j]; v > most {
				best, most = j, v
			}
		}
		if best == label {
			right[label]++
		}
	}
}
