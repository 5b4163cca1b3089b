package train

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
)

// SimulatorStudy asks whether the simulated drill is worth developing on: wear
// must be learnt from all features, and must not be read from the level of the
// channels, or any classifier would look good.
type SimulatorStudy struct {
	Seed    uint64
	Life    time.Duration // mean cutting time of a tool; 0 means that of SimulatedHistory
	Tools   int           // of the experiment's 20; 0 means all
	Version int           // of the features; 0 means the trainer's
	Workers int           // 0: one for each CPU; never changes a result
}

// SimulatorReport is what a study finds. All features are relative to each
// tool's own beginning, unless a row says otherwise.
type SimulatorReport struct {
	Tools, Healthy, Faulty int // tools, windows
	Rows                   []SimulatorRow

	// Live are the alarms that a model trained on the study's tools raises over
	// the lives of as many others, drawn from the next seed.
	Live Alarms
}

// SimulatorRow is how well one method tells faulty windows.
type SimulatorRow struct {
	Name     string
	Features int
	ByTool   float64 // G-mean with one tool after the other left out
	Random   float64 // the same on five random folds, where a tool's windows are on both sides
}

// The rows of a report.
const (
	rowBest       = "logistic regression, RMS of one channel, the best of 14 with hindsight"
	rowLevel      = "logistic regression, RMS of all channels"
	rowLevelRaw   = "logistic regression, RMS of all channels, without reference"
	rowLevelDBN   = "ECS-DBN, RMS of all channels"
	rowAll        = "logistic regression, all features"
	rowAllDBN     = "ECS-DBN, all features"
	rowMicroscope = "ECS-DBN, all features, labels by a microscope after each hole"
)

// Run drills the tools and compares the methods. Studies that are equal give
// equal reports.
func (s SimulatorStudy) Run(ctx context.Context) (*SimulatorReport, error) {
	r := &SimulatorReport{}
	x, err := s.rows(ctx, false, model.ReferenceKind)
	if err != nil {
		return nil, err
	}
	r.Healthy, _ = x.homes(classify.Healthy)
	r.Faulty, _ = x.homes(classify.Faulty)
	r.Tools = len(x.tools())
	level := x.columns(isLevel)
	best := SimulatorRow{Name: rowBest, Features: 1}
	for _, name := range x.Columns {
		if isLevel(name) {
			one := x.columns(func(s string) bool { return s == name })
			if row := s.logistic(x, one, rowBest); row.ByTool > best.ByTool {
				best = row
			}
		}
	}
	r.Rows = append(r.Rows, best, s.logistic(x, level, rowLevel))
	raw, err := s.rows(ctx, false, model.ReferenceOff)
	if err != nil {
		return nil, err
	}
	r.Rows = append(r.Rows, s.logistic(raw, raw.columns(isLevel), rowLevelRaw))
	deep, err := s.deep(ctx, x, level, rowLevelDBN)
	if err != nil {
		return nil, err
	}
	r.Rows = append(r.Rows, deep, s.logistic(x, x.near(), rowAll))
	if deep, err = s.deep(ctx, x, x.near(), rowAllDBN); err != nil {
		return nil, err
	}
	r.Rows = append(r.Rows, deep)
	seen, err := s.rows(ctx, true, model.ReferenceKind)
	if err != nil {
		return nil, err
	}
	if deep, err = s.deep(ctx, seen, seen.near(), rowMicroscope); err != nil {
		return nil, err
	}
	r.Rows = append(r.Rows, deep)
	if r.Live, err = s.live(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// live trains a model on the study's tools and drills those of the next seed.
func (s SimulatorStudy) live(ctx context.Context) (Alarms, error) {
	m, _, err := Run(ctx, s.job(false, model.ReferenceAuto))
	if err != nil {
		return Alarms{}, err
	}
	next := s
	next.Seed++
	e := Exam{Model: m, Inputs: next.job(false, model.ReferenceAuto).Inputs, Alarm: alarm.Default, Workers: s.Workers}
	v, err := e.Run(ctx)
	if err != nil {
		return Alarms{}, err
	}
	return v.Alarms, nil
}

func isLevel(feature string) bool { return strings.HasSuffix(feature, ".rms") }

// rows drills the tools and returns the windows.
func (s SimulatorStudy) rows(ctx context.Context, microscope bool, mode model.Mode) (rowTable, error) {
	j := s.job(microscope, mode)
	rows, _, _, err := j.rows(ctx)
	return rows, err
}

func (s SimulatorStudy) job(microscope bool, mode model.Mode) Job {
	life := s.Life
	if life == 0 {
		life = historyLife
	}
	tools := sim.Tools(s.Seed, life)
	if s.Tools > 0 {
		tools = tools[:min(s.Tools, len(tools))]
	}
	j := simulatedHistory("local/site/area/line/drill", s.Seed, tools, microscope)
	j.Config.Reference.Mode = mode
	j.Config.Features.Version = cmp.Or(s.Version, j.Config.Features.Version)
	if j.Workers = s.Workers; j.Workers == 0 {
		j.Workers = runtime.GOMAXPROCS(0)
	}
	j.Progress = func(string, int, int) {}
	return j
}

// randomFolds deals the rows of a table to five folds whatever their tool.
func (s SimulatorStudy) randomFolds(t rowTable) []classify.Fold {
	return classify.StratifiedKFold(t.Class, 5, rand.New(rand.NewPCG(s.Seed, 0x666f6c6473)))
}

func (s SimulatorStudy) logistic(t rowTable, x dbn.Matrix, name string) SimulatorRow {
	return SimulatorRow{
		Name: name, Features: x.Cols,
		ByTool: logisticGMean(x, t.Class, classify.LeaveOneGroupOut(t.group)),
		Random: logisticGMean(x, t.Class, s.randomFolds(t)),
	}
}

func (s SimulatorStudy) deep(ctx context.Context, t rowTable, x dbn.Matrix, name string) (SimulatorRow, error) {
	j := s.job(false, model.ReferenceKind)
	row := SimulatorRow{Name: name, Features: x.Cols}
	settings := j.Config.settings(j.Workers)
	lessons := &classify.Table{X: x, Y: t.Class, Groups: t.group, Ordered: t.ordered, Ended: t.ended()}
	v, err := classify.CrossValidateTable(ctx, lessons, settings, classify.LeaveOneGroupOut(t.group))
	if err != nil {
		return row, fmt.Errorf("train: %s: %w", name, err)
	}
	row.ByTool = float64(v.Pooled.GMean)
	if v, err = classify.CrossValidateTable(ctx, lessons, settings, s.randomFolds(t)); err != nil {
		return row, fmt.Errorf("train: %s: %w", name, err)
	}
	row.Random = float64(v.Pooled.GMean)
	return row, nil
}

// columns returns the features whose names are to be kept, as the classifier
// takes them.
func (t rowTable) columns(keep func(name string) bool) dbn.Matrix {
	x := dbn.Matrix{Rows: t.Rows()}
	for j, name := range t.Columns {
		if keep(name) {
			x.Cols++
			for i := range x.Rows {
				x.Data = append(x.Data, t.Data[i*len(t.Columns)+j])
			}
		}
	}
	// by rows
	data := make([]float32, len(x.Data))
	for j := range x.Cols {
		for i := range x.Rows {
			data[i*x.Cols+j] = x.Data[j*x.Rows+i]
		}
	}
	x.Data = data
	return x
}

// What the simulator is to show of tools never seen: wear can be learnt, and is
// not read from levels.
const (
	leastGMean = 0.95 // of an ECS-DBN on all features
	leastLead  = 0.05 // of it over any regression on the RMS
)

type goal struct {
	text string
	held bool
}

// goals says which of the goals are held.
func (r *SimulatorReport) goals() []goal {
	var all, level float64
	for _, row := range r.Rows {
		switch row.Name {
		case rowAllDBN:
			all = row.ByTool
		case rowBest, rowLevel, rowLevelRaw:
			level = max(level, row.ByTool)
		}
	}
	return []goal{
		{fmt.Sprintf("an ECS-DBN on all features reaches %.2f on tools left out. %.3f", leastGMean, all), all >= leastGMean},
		{fmt.Sprintf("regressions on the RMS stay %.2f below it. %.3f is the best", leastLead, level), level <= all-leastLead},
	}
}

// Markdown returns the report as a table.
func (r *SimulatorReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tools, %d healthy and %d faulty windows (1 to %.1f).\n\n", r.Tools, r.Healthy, r.Faulty, float64(r.Healthy)/float64(r.Faulty))
	b.WriteString("| method | features | G-mean, one tool left out | G-mean, random split (leaky) |\n|---|---:|---:|---:|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %d | %.3f | %.3f |\n", row.Name, row.Features, row.ByTool, row.Random)
	}
	b.WriteByte('\n')
	for _, g := range r.goals() {
		held := "**held**"
		if !g.held {
			held = "not reached"
		}
		fmt.Fprintf(&b, "- Goal: %s: %s.\n", g.text, held)
	}
	a := &r.Live
	fmt.Fprintf(&b, "\nA model of all these tools, on as many that it never saw, with an alarm at %d faulty of the last %d windows: %d of %d get their\nalarm once they are faulty, in the median %.0f s of cutting after; %d get it early", a.K, a.N, a.Caught, a.Worn, float64(a.MedianDelay), a.Early)
	var early, none []string
	for _, t := range a.Tools {
		switch {
		case t.Alarm > 0 && t.Alarm < t.Worn:
			early = append(early, fmt.Sprintf("%d s", t.Worn-t.Alarm))
		case t.Alarm == 0 && t.Worn > 0:
			none = append(none, fmt.Sprintf("%d s", t.Judged-t.Worn+1))
		}
	}
	if len(early) > 0 {
		fmt.Fprintf(&b, " (by %s of cutting)", strings.Join(early, ", "))
	}
	if len(none) > 0 {
		fmt.Fprintf(&b, ";\n%d get none before their life is over, %s after they are faulty", len(none), strings.Join(none, ", "))
	}
	b.WriteString(".\n")
	return b.String()
}
