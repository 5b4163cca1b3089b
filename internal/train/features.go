package train

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// FeatureFile is a table to write of what a model would see of recordings.
type FeatureFile struct {
	Path string // its ending says the format, see table.Load

	// Relative makes features relative to the reference of their tool, as the classifier
	// takes them. Windows that are not judged have none then. Judged leaves these out. Either
	// makes a table that a model of the recordings cannot be trained on.
	Relative, Judged bool
}

// featureCount says what became of the windows that were written.
type featureCount struct {
	Rows, Columns, Tools int
	Status               map[string]int // by table.Statuses
	Labelled             int
}

// writing is the phase of a run in which features are written.
const writing = "writing features"

// FeatureMeta is what goes with a table that WriteFeatures wrote: all that it takes, with the
// rows, to train the model that the recordings would give.
type FeatureMeta struct {
	table.Origin
	Recording  signal.Recording   `json:"recording"` // how recordings were read
	Config     featureConfig      `json:"config"`
	Gaps       int                `json:"gaps"`
	Recordings []featureRecording `json:"recordings"`       // in the order in which they were named
	SHA256     string             `json:"sha256,omitempty"` // of the rows, see table.Table.SHA256
}

// featureConfig is what the training configuration said of recordings.
type featureConfig struct {
	Layout   string             `json:"layout,omitempty"`
	Wear     string             `json:"wear,omitempty"`
	Start    string             `json:"start,omitempty"`
	Join     wear.Mode          `json:"join"`
	Features signal.FeatureSpec `json:"features"`
}

// featureRecording is a recording that rows are of.
type featureRecording struct {
	model.DataSet
	FirstRow int    `json:"first_row"`          // from 0; the others follow
	BeganNS  *int64 `json:"began_ns,omitempty"` // first sample, in ns since 1970; nil if not known
}

// featureWriter writes a FeatureFile.
type featureWriter struct {
	job      *Job
	file     FeatureFile
	model    *model.Model // complete but for its classifier
	join     *wear.Join   // nil: labels are in the recordings
	found    [][]observed // by input
	order    []int        // of inputs, by their first windows
	features *table.RowFile
	level    bool // of windows is known
	relate   model.ReferenceSpec
	count    featureCount
}

// WriteFeatures writes a table with a row for each window of the job's recordings, with its
// features, its label and what a model would make of it: whether the machine cuts, whether
// the window makes the reference of its tool. Features wait on disk until all is known.
func WriteFeatures(ctx context.Context, job Job, file FeatureFile) (featureCount, error) {
	job.prepare()
	if err := job.Config.Check(); err != nil {
		return featureCount{}, fmt.Errorf("train: %w", err)
	}
	w := &featureWriter{job: &job, file: file}
	gaps, err := w.read(ctx)
	if w.features != nil {
		defer func() { _ = w.features.Close() }() // what is left is in no one's way
	}
	if err == nil {
		err = w.settle(ctx)
	}
	if err != nil {
		return featureCount{}, fmt.Errorf("train: %w", err)
	}
	judge := w.model.NewJudge()
	h := table.Head{Columns: judge.FeatureNames(), Detailed: true, Named: true}
	meta := w.meta(gaps)
	if !file.Relative && !file.Judged {
		sum := table.NewHash(h.Columns)
		if err := w.each(ctx, func(r table.Row) error { sum.Add(r); return nil }); err != nil {
			return featureCount{}, fmt.Errorf("train: %w", err)
		}
		s := sum.Sum()
		meta.SHA256 = hex.EncodeToString(s[:])
	}
	text, err := json.Marshal(meta)
	if err != nil {
		return featureCount{}, fmt.Errorf("train: %w", err)
	}
	h.Meta = string(text)
	w.count = featureCount{Columns: len(h.Columns), Status: make(map[string]int)}
	tools, total := make(map[string]bool), 0
	for _, os := range w.found {
		total += len(os)
	}
	err = h.Save(file.Path, func(visit func(table.Row) error) error {
		return w.each(ctx, func(r table.Row) error {
			if w.count.Rows++; r.Label != "" {
				w.count.Labelled++
			}
			w.count.Status[r.Details.Status]++
			tools[r.Machine+"/"+r.Tool] = true
			job.Progress(writing, min(w.count.Rows, total-1), total)
			return visit(r)
		})
	})
	w.count.Tools = len(tools)
	job.Progress(writing, total, total) // rows may be left out
	return w.count, err
}

// read observes all windows. Their features go to disk.
func (w *featureWriter) read(ctx context.Context) (gaps int, err error) {
	j := w.job
	if len(j.Inputs) == 0 {
		return 0, fmt.Errorf("%w: no recordings: name some with --data", errData)
	}
	if err := j.checkWear(); err != nil { // before hours of reading
		return 0, err
	}
	all := *j
	all.Config.Gate = "auto" // its level and frames are for fit, even if this configuration asks for no gate
	m, err := all.blank()
	if err != nil {
		return 0, err
	}
	w.model, w.level = m, m.Gate != nil
	if w.features, err = table.NewRowFile(j.Scratch, len(m.NewJudge().FeatureNames())); err != nil {
		return 0, err
	}
	rows := 0
	var last []signal.Quality
	keep := func(o *observed) error {
		if slices.Equal(o.Quality, last) { // as nearly always: one copy of it is enough
			o.Quality = last
		}
		last, o.at = o.Quality, rows
		rows++
		err := w.features.Append(o.Features)
		o.Features = nil
		return err
	}
	w.found, gaps, err = collect(ctx, m, j.Inputs, j.Workers, keep, func(done, total int) { j.Progress(Reading, done, total) })
	if err != nil {
		return 0, err
	}
	for _, w := range (card.Tally{LeftOut: leftOut(j.Inputs)}).Losses() {
		j.Log.Warn().Msg(w)
	}
	if rows == 0 {
		return 0, fmt.Errorf("%w: the recordings hold no whole window of %v: record for longer, or shorten `window: length`", errData, j.Config.Window.Length)
	}
	for i, os := range w.found {
		if len(os) > 0 {
			w.order = append(w.order, i)
		}
	}
	slices.SortStableFunc(w.order, func(a, b int) int { return w.found[a][0].Start.Compare(w.found[b][0].Start) })
	return gaps, w.features.Flush()
}

// settle learns from all windows what it takes to say what became of each.
func (w *featureWriter) settle(ctx context.Context) (err error) {
	j, m := w.job, w.model
	m.Usual = usual(len(m.Usual), w.found)
	if j.Config.Gate == "auto" {
		err = j.settleCutting(m, w.found)
	} else {
		m.Gate, m.Cycle = nil, nil
	}
	if err != nil {
		return err
	}
	if w.join, err = j.join(windowsOf(j.Inputs, w.found, false)); err != nil {
		return err
	}
	if !w.file.Relative {
		return nil
	}
	if m.Reference.Mode == model.ReferenceOff {
		return errors.New("--relative: `reference: {mode: \"off\"}` of the configuration takes no reference: leave out --relative, or choose another mode")
	}
	w.relate = model.ReferenceSpec{Windows: m.Reference.Windows, Mode: modesOf(m.NewJudge().Relations(), m.Reference.Mode)[0]}
	if w.relate.Mode == model.ReferenceLog {
		c := newCuttingWindows(m)
		if err := w.observed(ctx, func(_, _ int, o *observed) error { c.observe(o); return nil }); err != nil {
			return err
		}
		w.relate.Positive = c.positive()
	}
	return nil
}

// observed calls visit with every window and its features, in the order of the file.
func (w *featureWriter) observed(ctx context.Context, visit func(input, i int, o *observed) error) error {
	_, cols := w.features.Shape()
	buffer := make([]float32, cols)
	for _, input := range w.order {
		for i := range w.found[input] {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			o := w.found[input][i] // a copy, so that features do not stay
			if err := w.features.ReadRows(buffer, o.at); err != nil {
				return err
			}
			o.Features = buffer
			if err := visit(input, i, &o); err != nil {
				return err
			}
		}
	}
	return nil
}

// each calls visit with every row of the table. The row is lent.
func (w *featureWriter) each(ctx context.Context, visit func(table.Row) error) error {
	plain := *w.model
	if plain.Reference.Mode != model.ReferenceOff {
		plain.Reference.Mode, plain.Reference.Positive = model.ReferenceDifference, "" // which is good for any values
	}
	judge := plain.NewJudge()
	refs, memories := make(map[tool]*model.Reference), make(map[tool]*model.Memory)
	relative := make([]float32, len(judge.FeatureNames()))
	none := slices.Repeat([]float32{float32(math.NaN())}, len(relative))
	return w.observed(ctx, func(input, i int, o *observed) error {
		of := tool{o.machine, o.Tool}
		if refs[of] == nil {
			refs[of], memories[of] = new(model.Reference), new(model.Memory)
		}
		_, v := judge.Row(&o.Observation, refs[of], memories[of])
		d := w.details(input, i, o, v)
		if w.file.Judged && d.Status != table.Judged {
			return nil
		}
		r, err := w.row(o, d)
		if err != nil {
			return err
		}
		if w.file.Relative {
			if r.Features = none; d.Status == table.Judged {
				w.relate.Relate(relative, judge.Cutting(), judge.Center(), judge.Relations())
				r.Features = relative
			}
		}
		return visit(r)
	})
}

// row returns the row of a window with its label.
func (w *featureWriter) row(o *observed, d *table.Details) (table.Row, error) {
	r := table.Row{
		Machine: o.machine, Tool: o.Tool, Hole: o.hole, Start: o.Start,
		Class: table.NoClass, Features: o.Features, Details: d,
	}
	if !signal.HasClock(o.Start) {
		r.Start = time.Time{}
	}
	l := labeller{rule: w.job.Config.Label, join: w.join, length: w.model.Window.Length}
	truth, err := l.known(o)
	if err != nil {
		return r, err
	}
	class, _, ok, err := label(o, l.length, l.rule, w.join)
	if err != nil {
		return r, err
	}
	if ok {
		r.Label = l.rule.Names()[class]
	}
	r.VBMaxUM, d.VBMeanUM, d.State = truth.VBMaxUM, truth.VBMeanUM, truth.State
	return r, nil
}

// details returns what else is known of window i of an input, given its verdict.
func (w *featureWriter) details(input, i int, o *observed, v model.Verdict) *table.Details {
	d := &table.Details{
		Recording: w.job.Inputs[input].Name, Sequence: float64(i), LengthS: w.model.Window.Length.Seconds(),
		Level: math.NaN(), Quality: table.FormatQuality(o.Quality, w.model.Layout.Channels()), Frames: table.FormatFrames(o.Frames),
	}
	switch {
	case !signal.HasClock(o.Start):
		d.StartS = float64(o.Start.UnixNano()) / 1e9
	case o.began.IsZero():
		d.StartS = o.Start.Sub(w.found[input][0].Start).Seconds()
	default:
		d.StartS = o.Start.Sub(o.began).Seconds()
	}
	if w.level {
		d.Level = o.Level
	}
	if w.model.Cycle != nil {
		d.Phase = v.State.String()
	}
	switch v.Outcome {
	case model.NotCutting:
		d.Status = table.NotCutting
	case model.SensorFault:
		d.Status = table.SensorFault
	case model.Learning:
		d.Status = table.Learning
	default:
		d.Status = table.Judged
	}
	return d
}

// meta returns what goes with the table.
func (w *featureWriter) meta(gaps int) *FeatureMeta {
	m, c := w.model, &w.job.Config
	f := &FeatureMeta{
		Origin: table.Origin{Format: table.OriginFormat, Features: m.Features, Relative: string(w.relate.Mode), JudgedOnly: w.file.Judged},
		Gaps:   gaps, Recording: w.job.Columns,
		Config: featureConfig{Layout: c.Layout, Wear: c.Wear, Start: c.Start, Join: c.Join, Features: c.Features},
	}
	f.Layout.Name, f.Layout.Channels = m.Layout.Name(), m.Layout.Channels()
	f.Window.LengthNS, f.Window.HopNS = m.Window.Length, m.Window.Hop
	rows, first := 0, make([]int, len(w.found))
	for _, i := range w.order {
		first[i] = rows
		rows += len(w.found[i])
	}
	for i, in := range w.job.Inputs {
		r := featureRecording{DataSet: dataSetOf(&in, w.found[i], m.Window.Length), FirstRow: first[i]}
		if n := len(w.found[i]); n > 0 && !w.found[i][n-1].began.IsZero() {
			r.BeganNS = new(w.found[i][n-1].began.UnixNano())
		}
		f.Recordings = append(f.Recordings, r)
	}
	return f
}

// ParseFeatureMeta reads what goes with a table that WriteFeatures wrote. It returns nil if
// text is empty.
func ParseFeatureMeta(text string) (*FeatureMeta, error) {
	f := new(FeatureMeta)
	if there, err := f.Parse(text, f); !there {
		return nil, err
	}
	return f, nil
}

// Inputs returns the recordings that the rows of t are of, to learn from as from the recordings
// themselves. It is false if t is not as WriteFeatures wrote it, or was never meant to be
// learnt from in that way.
func (f *FeatureMeta) Inputs(t *table.Table, sha256 string) ([]Input, bool) {
	if f.SHA256 != sha256 || sha256 == "" {
		return nil, false
	}
	var ins []Input
	for _, r := range f.Recordings {
		if r.FirstRow < 0 || r.Windows < 0 || r.FirstRow > t.Rows()-r.Windows {
			return nil, false
		}
		in := Input{Name: r.Name, SHA256: r.SHA256, Offsets: r.Offsets, CutOff: r.CutOff, Windows: r.Windows, Table: t.Part(r.FirstRow, r.FirstRow+r.Windows), Observed: true}
		if r.BeganNS != nil {
			in.Began = time.Unix(0, *r.BeganNS).UTC()
		}
		ins = append(ins, in)
	}
	if len(ins) == 0 {
		return nil, false
	}
	ins[0].Gaps = f.Gaps // of all together
	return ins, true
}

// Spec returns how windows were cut.
func (f *FeatureMeta) Spec() window.Spec {
	return window.Spec{Length: f.Window.LengthNS, Hop: f.Window.HopNS}
}

// Same reports in words how the recordings of other differ in what a model depends on. It is
// empty if they do not.
func (f *FeatureMeta) Same(other *FeatureMeta) string {
	a, errA := f.ReadLayout()
	b, errB := other.ReadLayout()
	switch {
	case errA != nil || errB != nil:
		return "a layout is damaged"
	case a.Match(b) != nil:
		return "the layouts differ: " + a.Match(b).Error()
	case f.Spec() != other.Spec():
		return fmt.Sprintf("windows are of %v and of %v", f.Window.LengthNS, other.Window.LengthNS)
	case !sameFeatures(f.Features, other.Features):
		return "the sets of features differ"
	}
	return ""
}

// Fits reports why a model cannot judge the windows of the table.
func (f *FeatureMeta) Fits(m *model.Model) error {
	l, err := f.ReadLayout()
	if err != nil {
		return err
	}
	if err := m.Fits(l, f.Spec()); err != nil {
		return err
	}
	if !sameFeatures(m.Features, f.Features) {
		return fmt.Errorf("%w: the table has other features than the model: %s with a configuration that has the model's `features`", model.ErrUnfit, table.WriteAgain)
	}
	return nil
}

func sameFeatures(a, b signal.FeatureSpec) bool {
	return a.Version == b.Version && slices.Equal(a.Set, b.Set)
}

// Apply completes the configuration of a training run on the table by what it says of the
// recordings, and returns their layout. Named is the layout that the configuration names, or
// nil. What the configuration leaves out is as it was when the table was written; what it
// says in another way is an error. Labelled says that the run has labels of its own.
func (f *FeatureMeta) Apply(c *Config, named *signal.Layout, labelled bool) (*signal.Layout, error) {
	l, err := f.ReadLayout()
	if err != nil {
		return nil, err
	}
	if named != nil {
		if err := l.Match(named); err != nil {
			return nil, fmt.Errorf("the table is of recordings of layout %q, and `layout` of the configuration is another one: %w: name the layout that the table was written with, or leave it out", l.Name(), err)
		}
	}
	std := DefaultConfig()
	spec := windowConfig{Length: f.Window.LengthNS, Hop: f.Window.HopNS, Said: c.Window.Said}
	if c.Window.Said && c.Window.Length != spec.Length || c.Window.Hop != 0 && c.Window.Hop != spec.Hop {
		return nil, fmt.Errorf("the table is of windows of %v, and `window` of the configuration says %v: leave it out, or write the table again with `trainer features`", spec.Length, c.Window.Length)
	}
	if !sameFeatures(c.Features, std.Features) && !sameFeatures(c.Features, f.Config.Features) && !sameFeatures(c.Features, f.Features) {
		return nil, errors.New("the table has other features than `features` of the configuration: leave it out, or write the table again with `trainer features`")
	}
	c.Window, c.Features = spec, f.Config.Features
	c.Layout, c.Start = cmp.Or(c.Layout, f.Config.Layout), cmp.Or(c.Start, f.Config.Start)
	if c.Wear == "" && !labelled {
		c.Wear, c.Join = f.Config.Wear, f.Config.Join
	}
	return l, nil
}
