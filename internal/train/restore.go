package train

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
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
	channels := r.model.Layout.Channels()
	var err error
	if o.Quality, err = parseQuality(d.Quality, channels); err != nil {
		return fmt.Errorf("row %d: column \"window.quality\": %w", r.rows, err)
	}
	if r.model.Gate != nil {
		if o.Level = d.Level; o.Level != o.Level {
			return fmt.Errorf("row %d: column \"window.level\" is empty, and the level tells when the machine is cutting: %s", r.rows, writeAgain)
		}
	}
	if r.model.Cycle != nil {
		o.Frames, err = parseFrames(d.Frames)
		if want := r.model.Cycle.Frames * len(r.model.Cycle.Inputs); err == nil && len(o.Frames) != want {
			err = fmt.Errorf("has %d numbers, and the cycle of the machine is followed by %d", len(o.Frames), want)
		}
		if err != nil {
			return fmt.Errorf("row %d: column \"window.frames\" %w: %s", r.rows, err, writeAgain)
		}
	}
	return nil
}

const writeAgain = "write the table again with `trainer features`"

// formatQuality returns flags of channels as text: "CV3=dropout+clipped; FX=flatline".
func formatQuality(quality []signal.Quality, channels []signal.Channel) string {
	var words []string
	for i, q := range quality {
		if names := q.Names(); len(names) > 0 {
			words = append(words, channels[i].Name+"="+strings.Join(names, "+"))
		}
	}
	return strings.Join(words, "; ")
}

// parseQuality reads what formatQuality returned, for channels in the same order.
func parseQuality(s string, channels []signal.Channel) ([]signal.Quality, error) {
	out := make([]signal.Quality, len(channels))
	rest := s
	for i, c := range channels {
		flags, ok := strings.CutPrefix(rest, c.Name+"=")
		if !ok {
			continue
		}
		flags, rest, _ = strings.Cut(flags, "; ")
		for name := range strings.SplitSeq(flags, "+") {
			q, ok := qualityOf(name)
			if !ok {
				return nil, fmt.Errorf("%.60q of channel %s is not a flag: %s", name, c.Name, writeAgain)
			}
			out[i] |= q
		}
	}
	if rest != "" {
		return nil, fmt.Errorf("%.60q does not name channels of the layout in their order: %s", s, writeAgain)
	}
	return out, nil
}

// qualityOf returns the flag of a name.
func qualityOf(name string) (signal.Quality, bool) {
	for bit := range 8 {
		if q := signal.Quality(1) << bit; slices.Equal(q.Names(), []string{name}) {
			return q, true
		}
	}
	return 0, false
}

// formatFrames returns numbers as text, from which parseFrames reads the same ones.
func formatFrames(x []float32) string {
	var b []byte
	for i, v := range x {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendFloat(b, float64(v), 'g', -1, 32)
	}
	return string(b)
}

func parseFrames(s string) ([]float32, error) {
	var x []float32
	for word := range strings.FieldsSeq(s) {
		v, err := strconv.ParseFloat(word, 32)
		if err != nil {
			return nil, fmt.Errorf("%.60q is not a list of numbers", s)
		}
		x = append(x, float32(v))
	}
	return x, nil
}
