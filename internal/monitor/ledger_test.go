package monitor

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/signal"
)

// What a gateway says of its samples comes to the next result and to an advisory, also of a machine of which no window
// ever comes. What no gateway says is set aside.
func TestLedger(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	p.monitor()
	ledger := func(machine string) bus.Message {
		return envelope.Ledger(event.SourceLedger{
			Machine: machine, Ledger: event.Ledger{At: time.Now(), Seconds: 60, Received: 90, InWindows: 30, Unused: []event.UnusedSamples{{Reason: "counter", Samples: 60}}},
			Lost: []event.LostSamples{{Reason: "counter", Seconds: 40}},
		})
	}
	damaged := ledger(drill)
	damaged.Value = []byte(`{"machine":"acme/line1/drill","lost":[{"reason":"","seconds":-1}]}`)
	p.send(p.messages(at(0, "T1", false))...)
	p.send(ledger(drill), damaged, ledger(gun), p.message(at(1, "T1", false)))
	p.untilResults(2)
	p.untilMessages(bus.TopicDead, 1)
	texts := map[string]string{}
	for _, a := range p.advisories() {
		texts[a.Machine] = a.Text
	}
	for _, name := range []string{drill, gun} {
		if !strings.Contains(texts[name], "SAMPLES LOST, 40 s of the samples of a minute are in no window (counter 40 s)") {
			t.Errorf("%s: %q", name, texts[name])
		}
	}
	for _, r := range p.results() {
		if (r.Ledger != nil) != (r.Seq == 1) || r.Ledger != nil && r.Ledger.Received != 90 {
			t.Errorf("result %d: %+v", r.Seq, r.Ledger)
		}
	}
	if n := len(p.read(bus.TopicDead)); n != 1 {
		t.Errorf("%d dead letters", n)
	}
}

// A machine that a deployment names and of which no window ever comes is silent, once. A pattern names no machine.
func TestNeverSeen(t *testing.T) {
	t.Parallel()
	const never = "acme/line2/never"
	p := newPlant(t, 1)
	champion, file := trained(t, signal.FeatureSpec{}, 1)
	p.judgesBy(champion)
	w := p.publish(file)
	for _, name := range []string{"acme/**", never} {
		if _, err := w.Promote(t.Context(), deploy.Promotion{Model: champion.ID(), For: name}); err != nil {
			t.Fatal(err)
		}
	}
	var ahead atomic.Int64
	mon := p.monitor(silence(&ahead), byDeployments(t, deploy.NewKeys(false, w.Signer.Public())))
	p.send(p.message(forceAt(drill, 0)))
	p.untilResults(1) // the time of both has begun
	ahead.Store(int64(61 * time.Second))
	p.untilAdvisories(2)
	for _, a := range p.advisories() {
		if a.Machine == never && !strings.Contains(a.Text, "never: SILENT, no window of it has ever come: its tool is not monitored.") {
			t.Error(a.Text)
		}
	}
	if st := p.standing(never); len(st.Advisories) != 1 || st.Advisories[0].Kind != event.SilenceAdvisory {
		t.Errorf("standing %+v", st)
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
}
