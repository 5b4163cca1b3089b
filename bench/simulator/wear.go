package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/bench/imbalance"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// wearStudy asks whether the simulated drill is worth developing on: wear
// must be learnt from all features, and must not be read from the level of the
// channels, or any classifier would look good.
type wearStudy struct {
	Seed  uint64
	Life  time.Duration // mean cutting time of a tool; 0 means the life in SimulatedHistory
	Tools int           // of the experiment's 20; 0 means all
}

// wearReport is what a study finds. All features are relative to each
// tool's own beginning, unless a row says otherwise.
type wearReport struct {
	Tools, Healthy, Faulty int // tools, windows
	Rows                   []wearRow

	// Live are the alarms that a model trained on the study's tools raises over
	// the lives of as many others, drawn from the next seed.
	Live card.Alarms
}

// wearRow is how well one method tells faulty windows.
type wearRow struct {
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
func (s wearStudy) Run(ctx context.Context) (*wearReport, error) {
	x, err := s.rows(ctx, false, model.ReferenceKind)
	if err != nil {
		return nil, err
	}
	raw, err := s.rows(ctx, false, model.ReferenceOff)
	if err != nil {
		return nil, err
	}
	seen, err := s.rows(ctx, true, model.ReferenceKind)
	if err != nil {
		return nil, err
	}
	r := &wearReport{Tools: len(classify.LeaveOneGroupOut(x.lessons.Groups))}
	for _, class := range x.lessons.Y {
		if class == classify.Healthy {
			r.Healthy++
		} else {
			r.Faulty++
		}
	}
	best := wearRow{Name: rowBest, Features: 1}
	for _, name := range x.Columns {
		if isLevel(name) {
			row, err := s.row(ctx, rowBest, x, func(s string) bool { return s == name }, logisticOf)
			if err != nil {
				return nil, err
			}
			if row.ByTool > best.ByTool {
				best = row
			}
		}
	}
	r.Rows = append(r.Rows, best)
	for _, m := range []struct {
		name string
		t    windows
		keep func(feature string) bool
		of   gmean
	}{
		{rowLevel, x, isLevel, logisticOf},
		{rowLevelRaw, raw, isLevel, logisticOf},
		{rowLevelDBN, x, isLevel, s.deepGMean},
		{rowAll, x, isFeature, logisticOf},
		{rowAllDBN, x, isFeature, s.deepGMean},
		{rowMicroscope, seen, isFeature, s.deepGMean},
	} {
		row, err := s.row(ctx, m.name, m.t, m.keep, m.of)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
	}
	r.Live, err = s.live(ctx)
	return r, err
}

// live trains a model on the study's tools and drills the tools of the next seed.
func (s wearStudy) live(ctx context.Context) (card.Alarms, error) {
	m, _, err := train.Run(ctx, s.job(false, model.ReferenceAuto))
	if err != nil {
		return card.Alarms{}, err
	}
	next := s
	next.Seed++
	e := train.Exam{Model: m, Inputs: next.job(false, model.ReferenceAuto).Inputs, Alarm: alarm.Default}
	v, err := e.Run(ctx)
	if err != nil {
		return card.Alarms{}, err
	}
	return v.Alarms, nil
}

func isLevel(feature string) bool { return strings.HasSuffix(feature, ".rms") }
func isFeature(string) bool       { return true }

// windows are the windows of the tools that are drilled.
type windows struct {
	*table.Table
	lessons *classify.Table
}

func (s wearStudy) rows(ctx context.Context, microscope bool, mode model.Mode) (windows, error) {
	t, lessons, _, err := train.Lessons(ctx, s.job(microscope, mode))
	return windows{t, lessons}, err
}

func (s wearStudy) job(microscope bool, mode model.Mode) train.Job {
	schedule := train.HistorySchedule
	schedule.Life = cmp.Or(s.Life, schedule.Life)
	j := train.Simulation{Machine: machine, Seed: s.Seed, Microscope: microscope, Schedule: schedule}.Job(tools(s.Seed, schedule, s.Tools))
	j.Config.Reference.Mode = mode
	j.Workers = runtime.GOMAXPROCS(0)
	return j
}

const machine = "local/site/area/line/drill"

// tools returns the first n of the experiment's tools, all if n is 0.
func tools(seed uint64, by train.Schedule, n int) []sim.Tool {
	all := sim.Tools(seed, by.Life)
	return all[:min(cmp.Or(n, len(all)), len(all))]
}

// gmean returns the G-mean on the rows that each fold holds out of classifiers that are trained on the others.
type gmean func(ctx context.Context, t windows, x dbn.Matrix, folds []classify.Fold) (float64, error)

// row judges some features with one tool after the other left out, and on random folds, without regard to tools.
func (s wearStudy) row(ctx context.Context, name string, t windows, keep func(feature string) bool, of gmean) (row wearRow, err error) {
	x := t.columns(keep)
	row = wearRow{Name: name, Features: x.Cols}
	if row.ByTool, err = of(ctx, t, x, classify.LeaveOneGroupOut(t.lessons.Groups)); err == nil {
		row.Random, err = of(ctx, t, x, classify.StratifiedKFold(t.lessons.Y, 5, rand.New(rand.NewPCG(s.Seed, 0x666f6c6473))))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return row, err
}

func logisticOf(_ context.Context, t windows, x dbn.Matrix, folds []classify.Fold) (float64, error) {
	return logisticGMean(x, t.lessons.Y, folds), nil
}

// deepGMean trains an ECS-DBN for each fold and returns the G-mean of all folds.
func (s wearStudy) deepGMean(ctx context.Context, t windows, x dbn.Matrix, folds []classify.Fold) (float64, error) {
	j := s.job(false, model.ReferenceKind)
	lessons := &classify.Table{X: x, Y: t.lessons.Y, Groups: t.lessons.Groups, Ordered: t.lessons.Ordered, Ended: t.lessons.Ended}
	v, err := classify.CrossValidateTable(ctx, lessons, j.Config.Settings(j.Workers), folds)
	if err != nil {
		return 0, err
	}
	return float64(v.Pooled.GMean), nil
}

// columns returns the features whose names are to be kept, as the classifier takes them.
func (t windows) columns(keep func(name string) bool) dbn.Matrix {
	var kept []int
	for j, name := range t.Columns {
		if keep(name) {
			kept = append(kept, j)
		}
	}
	x := dbn.NewMatrix(t.Rows(), len(kept))
	for i := range x.Rows {
		for k, j := range kept {
			x.Row(i)[k] = t.Data[i*len(t.Columns)+j]
		}
	}
	return x
}

// What the simulator is to show of tools never seen: wear can be learnt, and is
// not read from levels.
const (
	leastGMean = 0.95 // of an ECS-DBN on all features
	leastLead  = 0.05 // of it over any regression on the RMS
)

// Goals says which of the goals are held.
func (r *wearReport) Goals() []string {
	var all, level float64
	for _, row := range r.Rows {
		switch row.Name {
		case rowAllDBN:
			all = row.ByTool
		case rowBest, rowLevel, rowLevelRaw:
			level = max(level, row.ByTool)
		}
	}
	say := map[bool]string{true: "**held**", false: "not reached"}
	return []string{
		fmt.Sprintf("an ECS-DBN on all features reaches %.2f on tools left out. %.3f: %s", leastGMean, all, say[all >= leastGMean]),
		fmt.Sprintf("regressions on the RMS stay %.2f below it. %.3f is the best: %s", leastLead, level, say[level <= all-leastLead]),
	}
}

// Ratio is of healthy windows to a faulty one.
func (r *wearReport) Ratio() float64 { return float64(r.Healthy) / float64(r.Faulty) }

//go:embed wear.md.tmpl
var wearText string

// Markdown returns the report as a table.
func (r *wearReport) Markdown() string {
	data := struct {
		*wearReport
		Early, Never []string // by how much an alarm was too early, and how long a tool without one was faulty
	}{wearReport: r}
	for _, t := range r.Live.Tools {
		switch {
		case t.Alarm > 0 && t.Alarm < t.Worn:
			data.Early = append(data.Early, fmt.Sprintf("%d s", t.Worn-t.Alarm))
		case t.Alarm == 0 && t.Worn > 0:
			data.Never = append(data.Never, fmt.Sprintf("%d s", t.Judged-t.Worn+1))
		}
	}
	return document.Fill(wearText, data, nil)
}

// logisticDecay is the weight of |w|²/2, of all weights but the intercept, next to
// the mean loss.
const logisticDecay = 0.01

// logisticGMean returns the G-mean on the rows that each fold holds out of logistic regressions with both classes of
// equal weight, the simplest classifier that there is to compare with. Columns are standardised by the
// training rows; a missing value counts as their mean.
func logisticGMean(x dbn.Matrix, y []int, folds []classify.Fold) float64 {
	m := score.NewConfusion(2)
	for _, f := range folds {
		train, classes := classify.Part(x, f.Train).(dbn.Matrix), make([]int, len(f.Train))
		for n, i := range f.Train {
			classes[n] = min(y[i], 1)
		}
		scale := imbalance.FitScale(train)
		fitted, err := dbn.FitLogistic(context.Background(), scale.Apply(train), classes, dbn.LogisticSettings{C: 1 / (logisticDecay * float64(train.Rows)), Balanced: true})
		if err != nil {
			panic("simulator: " + err.Error()) // every fold is trained on both classes
		}
		z := scale.Apply(x)
		for _, i := range f.Test {
			odds, decision := fitted.Bias, 0
			for j, v := range z.Row(i) {
				odds += fitted.Weights[j] * float64(v)
			}
			if odds >= 0 {
				decision = 1
			}
			m.Add(min(y[i], 1), decision)
		}
	}
	return m.GMean()
}
