package machine

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
)

// defect is a panic: nothing that comes from outside may cause one.
type defect struct {
	text  string
	stack []byte
}

func (d *defect) Error() string { return "a defect of this program (" + d.text + ")" }

// guard calls do and returns its panic as a defect; nil if there was none.
func guard(do func()) (d *defect) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *defect: // of a build, in another goroutine
			d = p
		default:
			d = &defect{fmt.Sprint(p), debug.Stack()}
		}
	}()
	do()
	return nil
}

// apply lets an event happen to a machine. A defect stops the machine, and the others go on: the message goes to
// the dead letters by l, if it is not nil, and an advisory says so. What comes for the machine after that is
// counted, and not judged, until models are deployed again or another owner takes the partition.
func (o *Owner) apply(b *Batch, m *Machine, e Event, l *Letter) (d Decision) {
	if m.stopped != "" {
		d.Unwatched = true
		if _, ok := e.(Command); ok {
			d.Refused = "the machine is stopped: " + m.stopped
		}
		return d
	}
	if bad := guard(func() { d = m.Apply(e) }); bad != nil {
		if l != nil {
			l.Reason = bad.Error()
			b.Letters = append(b.Letters, *l)
		}
		d = m.stop(bad, b.now)
	}
	return d
}

// stop stops a machine, and says that nothing is judged any more. What the event had said of alarms and advisories before the defect stays:
// they have changed.
func (m *Machine) stop(bad *defect, now time.Time) Decision {
	m.stopped, m.decision.Result = bad.Error(), nil
	_ = guard(func() { m.tellStopped(bad, now.UTC().Round(0)) }) // its first line is there all the same
	m.dirty.head = true
	m.decision.Defects++
	return m.decision.take()
}

func (m *Machine) tellStopped(bad *defect, now time.Time) {
	text := fmt.Sprintf("%s: STOPPED, none of its windows is judged: %s. Update the monitor, report the line machine_stopped of its log, and deploy the model again or start the monitor again to try once more", event.ShortName(m.Machine), m.stopped)
	m.decision.warn("machine_stopped", "%s\n%s", text, bad.stack)
	if m.Notices.of(event.StoppedAdvisory, "") != nil {
		return
	}
	c := m.causeWithoutWindow(fmt.Sprintf("/stopped/%d", now.UnixNano()), now)
	m.Notices.raise(m.decision, event.StoppedAdvisory, "", now, now, m.alarms.byCause(c, m.alarms.inSpindle().tool.Name), text)
}

// runs notes that a window of a machine was judged.
func (m *Machine) runs(r *event.Result) {
	if n := m.Notices.of(event.StoppedAdvisory, ""); n != nil {
		m.Notices.clear(m.decision, event.StoppedAdvisory, "", byResult(r), fmt.Sprintf("%s: windows are judged again; judging stopped at %s", event.ShortName(m.Machine), statement.Clock(n.Since)))
	}
}

// takeIn makes a machine of its records. Records that cannot be used are set aside: they must not keep the others from being
// judged. A defect stops the machine. Its records stay as they are, and are read again once models are deployed again.
func (o *Owner) takeIn(b *Batch, name string, records []event.StateRecord) {
	var m *Machine
	var err error
	was := o.machines[name] // that stopped because they could not be read before; nil: none
	bad := guard(func() { m, err = o.load(name, name, records, b.now) })
	if err != nil {
		setRecordsAside(b, name, records, err)
	}
	switch {
	case m != nil:
		o.put(name, m)
	case bad != nil || was != nil:
		m = o.meet(name, b.now)
	default:
		return
	}
	if was != nil && m.Notices.of(event.StoppedAdvisory, "") == nil { // people know of it, and are to hear of its end
		m.Notices, m.dirty.head = append(m.Notices, was.Notices...), true
	}
	if bad != nil {
		m.unread, m.unwritable = records, true
		o.add(b, m, m.stop(bad, b.now))
	}
}

// records returns the records of a machine that changed. State that cannot be written stops the machine.
func (o *Owner) records(b *Batch, m *Machine) (out []event.StateRecord) {
	if m.unwritable {
		return nil
	}
	if bad := guard(func() { out = m.Records() }); bad != nil {
		bad.text = "its state cannot be written: " + bad.text
		m.unwritable = true
		o.add(b, m, m.stop(bad, b.now))
		return nil
	}
	return out
}

// open opens a window. A message on which that fails by a defect is set aside like any other.
func (o *Owner) open(b *Batch, in Input) (err error) {
	if bad := guard(func() { err = in.Open(&o.window) }); bad != nil {
		b.Panics++
		b.Lines = append(b.Lines, machineLine{"", Line{true, "window_not_opened", fmt.Sprintf("a window cannot be opened: %v\n%s", bad, bad.stack)}})
		return bad
	}
	return err
}
