// Package envelope makes Kafka messages of sealed windows, of sealed features and of ledgers, and takes
// them out again. schemas/asyncapi.yaml has the headers.
package envelope

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/window"
)

// Names of headers.
const (
	features  = "features"
	extracted = "extracted"
	offsetOf  = "window_offset"
)

// ToolLife is the header that says which tool of its name is in, see signal.Context. A tool that
// was never declared new has none.
const ToolLife = "tool_life"

// Copied is the header of a raw window that was sent before, or whose features were: it is
// not to be judged. Its value says why it was sent.
const Copied = "copy"

// Acquired is the header that says when the gateway had the whole window, by the gateway's
// clock.
const Acquired = "acquired"

// SetAcquired adds the header to the message of a window.
func SetAcquired(m *bus.Message, at time.Time) { add(m, Acquired, at.UTC().Format(time.RFC3339Nano)) }

// AcquiredAt returns the time in the header; zero if it is missing or cannot be read.
func AcquiredAt(m *bus.Message) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, string(m.Header(Acquired)))
	return at
}

// Extractor is the program that extracted features.
type Extractor string

// The extractors.
const (
	Gateway Extractor = "gateway" // Kafka does not have the window
	Monitor Extractor = "monitor" // the window lies in the windows topic
)

// Window returns the message of a sealed window.
func Window(e window.Envelope) bus.Message {
	return message(bus.TopicWindows, event.WindowType, e)
}

// Features returns the message of sealed features. Offset is where a monitor read the window,
// in the partition of the windows topic that has the same number. A gateway's is ignored.
func Features(e window.Envelope, by Extractor, offset int64) bus.Message {
	m := message(bus.TopicFeatures, event.FeaturesType, e)
	add(&m, features, e.Features)
	add(&m, extracted, string(by))
	if by == Monitor {
		add(&m, offsetOf, strconv.FormatInt(offset, 10))
	}
	return m
}

// ledger is why the message of a ledger is not judged: the release before takes it for a copy, and skips it.
const ledger = "ledger"

// Ledger returns the message of what a gateway says of its samples.
func Ledger(l event.SourceLedger) bus.Message {
	m := Event(bus.TopicWindows, fmt.Sprintf("%s/ledger/%d", l.Machine, l.At.UnixNano()), l.Machine, event.LedgerType, l.At, event.JSON(l))
	add(&m, Copied, ledger)
	return m
}

// IsLedger reports whether a message of the windows topic is a ledger, not a window.
func IsLedger(m *bus.Message) bool { return string(m.Header("ce_type")) == event.LedgerType }

// LedgerOf returns the ledger in a message. It reports one that no gateway sends.
func LedgerOf(m *bus.Message) (event.SourceLedger, error) {
	l, err := event.ReadSourceLedger(m.Value)
	if err == nil && l.Machine != m.Key {
		err = fmt.Errorf("ledger: key %.64q, it is of machine %.64q", m.Key, l.Machine)
	}
	return l, err
}

func add(m *bus.Message, key, value string) {
	m.Headers = append(m.Headers, bus.Header{Key: key, Value: []byte(value)})
}

// Event returns the message of a CloudEvent of JSON in binary mode, about something that happened to a machine at a time.
// The caller gives body away.
func Event(topic, id, machine, typ string, at time.Time, body []byte) bus.Message {
	return cloudEvent(topic, id, machine, typ, at, body, "application/json")
}

func cloudEvent(topic, id, machine, typ string, at time.Time, body []byte, contentType string, more ...[2]string) bus.Message {
	attributes := event.Attributes(id, machine, typ, at, contentType)
	all := append(make([][2]string, 0, mostHeaders), attributes[:]...)
	if trace := event.TraceParent(typ, id); trace != "" {
		all = append(all, [2]string{event.TraceHeader, trace})
	}
	all = append(all, more...)
	size := 0
	for _, a := range all {
		size += len(a[1])
	}
	m := bus.Message{Topic: topic, Key: machine, Time: at, Value: body, Headers: make([]bus.Header, 0, mostHeaders)}
	values := make([]byte, 0, size) // in one piece of memory
	for _, a := range all {
		from := len(values)
		values = append(values, a[1]...)
		m.Headers = append(m.Headers, bus.Header{Key: a[0], Value: values[from:len(values):len(values)]})
	}
	return m
}

// mostHeaders is how many headers a message has room for.
const mostHeaders = 16

func message(topic, typ string, e window.Envelope) bus.Message {
	epoch := window.FormatEpoch(e.Epoch)
	var digits [8]byte
	sum := hex.AppendEncode(digits[:0], binary.BigEndian.AppendUint32(nil, e.CRC))
	m := cloudEvent(topic, event.WindowID(e.Machine, epoch, e.Seq), e.Machine, typ, e.Time, e.Value, window.ContentType,
		[2]string{"layout", e.Layout}, [2]string{"epoch", epoch}, [2]string{"seq", strconv.FormatUint(e.Seq, 10)}, [2]string{"crc32c", string(sum)})
	if e.ToolLife != "" {
		add(&m, ToolLife, e.ToolLife)
	}
	return m
}

// Of returns the sealed window or features that a message carries, by the topic that it lies
// in. It reports a header that is missing or cannot be read. It does not look at the value.
func Of(m *bus.Message) (window.Envelope, error) {
	r := reader{m: m, what: "a window"}
	typ := event.WindowType
	if m.Topic == bus.TopicFeatures {
		r.what, typ = "features", event.FeaturesType
	}
	e := window.Envelope{Value: m.Value, Time: m.Time, ToolLife: string(m.Header(ToolLife))}
	e.Sum, e.Summed = m.Sum()
	if got := r.text("ce_type", typ); r.err == nil && got != typ {
		return e, fmt.Errorf("header ce_type is %.64q, expected %q", got, typ)
	}
	e.Machine = r.text("ce_partitionkey", m.Key)
	e.Layout = r.text("layout", "")
	if m.Topic == bus.TopicFeatures {
		if e.Features = r.text(features, ""); r.err == nil && e.Features == "" {
			r.err = errors.New("header features is empty: expected the fingerprint of a form")
		}
	}
	e.Epoch = r.number("epoch", 16, 64)
	e.Seq = r.number("seq", 10, 64)
	e.CRC = uint32(r.number("crc32c", 16, 32))
	return e, r.err
}

// Origin returns which program extracted the features in a message, and the offset of their
// window in the windows topic, -1 if Kafka does not have the window.
func Origin(m *bus.Message) (by Extractor, offset int64, err error) {
	r := reader{m: m, what: "features"}
	offset = -1
	switch by = Extractor(r.text(extracted, string(Monitor))); {
	case r.err != nil:
	case by == Monitor:
		offset = int64(r.number(offsetOf, 10, 62))
	case by != Gateway:
		return "", -1, fmt.Errorf("header %s is %.64q, expected %s or %s", extracted, by, Gateway, Monitor)
	}
	return by, offset, r.err
}

// reader reads headers, up to the first that cannot be read.
type reader struct {
	m    *bus.Message
	what string
	err  error
}

func (r *reader) bytes(name string) []byte {
	v := r.m.Header(name)
	if v == nil && r.err == nil {
		r.err = fmt.Errorf("no header %q: not %s that Flank sent", name, r.what)
	}
	return v
}

// text returns a header as a text: usual, if that is it.
func (r *reader) text(name, usual string) string {
	v := r.bytes(name)
	if string(v) == usual {
		return usual
	}
	return string(v)
}

func (r *reader) number(name string, base, bits int) uint64 {
	text := r.bytes(name)
	n, bad := strconv.ParseUint(string(text), base, bits)
	if bad != nil && r.err == nil {
		r.err = fmt.Errorf("header %s is %.32q: not a number of %d bits in base %d", name, text, bits, base)
	}
	return n
}
