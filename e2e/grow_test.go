//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// interrupt ends p as Ctrl-C would, and returns when it has ended.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
}

// The number of partitions grows while an alarm is open. The machine's windows go to another
// partition. A monitor whose topics never grew publishes the same results and alerts.
func TestGrown(t *testing.T) {
	day := strings.SplitAfter(recording(2), "\n")
	const worn = 230 // row of the first tool by which its alarm is open
	halves := [2]string{strings.Join(day[:1+worn], ""), day[0] + strings.Join(day[1+worn:], "")}
	grown := 3
	for bus.PartitionOf(machine, grown) == bus.PartitionOf(machine, 2) {
		grown++
	}
	judged := func(grow bool) (verdicts, alerts []string) {
		b, cfg := startServer(t, 2)
		dir := prepare(t, b.Addr(), 0)
		config := func(program string) string { return filepath.Join(dir, program+".yaml") }
		for half, text := range halves {
			write(t, dir, "day.csv", text)
			run(t, "ingest", "run", "--config", config("ingest"))
			results := follow(t, cfg, bus.TopicResults)
			p := start(t, "monitor", "run", "--config", config("monitor"))
			results.until(t, []int{worn, windows}[half], "results")
			p.interrupt(t)
			if half == 0 && grow {
				said := run(t, "ingest", "topics", "grow", "--config", config("ingest"), "--partitions", fmt.Sprint(grown))
				if !strings.Contains(said, "has no members: its monitors move the machines when they start") || !strings.Contains(said, fmt.Sprintf("raised   %s from 2 to %d", bus.TopicWindows, grown)) {
					t.Errorf("topics grow said\n%s", said)
				}
			}
		}
		return whatWasSaid(t, cfg, worn)
	}
	left, leftAlerts := judged(false)
	if len(leftAlerts) < 2 || !strings.HasPrefix(leftAlerts[0], "0/") || !strings.HasPrefix(leftAlerts[1], "1/") {
		t.Fatalf("no alarm is open at row %d: %q", worn, leftAlerts)
	}
	got, gotAlerts := judged(true)
	if !slices.Equal(got, left) || len(left) != windows {
		t.Errorf("%d results, of a monitor whose topics never grew %d; the first that differs: %s", len(got), len(left), firstOther(got, left))
	}
	if !slices.Equal(gotAlerts, leftAlerts) {
		t.Errorf("alerts %q, of a monitor whose topics never grew %q", gotAlerts, leftAlerts)
	}
}

// The topics grow from 4 to 64 partitions while two ingesters and two monitors run, and one of
// the monitors is killed meanwhile and comes back. All machines send the same recording: each
// of their windows has one result, in order, and those that moved to another partition
// have the results and alerts of those that did not.
func TestGrownAlive(t *testing.T) {
	const before, after, ingesters, machines = 4, 64, 2, 3
	b, cfg := startServer(t, before)
	dir := prepare(t, b.Addr(), 0)
	moved := make(map[string]bool)
	for i := range ingesters {
		text := fmt.Sprintf("kafka: {brokers: [%q]}\nmachines:\n", b.Addr())
		for k := 0; k < machines; k++ {
			name := fmt.Sprintf("acme/spore/bay2/line%d/drill%d", i, k)
			for n := 0; k == 0 && bus.PartitionOf(name, after) != bus.PartitionOf(name, before); n++ {
				name = fmt.Sprintf("acme/spore/bay2/line%d/stays%d", i, n)
			}
			moved[name] = bus.PartitionOf(name, after) != bus.PartitionOf(name, before)
			text += fmt.Sprintf("  - {machine: %s, layout: layout.yaml, spool: spool%d-%d, source: {kind: csv, file: day.csv, speed: 50}}\n", name, i, k)
		}
		write(t, dir, fmt.Sprintf("ingest%d.yaml", i), text)
	}
	monitor := func() *process { return start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml")) }
	mon := []*process{monitor(), monitor()}
	var ing []*process
	for i := range ingesters {
		ing = append(ing, start(t, "ingest", "run", "--config", filepath.Join(dir, fmt.Sprintf("ingest%d.yaml", i))))
	}
	judged := func(n int) {
		t.Helper()
		arrived := follow(t, cfg, bus.TopicResults) // of the partitions that are there now
		if !arrived.reaches(n) {
			t.Fatalf("%d results, still waiting for %d\n%s\n%s\n%s", arrived.distinct(), n, ing[0].stderr.String(), mon[0].stderr.String(), mon[1].stderr.String())
		}
	}
	judged(len(moved) * windows / 10)
	said := run(t, "ingest", "topics", "grow", "--config", filepath.Join(dir, "ingest0.yaml"), "--partitions", fmt.Sprint(after))
	if !strings.Contains(said, "has 2 members: they move the machines while they run") || !strings.Contains(said, fmt.Sprintf("raised   %s from %d to %d", bus.TopicWindows, before, after)) {
		t.Errorf("topics grow said\n%s", said)
	}
	mon[1].kill()
	mon[1] = monitor()

	judged(len(moved) * windows)
	results := resultsOf(t, cfg)
	alerts := alertsOf(t, cfg)
	same := ""
	for _, name := range slices.Sorted(maps.Keys(moved)) {
		if same == "" && !moved[name] {
			same = name
		}
	}
	want := story(results[same], alerts[same])
	for name, moved := range moved {
		if got := story(results[name], alerts[name]); !slices.Equal(got, want) {
			t.Errorf("%s, moved %v: %d lines, want %d as of %s; the first that differs: %s", name, moved, len(got), len(want), same, firstOther(got, want))
		}
	}
	if len(alerts[same]) == 0 || len(results[same]) != windows {
		t.Errorf("%d results and %d alerts of %s", len(results[same]), len(alerts[same]), same)
	}
	if letters := readAll(t, cfg, bus.TopicDead); len(letters) > 0 {
		t.Errorf("%d dead letters, the first: %s", len(letters), letters[0].Header("dead_reason"))
	}
	if listed := run(t, "monitor", "machines", "ls", "--config", filepath.Join(dir, "monitor.yaml")); strings.Count(listed, "acme/") != len(moved) {
		t.Errorf("machines ls:\n%s", listed)
	}
}

// readAll returns all messages of a topic.
func readAll(t *testing.T, cfg bus.Config, topic string) (msgs []bus.Message) {
	t.Helper()
	if err := bus.ReadTopic(t.Context(), cfg, topic, bus.FirstOffset, false, func(m bus.Message) error {
		msgs = append(msgs, m)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return msgs
}

// resultsOf returns the results by machine, in the order of their windows. It fails if a window
// has two.
func resultsOf(t *testing.T, cfg bus.Config) map[string][]event.Result {
	t.Helper()
	of := make(map[string][]event.Result)
	seen := make(map[string]bool)
	for _, m := range readAll(t, cfg, bus.TopicResults) {
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil {
			t.Fatal(err)
		}
		if seen[r.ID] {
			t.Fatalf("result %s is there twice", r.ID)
		}
		seen[r.ID] = true
		of[r.Machine] = append(of[r.Machine], r)
	}
	for _, rs := range of {
		slices.SortFunc(rs, func(a, b event.Result) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return of
}

// alertsOf returns the alerts by machine, in the order of their windows. It fails if one is
// there twice.
func alertsOf(t *testing.T, cfg bus.Config) map[string][]event.Alert {
	t.Helper()
	of := make(map[string][]event.Alert)
	seen := make(map[string]bool)
	for _, m := range readAll(t, cfg, bus.TopicAlerts) {
		if string(m.Header("ce_type")) != event.AlertType {
			continue
		}
		var a event.Alert
		if err := json.Unmarshal(m.Value, &a); err != nil {
			t.Fatal(err)
		}
		if seen[a.ID] {
			t.Errorf("alert %s is there twice", a.ID)
		}
		seen[a.ID] = true
		of[a.Machine] = append(of[a.Machine], a)
	}
	for _, as := range of {
		slices.SortFunc(as, func(a, b event.Alert) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.State, b.State)) })
	}
	return of
}

// story returns results and alerts without the fields that name machine, epoch and time.
func story(results []event.Result, alerts []event.Alert) (lines []string) {
	for _, r := range results {
		lines = append(lines, fmt.Sprintf("%d %s %s %.9f late %v %s", r.Seq, r.Tool, r.Verdict, r.Score, r.Late, r.Alarm))
	}
	for _, a := range alerts {
		lines = append(lines, fmt.Sprintf("%d %s %s %s %.9f %s", a.Seq, a.Tool, a.State, a.Alarm, a.Score, a.Reason))
	}
	return lines
}

// whatWasSaid returns the verdicts and alerts of two recordings, in order, without the fields
// that differ from run to run. The first recording has so many windows.
func whatWasSaid(t *testing.T, cfg bus.Config, first int) (verdicts, alerts []string) {
	t.Helper()
	results := map[string]event.Result{}
	inEpoch := map[string]int{}
	err := bus.ReadTopic(t.Context(), cfg, bus.TopicResults, bus.FirstOffset, false, func(m bus.Message) error {
		var r event.Result
		err := json.Unmarshal(m.Value, &r)
		if _, repeated := results[r.ID]; !repeated {
			inEpoch[r.Epoch]++
		}
		results[r.ID] = r
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	window := func(epoch string, seq uint64) string {
		recording := 1
		if inEpoch[epoch] == first {
			recording = 0
		}
		return fmt.Sprintf("%d/%05d", recording, seq)
	}
	for _, r := range results {
		verdicts = append(verdicts, fmt.Sprintf("%s %s %.9f", window(r.Epoch, r.Seq), r.Verdict, r.Score))
	}
	r := &reader{}
	if err := bus.ReadTopic(t.Context(), cfg, bus.TopicAlerts, bus.FirstOffset, false, func(m bus.Message) error {
		r.msgs = append(r.msgs, m)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, a := range checkAlerts(t, r) {
		alerts = append(alerts, window(a.Epoch, a.Seq)+" "+string(a.State))
	}
	slices.Sort(verdicts)
	slices.Sort(alerts)
	return verdicts, alerts
}

// firstOther returns the first lines in which two lists differ.
func firstOther(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return got[i] + ", want " + want[i]
		}
	}
	return "none"
}
