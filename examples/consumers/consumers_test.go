// Package consumers_test runs the example of each language, and the other rows of docs/how-to/read-events.md,
// against Apache Kafka: make consumers.
package consumers_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

const topic, machine = "tcm.alerts.v1", "acme/spore/bay2/line1/lathe"

// TestConsumers writes a committed alert, one whose transaction is aborted, an advisory, and the first alert
// again before its end. The examples print the two alerts. What only reads committed messages, without an example's
// filter, prints all but the aborted one; so do the libraries of CloudEvents, with the attributes. kafka-go cannot leave it out.
func TestConsumers(t *testing.T) {
	tools := os.Getenv("FLANK_CONSUMERS")
	if tools == "" || kafkatest.Version() == "" {
		t.Skip("FLANK_CONSUMERS and FLANK_KAFKA do not say where clients and broker are: make consumers does")
	}
	b := kafkatest.Start(t)
	fill(t, b)
	addr := b.Addr
	jars := filepath.Join(os.Getenv("FLANK_KAFKA_JARS"), "*")
	python, node := filepath.Join(tools, "python", "bin", "python"), filepath.Join(tools, "node")
	example, committed := []string{`"raised"`, `"cleared"`}, []string{`"raised"`, `"silence"`, `"raised"`, `"cleared"`}
	events := []string{ // as the libraries of CloudEvents read them
		`io.tcm.alert.v1 /acme/spore/bay2/line1/lathe application/json "raised"`, `io.tcm.advisory.v1 /acme/spore/bay2/line1/lathe application/json "silence"`,
		`io.tcm.alert.v1 /acme/spore/bay2/line1/lathe application/json "raised"`, `io.tcm.alert.v1 /acme/spore/bay2/line1/lathe application/json "cleared"`,
	}
	for _, row := range []struct {
		name string
		want []string
		args []string
	}{
		{"franz-go", example, []string{built(t, "./franz-go"), addr}},
		{"confluent-kafka for Python", example, []string{python, "python/consumer.py", addr}},
		{"kafkajs", example, []string{"node", filepath.Join(node, "consumer.mjs"), addr}},
		{"Kafka's own for Java", example, []string{"java", "-cp", jars, "java/Alerts.java", addr}},
		{"kafka-python", committed, []string{python, "-c", `import sys, kafka
for m in kafka.KafkaConsumer("` + topic + `", bootstrap_servers=sys.argv[1], auto_offset_reset="earliest", isolation_level="read_committed"):
    print(m.value.decode(), flush=True)`, addr}},
		{"CloudEvents for Python", events, []string{python, "-c", `import json, sys, kafka
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event
for m in kafka.KafkaConsumer("` + topic + `", bootstrap_servers=sys.argv[1], auto_offset_reset="earliest", isolation_level="read_committed"):
    e = from_kafka_event(KafkaMessage(dict(m.headers), m.key, m.value))
    print(e.get_type(), e.get_source(), e.get_datacontenttype(), json.dumps(e.get_data()), flush=True)`, addr}},
		{"CloudEvents for Go", events, []string{filepath.Join(tools, "sdk-go"), addr}},
		{"CloudEvents for Node", events, []string{"node", filepath.Join(node, "events.mjs"), addr}},
		{"CloudEvents for Java", events, []string{"java", "-cp", jars + ":" + filepath.Join(tools, "java", "*"), "testdata/Events.java", addr}},
		{"kafka-console-consumer.sh", committed, []string{
			"java", "-cp", jars, "org.apache.kafka.tools.consumer.ConsoleConsumer",
			"--bootstrap-server", addr, "--topic", topic, "--from-beginning", "--isolation-level", "read_committed",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := printed(t, row.args); !slices.Equal(got, row.want) {
				t.Errorf("printed %q, want %q", got, row.want)
			}
		})
	}
	t.Run("kafka-go", func(t *testing.T) {
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{addr}, Topic: topic, IsolationLevel: kafka.ReadCommitted})
		defer func() { _ = r.Close() }()
		var got []string
		for !slices.Contains(got, `"cleared"`) {
			m, err := r.ReadMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(m.Value))
		}
		if !slices.Contains(got, `"never happened"`) {
			t.Errorf("kafka-go left the aborted alert out: %q. Then docs/how-to/read-events.md is wrong about it", got)
		}
	})
}

// fill writes what the consumers read.
func fill(t *testing.T, b *kafkatest.Broker) {
	t.Helper()
	createTopic(t, b)
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.TransactionalID("monitor"), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression())) // as monitors write alerts
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, part := range []struct {
		end  kgo.TransactionEndTry
		kind string
		ids  []string
	}{
		{kgo.TryCommit, "alert", []string{"raised"}},
		{kgo.TryAbort, "alert", []string{"never happened"}},
		{kgo.TryCommit, "advisory", []string{"silence"}},
		{kgo.TryCommit, "alert", []string{"raised", "cleared"}},
	} {
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, id := range part.ids {
			r := &kgo.Record{Key: []byte(machine), Value: event.JSON(id)}
			for _, a := range event.Attributes(id, machine, "io.tcm."+part.kind+".v1", time.Unix(1767592800, 5e8), "application/json") {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: a[0], Value: []byte(a[1])})
			}
			if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.EndTransaction(t.Context(), part.end); err != nil {
			t.Fatal(err)
		}
	}
}

func createTopic(t *testing.T, b *kafkatest.Broker) {
	t.Helper()
	admin, end, err := b.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if _, err := admin.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}}); err != nil {
		t.Fatal(err)
	}
}

// built returns the program of a folder: `go run` would end before it.
func built(t *testing.T, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(folder))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// printed returns the lines that a program prints until one ends with "cleared", and ends it.
func printed(t *testing.T, args []string) (lines []string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(out); s.Scan(); {
		if lines = append(lines, s.Text()); strings.HasSuffix(s.Text(), `"cleared"`) {
			stop()
			break
		}
	}
	if err := cmd.Wait(); len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1], `"cleared"`) {
		t.Fatal(fmt.Errorf("%s: %w: printed %q\n%s", strings.Join(args, " "), err, lines, complaints.String()))
	}
	return lines
}
