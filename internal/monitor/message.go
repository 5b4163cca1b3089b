package monitor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// Bounds of what a window message says in words and numbers.
const (
	maxSeq  = 1 << 53 // a greater number is not one in JSON everywhere; 10⁹ windows a second reach it after 104 days
	maxName = 1024    // bytes of a machine, tool or hole
)

// unreadable is why a message is not a window of ours, with its key.
type unreadable struct {
	key   string
	cause error
}

func (e *unreadable) Error() string { return e.cause.Error() }
func (e *unreadable) Unwrap() error { return e.cause }

// open is Open with an error that knows the key, and the machine if the window is refused.
func open(codec *window.Codec, m *bus.Message, w *window.Window) error {
	err := Open(codec, m, w)
	var why *window.Mismatch
	if err == nil {
		return nil
	}
	if e, bad := Envelope(m); bad == nil && errors.As(err, &why) && m.Key == e.Machine && e.Machine != "" && e.Seq < maxSeq && named(e.Machine) {
		err = &machine.Refusal{Machine: e.Machine, Epoch: window.FormatEpoch(e.Epoch), Seq: e.Seq, Why: why}
	}
	return &unreadable{m.Key, err}
}

// plain reports whether text can be part of a key and of a log line.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// named reports whether text can name a machine, a tool or a hole.
func named(text string) bool { return plain(text) && len(text) <= maxName }

// Open checks a message and stores its window in w, reusing w's memory. What passes can
// be judged, and said in JSON.
func Open(codec *window.Codec, m *bus.Message, w *window.Window) error {
	if m.Damage != nil {
		return fmt.Errorf("monitor: %w", m.Damage)
	}
	e, err := Envelope(m)
	if err != nil {
		return err
	}
	if err := codec.Open(e, w); err != nil {
		return err
	}
	if m.Key != e.Machine {
		return fmt.Errorf("monitor: key %.64q, the window is of machine %.64q", m.Key, e.Machine)
	}
	if w.Machine == "" {
		return errors.New("monitor: the window names no machine")
	}
	if w.Seq >= maxSeq {
		return fmt.Errorf("monitor: window %d: an ingester counts windows from 0, none reaches %d", w.Seq, uint64(maxSeq))
	}
	for _, text := range []string{w.Machine, w.Tool, w.ToolLife, w.Hole} {
		if !named(text) {
			return fmt.Errorf("monitor: machine, tool, its life or hole %.64q is not UTF-8, has control characters, or is longer than %d bytes", text, maxName)
		}
	}
	return nil
}

// Envelope returns the sealed window that a message carries. It reports a
// header that is missing or cannot be read; the window itself is not looked at.
func Envelope(m *bus.Message) (window.Envelope, error) {
	e := window.Envelope{Value: m.Value, Time: m.Time, ToolLife: string(m.Header("tool_life"))}
	var err error
	read := func(name string) string {
		v := m.Header(name)
		if v == nil && err == nil {
			err = fmt.Errorf("monitor: no header %q: not a window that Flank sent", name)
		}
		return string(v)
	}
	number := func(name string, base, bits int) uint64 {
		text := read(name)
		n, bad := strconv.ParseUint(text, base, bits)
		if bad != nil && err == nil {
			err = fmt.Errorf("monitor: header %s is %.32q: not a number of %d bits in base %d", name, text, bits, base)
		}
		return n
	}
	if typ := read("ce_type"); err == nil && typ != event.WindowType {
		return e, fmt.Errorf("monitor: header ce_type is %.64q, expected %q", typ, event.WindowType)
	}
	e.Machine = read("ce_partitionkey")
	e.Layout = read("layout")
	e.Epoch = number("epoch", 16, 64)
	e.Seq = number("seq", 10, 64)
	e.CRC = uint32(number("crc32c", 16, 32))
	return e, err
}

// stateMessage returns the message of a state record.
func stateMessage(r machine.Record, now time.Time) bus.Message {
	key := r.Key.String()
	if r.Value == nil {
		return bus.Message{Topic: bus.TopicState, Key: key, Route: r.Key.Machine}
	}
	m := message(bus.TopicState, r.Key.Machine+"/"+r.Key.Group+"/state", r.Key.Machine, event.StateType, now, r.Value)
	m.Key, m.Route = key, r.Key.Machine
	return m
}

// eventMessage returns the message of an event, the same whenever it is called.
func eventMessage(o *machine.Output) bus.Message {
	switch {
	case o.Result != nil:
		r := o.Result
		return message(bus.TopicResults, r.ID, r.Machine, event.ResultType, r.End, event.JSON(r))
	case o.Alert != nil:
		a := o.Alert
		return message(bus.TopicAlerts, a.ID, a.Machine, event.AlertType, a.At, event.JSON(a))
	case o.Evidence != nil:
		e := o.Evidence
		return message(bus.TopicAlerts, e.ID, e.Machine, event.EvidenceType, e.To, event.JSON(e))
	}
	a := o.Advisory
	return message(bus.TopicAlerts, a.ID, a.Machine, event.AdvisoryType, a.At, event.JSON(a))
}

// message returns a CloudEvent in binary mode, about something that happened at the
// given time.
func message(topic, id, machine, typ string, at time.Time, body []byte) bus.Message {
	m := bus.Message{Topic: topic, Key: machine, Time: at, Value: body}
	for _, a := range event.Attributes(id, machine, typ, at, "application/json") {
		m.Headers = append(m.Headers, bus.Header{Key: a[0], Value: []byte(a[1])})
	}
	return m
}

// SendCommand puts a command on its topic, where the monitor that judges the
// machine gets it. It reports one that no monitor would read.
func SendCommand(ctx context.Context, out *bus.Producer, c event.Command) error {
	m, err := commandMessage(c)
	if err != nil {
		return err
	}
	return out.Send(ctx, []bus.Message{m})
}

func commandMessage(c event.Command) (bus.Message, error) {
	if err := c.Check(); err != nil {
		return bus.Message{}, fmt.Errorf("command: %w", err)
	}
	return message(bus.TopicCommands, c.ID, c.Machine, event.CommandType, c.Issued, event.JSON(c)), nil
}
