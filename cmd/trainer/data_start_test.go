package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Recordings follow each other as people count them, or as their files were changed. The
// flag goes before the configuration.
func TestStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("layout.yaml", "channels: [{name: force, kind: feature, rate: 1}]\n")
	plain, dated := write("train.yaml", "layout: layout.yaml\n"), write("dated.yaml", "layout: layout.yaml\nstart: 2026-11-02T06:00:00Z\n")
	changed := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	for i, after := range map[int]int{1: 100, 2: 103, 10: 0} { // 10 s, 20 s and 100 s long
		path := write(fmt.Sprintf("run%d.csv", i), "force\n"+strings.Repeat(fmt.Sprintln(i), 10*i))
		at := changed.Add(time.Duration(after) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	pattern := []string{filepath.Join(dir, "run*.csv")}
	for name, tc := range map[string]struct {
		start, config string
		data          []string
		want          string // when the first sample of run1, run10 and run2 was taken
		warnings      int
	}{
		"none":              {"", plain, pattern, "1970-01-01T00:00:00Z 1970-01-01T00:00:00Z 1970-01-01T00:00:00Z", 0},
		"configured":        {"", dated, pattern, "2026-11-02T06:00:00Z 2026-11-02T06:00:30Z 2026-11-02T06:00:10Z", 0},
		"flag":              {"2026-11-03T06:00:00Z", dated, pattern, "2026-11-03T06:00:00Z 2026-11-03T06:00:30Z 2026-11-03T06:00:10Z", 0},
		"the order given":   {"2026-11-03T06:00:00Z", plain, []string{"run10.csv", "run2.csv", "run1.csv"}, "2026-11-03T06:02:00Z 2026-11-03T06:00:00Z 2026-11-03T06:01:40Z", 0},
		"times of the file": {"file-time", plain, pattern, "2026-11-02T12:01:30Z 2026-11-02T11:58:20Z 2026-11-02T12:01:40Z", 1}, // run2 ends in 3 s
	} {
		f := inputFlags{}
		for _, d := range tc.data {
			if !filepath.IsAbs(d) {
				d = filepath.Join(dir, d)
			}
			f.Data = append(f.Data, d)
		}
		if err := f.Start.UnmarshalText([]byte(tc.start)); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		d, err := f.load("--config", tc.config, "", nil, zerolog.New(&log))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		at := make(map[string]string)
		for _, in := range d.Inputs {
			src, err := in.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := src.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at[in.Name] = b.Time.UTC().Format(time.RFC3339)
			if err := src.(io.Closer).Close(); err != nil {
				t.Error(err)
			}
		}
		if got := at["run1"] + " " + at["run10"] + " " + at["run2"]; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if n := strings.Count(log.String(), "\n"); n != tc.warnings {
			t.Errorf("%s: %d warnings: %s", name, n, log.String())
		}
	}
	f := inputFlags{Data: []string{filepath.Join(dir, "absent.csv")}, Moment: cli.Moment{Start: signal.Start{FileTime: true}}}
	if _, err := f.load("--config", plain, "", nil, zerolog.Nop()); err == nil {
		t.Error("an absent file has a start")
	}
}

// A recording that is read twice, or by several readers, warns once.
func TestWarnsOnce(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"layout.yaml": "channels: [{name: force, kind: feature, rate: 10}]\nrecording: {time: t}\n", "train.yaml": "layout: layout.yaml\n",
		"march.csv": "t,force\n2026-03-29 01:59:59.9,1\n2026-03-29 03:00:00,1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	d, err := inputFlags{Data: []string{filepath.Join(dir, "march.csv")}}.load("--config", filepath.Join(dir, "train.yaml"), "", nil, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		src, err := d.Inputs[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = src.Next(t.Context())
		}
		if err != io.EOF {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "daylight saving time began"); n != 1 {
		t.Errorf("warned %d times: %s", n, log.String())
	}
}
