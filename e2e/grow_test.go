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
				if !strings.Contains(said, "of 1 machine in "+bus.TopicState) || !strings.Contains(said, fmt.Sprintf("raised   %s from 2 to %d", bus.TopicWindows, grown)) {
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
