package gateway

import (
	"fmt"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Edge makes a gateway send the features of windows. The windows stay in the spool, as a
// ring, and are sent when a command asks for them, see Fetcher.
type Edge struct {
	Keep      time.Duration // how long windows stay after they were acquired; must be positive
	KeepBytes int64         // the most bytes of delivered windows that stay; 0: what the spool may take
	Sample    uint64        // windows whose seq is a multiple of it are sent too; 0: none
}

// sampled is why one window in so many is sent next to its features.
const sampled = "sample"

// extraction makes features of windows: of those that are acquired and at once delivered, and of others on delivery.
type extraction struct {
	mu        sync.Mutex
	form      *window.Form
	extractor *window.FeatureExtractor
	window    window.Window
	features  window.Features
	sample    uint64
	refused   bool // a window had no features, and the log says so
}

func newExtraction(layout *signal.Layout, spec window.Spec, e Edge) (*extraction, error) {
	if e.Keep <= 0 || e.KeepBytes < 0 {
		return nil, fmt.Errorf("gateway: edge: windows are kept for %v and up to %d bytes: the time must be positive, the bytes not negative", e.Keep, e.KeepBytes)
	}
	form, err := window.NewForm(layout, spec, signal.FeatureSpec{}, nil)
	if err != nil {
		return nil, err
	}
	return &extraction{form: form, extractor: form.NewExtractor(), sample: e.Sample}, nil
}

// message returns the message of a window's features: the same bytes whenever it is
// called.
func (x *extraction) message(codec *window.Codec, m *bus.Message) (bus.Message, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := openMessage(codec, m, &x.window); err != nil {
		return bus.Message{}, err
	}
	return x.seal(&x.window, m)
}

// fresh is message for a window that is still in memory.
func (x *extraction) fresh(w *window.Window, m *bus.Message) (bus.Message, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seal(w, m)
}

// seal returns the message of the features of w, whose message is m. It needs mu.
func (x *extraction) seal(w *window.Window, m *bus.Message) (bus.Message, error) {
	x.extractor.Extract(w, &x.features)
	e, err := x.form.Seal(&x.features)
	if err != nil {
		return bus.Message{}, err
	}
	f := envelope.Features(e, envelope.Gateway, 0)
	if at := envelope.AcquiredAt(m); !at.IsZero() {
		envelope.SetAcquired(&f, at)
	}
	return f, nil
}

// outgoing adds to msgs what is sent of a window of the spool: the window, or its
// features. A window of another layout, which the spool has from before the configuration
// was changed, goes as it is: nothing is lost, and monitors say what is wrong with it.
func (g *Gateway) outgoing(msgs []bus.Message, r record) []bus.Message {
	x := g.extraction
	if x == nil {
		return append(msgs, r.msg)
	}
	f, err := r.features, error(nil)
	if f.Topic == "" {
		f, err = x.message(g.codec, &r.msg)
	}
	if err != nil {
		if !x.refused {
			g.cfg.Log.Warn().Err(err).Uint64("seq", r.seq).Msg("no features can be made of a window in the spool: it is sent whole; was the layout or the window length changed?")
		}
		x.refused = true
		return append(msgs, r.msg)
	}
	msgs = append(msgs, f)
	if x.sample > 0 && r.seq%x.sample == 0 {
		msgs = append(msgs, copyOf(r.msg, sampled))
	}
	return msgs
}
