package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/window"
)

// Open checks a message and stores its window in w, reusing w's memory. Whatever
// passes can be judged, and said in JSON.
func Open(codec *window.Codec, m *bus.Message, w *window.Window) error {
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
	for _, text := range []string{w.Machine, w.Tool, w.Hole} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("monitor: machine, tool or hole %.64q is not UTF-8", text)
		}
	}
	return nil
}

// Envelope returns the sealed window that a message carries. It reports a
// header that is missing or cannot be read; the window itself is not looked at.
func Envelope(m *bus.Message) (window.Envelope, error) {
	e := window.Envelope{Value: m.Value, Time: m.Time}
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

// pending is a result, an alert, evidence or an advisory as the state keeps it.
type pending struct {
	Type string          `json:"type"` // CloudEvents type
	Body json.RawMessage `json:"body"`
}

// message returns the Kafka message of p, the same whenever it is called.
func (p pending) message() (bus.Message, error) {
	switch p.Type {
	case event.ResultType:
		var r event.Result
		if err := json.Unmarshal(p.Body, &r); err != nil {
			return bus.Message{}, fmt.Errorf("pending result: %w", err)
		}
		return message(bus.TopicResults, r.ID, r.Machine, event.ResultType, r.End, p.Body), nil
	case event.AlertType:
		var a event.Alert
		if err := json.Unmarshal(p.Body, &a); err != nil {
			return bus.Message{}, fmt.Errorf("pending alert: %w", err)
		}
		return message(bus.TopicAlerts, a.ID, a.Machine, event.AlertType, a.At, p.Body), nil
	case event.EvidenceType:
		var e event.Evidence
		if err := json.Unmarshal(p.Body, &e); err != nil {
			return bus.Message{}, fmt.Errorf("pending evidence: %w", err)
		}
		return message(bus.TopicAlerts, e.ID, e.Machine, event.EvidenceType, e.To, p.Body), nil
	case event.AdvisoryType:
		var a event.Advisory
		if err := json.Unmarshal(p.Body, &a); err != nil {
			return bus.Message{}, fmt.Errorf("pending advisory: %w", err)
		}
		return message(bus.TopicAlerts, a.ID, a.Machine, event.AdvisoryType, a.At, p.Body), nil
	}
	return bus.Message{}, fmt.Errorf("pending message of type %.64q", p.Type)
}

// message returns a CloudEvent in binary mode, about a window that ended at the
// given time.
func message(topic, id, machine, typ string, at time.Time, body []byte) bus.Message {
	m := bus.Message{Topic: topic, Key: machine, Time: at, Value: body}
	for _, a := range event.Attributes(id, machine, typ, at, "application/json") {
		m.Headers = append(m.Headers, bus.Header{Key: a[0], Value: []byte(a[1])})
	}
	return m
}
