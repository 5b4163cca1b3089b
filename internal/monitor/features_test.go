package monitor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// edgeMessage returns the features of a window as a gateway sends them.
func (p *plant) edgeMessage(w *window.Window) bus.Message {
	p.t.Helper()
	form, err := window.NewForm(p.model.Layout, p.model.Window, signal.FeatureSpec{}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	var x window.Features
	form.NewExtractor().Extract(w, &x)
	e, err := form.Seal(&x)
	if err != nil {
		p.t.Fatal(err)
	}
	return envelope.Features(e, envelope.Gateway, 0)
}

// Whether the monitor or the gateway extracts: the
// results, the alerts and what is remembered are the same, byte for byte.
func TestStagesAgree(t *testing.T) {
	t.Parallel()
	ws := life(30, 12)
	ws = append(ws, at(30, "T2", false), at(31, "T2", false), at(32, "T2", true), at(33, "T1", true))
	last := len(ws) - 1 // with it T1 is back, and calls again
	type sent func(*window.Window) bus.Message
	for name, run := range map[string]func(*plant) (rest sent){
		"one monitor": func(p *plant) sent {
			p.send(p.messages(ws[:last]...)...)
			p.monitor()
			return p.message
		},
		"the gateway extracts": func(p *plant) sent {
			for _, w := range ws[:last] {
				p.send(p.edgeMessage(w))
			}
			p.monitor()
			return p.edgeMessage
		},
		"the gateway extracts from the middle on": func(p *plant) sent {
			p.send(p.messages(ws[:13]...)...)
			mon := p.monitor()
			p.untilResults(13)
			for _, w := range ws[11:last] { // and two come both ways
				p.send(p.edgeMessage(w))
			}
			p.untilResults(last)
			if err := mon.stop(); err != nil {
				t.Error(err)
			}
			if n := mon.Stats().Repeats; n != 2 {
				t.Errorf("%d repeats", n)
			}
			p.monitor()
			return p.edgeMessage
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t, 1)
			rest := run(p)
			p.untilResults(last)
			time.Sleep(2 * testAlarm.ReAlarm) // by Kafka's clock
			p.send(rest(ws[last]))
			p.untilResults(len(ws))
			results, alerts := p.calm(ws...)
			if n := len(alerts); n != 3 {
				t.Fatalf("%d alerts are expected: the test has no teeth", n)
			}
			p.untilMessages(bus.TopicAlerts, len(alerts))
			if p.sameEvents(results, alerts); !strings.HasSuffix(name, "the middle on") { // there, two came both ways
				p.oneMessageOfFeatures(results)
			}
			if n := len(p.read(bus.TopicDead)); n > 0 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

// strange returns a layout that no model is of, and its codec.
func strange(t *testing.T, i int) (*signal.Layout, *window.Codec) {
	t.Helper()
	layout, err := signal.NewLayout("strange", []signal.Channel{{Name: fmt.Sprint("channel ", i), Kind: signal.Force, Unit: "N", Rate: 100}})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	return layout, codec
}

// strangeWindow returns w with the samples of a strange layout.
func strangeWindow(c *window.Codec, w *window.Window) *window.Window {
	s := *w
	s.Samples = [][]float32{make([]float32, c.Spec().Samples(100))}
	for i := range s.Samples[0] {
		s.Samples[0][i] = float32(i)
	}
	return &s
}

// Windows that no model is of have features like any others. A monitor counts
// them, and sets nothing aside.
func TestUnwatchedWindowsHaveFeatures(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	layout, codec := strange(t, 1)
	for seq := range uint64(3) {
		e, err := codec.Seal(strangeWindow(codec, at(seq, "T1", false)))
		if err != nil {
			t.Fatal(err)
		}
		p.send(envelope.Window(e))
	}
	watched := at(0, "T1", false)
	watched.Machine = "acme/line1/lathe"
	p.send(p.message(watched))
	mon := p.monitor()
	p.untilResults(1)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	if s := mon.Stats(); s.Unwatched != 3 || s.Judged != 1 || s.Dead != 0 {
		t.Errorf("stats %+v", s)
	}
	form, err := window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	for _, m := range p.read(bus.TopicFeatures) {
		e, err := envelope.Of(&m)
		if err != nil {
			t.Fatal(err)
		}
		var x window.Features
		if e.Layout == layout.Fingerprint() {
			if err := form.Open(e, &x); err != nil || len(x.Values) == 0 {
				t.Errorf("%d values, %v", len(x.Values), err)
			}
			opened++
		}
	}
	if st := p.standing(drill); opened != 3 || st.Unwatched() == "" || len(p.read(bus.TopicDead)) > 0 {
		t.Errorf("%d messages of features; %+v", opened, st)
	}
}

// Layouts that are met are remembered up to a number; models' layouts always, and as the same
// values while models come and go.
func TestLayouts(t *testing.T) {
	p := newPlantWithoutTopics(t)
	l, err := newLayouts([]*model.Model{p.model})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := p.codec.Seal(at(0, "T1", false))
	if err != nil {
		t.Fatal(err)
	}
	first, err := l.of(ours)
	if err != nil || first.judged != first.features {
		t.Fatalf("%+v, %v", first, err)
	}
	var sealed []window.Envelope
	for i := range mostStrange + 10 {
		_, codec := strange(t, i)
		e, err := codec.Seal(strangeWindow(codec, at(0, "T1", false)))
		if err != nil {
			t.Fatal(err)
		}
		sealed = append(sealed, e)
		f, err := l.of(e)
		if again, _ := l.of(e); err != nil || again != f || f.codec.Layout().Fingerprint() != e.Layout {
			t.Fatalf("layout %d: %+v and %+v, %v", i, f, again, err)
		}
		if _, err := l.of(sealed[0]); err != nil { // it stays, since it is used
			t.Fatal(err)
		}
	}
	if len(l.strange) != mostStrange || l.strange[mostStrange-1].codec.Layout().Fingerprint() != sealed[0].Layout {
		t.Errorf("%d layouts are remembered", len(l.strange))
	}
	lied := sealed[3]
	lied.Layout = ours.Layout
	if f, err := l.of(lied); err == nil {
		t.Errorf("%+v", f)
	}
	if err := l.set(nil); err != nil || len(l.ours) > 0 || len(l.forms) > 0 {
		t.Errorf("%d and %d without models, %v", len(l.ours), len(l.forms), err)
	}
	if err := l.set([]*model.Model{p.model, p.model}); err != nil {
		t.Fatal(err)
	}
	now, err := l.of(ours)
	if err := l.set([]*model.Model{p.model}); err != nil {
		t.Fatal(err)
	}
	if again, _ := l.of(ours); err != nil || now != again {
		t.Errorf("%p is %p after the models were set again, %v", now, again, err)
	}
}

// A monitor whose model takes other features than everyone extracts extracts those too.
func TestModelWithFeaturesOfItsOwn(t *testing.T) {
	min := ofForce(signal.FeatureSpec{Set: []string{"min"}})
	l, err := newLayouts([]*model.Model{min})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.ours {
		if f.judged == f.features || min.Covers(f.judged) != nil || min.Covers(f.features) == nil {
			t.Errorf("judged by %v, published %v", f.judged.Names(), f.features.Names())
		}
	}
	if len(l.forms) != 2 {
		t.Errorf("%d forms", len(l.forms))
	}
	to := bus.Config{Brokers: []string{"127.0.0.1:1"}}
	if _, err := New(Config{Model: min, Bus: to}); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{Model: ofForce(signal.FeatureSpec{Version: 99}), Bus: to}); err == nil || !strings.Contains(err.Error(), "this program computes version 2") {
		t.Errorf("%v", err)
	}
}

// A page that shows what a monitor judges by features alone has no waveforms, and does not
// break.
func TestPageWithoutSamples(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	seen := make(chan int, 100)
	p.send(p.edgeMessage(at(0, "T1", false)), p.message(at(1, "T1", false)))
	p.monitor(func(m *Monitor) {
		m.cfg.OnWindow = func(_ *signal.Layout, w *window.Window, r event.Result) { seen <- 10*int(r.Seq) + len(w.Samples) }
	})
	p.untilResults(2)
	if got := []int{<-seen, <-seen}; !slices.Contains(got, 0) || !slices.Contains(got, 11) {
		t.Errorf("%v", got)
	}
}
