package web

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The pace of an event stream.
const (
	pause        = 200 * time.Millisecond // least time between two events: people cannot read faster
	systemPause  = 2 * time.Second        // between two events of the page of the system
	heartbeat    = 15 * time.Second       // most time between two events
	retry        = 2 * time.Second        // before a page connects again
	writeTimeout = 10 * time.Second       // after which a page that takes nothing is let go
)

// view is what one page shows: it knows how much of it the page has seen.
type view interface {
	// resume takes the id of the last event that the page got. Of an id that it cannot go on
	// from it takes no notice, and next begins with a snapshot.
	resume(id string)
	// next returns the events that are new for the page, the oldest first.
	next() []message
	// wait returns how long the next call of next should wait at least.
	wait() time.Duration
	// close must be called once.
	close()
}

// message is an event of a stream.
type message struct {
	name, id string // an empty id: the stream cannot be resumed
	data     []byte // one line
}

// viewOf returns the view that a request asks for, or what is wrong with the request.
func (x *server) viewOf(r *http.Request) (view, *apiError) {
	q := r.URL.Query()
	switch page := q.Get("page"); page {
	case "fleet":
		return &fleetView{server: x, r: r}, nil
	case "machine":
		if q.Get("machine") == "" {
			return nil, badRequest("machine is missing", "name the machine: /api/events?page=machine&machine=NAME")
		}
		return x.viewMachine(r, q.Get("machine"), ""), nil
	case "alarm":
		if !isIncident(q.Get("incident")) {
			return nil, badRequest(fmt.Sprintf("incident %.40q is not the name of an alarm", q.Get("incident")), "names of alarms look like A-K3ZQ7M2P")
		}
		return x.viewMachine(r, x.machineOf(q.Get("incident")), q.Get("incident")), nil
	case "system":
		return &systemView{server: x, r: r}, nil
	case "":
		return nil, badRequest("page is missing", "reload the page: it is of an older release; or choose page=fleet, machine, alarm or system")
	default:
		return nil, badRequest(fmt.Sprintf("page %.40q is not known", page), "choose page=fleet, machine, alarm or system")
	}
}

// serveEvents streams what a page shows. Event ids say what the page has seen: a page that
// comes back with Last-Event-ID gets what it missed, if the hub still holds it.
func (x *server) serveEvents(w http.ResponseWriter, r *http.Request) {
	hd := w.Header()
	if r.Method == http.MethodHead {
		hd.Set("Content-Type", "text/event-stream")
		return
	}
	v, bad := x.viewOf(r)
	if bad != nil {
		bad.send(w)
		return
	}
	defer v.close()
	wake, ok := x.hub.join()
	if !ok {
		(&apiError{http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already", maxPages), "close one"}).send(w)
		return
	}
	defer x.hub.leave(wake)
	hd.Set("Content-Type", "text/event-stream")
	hd.Set("Cache-Control", "no-store")
	hd.Set("X-Accel-Buffering", "no") // proxies would hold events back
	s := stream{w: w, control: http.NewResponseController(w)}
	fmt.Fprintf(&s.buf, "retry: %d\n", retry.Milliseconds())
	v.resume(r.Header.Get("Last-Event-ID"))
	s.run(r, x.hub, v, wake)
}

// run sends what is new until the page is gone.
func (s *stream) run(r *http.Request, h *Hub, v view, wake <-chan struct{}) {
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	var every <-chan time.Time
	if _, ok := v.(*systemView); ok { // nothing wakes it but its beginning
		t := time.NewTicker(systemPause)
		defer t.Stop()
		every = t.C
	}
	for {
		var events []message
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			events = []message{{name: "beat", data: encode(map[string]time.Time{"now": h.now().UTC()})}}
		case <-every:
			events = v.next()
		case <-wake:
			if every != nil {
				wake = nil
			}
			if !sleep(r, v.wait()) {
				return
			}
			events = v.next()
		}
		for _, e := range events {
			if s.send(e) != nil {
				return // the page is gone
			}
			beat.Reset(heartbeat)
		}
	}
}

// sleep waits, and reports false if the request ended.
func sleep(r *http.Request, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

// send writes one event and waits until the connection has taken it.
func (s *stream) send(m message) error {
	fmt.Fprintf(&s.buf, "event: %s\n", m.name)
	if m.id != "" {
		fmt.Fprintf(&s.buf, "id: %s\n", m.id)
	}
	s.buf.WriteString("data: ")
	s.buf.Write(m.data)
	s.buf.WriteString("\n\n")
	// A writer without deadlines, as in a test, is used all the same.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.buf.WriteTo(s.w); err != nil {
		return err
	}
	return s.control.Flush()
}

// fleetView is the page of the fleet. Its event ids are numbers of frames.
type fleetView struct {
	server *server
	r      *http.Request
	frame  uint64
	fresh  bool // the page has a snapshot
}

func (v *fleetView) id() string {
	return v.server.hub.boot + "-fleet-" + strconv.FormatUint(v.frame, 10)
}

func (v *fleetView) resume(id string) {
	rest, ok := strings.CutPrefix(id, v.server.hub.boot+"-fleet-")
	if !ok {
		return
	}
	if n, err := strconv.ParseUint(rest, 10, 64); err == nil {
		v.frame, v.fresh = n, true
	}
}

func (v *fleetView) wait() time.Duration {
	if !v.fresh {
		return 0
	}
	return v.server.frameDue()
}

func (v *fleetView) next() (all []message) {
	if v.fresh {
		if frames, ok := v.server.framesAfter(v.frame); ok {
			for _, data := range frames {
				v.frame++
				all = append(all, message{"update", v.id(), data})
			}
			return all
		}
	}
	snapshot, last := v.server.fleetSnapshot(v.r)
	v.frame, v.fresh = last, true
	return []message{{"snapshot", v.id(), encode(snapshot)}}
}

func (v *fleetView) close() {}

// machineView is the page of a machine, or of one of its alarms. Its event ids are cursors.
type machineView struct {
	server   *server
	r        *http.Request
	machine  string
	incident string // empty: the page of the machine
	seen     cursor
	alarms   int // machines with an alarm that calls, as the page knows it
	fresh    bool
	sentAt   time.Time
}

// viewMachine returns the view of a machine, or of an alarm of it. The machine may be empty as
// long as it is not known whose alarm it is.
func (x *server) viewMachine(r *http.Request, machine, incident string) *machineView {
	if incident == "" {
		x.hub.beginWatch(machine)
	}
	return &machineView{server: x, r: r, machine: machine, incident: incident}
}

func (v *machineView) close() {
	if v.incident == "" {
		v.server.hub.endWatch(v.machine)
	}
}

func (v *machineView) resume(id string) { v.seen, v.fresh = v.server.resume(id) }

func (v *machineView) wait() time.Duration { return pause - time.Since(v.sentAt) }

func (v *machineView) next() []message {
	v.sentAt = time.Now()
	if v.machine == "" {
		v.machine = v.server.machineOf(v.incident)
	}
	if v.fresh {
		u, next, ok := v.server.since(v.seen, v.machine)
		if ok {
			unchanged := v.seen == next && v.alarms == u.Alarms
			v.seen, v.alarms = next, u.Alarms
			if unchanged {
				return nil
			}
			if v.incident != "" {
				u.only(v.incident)
			}
			return []message{{"update", v.server.id(next), encode(u)}}
		}
	}
	v.fresh = true
	if v.incident != "" {
		page, next := v.server.alarmSnapshot(v.r, v.machine, v.incident)
		v.seen = next
		return []message{{"snapshot", v.server.id(next), encode(page)}}
	}
	machine, next := v.server.snapshot(v.machine)
	v.seen = next
	return []message{{"snapshot", v.server.id(next), encode(machineSnapshot{v.server.head(v.r), machine != nil, machine})}}
}

// systemView is the page of the system. Each of its events is everything.
type systemView struct {
	server *server
	r      *http.Request
	sent   bool
}

func (v *systemView) resume(string) {}

func (v *systemView) wait() time.Duration { return 0 }

func (v *systemView) next() []message {
	name := "update"
	if !v.sent {
		name, v.sent = "snapshot", true
	}
	return []message{{name: name, data: encode(systemPage{v.server.head(v.r), v.server.systemNow(v.r.Context())})}}
}

func (v *systemView) close() {}
