//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/flank-tcm/flank/internal/kernel"
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

// timed returns what one run takes.
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
