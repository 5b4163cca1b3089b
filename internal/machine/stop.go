package machine

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// apply lets an event happen to a machine. A defect that shows as a panic stops the machine, and the others go on: the message goes to
// the dead letters by l, if it is not nil, and an advisory says so. What comes for the machine after that is
// counted, and not judged, until models are deployed again or another owner takes the partition.
func (o *Owner) apply(b *Batch, m *Machine, e Event, l *Letter, now time.Time) (d Decision) {
	if m.stopped != "" {
		d.Unwatched = true
		if _, ok := e.(Command); ok {
			d.Refused = "the machine is stopped: " + m.stopped
		}
		return d
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		b.Panics++
		m.stopped = fmt.Sprintf("a defect of this program (%v)", p)
		if l != nil {
			l.Reason = m.stopped
			b.Letters = append(b.Letters, *l)
		}
		d = m.stop(string(debug.Stack()), now)
	}()
	return m.Apply(e)
}

// stop says that nothing is judged any more.
func (m *Machine) stop(stack string, now time.Time) (d Decision) {
	m.decision = &d
	defer func() {
		_ = recover() // the line below says it all the same
		m.decision, m.dirty.head = nil, true
	}()
	text := fmt.Sprintf("%s: STOPPED, none of its windows is judged: %s. Update the monitor, report the line machine_stopped of its log, and deploy the model again or start the monitor again to try once more", short(m.Machine), m.stopped)
	m.warn("machine_stopped", "%s\n%s", text, stack)
	if m.notice(event.StoppedAdvisory, "") != nil {
		return d
	}
	now = now.UTC().Round(0)
	c := m.causeWithoutWindow(fmt.Sprintf("/stopped/%d", now.UnixNano()), now)
	m.raise(event.StoppedAdvisory, "", now, now, m.byCause(c, m.inSpindleBell().tool.Name), text)
	return d
}

// runs notes that a window of a machine was judged.
func (m *Machine) runs(r *event.Result) {
	if n := m.notice(event.StoppedAdvisory, ""); n != nil {
		m.clear(event.StoppedAdvisory, "", byResult(r), fmt.Sprintf("%s: windows are judged again; judging stopped at %s", short(m.Machine), clockTime(n.Since)))
	}
}

// records returns the records of a machine that changed. State that cannot be written stops the machine.
func (o *Owner) records(b *Batch, m *Machine) (out []Record) {
	defer func() {
		if p := recover(); p != nil {
			b.Panics++
			m.stopped, out = fmt.Sprintf("a defect of this program (its state cannot be written: %v)", p), nil
			b.Lines = append(b.Lines, MachineLine{m.Machine, Line{true, "machine_stopped", short(m.Machine) + ": STOPPED: " + m.stopped + "\n" + string(debug.Stack())}})
		}
	}()
	return m.Records()
}

// open opens a window. A message on which that fails by a panic is set aside like any other.
func (o *Owner) open(b *Batch, in Input) (err error) {
	defer func() {
		if p := recover(); p != nil {
			b.Panics++
			err = fmt.Errorf("a defect of this program (%v): its window cannot be opened", p)
			b.Lines = append(b.Lines, MachineLine{"", Line{true, "window_not_opened", err.Error() + "\n" + string(debug.Stack())}})
		}
	}()
	return in.Open(&o.window)
}
