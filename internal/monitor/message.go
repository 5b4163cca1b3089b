package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/fetch"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// unreadable is why a message is not a window of ours, with its key.
type unreadable struct {
	key   string
	cause error
}

func (e *unreadable) Error() string { return e.cause.Error() }
func (e *unreadable) Unwrap() error { return e.cause }

// openWindow checks a message of any layout and stores its window in w, whose samples are parts of the message's value. It
// returns the window's format. An error knows the key, and the machine if the window is whole
// and cannot be judged.
func (l *layouts) openWindow(m *bus.Message, w *window.Window) (*format, error) {
	e, err := envelope.Unpack(m)
	if err != nil {
		return nil, &unreadable{m.Key, err}
	}
	f, err := l.of(e)
	if err == nil {
		err = f.codec.View(e, w)
	}
	if err == nil {
		err = envelope.CheckFacts(m, w)
	}
	if err != nil {
		return nil, &unreadable{m.Key, refusal(m, e, err)}
	}
	return f, nil
}

// openFeatures does likewise with a message of features that other programs extracted.
func (l *layouts) openFeatures(m *bus.Message, into *window.Features) error {
	e, err := envelope.Unpack(m)
	if err != nil {
		return &unreadable{m.Key, err}
	}
	form, why := l.form(e)
	if why != nil {
		err := refusal(m, e, why)
		var r *machine.Refusal
		if errors.As(err, &r) { // it moves the tool all the same
			if w, bad := window.FactsOf(e); bad == nil && envelope.CheckFacts(m, &w) == nil {
				r.Layout, r.Window = e.Layout, &w
			}
		}
		return &unreadable{m.Key, err}
	}
	if err = form.Open(e, into); err == nil {
		err = envelope.CheckFacts(m, &into.Window)
	}
	if err != nil {
		return &unreadable{m.Key, refusal(m, e, err)}
	}
	return nil
}

// refusal returns err, as a machine.Refusal if it is a Mismatch of a window whose headers can
// be believed.
func refusal(m *bus.Message, e window.Envelope, err error) error {
	var why *window.Mismatch
	if errors.As(err, &why) && m.Key == e.Machine && e.Machine != "" && e.Seq < envelope.MaxSeq && envelope.Named(e.Machine) {
		return &machine.Refusal{Machine: e.Machine, Epoch: window.FormatEpoch(e.Epoch), Seq: e.Seq, Why: why}
	}
	return err
}

// stateMessage returns the message of a state record.
func stateMessage(r event.StateRecord, now time.Time) bus.Message {
	key := r.Key.String()
	if r.Value == nil {
		return bus.Message{Topic: bus.TopicState, Key: key, Route: r.Key.Machine}
	}
	m := envelope.Event(bus.TopicState, r.Key.Machine+"/"+r.Key.Group+"/state", r.Key.Machine, event.StateType, now, r.Value)
	m.Key, m.Route = key, r.Key.Machine
	return m
}

// eventMessage returns the message of an event, the same whenever it is called.
func eventMessage(o machine.Output) bus.Message {
	switch o := o.(type) {
	case machine.Result:
		return envelope.Event(bus.TopicResults, o.ID, o.Machine, event.ResultType, o.End, event.JSON(o.Result))
	case machine.ShadowResult:
		return envelope.Event(bus.TopicShadow, o.ID, o.Machine, event.ResultType, o.End, event.JSON(o.Result))
	case machine.Alert:
		return envelope.Event(bus.TopicAlerts, o.ID, o.Machine, event.AlertType, o.At, event.JSON(o.Alert))
	case machine.ShadowAlert:
		return envelope.Event(bus.TopicShadow, o.ID, o.Machine, event.AlertType, o.At, event.JSON(o.Alert))
	case machine.Advisory:
		return envelope.Event(bus.TopicAlerts, o.ID, o.Machine, event.AdvisoryType, o.At, event.JSON(o.Advisory))
	case machine.Evidence:
		return envelope.Event(bus.TopicAlerts, o.ID, o.Machine, event.EvidenceType, o.To, event.JSON(o.Evidence))
	default:
		panic(fmt.Sprintf("monitor: no topic for %T", o))
	}
}

// SendCommand puts a command on its topic, where the monitor that judges the
// machine gets it. It reports one that no monitor would read.
func SendCommand(ctx context.Context, out *bus.Producer, c event.Command) error {
	m, err := fetch.CommandMessage(c)
	if err != nil {
		return err
	}
	return out.Send(ctx, []bus.Message{m})
}
