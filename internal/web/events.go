package web

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// The pace of an event stream.
const (
	pause        = 200 * time.Millisecond // least time between two events: people cannot read faster
	heartbeat    = 15 * time.Second       // most time between two events
	retry        = 2 * time.Second        // before a page connects again
	writeTimeout = 10 * time.Second       // after which a page that takes nothing is let go
)

// serveEvents streams one machine and the list of all machines to a page. The machine
// stays the same for as long as the stream lasts. Event ids are cursors: a page that
// comes back with Last-Event-ID gets what it missed, if the hub still holds it.
func (h *Hub) serveEvents(w http.ResponseWriter, r *http.Request) {
	hd := w.Header()
	hd.Set("Content-Type", "text/event-stream")
	hd.Set("Cache-Control", "no-store")
	hd.Set("X-Accel-Buffering", "no") // proxies would hold events back
	if r.Method == http.MethodHead {
		return
	}
	page, ok := h.join()
	if !ok {
		text(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already: close one", maxPages))
		return
	}
	defer h.leave(page)

	s := stream{w: w, control: http.NewResponseController(w)}
	fmt.Fprintf(&s.buf, "retry: %d\n", retry.Milliseconds())
	name := h.choose(r.URL.Query())
	at, fresh := h.resume(r.Header.Get("Last-Event-ID"))
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			err = s.send("beat", h.id(at), []byte("{}"))
		case <-page:
			if name == "" {
				name = h.choose(nil) // the page came before there was a machine
			}
			var u update
			if fresh {
				u, at, fresh = h.since(at, name)
			}
			if fresh {
				err = s.send("update", h.id(at), encode(u))
			} else {
				var all snapshot
				all, at = h.snapshot(name)
				fresh = true
				err = s.send("snapshot", h.id(at), encode(all))
			}
		}
		if err != nil {
			return // the page is gone
		}
		beat.Reset(heartbeat)
		select {
		case <-r.Context().Done():
			return
		case <-time.After(pause):
		}
	}
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

// send writes one event and waits until the connection has taken it. data must
// be one line.
func (s *stream) send(name, id string, data []byte) error {
	fmt.Fprintf(&s.buf, "event: %s\nid: %s\ndata: ", name, id)
	s.buf.Write(data)
	s.buf.WriteString("\n\n")
	// A writer without deadlines, as in a test, is used all the same.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.buf.WriteTo(s.w); err != nil {
		return err
	}
	return s.control.Flush()
}
