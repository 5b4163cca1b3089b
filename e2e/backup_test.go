//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// backupPage is the page whose commands TestBackup runs.
const backupPage = "../docs/how-to/backup.md"

// backedUp is a plant that is backed up and restored by the commands of the page.
type backedUp struct {
	t       *testing.T
	broker  *kafkatest.Broker
	dir     string
	monitor *process
	env     []string
}

func (p *backedUp) config(program string) string {
	return filepath.Join(p.dir, "etc", program+".yaml")
}

func (p *backedUp) startMonitor() {
	p.monitor = start(p.t, "monitor", "run", "--config", p.config("monitor"), "--wait", "60s")
}

// follow does what a part of the page says, block by block. The services of the page are the processes of
// this test. It returns which kinds of blocks there were.
func (p *backedUp) follow(part string) (did []string) {
	p.t.Helper()
	for _, block := range regexp.MustCompile("(?ms)^ *```sh ([a-z-]+)\n(.*?)^ *```$").FindAllStringSubmatch(part, -1) {
		did = append(did, block[1])
		switch block[1] {
		case "monitor-stop":
			p.monitor.interrupt(p.t)
		case "broker-stop":
			p.broker.Stop()
		case "broker-start":
			p.broker.Restart(p.t)
		case "monitor-start":
			p.startMonitor()
		default:
			text := strings.NewReplacer("/etc/flank/", filepath.Join(p.dir, "etc")+"/").Replace(block[2])
			cmd := exec.Command("bash", "-eu", "-o", "pipefail", "-c", text)
			cmd.Env = p.env
			if out, err := cmd.CombinedOutput(); err != nil {
				p.t.Fatalf("%s: %v\n%s%s", backupPage, err, text, out)
			}
		}
	}
	return did
}

// alarm returns who acknowledged the open alarm, as `monitor alerts ls` says it.
func (p *backedUp) alarm() (state, by string) {
	p.t.Helper()
	var list []struct{ State, By string }
	if err := json.Unmarshal([]byte(run(p.t, "monitor", "alerts", "ls", "--config", p.config("monitor"), "-o", "json")), &list); err != nil {
		p.t.Fatal(err)
	}
	if len(list) != 1 {
		p.t.Fatalf("%d alarms", len(list))
	}
	return list[0].State, list[0].By
}

// A plant is backed up by the commands of the page while its gateway may go on, works on, loses the broker's
// disk and its own, and is restored. What people did is known again, and every window has one result.
func TestBackup(t *testing.T) {
	if kafkatest.Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka: make backup does")
	}
	text := string(read(t, backupPage))
	backup, restore, found := strings.Cut(text, "\n## Restore")
	if !found {
		t.Fatal("the page has no part Restore")
	}
	b := kafkatest.Start(t)
	cfg := bus.Config{Brokers: []string{b.Addr}, ClientID: "e2e"}
	if _, err := bus.Apply(context.Background(), cfg, 2, 1); err != nil {
		t.Fatal(err)
	}
	dir := prepare(t, b.Addr, 0)
	for _, folder := range []string{"etc", "data"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "etc/ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nlayout: ../layout.yaml\nspool: ../spool\nsource: {kind: csv, file: ../day.csv, speed: 0}\n", machine, b.Addr))
	write(t, dir, "etc/monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: ../m.flank\nevidence: {dir: ../data/evidence}\npage: \"\"\n", b.Addr))
	p := &backedUp{t: t, broker: b, dir: dir, env: append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"KAFKA_LOGS="+b.DataDir(), "DATA="+filepath.Join(dir, "data"), "CONFIG="+filepath.Join(dir, "etc"), "BACKUP="+filepath.Join(dir, "backup"))}

	const worn = 230 // row of the first tool by which its alarm is open
	day := strings.SplitAfter(recording(2), "\n")
	send := func(text string) {
		write(t, dir, "day.csv", text)
		run(t, "ingest", "run", "--config", p.config("ingest"))
	}
	send(strings.Join(day[:1+worn], ""))
	p.startMonitor()
	judged := follow(t, cfg, bus.TopicResults)
	judged.until(t, worn, "results")
	run(t, "monitor", "alerts", "ack", "--config", p.config("monitor"), machine, "--by", "kim")
	alerts := follow(t, cfg, bus.TopicAlerts)
	alerts.until(t, 2, "alerts")
	evidence := filepath.Join(dir, "data", "evidence", "*.json")
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // it is written a moment after its alert
		if kept, err := filepath.Glob(evidence); err == nil && len(kept) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no evidence is written")
		}
	}

	if did := fmt.Sprint(p.follow(backup)); did != "[monitor-stop broker-stop run broker-start monitor-start]" {
		t.Fatalf("the page backs up by %s", did)
	}
	send(day[0] + strings.Join(day[1+worn:], "")) // after the backup
	judged.until(t, windows, "results")

	p.monitor.interrupt(t)
	b.Kill()
	if err := os.RemoveAll(filepath.Join(dir, "data", "evidence")); err != nil {
		t.Fatal(err)
	}
	blocks := strings.SplitAfter(restore, "\n3. ")
	if did := fmt.Sprint(p.follow(blocks[0])); did != "[run]" {
		t.Fatalf("the page restores by %s", did)
	}
	b.Restart(t)
	p.startMonitor()
	if state, by := p.alarm(); state != "acknowledged" || by != "kim" {
		t.Errorf("after the restore the alarm is %s by %q", state, by)
	}
	if kept, err := filepath.Glob(evidence); err != nil || len(kept) == 0 {
		t.Errorf("no evidence is restored: %v", err)
	}
	again := follow(t, cfg, bus.TopicResults)
	again.until(t, worn, "results")
	if did := fmt.Sprint(p.follow(blocks[1])); did != "[resend look]" {
		t.Fatalf("the page goes on by %s", did)
	}
	again.until(t, windows, "results")
	results := map[string]int{}
	for _, m := range again.all() {
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil {
			t.Fatal(err)
		}
		results[fmt.Sprint(r.Machine, r.Epoch, r.Seq)]++
	}
	for w, n := range results {
		if n != 1 {
			t.Errorf("window %s has %d results", w, n)
		}
	}
	if len(results) != windows {
		t.Errorf("%d windows have a result, want %d", len(results), windows)
	}
}
