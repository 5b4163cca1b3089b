//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

var (
	pageCost     = flag.Bool("page.cost", false, "run TestPageCost, some six minutes")
	pageMachines = flag.Int("page.machines", 500, "machines of TestPageCost")
	pageSeconds  = flag.Int("page.seconds", 60, "seconds that TestPageCost measures")
)

const costViewers = 10

// TestPageCost measures what a page adds to the processor time of a monitor that judges the
// features of many simulated drills, a window a second each, while ten people look: eight at the
// fleet, two at a machine, each by a connection of their own. It measures the same monitor without
// a page right before, and what a window takes if the monitor extracts the features, too.
func TestPageCost(t *testing.T) {
	if !*pageCost {
		t.Skip("-page.cost is not set: use make page-cost")
	}
	data := filepath.Join(t.TempDir(), "data")
	run(t, "standalone", "--once", "--speed", "0", "--data-dir", data, "--page", "off", "--broker", "127.0.0.1:0")
	path := filepath.Join(data, "model.flank")
	m, err := model.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	life := drilledFeatures(t, m)
	before := load()
	extracting := extractingCost(t, path)
	plain := judgingCost(t, m, path, life, false)
	paged := judgingCost(t, m, path, life, true)
	after := load()
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", 1e3*d.Seconds()) }
	added := paged.window - plain.window
	var b strings.Builder
	fmt.Fprintf(&b, "| of a monitor, for each window | processor time | windows a second |\n|---|---:|---:|\n")
	fmt.Fprintf(&b, "| judging features, without a page | %s | %.0f |\n", ms(plain.window), plain.rate)
	fmt.Fprintf(&b, "| the same with a page, its history and %d viewers | %s | %.0f |\n", costViewers, ms(paged.window), paged.rate)
	fmt.Fprintf(&b, "| extracting and judging, one machine as fast as windows come, without a page | %s | |\n", ms(extracting))
	fmt.Fprintf(&b, "| what the page adds | %s | |\n", ms(added))
	t.Logf("\n%s Load %.1f before, %.1f after. %d machines, %d s.\n\n%s\nThe page adds %.0f %% to judging features, and %.1f %% to extracting and judging. A viewer of the fleet got %.1f kB/s.\n", machineLine(), before, after,
		*pageMachines, *pageSeconds, &b, 100*float64(added)/float64(plain.window), 100*float64(added)/float64(extracting), paged.viewed/1000)
}

// extractingCost returns the processor time of a monitor for a window that it extracts the features of, while windows come as fast as they can be made.
func extractingCost(t *testing.T, path string) time.Duration {
	t.Helper()
	b, cfg := startServer(t, 4)
	defer b.Kill()
	dir, windows := t.TempDir(), 0
	p := start(t, "ingest", "run", "--config", write(t, dir, "ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nspool: spool\nsource: {kind: simulate, speed: 0, tools: 1, tool_life: %v}\n", machine, b.Addr(), processorLife)))
	p.wait(t)
	if _, err := fmt.Sscanf(p.stdout.String(), "%d windows cut", &windows); err != nil {
		t.Fatalf("%v\n%s", err, &p.stdout)
	}
	results := follow(t, cfg, bus.TopicResults)
	m := start(t, "monitor", "run", "--config", write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: %s\npage: \"\"\n", b.Addr(), path)))
	results.until(t, windows, "results")
	defer m.kill()
	return m.cpu(t) / time.Duration(windows)
}

// drilledFeatures returns the features of the windows of a simulated drill.
func drilledFeatures(t *testing.T, m *model.Model) (life []*window.Features) {
	t.Helper()
	form, err := m.Form()
	if err != nil {
		t.Fatal(err)
	}
	b, cfg := startServer(t, 1)
	defer b.Kill()
	dir := t.TempDir()
	run(t, "ingest", "run", "--config", write(t, dir, "ingest.yaml", fmt.Sprintf("machine: %s\nmode: edge\nkafka: {brokers: [%q]}\nspool: spool\nsource: {kind: simulate, speed: 0, tools: 1, tool_life: %v}\n", machine, b.Addr(), processorLife)))
	err = bus.ReadRange(t.Context(), cfg, bus.TopicFeatures, 0, bus.Range{}, func(msg bus.Message) error {
		e, err := envelope.Of(&msg)
		if err != nil {
			return err
		}
		f := new(window.Features)
		if err := form.Open(e, f); err != nil {
			return err
		}
		life = append(life, f)
		return nil
	})
	if err != nil || len(life) < 60 {
		t.Fatalf("%d windows, %v", len(life), err)
	}
	return life
}

type cost struct {
	window time.Duration // processor time for each
	rate   float64       // windows judged a second
	viewed float64       // bytes a second of a viewer of the fleet
}

// judgingCost lets a monitor judge the features of all machines at their speed.
func judgingCost(t *testing.T, m *model.Model, path string, life []*window.Features, page bool) (c cost) {
	t.Helper()
	b, cfg := startServer(t, 8)
	defer b.Kill()
	dir, address := t.TempDir(), ""
	text := fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: %s\n", b.Addr(), path)
	if page {
		address = freeAddr(t)
		text += fmt.Sprintf("page: %q\nhistory: {dir: history}\n", address)
	} else {
		text += "page: \"\"\n"
	}
	feed := newFeed(t, m, cfg, life)
	results := follow(t, cfg, bus.TopicResults)
	p := start(t, "monitor", "run", "--config", write(t, dir, "monitor.yaml", text))
	const warm = 15 // seconds: references are made, transactions are at their size
	feed.second(t, 0)
	results.until(t, *pageMachines, "first results")
	viewed, stop := new(atomic.Int64), func() {}
	if page {
		stop = watchPages(t, address, feed.names, viewed)
	}
	began := time.Now()
	feed.until(t, 1, warm, began)
	results.until(t, warm*(*pageMachines), "results while warming up")
	viewed.Store(0)
	from, at, judged := p.cpu(t), time.Now(), results.distinct()
	feed.until(t, warm, warm+*pageSeconds, at.Add(-warm*time.Second))
	results.until(t, (warm+*pageSeconds)*(*pageMachines), "results")
	used, took, n := p.cpu(t)-from, time.Since(at), results.distinct()-judged
	stop()
	p.kill()
	return cost{used / time.Duration(n), float64(n) / took.Seconds(), float64(viewed.Load()) / took.Seconds()}
}

// fleetFeed sends features of many machines.
type fleetFeed struct {
	form  *window.Form
	out   *bus.Producer
	names []string
	life  []*window.Features
	start time.Time
}

func newFeed(t *testing.T, m *model.Model, cfg bus.Config, life []*window.Features) *fleetFeed {
	t.Helper()
	form, err := m.Form()
	if err != nil {
		t.Fatal(err)
	}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	f := &fleetFeed{form: form, out: out, life: life, start: time.Now()}
	for i := range *pageMachines {
		f.names = append(f.names, fmt.Sprintf("acme/spore/bay%d/line%d/drill%03d", i%4, i%16, i))
	}
	return f
}

// second sends a window of each machine. Machines are at different points of their tools' lives.
func (f *fleetFeed) second(t *testing.T, n int) {
	t.Helper()
	msgs := make([]bus.Message, 0, len(f.names))
	for i, name := range f.names {
		x := *f.life[(n+7*i)%len(f.life)]
		x.Machine, x.Epoch, x.Seq, x.Start = name, 1, uint64(n), f.start.Add(time.Duration(n)*time.Second)
		e, err := f.form.Seal(&x)
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, envelope.Features(e, envelope.Gateway, 0))
	}
	if err := f.out.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
}

// until sends the windows of seconds, each at its time.
func (f *fleetFeed) until(t *testing.T, from, to int, began time.Time) {
	t.Helper()
	for n := from; n < to; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second)))
		f.second(t, n)
	}
}

// watchPages opens the streams of ten pages and reads them until stop is called. It counts the
// bytes of the first one, as they come over the wire.
func watchPages(t *testing.T, address string, names []string, viewed *atomic.Int64) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range costViewers {
		query := "page=fleet"
		if i >= costViewers-2 {
			query = "page=machine&machine=" + url.QueryEscape(names[i])
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/events?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: new(http.Transport)}).Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", res, err)
		}
		wg.Go(func() {
			defer res.Body.Close()
			var to io.Writer = io.Discard
			if i == 0 {
				to = byteCounter{viewed}
			}
			_, _ = io.Copy(to, res.Body)
		})
	}
	return func() { cancel(); wg.Wait() }
}

type byteCounter struct{ *atomic.Int64 }

func (c byteCounter) Write(b []byte) (int, error) {
	c.Add(int64(len(b)))
	return len(b), nil
}
