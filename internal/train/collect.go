package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Input is one recording, or one table of features, to learn from.
type Input struct {
	Name    string                        // for reports; also the tool's name if the recording names none
	SHA256  string                        // of the file, or of what else the recording is made from
	Offsets []model.OffsetRange           // of the windows, if they are of Kafka
	Windows int                           // about how many there will be, for progress; 0 if not known
	Open    func() (source.Source, error) // a source that is an io.Closer is closed
	Wear    func() []wear.Measurement     // what was measured of its tools, asked for once it is read; may be nil

	// Table holds the features of windows, instead of Open: one row for each
	// window in the order of cutting, features as they are before the reference
	// is taken, by name. Rows are of cutting; a class there is the label.
	Table *table.Table

	// Observed says that the rows of Table are all that was observed of the windows of a
	// recording, of the model's layout, as WriteFeatures wrote them. What was done with
	// the recording is done with them: rows may be of a machine that is not cutting.
	Observed bool
	Began    time.Time // first sample of the recording, if Observed; zero if not known
	Gaps     int       // of the recording, if Observed

	// Cut calls visit with windows that are cut already, instead of Open: windows of
	// the model's layout, in any order, none of them twice. They are only lent. Where Form is not nil
	// they are features, of a form that covers the model, and have no samples: the model becomes the
	// same. Progress is called with how far the reading is. It returns what Name, SHA256, Offsets and CutOff become.
	Cut func(ctx context.Context, m *model.Model, progress func(done, total int), visit func(*window.Features) error) (model.DataSet, error)

	// Large says that the windows of Cut do not fit in memory, so that they wait on disk. Such an input comes alone.
	Large bool
	cut   *cutRows // once they are there

	// Of windows that were cut already, once they are read: tools whose beginning is missing, and windows that were left out.
	CutOff  []model.CutTool
	LeftOut []card.LeftOut

	// Scan reads the rows of a table that is too large for Table, instead of it.
	Scan func(begin func(columns []string) error, each func(table.Row) error) error
}

// observed is a window with its label.
type observed struct {
	model.Observation
	machine, hole string
	epoch, seq    uint64    // of the window, if it was cut already
	recording     string    // its name; empty if the window is of none
	began         time.Time // first sample of the recording; zero if not known
	truth         source.Truth
	class         int    // that a table or a wear file has for it, or table.NoClass
	cutOff        bool   // windows from the beginning of its tool were not read
	sum           uint64 // of its features, if it was cut already and they are known
	at            int    // row of its features on disk, if they are not in memory
	row           int    // of its table, from 1; 0 if it was cut from a recording
}

// where says of which tool a window is, and where it is in its recording or table.
func (o *observed) where() string {
	place := fmt.Sprintf("row %d", o.row)
	if o.row == 0 {
		place = fmt.Sprintf("the window %v after its start", o.Start.Sub(o.began))
	}
	return strings.TrimPrefix(fmt.Sprintf("%s, tool %s, %s", o.recording, o.Tool, place), ", ")
}

// window returns what a join of labels has to know of o.
func (o *observed) window(length time.Duration) wear.Window {
	return wear.Window{Machine: o.machine, Tool: o.Tool, Hole: o.hole, Recording: o.recording, Began: o.began, Start: o.Start, Length: length, CutOff: o.cutOff}
}

// keepAll leaves a window as it is.
func keepAll(*observed) error { return nil }

// collect observes all windows of all inputs, several inputs at a time. The
// result is in the order of the inputs, with any number of workers.
// Keep is called with each window of a recording, by one goroutine at a time, and may take its
// features away. Progress counts windows, or inputs if it is not known how many windows these
// have.
func collect(ctx context.Context, m *model.Model, inputs []Input, workers int, keep func(*observed) error, progress func(done, total int)) ([][]observed, int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total, byInput := 0, false
	for _, in := range inputs {
		total += in.Windows
		byInput = byInput || in.Windows == 0 || in.Cut != nil
	}
	if byInput {
		total = len(inputs)
		progress(0, total)
	}
	var gaps atomic.Int64
	var mu sync.Mutex // progress is called by one goroutine at a time
	done := 0
	step := func() {
		done++
		progress(done, max(total, done))
	}
	far := func(int, int) {} // of one input: how far its reading is
	if len(inputs) == 1 {
		far = unended(progress)
	}
	window := func(o *observed) error {
		mu.Lock()
		defer mu.Unlock()
		if !byInput {
			step()
		}
		return keep(o)
	}
	found := make([][]observed, len(inputs))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(inputs)) {
		wg.Go(func() {
			judge := m.NewJudge()
			for i := next.Add(1) - 1; i < int64(len(inputs)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := observeAll(ctx, m, judge, &inputs[i], &found[i], &gaps, far, window); err != nil {
					cancel(fmt.Errorf("%s: %w", inputs[i].Name, err))
				} else if byInput {
					mu.Lock()
					step()
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return found, int(gaps.Load()), context.Cause(ctx)
}

// unended reports how far a reading is, but not that it has ended: the caller says so.
func unended(progress func(done, total int)) func(done, total int) {
	return func(done, total int) { progress(max(0, min(done, total-1)), total) }
}

func observeAll(ctx context.Context, m *model.Model, judge *model.Judge, in *Input, out *[]observed, gaps *atomic.Int64, far func(done, total int), take func(*observed) error) (err error) {
	if in.Table != nil {
		gaps.Add(int64(in.Gaps))
		*out, err = observeTable(m, judge, in)
		return err
	}
	if in.Cut != nil {
		var ws cutWindows = (*inMemory)(out)
		if in.Large {
			in.cut = newCutRows("", in.Windows)
			ws = in.cut
		}
		return in.readCut(ctx, m, judge, ws, far, take)
	}
	src, err := in.Open()
	if err != nil {
		return err
	}
	if c, ok := src.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	if err := m.Layout.Match(src.Layout()); err != nil {
		return err
	}
	first := &firstSample{Source: src}
	cut, err := source.NewCutter(first, m.Window)
	if err != nil {
		return err
	}
	for {
		c, err := cut.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c.Gap != nil:
			gaps.Add(1)
			continue
		}
		o, err := observe(judge, &window.Features{Window: *c.Window}, in.Name)
		if err != nil {
			return err
		}
		o.truth, o.recording, o.began = c.Truth, in.Name, first.at
		if err := take(&o); err != nil {
			return err
		}
		*out = append(*out, o)
	}
}

// readCut is observeAll of windows that are cut already, which it adds to ws. Their order does not depend on how they came.
func (in *Input) readCut(ctx context.Context, m *model.Model, judge *model.Judge, ws cutWindows, far func(done, total int), take func(*observed) error) error {
	from, err := in.Cut(ctx, m, far, func(f *window.Features) error {
		o, err := observe(judge, f, in.Name)
		if err != nil {
			return err
		}
		o.epoch, o.seq, o.sum = f.Epoch, f.Seq, sumOf(o.Features)
		if err := take(&o); err != nil {
			return err
		}
		return ws.add(&o)
	})
	if err != nil {
		return err
	}
	in.Name, in.SHA256, in.Offsets, in.CutOff = from.Name, from.SHA256, from.Offsets, from.CutOff
	if err := ws.sort(); err != nil {
		return err
	}
	if err := in.leaveOut(ws, m, judge != nil); err != nil {
		return err
	}
	if ws.count() == 0 && len(in.LeftOut) > 0 {
		return fmt.Errorf("%w: no window is left: %s", errData, in.LeftOut[len(in.LeftOut)-1].Warning)
	}
	return nil
}

// firstSample notes when the first sample of a source was taken, of any rate.
type firstSample struct {
	source.Source
	at     time.Time // zero before the first block
	groups uint64    // that have had a block
}

func (f *firstSample) Next(ctx context.Context) (*source.Block, error) {
	b, err := f.Source.Next(ctx)
	if bit := uint64(1); err == nil && f.groups&(bit<<b.Group) == 0 {
		f.groups |= bit << b.Group
		if f.at.IsZero() || b.Time.Before(f.at) {
			f.at = b.Time
		}
	}
	return b, err
}

// observe returns what is observed in a window of a recording of that name, by its features or, if it has no form, by its
// samples: without a judge only when it was, and of what. Its wear is not known.
func observe(judge *model.Judge, w *window.Features, name string) (o observed, err error) {
	if judge != nil {
		if w.Form == nil {
			judge.Observe(&w.Window, &o.Observation)
		} else if err := judge.Take(w, &o.Observation); err != nil {
			return o, err
		}
		for i, v := range o.Features {
			if v != v {
				o.Features[i] = float32(math.NaN()) // the one that a table is read with
			}
		}
	}
	o.Tool, o.Start = w.Tool, w.Start
	o.machine, o.hole = w.Machine, w.Hole
	o.truth = source.NoTruth
	o.class = table.NoClass
	if o.Tool == "" {
		o.Tool = name
	}
	return o, nil
}

// label returns the class of a window and the maximum flank wear behind it: the
// class that a table has, or what the rule makes of the wear. The join, if there
// is one, is asked for the wear and not the recording. It is an error if class
// and wear contradict each other.
func label(o *observed, length time.Duration, rule wear.Rule, join *wear.Join) (class int, vbMaxUM float64, ok bool, err error) {
	t := o.truth
	if join != nil {
		m, _ := join.At(o.window(length))
		t = source.Truth{VBMeanUM: m.VBMeanUM, VBMaxUM: m.VBMaxUM, State: m.State}
	}
	class, ok = rule.Class(t.VBMeanUM, t.VBMaxUM, t.State)
	if o.class == table.NoClass {
		return class, t.VBMaxUM, ok, nil
	}
	if ok && class != o.class {
		names := rule.Names()
		return 0, 0, false, fmt.Errorf("tool %s: a row of class %d (%s) has a wear of %.4g µm, which the rule (%s) takes for class %d (%s): %w: correct the table, or drop the column class or vb_max_um",
			o.Tool, o.class, names[o.class], t.VBMaxUM, rule, class, names[class], errLabels)
	}
	return o.class, t.VBMaxUM, true, nil
}

// usualShare is the share of training windows from which on a quality flag of
// a channel is taken as its nature and not as a fault: a drive that stands
// still in every cut reads the same value all the time.
const usualShare = 0.01

// usual returns the flags of each channel that the windows had often.
func usual(channels int, found [][]observed) []signal.Quality {
	c := newFlagCount(channels)
	for _, os := range found {
		for i := range os {
			c.add(os[i].Quality)
		}
	}
	return c.usual()
}

// flagCount counts the quality flags of each channel.
type flagCount struct {
	windows int
	counts  [][8]int
}

func newFlagCount(channels int) *flagCount { return &flagCount{counts: make([][8]int, channels)} }

func (f *flagCount) add(quality []signal.Quality) {
	f.windows++
	for c, q := range quality {
		for bit := range 8 {
			f.counts[c][bit] += int(q >> bit & 1)
		}
	}
}

// usual returns the flags that were counted often.
func (f *flagCount) usual() []signal.Quality {
	qs := make([]signal.Quality, len(f.counts))
	for c := range f.counts {
		for bit, k := range f.counts[c] {
			if float64(k) >= usualShare*float64(f.windows) && k > 0 {
				qs[c] |= 1 << bit
			}
		}
	}
	return qs
}

// gateChannel returns the channel whose level may tell cutting from not
// cutting: the first that measures a force.
func gateChannel(l *signal.Layout) (string, bool) {
	for _, c := range l.Channels() {
		if c.Kind == signal.Force {
			return c.Name, true
		}
	}
	return "", false
}

// learnGate returns the level that best separates the windows into two kinds (see
// [signal.Otsu]). It reports false if the levels do not fall into two kinds,
// because the machine was cutting all the time.
func learnGate(levels []float64) (threshold float64, ok bool) {
	levels = slices.Sorted(slices.Values(levels))
	const (
		share = 0.8  // of the variance that must lie between the two kinds
		ratio = 0.35 // of the mean level while cutting that the other's must stay below
	)
	n := float64(len(levels))
	var sum, squares float64
	for _, v := range levels {
		sum += v
		squares += v * v
	}
	total := squares/n - sum/n*sum/n
	if !(total > 0) {
		return 0, false
	}
	split := signal.Otsu(levels)
	return split.Threshold, split.Between >= share*total && split.Low <= ratio*math.Abs(split.High)
}
