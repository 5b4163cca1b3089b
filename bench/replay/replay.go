// Package replay judges the lives of tools as a monitor does, from features that are at hand.
package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Start is when the window of a row began where rows have an order and no times.
func Start(row int) time.Time { return time.Unix(1_700_000_000+int64(row), 0).UTC() }

// Life judges the windows of a tool, which are the rows of a table, the first one first, with features as they are before the reference. Seen is
// called with each window once the judge has taken it, decided with its verdict unless it makes the reference; n counts windows from 1. It is an
// error if a feature of the model is missing, or a window is of a machine that does not cut.
func Life(m *model.Model, tool string, t *table.Table, seen func(j *model.Judge, r table.Row), decided func(n int, r table.Row, v model.Verdict)) error {
	judge := m.NewJudge()
	column, err := columnsOf(t.Columns, judge.FeatureNames())
	if err != nil {
		return err
	}
	o := model.Observation{Tool: tool, Level: math.Inf(1), Quality: make([]signal.Quality, len(m.Layout.Channels())), Features: make([]float32, len(column))}
	var ref model.Reference
	var memory model.Memory
	n := 0
	for i := range t.Rows() {
		r := t.Row(i)
		if r.Tool != tool {
			continue
		}
		if n++; r.Start.IsZero() {
			r.Start = Start(i)
		}
		o.Start = r.Start
		take(&o, r.Features, column)
		row, v := judge.Row(&o, &ref, &memory)
		seen(judge, r)
		if row != nil {
			decided(n, r, judge.Decide(row, judge.Cutting(), judge.Center()))
		} else if v.Outcome != model.Learning {
			return fmt.Errorf("tool %s, window %d: %s: every window must be judged", tool, n, v.Outcome)
		}
	}
	return nil
}

// FirstAlarm watches for the first alarm of a tool, with the default settings.
type FirstAlarm struct {
	UM    float64 // wear at the alarm; NaN: there was none
	state alarm.State
}

// NewFirstAlarm returns one that has seen nothing.
func NewFirstAlarm() FirstAlarm { return FirstAlarm{UM: math.NaN()} }

// See takes the next window and its verdict. Some verdicts are neither for nor against an alarm, as in the monitor.
func (f *FirstAlarm) See(m *model.Model, r table.Row, v model.Verdict) {
	end := r.Start.Add(m.Window.Length)
	if v.Reason.Counts() && f.state.Observe(alarm.Default, false, alarm.Default.IsFaulty(v.Score), r.Start, end, end) == alarm.Raised && f.UM != f.UM {
		f.UM = r.VBMaxUM
	}
}

// columnsOf returns which columns the features of a model are.
func columnsOf(columns, features []string) ([]int, error) {
	column := make([]int, 0, len(features))
	for _, name := range features {
		at := slices.Index(columns, name)
		if at < 0 {
			return nil, fmt.Errorf("the table has no feature %q", name)
		}
		column = append(column, at)
	}
	return column, nil
}

// take stores the features of a row in an observation. Where each feature is a channel, a
// missing value is a hole in it.
func take(o *model.Observation, row []float32, column []int) {
	for k, at := range column {
		o.Features[k] = row[at]
		if len(column) == len(o.Quality) {
			if o.Quality[k] = 0; row[at] != row[at] {
				o.Quality[k] = signal.Dropout
			}
		}
	}
}
