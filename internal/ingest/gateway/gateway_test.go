package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/internal/testkit/loopback"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// patience bounds what should take a moment. It is not a measure of speed.
const patience = 2 * time.Minute

const lathe = "acme/spore/bay2/line1/lathe"

// plant is a broker, a folder for recordings and a spool.
type plant struct {
	t         *testing.T
	dir       string
	spool     string // its folder
	bus       bus.Config
	layout    *signal.Layout
	codec     *window.Codec
	broker    *broker.Broker
	brokerDir string // if it may be started again
	log       logtest.Buffer
}

// newPlant starts a broker with all topics.
func newPlant(t *testing.T) *plant {
	return newPlantOf(t, brokertest.Start(t))
}

// newPlantOnDisk is newPlant with a broker that may be started again.
func newPlantOnDisk(t *testing.T) *plant {
	dir := t.TempDir()
	p := newPlantOf(t, startBroker(t, dir, loopback.Host(1)+":0"))
	p.brokerDir = dir
	t.Cleanup(func() { p.broker.Close() })
	return p
}

func newPlantOf(t *testing.T, b *broker.Broker) *plant {
	p := newPlantWithoutTopics(t, b)
	if _, err := bus.Apply(context.Background(), p.bus, 2, 1); err != nil {
		t.Fatal(err)
	}
	return p
}

func newPlantWithoutTopics(t *testing.T, b *broker.Broker) *plant {
	p := &plant{t: t, dir: t.TempDir(), broker: b}
	p.spool = filepath.Join(p.dir, "spool")
	p.bus = p.broker.Config("test")
	var err error
	p.layout, err = signal.NewLayout("one value", []signal.Channel{{Name: "force", Kind: signal.Feature, Unit: "N", Rate: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if p.codec, err = window.NewCodec(p.layout, window.DefaultSpec); err != nil {
		t.Fatal(err)
	}
	return p
}

// start starts the broker of newPlantOnDisk again.
func (p *plant) start(addr string) { p.broker = startBroker(p.t, p.brokerDir, addr) }

func startBroker(t *testing.T, dir, addr string) *broker.Broker {
	b, err := broker.Start(dir, addr)
	if err != nil {
		t.Error(err)
	}
	return b
}

// record writes a recording of so many windows, of two rows each. Rows count up
// from first. One more row is too few for a window.
func (p *plant) record(name string, first, windows int) source.Recording {
	p.t.Helper()
	var b strings.Builder
	b.WriteString("force\n")
	for i := range 2*windows + 1 {
		fmt.Fprintln(&b, first+i)
	}
	return p.write(name, b.String())
}

func (p *plant) write(name, text string) source.Recording {
	p.t.Helper()
	r := source.Recording{Path: filepath.Join(p.dir, name), Layout: p.layout, Machine: lathe}
	if err := os.WriteFile(r.Path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return r
}

// gateway returns one that replays r. It is closed at the end of the test.
func (p *plant) gateway(r source.Recording, change ...func(*Config)) *Gateway {
	p.t.Helper()
	id, err := RecordingID(r, window.DefaultSpec)
	if err != nil {
		p.t.Fatal(err)
	}
	src, err := r.Open()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { src.(interface{ Close() error }).Close() })
	cfg := Config{
		Source: src, Window: window.DefaultSpec, SpoolDir: p.spool, Bus: p.bus, Recording: id, SyncEvery: 7, Log: zerolog.New(&p.log),
	}
	for _, c := range change {
		c(&cfg)
	}
	g, err := New(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	g.patience = 200 * time.Millisecond
	p.t.Cleanup(func() { g.Close() })
	return g
}

// live makes a gateway take its source for a live one.
func live(c *Config) { c.Recording = "" }

// alone makes a gateway look for its broker where there is none.
func alone(c *Config) { c.Bus.Brokers = []string{"127.0.0.1:1"} }

// replay runs a gateway to the end of r, and notes that it did.
func (p *plant) replay(r source.Recording, change ...func(*Config)) *Gateway {
	p.t.Helper()
	g := p.gateway(r, change...)
	if err := g.Run(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	if err := g.Finish(); err != nil {
		p.t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		p.t.Fatal(err)
	}
	return g
}

// stopAt makes a gateway stop as by Ctrl-C when it cuts the window of a seq.
func stopAt(ctx context.Context, seq uint64) (context.Context, func(*Config)) {
	ctx, stop := context.WithCancel(ctx)
	return ctx, func(c *Config) {
		c.OnCut = func(c source.Cut) {
			if c.Window != nil && c.Window.Seq == seq {
				stop()
			}
		}
	}
}

// sent are the windows on the topic: their first value by seq, of each epoch.
// It fails on a repeat that says something else than the first.
func (p *plant) sent() epochs {
	p.t.Helper()
	got, body := epochs{}, map[string][]byte{}
	err := bus.ReadTopic(context.Background(), p.bus, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		var w window.Window
		if err := openMessage(p.codec, &m, &w); err != nil {
			return err
		}
		id := string(m.Header("ce_id"))
		if before, twice := body[id]; twice && !bytes.Equal(before, m.Value) {
			p.t.Errorf("%s came twice and differs", id)
		}
		body[id] = m.Value
		if got[w.Epoch] == nil {
			got[w.Epoch] = map[uint64]float32{}
		}
		got[w.Epoch][w.Seq] = w.Samples[0][0]
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// windows are so many windows of a recording whose rows count up from first,
// beginning with a seq.
func windows(seq uint64, first, n int) map[uint64]float32 {
	ws := map[uint64]float32{}
	for i := range n {
		ws[seq+uint64(i)] = float32(first + 2*i)
	}
	return ws
}

// epochs are windows by epoch.
type epochs map[uint64]map[uint64]float32

// check fails unless exactly these windows were sent.
func (p *plant) check(want epochs) {
	p.t.Helper()
	got := p.sent()
	if len(got) != len(want) {
		p.t.Errorf("%d epochs, want %d", len(got), len(want))
	}
	for epoch, ws := range want {
		if !maps.Equal(got[epoch], ws) {
			p.t.Errorf("epoch %016x: %d windows, want %d\nseqs %v", epoch, len(got[epoch]), len(ws), slices.Sorted(maps.Keys(got[epoch])))
		}
	}
}

// A recording arrives whole, as it was recorded, and the rows at its end that
// are too few for a window are reported.
func TestReplay(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	var seqs []uint64
	gaps := 0
	g := p.replay(p.record("day.csv", 0, 300), func(c *Config) {
		c.OnCut = func(c source.Cut) {
			if c.Gap != nil {
				gaps++
				return
			}
			seqs = append(seqs, c.Window.Seq)
		}
	})
	got := g.Stats()
	samples := window.Tally{Pushed: 601, Windowed: 600, Tails: 1}
	if want := (Stats{Windows: 300, Gaps: 1, Delivered: 300, Samples: samples, SpoolBytes: got.SpoolBytes}); got != want || got.SpoolBytes == 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(seqs) != 300 || !slices.IsSorted(seqs) || gaps != 1 {
		t.Errorf("OnCut saw %d windows and %d gaps, want 300 and 1 in order", len(seqs), gaps)
	}
	p.check(epochs{g.spool.Epoch(): windows(0, 0, 300)})
	if log := p.log.String(); !strings.Contains(log, `"reason":"`+window.Tail+`"`) {
		t.Errorf("nothing is logged of the tail:\n%s", log)
	}
}

// Stopped wherever it may be, a replay goes on where it was: one epoch, no
// window missing, none under two names.
func TestReplayGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 400)
	var epoch uint64
	for _, seq := range []uint64{0, 1, 150, 128, 399} { // also one that it was past already
		ctx, stop := stopAt(t.Context(), seq)
		g := p.gateway(r, stop)
		g.patience = patience // it delivers the rest
		if err := g.Run(ctx); err != nil {
			t.Fatalf("stopped at %d: %v", seq, err)
		}
		if epoch == 0 {
			epoch = g.spool.Epoch()
		}
		if s := g.Stats(); s.Windows <= seq || s.Pending > 0 {
			t.Errorf("stopped at %d: %+v", seq, s)
		}
		g.Close()
	}
	g := p.replay(r)
	if s := g.Stats(); s.Windows != 400 || g.spool.Epoch() != epoch {
		t.Errorf("%+v in epoch %x, want 400 windows in %x", s, g.spool.Epoch(), epoch)
	}
	p.check(epochs{epoch: windows(0, 0, 400)})
}

// A killed gateway leaves its spool as it is at that moment. Whenever that is,
// the next one sends what is missing, and what it repeats is the same.
func TestReplayGoesOnAfterCrash(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 300)
	want := epochs{}
	for i, at := range []uint64{0, 1, 6, 7, 100, 299} {
		p.spool = filepath.Join(p.dir, fmt.Sprint("spool", i))
		crashed := p.spool + "-crashed"
		g := p.gateway(r, func(c *Config) {
			c.OnCut = func(c source.Cut) {
				if c.Window != nil && c.Window.Seq == at {
					err := os.CopyFS(crashed, os.DirFS(p.spool))
					for errors.Is(err, fs.ErrNotExist) { // the gateway renames files meanwhile
						err = errors.Join(os.RemoveAll(crashed), os.CopyFS(crashed, os.DirFS(p.spool)))
					}
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		epoch := g.spool.Epoch()
		g.Close()
		g = p.replay(r, func(c *Config) { c.SpoolDir = crashed })
		if g.spool.Epoch() != epoch {
			t.Errorf("killed at %d: epoch %x, before %x", at, g.spool.Epoch(), epoch)
		}
		want[epoch] = windows(0, 0, 300)
	}
	p.check(want)
}

// A recording that was replayed to its end and is replayed again is so under
// another epoch: the windows are judged again.
func TestFinishedReplayBeginsAnEpoch(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 60)
	first := p.replay(r).spool.Epoch()
	second := p.replay(r).spool.Epoch()
	if first == second {
		t.Fatal("both replays have one epoch")
	}
	p.check(epochs{first: windows(0, 0, 60), second: windows(0, 0, 60)})
}

// What the spool still holds of a recording is delivered before the windows of
// another one, however the other one differs.
func TestAnotherRecordingDrainsFirst(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 200)
	ctx, stop := stopAt(t.Context(), 100)
	g := p.gateway(r, stop, alone)
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
	kept, first := g.Stats(), g.spool.Epoch()
	if kept.Delivered != 0 || kept.Pending != kept.Windows || kept.Windows <= 100 {
		t.Fatalf("without a broker: %+v", kept)
	}
	g.Close()

	other := r
	other.Machine = "acme/spore/bay2/line1/mill" // the same bytes, but not its windows
	g = p.gateway(other)
	epoch, seq, err := g.Begin(t.Context())
	if err != nil || seq != 0 || epoch == first {
		t.Fatalf("begins at seq %d of epoch %x, error %v; before %x", seq, epoch, err, first)
	}
	p.check(epochs{first: windows(0, 0, int(kept.Windows))})
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.check(epochs{first: windows(0, 0, int(kept.Windows)), epoch: windows(0, 0, 200)})
	if s := g.Stats(); s.Delivered != 200+kept.Windows {
		t.Errorf("%+v, want %d delivered", s, 200+kept.Windows)
	}
}

// What makes windows other windows makes another recording of the same file.
// The id of a recording is as in v0.1.0, or an upgrade would send it again as other windows.
func TestRecordingIDOfOlderReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "day.csv")
	if err := os.WriteFile(path, []byte("ax\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	layout, err := signal.NewLayout("l", []signal.Channel{{Name: "force", Kind: signal.Feature, Rate: 2}})
	if err != nil {
		t.Fatal(err)
	}
	r := source.Recording{Path: path, Layout: layout, Machine: "m"}
	for want, columns := range map[string]signal.Recording{
		"/{Format: Skip:0 Header: Separator: Decimal: Time: Machine: Tool: Hole: Speed: VBMean: VBMax: State: Origins:map[]}/1s/1s/m/day": {},
		"/{Format:text Skip:2 Header:none Separator:tab Decimal:comma Time:t Machine:mc Tool:tl Hole:h Speed:s VBMean:a VBMax:b State:st Origins:map[force:{From:F Gain:2 Offset:1}]}/1s/1s/m/": {
			Format: "text", Skip: 2, Header: "none", Separator: "tab", Decimal: "comma", Time: "t", Machine: "mc", Tool: "tl", Hole: "h", Speed: "s", VBMean: "a", VBMax: "b", State: "st",
			Origins: map[string]signal.Origin{"force": {From: "F", Gain: 2, Offset: 1}},
		},
	} {
		r.Columns = columns
		got, err := RecordingID(r, window.DefaultSpec)
		if _, rest, _ := strings.Cut(got, layout.Fingerprint()); err != nil || rest != want {
			t.Errorf("%s, %v\nwant … %s", got, err, want)
		}
	}
	um := r
	um.Columns.VBMaxMM = "b"
	if a, err := RecordingID(um, window.DefaultSpec); err != nil || !strings.HasSuffix(a, `/mm "" "b"`) {
		t.Errorf("a wear in mm: %s, %v", a, err)
	}
}

func TestRecordingID(t *testing.T) {
	p := &plant{t: t, dir: t.TempDir()}
	layout := func(name string) *signal.Layout {
		l, err := signal.NewLayout("l", []signal.Channel{{Name: name, Kind: signal.Feature, Rate: 2}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	p.layout = layout("force")
	id := func(r source.Recording, s window.Spec) string {
		id, err := RecordingID(r, s)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	r := p.record("day.csv", 0, 3)
	base := id(r, window.DefaultSpec)
	tooled := r
	tooled.Columns.Tool = "tool"
	gappy := r
	gappy.Columns.Missing = []string{"-999", "n"}
	seen := map[string]string{base: "the same"}
	for name, got := range map[string]string{
		"other bytes":   id(p.record("day2.csv", 1, 3), window.DefaultSpec),
		"other length":  id(r, window.Spec{Length: 2 * time.Second}),
		"other hop":     id(r, window.Spec{Length: time.Second, Hop: time.Second / 2}),
		"other machine": id(source.Recording{Path: r.Path, Layout: r.Layout, Machine: "m"}, window.DefaultSpec),
		"other channel": id(source.Recording{Path: r.Path, Layout: layout("power"), Machine: r.Machine}, window.DefaultSpec),
		"other columns": id(tooled, window.DefaultSpec),
		"other missing": id(gappy, window.DefaultSpec),
		"a start":       id(source.Recording{Path: r.Path, Layout: r.Layout, Machine: r.Machine, Start: signal.Start{FileTime: true}}, window.DefaultSpec),
		"other start":   id(source.Recording{Path: r.Path, Layout: r.Layout, Machine: r.Machine, Start: signal.Start{At: time.Unix(1_800_000_000, 0)}}, window.DefaultSpec),
		"another file, after which the tool is named": id(p.record("night.csv", 0, 3), window.DefaultSpec),
	} {
		if other, same := seen[got]; same {
			t.Errorf("%s has the id of %s", name, other)
		}
		seen[got] = name
	}
	moved := p.record("moved.csv", 0, 3)
	moved.Columns = tooled.Columns
	if id(moved, window.DefaultSpec) != id(tooled, window.DefaultSpec) || id(r, window.Spec{Length: time.Second, Hop: time.Second}) != base {
		t.Error("another name of a file that names its tools, or a hop that is the default, makes another recording")
	}
	if _, err := RecordingID(source.Recording{Path: "absent.csv", Layout: p.layout}, window.DefaultSpec); err == nil || !strings.Contains(err.Error(), "absent.csv") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// The windows of a live source continue the epoch of the spool, start after
// start.
func TestLiveContinues(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	want := map[uint64]float32{}
	var epoch uint64
	for i := range 3 {
		g := p.gateway(p.record("live.csv", 1000*i, 20), live)
		e, seq, err := g.Begin(t.Context())
		if err != nil || seq != uint64(20*i) || i > 0 && e != epoch {
			t.Fatalf("start %d: seq %d of epoch %x, %v", i, seq, e, err)
		}
		epoch = e
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.Close()
		maps.Copy(want, windows(seq, 1000*i, 20))
	}
	p.check(epochs{epoch: want})
}

// What a live source delivered while no ingester ran is a gap, and is declared.
func TestTimeAwayIsDeclared(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	for i, tc := range []struct {
		file string
		want time.Duration
	}{
		{"2026-01-01T00:00:00Z,1\n2026-01-01T00:00:00.5Z,2\n2026-01-01T00:00:01Z,3\n2026-01-01T00:00:01.5Z,4\n", 0}, // the first start
		{"2026-01-01T00:00:02Z,5\n2026-01-01T00:00:02.5Z,6\n", 0},                                                   // goes on without a gap
		{"2026-01-01T00:00:07.25Z,7\n2026-01-01T00:00:07.75Z,8\n", 4250 * time.Millisecond},
		{"2026-01-01T00:00:03Z,9\n2026-01-01T00:00:03.5Z,10\n", 0},  // the clock went back: the gap is unknown
		{"2026-01-01T00:01:00Z,11\n2026-01-01T00:01:00.5Z,12\n", 0}, // another machine was not away since
	} {
		r := p.write(fmt.Sprintf("live%d.csv", i), "time,force\n"+tc.file)
		r.Columns.Time = "time"
		var gaps []window.Gap
		g := p.gateway(r, live, func(c *Config) {
			c.Machine = []string{"a", "a", "a", "a", "b"}[i]
			c.OnCut = func(c source.Cut) {
				if c.Gap != nil {
					gaps = append(gaps, *c.Gap)
				}
			}
		})
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.Close()
		switch {
		case tc.want == 0 && len(gaps) > 0:
			t.Errorf("start %d: gaps %+v, want none", i, gaps)
		case tc.want > 0 && (len(gaps) != 1 || gaps[0].Reason != away || gaps[0].Duration != tc.want || gaps[0].Machine != lathe):
			t.Errorf("start %d: gaps %+v, want one of %v", i, gaps, tc.want)
		}
	}
}

// A live source that starts between the halves of a replay takes over its epoch.
// The replay starts again from its beginning, since live windows have its seqs now.
func TestLiveBetweenTheHalvesOfAReplay(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 300)
	ctx, stop := stopAt(t.Context(), 10)
	g := p.gateway(r, stop)
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
	half, first := int(g.Stats().Windows), g.spool.Epoch()
	g.Close()
	g = p.replay(p.record("live.csv", 5000, 50), live)
	if g.spool.Epoch() != first {
		t.Error("the live source began an epoch")
	}
	g = p.replay(r)
	if g.spool.Epoch() == first {
		t.Error("the replay went on in the epoch of the live source")
	}
	shared := windows(0, 0, half)
	maps.Copy(shared, windows(uint64(half), 5000, 50))
	p.check(epochs{first: shared, g.spool.Epoch(): windows(0, 0, 300)})
}

// outages counts the calls of OnRetry.
type outages struct {
	mu       sync.Mutex
	failed   []string
	over     int
	onFailed func() // called once
}

func (o *outages) watch(c *Config) {
	c.Bus.OnRetry = func(err error, _ time.Duration) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if err == nil {
			o.over++
			return
		}
		o.failed = append(o.failed, err.Error())
		if o.onFailed != nil {
			o.onFailed()
			o.onFailed = nil
		}
	}
}

// A broker that comes later, or goes away in the middle, costs nothing:
// acquisition goes on, and what it kept arrives when the broker is there.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		gone uint64 // seq at which the broker goes away
	}{{"at the start", 0}, {"in the middle", 400}} {
		p := newPlantOnDisk(t)
		addr, began, ages := p.broker.Addr(), time.Now().Truncate(time.Second), 0
		if tc.gone == 0 {
			p.broker.Close()
		}
		var g *Gateway
		o := &outages{}
		cut := make(chan struct{}) // closed when the source has ended
		back := make(chan struct{})
		o.onFailed = func() {
			go func() {
				defer close(back)
				<-cut
				if n := g.Stats().Pending; n == 0 {
					t.Errorf("%s: nothing waits for the broker", tc.name)
				}
				if at := g.Progress().Oldest; at.Before(began) || at.After(time.Now()) {
					t.Errorf("%s: the oldest window that waits was acquired at %v", tc.name, at)
				}
				p.start(addr)
			}()
		}
		g = p.gateway(p.record("day.csv", 0, 800), o.watch, func(c *Config) {
			c.OnSent = func(age time.Duration) {
				if ages++; age < 0 || age > time.Since(began) {
					t.Errorf("%s: a window was sent %v after it was acquired", tc.name, age)
				}
			}
			c.OnCut = func(c source.Cut) {
				switch {
				case c.Gap != nil: // the tail
					close(cut)
				case c.Window.Seq == tc.gone && tc.gone > 0:
					for g.Stats().Delivered == 0 {
						time.Sleep(time.Millisecond)
					}
					p.broker.Close()
				}
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := g.Run(ctx); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		<-back
		if s := g.Stats(); s.Windows != 800 || s.Delivered != 800 || s.Pending != 0 || ages != 800 {
			t.Errorf("%s: %+v, %d ages", tc.name, s, ages)
		}
		if at := g.Progress().Oldest; !at.IsZero() {
			t.Errorf("%s: nothing waits, and the oldest was acquired at %v", tc.name, at)
		}
		p.check(epochs{g.spool.Epoch(): windows(0, 0, 800)})
		o.mu.Lock()
		if len(o.failed) == 0 || o.over == 0 || !strings.Contains(strings.Join(o.failed, "\n"), addr) {
			t.Errorf("%s: OnRetry did not report that the broker at %s was away and is back: %q, %d times over", tc.name, addr, o.failed, o.over)
		}
		o.mu.Unlock()
	}
}

// A stop while the broker is away lasts as long as the time for delivering, and is
// not a failure. The windows stay in the spool.
func TestStoppedWithoutBroker(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 300)
	ctx, stop := stopAt(t.Context(), 40)
	g := p.gateway(r, stop, alone)
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if s := g.Stats(); s.Pending != s.Windows || s.Windows <= 40 {
		t.Errorf("%+v", s)
	}
	epoch := g.spool.Epoch()
	g.Close()
	if g = p.replay(r); g.spool.Epoch() != epoch {
		t.Error("another epoch")
	}
	p.check(epochs{epoch: windows(0, 0, 300)})
}

// An error in the middle of a file names the place and what to do. What was read
// before is delivered, and with the file corrected nothing of it is missing.
func TestSourceFails(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	good := p.record("day.csv", 0, 400)
	text, err := os.ReadFile(good.Path)
	if err != nil {
		t.Fatal(err)
	}
	bad := p.write("day.csv", strings.Replace(string(text), "\n600\n", "\nsix hundred\n", 1)) // line 602
	g := p.gateway(bad)
	g.patience = patience // it delivers the rest
	if err = g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `day.csv:602: column "force": "six hundred" is not a number: correct it`) {
		t.Errorf("error %v: want one that names file, line, column and remedy", err)
	}
	if s := g.Stats(); s.Windows != 300 || s.Pending != 0 {
		t.Errorf("%+v, want 300 windows, all delivered", s)
	}
	first := g.spool.Epoch()
	g.Close()
	good = p.record("day.csv", 0, 400)
	second := p.replay(good).spool.Epoch()
	p.check(epochs{first: windows(0, 0, 300), second: windows(0, 0, 400)})
}

// The same with a broker that is away: Run still returns the error, and the windows
// stay.
func TestSourceFailsWithoutBroker(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	bad := p.write("day.csv", "force\n1\n2\n3\n4\noff\n")
	g := p.gateway(bad, alone)
	if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "day.csv:6") {
		t.Errorf("error %v", err)
	}
	epoch := g.spool.Epoch()
	if s := g.Stats(); s.Pending != 2 {
		t.Errorf("%+v: want 2 windows in the spool", s)
	}
	g.Close()
	other := p.replay(p.record("other.csv", 0, 3)).spool.Epoch()
	p.check(epochs{epoch: windows(0, 1, 2), other: windows(0, 0, 3)})
}

// Without topics nothing is lost, and the error says what to do.
func TestMissingTopics(t *testing.T) {
	t.Parallel()
	p := newPlantWithoutTopics(t, brokertest.Start(t))
	r := p.record("day.csv", 0, 300)
	g := p.gateway(r, func(c *Config) { c.SyncEvery = 1 })
	err := g.Run(t.Context())
	if !errors.Is(err, bus.ErrNoTopic) || !strings.Contains(err.Error(), bus.TopicWindows) || !strings.Contains(err.Error(), "ingest topics apply") {
		t.Errorf("error %v: want one that names %s and `ingest topics apply`", err, bus.TopicWindows)
	}
	epoch := g.spool.Epoch()
	g.Close()
	if _, err := bus.Apply(t.Context(), p.bus, 2, 1); err != nil {
		t.Fatal(err)
	}
	if g = p.replay(r); g.spool.Epoch() != epoch {
		t.Error("another epoch")
	}
	p.check(epochs{epoch: windows(0, 0, 300)})
}

// A damaged record of the replay costs a replay from the start, in its own epoch.
// No accepted window is lost, and the gateway reports the damage.
func TestDamagedReplayFile(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 300)
	want := epochs{}
	for i, text := range []string{"", "{", `{"recording": 3}`, "\x00\x00\x00\x00", `{"epoch": -1}`, "null", "{}"} {
		p.spool = filepath.Join(p.dir, fmt.Sprint("spool", i))
		p.log.Reset()
		ctx, stop := stopAt(t.Context(), 100)
		g := p.gateway(r, stop, alone)
		if err := g.Run(ctx); err != nil {
			t.Fatal(err)
		}
		kept, first := int(g.Stats().Windows), g.spool.Epoch()
		g.Close()
		if err := os.WriteFile(filepath.Join(p.spool, replayFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g = p.replay(r)
		want[first], want[g.spool.Epoch()] = windows(0, 0, kept), windows(0, 0, 300)
		said := strings.Contains(p.log.String(), filepath.Join(p.spool, replayFile)) && strings.Contains(p.log.String(), "begins at the start")
		if valid := text == "null" || text == "{}"; said == valid {
			t.Errorf("%q: said that it is damaged: %v\n%s", text, said, p.log.String())
		}
	}
	p.check(want) // 2 epochs of each
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	p := &plant{t: t, dir: t.TempDir()}
	wide, err := signal.NewLayout("wide", []signal.Channel{
		{Name: "ax", Kind: signal.Vibration, Rate: 20_000}, {Name: "ay", Kind: signal.Vibration, Rate: 20_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.layout = wide
	r := p.write("wide.csv", "ax,ay\n1,2\n")
	held, _, err := spool.Open(filepath.Join(p.dir, "held"), spool.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for name, tc := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"part of a sample":          {func(c *Config) { c.Window.Length = 90 * time.Microsecond }, []string{"90µs is 1.8 samples at 20000 Hz", "whole numbers"}},
		"longer than a message":     {func(c *Config) { c.Window.Length = time.Minute }, []string{"window of 1m0s", "9.", "8 MiB", "shorter"}},
		"no broker":                 {func(c *Config) { c.Bus.Brokers = nil }, []string{"no broker", "127.0.0.1:9092"}},
		"spool of another":          {func(c *Config) { c.SpoolDir = filepath.Join(p.dir, "held") }, []string{"held", "in use by another process", "folder of its own"}},
		"a file where the spool is": {func(c *Config) { c.SpoolDir = r.Path }, []string{"wide.csv"}},
	} {
		src, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Source: src, Window: window.DefaultSpec, SpoolDir: p.spool, Bus: bus.Config{Brokers: []string{"127.0.0.1:1"}}}
		tc.change(&cfg)
		g, err := New(cfg)
		if err == nil {
			g.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", name, err, want)
			}
		}
	}
}

// A simulated drill is a live source: its tools are named after the time it was
// started, and another start makes others.
func TestSimulated(t *testing.T) {
	at := time.Date(2026, 3, 1, 14, 5, 9, 500, time.UTC)
	src, err := Simulated(Simulation{Machine: lathe, Start: at, Seed: 1, Life: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	b, err := src.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b.Tool != "T140509-01" || b.Machine != lathe || !b.Time.Equal(at.Truncate(time.Second)) {
		t.Errorf("first block: tool %q of %q at %v", b.Tool, b.Machine, b.Time)
	}
}

// A window is found in the spool, with its trace and when it was acquired. It is not an error if
// the spool does not have it. A folder that is not there, or is not a machine's, is one: a person has named it.
func TestFindWindow(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	began := time.Now().Truncate(time.Second)
	g := p.replay(p.record("day.csv", 0, 20))
	dir, epoch := g.cfg.SpoolDir, g.spool.Epoch()
	found, err := spool.Find(dir, epoch, 7)
	if err != nil || found == nil {
		t.Fatal(found, err)
	}
	var m bus.Message
	if err := m.UnmarshalBinary(found.Payload); err != nil {
		t.Fatal(err)
	}
	trace := event.TraceParent(event.WindowType, event.WindowID(lathe, window.FormatEpoch(epoch), 7))
	if !found.Delivered || envelope.AcquiredAt(&m).Before(began) || found.Segment == "" || m.Time.IsZero() || string(m.Header(event.TraceHeader)) != trace {
		t.Errorf("%+v", found)
	}
	for _, tc := range []struct {
		dir        string
		epoch, seq uint64
	}{{dir, epoch, 20}, {dir, 0x0123456789abcdef, 7}} {
		if found, err := spool.Find(tc.dir, tc.epoch, tc.seq); found != nil || err != nil {
			t.Errorf("%+v: %+v, %v", tc, found, err)
		}
	}
	for _, other := range []string{dir + "-gone", filepath.Dir(dir)} {
		if _, err := spool.Find(other, epoch, 7); err == nil || !strings.Contains(err.Error(), "name the folder of the machine") {
			t.Errorf("%s: %v", other, err)
		}
	}
}
