package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/ingest/spool"
)

// What a broker has lost is sent again from the spool; damage is found.
func TestSpoolCommands(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", ingestYAML(addr, "", ""))
	for _, args := range []string{"topics apply --config ingest.yaml --partitions 1", "run --config ingest.yaml"} {
		if _, _, err := dir.run(t, t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := dir.run(t, t.Context(), "spool ls --config ingest.yaml")
	if err != nil || !strings.Contains(out, "being written") || !strings.Contains(out, "delivered up to seq 4") {
		t.Errorf("spool ls: %v\n%s", err, out)
	}
	out, _, err = dir.run(t, t.Context(), "spool ls --config ingest.yaml -o json")
	var spools []listedSpool
	if err != nil || json.Unmarshal([]byte(out), &spools) != nil || len(spools) != 1 || spools[0].Acked != 4 || len(spools[0].Segments) != 2 || spools[0].Segments[1].State != "being written" || spools[0].Segments[1].Bytes == 0 {
		t.Errorf("spool ls -o json: %v\n%s", err, out)
	}
	out, _, err = dir.run(t, t.Context(), "spool verify --config ingest.yaml")
	if err != nil || out != "spool: 4 records whole, 0 lost\n" {
		t.Errorf("spool verify: %v\n%s", err, out)
	}
	// A new broker has no messages.
	addr = startBroker(t)
	dir.write(t, "ingest.yaml", ingestYAML(addr, "", ""))
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml --partitions 1"); err != nil {
		t.Fatal(err)
	}
	out, _, err = dir.run(t, t.Context(), "spool resend --since 1h --config ingest.yaml")
	if err != nil || !strings.HasPrefix(out, "4 windows sent again") {
		t.Errorf("spool resend: %v\n%s", err, out)
	}
	var seqs []string
	err = bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		seqs = append(seqs, string(m.Header("seq")))
		return nil
	})
	if err != nil || strings.Join(seqs, " ") != "0 1 2 3" {
		t.Errorf("sent again: %q, %v", seqs, err)
	}

	// A segment that `ingest run` removes meanwhile is noted, and the others are sent.
	cfg, err := ingest.Load(dir.path("ingest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := spool.List(spool.Dir(dir.path("spool")))
	if err != nil {
		t.Fatal(err)
	}
	kept := listed.Segments[0]
	gone := kept
	gone.Name = "0" + gone.Name[1:len(gone.Name)-5] + "f.seg"
	listed.Segments[0] = gone
	var notes, whole strings.Builder
	listed.Segments = append(listed.Segments, kept)
	if n, err := sendAgain(t.Context(), "ingest.yaml", cfg, dir.path("spool"), listed, time.Time{}, &notes); err != nil || n != 4 || !strings.Contains(notes.String(), "note: "+dir.path("spool")+": "+gone.Name+", written until ") {
		t.Errorf("%d sent without a segment, %v, notes %q", n, err, &notes)
	}
	if err := readSpool(dir.path("spool"), listed, &whole); err != nil || !strings.Contains(whole.String(), gone.Name+", written until ") || !strings.HasSuffix(whole.String(), "spool: 4 records whole, 0 lost\n") {
		t.Errorf("verify without a segment: %v\n%s", err, &whole)
	}

	segments, _ := filepath.Glob(dir.path("spool/*.seg"))
	newest := segments[len(segments)-1]
	text, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	text[100] ^= 1 // in the first record
	dir.write(t, "spool/"+filepath.Base(newest), string(text))
	out, _, err = dir.run(t, t.Context(), "spool verify --config ingest.yaml")
	if err == nil || !strings.Contains(out, "damaged at byte 0: 3 records whole, 1 lost with ") {
		t.Errorf("verify of a damaged spool: %v\n%s", err, out)
	}
	out, log, err := dir.run(t, t.Context(), "spool resend --since 1h --config ingest.yaml")
	if err != nil || !strings.HasPrefix(out, "3 windows sent again") || !strings.Contains(log, "1 damaged windows are not sent") {
		t.Errorf("resend of a damaged spool: %v\n%s%s", err, out, log)
	}
}

// The listing says what is lost of each file that was set aside.
func TestSpoolListsDamage(t *testing.T) {
	t.Parallel()
	dir := bench(t)
	s, _, err := spool.Open(dir.path("spool"), spool.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Append(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	segments, _ := filepath.Glob(dir.path("spool/*.seg"))
	text, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	text[200] ^= 1 // in the second record
	dir.write(t, "spool/"+filepath.Base(segments[0]), string(text))
	if s, _, err = spool.Open(dir.path("spool"), spool.Settings{}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	out, _, err := dir.run(t, t.Context(), "spool ls --config ingest.yaml")
	if err != nil || !strings.Contains(out, "set aside as damaged: 1 of its records and 124 bytes are lost") {
		t.Errorf("spool ls: %v\n%s", err, out)
	}
}
