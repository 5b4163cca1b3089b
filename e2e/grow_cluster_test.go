//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// growingPage is the page whose step from one broker to three TestOneBrokerToThree runs.
const growingPage = "../docs/how-to/growing.md"

// kafkaTools writes programs named as those that come with Apache Kafka, and returns their folder.
func kafkaTools(t *testing.T) string {
	t.Helper()
	home := os.Getenv("FLANK_KAFKA_HOME")
	if home == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		home = filepath.Join(cache, "flank")
	}
	dir := t.TempDir()
	for name, class := range map[string]string{
		"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand", "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
		"kafka-configs.sh": "kafka.admin.ConfigCommand", "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
	} {
		put(t, filepath.Join(dir, name), fmt.Sprintf("#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp '%s/kafka-%s/lib/*' %s \"$@\"\n", home, kafkatest.Version(), class))
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// One broker becomes three while an ingester and a monitor run, by the commands of the page. Then
// one of the new brokers is killed, and nothing stops. Every window has one result.
func TestOneBrokerToThree(t *testing.T) {
	if kafkatest.Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka: make growing does")
	}
	page := string(read(t, growingPage))
	_, page, _ = strings.Cut(page, "\n## 3. ")
	page, _, _ = strings.Cut(page, "\n## ")
	blocks := readCommands(strings.ReplaceAll(page, "\n   ", "\n")) // they are in a list
	if len(blocks) < 3 {
		t.Fatalf("%d blocks of commands in step 3 of %s", len(blocks), growingPage)
	}
	t.Setenv("FLANK_KAFKA_SESSION_MS", "6000") // the machine is busy
	first := kafkatest.Start(t)
	cfg := bus.Config{Brokers: []string{first.Addr}, ClientID: "e2e"}
	if _, err := bus.Apply(context.Background(), cfg, 8, 1); err != nil {
		t.Fatal(err)
	}
	dir := prepare(t, first.Addr, 60)
	write(t, dir, "day.csv", longDay(60))
	sent, results := follow(t, cfg, bus.TopicWindows), follow(t, cfg, bus.TopicResults)
	ingester := start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml"))
	start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	const some = 100
	results.until(t, some, "results")

	second := kafkatest.Join(t, first, 2)
	kafkatest.Join(t, first, 3)
	tools := kafkaTools(t)
	for _, b := range blocks {
		out := new(buffer)
		err := runUntilPrinted(t.Context(), b, func() error {
			*out = buffer{}
			c := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", strings.ReplaceAll(b.text, "kafka1:9092", first.Addr))
			c.Dir, c.Stdout, c.Stderr = dir, out, out
			c.Env = append(os.Environ(), "PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
			return c.Run()
		}, out)
		if err != nil {
			t.Fatalf("step 3 of %s, line %d: %v\n%s%s", growingPage, b.line, err, b.text, out.String())
		}
	}
	t.Logf("moved while %d windows were sent", sent.distinct()-some)
	described, err := exec.CommandContext(t.Context(), filepath.Join(tools, "kafka-topics.sh"), "--bootstrap-server", first.Addr, "--describe").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(described) {
		if f := strings.Fields(string(line)); len(f) > 8 && f[2] == "Partition:" && (strings.Count(f[7], ",") != 2 || strings.Count(f[9], ",") != 2) {
			t.Errorf("not three replicas in sync: %s", line)
		}
	}

	second.Kill()
	at, judged := sent.distinct(), results.distinct()
	sent.until(t, at+some, "windows")
	results.until(t, judged+some, "results")
	if err := ingester.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ingester.wait(t)
	var cut, delivered, pending int
	if _, err := fmt.Sscanf(ingester.stdout.String(), "%d windows cut, %d delivered, %d pending", &cut, &delivered, &pending); err != nil || cut < at+some {
		t.Fatalf("%v\n%s", err, &ingester.stdout)
	}
	if pending > 0 {
		run(t, "ingest", "spool", "resend", "--since", "1h", "--config", filepath.Join(dir, "ingest.yaml"))
	}
	results.until(t, cut, "results")
	_, repeats := checkResults(t, results, cut)
	t.Logf("%d windows, %d came twice, %d results came twice", cut, len(sent.all())-sent.distinct(), repeats)
}

// longDay returns a recording of so many days, each with other tools.
func longDay(days uint64) string {
	long, _, _ := strings.Cut(recording(2), "\n")
	for i := range days {
		_, rows, _ := strings.Cut(recording(2+i), "\n")
		long += "\n" + strings.TrimSpace(strings.ReplaceAll(rows, ",T", fmt.Sprintf(",R%d", i)))
	}
	return long
}
