package train

import (
	"fmt"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// TableLayout returns the layout of a table that no layout file describes: one
// feature channel for each of its columns, with one value in each window of the
// given length.
func TableLayout(name string, t *table.Table, window time.Duration) (*signal.Layout, error) {
	var channels []signal.Channel
	for _, c := range t.Columns {
		channels = append(channels, signal.Channel{Name: c, Kind: signal.Feature, Rate: 1 / window.Seconds()})
	}
	if len(channels) == 0 {
		return nil, fmt.Errorf("%s: %w: the table has no feature columns, only what rows are of", name, ErrData)
	}
	l, err := signal.NewLayout(name, channels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// observeTable makes observations of the rows of a table, whose columns are
// told by the names of the model's features.
func observeTable(m *model.Model, judge *model.Judge, t *table.Table) ([]observed, error) {
	column := make(map[string]int, len(t.Columns))
	for c, name := range t.Columns {
		column[name] = c
	}
	names := judge.FeatureNames()
	from := make([]int, len(names))
	for i, name := range names {
		c, ok := column[name]
		if !ok {
			return nil, fmt.Errorf("no column %q, a feature of layout %q: the table needs all %d features by name, as `trainer inspect --features` lists those of a model",
				name, m.Layout.Name(), len(names))
		}
		from[i] = c
	}
	type tool struct{ machine, name string }
	ended := make(map[tool]bool)
	current := make(map[string]string) // tool by machine
	os := make([]observed, t.Rows())
	for i := range os {
		r := t.Row(i)
		last, any := current[r.Machine]
		if any && last != r.Tool {
			ended[tool{r.Machine, last}] = true
			if m.Reference.Mode != model.ReferenceOff && ended[tool{r.Machine, r.Tool}] {
				return nil, fmt.Errorf("row %d: tool %q comes back after tool %q, but its reference is its own first %d rows: sort rows by tool and time, or set `reference: {mode: \"off\"}`",
					i+1, r.Tool, last, m.Reference.Windows)
			}
		}
		current[r.Machine] = r.Tool
		if r.Class > 1 {
			return nil, fmt.Errorf("row %d: class %d: the trainer knows 0, healthy, and 1, faulty: number classes so", i+1, r.Class)
		}
		o := &os[i]
		o.Tool, o.machine, o.hole, o.start = r.Tool, r.Machine, r.Hole, r.Start
		o.Level = math.Inf(1) // cutting, whatever the gate
		o.truth = source.Truth{VBMeanUM: math.NaN(), VBMaxUM: r.VBMaxUM}
		o.class = r.Class
		o.Features = make([]float32, len(names))
		o.Quality = make([]signal.Quality, len(m.Layout.Channels()))
		for k, c := range from {
			o.Features[k] = r.Features[c]
		}
		if len(names) == len(o.Quality) { // feature channels: a missing value is a hole, as in a recording
			for k, v := range o.Features {
				if v != v {
					o.Quality[k] = signal.Dropout
				}
			}
		}
	}
	return os, nil
}
