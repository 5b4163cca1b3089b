package gateway

import (
	"sync"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/window"
)

// held is a window in memory: until it is durable and, where the spool hands it over, until the broker has it.
type held struct {
	msg      bus.Message
	head     []byte // what precedes the value of msg in the spool
	kept     bool   // the spool hands it over
	ready    chan struct{}
	features bus.Message // once ready is closed; without a topic: they are to be made of msg
}

// memory has what windows were held in, for the next ones. A held window is given back when no one reads it any more: the
// spool has it, and bus.Producer.Send, which sends it or its features, has returned without an error.
type memory struct {
	mu   sync.Mutex
	most int
	free []*held
}

// take returns memory for a window.
func (m *memory) take() *held {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.free) - 1
	if n < 0 {
		return new(held)
	}
	h := m.free[n]
	m.free = m.free[:n]
	return h
}

// give takes memory back.
func (m *memory) give(h *held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.free) < m.most {
		m.free = append(m.free, h)
	}
}

// hold seals a window in memory.
func (g *Gateway) hold(w *window.Window) (*held, error) {
	h := g.memory.take()
	e, err := g.codec.SealIn(h.msg.Value, w)
	if err != nil {
		return nil, err
	}
	h.msg = envelope.Window(e)
	envelope.SetAcquired(&h.msg, g.cfg.Clock.Now())
	h.head, h.features, h.ready = h.msg.AppendHead(h.head[:0]), bus.Message{}, nil
	return h, nil
}

// extract makes the features of a window that the spool has, and that it hands over, while the window is in memory.
func (g *Gateway) extract(h *held, w *window.Window, stored error) {
	defer close(h.ready)
	if stored != nil || !h.kept {
		return
	}
	if f, err := g.extraction.fresh(w, &h.msg); err == nil {
		h.features = f
	}
}
