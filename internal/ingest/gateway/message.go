package gateway

import (
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/window"
)

// openMessage stores the window of a message in w.
func openMessage(codec *window.Codec, m *bus.Message, w *window.Window) error {
	e, err := envelope.Of(m)
	if err != nil {
		return err
	}
	return codec.Open(e, w)
}

// copyOf returns a window's message that says that the window, or its features, was sent
// before, and why it is sent again.
func copyOf(m bus.Message, why string) bus.Message {
	m.Headers = append(m.Headers[:len(m.Headers):len(m.Headers)], bus.Header{Key: envelope.Copied, Value: []byte(why)})
	return m
}
