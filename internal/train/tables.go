package train

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// TableLayout returns the layout of a table that no layout file describes: one
// feature channel for each of its columns, with one value in each window of the
// given length.
func TableLayout(name string, columns []string, window time.Duration) (*signal.Layout, error) {
	var channels []signal.Channel
	for _, c := range columns {
		channels = append(channels, signal.Channel{Name: c, Kind: signal.Feature, Rate: 1 / window.Seconds()})
	}
	if len(channels) == 0 {
		return nil, fmt.Errorf("%s: %w: the table has no feature columns, only what rows are of", name, errData)
	}
	l, err := signal.NewLayout(name, channels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// tableWarnings says which machines a model of tables cannot judge, or would judge wrongly, because of what the
// tables do not say. m knows when machines cut, as far as it can be learnt.
func tableWarnings(c *Config, inputs []Input, m *model.Model) []string {
	measured := func(c signal.Channel) bool { return c.Kind != signal.Feature }
	_, gate := gateChannel(m.Layout)
	switch {
	case !tables(inputs):
	case c.Layout == "" && !slices.ContainsFunc(m.Layout.Channels(), measured):
		return []string{fmt.Sprintf("nothing says of which layout the table's features are, so each of its %d columns is a channel: the model judges machines whose ingest.yaml has these channels (fingerprint %s), and no machine whose windows its columns were computed of; for such machines name the layout file of their ingest.yaml with --layout",
			len(m.Layout.Channels()), m.Layout.Fingerprint())}
	case gate && c.Gate == "auto" && m.Gate == nil && m.Cycle == nil:
		return []string{"nothing says when the machines of the table idle, so the model judges every window, idle ones too: train on recordings, on windows on Kafka, or on a table as `trainer features` wrote it"}
	}
	return nil
}

// observeTable makes observations of the rows of a table, whose columns are
// found by the names of the model's features.
func observeTable(m *model.Model, judge *model.Judge, in *Input) ([]observed, error) {
	t := in.Table
	r, err := newRowReader(m, judge, in.Name, t.Columns)
	if err != nil {
		return nil, err
	}
	os := make([]observed, 0, t.Rows())
	for i := range t.Rows() {
		var o observed
		if in.Observed {
			err = r.restore(t.Row(i), in.Began, &o)
		} else if !isCutting(t.Row(i)) {
			continue
		} else {
			err = r.observe(t.Row(i), &o)
		}
		if err != nil {
			return nil, err
		}
		o.cutOff = slices.ContainsFunc(in.CutOff, func(c model.CutTool) bool { return c.Machine == o.machine && c.Tool == o.Tool })
		os = append(os, o)
	}
	return os, nil
}

// isCutting reports whether a row counts as one of cutting: as all do of which nothing
// else is known.
func isCutting(row table.Row) bool {
	return row.Details == nil || row.Details.Status != table.NotCutting && row.Details.Status != table.SensorFault
}

// rowReader makes observations of the rows of a table, in their order.
type rowReader struct {
	model   *model.Model
	from    []int    // by feature of the model: the column
	classes []string // names
	rule    wear.Rule
	rows    int // observed so far
	ended   map[tool]bool
	current map[string]string // tool by machine

	name  string // of the table
	began map[tool]time.Time
}

type tool struct{ machine, name string }

func newRowReader(m *model.Model, judge *model.Judge, name string, columns []string) (*rowReader, error) {
	column := make(map[string]int, len(columns))
	for c, name := range columns {
		column[name] = c
	}
	names := judge.FeatureNames()
	r := &rowReader{model: m, from: make([]int, len(names)), classes: m.ClassNames(), rule: card.RuleOf(m), ended: make(map[tool]bool), current: make(map[string]string), name: name, began: make(map[tool]time.Time)}
	for i, name := range names {
		c, ok := column[name]
		if !ok {
			return nil, fmt.Errorf("no column %q, a feature of layout %q: the table needs all %d features by name, as `trainer inspect --features` lists a model's features",
				name, m.Layout.Name(), len(names))
		}
		r.from[i] = c
	}
	return r, nil
}

// truthOf returns what a row says of the wear of its tool.
func truthOf(row table.Row) source.Truth {
	t := source.Truth{VBMeanUM: math.NaN(), VBMaxUM: row.VBMaxUM}
	if d := row.Details; d != nil {
		t.VBMeanUM, t.State = d.VBMeanUM, d.State
	}
	return t
}

// observe stores the observation of the next row in o, whose slices it reuses.
func (r *rowReader) observe(row table.Row, o *observed) error {
	r.rows++
	last, any := r.current[row.Machine]
	if !any || last != row.Tool {
		r.ended[tool{row.Machine, last}] = any
		if r.model.Reference.Mode != model.ReferenceOff && r.ended[tool{row.Machine, row.Tool}] {
			return fmt.Errorf("row %d: tool %q comes back after tool %q, but its reference is its own first %d rows: sort rows by tool and time, or set `reference: {mode: \"off\"}`",
				r.rows, row.Tool, last, r.model.Reference.Windows)
		}
		r.current[row.Machine] = row.Tool
		if at := (tool{row.Machine, row.Tool}); r.began[at].IsZero() {
			r.began[at] = row.Start
		}
	}
	class, err := classOf(row.Class, row.Label, r.classes)
	if err != nil {
		return fmt.Errorf("row %d: %w", r.rows, err)
	}
	o.Tool, o.machine, o.hole, o.Start = row.Tool, row.Machine, row.Hole, row.Start
	o.recording, o.began = r.name, r.began[tool{row.Machine, row.Tool}]
	o.Level = math.Inf(1) // cutting, at any level of the gate
	o.truth, o.class, o.row = truthOf(row), class, r.rows
	if o.Features == nil {
		o.Features = make([]float32, len(r.from))
		o.Quality = make([]signal.Quality, len(r.model.Layout.Channels()))
	}
	for k, c := range r.from {
		o.Features[k] = row.Features[c]
	}
	if len(o.Features) == len(o.Quality) { // feature channels: a missing value is a hole, as in a recording
		for k, v := range o.Features {
			o.Quality[k] = 0
			if v != v {
				o.Quality[k] = signal.Dropout
			}
		}
	}
	return nil
}
