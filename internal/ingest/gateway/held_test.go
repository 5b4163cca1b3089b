package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// countedDisk counts the segments that are opened to be read.
type countedDisk struct {
	spool.Disk
	opened *atomic.Int64
}

func (d countedDisk) Open(name string) (spool.File, error) {
	if strings.HasSuffix(name, ".seg") {
		d.opened.Add(1)
	}
	return d.Disk.Open(name)
}

// recorded is ten seconds of the simulated gun drill in memory, again and again: as a converter's driver hands blocks over.
type recorded struct {
	layout  *signal.Layout
	blocks  []source.Block
	block   source.Block
	next    int
	turns   int64
	windows int64              // after which it ends
	ready   func(second int64) // called before the first block of each second
}

const recordedSeconds = 10

func recordDrill(t testing.TB) *recorded {
	t.Helper()
	src, err := Simulated(Simulation{Machine: lathe, Start: time.Unix(1767592800, 0), Seed: 1, Life: 20 * time.Second, Tools: 1})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorded{layout: src.Layout()}
	for {
		one, err := src.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if float64(one.First) >= recordedSeconds*r.layout.Groups()[one.Group].Rate {
			return r
		}
		kept := *one
		kept.Samples, kept.Truth = nil, nil
		for _, x := range one.Samples {
			kept.Samples = append(kept.Samples, append([]float32(nil), x...))
		}
		r.blocks = append(r.blocks, kept)
	}
}

func (r *recorded) Layout() *signal.Layout { return r.layout }

func (r *recorded) Next(context.Context) (*source.Block, error) {
	if r.next == len(r.blocks) {
		r.next, r.turns = 0, r.turns+1
	}
	r.block = r.blocks[r.next]
	later := r.turns * recordedSeconds
	rate := int64(r.layout.Groups()[r.block.Group].Rate)
	r.block.First += later * rate
	r.block.Time = r.block.Time.Add(time.Duration(later) * time.Second)
	if r.block.First >= r.windows*rate {
		return nil, io.EOF
	}
	if r.block.Group == 0 && r.block.First%rate == 0 && r.ready != nil {
		r.ready(r.block.First / rate)
	}
	r.next++
	return &r.block, nil
}

// odd is the drill with what a control may say, however wrong, in each second.
type odd struct{ *recorded }

var oddContexts = []signal.Context{
	{Tool: "T1", SpindleSpeed: 1650},
	{Tool: "T1", SpindleSpeed: math.NaN(), FeedRate: math.NaN()},
	{Tool: "T1", SpindleSpeed: math.Inf(1), FeedRate: math.Inf(-1), Hole: "H1"},
	{Tool: "T1", SpindleSpeed: -5, FeedRate: -1, Programme: "O1234 <bore>"},
	{Tool: "T1", SpindleSpeed: 900.125, FeedRate: 82.1, Programme: "ü", Material: "42CrMo4", ToolLife: "life-1"},
}

func (s *odd) Next(ctx context.Context) (*source.Block, error) {
	b, err := s.recorded.Next(ctx)
	if err != nil {
		return nil, err
	}
	second := b.First / int64(s.layout.Groups()[b.Group].Rate)
	b.Context = oddContexts[second%int64(len(oddContexts))]
	b.Machine = lathe
	if b.Group == 0 && second == 2 { // a sensor that is dead, and one that fails
		b.Samples = slices.Clone(b.Samples)
		b.Samples[3] = make([]float32, b.Len())
		b.Samples[5] = slices.Repeat([]float32{float32(math.NaN())}, b.Len())
	}
	return b, nil
}

// What a gateway sends of windows that are still in memory has the bytes of what it sends of windows that it reads from the
// spool. While the broker takes them, no window is read.
func TestWindowsInMemoryAreTheSpools(t *testing.T) {
	t.Parallel()
	drill := recordDrill(t)
	for name, edge := range map[string]*Edge{"raw": nil, "edge": {Keep: time.Hour, Sample: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seconds = 7
			var sent [2]map[string][]bus.Message
			for i, stored := range []bool{false, true} {
				p := newPlant(t)
				var opened atomic.Int64
				taken := make(chan time.Duration, seconds)
				run := func(only bool, seconds int64) {
					t.Helper()
					src := &odd{&recorded{layout: drill.layout, blocks: drill.blocks, windows: seconds, ready: func(second int64) {
						if !stored && second >= 2 {
							<-taken // the window before the last
						}
					}}}
					g, err := New(Config{
						Source: src, Window: window.DefaultSpec, SpoolDir: p.spool, Bus: p.bus, Edge: edge, SpoolOnly: only, Log: zerolog.New(&p.log),
						Disk: countedDisk{spool.Dir(p.dir), &opened}, MintEpoch: func() uint64 { return 7 },
						Clock:  source.Clock{Now: func() time.Time { return time.Unix(1767592900, 5) }},
						OnSent: func(age time.Duration) { taken <- age },
					})
					if err != nil {
						t.Fatal(err)
					}
					defer g.Close()
					if err := g.Run(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if stored {
					run(true, seconds)
					opened.Store(0)
					run(false, 0)
				} else {
					run(false, seconds)
				}
				if n := opened.Load(); (n > 0) != stored {
					t.Errorf("stored %v: %d segments were read", stored, n)
				}
				sent[i] = map[string][]bus.Message{bus.TopicWindows: p.messages(bus.TopicWindows), bus.TopicFeatures: p.messages(bus.TopicFeatures)}
			}
			for topic, want := range sent[1] {
				got := sent[0][topic]
				if len(got) != len(want) || topic == bus.TopicFeatures && edge != nil && len(want) != seconds {
					t.Fatalf("%s: %d messages from memory, %d from the spool", topic, len(got), len(want))
				}
				for i := range want {
					a, b := got[i], want[i]
					if a.Key != b.Key || a.Partition != b.Partition || !reflect.DeepEqual(a.Headers, b.Headers) || !bytes.Equal(a.Value, b.Value) {
						t.Errorf("%s: message %d differs: %d bytes %q, from the spool %d bytes %q", topic, i, len(a.Value), a.Headers, len(b.Value), b.Headers)
					}
				}
			}
		})
	}
}

// A window in memory has the features of the window that its message carries, also if the control says nonsense.
func TestFreshFeatures(t *testing.T) {
	layout := signal.GunDrill()
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	x, err := newExtraction(layout, window.DefaultSpec, Edge{Keep: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i, ctx := range oddContexts {
		rates := [][]float64{nil, {20_123.456789, 0}, {0, math.Pi}}[i%3]
		w := &window.Window{Context: ctx, Epoch: 7, Seq: uint64(i), Start: time.Unix(1767592800, 7).UTC(), Length: time.Second, Session: 3, First: 40_000, Rates: rates, Drift: time.Second}
		w.Machine = lathe
		for c, ch := range layout.Channels() {
			samples := make([]float32, window.DefaultSpec.Samples(ch.Rate))
			for k := range samples {
				samples[k] = float32(math.Sin(float64(k*(c+1)) * 0.01))
			}
			w.Samples = append(w.Samples, samples)
			w.Quality = append(w.Quality, signal.Quality(c))
		}
		e, err := codec.Seal(w)
		if err != nil {
			t.Fatal(err)
		}
		m := envelope.Window(e)
		envelope.SetAcquired(&m, time.Unix(1767592900, 5))
		fresh, err := x.fresh(w, &m)
		if err != nil {
			t.Fatal(err)
		}
		want, err := x.message(codec, &m)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(fresh, want) {
			t.Errorf("%s differs: %q and %q", fmt.Sprint(ctx, rates), fresh.Headers, want.Headers)
		}
	}
}

// Memory that windows are held in is used again, and no more of it is kept than may be in use.
func TestMemory(t *testing.T) {
	m := &memory{most: 2}
	a, b, c := m.take(), m.take(), m.take()
	for _, h := range []*held{a, b, c} {
		m.give(h)
	}
	if m.take() != b || m.take() != a || len(m.free) != 0 {
		t.Error("not what was given back, the last first")
	}
	if d := m.take(); d == a || d == b || d == c {
		t.Error("memory that is in use, or was let go")
	}
}
