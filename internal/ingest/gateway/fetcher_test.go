package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/fetch"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/schemas"
)

// day is when recordings of these tests begin.
var day = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)

// fill puts so many windows of one second, from day on, into the spool of a gateway in mode
// edge, and delivers their features. It returns their epoch.
func (p *plant) fill(n int) uint64 {
	p.t.Helper()
	r := p.record("day.csv", 0, n)
	if err := r.Start.UnmarshalText([]byte(day.Format(time.RFC3339))); err != nil {
		p.t.Fatal(err)
	}
	g := p.gateway(r, edge, func(c *Config) { c.SpoolBytes, c.SyncEvery = int64(4000*n), 100 }) // eight segments
	g.runAndClose()
	return g.spool.Epoch()
}

// fetcher runs a fetcher on the plant's spool until the end of the test.
func (p *plant) fetcher(change ...func(*FetcherConfig)) *Fetcher {
	p.t.Helper()
	cfg := FetcherConfig{Machine: lathe, SpoolDir: p.spool, Length: time.Second, Bus: p.bus, Log: zerolog.New(&p.log)}
	for _, c := range change {
		c(&cfg)
	}
	f, err := NewFetcher(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(done)
	}()
	p.t.Cleanup(func() { stop(); <-done })
	return f
}

// ask returns a command that asks for windows.
func ask(id string, w event.Wanted) event.Command {
	now := time.Now()
	return event.Command{ID: id, Machine: lathe, Action: event.Fetch, By: "test", Issued: now, Until: now.Add(time.Minute), Wanted: &w}
}

// answers waits for the answers to commands, and returns them and the seqs of the windows
// that were sent for each.
func (p *plant) answers(n int) (map[string]event.Fetched, map[string][]uint64) {
	p.t.Helper()
	got := map[string]event.Fetched{}
	ctx, stop := context.WithTimeout(p.t.Context(), patience)
	defer stop()
	enough := errors.New("enough")
	err := bus.ReadTopic(ctx, p.bus, bus.TopicFeatures, bus.FirstOffset, true, func(m bus.Message) error {
		if !fetch.IsAnswer(&m) {
			return nil
		}
		var f event.Fetched
		if err := json.Unmarshal(m.Value, &f); err != nil {
			return err
		}
		if err := schemas.Validate(schemas.Fetched, m.Value); err != nil {
			p.t.Error(err)
		}
		if got[f.Command] = f; len(got) == n {
			return enough
		}
		return nil
	})
	if err != enough {
		p.t.Fatalf("%d of %d answers: %v\n%s", len(got), n, err, p.log.String())
	}
	seqs := map[string][]uint64{}
	for _, m := range p.messages(bus.TopicWindows) {
		seq, err := strconv.ParseUint(string(m.Header("seq")), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		id := string(m.Header(envelope.Copied))
		seqs[id] = append(seqs[id], seq)
	}
	return got, seqs
}

// upTo returns the seqs from first to last.
func upTo(first, last uint64) (seqs []uint64) {
	for s := first; s <= last; s++ {
		seqs = append(seqs, s)
	}
	return seqs
}

// A fetcher sends what is asked for, in order, and says what is not there.
func TestFetch(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	epoch := p.fill(300)
	hex := strconv.FormatUint(1<<63|epoch, 16) // 16 digits
	if epoch < 1<<63 {
		hex = strings.Repeat("0", 16-len(strconv.FormatUint(epoch, 16))) + strconv.FormatUint(epoch, 16)
	}
	at := func(second int) time.Time { return day.Add(time.Duration(second) * time.Second) }
	f := p.fetcher()
	tests := map[string]struct {
		want event.Wanted
		seqs []uint64
		more bool
		gone bool
	}{
		"a range of time":            {event.Wanted{From: at(100), To: at(130), Windows: 1000}, upTo(100, 129), false, false},
		"windows that overlap":       {event.Wanted{From: at(100).Add(-1), To: at(101).Add(1), Windows: 1000}, upTo(99, 101), false, false},
		"seqs":                       {event.Wanted{Epoch: hex, First: 7, Last: 260, Windows: 1000}, upTo(7, 260), false, false},
		"the time of one epoch":      {event.Wanted{Epoch: hex, From: at(3), To: at(5), Windows: 9}, upTo(3, 4), false, false},
		"a bound":                    {event.Wanted{From: at(50), To: at(200), Windows: 20}, upTo(50, 69), true, false},
		"a bound that is just right": {event.Wanted{From: at(50), To: at(70), Windows: 20}, upTo(50, 69), false, false},
		"a year":                     {event.Wanted{From: at(-86400 * 300), To: at(86400 * 65), Windows: 100_000}, upTo(0, 299), false, true},
		"a year, bounded":            {event.Wanted{From: at(-86400 * 300), To: at(86400 * 65), Windows: 3}, upTo(0, 2), true, true},
		"time of which nothing is":   {event.Wanted{From: at(-100), To: at(-50), Windows: 10}, nil, false, true},
		"time to come":               {event.Wanted{From: at(900), To: at(950), Windows: 10}, nil, false, false},
		"another epoch":              {event.Wanted{Epoch: "00000000cafe0001", Last: 10, Windows: 10}, nil, false, true},
	}
	ids := map[string]string{}
	for name, tc := range tests {
		ids[name] = "c" + strconv.Itoa(len(ids))
		f.Take(ask(ids[name], tc.want))
	}
	got, seqs := p.answers(len(tests))
	for name, tc := range tests {
		a := got[ids[name]]
		if s := seqs[ids[name]]; !slices.Equal(s, tc.seqs) || a.Windows != len(s) || a.More != tc.more || a.Gone != tc.gone || !a.Oldest.Equal(day) || a.Machine != lathe {
			t.Errorf("%s: windows %v and %+v, want %v", name, s, a, tc.seqs)
		} else if len(s) > 0 && (!a.From.Equal(at(int(s[0]))) || !a.To.Equal(at(int(s[len(s)-1])+1))) {
			t.Errorf("%s: answer of %v to %v", name, a.From, a.To)
		}
	}
	want := uint64(0)
	for _, s := range seqs {
		want += uint64(len(s))
	}
	if f.Sent() != want {
		t.Errorf("%d windows counted, %d came", f.Sent(), want)
	}
}

// Each command is carried out once: not when it is read again, also after a restart, and not
// when it has expired.
func TestFetchOnce(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fill(30)
	old := ask("old", event.Wanted{From: day, To: day.Add(time.Minute), Windows: 100})
	old.Until = time.Now().Add(-time.Second)
	c := ask("one", event.Wanted{From: day, To: day.Add(10 * time.Second), Windows: 100})
	for round := range 2 {
		f := p.fetcher()
		f.Take(old)
		f.Take(c)
		f.Take(c)
		f.Take(ask("round"+strconv.Itoa(round), event.Wanted{From: day, To: day.Add(time.Second), Windows: 1}))
		got, seqs := p.answers(2 + round)
		if _, answered := got["old"]; answered || len(seqs["old"]) > 0 || !slices.Equal(seqs["one"], upTo(0, 9)) {
			t.Errorf("round %d: answers %v, windows %v", round, got, seqs)
		}
	}
}

// A fetcher that is stopped goes on behind the windows that it has sent.
func TestFetchGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fill(1200)                             // 480 are a message
	for _, segment := range []int{1, 2, 4} { // before, in and behind the one with which the first message ends
		p.damage(segment)
	}
	c := ask("long", event.Wanted{From: day, To: day.Add(time.Hour), Windows: 100_000})
	var f *Fetcher
	f, err := NewFetcher(FetcherConfig{
		Machine: lathe, SpoolDir: p.spool, Length: time.Second, Bus: p.bus, Log: zerolog.New(&p.log),
		Behind: func() bool { return f.Sent() > 0 }, // it waits behind the first message until it is stopped
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Take(c)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(stopped)
	}()
	for f.Sent() == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-stopped
	before := f.Sent()
	p.fetcher().Take(c)
	got, seqs := p.answers(1)
	if a := got["long"]; a.Windows != 1197 || a.Lost != 3 || !a.From.Equal(day.Add(time.Second)) || before == 1197 ||
		!slices.IsSorted(seqs["long"]) || len(slices.Compact(seqs["long"])) != 1197 {
		t.Errorf("%d windows before the restart, then %+v; %d came", before, a, len(seqs["long"]))
	}
}

// Windows wait until the gateway has delivered its own, and then come all the same.
func TestFetchLetsTheGatewayGoFirst(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fill(30)
	var behind atomic.Bool
	var asked atomic.Int64
	behind.Store(true)
	f := p.fetcher(func(c *FetcherConfig) {
		c.Behind = func() bool {
			asked.Add(1)
			return behind.Load()
		}
	})
	f.Take(ask("c", event.Wanted{From: day, To: day.Add(time.Minute), Windows: 100}))
	for asked.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	if n := f.Sent(); n > 0 {
		t.Errorf("%d windows were sent first", n)
	}
	behind.Store(false)
	if got, _ := p.answers(1); got["c"].Windows != 30 {
		t.Errorf("%+v", got["c"])
	}
}

// The time that a command names bounds it: what was sent by then is answered.
func TestFetchDeadline(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fill(30)
	f := p.fetcher(func(c *FetcherConfig) { c.Behind = func() bool { return true } })
	c := ask("c", event.Wanted{From: day, To: day.Add(time.Minute), Windows: 100})
	c.Until = time.Now().Add(300 * time.Millisecond)
	f.Take(c)
	if got, seqs := p.answers(1); got["c"].Windows != 0 || !got["c"].More || len(seqs["c"]) > 0 {
		t.Errorf("%+v", got["c"])
	}
}

// damage damages the header of the first record of a segment, and returns its seq.
func (p *plant) damage(segment int) uint64 {
	p.t.Helper()
	l, err := spool.List(spool.Dir(p.spool))
	if err != nil || len(l.Segments) < 6 {
		p.t.Fatalf("%d segments, %v", len(l.Segments), err)
	}
	path := filepath.Join(p.spool, l.Segments[segment].Name)
	b, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	b[2] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		p.t.Fatal(err)
	}
	return l.Segments[segment].First
}

// Records that the disk has lost are counted, and the others come.
func TestFetchFromADamagedSpool(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fill(200)
	first := p.damage(1)
	p.fetcher().Take(ask("c", event.Wanted{From: day, To: day.Add(time.Hour), Windows: 1000}))
	got, seqs := p.answers(1)
	if got["c"].Windows != 199 || got["c"].Lost != 1 || slices.Contains(seqs["c"], first) {
		t.Errorf("%+v, %d windows", got["c"], len(seqs["c"]))
	}
}

// What a ring has given up is gone, and the answer says from when on it has windows.
func TestFetchBehindTheRing(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	r := p.record("day.csv", 0, 600)
	if err := r.Start.UnmarshalText([]byte(day.Format(time.RFC3339))); err != nil {
		t.Fatal(err)
	}
	g := p.gateway(r, func(c *Config) { c.Edge = &Edge{Keep: time.Hour, KeepBytes: 300_000} })
	g.runAndClose()
	p.fetcher().Take(ask("c", event.Wanted{From: day, To: day.Add(time.Hour), Windows: 1000}))
	got, seqs := p.answers(1)
	a := got["c"]
	if n := len(seqs["c"]); n < 50 || n > 300 || !slices.Equal(seqs["c"], upTo(uint64(600-n), 599)) || !a.Gone || !a.Oldest.Equal(day.Add(time.Duration(600-n)*time.Second)) {
		t.Errorf("%d windows, %+v", n, a)
	}
	if !strings.Contains(a.Text, "earlier windows are not kept any more") {
		t.Errorf("answer %q", a.Text)
	}
}

// slowDisk takes files only when a test lets it.
type slowDisk struct {
	spool.Disk
	asked, answer chan struct{}
}

func (d slowDisk) Create(name string) (spool.File, error) {
	d.asked <- struct{}{}
	<-d.answer
	return d.Disk.Create(name)
}

// A disk that hangs keeps no one who hands commands over: other machines wait for theirs.
func TestTakeDoesNotWaitForTheDisk(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fill(5)
	disk := slowDisk{spool.Dir(p.spool), make(chan struct{}, 10), make(chan struct{})}
	f := p.fetcher(func(c *FetcherConfig) { c.Disk = disk })
	f.Take(ask("a", event.Wanted{From: day, To: day.Add(time.Hour), Windows: 1000}))
	<-disk.asked
	taken := make(chan struct{})
	go func() {
		f.Take(ask("b", event.Wanted{From: day, To: day.Add(time.Second), Windows: 1000}))
		close(taken)
	}()
	select {
	case <-taken:
	case <-time.After(patience):
		t.Error("a command is not taken while the disk hangs")
	}
	close(disk.answer)
	if got, _ := p.answers(2); got["a"].Windows != 5 || got["b"].Windows != 1 {
		t.Errorf("%+v", got)
	}
}

// A damaged file of what was answered costs windows that come twice, not the fetcher.
func TestFetchStateDamaged(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fill(5)
	if err := os.WriteFile(filepath.Join(p.spool, fetchFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.fetcher().Take(ask("c", event.Wanted{From: day, To: day.Add(time.Hour), Windows: 1000}))
	if got, _ := p.answers(1); got["c"].Windows != 5 || !strings.Contains(p.log.String(), "the file is damaged") {
		t.Errorf("%+v\n%s", got["c"], p.log.String())
	}
}
