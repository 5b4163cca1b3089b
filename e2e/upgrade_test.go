//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/schemas"
)

// fleet is a set of machines that replay the plant's recording, with the messages about them.
type fleet struct {
	*plant
	old      string // folder of the older release's programs
	machines []string

	mu      sync.Mutex
	results map[string]map[string]string // what was decided, by machine and seq, then by id
	order   map[string][]event.Result    // the first of each id, by machine
	alerts  map[string]string            // by machine, seq and state, the id
	twice   []string                     // ids of results or alerts of which two messages differ
	wrong   []string                     // messages that are not valid, and alerts under two ids
}

// newFleet starts a broker and writes the configurations of so many machines. The older release
// has made the model.
func newFleet(t *testing.T, machines, perTool int, speed float64) *fleet {
	t.Helper()
	old := oldPrograms(t)
	f := &fleet{old: old, plant: newPlant(t, 4, tools, perTool, speed), results: map[string]map[string]string{}, order: map[string][]event.Result{}, alerts: map[string]string{}}
	// The older release counts no unknown window for an alarm, so none is unknown here.
	write(t, f.dir, "train.yaml", "layout: layout.yaml\nnetwork: {hidden: [6], pretrain: {epochs: 5}, fine_tune: {epochs: 30}}\nunknown: {error_rate: 0, novelty: 0}\nevaluate: {by_tool: \"off\", random_split: false}\n")
	startFrom(t, old, "trainer", "fit", "--quiet", "--config", f.file("train.yaml"), "--data", f.file("history.csv"), "--model", f.file("m.flank")).wait(t)
	for i := range machines {
		name := fmt.Sprintf("acme/spore/bay2/line1/lathe%d", i)
		f.machines = append(f.machines, name)
		write(t, f.dir, fmt.Sprintf("ingest%d.yaml", i), fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nlayout: layout.yaml\nspool: spool%d\nsource: {kind: csv, file: day.csv, speed: %v}\n", name, f.b.Addr(), i, speed))
	}
	bodies := map[string]string{}
	note := func(m bus.Message, schema string, into any) (id string, first bool) {
		id = string(m.Header("ce_id"))
		if before, again := bodies[id]; again {
			if before != string(m.Value) {
				f.twice = append(f.twice, id)
			}
			return id, false
		}
		bodies[id] = string(m.Value)
		if err := schemas.Validate(schema, m.Value); err != nil || json.Unmarshal(m.Value, into) != nil {
			f.wrong = append(f.wrong, fmt.Sprintf("%s: %v", id, err))
			return id, false
		}
		return id, true
	}
	f.see(bus.TopicResults, func(m bus.Message) {
		var r event.Result
		if id, first := note(m, schemas.Result, &r); first {
			at := fmt.Sprintf("%s/%d", r.Machine, r.Seq)
			if f.results[at] == nil {
				f.results[at] = map[string]string{}
			}
			f.results[at][id] = fmt.Sprintf("%s %v %s %d", r.Verdict, r.Score, r.Alarm, r.ReferenceLen)
			f.order[r.Machine] = append(f.order[r.Machine], r)
		}
	})
	f.see(bus.TopicAlerts, func(m bus.Message) {
		var a event.Alert
		if string(m.Header("ce_type")) != event.AlertType {
			return
		}
		if id, first := note(m, schemas.Alert, &a); first {
			at := fmt.Sprintf("%s/%d/%s", a.Machine, a.Seq, a.State)
			if other, there := f.alerts[at]; there {
				f.wrong = append(f.wrong, fmt.Sprintf("alert %s and %s", other, id))
			}
			f.alerts[at] = id
		}
	})
	return f
}

// see calls fn for every message of a topic, with the fleet locked.
func (f *fleet) see(topic string, fn func(bus.Message)) {
	(&latencySide{}).follow(f.t, f.cfg, topic, func(m bus.Message) {
		f.mu.Lock()
		defer f.mu.Unlock()
		fn(m)
	})
}

func (f *fleet) startMonitor(programs string) *process {
	f.t.Helper()
	return startFrom(f.t, programs, "monitor", "run", "--wait", "60s", "--config", f.file("monitor.yaml"))
}

func (f *fleet) startIngester(programs string, i int) *process {
	f.t.Helper()
	return startFrom(f.t, programs, "ingest", "run", "--config", f.file(fmt.Sprintf("ingest%d.yaml", i)))
}

// until waits until so many windows have results. It fails the test if none has come for long.
func (f *fleet) until(n int) {
	f.t.Helper()
	last, since := -1, time.Now()
	for ; ; time.Sleep(5 * time.Millisecond) {
		f.mu.Lock()
		have := len(f.results)
		f.mu.Unlock()
		if have >= n {
			return
		}
		if have != last {
			last, since = have, time.Now()
		} else if time.Since(since) > patience {
			f.t.Fatalf("%d windows have results, still waiting for %d", have, n)
		}
	}
}

// letters returns how many messages were set aside.
func (f *fleet) letters() (n int) {
	f.t.Helper()
	if err := readTopic(f.t.Context(), f.cfg, bus.TopicDead, bus.FirstOffset, false, func(bus.Message) error { n++; return nil }); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// Monitors and ingesters of the older release are replaced one after the other while windows
// flow, and share the group meanwhile. Every window has one result. A monitor that runs alone publishes the same results and alerts. No record is set
// aside.
func TestUpgradeRolling(t *testing.T) {
	t.Parallel()
	const machines, perTool = 4, 60
	f := newFleet(t, machines, perTool, 12)
	all := machines * len(f.rows)
	calm := f.calm()
	var ingesters []*process
	for i := range machines {
		ingesters = append(ingesters, f.startIngester(f.old, i))
	}
	monitors := []*process{f.startMonitor(f.old), f.startMonitor(f.old), f.startMonitor(f.old)}
	f.until(all / 10)
	monitors[0].interrupt(t)
	monitors[0] = f.startMonitor(bin)
	f.until(all * 2 / 10)
	for i := range ingesters {
		ingesters[i].interrupt(t)
		ingesters[i] = f.startIngester(bin, i)
	}
	f.until(all * 3 / 10)
	monitors[1].interrupt(t)
	monitors[1] = f.startMonitor(bin)
	f.until(all / 2)
	monitors[2].kill() // as by a power cut
	monitors[2] = f.startMonitor(bin)
	for _, p := range ingesters {
		p.wait(t)
	}
	f.until(all)
	want := machines * len(calm.raised)
	alerts := func() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.alerts) }
	for began := time.Now(); alerts() < want && time.Since(began) < patience; time.Sleep(5 * time.Millisecond) { // they come by another reader
	}
	time.Sleep(300 * time.Millisecond) // for repeats
	if n := f.letters(); n > 0 {
		t.Errorf("%d messages were set aside", n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range f.machines {
		for seq, want := range calm.results {
			got := f.results[fmt.Sprintf("%s/%d", name, seq)]
			if len(got) != 1 || slices.Collect(maps.Values(got))[0] != want {
				t.Errorf("%s window %d: %v, want once %s", name, seq, got, want)
			}
		}
		for at := range calm.raised {
			if _, there := f.alerts[name+"/"+at]; !there {
				t.Errorf("%s: alert %s is missing", name, at)
			}
		}
	}
	if len(f.alerts) != want || want == 0 {
		t.Errorf("%d alerts, want %d", len(f.alerts), want)
	}
	if len(f.results) != all || len(f.twice)+len(f.wrong) > 0 {
		t.Errorf("%d windows have results, want %d; repeats that differ %q; %q", len(f.results), all, f.twice, f.wrong)
	}
}

// This release's standalone goes on with the data folder of the older release's standalone.
func TestUpgradeStandalone(t *testing.T) {
	t.Parallel()
	old := oldPrograms(t)
	dir := prepare(t, "127.0.0.1:1", 0)
	startFrom(t, old, "trainer", "fit", "--quiet", "--config", filepath.Join(dir, "train.yaml"), "--data", filepath.Join(dir, "history.csv"), "--model", filepath.Join(dir, "m.flank")).wait(t)
	out := filepath.Join(dir, "out.jsonl")
	args := []string{
		"--once", "--replay", filepath.Join(dir, "day.csv"), "--layout", filepath.Join(dir, "layout.yaml"), "--model", filepath.Join(dir, "m.flank"),
		"--results", out, "--data-dir", filepath.Join(dir, "data"), "--page", "off", "--broker", "127.0.0.1:0", "--machine", machine,
	}
	p := startFrom(t, old, "standalone", append(args, "--speed", "300")...)
	judged := func() int {
		text, _ := os.ReadFile(out) // missing at first
		return strings.Count(string(text), "\n")
	}
	for began := time.Now(); judged() < windows/4; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%d results\n%s", judged(), tail(p.stderr.String()))
		}
	}
	p.interrupt(t) // killed while its broker commits, the older release may lose results
	if n := judged(); n == windows {
		t.Fatal("the older release has judged everything before it was stopped")
	}
	stdout := run(t, "standalone", args...)
	var s struct{ Windows, Results, Lost, Duplicated, Repeats, Alerts int }
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	t.Logf("%+v", s)
	if s.Windows != windows || s.Results != windows || s.Lost != 0 || s.Duplicated != 0 || s.Alerts != 4 {
		t.Errorf("%+v, want %d windows, each with one result, and 4 alerts", s, windows)
	}
}
