//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// The topics grow as docs/how-to/kafka-partitions.md says, while an alarm is open. The ingester only spools
// meanwhile, and grow is refused first, and killed in the middle, after which no monitor starts. The machine's
// windows go to another partition then. A monitor whose topics never grew publishes the same results and alerts.
func TestGrown(t *testing.T) {
	day := strings.SplitAfter(recording(2), "\n")
	const worn, more = 230, 300 // rows: by the first the alarm of the first tool is open
	parts := []string{strings.Join(day[:1+worn], ""), day[0] + strings.Join(day[1+worn:1+more], ""), day[0] + strings.Join(day[1+more:], "")}
	grown := 3
	for bus.PartitionOf(machine, grown) == bus.PartitionOf(machine, 2) {
		grown++
	}
	judged := func(grow bool) (verdicts, alerts []string) {
		b, cfg := startServer(t, 2)
		dir := prepare(t, b.Addr(), 0)
		config := func(program string) string { return filepath.Join(dir, program+".yaml") }
		write(t, dir, "only.yaml", string(read(t, config("ingest")))+"spool_only: true\n")
		ingest := func(part int, with string) string {
			write(t, dir, "day.csv", parts[part])
			return run(t, "ingest", "run", "--config", config(with))
		}
		monitor := func(until int) (results *reader, stop func()) {
			results = follow(t, cfg, bus.TopicResults)
			p := start(t, "monitor", "run", "--config", config("monitor"))
			results.until(t, until, "results")
			return results, func() { p.interrupt(t) }
		}
		ingest(0, "ingest")
		_, stop := monitor(worn)
		if !grow {
			ingest(1, "ingest")
			ingest(2, "ingest")
			results := follow(t, cfg, bus.TopicResults)
			results.until(t, windows, "results")
			stop()
			return whatWasSaid(t, cfg, []int{worn, more - worn})
		}
		growTo := func(n int) *process {
			return start(t, "ingest", "topics", "grow", "--config", config("ingest"), "--partitions", fmt.Sprint(n))
		}
		refused := func(want string) {
			t.Helper()
			if p := growTo(grown); p.cmd.Wait() == nil || !strings.Contains(p.stderr.String(), want) {
				t.Errorf("topics grow said\n%s%s\nwant %s", &p.stdout, &p.stderr, want)
			}
		}
		refused("monitors are running: group tcm-monitor has 1 member")
		stop()
		if said := ingest(1, "only"); !strings.Contains(said, fmt.Sprintf("0 delivered, %d pending in the spool", more-worn)) {
			t.Errorf("ingest said %s", said)
		}
		p := growTo(grown)
		for began := time.Now(); !strings.Contains(p.stdout.String(), "raised") && time.Since(began) < patience; time.Sleep(time.Millisecond) {
		}
		p.kill()
		if !strings.Contains(p.stdout.String(), "done") {
			p := start(t, "monitor", "run", "--config", config("monitor"))
			if p.cmd.Wait() == nil || !strings.Contains(p.stderr.String(), fmt.Sprintf("run `ingest topics grow --partitions %d`", grown)) {
				t.Errorf("a monitor on half-grown topics said\n%s", &p.stderr)
			}
		}
		if p := growTo(grown); p.cmd.Wait() != nil || !strings.Contains(p.stdout.String(), "done") {
			t.Fatalf("topics grow said\n%s%s", &p.stdout, &p.stderr)
		}
		results, stop := monitor(worn)
		ingest(1, "ingest")
		ingest(2, "ingest")
		results.until(t, windows, "results")
		stop()
		return whatWasSaid(t, cfg, []int{worn, more - worn})
	}
	left, leftAlerts := judged(false)
	if len(leftAlerts) < 2 || !strings.HasPrefix(leftAlerts[0], "0/") || !strings.HasPrefix(leftAlerts[len(leftAlerts)-1], "2/") {
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

// readAll returns all messages of a topic.
func readAll(t *testing.T, cfg bus.Config, topic string) (msgs []bus.Message) {
	t.Helper()
	if err := readTopic(t.Context(), cfg, topic, bus.FirstOffset, false, func(m bus.Message) error {
		msgs = append(msgs, m)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return msgs
}

// whatWasSaid returns the verdicts and alerts of recordings, in order, without the fields
// that differ from run to run. All but the last recording have so many windows.
func whatWasSaid(t *testing.T, cfg bus.Config, recordings []int) (verdicts, alerts []string) {
	t.Helper()
	results := map[string]event.Result{}
	inEpoch := map[string]int{}
	err := readTopic(t.Context(), cfg, bus.TopicResults, bus.FirstOffset, false, func(m bus.Message) error {
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
		recording := slices.Index(recordings, inEpoch[epoch])
		if recording < 0 {
			recording = len(recordings)
		}
		return fmt.Sprintf("%d/%05d", recording, seq)
	}
	for _, r := range results {
		verdicts = append(verdicts, fmt.Sprintf("%s %s %.9f", window(r.Epoch, r.Seq), r.Verdict, r.Score))
	}
	r := &reader{}
	if err := readTopic(t.Context(), cfg, bus.TopicAlerts, bus.FirstOffset, false, func(m bus.Message) error {
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
