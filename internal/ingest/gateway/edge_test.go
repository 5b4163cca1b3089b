package gateway

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/float16"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// edge makes a gateway send features, and keep windows for a day.
func edge(c *Config) { c.Edge = &Edge{Keep: 24 * time.Hour} }

// messages are the messages on a topic.
func (p *plant) messages(topic string) (all []bus.Message) {
	p.t.Helper()
	err := bus.ReadTopic(context.Background(), p.bus, topic, bus.FirstOffset, false, func(m bus.Message) error {
		all = append(all, m)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// features opens a message of features.
func features(t *testing.T, form *window.Form, m *bus.Message) *window.Features {
	t.Helper()
	e, err := envelope.Of(m)
	f := new(window.Features)
	if err == nil {
		err = form.Open(e, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// In mode edge a gateway sends, bit for bit, the features that a reader of the same window
// extracts; samples of windows are sent too, and say that they are copies.
func TestEdgeSendsTheSameFeatures(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	drill := func() source.Source {
		src, err := Simulated(Simulation{Machine: lathe, Start: time.Unix(1767592800, 0), Seed: 3, Life: 4 * time.Second, Tools: 1})
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	layout := drill().Layout()
	for _, mode := range []*Edge{nil, {Keep: time.Hour, Sample: 4}} {
		g, err := New(Config{
			Source: drill(), Window: window.DefaultSpec, SpoolDir: filepath.Join(p.dir, fmt.Sprint(mode != nil)), Bus: p.bus, Edge: mode,
			Recording: "the same", SameWindows: true, Log: zerolog.New(&p.log),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.Close()
	}
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	form, err := window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := form.NewExtractor()
	var raw []bus.Message
	copies := 0
	for _, m := range p.messages(bus.TopicWindows) {
		switch string(m.Header(envelope.Copied)) {
		case "":
			raw = append(raw, m)
		case sampled:
			if i := 4 * copies; i >= len(raw) || !bytes.Equal(m.Value, raw[i].Value) {
				t.Errorf("sample %d is not window %d", copies, i)
			}
			copies++
		}
	}
	got := p.messages(bus.TopicFeatures)
	if len(raw) < 5 || len(got) != len(raw) || copies != (len(raw)+3)/4 {
		t.Fatalf("%d windows, %d features, %d samples", len(raw), len(got), copies)
	}
	for i := range raw {
		var w window.Window
		if err := openMessage(codec, &raw[i], &w); err != nil {
			t.Fatal(err)
		}
		var want window.Features
		x.Extract(&w, &want)
		f := features(t, form, &got[i])
		same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
		if f.Epoch != w.Epoch || f.Seq != w.Seq || f.Context != w.Context || !f.Start.Equal(w.Start) || f.First != w.First || !slices.Equal(f.Quality, w.Quality) ||
			f.Level != want.Level || !slices.EqualFunc(f.Values, want.Values, same) || !slices.EqualFunc(f.Frames, want.Frames, same) {
			t.Errorf("features of window %d differ from what is extracted of it", i)
		}
		if typ, by := string(got[i].Header("ce_type")), string(got[i].Header("extracted")); typ != event.FeaturesType || by != "gateway" || got[i].Key != lathe {
			t.Errorf("features of window %d: ce_type %q, extracted %q, key %q", i, typ, by, got[i].Key)
		}
	}
}

// What is delivered once more after a crash has the same bytes: readers drop it.
func TestEdgeDeliversTheSameBytesAgain(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 40)
	p.gateway(r, edge).runAndClose()
	if err := os.Remove(filepath.Join(p.spool, "cursor")); err != nil {
		t.Fatal(err)
	}
	p.gateway(r, edge).runAndClose()
	seen := map[string]bus.Message{}
	all := p.messages(bus.TopicFeatures)
	for _, m := range all {
		before, twice := seen[string(m.Header("ce_id"))]
		if twice && (!bytes.Equal(before.Value, m.Value) || fmt.Sprint(before.Headers) != fmt.Sprint(m.Headers)) {
			t.Errorf("%s came twice and differs", m.Header("ce_id"))
		}
		seen[string(m.Header("ce_id"))] = m
	}
	if len(all) != 80 || len(seen) != 40 {
		t.Errorf("%d messages of %d windows, want 80 of 40", len(all), len(seen))
	}
	if got := p.messages(bus.TopicWindows); len(got) != 0 {
		t.Errorf("%d windows were sent", len(got))
	}
}

func (g *Gateway) runAndClose() {
	if err := g.Run(context.Background()); err != nil {
		panic(err)
	}
	g.Close()
}

// A change of the mode while windows wait in the spool loses none, and none has two names.
func TestModeChangesWithWindowsInTheSpool(t *testing.T) {
	t.Parallel()
	p := newPlantOnDisk(t)
	addr := p.broker.Addr()
	r := p.record("day.csv", 0, 200)
	modes := []struct {
		at   uint64 // where it is stopped
		away bool   // the broker
		mode func(*Config)
	}{{40, false, func(*Config) {}}, {80, true, func(*Config) {}}, {120, false, edge}, {160, true, edge}, {1000, false, func(*Config) {}}}
	for _, m := range modes {
		if m.away {
			p.broker.Close()
		} else if m.at > 40 {
			p.start(addr)
		}
		ctx, stop := stopAt(t.Context(), m.at)
		g := p.gateway(r, m.mode, stop)
		if !m.away { // all that is in the spool goes
			g.patience = patience
		}
		if err := g.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if m.away && g.Stats().Pending < 30 {
			t.Errorf("stopped at %d: %d windows pending", m.at, g.Stats().Pending)
		}
		g.Close()
	}
	came := map[string]int{}
	for _, topic := range []string{bus.TopicWindows, bus.TopicFeatures} {
		n := 0
		for _, m := range p.messages(topic) {
			came[string(m.Header("epoch"))+" "+string(m.Header("seq"))]++
			n++
		}
		if n < 40 {
			t.Errorf("%d messages on %s", n, topic)
		}
	}
	if len(came) != 200 {
		t.Errorf("%d windows came, want 200 of one epoch", len(came))
	}
}

// Windows of another layout that the spool has from before go as they are.
func TestEdgeSendsForeignWindowsWhole(t *testing.T) {
	t.Parallel()
	p := newPlantOnDisk(t)
	p.broker.Close()
	addr := p.broker.Addr()
	ctx, stop := stopAt(t.Context(), 20)
	g := p.gateway(p.record("day.csv", 0, 40), live, stop)
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
	pending := g.Stats().Pending
	g.Close()
	p.start(addr)
	other, err := signal.NewLayout("another", []signal.Channel{{Name: "torque", Kind: signal.Feature, Unit: "Nm", Rate: 2}})
	if err != nil {
		t.Fatal(err)
	}
	g, err = New(Config{
		Source: &sender{layout: other}, Window: window.DefaultSpec, SpoolDir: p.spool, Bus: p.bus, Edge: &Edge{Keep: time.Hour}, Log: zerolog.New(&p.log),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.runAndClose()
	if got := uint64(len(p.messages(bus.TopicWindows))); got != pending || pending == 0 || len(p.messages(bus.TopicFeatures)) != 0 {
		t.Errorf("%d windows came, %d were pending", got, pending)
	}
	if n := strings.Count(p.log.String(), "no features can be made"); n != 1 {
		t.Errorf("it is logged %d times, want once", n)
	}
}

// What extraction costs a gateway: windows of the gun drill, one core.
func BenchmarkEdge(b *testing.B) { benchmarkEdge(b, signal.Context{}) }

// The same, of a control that says everything.
func BenchmarkEdgeContext(b *testing.B) {
	benchmarkEdge(b, signal.Context{FeedRate: 82.5, Programme: "O1234 <bore>", Material: "42CrMo4"})
}

func benchmarkEdge(b *testing.B, control signal.Context) {
	src, err := Simulated(Simulation{Machine: lathe, Start: time.Unix(1767592800, 0), Seed: 3, Life: 4 * time.Second, Tools: 1})
	if err != nil {
		b.Fatal(err)
	}
	cut, err := source.NewCutter(src, window.DefaultSpec)
	if err != nil {
		b.Fatal(err)
	}
	codec, err := window.NewCodec(src.Layout(), window.DefaultSpec)
	if err != nil {
		b.Fatal(err)
	}
	var w *window.Window
	for w == nil {
		c, err := cut.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		w = c.Window
	}
	w.FeedRate, w.Programme, w.Material = control.FeedRate, control.Programme, control.Material
	e, err := codec.Seal(w)
	if err != nil {
		b.Fatal(err)
	}
	x, err := newExtraction(src.Layout(), window.DefaultSpec, Edge{Keep: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	m := envelope.Window(e)
	bytes, packed := 0, 0
	for b.Loop() {
		f, err := x.message(codec, &m)
		if err != nil {
			b.Fatal(err)
		}
		if bytes == 0 {
			packed = len(snappy.Encode(nil, f.AppendBinary(nil))) // as a batch of one is compressed
		}
		bytes = f.Size()
	}
	b.ReportMetric(float64(m.Size()), "raw-B/window")
	b.ReportMetric(float64(bytes), "edge-B/window")
	b.ReportMetric(float64(packed), "edge-packed-B/window")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "windows/s")
}

// What compression leaves of features of one machine, in batches of so many windows.
func BenchmarkPacked(b *testing.B) {
	const windows = 64
	src, err := Simulated(Simulation{Machine: lathe, Start: time.Unix(1767592800, 0), Seed: 3, Life: 100 * time.Second, Tools: 1})
	if err != nil {
		b.Fatal(err)
	}
	cut, err := source.NewCutter(src, window.DefaultSpec)
	if err != nil {
		b.Fatal(err)
	}
	x, err := newExtraction(src.Layout(), window.DefaultSpec, Edge{Keep: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	msgs := make(map[string][][]byte) // by the form of the values: as they are sent, and as they would be
	for len(msgs[""]) < windows {
		c, err := cut.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if c.Window == nil {
			continue
		}
		x.extractor.Extract(c.Window, &x.features)
		e, err := x.form.Seal(&x.features)
		if err != nil {
			b.Fatal(err)
		}
		m := envelope.Features(e, envelope.Gateway, 0)
		whole := m.AppendBinary(nil)
		msgs[""] = append(msgs[""], whole)
		before, after, ok := bytes.Cut(whole, narrowed(x.features.Values, 4, math.Float32bits))
		if !ok {
			b.Fatal("the message does not hold its values")
		}
		for name, values := range map[string][]byte{
			"bfloat16/": narrowed(x.features.Values, 2, func(v float32) uint32 { return math.Float32bits(v) >> 16 }),
			"half/":     narrowed(x.features.Values, 2, func(v float32) uint32 { return uint32(float16.New(v).Uint16()) }),
			"logarithm/": narrowed(x.features.Values, 2, func(v float32) uint32 {
				return math.Float32bits(v)>>31<<15 | uint32(min(max(512*(math.Log2(math.Abs(float64(v)))+32), 0), 1<<15-1))
			}),
			"12-of-23-bits/": narrowed(x.features.Values, 4, func(v float32) uint32 { return math.Float32bits(v) &^ (1<<11 - 1) }),
			"no-values/":     nil,
		} {
			msgs[name] = append(msgs[name], slices.Concat(before, values, after))
		}
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	for name, pack := range map[string]func(dst, batch []byte) []byte{
		"none":   func(dst, batch []byte) []byte { return append(dst, batch...) },
		"snappy": func(dst, batch []byte) []byte { return append(dst, snappy.Encode(nil, batch)...) },
		"zstd":   func(dst, batch []byte) []byte { return encoder.EncodeAll(batch, dst) },
	} {
		for form, msgs := range msgs {
			for _, n := range []int{1, 4, 16, 64} {
				b.Run(fmt.Sprintf("%s%s/%d", form, name, n), func(b *testing.B) {
					var packed []byte
					for b.Loop() {
						packed = packed[:0]
						for batch := range slices.Chunk(msgs, n) {
							packed = pack(packed, bytes.Join(batch, nil))
						}
					}
					b.ReportMetric(float64(len(packed))/windows, "B/window")
					b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*windows), "µs/window")
				})
			}
		}
	}
}

// narrowed returns the lowest bytes of what bits makes of each value.
func narrowed(values []float32, size int, bits func(float32) uint32) (out []byte) {
	for _, v := range values {
		out = append(out, binary.LittleEndian.AppendUint32(nil, bits(v))[:size]...)
	}
	return out
}
