package train

import (
	"fmt"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/table"
)

// restore stores in o what was observed of a window of a recording, from the row that
// WriteFeatures made of it. Began is the first sample of the recording, if known.
func (r *rowReader) restore(row table.Row, began time.Time, o *observed) error {
	r.rows++
	d := row.Details
	o.Tool, o.machine, o.hole, o.Start = row.Tool, row.Machine, row.Hole, row.Start
	if row.Start.IsZero() {
		o.Start = time.Unix(0, int64(math.Round(d.StartS*1e9))).UTC()
	}
	if !began.IsZero() {
		o.recording, o.began = r.name, began
	}
	o.truth, o.class, o.row = truthOf(row), table.NoClass, r.rows
	if _, ok := r.rule.Class(o.truth.VBMeanUM, o.truth.VBMaxUM, o.truth.State); !ok {
		class, err := classOf(row.Class, row.Label, r.classes)
		if err != nil {
			return fmt.Errorf("row %d: %w", r.rows, err)
		}
		o.class = class
	}
	o.Features = make([]float32, len(r.from))
	for k, c := range r.from {
		o.Features[k] = row.Features[c]
	}
	var err error
	if o.Quality, err = table.ParseQuality(d.Quality, r.model.Layout.Channels()); err != nil {
		return fmt.Errorf("row %d: column \"window.quality\": %w", r.rows, err)
	}
	if r.model.Gate != nil {
		if o.Level = d.Level; o.Level != o.Level {
			return fmt.Errorf("row %d: column \"window.level\" is empty, and the level tells when the machine is cutting: %s", r.rows, table.WriteAgain)
		}
	}
	if r.model.Cycle != nil {
		o.Frames, err = table.ParseFrames(d.Frames)
		if want := r.model.Cycle.Frames * len(r.model.Cycle.Inputs); err == nil && len(o.Frames) != want {
			err = fmt.Errorf("has %d numbers, and the cycle of the machine is followed by %d", len(o.Frames), want)
		}
		if err != nil {
			return fmt.Errorf("row %d: column \"window.frames\" %w: %s", r.rows, err, table.WriteAgain)
		}
	}
	return nil
}
