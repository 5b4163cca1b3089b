package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/trend"
)

// robustValues is up to how many values, rows by columns by trials, sensors are made to read
// wrong: it takes about a minute of a processor then.
const robustValues = 2_000_000_000

// robustSeed is the stream of the seed that says when faults begin and what noise is.
const robustSeed = 0x726f62757374 // "robust"

// robust makes sensors read wrong in rows that were judged, and judges them again.
type robust struct {
	origins []signal.FeatureOrigin
	columns int
	plain   []float32 // rows by columns, before the reference
	of      *relative // what says which reference each row has
	parts   []robustPart
	clean   []float64 // by row: the score without any fault
	at      []int     // by row: its place among the rows of its tool
	length  []int     // by row: how many these are
	begin   []int     // by row: the place from which on its tool has faults
	last    []int     // by row: the row of its tool before that place, or its first one
	seed    uint64
	lives   func(score []float64) []card.Life
}

// robustPart is rows that were judged by one thing.
type robustPart struct {
	rows    []int // ascending
	spec    model.ReferenceSpec
	weights []float64 // of the columns
	score   scorer
	guard   *vote.Guard // nil: sensors that fail do not abstain
}

// scorer stores in dst how much speaks against healthy in each of some rows, given relative to
// the reference and before it; centers are the references of their tools.
type scorer func(dst []float64, relative, plain dbn.Matrix, centers [][]float32)

// byClassifier returns what scores by a classifier.
func byClassifier(c *classify.Classifier) scorer {
	return func(dst []float64, relative, _ dbn.Matrix, _ [][]float32) { c.ScoreTo(dst, relative) }
}

// beforeReference returns the rows as they are before the reference, and what says which
// reference each has; of is nil if they are not known any more.
func (t *rowTable) beforeReference() (plain []float32, of *relative) {
	if t.rel != nil {
		return t.Data, t.rel
	}
	return t.plain, t.was
}

// byWear returns what scores by the estimate of wear.
func byWear(m *trend.Model, v *model.WearVerdict) scorer {
	equal := make(classify.CostVector, 2)
	return func(dst []float64, _, plain dbn.Matrix, centers [][]float32) {
		for n := range dst {
			dst[n] = equal.Score(posteriorByWear(m, v, plain.Row(n), centers[n]))
		}
	}
}

// posteriorByWear returns what the estimate of wear says of a row that is given before the reference, whose center
// is given too.
func posteriorByWear(m *trend.Model, v *model.WearVerdict, row, center []float32) []float64 {
	root, _ := m.Root(row, center)
	p := v.Faulty(root)
	return []float64{1 - p, p}
}

// robustness says what sensors that read wrong do on the tools held out.
func (j *Job) robustness(ctx context.Context, rows rowTable, m *model.Model, v *validated) (*card.Robustness, error) {
	if v == nil {
		remedy := "label more worn tools"
		if j.Config.Evaluate.ByTool == "off" {
			remedy = "set evaluate.by_tool to leave-one-out or 5-fold"
		}
		return card.NotRobust("no tool is held out", remedy), nil
	}
	limit, _ := j.Config.Label.Limit()
	out := card.NewRobustness(rows.lives(v.Score, nil), alarm.Default, j.timing(rows), limit)
	if out.Note != "" {
		return out, nil
	}
	out.Guarded = true
	for f, c := range v.Classifiers {
		if c.Guard() != nil {
			continue
		}
		out.Guarded = false
		if r := v.Reports[f].Guard; r != nil && out.Unguarded == "" {
			out.Unguarded = r.Off
		}
	}
	b, why := j.robustFolds(&rows, m, v)
	if why != "" {
		return card.NotRobust(why, "train on a part of the table"), nil
	}
	return b.measure(ctx, out, j.Workers, func(done, total int) { j.Progress("making sensors read wrong", done, total) })
}

// robustFolds returns what makes sensors read wrong in the rows of each fold, or why that cannot be.
func (j *Job) robustFolds(rows *rowTable, m *model.Model, v *validated) (b *robust, why string) {
	if b, why = newRobust(rows, m.NewJudge().Origins(), v.Score, j.Config.Seed); why != "" {
		return nil, why
	}
	for f, fold := range v.folds {
		report := v.Reports[f]
		mode := model.Mode(cmp.Or(report.View, string(m.Reference.Mode)))
		p := robustPart{
			rows: fold.Test, spec: rows.referenceSpec(b.of, mode, m.Reference.Windows, fold.Train, rows.bareOf(j.Config.Evaluate.Transductive, fold)),
			weights: weightsOf(report.Weights, b.columns, rows.exclude), score: byClassifier(v.Classifiers[f]), guard: v.Classifiers[f].Guard(),
		}
		if v.byWear[f] != nil {
			p.score = v.byWear[f]
		}
		b.parts = append(b.parts, p)
	}
	return b, ""
}

// newRobust returns what makes sensors read wrong in all rows, still without parts. Why says
// why that cannot be.
func newRobust(rows *rowTable, origins []signal.FeatureOrigin, clean []float64, seed uint64) (b *robust, why string) {
	plain, of := rows.beforeReference()
	if of == nil || rows.onDisk != nil {
		return nil, fmt.Sprintf("the features take more than %d MiB, or are not in memory", viewBytes>>20)
	}
	n := rows.Rows()
	b = &robust{
		origins: origins, columns: len(rows.Columns), plain: plain, of: of, clean: clean, seed: seed, at: make([]int, n), length: make([]int, n), begin: make([]int, n), last: make([]int, n),
		lives: func(score []float64) []card.Life { return rows.lives(score, nil) },
	}
	number, names := classify.NumberGroups(rows.group)
	length, begin := make([]int, len(names)), make([]int, len(names))
	for i, g := range number {
		b.at[i] = length[g]
		length[g]++
	}
	rng := rand.New(rand.NewPCG(seed, robustSeed))
	for g, l := range length {
		begin[g] = l/4 + rng.IntN(l/2+1)
	}
	last := make([]int, len(names))
	for i, g := range number {
		if b.at[i] == max(0, begin[g]-1) {
			last[g] = i
		}
	}
	for i, g := range number {
		b.length[i], b.begin[i], b.last[i] = length[g], begin[g], last[g]
	}
	return b, ""
}

// faults returns what is tried: all faults of each sensor that counts in some part, gains of
// those that measure in one unit together, and noise on all.
func (b *robust) faults() []card.Fault {
	of := make([]string, len(b.origins))
	for j, o := range b.origins {
		of[j] = o.Sensor
	}
	var out []card.Fault
	var names, units []string
	byUnit := make(map[string][]string)
	for _, s := range score.Sensors(of) {
		if !slices.ContainsFunc(b.parts, func(p robustPart) bool { return s.Counts(p.weights) }) {
			continue
		}
		flagged := !slices.ContainsFunc(s.Columns, func(j int) bool { return !b.origins[j].Samples })
		out = append(out, card.FaultsOf([]string{s.Name}, flagged)...)
		names = append(names, s.Name)
		unit := b.unit(s)
		if byUnit[unit] == nil {
			units = append(units, unit)
		}
		byUnit[unit] = append(byUnit[unit], s.Name)
	}
	for _, unit := range units {
		if unit != "" && len(byUnit[unit]) > 1 {
			out = append(out, card.FaultsOf(byUnit[unit], false)...)
		}
	}
	return append(out, card.NoiseOf(names)...)
}

// unit returns what sensors that measure in the sensor's unit have in common: the group of its
// first level.
func (b *robust) unit(s score.Sensor) string {
	for _, j := range s.Columns {
		if o := b.origins[j]; o.Gain.Power == 1 {
			return o.Group
		}
	}
	return ""
}

// measure tries all faults. The result does not depend on the workers.
func (b *robust) measure(ctx context.Context, out *card.Robustness, workers int, progress func(done, total int)) (*card.Robustness, error) {
	faults := b.faults()
	if values := len(b.plain) * len(faults); values > robustValues {
		return card.NotRobust(fmt.Sprintf("%d trials with %d windows of %d features would take minutes", len(faults), len(b.clean), b.columns), "train on a part of the table, or on fewer features (exclude)"), nil
	}
	trials := make([]card.Trial, len(faults))
	var mu sync.Mutex // progress is called by one goroutine at a time
	done := 0
	var work errgroup.Group
	work.SetLimit(workers)
	for k, fault := range faults {
		work.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			trials[k] = out.Try(fault, b.lives(b.scores(fault, classify.DeriveSeed(b.seed, robustSeed+uint64(k)))))
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, len(faults))
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	out.SetTrials(trials)
	return out, nil
}

// scores returns the scores of all rows with a fault.
func (b *robust) scores(f card.Fault, seed uint64) []float64 {
	out := slices.Clone(b.clean)
	rng := rand.New(rand.NewPCG(seed, 0))
	var columns []int
	for j, o := range b.origins {
		if slices.Contains(f.Sensors, o.Sensor) || f.Kind == card.Missing && slices.Contains(f.Sensors, o.Other) {
			columns = append(columns, j)
		}
	}
	for _, p := range b.parts {
		rows := slices.DeleteFunc(slices.Clone(p.rows), func(i int) bool { return !b.has(f, i) })
		plain, relative := dbn.NewMatrix(len(rows), b.columns), dbn.NewMatrix(len(rows), b.columns)
		centers := make([][]float32, len(rows))
		mend := b.mending(p.guard)
		n := 0
		for _, i := range p.rows {
			if !b.has(f, i) {
				mend(b.row(i), i)
				continue
			}
			x := plain.Row(n)
			copy(x, b.row(i))
			b.spoil(x, columns, f, i, rng)
			copy(x, mend(x, i))
			centers[n] = b.of.centers[b.of.tool[i]]
			p.spec.Relate(relative.Row(n), x, centers[n], b.of.relations)
			n++
		}
		score := make([]float64, len(rows))
		p.score(score, relative, plain, centers)
		for n, i := range rows {
			out[i] = score[n]
		}
	}
	return out
}

// mending returns what gives back x, which is what is left of row i, without what a guard takes out online: sensors that have
// failed and steps of gains. A tool's rows come in their order, all of them. What it gives back is valid until the next call.
func (b *robust) mending(g *vote.Guard) func(x []float32, i int) []float32 {
	if g == nil {
		return func(x []float32, _ int) []float32 { return x }
	}
	watch, memory, out := model.NewWatch(g, b.origins), make(map[int]*vote.Memory), make([]float32, b.columns)
	return func(x []float32, i int) []float32 {
		m := memory[b.last[i]] // which is of its tool
		if m == nil {
			m = new(vote.Memory)
			memory[b.last[i]] = m
		}
		copy(out, x)
		watch.Mend(m, out, true)
		return out
	}
}

func (b *robust) row(i int) []float32 { return b.plain[i*b.columns : (i+1)*b.columns] }

// has reports whether row i has the fault.
func (b *robust) has(f card.Fault, i int) bool {
	return f.Kind == card.Drift || f.Kind == card.Noise || b.at[i] >= b.begin[i]
}

// spoil changes the given columns of x, which is row i, as the fault does.
func (b *robust) spoil(x []float32, columns []int, f card.Fault, i int, rng *rand.Rand) {
	factor := f.Factor
	if f.Kind == card.Drift {
		factor = 1 + (f.Factor-1)*float64(b.at[i])/float64(max(1, b.length[i]-1))
	}
	for _, j := range columns {
		g := b.origins[j].Gain
		switch f.Kind {
		case card.Gain, card.Drift:
			x[j] = float32(g.Scale(float64(x[j]), factor))
		case card.Noise:
			if !g.Decades { // noise is of the feature, as if a gain multiplied it
				g.Power = 1
			}
			x[j] = float32(g.Scale(float64(x[j]), math.Exp(factor*rng.NormFloat64())))
		case card.Dead:
			x[j] = 0
		case card.Stuck:
			x[j] = b.row(b.last[i])[j]
		case card.Missing:
			x[j] = float32(math.NaN())
		}
	}
}
