package monitor

import (
	"slices"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/window"
)

// seen is a window that was judged, as the record of a machine keeps the last of
// them: for the trace of an alert, and to find them again on Kafka.
type seen struct {
	event.Point
	Offset int64 `json:"offset"` // where it lies in the machine's partition of the windows topic
}

// remember adds the window of r, which lies at an offset, to the last ones.
// They are of one tool and one epoch: those before are no part of its trace.
func (m *machine) remember(r *event.Result, offset int64) {
	if m.traced != r.Tool+"/"+r.Epoch {
		m.traced, m.seen = r.Tool+"/"+r.Epoch, nil
	}
	if n := len(m.seen) - event.MaxTrace + 1; n > 0 {
		m.seen = slices.Delete(m.seen, 0, n)
	}
	m.seen = append(m.seen, seen{event.Point{Seq: r.Seq, End: r.End, Score: r.Score, Verdict: r.Verdict}, offset})
}

// trace returns the last windows as an alert has them.
func (m *machine) trace() []event.Point {
	points := make([]event.Point, len(m.seen))
	for i, s := range m.seen {
		points[i] = s.Point
	}
	return points
}

// cut counts the cutting time of a window that follows one which ended at the
// newest time before it. Windows that overlap do not cut twice.
func (m *machine) cut(w *window.Window) {
	from := w.Start
	if m.last.After(from) && m.last.Before(w.End()) {
		from = m.last
	}
	m.last = w.End()
	m.cutting += w.End().Sub(from)
}
