package monitor

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// drillModel returns a model of the gun drill's windows, by the default features.
func drillModel(t testing.TB) *model.Model {
	t.Helper()
	layout := signal.GunDrill()
	m := &model.Model{
		Layout: layout, Window: window.DefaultSpec, Features: signal.FeatureSpec{Version: signal.FeatureVersion}, Usual: make([]signal.Quality, len(layout.Channels())),
		Reference: model.ReferenceSpec{Windows: 2, Mode: model.ReferenceRatio},
	}
	x := dbn.NewMatrix(40, len(m.NewJudge().FeatureNames()))
	y := make([]int, x.Rows)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range y {
		y[i] = i % 2
		for k := range x.Row(i) {
			x.Row(i)[k] = 1 + float32(y[i]) + 0.1*float32(rng.NormFloat64())
		}
	}
	var err error
	m.Classifier, _, err = classify.Fit(context.Background(), x, y, nil, classify.Settings{
		Network: dbn.Settings{Hidden: []int{50}, Pretrain: dbn.PretrainSettings{Epochs: 1}, FineTune: dbn.FineTuneSettings{Epochs: 2}}, Seed: 1,
	})
	if err == nil {
		_, err = m.Encode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// drillWindow returns a window of seeded noise of the gun drill.
func drillWindow(layout *signal.Layout, machine string, seq uint64) *window.Window {
	rng := rand.New(rand.NewPCG(seq, 1))
	w := &window.Window{
		Epoch: 1, Seq: seq, Start: time.Date(2026, 11, 2, 2, 0, 0, 0, time.UTC).Add(time.Duration(seq) * time.Second), Length: time.Second,
	}
	w.Machine, w.Tool, w.SpindleSpeed = machine, "T1", 1650
	for _, c := range layout.Channels() {
		x := make([]float32, window.DefaultSpec.Samples(c.Rate))
		for i := range x {
			x[i] = 5 + float32(rng.NormFloat64())
		}
		w.Samples = append(w.Samples, x)
		w.Quality = append(w.Quality, 0)
	}
	return w
}

// Long windows are judged in the memory of Kafka's answers, which the next answers get. What is published of them is what the
// same windows give one by one, bit by bit, and dead letters hold what came. Alone: next to other tests, garbage collections take
// the memory before the next answers get it, and a window in lent memory is not overwritten.
func TestWindowsAreJudgedWhereTheyLie(t *testing.T) {
	p := newPlant(t, 1)
	p.model = drillModel(t)
	var err error
	if p.codec, err = window.NewCodec(p.model.Layout, p.model.Window); err != nil {
		t.Fatal(err)
	}
	var good []*window.Window
	damaged := make(map[int64][]byte) // values, by offset
	const n = 100
	for i := range int64(n) {
		w := drillWindow(p.model.Layout, drill, uint64(i))
		m := p.message(w)
		if i%10 == 7 {
			m.Value = bytes.Clone(m.Value)
			m.Value[len(m.Value)/2] ^= 1
			damaged[i] = m.Value
		} else {
			good = append(good, w)
		}
		p.send(m)
	}
	results, alerts := p.calm(good...)
	p.monitor()
	p.untilResults(len(good))
	p.untilMessages(bus.TopicDead, len(damaged))
	p.same(results, alerts)
	for _, d := range p.read(bus.TopicDead) {
		l, err := bus.OpenLetter(d)
		if err != nil || l.Whole() != nil || !bytes.Equal(l.Message.Value, damaged[l.Message.Offset]) {
			t.Errorf("letter of offset %d: %v, %v, or another value", l.Message.Offset, err, l.Whole())
		}
	}
	p.sameFeatures(good)
}

// sameFeatures compares the features that were published of windows with those that the windows have.
func (p *plant) sameFeatures(ws []*window.Window) {
	p.t.Helper()
	l, err := newLayouts([]*model.Model{p.model})
	if err != nil {
		p.t.Fatal(err)
	}
	own := make(extractors)
	want := make(map[string][]byte)
	for _, w := range ws {
		var x, other window.Features
		m := p.message(w)
		f, err := l.openWindow(&m, w)
		if err != nil {
			p.t.Fatal(err)
		}
		own.of(f.judged).Extract(w, &x)
		e, err := f.features.Seal(f.publishable(&x, &other, w, own))
		if err != nil {
			p.t.Fatal(err)
		}
		want[fmt.Sprint(w.Seq)] = e.Value
	}
	for _, m := range p.read(bus.TopicFeatures) {
		if seq := string(m.Header("seq")); !bytes.Equal(m.Value, want[seq]) {
			p.t.Errorf("the features of window %s are others", seq)
		}
	}
}
