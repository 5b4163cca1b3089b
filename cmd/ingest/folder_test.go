package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
)

// folderYAML watches the folder in.
func folderYAML(addr string) string {
	return ingestYAML(addr, "  kind: csv\n  file: day.csv\n", "  kind: folder\n  folder: in\n  pattern: \"*.csv\"\n  settle: 20ms\n")
}

// watch runs ingest until the journal of the folder satisfies until, and
// returns what it printed and logged.
func (dir folder) watch(t *testing.T, until func(journal string) bool) (stdout, stderr string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			text, err := os.ReadFile(dir.path("spool/folder.json"))
			if err == nil && until(string(text)) {
				stop()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	stdout, stderr, err := dir.run(t, ctx, "run --config ingest.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return stdout, stderr
}

// Recordings are taken once each, also after a restart; one that is damaged is
// sent up to the damage, and does not stop those behind it.
func TestFolder(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", folderYAML(addr))
	if err := os.Mkdir(dir.path("in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	dir.write(t, "in/1.csv", table, "in/2.csv", "force,power,tool\n1,2,T1\n3,4,T1\n5,off,T1\n", "in/note.txt", "no recording")
	has := func(names ...string) func(string) bool {
		return func(journal string) bool {
			for _, n := range names {
				if !strings.Contains(journal, `"`+n+`"`) {
					return false
				}
			}
			return true
		}
	}
	out, log := dir.watch(t, has("1.csv", "2.csv"))
	if want := "1 recordings sent, 1 could not be read, 6 windows delivered\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if want := `in/2.csv:4: column \"power\": \"off\" is not a number`; !strings.Contains(log, want) {
		t.Errorf("no %q in the log\n%s", want, log)
	}
	dir.write(t, "in/3.csv", table)
	out, log = dir.watch(t, has("3.csv"))
	if strings.Contains(log, "in/1.csv") || strings.Contains(log, "in/2.csv") || !strings.Contains(log, "in/3.csv") {
		t.Errorf("the restart took more than the new file:\n%s", log)
	}
	if want := "1 recordings sent, 0 could not be read, 4 windows delivered\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// A recording that has grown since it was sent goes on where it ended, also after a
// restart; other bytes under its name are another recording. What is ignored is logged.
func TestFolderGrows(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", folderYAML(addr))
	if err := os.MkdirAll(dir.path("in/sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml"); err != nil {
		t.Fatal(err)
	}
	dir.write(t, "in/note.txt", "no recording")
	for _, tc := range []struct {
		text, log string
		sent, all int // windows in this run, and of the recording
	}{
		{table, "1 files that", 4, 4},
		{table + "9,9,T2\n10,1", "has grown", 1, 5},
		{table + "9,9,T2\n10,10,T2\n11,11,T2\n", "has grown", 2, 7},
		{strings.Replace(table, "1,2", "2,1", 1), "another recording", 4, 4},
	} {
		dir.write(t, "in/1.csv", tc.text)
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(tc.text)))
		out, log := dir.watch(t, func(journal string) bool { return strings.Contains(journal, sum) })
		if want := fmt.Sprintf("1 recordings sent, 0 could not be read, %d windows delivered\n", tc.sent); out != want {
			t.Errorf("got %q, want %q", out, want)
		}
		if !strings.Contains(log, tc.log) || !strings.Contains(log, `1 subfolders, such as \"sub\"`) {
			t.Errorf("no %q in the log\n%s", tc.log, log)
		}
		if journal, err := os.ReadFile(dir.path("spool/folder.json")); err != nil || !strings.Contains(string(journal), fmt.Sprintf(`"windows": %d`, tc.all)) {
			t.Errorf("the journal has other windows than %d: %s, %v", tc.all, journal, err)
		}
	}
	out, _, err := dir.run(t, t.Context(), "check --config ingest.yaml")
	if err != nil || !strings.Contains(out, `in: 1 recordings match "*.csv"; folder`) {
		t.Errorf("check: %v\n%s", err, out)
	}
}

// A folder that is read again, because what was taken is not known any more, sends
// the same windows: each has the epoch and seq it had, and no other window has them.
func TestFolderReadAgain(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", folderYAML(addr))
	if err := os.Mkdir(dir.path("in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml --partitions 1"); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		dir.write(t, fmt.Sprintf("in/%d.csv", i), strings.ReplaceAll(table, "T1", fmt.Sprint("T", i)))
	}
	all := func(journal string) bool { return strings.Count(journal, ".csv") == 9 }
	for range 2 {
		if out, log := dir.watch(t, all); out != "9 recordings sent, 0 could not be read, 36 windows delivered\n" {
			t.Fatalf("%s%s", out, log)
		}
		if err := os.Remove(dir.path("spool/folder.json")); err != nil {
			t.Fatal(err)
		}
	}
	bodies := map[string][]string{} // by id
	err := bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		id := string(m.Header("ce_id"))
		bodies[id] = append(bodies[id], string(m.Value))
		return nil
	})
	if err != nil || len(bodies) != 36 {
		t.Fatalf("%d windows, %v; want 36", len(bodies), err)
	}
	for id, b := range bodies {
		if len(b) != 2 || b[0] != b[1] {
			t.Errorf("%s came %d times, or differs", id, len(b))
		}
	}
}

// fileTimes prepares an ingester of an empty folder whose recordings begin by the times of their files, and returns the address of its broker.
func fileTimes(t *testing.T) (addr string, dir folder) {
	t.Helper()
	addr = startBroker(t)
	dir = bench(t, "ingest.yaml", strings.Replace(folderYAML(addr), "  settle:", "  start: file-time\n  settle:", 1))
	if err := os.Mkdir(dir.path("in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.run(t, t.Context(), "topics apply --config ingest.yaml --partitions 1"); err != nil {
		t.Fatal(err)
	}
	return addr, dir
}

// Windows of recordings that do not say when they began get the times of their files, and
// follow each other, also after a restart.
func TestFolderStart(t *testing.T) {
	t.Parallel()
	addr, dir := fileTimes(t)
	changed := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	for i, after := range []time.Duration{0, time.Minute, time.Minute + time.Second} {
		name := fmt.Sprintf("in/%d.csv", i)
		dir.write(t, name, strings.ReplaceAll(table, "T1", fmt.Sprint("T", i)))
		if err := os.Chtimes(dir.path(name), changed.Add(after), changed.Add(after)); err != nil {
			t.Fatal(err)
		}
		dir.watch(t, func(journal string) bool { return strings.Contains(journal, name[3:]) })
	}
	var ends []string
	err := bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		ends = append(ends, strings.TrimPrefix(string(m.Header("ce_time")), "2026-11-02T"))
		return nil
	})
	if err != nil || len(ends) != 12 {
		t.Fatalf("%d windows, %v", len(ends), err)
	}
	if got, want := strings.Join([]string{ends[0], ends[3], ends[4], ends[7], ends[8], ends[11]}, " "), "05:59:57Z 06:00:00Z 06:00:57Z 06:01:00Z 06:01:01Z 06:01:04Z"; got != want {
		t.Errorf("windows at %s, want %s", got, want)
	}
}

// Recordings that are copied in the wrong order are sent all the same, with one warning.
func TestFolderOrder(t *testing.T) {
	t.Parallel()
	_, dir := fileTimes(t)
	changed := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	var log string
	for _, arrives := range [][]string{{"2"}, {"1", "3", "4"}} {
		for _, name := range arrives {
			at := changed.Add(time.Duration(name[0]-'0') * time.Hour)
			dir.write(t, "in/"+name+".csv", strings.ReplaceAll(table, "T1", "T"+name))
			if err := os.Chtimes(dir.path("in/"+name+".csv"), at, at); err != nil {
				t.Fatal(err)
			}
		}
		var out string
		out, log = dir.watch(t, func(journal string) bool { return strings.Contains(journal, arrives[len(arrives)-1]+".csv") })
		if want := fmt.Sprintf("%d recordings sent, 0 could not be read, %d windows delivered\n", len(arrives), 4*len(arrives)); out != want {
			t.Errorf("got %q, want %q", out, want)
		}
	}
	if strings.Count(log, `"level":"warn"`) != 1 || !strings.Contains(log, "in/1.csv") || !strings.Contains(log, "recordings arrive out of order") {
		t.Errorf("not one warning of the order:\n%s", log)
	}
}
