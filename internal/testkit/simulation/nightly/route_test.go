package nightly

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/route"
)

const (
	hookAddress = "127.0.0.1:80"
	routeName   = "hook"
)

// delivery is an event that the receiver of a route took.
type delivery struct {
	id, machine string
	body        []byte
}

// hook is a program that takes events from a route over HTTP. Until faults end it is sometimes
// away, refuses, hangs, or takes an event without an answer.
type hook struct {
	w       *world
	asked   int
	refused int
	got     []delivery
}

// serve serves until ctx ends.
func (h *hook) serve(ctx context.Context) {
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(h.w.net.listen(hookAddress, true)); !errors.Is(err, http.ErrServerClosed) {
		h.w.fail([]string{"receiver of the route: " + err.Error()})
	}
}

func (h *hook) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	id, err := url.PathUnescape(req.Header.Get("Webhook-Id"))
	if err != nil {
		h.w.fail([]string{"webhook-id: " + err.Error()})
	}
	answer, by, take := h.draw()
	h.w.story.say("receiver: event %s, answer %d in %v", id, answer, by)
	if take {
		h.take(id, body)
	}
	select {
	case <-time.After(by):
	case <-req.Context().Done():
	}
	if answer == 0 {
		panic(http.ErrAbortHandler) // the connection breaks
	}
	out.WriteHeader(answer)
}

// draw draws the outcome of a request: the answer, or 0 for none; how long it takes; and whether
// the receiver takes the event.
func (h *hook) draw() (answer int, by time.Duration, take bool) {
	n := h.w.net
	n.mu.Lock()
	defer n.mu.Unlock()
	h.asked++
	if n.calm {
		return http.StatusNoContent, 0, true
	}
	away := n.draw("receiver is away", int(time.Since(bubbleStart)/(20*time.Second))) < 0.2
	switch k := n.draw("receiver", h.asked); {
	case away, k < 0.1:
		answer = http.StatusServiceUnavailable
	case k < 0.15:
		answer = http.StatusTooManyRequests
	case k < 0.2: // sometimes longer than the route waits
		answer, by = http.StatusNoContent, n.within(20*time.Second, "receiver is slow", h.asked)
		take = true
	case k < 0.25:
		take = true // and the connection breaks
	case k < 0.3: // it breaks before
	default:
		answer, take = http.StatusOK, true
	}
	if answer/100 != 2 {
		h.refused++
	}
	return answer, by, take
}

func (h *hook) take(id string, body []byte) {
	var e struct{ Machine string }
	if err := json.Unmarshal(body, &e); err != nil {
		h.w.fail([]string{"a route sends what is not JSON: " + err.Error()})
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.got = append(h.got, delivery{id, e.Machine, body})
}

// beginRoute sets the position of the route's group to the beginning.
func (w *world) beginRoute(ctx context.Context) error {
	g, err := bus.NewGroup(w.bus("admin"), routedGroup+"-route-"+routeName, bus.TopicAlerts)
	if err == nil {
		_, err = g.BeginAtEnd(ctx)
	}
	return err
}

// route delivers the events of the group to the receiver, in the program called name, until ctx
// ends. The function that it returns waits for the end.
func (w *world) route(ctx context.Context, name string) (wait func()) {
	r, err := route.New(route.Config{Name: routeName, Receivers: route.Receivers{Webhook: &route.Webhook{URL: "http://" + hookAddress}}},
		route.Options{Bus: w.bus(name), Group: routedGroup, Dial: w.net.dialer(name), Log: w.log(name)})
	if err != nil {
		w.fail([]string{err.Error()})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.Close()
		r.Run(ctx)
	}()
	return func() { <-done }
}

// checkRoute returns a sentence for each violation of these rules, for the events that the
// receiver of a group's route took:
//
//   - the receiver took every published event of the group, with its body, and no other;
//   - for each machine, the first deliveries come in the order in which the events were
//     published.
func checkRoute(group string, alerts []bus.Message, got []delivery) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf("route: "+format, args...)) }
	bodies := make(map[string][]byte)
	order := make(map[string][]string) // ids by machine
	for _, m := range alerts {
		var e struct{ Group, Machine string }
		if err := json.Unmarshal(m.Value, &e); err != nil {
			say("event %s: %v", m.Header("ce_id"), err)
			continue
		}
		id := string(m.Header("ce_id"))
		if e.Group == group && bodies[id] == nil {
			bodies[id], order[e.Machine] = m.Value, append(order[e.Machine], id)
		}
	}
	taken := make(map[string]bool)
	for _, d := range got {
		switch body := bodies[d.id]; {
		case body == nil:
			say("event %s was delivered, and was not published", d.id)
		case !bytes.Equal(body, d.body):
			say("event %s was delivered as\n%s\nand published as\n%s", d.id, d.body, body)
		case taken[d.id]:
		case order[d.machine][0] != d.id:
			say("event %s was delivered before %s, which was published earlier", d.id, order[d.machine][0])
			taken[d.id] = true
		default:
			taken[d.id], order[d.machine] = true, order[d.machine][1:]
			for len(order[d.machine]) > 0 && taken[order[d.machine][0]] {
				order[d.machine] = order[d.machine][1:]
			}
		}
	}
	for _, m := range alerts {
		if id := string(m.Header("ce_id")); bodies[id] != nil && !taken[id] {
			say("event %s was published, and was not delivered", id)
		}
	}
	return wrong
}
