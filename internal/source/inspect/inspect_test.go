package inspect

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
	"github.com/flank-tcm/flank/pkg/signal"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// day is a recording with everything that a summary shows: a gap, a missing
// cell, a constant, text.
func day() string {
	var b strings.Builder
	b.WriteString("time,ax,temperature,state\n")
	for i := range 100 {
		at := float64(i) / 10
		if i >= 60 {
			at += 2.5
		}
		ax := fmt.Sprint(math.Round(1000*math.Sin(float64(i))) / 1000)
		if i == 20 {
			ax = ""
		}
		fmt.Fprintf(&b, "%v,%s,21,%s\n", at, ax, []string{"new", "worn"}[i/50])
	}
	return b.String()
}

func TestPrint(t *testing.T) {
	path := write(t, "day.csv", day())
	var out strings.Builder
	see := func(title string, opt Options, path string) {
		s, err := Inspect(t.Context(), path, opt)
		if err != nil {
			t.Fatal(err)
		}
		s.Path = filepath.Base(s.Path)
		fmt.Fprintf(&out, "# %s\n", title)
		for i, n := range s.Notes {
			s.Notes[i] = strings.ReplaceAll(n, path, s.Path)
		}
		if err := s.Print(&out); err != nil {
			t.Fatal(err)
		}
		if s.Err != nil {
			fmt.Fprintln(&out, strings.ReplaceAll(s.Err.Error(), path, s.Path))
		}
		fmt.Fprintln(&out)
	}
	see("as it is", Options{}, path)
	see("with a rate", Options{Rate: 1000}, path)
	l, err := signal.NewLayout("l", []signal.Channel{{Name: "a", Kind: signal.Vibration, Unit: "mg", Rate: 10}})
	if err != nil {
		t.Fatal(err)
	}
	rec := signal.Recording{Time: "time", Origins: map[string]signal.Origin{"a": {From: "ax", Gain: 1000, Offset: 5}}}
	see("with a layout", Options{Layout: l, Columns: rec}, path)
	see("no header", Options{}, write(t, "raw", "2016-05-26 21:15:16\n1 2\n3 4\n2016-05-26 21:15:17\n5 6\n"))
	see("decimal comma", Options{}, write(t, "komma.csv", "Zeit;ax\n0,1;2,5\n0,2;3\n"))
	see("damaged further on", Options{}, write(t, "bad.csv", "ax,ay\n"+strings.Repeat("1,2.5\n", 200)+"1,2x5\n"))
	see("with a start", Options{Layout: l, Columns: rec, Start: signal.Start{At: time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)}}, path)
	see("with a start, without a layout", Options{Start: signal.Start{At: time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)}}, path)
	old := write(t, "old.csv", "t [ms];Fx (N)\n0;1,5\n100;2\n200;3\n")
	changed := time.Date(2026, 11, 2, 7, 0, 0, 0, time.UTC)
	if err := os.Chtimes(old, changed, changed); err != nil {
		t.Fatal(err)
	}
	see("units, and the time of the file", Options{Start: signal.Start{FileTime: true}}, old)
	see("seconds or milliseconds", Options{}, write(t, "ms.csv", "Time,ax\n0,1\n1,2\n2,3\n"))
	see("Unix seconds", Options{}, write(t, "unix.csv", "t,ax\n1769868000.25,1\n1769868000.35,2\n1769868000.45,3\n"))
	zone := func(from, to string) string {
		return "time,ax\n" + from + ":59:59.7,1\n" + from + ":59:59.8,2\n" + from + ":59:59.9,3\n" + to + ":00:00.0,4\n" + to + ":00:00.1,5\n"
	}
	see("daylight saving time begins", Options{}, write(t, "march.csv", zone("2026-03-29 01", "2026-03-29 03")))
	see("daylight saving time ends", Options{}, write(t, "october.csv", zone("2026-10-25 02", "2026-10-25 02")))
	clocked := signal.Recording{Time: "time", Origins: map[string]signal.Origin{"a": {From: "ax", Gain: 1}}}
	see("daylight saving time begins, with a layout", Options{Layout: l, Columns: clocked}, write(t, "march.csv", zone("2026-03-29 01", "2026-03-29 03")))
	see("daylight saving time ends, with a layout", Options{Layout: l, Columns: clocked}, write(t, "october.csv", zone("2026-10-25 02", "2026-10-25 02")))
	golden.Check(t, "print.golden", out.String())
}

// TestStats compares running statistics with sums over all values.
func TestStats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s stats
	var x []float64
	for range 10_000 {
		v := 1e6 + r.NormFloat64()
		x = append(x, v)
		s.add(v)
	}
	s.add(math.NaN())
	s.add(math.Inf(1))
	var mean, squares float64
	for _, v := range x {
		mean += (v - 1e6) / float64(len(x))
	}
	for _, v := range x {
		squares += (v - 1e6 - mean) * (v - 1e6 - mean)
	}
	deviation := math.Sqrt(squares / float64(len(x)))
	if d := s.Mean() - 1e6 - mean; math.Abs(d) > 1e-8 {
		t.Errorf("mean is off by %v", d)
	}
	if d := s.Deviation()/deviation - 1; math.Abs(d) > 1e-8 {
		t.Errorf("deviation is off by %v", d)
	}
	if s.Min != slices.Min(x) || s.Max != slices.Max(x) || s.Count != 10_002 || s.Missing != 1 || s.Infinite != 1 {
		t.Errorf("%+v", s)
	}
	var none stats
	none.add(math.NaN())
	if m := none.Mean(); m == m || none.Min == none.Min || none.Constant() {
		t.Errorf("of no number: %+v", none)
	}
}

// TestEnvelope compares bins with the least and greatest of their samples.
func TestEnvelope(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 7, bins, bins + 1, 2*bins + 3, 5*bins + 1} {
		var e envelope
		var x []float64
		for i := range n {
			v := r.NormFloat64()
			if i%1000 < 3 {
				v = math.NaN()
			}
			x = append(x, v)
			e.add(v)
		}
		if len(e.Min) > bins || len(e.Min) != (n+int(e.Width)-1)/int(e.Width) {
			t.Fatalf("%d samples: %d bins of %d", n, len(e.Min), e.Width)
		}
		for i := range e.Min {
			least, greatest := math.NaN(), math.NaN()
			for _, v := range x[i*int(e.Width) : min((i+1)*int(e.Width), n)] {
				if v == v {
					least, greatest = fmin(least, v), -fmin(-greatest, -v)
				}
			}
			same := func(a, b float64) bool { return a == b || a != a && b != b }
			if !same(e.Min[i], least) || !same(e.Max[i], greatest) {
				t.Fatalf("%d samples: bin %d is %v…%v, want %v…%v", n, i, e.Min[i], e.Max[i], least, greatest)
			}
		}
	}
}

func TestPlot(t *testing.T) {
	s, err := Inspect(t.Context(), write(t, "day.csv", day()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"p.svg", "again.svg"} {
		if left, err := s.Plot(filepath.Join(dir, name), nil); err != nil || left != 0 {
			t.Errorf("%s: %v, %d left", name, err, left)
		}
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	svg := read("p.svg")
	for _, want := range []string{"<svg", "day.csv", ">ax<", ">temperature<", "time [s]"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("the plot lacks %q", want)
		}
	}
	if bytes.Contains(svg, []byte(">state<")) {
		t.Error("the plot shows text")
	}
	if !bytes.Equal(svg, read("again.svg")) {
		t.Error("two plots of one recording differ")
	}
	for _, tc := range []struct{ path, channel, want string }{
		{"p.svg", "state", "state"}, {"absent/p.svg", "ax", "absent"},
	} {
		if _, err := s.Plot(filepath.Join(dir, tc.path), []string{tc.channel}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s of %s: %v, want %q", tc.path, tc.channel, err, tc.want)
		}
	}
}

// TestRecordedFiles looks at every recording of FLANK_DATA.
func TestRecordedFiles(t *testing.T) {
	dir := recorded.Folder(t)
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "keel" {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); d.IsDir() || slices.Contains([]string{".md", ".txt"}, ext) {
			return nil
		}
		s, err := Inspect(t.Context(), path, Options{})
		if err != nil || s.Err != nil || len(s.Channels) == 0 || s.Channels[0].Count == 0 {
			t.Errorf("%s: %v, %+v", path, err, s)
			return nil
		}
		if err := s.Print(new(strings.Builder)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		n++
		return nil
	})
	if err != nil || n < 35 {
		t.Errorf("%d recordings, %v", n, err)
	}
}
