package ingest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A check says what of the recordings of a folder would be in windows, why the rest would not, and which cannot be read.
func TestAccount(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("layout.yaml", "name: small\nchannels:\n  - {name: force, kind: force, rate: 10}\n")
	rows := func(n int) string { return "force\n" + strings.Repeat("1\n", n) }
	write("a.csv", rows(25))
	write("b.csv", rows(15))
	config := func(source string) Machine {
		t.Helper()
		path := filepath.Join(dir, "ingest.yaml")
		write("ingest.yaml", fmt.Sprintf("machine: acme/spore/bay2/line1/usk25\nkafka: {brokers: [\"127.0.0.1:1\"]}\nlayout: layout.yaml\nsource: %s\n", source))
		c, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return c.All()[0]
	}
	for source, want := range map[string]string{
		"{kind: file, file: a.csv}":                                   "a.csv: of 25 samples 80.00 % would be in windows, 20.00 % short_session",
		"{kind: file, file: none.csv}":                                "1 of 1 recordings cannot be read to their end, the first is none.csv",
		`{kind: folder, folder: ., pattern: "*.csv", settle: 1s}`:     `2 recordings match "*.csv"; `,
		`{kind: folder, folder: ., pattern: "?.csv", settle: 1s}`:     "of 40 samples 75.00 % would be in windows, 25.00 % short_session",
		`{kind: folder, folder: ., pattern: "*.parquet", settle: 1s}`: "0 recordings",
	} {
		m := config(source)
		read := m.ReadFolder
		if m.Source.Kind == "file" {
			read = m.ReadRecording
		}
		text, err := read(t.Context())
		if err != nil {
			text += err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", source, text, want)
		}
	}
	write("layout.yaml", "name: small\nchannels:\n  - {name: force, kind: force, rate: 10}\nrecording: {time: t}\n")
	times := func(step, from float64) string {
		text := "t,force\n"
		for i := range 900 {
			text += fmt.Sprintf("%.4f,1\n", from+float64(i)*step)
		}
		return text
	}
	write("fast.csv", times(0.0992, 0))
	write("labview.csv", times(0.1, 3876444000))
	for file, want := range map[string]string{
		"fast.csv":    "; 1 notes, the first is: fast.csv: rate_error: 10.08 samples a second come where the layout says 10",
		"labview.csv": "is taken for seconds since 1904, as LabVIEW counts",
	} {
		m := config("{kind: file, file: " + file + "}")
		if text, err := m.ReadRecording(t.Context()); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %q, %v, want %q", file, text, err, want)
		}
	}
	write("layout.yaml", "name: small\nchannels:\n  - {name: force, kind: force, rate: 10}\n")
	for _, file := range []string{"fast.csv", "labview.csv"} {
		os.Remove(filepath.Join(dir, file))
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	m := config("{kind: file, file: a.csv}")
	if text, err := m.ReadRecording(ended); err != nil || !strings.Contains(text, "which is as far as a check reads") {
		t.Errorf("%q, %v", text, err)
	}
	write("c.csv", "force\n1\nabc\n")
	if text, err := config("{kind: folder, folder: ., pattern: \"*.csv\", settle: 1s}").ReadFolder(t.Context()); err != nil || !strings.Contains(text, "would be in windows, 24.39 % short_session; 1 of 3 recordings cannot be read to their end, the first is c.csv") {
		t.Errorf("%q, %v", text, err)
	}
}
