package monitor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/web"
)

// byDeployments makes a monitor judge by what tcm.models.v1 deploys, signed with these keys.
func byDeployments(t *testing.T, keys deploy.Keys) func(*Monitor) {
	return func(m *Monitor) {
		t.Helper()
		m.cfg.Model, m.cfg.Keys = nil, func() (deploy.Keys, error) { return keys, nil }
		again, err := New(m.cfg)
		if err != nil {
			t.Fatal(err)
		}
		again.group.OnGeneration = m.group.OnGeneration // it tells m
		m.group, m.layouts, m.fleet = again.group, again.layouts, again.fleet
	}
}

// A model is deployed, then another one at once in the middle of a tool, with the first one as
// a shadow, then the first one again: through Kafka, with restarts. Each window has one result,
// and models that take over in the middle have seen the tool's past.
func TestDeployments(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	first, second := machinetest.OneValue(t), machinetest.OfThree(t)
	w := &deploy.Writer{Bus: p.bus, Signer: deploy.NewSigner(deploytest.Key(1)), By: "kim", Now: time.Now}
	for i, file := range [][]byte{deploytest.Prove(t, first, 1), deploytest.Prove(t, second, 2)} {
		if _, _, err := w.Publish(t.Context(), file); err != nil {
			t.Fatalf("model %d: %v", i, err)
		}
	}
	promote := func(change deploy.Promotion) {
		t.Helper()
		change.For = "acme/**"
		if _, err := w.Promote(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	keys := deploy.NewKeys(false, w.Signer.Public())
	m := p.monitor(byDeployments(t, keys))
	seq := uint64(0)
	judged := func(n int, by string) {
		t.Helper()
		for range n {
			p.send(p.messages(at(seq, "T1", seq > 8))...)
			seq++
		}
		p.untilResults(int(seq) - 1) // the first one came before there was a model
		for _, r := range p.results() {
			if r.Seq >= seq-uint64(n) && (r.Model != by || r.Verdict == event.Learning && r.Seq > 3) {
				t.Errorf("window %d: %s by %s, want by %s", r.Seq, r.Verdict, r.Model, by)
			}
		}
	}
	logged := func(text string, n int) {
		t.Helper()
		p.eventually("the log has "+text, func() bool { return strings.Count(p.log.String(), text) >= n })
	}
	logged(`"monitoring"`, 0)
	p.send(p.messages(at(seq, "T1", false))...)
	seq++
	logged("no model is deployed for it", 1)
	if st := p.standing(drill); st.Unwatched() != "no model" {
		t.Errorf("a machine without a model: %+v", st)
	}
	promote(deploy.Promotion{Model: first.ID()})
	logged(`"event":"deployed"`, 1)
	judged(5, first.ID())
	promote(deploy.Promotion{Model: second.ID(), Now: true})
	logged(`"event":"model_built"`, 1)
	judged(2, second.ID())
	logged(`"event":"model_swapped"`, 1)
	promote(deploy.Promotion{Model: first.ID(), Shadow: time.Hour})
	logged(`"shadows":1`, 1)
	judged(1, second.ID())
	logged(`"event":"model_built"`, 2) // of the windows that it has missed
	judged(2, second.ID())
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	next := make(chan string, 1000) // the model that is to judge the machine from its next window on
	p.monitor(byDeployments(t, keys), func(m *Monitor) {
		m.cfg.OnModels = func(_ string, show web.Models) { next <- show.Next }
	})
	judged(3, second.ID())
	shadows := p.until(bus.TopicShadow, func(msgs []bus.Message) bool {
		return len(msgs) > 0 && string(msgs[len(msgs)-1].Header("ce_type")) == event.ResultType && strings.Contains(string(msgs[len(msgs)-1].Value), `"seq":13,`)
	})
	for _, msg := range shadows {
		var r event.Result
		if string(msg.Header("ce_type")) != event.ResultType {
			continue
		}
		if err := json.Unmarshal(msg.Value, &r); err != nil {
			t.Fatal(err)
		}
		if r.Model != first.ID() || r.Group != event.ShadowGroup(DefaultGroup, first.ID()) || r.Verdict == event.Learning {
			t.Errorf("shadow: window %d %s by %s in %s", r.Seq, r.Verdict, r.Model, r.Group)
		}
	}
	if _, err := w.Rollback(t.Context(), "acme/**", "", true); err != nil {
		t.Fatal(err)
	}
	for <-next != first.ID() { // it knows the tool as a shadow
	}
	judged(2, first.ID())
	logged(`"event":"model_swapped"`, 2)
	if n := len(p.read(bus.TopicDead)); n > 0 {
		t.Errorf("%d dead letters", n)
	}
}
