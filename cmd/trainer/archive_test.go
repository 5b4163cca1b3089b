package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/source/sim"
)

// The archive of features teaches what the features on Kafka teach, byte for byte, also when Kafka has forgotten them.
func TestFitArchive(t *testing.T) {
	t.Parallel()
	dir := bench(t, "drill.yaml", drillYAML)
	p := newPlant(t)
	var wear []string
	tools := sim.Tools(1, 20*time.Second)
	for i, machine := range []string{"acme/raw", "acme/edge"} {
		wear = append(wear, drilled(t, machine, tools[2*i:2*i+2], envelope.Gateway, func(_ uint64, _, f bus.Message) { p.send(t, f) })...)
	}
	p.send(t, envelope.Event(bus.TopicFeatures, "answer", "acme/raw", event.FetchedType, shift, []byte("{}")))
	dir.writeWear(t, "wear.csv", wear)
	out, _, err := dir.trainer(t, "archive --quiet --out kept --kafka "+p.addr)
	if err != nil || !strings.Contains(out, "left out  1 messages: answers to commands") || !strings.Contains(out, "results   0 rows") && strings.Contains(out, "results") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config drill.yaml --wear wear.csv --model kafka.flank --from features --kafka "+p.addr); err != nil {
		t.Fatal(err)
	}
	fit := "fit --quiet --config drill.yaml --wear wear.csv --model kept.flank --table "
	if _, _, err := dir.trainer(t, fit+"kept/features/**/*.parquet"); err != nil {
		t.Fatal(err)
	}
	want, wantFrom := dir.bare(t, "kafka.flank")
	got, from := dir.bare(t, "kept.flank")
	if !bytes.Equal(got, want) || from.SHA256 != wantFrom.SHA256 || from.Windows != wantFrom.Windows {
		t.Errorf("another model: of %s, want %s", from, wantFrom)
	}
	for args, says := range map[string]string{
		"labels check --config drill.yaml --wear wear.csv --table kept/features/**/machine=acme%2Fraw/**/*.parquet": "windows  58 of 2 tools",
		"evaluate --quiet --model kept.flank --wear wear.csv --table kept/features/**/*.parquet":                    "G-mean",
	} {
		if out, log, err := dir.trainer(t, args); err != nil || !strings.Contains(out, says) {
			t.Errorf("%s: %v\n%s%s", args, err, out, log)
		}
	}
	all, err := filepath.Glob(dir.path("kept/features/*/*/*.parquet"))
	if err != nil || len(all) < 2 {
		t.Fatalf("%q, %v", all, err)
	}
	whole, err := os.ReadFile(dir.path(all[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.path("cut.parquet"), whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		fit + "kept/features/**/machine=acme%2Fnone/*":         "check the path",
		fit + "kept/features/**/*.parquet --ignore thrust*":    "under `exclude` in train.yaml",
		fit + "cut.parquet --table kept/features/**/*.parquet": "cut.parquet: it is damaged",
		"archive --out kept":                                    "name the broker with --kafka",
		"archive --out kept --keep 5x --kafka " + p.addr:        "such as 5y",
		"archive --out kept --keep 0d --kafka " + p.addr:        "such as 5y",
		"archive --out kept --keep 6m --kafka " + p.addr:        "such as 5y",
		"archive --out kept --keep-bytes 500 --kafka " + p.addr: "such as 500GB",
		"archive --out kept --keep-bytes 5q --kafka " + p.addr:  "such as 500GB",
		"archive --out kept --layout no.yaml --kafka " + p.addr: "no.yaml",
		"archive --kafka " + p.addr:                             "--out",
	} {
		if _, _, err := dir.trainer(t, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "5y": 5 * 365 * day, "18mo": 540 * day, "2w": 14 * day, "90d": 90 * day, "36h": 36 * time.Hour} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]config.Bytes{"500GB": 500e9, "2TB": 2e12, "10B": 10, "7 MB": 7e6, "2GiB": 2 << 30} {
		if got, err := config.ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// archiveChild is the environment variable that makes this test program run the trainer with its arguments, and end.
const archiveChild = "FLANK_TEST_ARCHIVE"

func TestArchiveChild(t *testing.T) {
	if args := os.Getenv(archiveChild); args != "" {
		if err := run(t.Context(), strings.Fields(args), os.Stdout, os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
}

// The program, killed as it writes and started again, leaves the bytes of a run that was not.
func TestArchiveProgramKilled(t *testing.T) {
	t.Parallel()
	dir := bench(t, "drill.yaml", drillYAML)
	p := newPlant(t)
	for _, machine := range []string{"acme/a", "acme/b", "acme/c"} {
		drilled(t, machine, sim.Tools(1, 10*time.Second)[:1], envelope.Gateway, func(_ uint64, _, f bus.Message) { p.send(t, f) })
	}
	start := func(to string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestArchiveChild$")
		cmd.Env = append(os.Environ(), archiveChild+"="+strings.Join(dir.words("archive --quiet --out "+to+" --kafka "+p.addr), " "))
		return cmd
	}
	for files := range 3 { // it is killed when it has so many
		cmd := start("killed")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for running := true; running; {
			there, _ := filepath.Glob(dir.path("killed/features/*/*/*.parquet"))
			select {
			case <-ended: // before
				running = false
			case <-time.After(time.Millisecond):
				if len(there) >= files {
					_ = cmd.Process.Kill()
					<-ended
					running = false
				}
			}
		}
	}
	for _, to := range []string{"killed", "whole"} {
		if text, err := start(to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if got, want := bytesOf(t, dir.path("killed")), bytesOf(t, dir.path("whole")); !maps.Equal(got, want) || len(got) < 3 {
		t.Errorf("%d files, want the %d of a run that was not killed", len(got), len(want))
	}
}

// bytesOf returns the files of an archive by path.
func bytesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == ".owner" {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
