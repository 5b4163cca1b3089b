package gateway

import (
	"fmt"
	"strconv"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/window"
)

// ToolLife is the header of window messages that says which tool of its name is in,
// see signal.Context. A tool that was never declared new has none.
const ToolLife = "tool_life"

// Message returns the Kafka message of a sealed window, as
// schemas/asyncapi.yaml has it.
func Message(e window.Envelope) bus.Message {
	return envelopeMessage(bus.TopicWindows, event.WindowType, e)
}

// FeaturesMessage returns the Kafka message of sealed features that this gateway extracted,
// likewise.
func FeaturesMessage(e window.Envelope) bus.Message {
	m := envelopeMessage(bus.TopicFeatures, event.FeaturesType, e)
	m.Headers = append(m.Headers, bus.Header{Key: "features", Value: []byte(e.Features)}, bus.Header{Key: "extracted", Value: []byte("gateway")})
	return m
}

func envelopeMessage(topic, typ string, e window.Envelope) bus.Message {
	epoch := window.FormatEpoch(e.Epoch)
	m := bus.Message{Topic: topic, Key: e.Machine, Time: e.Time, Value: e.Value}
	for _, a := range event.Attributes(event.WindowID(e.Machine, epoch, e.Seq), e.Machine, typ, e.Time, window.ContentType) {
		m.Headers = append(m.Headers, bus.Header{Key: a[0], Value: []byte(a[1])})
	}
	for _, a := range [][2]string{
		{"layout", e.Layout}, {"epoch", epoch}, {"seq", strconv.FormatUint(e.Seq, 10)}, {"crc32c", fmt.Sprintf("%08x", e.CRC)},
	} {
		m.Headers = append(m.Headers, bus.Header{Key: a[0], Value: []byte(a[1])})
	}
	if e.ToolLife != "" {
		m.Headers = append(m.Headers, bus.Header{Key: ToolLife, Value: []byte(e.ToolLife)})
	}
	return m
}

// Sealed returns the envelope in a message that Message made. One that it did not
// make does not pass window.Codec.Open.
func Sealed(m *bus.Message) window.Envelope {
	number := func(header string, base int) uint64 {
		n, _ := strconv.ParseUint(string(m.Header(header)), base, 64)
		return n
	}
	return window.Envelope{
		Machine: m.Key, ToolLife: string(m.Header(ToolLife)), Layout: string(m.Header("layout")), Time: m.Time, Value: m.Value,
		Epoch: number("epoch", 16), Seq: number("seq", 10), CRC: uint32(number("crc32c", 16)),
	}
}
