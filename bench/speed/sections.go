//go:build unix

package main

import (
	"fmt"
	"math"

	"github.com/flank-tcm/flank/bench/study/stat"
)

// gemm: products, on one thread.
func (b *bench) gemm() error {
	b.printf("## Products\n\nGFLOP/s on one thread, C = A·B as rows × inner × columns; nt has B transposed, tn has A. × is our time by theirs.\n\n")
	b.printf("| shape | ours | OpenBLAS | × | ours, AVX2 | its Haswell kernels | × | ours, portable | gonum | × |\n|---|---|---|---|---|---|---|---|---|---|\n")
	const operations = 2e7
	var worst [3][2]float64 // by comparison; RBM shapes, then wide ones
	for _, s := range shapes {
		trials := max(3, min(40, int(4e8/s.operations())))
		request := s.request("gemm", operations, trials)
		slow := s.request("gemm", operations/10, max(1, trials/4))
		t, err := b.race(b.rounds,
			contender{ours, request}, contender{openBLAS, request},
			contender{oursAVX2, request}, contender{blasNarrow, request},
			contender{oursPortable, slow}, contender{oursPortable, s.request("gonum", operations/10, max(1, trials/4))})
		if err != nil {
			return err
		}
		b.printf("| %v |", s)
		for pair := range 3 {
			speed := func(i int) float64 {
				n := s.repetitions(operations)
				if pair == 2 {
					n = s.repetitions(operations / 10)
				}
				return s.operations() * float64(n) / t[wall].median(i) / 1e9
			}
			ratio := t[wall].ratio(2*pair, 2*pair+1)
			width := 0
			if s.wide {
				width = 1
			}
			worst[pair][width] = max(worst[pair][width], ratio)
			b.printf(" %.1f | %.1f | %.2f |", speed(2*pair), speed(2*pair+1), ratio)
		}
		b.printf("\n")
	}
	b.printf("\n")
	b.atMost("1. products at RBM shapes, the worst, of OpenBLAS's time", 1, worst[0][0])
	b.atMost("1. products 500 to 1024 wide, the worst", 1.25, worst[0][1])
	b.atMost("1. AVX2 by OpenBLAS's Haswell kernels, the worst", 1.2, max(worst[1][0], worst[1][1]))
	b.atMost("1. portable Go by gonum, RBM shapes, the worst", 1.2, worst[2][0])
	b.atMost("1. portable Go by gonum, 500 to 1024 wide, the worst", 1.2, worst[2][1])
	return nil
}

// training: one epoch, on one thread and on two.
func (b *bench) training() error {
	const shape, short = "100000 196 50 100", "10000 196 50 100"
	b.printf("## Training\n\nSeconds of an epoch of 100,000 × 196 rows in batches of 100, 50 hidden units; of the processor for one thread; of the clock, of 10,000 rows, where there are two.\n\n")
	b.printf("| | CD-1 | fine-tuning, Adam |\n|---|---|---|\n")
	row := func(name string, t [2]times, i int) {
		b.printf("| %s | %.3f | %.3f |\n", name, t[0].median(i), t[1].median(i))
	}
	flank := func(phase, shape, workers string) contender {
		return contender{ours, fmt.Sprintf("train %s %s %s 1", phase, shape, workers)}
	}
	torch := func(name, shape, threads string) contender {
		return contender{python, fmt.Sprintf("%s %s %s", name, shape, threads)}
	}
	var one, two [2]times // of a thread, of the processor; and by the clock
	for i, phase := range []string{"pretrain", "finetune"} {
		name := []string{"torch-cd1", "torch-finetune"}[i]
		contenders := []contender{flank(phase, shape, "1"), torch(name, shape, "1")}
		if i == 0 {
			contenders = append(contenders, torch("numpy-cd1", shape, "1"), torch("sklearn-cd1", shape, "1"))
		}
		alone, err := b.race(b.rounds, contenders...)
		if err != nil {
			return err
		}
		both, err := b.race(b.rounds, flank(phase, short, "1"), flank(phase, short, "2"), torch(name, short, "1"), torch(name, short, "2"))
		if err != nil {
			return err
		}
		one[i], two[i] = alone[cpu], both[wall]
	}
	row("ours, one thread, processor", one, 0)
	row("PyTorch, one thread, processor", one, 1)
	b.printf("| NumPy, processor | %.3f | |\n| scikit-learn (persistent CD), processor | %.3f | |\n", one[0].median(2), one[0].median(3))
	row("ours, one worker, clock", two, 0)
	row("ours, two workers, clock", two, 1)
	row("PyTorch, one thread, clock", two, 2)
	row("PyTorch, two threads, clock", two, 3)
	b.atMost("2. CD-1 epoch on one thread, of PyTorch's time (processor; on one thread)", 0.5, one[0].ratio(0, 1))
	b.atMost("2. the same by the clock, of the better of PyTorch's one and two threads", 0.5, max(two[0].ratio(0, 2), two[0].ratio(0, 3)))
	b.atMost("2. fine-tuning epoch on one thread, of PyTorch's time (processor; on one thread)", 0.2, one[1].ratio(0, 1))
	b.atMost("2. the same by the clock, of the better of PyTorch's one and two threads", 0.2, max(two[1].ratio(0, 2), two[1].ratio(0, 3)))
	return b.secondCore()
}

// secondCore: the gain from a second core, compared with OpenBLAS's at the three products
// of CD-1. The best of short trials counts, in which both cores were free.
func (b *bench) secondCore() error {
	const brief, trials = "1000 196 50 100", 500
	b.printf("\n| gain from the second core, best of many epochs of 1000 rows | |\n|---|---|\n")
	theirs := 0.0
	for _, s := range shapes[:3] {
		request := s.request("gemm", 2e7, 20)
		t, err := b.race(b.rounds, contender{openBLAS, request}, contender{openBLAS2, request})
		if err != nil {
			return err
		}
		gain := t[wall].least(0) / t[wall].least(1)
		b.printf("| OpenBLAS, %v | %.2f |\n", s, gain)
		theirs += gain / 3
	}
	least, most := math.Inf(1), 0.0
	for _, phase := range []string{"pretrain", "finetune"} {
		request := func(workers int) string { return fmt.Sprintf("train %s %s %d %d", phase, brief, workers, trials) }
		t, err := b.race(b.rounds, contender{ours, request(1)}, contender{ours, request(2)})
		if err != nil {
			return err
		}
		gain := t[wall].least(0) / t[wall].least(1)
		b.printf("| ours, %s | %.2f |\n", map[string]string{"pretrain": "CD-1", "finetune": "fine-tuning"}[phase], gain)
		least, most = min(least, gain), max(most, gain)
	}
	b.printf("\n")
	const what = "2. gain from the second core, the smaller of CD-1's and fine-tuning's, of OpenBLAS's at the products of CD-1 (mean)"
	if most > 2.1 {
		b.goal(false, what, "≥ 0.9×", "no telling: a gain of %.2f is more than two cores give, so other load decided", most)
	} else {
		b.atLeast(what, 0.9, least/theirs)
	}
	return nil
}

// costs: the search for costs.
func (b *bench) costs() error {
	const n = "14000000"
	b.printf("## Costs\n\n")
	flank := func(request string) contender { return contender{ours, request} }
	t, err := b.race(b.rounds, flank("pair sort "+n), flank("pair jade "+n), flank("pair sweep "+n),
		contender{python, "numpy-sweep " + n + " whole"}, contender{python, "numpy-sweep " + n + " sweep"})
	if err != nil {
		return err
	}
	const few, all = 90, population * (generations + 1)
	de, err := b.race(1, contender{python, fmt.Sprintf("scipy-de %s %d", n, few)})
	if err != nil {
		return err
	}
	search := t[cpu].median(0) + t[cpu].median(1)
	scipy := de[cpu].median(0) / few * all
	b.printf("Two classes, 14,000,000 posteriors, seconds of the processor, on one thread:\n\n| | |\n|---|---|\n")
	b.printf("| odds and sorting | %.2f |\n| JADE, 30 × 100, on sorted odds with the soft tie-break | %.3f |\n| exact sweep over sorted odds | %.3f |\n", t[cpu].median(0), t[cpu].median(1), t[cpu].median(2))
	b.printf("| NumPy: argsort, cumulative sums, argmax | %.2f |\n| NumPy: the last two alone | %.3f |\n", t[cpu].median(3), t[cpu].median(4))
	b.printf("| SciPy differential_evolution, %d evaluations measured (%.3f s each), %d extrapolated | %.0f |\n\n", few, de[cpu].median(0)/few, all, scipy)
	b.goal(search <= 3, "3. two classes, 1.4·10⁷ posteriors: sort and JADE 30 × 100", "≤ 3 s", "%.2f s of one processor", search)
	b.atLeast("3. SciPy's differential_evolution by that", 100, scipy/search)
	b.atMost("3. exact sweep with its sorting, of NumPy's time", 1, (t[cpu].median(0)+t[cpu].median(2))/t[cpu].median(3))
	b.atMost("3. exact sweep alone, of NumPy's on sorted odds", 1, t[cpu].ratio(2, 4))

	scan, err := b.race(b.rounds, flank("scan naive 1000000 10"), flank("scan batched 1000000 10"), flank("scan sampled 1000000 10"))
	if err != nil {
		return err
	}
	naive := scan[cpu].median(0) * all
	batched := scan[cpu].median(1) / population * all
	b.printf("Ten classes, 1,000,000 posteriors, JADE 30 × 100, seconds of the processor:\n\n| | |\n|---|---|\n")
	b.printf("| plain loop, %d times one evaluation | %.1f |\n| batched scan, all rows | %.2f |\n| search on 50,000 rows of each class, checked on all | %.2f |\n\n", all, naive, batched, scan[cpu].median(2))
	b.atLeast("3. ten classes: the plain loop by the batched scan", 15, naive/batched)
	b.atLeast("3. ten classes: the plain loop by sample and check", 15, naive/scan[cpu].median(2))
	return nil
}

// scale: the paper's training.
func (b *bench) scale() error {
	const rows, batch, paper = 13798690, 1000, 8697
	b.printf("## The paper's scale\n\n13,798,690 × 14 rows, 50 hidden units, batches of %d (the paper names no size); seconds of an epoch, medians of 3 after one that is not counted, and 100 epochs of pre-training and 300 of fine-tuning extrapolated from them. The paper took %d s on a GTX 980 and a Core i5. Where other programs take their share of the cores, the clock is worse than an idle machine's, and processor seconds by two are what it could reach.\n\n", batch, paper)
	b.printf("| | pre-training | fine-tuning | all, extrapolated |\n|---|---|---|---|\n")
	var sums [2]float64 // by the clock and of the processor
	var epochs [2][2]float64
	for i, phase := range []string{"pretrain", "finetune"} {
		t, err := b.race(1+3, contender{ours, fmt.Sprintf("train %s %d 14 50 %d 2 1", phase, rows, batch)})
		if err != nil {
			return err
		}
		for which := range epochs {
			epochs[which][i] = stat.Median(t[which][0][1:]) // in the first round data are made
			sums[which] += epochs[which][i] * []float64{100, 300}[i]
		}
	}
	b.printf("| two workers, clock | %.2f | %.2f | %.0f |\n", epochs[wall][0], epochs[wall][1], sums[wall])
	b.printf("| two workers, processor seconds by two | %.2f | %.2f | %.0f |\n\n", epochs[cpu][0]/2, epochs[cpu][1]/2, sums[cpu]/2)
	b.goal(sums[wall] <= paper/10.0, "4. the paper's training on two cores, by the clock, extrapolated from 3 epochs of each phase", fmt.Sprintf("≤ %.0f s", paper/10.0), "%.0f s", sums[wall])
	b.goal(sums[cpu]/2 <= paper/10.0, "4. the same, processor seconds of both workers by two", fmt.Sprintf("≤ %.0f s", paper/10.0), "%.0f s", sums[cpu]/2)
	return nil
}

// online: one decision.
func (b *bench) online() error {
	const repetitions = 100
	t, err := b.race(b.rounds, contender{ours, fmt.Sprintf("online 152 %d 50", repetitions)})
	if err != nil {
		return err
	}
	micro := t[wall].median(0) / repetitions * 1e6
	b.printf("## Online\n\nEncoding, network and costs for one row of 152 features, default settings: %.2f µs, no allocation.\n\n", micro)
	b.goal(micro <= 20, "5. features to decision, one window, without allocating", "≤ 20 µs", "%.2f µs", micro)
	return nil
}

// shape is a product to be timed, with the group of goals that it belongs to.
type shape struct {
	op      string
	m, n, k int
	wide    bool // a layer of 500 to 1024 units rather than of an RBM on features
	what    string
}

var shapes = []shape{
	{"nn", 100, 50, 196, false, "hidden units of a batch of 100"},
	{"nt", 100, 196, 50, false, "reconstruction"},
	{"tn", 196, 50, 200, false, "gradient"},
	{"nn", 128, 50, 196, false, ""},
	{"nn", 1024, 50, 196, false, ""},
	{"nn", 4096, 50, 196, false, ""},
	{"nn", 128, 200, 196, false, ""},
	{"nt", 128, 196, 200, false, ""},
	{"tn", 196, 200, 256, false, ""},
	{"nn", 1024, 200, 196, false, ""},
	{"nn", 4096, 200, 196, false, ""},
	{"nn", 128, 500, 500, true, ""},
	{"nt", 128, 500, 500, true, ""},
	{"tn", 500, 500, 256, true, ""},
	{"nn", 1024, 500, 500, true, ""},
	{"nn", 4096, 500, 500, true, ""},
	{"nn", 1024, 1024, 1024, true, ""},
}

func (s shape) String() string { return fmt.Sprintf("%s %d×%d×%d", s.op, s.m, s.k, s.n) }

// request asks for the given number of trials of at least so many
// floating-point operations each.
func (s shape) request(name string, operations float64, trials int) string {
	return fmt.Sprintf("%s %s %d %d %d %d %d", name, s.op, s.m, s.n, s.k, s.repetitions(operations), trials)
}

func (s shape) repetitions(operations float64) int { return max(1, int(operations/s.operations())) }

func (s shape) operations() float64 { return 2 * float64(s.m) * float64(s.n) * float64(s.k) }
