package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/internal/web/summary"
)

// store opens a history.
func (p *plant) store(dir string) *summary.Store {
	p.t.Helper()
	s, notice, err := summary.Open(dir, DefaultGroup)
	if err != nil || notice != "" {
		p.t.Fatal(notice, err)
	}
	p.t.Cleanup(func() { s.Close() })
	return s
}

// follow follows the topics for a hub and a store until the test ends or stop is called.
func (p *plant) follow(hub *web.Hub, store *summary.Store, change ...func(*Follower)) (stop func()) {
	f := &Follower{Bus: p.bus, Group: DefaultGroup, Hub: hub, Store: store, Log: zerolog.New(&p.log)}
	for _, c := range change {
		c(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	stop = func() { cancel(); <-ended }
	p.t.Cleanup(stop)
	return stop
}

// eventually waits until what is true.
func (p *plant) eventually(what string, is func() bool) {
	p.t.Helper()
	await.Right(p.t, func() string {
		if is() {
			return ""
		}
		return fmt.Sprintf("still waiting until %s\nlog:\n%s", what, p.log.String())
	})
}

// verdicts puts results of a machine on their topic, and returns them.
func (p *plant) verdicts(machine, epoch string, from, n int) {
	p.t.Helper()
	var msgs []bus.Message
	for i := range n {
		seq := from + i
		start := time.Now().Add(-time.Minute).Add(time.Duration(seq) * time.Second).UTC()
		r := event.Result{
			ID: fmt.Sprintf("%s/%s/%d/%s", machine, epoch, seq, DefaultGroup), Group: DefaultGroup, Machine: machine, Epoch: epoch, Seq: uint64(seq),
			Tool: "T1", Start: start, End: start.Add(time.Second), Verdict: event.Healthy, Posterior: []float64{0.9, 0.1}, Score: 0.1,
		}
		msgs = append(msgs, envelope.Event(bus.TopicResults, r.ID, machine, event.ResultType, r.End, event.JSON(r)))
	}
	p.send(msgs...)
}

// counted returns how many windows of each machine the store has.
func counted(t *testing.T, s *summary.Store, machines ...string) []int {
	t.Helper()
	time.Sleep(time.Second) // the store writes once a second for queries
	n := make([]int, len(machines))
	for i, machine := range machines {
		h, err := s.History(machine, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour), time.Minute)
		if err != nil && err != summary.ErrNoMachine {
			t.Fatal(err)
		}
		for _, w := range h.Points.Windows {
			n[i] += w
		}
	}
	return n
}

// stripOf returns the last verdicts of a machine on a page.
func stripOf(t *testing.T, hub *web.Hub, machine string) string {
	t.Helper()
	w := httptest.NewRecorder()
	hub.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/machines/"+url.PathEscape(machine), nil))
	var tile struct{ Strip string }
	if err := json.Unmarshal(w.Body.Bytes(), &tile); err != nil {
		t.Fatal(err)
	}
	return tile.Strip
}

const epochA, epochB = "00000000000000aa", "00000000000000bb"

// A page shows every machine of the group, each result once, whichever monitor judged it. After
// a restart it shows what was kept at once, and goes on.
func TestFollow(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 3)
	dir := t.TempDir()
	store, hub := p.store(dir), web.NewHub(web.Config{Layout: p.model.Layout})
	stop := p.follow(hub, store)
	p.verdicts("acme/one", epochA, 1, 5)
	p.verdicts("acme/two", epochA, 1, 3)
	alert := event.Alert{ID: "a1", Group: DefaultGroup, Machine: "acme/two", State: event.Raised, Alarm: "raised", Incident: "A-K3ZQ7M2P", At: time.Now().UTC()}
	other := event.Alert{ID: "a2", Group: "trial", Machine: "acme/two", State: event.Raised, Alarm: "raised", Incident: "A-K3ZQ7M2Q", At: time.Now().UTC()}
	left := event.Alert{ID: "a3", Group: DefaultGroup, Machine: "acme/one", Tool: "T9", State: event.Cleared, Reason: "tool_change", Alarm: "normal", Incident: "A-K3ZQ7M2R", At: time.Now().UTC()}
	p.send(envelope.Event(bus.TopicAlerts, left.ID, left.Machine, event.AlertType, left.At, event.JSON(left)))
	p.send(envelope.Event(bus.TopicAlerts, alert.ID, alert.Machine, event.AlertType, alert.At, event.JSON(alert)),
		envelope.Event(bus.TopicAlerts, other.ID, other.Machine, event.AlertType, other.At, event.JSON(other)),
		envelope.Event(bus.TopicAlerts, "x", "acme/two", event.AlertType, other.At, []byte("{")))
	p.eventually("five and three verdicts", func() bool {
		return stripOf(t, hub, "acme/one") == "hhhhh" && stripOf(t, hub, "acme/two") == "hhh"
	})
	p.eventually("the alarm", func() bool { a, err := store.Alarms(summary.AlarmFilter{}); return err == nil && len(a) == 2 })
	stop()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	store, hub = p.store(dir), web.NewHub(web.Config{Layout: p.model.Layout})
	machines, err := store.Machines()
	if err != nil || len(machines) != 2 {
		t.Fatal(machines, err)
	}
	for _, m := range machines {
		hub.Remember(m)
	}
	if one, two := stripOf(t, hub, "acme/one"), stripOf(t, hub, "acme/two"); one != "hhhhh" || two != "hhh" {
		t.Errorf("right after the restart: %q, %q", one, two)
	}
	const waits = `"magazine":[{"tool":"T9","incident":"A-K3ZQ7M2R","alarm":"raised"`
	if all := fleetOf(hub); !strings.Contains(all, waits) {
		t.Errorf("right after the restart no alarm is in the magazine: %s", all)
	}
	p.verdicts("acme/one", epochA, 5, 3) // the fifth comes again, as from an older monitor
	p.follow(hub, store)
	p.eventually("two more verdicts", func() bool { return stripOf(t, hub, "acme/one") == "hhhhhhh" })
	p.eventually("7 and 3 windows in the history", func() bool { return slices.Equal(counted(t, store, "acme/one", "acme/two"), []int{7, 3}) })
	acked := left
	acked.ID, acked.State, acked.Reason, acked.Magazine, acked.At = "a4", event.Acknowledged, "", true, time.Now().UTC()
	p.send(envelope.Event(bus.TopicAlerts, acked.ID, acked.Machine, event.AlertType, acked.At, event.JSON(acked)))
	p.eventually("an empty magazine", func() bool { return !strings.Contains(fleetOf(hub), waits) })
	if log := p.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "leaves out messages that cannot be read as events") {
		t.Errorf("log:\n%s", log)
	}
}

// fleetOf returns what pages show of all machines.
func fleetOf(hub *web.Hub) string {
	w := httptest.NewRecorder()
	hub.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/machines", nil))
	return w.Body.String()
}

// The store counts on which windows a model on trial and its champion disagree: the windows of the
// group, once, also after a restart.
func TestFollowShadows(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	dir := t.TempDir()
	send := func(group string, from, n int) {
		var msgs []bus.Message
		for i := range n {
			start := time.Now().Add(time.Duration(from+i-60) * time.Second).UTC()
			r := event.Result{
				ID: fmt.Sprintf("acme/one/%s/%d/%s", epochA, from+i, group), Group: group, Machine: "acme/one", Epoch: epochA, Seq: uint64(from + i), Start: start, End: start.Add(time.Second),
				Verdict: event.Unknown, Model: "new", Champion: &event.Champion{Model: "old", Verdict: event.Healthy},
			}
			m := envelope.Event(bus.TopicShadow, r.ID, r.Machine, event.ResultType, r.End, event.JSON(r))
			msgs = append(msgs, m)
		}
		p.send(msgs...)
	}
	compared := func(s *summary.Store) (n int) {
		u, err := s.ModelUse("new", time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range u.Trials {
			if n += trial.Sum.ShadowUnknown; trial.Shadow != "new" || trial.Champion != "old" {
				t.Fatalf("%+v", trial)
			}
		}
		return n
	}
	store := p.store(dir)
	stop := p.follow(web.NewHub(web.Config{}), store)
	send(event.ShadowGroup("other", "new"), 0, 7)
	send(event.ShadowGroup(DefaultGroup, "new"), 0, 5)
	p.eventually("five windows", func() bool { return compared(store) == 5 })
	stop()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = p.store(dir)
	p.follow(web.NewHub(web.Config{}), store)
	send(event.ShadowGroup(DefaultGroup, "new"), 5, 2)
	p.eventually("seven windows", func() bool { return compared(store) == 7 })
	if log := p.log.String(); log != "" {
		t.Errorf("log:\n%s", log)
	}
}

// While the store fills with what lies behind, the page shows what is new, once.
func TestFollowLooksAhead(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	p.verdicts("acme/one", epochA, 1, 300)
	store, hub := p.store(""), web.NewHub(web.Config{Layout: p.model.Layout})
	p.follow(hub, store, func(f *Follower) { f.far = 1 })
	p.verdicts("acme/two", epochA, 1, 3)
	p.eventually("the verdicts of both", func() bool {
		return len(stripOf(t, hub, "acme/one")) == summary.MaxStrip && stripOf(t, hub, "acme/two") == "hhh"
	})
	p.verdicts("acme/two", epochA, 4, 2)
	p.eventually("the new verdicts", func() bool { return stripOf(t, hub, "acme/two") == "hhhhh" })
	p.eventually("300 and 5 windows in the history", func() bool { return slices.Equal(counted(t, store, "acme/one", "acme/two"), []int{300, 5}) })
}

// While alerts cannot be read, a page shows new verdicts, and the store folds none. Afterwards each counts once.
func TestFollowShowsVerdictsWithoutAlerts(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	var held atomic.Bool
	held.Store(true)
	c := p.broker.Cluster()
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		ask := req.(*kmsg.ListOffsetsRequest)
		if !held.Load() || !slices.ContainsFunc(ask.Topics, func(t kmsg.ListOffsetsRequestTopic) bool { return t.Topic == bus.TopicAlerts }) {
			return nil, nil, false
		}
		answer := ask.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, topic := range ask.Topics {
			to := kmsg.ListOffsetsResponseTopic{Topic: topic.Topic}
			for _, one := range topic.Partitions {
				part := kmsg.NewListOffsetsResponseTopicPartition()
				part.Partition, part.ErrorCode = one.Partition, 5 // no leader
				to.Partitions = append(to.Partitions, part)
			}
			answer.Topics = append(answer.Topics, to)
		}
		return answer, nil, true
	})
	store, hub := p.store(""), web.NewHub(web.Config{Layout: p.model.Layout})
	p.follow(hub, store, func(f *Follower) { f.patience = time.Millisecond })
	p.verdicts("acme/one", epochA, 1, 3)
	p.eventually("verdicts without alerts", func() bool { return stripOf(t, hub, "acme/one") == "hhh" })
	if store.Knows("acme/one", time.Now()) {
		t.Error("verdicts are folded before alerts are read")
	}
	held.Store(false)
	p.eventually("verdicts in the history", func() bool { return counted(t, store, "acme/one")[0] == 3 })
	if got := stripOf(t, hub, "acme/one"); got != "hhh" {
		t.Errorf("the page shows %q", got)
	}
}

// A result of a machine that the store does not know is folded when alerts have been read to an end that was asked for
// after the result came: one of them may say that it is a machine with another name.
func TestNewNameWaitsForAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _, err := summary.Open("", DefaultGroup)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		follower := &Follower{Group: DefaultGroup, Hub: web.NewHub(web.Config{}), Store: store, Log: zerolog.Nop()}
		alerts := &feed{Follower: follower, topic: bus.TopicAlerts, reached: make(chan struct{})}
		results := &feed{Follower: follower, topic: bus.TopicResults, reached: make(chan struct{}), alerts: alerts, shown: map[int]int64{}}
		take := func(machine string, seq int) chan error {
			r := event.Result{ID: fmt.Sprint(machine, seq), Group: DefaultGroup, Machine: machine, Epoch: epochA, Seq: uint64(seq), Start: time.Now(), End: time.Now().Add(time.Second), Verdict: event.Healthy}
			taken := make(chan error, 1)
			go func() {
				taken <- results.take(t.Context(), bus.Followed{Topic: bus.TopicResults}, []bus.Message{envelope.Event(bus.TopicResults, r.ID, machine, event.ResultType, r.End, event.JSON(r))}, int64(seq))
			}()
			synctest.Wait()
			return taken
		}
		taken := take("acme/one", 1)
		for n := range 2 {
			if len(taken) != 0 || store.Knows("acme/one", time.Now()) {
				t.Fatalf("folded after %d ends", n)
			}
			if err := alerts.rest(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if len(taken) != 1 || <-taken != nil || !store.Knows("acme/one", time.Now()) {
			t.Error("not folded after two ends")
		}
		if taken := take("acme/one", 2); len(taken) != 1 {
			t.Error("a known machine waits")
		}
	})
}

// A topic that was made again is read from its beginning, and nothing counts twice.
func TestFollowTopicMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	dir := t.TempDir()
	store, hub := p.store(dir), web.NewHub(web.Config{Layout: p.model.Layout})
	stop := p.follow(hub, store)
	p.verdicts("acme/one", epochA, 1, 40)
	p.eventually("40 verdicts", func() bool { return len(stripOf(t, hub, "acme/one")) == 40 })
	stop()
	p = newPlant(t, 1)                    // another broker, whose topics have other ids
	p.verdicts("acme/one", epochA, 39, 4) // two of them are in the history already
	p.verdicts("acme/one", epochB, 1, 60)
	p.follow(hub, store)
	p.eventually("102 windows", func() bool { return counted(t, store, "acme/one")[0] == 102 })
}
