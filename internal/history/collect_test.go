package history

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/window"
)

// resultMessage is a result of drill in epoch 1.
func resultMessage(seq uint64, v event.Verdict, change ...func(*event.Result)) bus.Message {
	id := event.WindowID(drill, window.FormatEpoch(1), seq)
	r := event.Result{ID: id, Group: group, Machine: drill, Epoch: window.FormatEpoch(1), Seq: seq, Verdict: v}
	for _, c := range change {
		c(&r)
	}
	return bus.Message{Topic: bus.TopicResults, Key: r.Machine, Value: event.JSON(r)}
}

func alertMessage(seq uint64, state event.AlertState, change ...func(*event.Alert)) bus.Message {
	id := event.WindowID(drill, window.FormatEpoch(1), seq) + "/" + string(state)
	a := event.Alert{ID: id, Group: group, Machine: drill, Epoch: window.FormatEpoch(1), Seq: seq, State: state}
	for _, c := range change {
		c(&a)
	}
	return message(bus.TopicAlerts, a.ID, a.Machine, event.AlertType, event.JSON(a))
}

func collect(t *testing.T, c *Collector, msgs ...bus.Message) {
	t.Helper()
	for _, m := range msgs {
		take := c.result
		if m.Topic == bus.TopicAlerts {
			take = c.alert
		}
		if err := take(m); err != nil {
			t.Fatal(err)
		}
	}
}

// Repeats are dropped and counted, two results that differ are counted, and what is
// of another machine, another group, another epoch or a window before the first does not
// count.
func TestCollector(t *testing.T) {
	var out bytes.Buffer
	c := NewCollector(group, drill, window.FormatEpoch(1), 10, &out)
	other := func(r *event.Result) { r.Machine = "acme/line1/lathe" }
	before := func(r *event.Result) { r.Epoch = window.FormatEpoch(2) }
	late := func(r *event.Result) { r.Late = true }
	trial := func(r *event.Result) { r.Group = "trial" }
	collect(t, c,
		resultMessage(10, event.Learning),
		resultMessage(11, event.Healthy),
		resultMessage(11, event.Faulty, trial),
		resultMessage(11, event.Healthy), // a repeat
		resultMessage(13, event.Faulty),
		resultMessage(12, event.Healthy, late),
		resultMessage(13, event.Healthy), // says something else
		resultMessage(14, event.Faulty, other),
		resultMessage(15, event.Faulty, before),
		resultMessage(9, event.Faulty),
		alertMessage(13, event.Raised),
		alertMessage(13, event.Raised), // a repeat
		alertMessage(14, event.Cleared),
		alertMessage(9, event.Raised),
		alertMessage(15, event.Raised, func(a *event.Alert) { a.Epoch = window.FormatEpoch(2) }),
		alertMessage(16, event.Raised, func(a *event.Alert) { a.Machine = "acme/line1/lathe" }),
		alertMessage(17, event.Raised),
		alertMessage(18, event.Raised, func(a *event.Alert) { a.Group = "trial" }),
	)
	s := c.Summary()
	want := map[event.Verdict]uint64{event.Learning: 1, event.Healthy: 2, event.Faulty: 1}
	if s.Results != 4 || s.Repeats != 2 || s.Duplicated != 1 || s.Late != 1 || s.Alerts != 2 {
		t.Errorf("%+v", s)
	}
	if string(event.JSON(s.Verdicts)) != string(event.JSON(want)) {
		t.Errorf("verdicts %v, want %v", s.Verdicts, want)
	}
	s.Verdicts[event.Faulty] = 99 // the caller's own
	if c.Summary().Verdicts[event.Faulty] != 1 {
		t.Error("Summary hands out the map of the collector")
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range []bus.Message{resultMessage(10, event.Learning), resultMessage(11, event.Healthy), resultMessage(13, event.Faulty), resultMessage(12, event.Healthy, late)} {
		lines = append(lines, string(m.Value)+"\n")
	}
	if got := out.String(); got != strings.Join(lines, "") {
		t.Errorf("results file\n%s", got)
	}
}

// Scores count windows that were judged healthy or faulty and whose truth is
// known, whichever of both came first.
func TestCollectorConfusion(t *testing.T) {
	c := NewCollector(group, drill, window.FormatEpoch(1), 0, nil)
	if s := c.Scores(); s.Confusion != nil || s.GMean != nil {
		t.Error("scores of nothing")
	}
	seq := uint64(0)
	add := func(n, truth int, v event.Verdict) {
		for range n {
			if seq%2 == 0 {
				c.Truth(seq, truth)
			}
			collect(t, c, resultMessage(seq, v))
			c.Truth(seq, truth)
			seq++
		}
	}
	add(6, classify.Faulty, event.Faulty)           // TP
	add(2, classify.Faulty, event.Healthy)          // FN
	add(3, classify.Healthy, event.Faulty)          // FP
	add(9, classify.Healthy, event.Healthy)         // TN
	add(5, classify.Faulty, event.Learning)         // not judged
	add(5, classify.Faulty, event.Unknown)          // not judged
	collect(t, c, resultMessage(seq, event.Faulty)) // truth not known
	c.Truth(seq+1, classify.Faulty)                 // no result
	s := c.Scores()
	if s.Confusion == nil || *s.Confusion != (confusion{TP: 6, FN: 2, FP: 3, TN: 9}) {
		t.Fatalf("confusion %v", s.Confusion)
	}
	// √(6/8 · 9/12) = 0.75, by hand.
	if g := float64(*s.GMean); math.Abs(g-0.75) > 1e-12 {
		t.Errorf("G-mean %v, want 0.75", g)
	}
	if err := c.Flush(); err != nil {
		t.Error(err)
	}
}

// Wait ends when the results are there, when its patience does and when its
// context does.
func TestCollectorWait(t *testing.T) {
	c := NewCollector(group, drill, window.FormatEpoch(1), 0, nil)
	c.Wait(t.Context(), 0, time.Hour)
	c.Wait(t.Context(), 1, time.Nanosecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Wait(ctx, 1, time.Hour)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Wait(t.Context(), 3, time.Hour)
	}()
	collect(t, c, resultMessage(0, event.Healthy), resultMessage(1, event.Healthy), resultMessage(1, event.Healthy))
	select {
	case <-done:
		t.Error("two results were taken for three")
	default:
	}
	collect(t, c, resultMessage(2, event.Healthy))
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("Wait did not notice that all results are there")
	}
}

// failing is a disk that is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A message that is not a result or an alert is skipped. A full disk and a missing topic are
// errors.
func TestCollectorErrors(t *testing.T) {
	c := NewCollector(group, drill, window.FormatEpoch(1), 0, failing{})
	collect(t, c,
		bus.Message{Topic: bus.TopicResults, Key: drill, Value: []byte("{")},
		message(bus.TopicAlerts, "1", drill, event.AlertType, []byte("{")),
	)
	if s := c.Summary(); s.Unreadable != 2 || s.Results != 0 || s.Alerts != 0 {
		t.Errorf("after two messages that cannot be read: %+v", s)
	}
	if err := c.alert(message(bus.TopicAlerts, "2", drill, "io.tcm.other.v1", []byte("{"))); err != nil {
		t.Errorf("an event that is not an alert is read: %v", err)
	}
	collect(t, c, resultMessage(0, event.Healthy))
	if err := c.Flush(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Error(err)
	}
	p := newPlantWithoutTopics(t)
	if err := c.Run(t.Context(), p.bus); !errors.Is(err, bus.ErrNoTopic) {
		t.Errorf("without topics: %v", err)
	}
}

// What is on the alerts topic when the monitor has stopped is counted, once.
func TestCollectorCatchesUp(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	p.send(alertMessage(3, event.Raised), alertMessage(3, event.Raised), alertMessage(5, event.Cleared), alertMessage(8, event.Raised))
	c := NewCollector(group, drill, window.FormatEpoch(1), 0, nil)
	for range 2 {
		if err := c.CatchUp(t.Context(), p.bus, patience); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Summary().Alerts; n != 2 {
		t.Errorf("%d alerts, want 2", n)
	}
}
