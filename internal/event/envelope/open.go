package envelope

import (
	"errors"
	"fmt"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/window"
)

// Bounds of what a window message says in words and numbers.
const (
	MaxSeq  = 1 << 53 // a greater number is not one in JSON everywhere; 10⁹ windows a second reach it after 104 days
	MaxName = 1024    // bytes of a machine, tool or hole
)

// Open checks a message and stores its window in w, reusing w's memory. What passes can
// be judged, and said in JSON.
func Open(codec *window.Codec, m *bus.Message, w *window.Window) error {
	e, err := Unpack(m)
	if err != nil {
		return err
	}
	if err := codec.Open(e, w); err != nil {
		return err
	}
	return CheckFacts(m, w)
}

// OpenFeatures does likewise with a message of features of a form.
func OpenFeatures(form *window.Form, m *bus.Message, x *window.Features) error {
	e, err := Unpack(m)
	if err != nil {
		return err
	}
	if err := form.Open(e, x); err != nil {
		return err
	}
	return CheckFacts(m, &x.Window)
}

// Unpack is Of for a message as it came from Kafka, which may be damaged.
func Unpack(m *bus.Message) (window.Envelope, error) {
	if m.Damage != nil {
		return window.Envelope{}, m.Damage
	}
	return Of(m)
}

// CheckFacts reports facts of a window that cannot be said in JSON, or that its message
// contradicts.
func CheckFacts(m *bus.Message, w *window.Window) error {
	if m.Key != w.Machine {
		return fmt.Errorf("key %.64q, the window is of machine %.64q", m.Key, w.Machine)
	}
	if w.Machine == "" {
		return errors.New("the window names no machine")
	}
	if w.Seq >= MaxSeq {
		return fmt.Errorf("window %d: an ingester counts windows from 0, none reaches %d", w.Seq, uint64(MaxSeq))
	}
	for _, text := range []string{w.Machine, w.Tool, w.ToolLife, w.Hole, w.Programme, w.Material} {
		if !Named(text) {
			return fmt.Errorf("machine, tool, its life, hole, programme or material %.64q is not UTF-8, has control characters, or is longer than %d bytes", text, MaxName)
		}
	}
	return nil
}

// Named reports whether text can name a machine, a tool or a hole, in a key and in a log line.
func Named(text string) bool { return plain.Check(text) == nil && len(text) <= MaxName }
