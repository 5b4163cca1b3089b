package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// ErrOrder is returned for a row that does not begin after the row before it of the same
// machine.
var ErrOrder = errors.New("rows begin before the row before them, or with it: a part of a table came twice, or tables are not in the order of time")

// WindowReader makes features of windows, as a monitor judges them, of the rows of tables that
// `trainer features` wrote. Rows of a machine come in the order of time.
type WindowReader struct {
	meta     *table.Origin
	spec     window.Spec
	layout   *signal.Layout
	columns  []string
	from     []int // by feature of the form: its column
	form     *window.Form
	frames   int // numbers in each row's frames
	level    bool
	machines map[string]*machineRows
	rows     int
}

// machineRows is what is known of a machine's rows so far.
type machineRows struct {
	seq       uint64
	recording string
	seen      map[string]bool // recordings
	shift     time.Duration   // of the times of the recording
	last, end time.Time       // of the last row
}

// NewWindowReader returns a reader of rows of tables. All rows of a machine must come from one
// reader.
func NewWindowReader() *WindowReader { return &WindowReader{machines: make(map[string]*machineRows)} }

// Table says that the rows that follow are of a table with features in these columns.
func (r *WindowReader) Table(f *table.Origin, columns []string) (err error) {
	if f == nil {
		return fmt.Errorf("nothing in the table says which layout and windows its rows are of: %s", table.WriteAgain)
	}
	if how := f.OnlyToLookAt(); how != "" {
		return fmt.Errorf("it was written with %s, to look at: write the table without it", how)
	}
	r.meta, r.columns, r.form, r.rows = f, columns, nil, 0
	r.spec = window.Spec{Length: f.Window.LengthNS, Hop: f.Window.HopNS}
	r.layout, err = f.ReadLayout()
	return err
}

// begin makes the form of which the rows are, by the first of them.
func (r *WindowReader) begin(d *table.Details) error {
	spec := r.spec
	var samples []int
	for _, c := range r.layout.Channels() {
		samples = append(samples, spec.Samples(c.Rate))
	}
	cutting := window.CuttingOf(r.layout, samples)
	if r.level = d.Level == d.Level; !r.level {
		cutting.Gate = ""
	}
	if r.frames = 0; d.Frames == "" {
		cutting.Cycle = nil
	} else if cutting.Cycle != nil {
		r.frames = cutting.Cycle.Frames * len(cutting.Cycle.Inputs)
	}
	form, err := window.NewForm(r.layout, spec, r.meta.Features, &cutting)
	if err != nil {
		return err
	}
	r.from = r.from[:0]
	for _, name := range form.Names() {
		c := slices.Index(r.columns, name)
		if c < 0 {
			return fmt.Errorf("no column %q: %s", name, table.WriteAgain)
		}
		r.from = append(r.from, c)
	}
	r.form = form
	return nil
}

// Read stores the features of the next row in w, reusing its memory. The error is ErrOrder for
// a row that is to be left out.
func (r *WindowReader) Read(row table.Row, w *window.Features) error {
	r.rows++
	err := r.read(row, w)
	if err != nil && !errors.Is(err, ErrOrder) {
		return fmt.Errorf("row %d: %w", r.rows, err)
	}
	return err
}

// readFrames returns the frames of a window, nil if the table has none.
func (r *WindowReader) readFrames(d *table.Details) ([]float32, error) {
	if r.frames == 0 {
		return nil, nil
	}
	frames, err := table.ParseFrames(d.Frames)
	if err == nil && len(frames) != r.frames {
		err = fmt.Errorf("has %d numbers, expected %d", len(frames), r.frames)
	}
	return frames, err
}

func (r *WindowReader) read(row table.Row, w *window.Features) (err error) {
	d := row.Details
	if d == nil {
		return fmt.Errorf("no columns that begin with window.: %s", table.WriteAgain)
	}
	if r.form == nil {
		if err := r.begin(d); err != nil {
			return err
		}
	}
	channels := r.layout.Channels()
	quality, err := table.ParseQuality(d.Quality, channels)
	if err != nil {
		return fmt.Errorf("column \"window.quality\": %w", err)
	}
	frames, err := r.readFrames(d)
	if err != nil {
		return fmt.Errorf("column \"window.frames\" %w: %s", err, table.WriteAgain)
	}
	*w = window.Features{Form: r.form, Frames: frames, Values: w.Values[:0]}
	if w.Level = d.Level; !r.level {
		w.Level = 0
	} else if !(d.Level >= 0) || math.IsInf(d.Level, 0) {
		return fmt.Errorf("column \"window.level\" is %v: %s", d.Level, table.WriteAgain)
	}
	w.Context = signal.Context{Machine: row.Machine, Tool: row.Tool, Hole: row.Hole}
	w.Quality, w.Length, w.Epoch = quality, r.spec.Length, 1
	for _, c := range r.from {
		w.Values = append(w.Values, row.Features[c])
	}
	return r.place(row, w)
}

// place sets when the window of a row began, and its number. A recording follows the one before
// it if it has no clock, or if both say that they began at the same time.
func (r *WindowReader) place(row table.Row, w *window.Features) error {
	m := r.machines[row.Machine]
	if m == nil {
		m = &machineRows{seen: make(map[string]bool)}
		r.machines[row.Machine] = m
	}
	at, d := row.Start, row.Details
	if at.IsZero() {
		if !(math.Abs(d.StartS) < 1e9) {
			return fmt.Errorf("no column \"start\", and column \"window.start_s\" is %v: %s", d.StartS, table.WriteAgain)
		}
		at = time.Unix(0, int64(math.Round(d.StartS*1e9))).UTC()
	}
	if m.seq == 0 || d.Recording != m.recording {
		shift := time.Duration(0)
		if m.seq > 0 && !at.After(m.last) {
			if m.seen[d.Recording] {
				return ErrOrder
			}
			shift = m.end.Sub(at)
		}
		m.recording, m.shift, m.seen[d.Recording] = d.Recording, shift, true
	}
	w.Start = at.Add(m.shift)
	if m.seq > 0 && !w.Start.After(m.last) {
		return ErrOrder
	}
	w.Seq, m.last, m.end = m.seq, w.Start, w.End()
	m.seq++
	return nil
}
