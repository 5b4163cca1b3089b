package source

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

// saved writes a file and sets when it was changed.
func saved(t testing.TB, dir, name, text string, changed time.Time) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, changed, changed); err != nil {
		t.Fatal(err)
	}
	return path
}

// times returns when the first sample of a recording was taken, and when the last ended.
func times(t testing.TB, r Recording) (first, end time.Time) {
	t.Helper()
	src, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.(io.Closer).Close()
	for {
		b, err := src.Next(t.Context())
		if err == io.EOF {
			return first, end
		}
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = b.Time
		}
		end = b.Time.Add(seconds(float64(b.Len()) / r.Layout.Groups()[b.Group].Rate))
	}
}

func TestStart(t *testing.T) {
	dir := t.TempDir()
	noon := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	rows := strings.Repeat("1\n", 50)
	bare := Recording{Path: saved(t, dir, "bare.csv", "ax\n"+rows, noon), Layout: layout(t, 10, "ax")}
	late := Recording{Path: saved(t, dir, "late.csv", "t,ax\n"+numbered(50, ",1\n", 0.1), noon), Layout: layout(t, 10, "ax"), Columns: signal.Recording{Time: "t"}}
	boot := late // counts from when the controller was switched on
	boot.Path = saved(t, dir, "boot.csv", "t,ax\n100,1\n100.1,1\n102.4,1\n104.9,1\n", noon)
	dated := late
	dated.Path = saved(t, dir, "dated.csv", "t,ax\n2026-01-31 14:00:00,1\n2026-01-31 14:00:00.1,1\n", noon)
	broken := late
	broken.Path = saved(t, dir, "broken.csv", "t,ax\n0,1\n0.1,1\n0.2,1\n0.1,1\n", noon)
	for _, tc := range []struct {
		r           Recording
		start       string
		first, last string // "" for an error
	}{
		{bare, "", "1970-01-01T00:00:00Z", "1970-01-01T00:00:05Z"},
		{boot, "", "1970-01-01T00:01:40Z", "1970-01-01T00:01:45Z"},
		{bare, "2026-11-02T06:00:00Z", "2026-11-02T06:00:00Z", "2026-11-02T06:00:05Z"},
		{bare, "2026-11-02T07:00:00.25+01:00", "2026-11-02T06:00:00.25Z", "2026-11-02T06:00:05.25Z"},
		{late, "2026-11-02T06:00:00Z", "2026-11-02T06:00:00Z", "2026-11-02T06:00:05Z"},
		{boot, "2026-11-02T06:00:00Z", "2026-11-02T06:00:00Z", "2026-11-02T06:00:05Z"},
		{dated, "2026-11-02T06:00:00Z", "2026-01-31T14:00:00Z", "2026-01-31T14:00:00.2Z"},
		{bare, "file-time", "2026-11-02T11:59:55Z", "2026-11-02T12:00:00Z"},
		{late, "file-time", "2026-11-02T11:59:55Z", "2026-11-02T12:00:00Z"},
		{boot, "file-time", "2026-11-02T11:59:55Z", "2026-11-02T12:00:00Z"},
		{dated, "file-time", "2026-01-31T14:00:00Z", "2026-01-31T14:00:00.2Z"},
	} {
		if err := tc.r.Start.UnmarshalText([]byte(tc.start)); err != nil {
			t.Fatal(err)
		}
		first, end := times(t, tc.r)
		if got, want := first.Format(time.RFC3339Nano)+" "+end.Format(time.RFC3339Nano), tc.first+" "+tc.last; got != want {
			t.Errorf("%s from %q is %s, want %s", tc.r.Name(), tc.start, got, want)
		}
	}
	// What is wrong within a recording comes when it is read, after what is right.
	broken.Start.At = noon
	src, err := broken.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.(io.Closer).Close()
	if b, err := src.Next(t.Context()); err != nil || !b.Time.Equal(noon) || b.Len() != 3 {
		t.Errorf("before the damage: %v", err)
	}
	if _, err := src.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "broken.csv:5") {
		t.Errorf("the damage: %v", err)
	}
	old := bare
	old.Path, old.Start.FileTime = saved(t, dir, "old.csv", "ax\n1\n", time.Unix(0, 0)), true
	if _, err := old.Open(); err == nil || !strings.Contains(err.Error(), "old.csv: the file was last changed on 1970-01-01") {
		t.Errorf("a file without a time: %v", err)
	}
}

// However recordings say their times, and whenever their files were changed: those that
// are placed after each other do not overlap, keep their order and their length, and what
// is placed once stays.
func TestTimeline(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		start := signal.Start{FileTime: true}
		if rapid.Bool().Draw(rt, "stated") {
			start = signal.Start{At: time.Unix(1_800_000_000, 0).UTC()}
		}
		var line Timeline
		var before time.Time
		changed := time.Unix(1_700_000_000, 0)
		for i := range rapid.IntRange(1, 4).Draw(rt, "files") {
			changed = changed.Add(time.Duration(rapid.IntRange(0, 8).Draw(rt, "seconds")) * time.Second)
			n := rapid.IntRange(1, 40).Draw(rt, "rows")
			r := Recording{Layout: layout(t, 10, "ax"), Start: start}
			switch rapid.IntRange(0, 2).Draw(rt, "form") {
			case 0:
				r.Path = saved(t, dir, fmt.Sprint(i, ".csv"), "ax\n"+strings.Repeat("1\n", n), changed)
			case 1:
				r.Columns.Time = "t"
				r.Path = saved(t, dir, fmt.Sprint(i, ".csv"), "t,ax\n"+numbered(n, ",1\n", 0.1), changed)
			case 2:
				r.Columns.Tool = "tool"
				r.Path = saved(t, dir, fmt.Sprint(i, ".csv"), "tool,ax\n"+strings.Repeat("T1,1\n", n)+strings.Repeat("T2,1\n", n), changed)
				n *= 2
			}
			late, err := line.Place(t.Context(), &r)
			if err != nil {
				rt.Fatal(err)
			}
			first, end := times(t, r)
			length := time.Duration(n) * 100 * time.Millisecond
			switch {
			case first.Before(before) || (end.Sub(first)-length).Abs() > time.Microsecond:
				rt.Fatalf("%d rows from %v to %v, the one before ended %v", n, first, end, before)
			case start.FileTime && (first.Add(length).Sub(changed)-late).Abs() > time.Microsecond:
				rt.Fatalf("ends %v, changed %v, late by %v", end, changed, late)
			case !start.FileTime && i > 0 && !first.Equal(before) || late < 0 || !start.FileTime && late != 0:
				rt.Fatalf("begins %v, not at %v; late by %v", first, before, late)
			}
			if again, _ := times(t, r); !again.Equal(first) {
				rt.Fatalf("opened again it begins %v, not %v", again, first)
			}
			before = line.End
			if (before.Sub(end)).Abs() > time.Microsecond {
				rt.Fatalf("ends %v, noted %v", end, before)
			}
		}
	})
}

// Holes of a file that says no times follow each other.
func TestWavesFollowEachOther(t *testing.T) {
	var m memory
	for _, hole := range []string{"Hole 1", "Hole 2", "Hole 3"} {
		m.add(signalOf(hole, "ax", 1000), ramp(0, 2000)...)
		m.add(signalOf(hole, "ay", 1000), ramp(0, 2000)...)
		m.add(signalOf(hole, "thrust", 100), ramp(0, 190)...)
	}
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	w, err := newWaves(&m, "f.tdms", twoRates(t), signal.Recording{}, tableOptions{Start: start})
	if err != nil {
		t.Fatal(err)
	}
	first, end, ok := w.span()
	if !ok || !first.Equal(start) || end.Sub(start) != 6*time.Second {
		t.Errorf("span %v to %v, %v", first, end, ok)
	}
	for {
		b, err := w.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		at := float64(b.First) / w.layout.Groups()[b.Group].Rate
		if want := start.Add(time.Duration(b.Session)*2*time.Second + seconds(at)); !b.Time.Equal(want) {
			t.Fatalf("%s: %v, want %v", b.Hole, b.Time, want)
		}
	}
}
