package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/await"
)

// edgeBench makes a working directory with a folder of one recording of four windows, from
// six o'clock on, for mode edge. The topics are there.
func edgeBench(t *testing.T) (addr string, dir folder) {
	t.Helper()
	addr = startBroker(t)
	yaml := strings.Replace(folderYAML(addr), "  settle:", "  start: 2026-11-02T06:00:00Z\n  settle:", 1)
	dir = bench(t, "ingest.yaml", yaml+"mode: edge\nedge: {keep_hours: 48, keep_mib: 100}\n")
	if err := os.Mkdir(dir.path("in"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir.write(t, "in/1.csv", table)
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml --partitions 2"); err != nil {
		t.Fatal(err)
	}
	return addr, dir
}

// ingesting runs ingest until the returned function is called, and waits for the recording
// to be sent.
func (dir folder) ingesting(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := dir.run(t, ctx, "run --config ingest.yaml")
		done <- err
	}()
	await.Until(t, "the recording was sent", func() bool {
		text, err := os.ReadFile(dir.path("spool/folder.json"))
		return err == nil && strings.Contains(string(text), "1.csv")
	})
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The windows of a machine in mode edge come from the spool of its ingest, and become a
// file that any Arrow reader opens.
func TestFetch(t *testing.T) {
	t.Parallel()
	addr, dir := edgeBench(t)
	stop := dir.ingesting(t)
	out, _, err := dir.run(t, t.Context(), "fetch --config ingest.yaml --since 2026-11-02T06:00:01Z --until 2026-11-02T06:00:03Z --out ./out --by kim")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dir.path("out/acme-spore-bay2-line1-lathe-*-1.arrow"))
	if err != nil || len(files) != 1 || !strings.Contains(out, "lathe: sent 2 windows from 2026-11-02T06:00:01Z to 2026-11-02T06:00:03Z\n") || !strings.Contains(out, "out/"+filepath.Base(files[0])) {
		t.Fatalf("files %v, %v, printed\n%s", files, err, out)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	if err != nil || r.NumRecords() != 2 {
		t.Fatalf("%v, want 2 windows", err)
	}
	_, _, err = dir.run(t, t.Context(), "fetch --config ingest.yaml --since 2026-11-01T06:00:01Z --until 2026-11-01T06:00:03Z")
	if err == nil || !strings.Contains(err.Error(), "lathe: sent no window; the spool begins at 2026-11-02T06:00:00Z: earlier windows are not kept any more") {
		t.Errorf("a day before: %v", err)
	}
	stop()

	// Another host knows Kafka, and not this machine.
	dir.write(t, "kafka.yaml", "kafka: {brokers: [\""+addr+"\"]}\n")
	ask := "fetch --config kafka.yaml --machine acme/spore/bay2/line1/lathe --since 2026-11-02T06:00:00Z --until 2026-11-02T07:00:00Z --wait 200ms"
	if _, _, err = dir.run(t, t.Context(), ask); err == nil || !strings.Contains(err.Error(), "no gateway has answered for 200ms") || !strings.Contains(err.Error(), "may be in mode raw") {
		t.Errorf("with no ingest: %v", err)
	}
	stop = dir.ingesting(t) // the command waits
	defer stop()
	copies := func() (n int) {
		err := bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
			if envelope.IsLedger(&m) {
				return nil
			}
			if m.Header(envelope.Copied) == nil {
				t.Errorf("a window that is not a copy: %v", m.Headers)
			}
			n++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	await.Until(t, "the command that waited is answered", func() bool { return copies() >= 6 })
	if n := copies(); n != 6 {
		t.Errorf("%d windows came, want 2 and 4", n)
	}
	if out, _, err = dir.run(t, t.Context(), strings.Replace(ask, "200ms", "30s", 1)+" --out ./elsewhere"); err != nil || !strings.Contains(out, "sent 4 windows") {
		t.Errorf("%v\n%s", err, out)
	}
	if files, _ := filepath.Glob(dir.path("elsewhere/*-0.arrow")); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

// Without --until a fetch is of windows up to now, and a beginning must be given.
func TestFetchUntilNow(t *testing.T) {
	now := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) cli.Instant { return cli.Instant{Time: now.Add(-ago)} }
	for name, tc := range map[string]struct {
		span  cli.Span
		until time.Time // zero: it is an error
	}{
		"since alone": {cli.Span{Beginning: cli.Beginning{Since: at(time.Minute)}}, now},
		"both":        {cli.Span{Beginning: cli.Beginning{Since: at(time.Hour)}, Until: at(time.Minute)}, now.Add(-time.Minute)},
		"until alone": {cli.Span{Until: at(time.Minute)}, time.Time{}},
		"neither":     {},
	} {
		f := fetchCommand{Span: tc.span, Windows: 10, Waiting: cli.Waiting{Wait: time.Minute}, Person: cli.Person{By: "kim"}}
		c, err := f.command("a/b/c/d/e", now)
		if (err != nil) != tc.until.IsZero() || err == nil && !c.Wanted.To.Equal(tc.until) {
			t.Errorf("%s: until %v, %v", name, c.Wanted.To, err)
		}
	}
}
