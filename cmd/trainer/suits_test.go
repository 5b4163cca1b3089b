package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// formOf returns the fingerprint of the default features of a layout.
func formOf(t *testing.T, l *signal.Layout, length time.Duration) string {
	t.Helper()
	f, err := window.NewForm(l, window.Spec{Length: length}, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f.Fingerprint()
}

// What a model cannot judge is named with the machines and the remedy, as far as it can be known. It
// is refused if it can judge nothing of what they send.
func TestSuits(t *testing.T) {
	layout, err := signal.NewLayout("force", []signal.Channel{{Name: "force", Kind: signal.Force, Unit: "N", Rate: 100}})
	if err != nil {
		t.Fatal(err)
	}
	ours := layout.Fingerprint()
	of := func(list signal.FeatureSpec, spec window.Spec) *model.Model {
		return &model.Model{Layout: layout, Window: spec, Features: list}
	}
	second := window.DefaultSpec
	plain, min, half := of(signal.FeatureSpec{}, second), of(signal.FeatureSpec{Set: []string{"min"}}, second), of(signal.FeatureSpec{}, window.Spec{Length: time.Second, Hop: 500 * time.Millisecond})
	every := func(d ...time.Duration) (apart [3]time.Duration) { return [3]time.Duration(d) }
	s, h := time.Second, 500*time.Millisecond
	standard, long := formOf(t, layout, s), formOf(t, layout, 2*s)
	raw, edge := &sent{layout: ours, form: standard, apart: every(s, s, s)}, &sent{layout: ours, form: standard, edge: true}
	const anyway = "; --anyway lets it judge all the same"
	for name, tc := range map[string]struct {
		m       *model.Model
		sent    map[string]*sent
		unread  bool
		part    bool   // of what was sent was looked at
		notes   string // a part; empty: none
		refusal string // likewise
		all     bool
	}{
		"as trained":        {m: plain, sent: map[string]*sent{"a/x": raw, "a/y": edge}},
		"and the hop":       {m: plain, sent: map[string]*sent{"a/x": raw}, all: true},
		"windows":           {m: plain, sent: map[string]*sent{"a/x": {layout: ours, length: s}}},
		"its own, raw":      {m: min, sent: map[string]*sent{"a/x": raw}, all: true},
		"others are meant":  {m: plain, sent: map[string]*sent{"a/x": raw, "b/x": {layout: ours, form: long}}, all: true},
		"another length":    {m: plain, sent: map[string]*sent{"a/x": {layout: ours, form: long, length: 2 * s}}, notes: "note:  cannot judge a/x: they send windows of 2s, and it is trained on windows of 1s: set window.length to 1s in their ingest.yaml, or train on windows of 2s", refusal: anyway},
		"windows of two":    {m: plain, sent: map[string]*sent{"a/x": {layout: ours, length: 2 * s}}, notes: "they send windows of 2s", refusal: "a/x: they send windows of 2s"},
		"an unknown length": {m: plain, sent: map[string]*sent{"a/x": {layout: ours, form: long}}, notes: "features of windows of another length than 1s, or of another release", refusal: anyway},
		"a result of then":  {m: plain, sent: map[string]*sent{"a/x": {layout: ours, form: long, length: s}}, notes: "another length than 1s, or", refusal: anyway},
		"one of two":        {m: plain, sent: map[string]*sent{"a/x": raw, "a/y": {layout: ours, form: long}}, notes: "cannot judge a/y: they send"},
		"another hop":       {m: half, sent: map[string]*sent{"a/x": raw}, notes: "a window every 1s, and it is trained on one every 500ms: set window.hop to 500ms", refusal: anyway},
		"overlapping":       {m: plain, sent: map[string]*sent{"a/x": {layout: ours, form: standard, apart: every(h, s, h)}}, notes: "a window every 500ms, and it is trained on one every 1s", refusal: anyway},
		"a slow clock":      {m: plain, sent: map[string]*sent{"a/x": {layout: ours, form: standard, apart: every(s+3*time.Millisecond, s, s+2*time.Millisecond)}}, all: true},
		"only gaps":         {m: half, sent: map[string]*sent{"a/x": {layout: ours, form: standard, apart: every(3*s, 2*s, 2*s)}}, all: true},
		"too few to know":   {m: half, sent: map[string]*sent{"a/x": {layout: ours, form: standard, apart: every(0, s, s)}}},
		"its own, edge":     {m: min, sent: map[string]*sent{"a/x": edge}, notes: "they send the default features, since their gateways extract (mode: edge), and it takes others: train without features.set, or let them send windows (mode: raw)", refusal: anyway},
		"one at the edge":   {m: min, sent: map[string]*sent{"a/x": raw, "a/y": edge}, notes: "cannot judge a/y: they send the default features"},
		"another layout":    {m: plain, sent: map[string]*sent{"a/x": {layout: "0123456789abcdef"}}, notes: "no machine of a/** sends windows of layout force (" + ours + "), which the model judges: a/x send other ones"},
		"one of the layout": {m: plain, sent: map[string]*sent{"a/x": {layout: "0123456789abcdef"}, "a/y": edge}},
		"nothing":           {m: plain, sent: map[string]*sent{"b/x": raw}, notes: "no machine of a/** has sent windows in the last 15m0s: is the glob right?"},
		"nothing met":       {m: plain, part: true, notes: "note: what was sent in the last 15m0s was too much to look at all of it, and no machine of a/** was met"},
		"no right to read":  {m: plain, unread: true},
		"many": {m: plain, sent: map[string]*sent{"a/1": {layout: ours, length: h}, "a/2": {layout: ours, length: h}, "a/3": {layout: ours, length: h}, "a/4": {layout: ours, length: h}, "a/5": {layout: ours, length: h},
			"a/6": {layout: ours, length: h}, "a/7": {layout: ours, length: 2 * s}}, notes: "a/1, a/2, a/3, a/4, a/5 and 1 more: they send windows of 500ms", refusal: " cannot judge a/7: they send windows of 2s"},
	} {
		got, err := suitsOf(tc.m, tc.sent, func(machine string) bool { return strings.HasPrefix(machine, "a/") })
		if err != nil {
			t.Fatal(err)
		}
		got.known, got.whole = !tc.unread, !tc.part
		var text bytes.Buffer
		got.notes(&text, tc.m, "a/**")
		if !strings.Contains(text.String(), tc.notes) || tc.notes == "" && text.Len() > 0 {
			t.Errorf("%s: %s, want %q", name, text.String(), tc.notes)
		}
		if err := got.refusal(""); (err != nil) != (tc.refusal != "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
			t.Errorf("%s: %v, want %q", name, err, tc.refusal)
		}
		if got.all() != tc.all {
			t.Errorf("%s: it suits all: %t", name, got.all())
		}
	}
}

// On Kafka: what machines send decides whether a model of other windows may judge them.
func TestPromoteOtherWindows(t *testing.T) {
	t.Parallel()
	addr, dir := rollout(t)
	out, err := bus.NewProducer(bus.Config{Brokers: []string{addr}, ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	write := func(name string, seed uint64, spec window.Spec) string {
		t.Helper()
		m := machinetest.OneValue(t)
		m.Window = spec
		if err := os.WriteFile(dir.path(name), deploytest.Prove(t, m, seed), 0o600); err != nil {
			t.Fatal(err)
		}
		return m.ID()
	}
	a, long := write("a.flank", 3, window.DefaultSpec), write("long.flank", 4, window.Spec{Length: 2 * time.Second})
	next := uint64(0)
	send := func(machine string, by envelope.Extractor, length time.Duration) {
		t.Helper()
		m := machinetest.OneValue(t)
		form, err := window.NewForm(m.Layout, window.Spec{Length: length}, signal.FeatureSpec{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var x window.Features
		for range 4 {
			w := machinetest.At(next, "T1", false)
			w.Machine, w.Start, w.Length, w.Samples = machine, w.Start.Add(time.Duration(next)*length), length, [][]float32{slices.Repeat([]float32{10}, int(length/time.Second))}
			w.Start = machinetest.At(0, "T1", false).Start.Add(time.Duration(next) * length)
			form.NewExtractor().Extract(w, &x)
			e, err := form.Seal(&x)
			if err != nil {
				t.Fatal(err)
			}
			f := envelope.Features(e, by, int64(next))
			if f.Time = time.Now(); out.Send(t.Context(), []bus.Message{f}) != nil {
				t.Fatal("cannot send")
			}
			next++
		}
	}
	const drill = "acme/line1/drill"
	do := func(line, wantOut, wantErr string) {
		t.Helper()
		line = strings.NewReplacer("MODEL_A", a, "LONG", long).Replace(line)
		stdout, stderr, err := dir.trainer(t, line+" --key flank.key --kafka "+addr)
		text := stdout + stderr
		if wantErr == "" && err != nil || wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) || !strings.Contains(text, wantOut) || wantOut == "" && strings.Contains(text, "note:") {
			t.Errorf("%s: %v, want %q\n%s, want %q", line, err, wantErr, text, wantOut)
		}
	}
	if _, _, err := dir.trainer(t, "keys new"); err != nil {
		t.Fatal(err)
	}
	do("publish a.flank", "", "")
	do("publish long.flank", "", "")
	do("promote MODEL_A --for acme/**", "note: no machine of acme/** has sent windows in the last 15m0s", "")
	do("promote LONG --for acme/**", "", "is trained on windows of 2s, and "+a+", the champion of acme/**, judges windows of 1s")
	send(drill, envelope.Monitor, time.Second)
	do("promote MODEL_A --for acme/**", "", "")
	do("promote LONG --for acme/line1/*", "", long+" cannot judge acme/line1/drill: they send features of windows of another length than 2s")
	r, err := json.Marshal(event.Result{Machine: drill, Start: time.Unix(0, 0), End: time.Unix(1, 0)})
	if err != nil || out.Send(t.Context(), []bus.Message{{Topic: bus.TopicResults, Key: drill, Value: r, Time: time.Now()}}) != nil {
		t.Fatal(err)
	}
	do("promote LONG --for acme/line1/* --shadow 1h", "", "they send windows of 1s, and it is trained on windows of 2s: set window.length to 2s in their ingest.yaml")
	do("promote LONG --for acme/line1/* --anyway", "note: "+long+" cannot judge acme/line1/drill", "")
	do("promote MODEL_A --for acme/line1/*", "", "") // the machine sends what it takes, and not what the champion takes
	do("rollback --for acme/line1/*", "note: "+long+" cannot judge acme/line1/drill", "")
	send(drill, envelope.Monitor, 2*time.Second)
	do("promote MODEL_A --for acme/line1/*", "", a+" cannot judge acme/line1/drill")
	do("retire --for acme/line1/*", "", "")
	do("promote LONG --for acme/**", "", "") // all machines send what it takes, and not what the champion takes
}

// What machines send is read from their features; where no monitor extracts, from the windows. What
// cannot be read is left out.
func TestSentLately(t *testing.T) {
	t.Parallel()
	addr, _ := rollout(t)
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	m := machinetest.OneValue(t)
	codec, err := window.NewCodec(m.Layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	send := func(m bus.Message) {
		t.Helper()
		m.Time = time.Now()
		if err := out.Send(t.Context(), []bus.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	e, err := codec.Seal(machinetest.At(0, "T1", false))
	if err != nil {
		t.Fatal(err)
	}
	send(envelope.Window(e))
	copied := e
	copied.Machine = "acme/line1/copied"
	again := envelope.Window(copied)
	again.Headers = append(again.Headers, bus.Header{Key: envelope.Copied, Value: []byte("resent")})
	send(again)
	spoilt := e
	spoilt.Machine, spoilt.Value = "acme/line1/spoilt", []byte("no window")
	send(envelope.Window(spoilt))
	stray := envelope.Window(e)
	stray.Key = "acme/line1/stray"
	send(stray)
	send(bus.Message{Topic: bus.TopicFeatures, Key: "acme/line1/text", Value: []byte("no features")})
	all, known, _ := sentLately(t.Context(), cfg)
	if s := all[machinetest.Drill]; !known || len(all) != 1 || s == nil || s.length != time.Second || s.layout != m.Layout.Fingerprint() || s.form != "" || s.edge || s.hop() != 0 {
		t.Errorf("%t, %d machines, %+v", known, len(all), all[machinetest.Drill])
	}
	e.Features = formOf(t, m.Layout, time.Second)
	send(envelope.Features(e, envelope.Gateway, 0))
	all, known, _ = sentLately(t.Context(), cfg)
	if s := all[machinetest.Drill]; !known || len(all) != 1 || s == nil || s.length != 0 || s.form != e.Features || !s.edge {
		t.Errorf("%t, %d machines, %+v", known, len(all), all[machinetest.Drill])
	}
	busy := e
	busy.Machine = "acme/line1/busy"
	var many []bus.Message
	for seq := range uint64(2*mostFeatures + 10) { // in the same partition
		busy.Seq = seq
		m := envelope.Features(busy, envelope.Gateway, 0)
		m.Time = time.Now()
		many = append(many, m)
	}
	if err := out.Send(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	all, known, whole := sentLately(t.Context(), cfg)
	if s := all[machinetest.Drill]; !known || !whole || len(all) != 2 || s == nil || s.form != e.Features || all[busy.Machine].seq != 2*mostFeatures+9 {
		t.Errorf("behind many messages of another machine: %t, %t, %+v", known, whole, all)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if all, known, _ := sentLately(ctx, bus.Config{Brokers: []string{"127.0.0.1:1"}, ClientID: "test"}); known || len(all) != 0 {
		t.Errorf("without a broker: %+v", all)
	}
}
