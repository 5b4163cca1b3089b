package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
)

// What a broker has lost is sent again from the spool; damage is found.
func TestSpoolCommands(t *testing.T) {
	addr := startBroker(t)
	bench(t, "ingest.yaml", ingestYAML(addr, "", ""))
	for _, args := range []string{"topics apply --config ingest.yaml --partitions 1", "run --config ingest.yaml"} {
		if _, _, err := ingestRun(t, t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := ingestRun(t, t.Context(), "spool ls --config ingest.yaml")
	if err != nil || !strings.Contains(out, "being written") || !strings.Contains(out, "delivered up to seq 4") {
		t.Errorf("spool ls: %v\n%s", err, out)
	}
	out, _, err = ingestRun(t, t.Context(), "spool verify --config ingest.yaml")
	if err != nil || out != "spool: 4 records whole, 0 lost\n" {
		t.Errorf("spool verify: %v\n%s", err, out)
	}
	// A broker that starts anew has nothing.
	addr = startBroker(t)
	write(t, "ingest.yaml", ingestYAML(addr, "", ""))
	if _, _, err := ingestRun(t, t.Context(), "topics apply --config ingest.yaml --partitions 1"); err != nil {
		t.Fatal(err)
	}
	out, _, err = ingestRun(t, t.Context(), "spool resend --since 1h --config ingest.yaml")
	if err != nil || !strings.HasPrefix(out, "4 windows sent again") {
		t.Errorf("spool resend: %v\n%s", err, out)
	}
	var seqs []string
	err = bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		seqs = append(seqs, string(m.Header("seq")))
		return nil
	})
	if err != nil || strings.Join(seqs, " ") != "0 1 2 3" {
		t.Errorf("sent again: %q, %v", seqs, err)
	}

	segments, _ := filepath.Glob("spool/*.seg")
	newest := segments[len(segments)-1]
	text, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	text[100] ^= 1 // in the first record
	write(t, newest, string(text))
	out, _, err = ingestRun(t, t.Context(), "spool verify --config ingest.yaml")
	if err == nil || !strings.Contains(out, "damaged at byte 0: 3 records whole, 1 lost") {
		t.Errorf("verify of a damaged spool: %v\n%s", err, out)
	}
}
