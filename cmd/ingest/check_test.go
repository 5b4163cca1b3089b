package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
)

// Every step that fails has an exit code of its own.
func TestCheck(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", ingestYAML(addr, "", ""))
	failing := func(name string, code int) {
		t.Helper()
		out, _, err := dir.run(t, t.Context(), "check --config ingest.yaml")
		var own *cli.Exit
		if !errors.As(err, &own) || own.Code != code || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(out, "FAILED") {
			t.Errorf("%s: %v, want exit code %d\n%s", name, err, code, out)
		}
	}
	failing("topics", 7)
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	out, _, err := dir.run(t, t.Context(), "check --config ingest.yaml")
	if err != nil || strings.Count(out, " ok ") != 9 || !strings.Contains(out, "% would be in windows") {
		t.Errorf("check: %v\n%s", err, out)
	}
	kc := &kafka.Client{Addr: kafka.TCP(addr)}
	grown, err := kc.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: bus.TopicResults, Count: 70}}})
	if err != nil || grown.Errors[bus.TopicResults] != nil {
		t.Fatal(err, grown)
	}
	failing("topics", 7)
	if _, _, err := dir.run(t, t.Context(), "topics grow --config ingest.yaml --partitions 70"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir.path("spool")); err != nil {
		t.Fatal(err)
	}
	dir.write(t, "spool", "a file in the way")
	failing("spool", 10)
	dir.write(t, "ingest.yaml", ingestYAML(nowhere, "", ""))
	failing("tcp", 4)
}
