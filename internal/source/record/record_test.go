package record

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/signal"
)

// drill is n simulated tools of two holes each; with faults, a sensor drops out
// and a second is missing.
func drill(t *testing.T, n int, faults bool) source.Source {
	t.Helper()
	tools := sim.Tools(1, 4*time.Second)[:n]
	for i := range tools {
		tools[i].Life = 4 * time.Second
	}
	d, err := sim.New(sim.Settings{Machine: "a/b/c/d/drill", Start: time.Date(2026, 1, 5, 6, 0, 0, 250_000_001, time.UTC), Seed: 1, Tools: tools, Hole: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if !faults {
		return d
	}
	src, err := sim.WithFaults(d, []sim.Fault{
		{Kind: sim.Dropout, Channel: "ch02", From: 500 * time.Millisecond, For: 100 * time.Millisecond},
		{Kind: sim.Missing, From: time.Second, For: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// series is all samples of one rate of one tool by the time since its first,
// counted in samples: what a file calls a session does not matter. Rows that are
// not there are nil.
type series [][]float32

func collect(t *testing.T, src source.Source, want func(*source.Block) bool) (series, []source.Block) {
	t.Helper()
	var all series
	var blocks []source.Block
	for {
		b, err := src.Next(t.Context())
		if err == io.EOF {
			return all, blocks
		}
		if err != nil {
			t.Fatal(err)
		}
		if !want(b) {
			continue
		}
		c := *b
		c.Truth = slices.Clone(b.Truth)
		blocks = append(blocks, c)
		rate := src.Layout().Groups()[b.Group].Rate
		first := int64(math.Round(b.Time.Sub(blocks[0].Time).Seconds() * rate))
		all = append(all, make(series, max(0, int(first)+b.Len()-len(all)))...)
		flat := make([]float32, 0, b.Len()*len(b.Samples))
		for i := range b.Len() {
			for _, x := range b.Samples {
				flat = append(flat, x[i])
			}
			all[int(first)+i] = flat[i*len(b.Samples):]
		}
	}
}

func write(t *testing.T, dir string, format Format, tools int) *Writer {
	t.Helper()
	src := drill(t, tools, true)
	w, err := NewWriter(dir, src.Layout(), format)
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, err := src.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"T01-20000hz.", "T01-100hz.", "T02-20000hz.", "T02-100hz."}
	if format == tdms {
		want = []string{"T01.", "T02."}
	}
	for i := range want {
		want[i] += string(format)
	}
	want = want[:len(want)/2*tools]
	if got := w.Files(); !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	return w
}

var gunDrill = signal.GunDrill()

func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return x == y || x != x && y != y })
}

// read returns a file, or nothing if there is none.
func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return b
}

// Every format is read back by package source, with its layout file, sample
// by sample, and with what it says of the tool. Samples that are missing are
// missing in tables, and NaN in the rest. Equal blocks make equal bytes.
func TestReadBack(t *testing.T) {
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			dir, again := t.TempDir(), t.TempDir()
			names := write(t, dir, format, 2).Files()
			write(t, again, format, 1)
			for _, name := range names {
				if a, b := read(t, dir, name), read(t, again, name); strings.HasPrefix(name, "T01") != bytes.Equal(a, b) {
					t.Errorf("%s differs the second time", name)
				}
				layoutFile := "layout.yaml"
				tool, rate, by := strings.Cut(strings.TrimSuffix(name, "."+string(format)), "-")
				if by {
					layoutFile = "layout-" + rate + ".yaml"
				}
				layout, columns, err := signal.LoadLayout(filepath.Join(dir, layoutFile))
				if err != nil {
					t.Fatal(err)
				}
				for g, group := range layout.Groups() {
					original := slices.IndexFunc(gunDrill.Groups(), func(o signal.Group) bool { return o.Rate == group.Rate })
					readBack(t, format, source.Recording{Path: filepath.Join(dir, name), Layout: layout, Columns: columns, Machine: "a/b/c/d/drill"}, tool, original, g)
				}
			}
			left, err := filepath.Glob(filepath.Join(dir, ".*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// readBack compares group g of a recording with group original of the drill.
func readBack(t *testing.T, format Format, rec source.Recording, tool string, original, g int) {
	t.Helper()
	src, err := rec.Open()
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := src.(io.Closer); ok {
		defer c.Close()
	}
	want, blocks := collect(t, drill(t, 2, true), func(b *source.Block) bool { return b.Group == original && b.Tool == tool })
	got, there := collect(t, src, func(b *source.Block) bool { return b.Group == g })
	if len(got) != len(want) {
		t.Fatalf("%s: lasts %d samples, want %d", rec.Path, len(got), len(want))
	}
	for i, row := range got {
		w := want[i]
		switch {
		case w == nil && format != tdms:
		case w == nil:
			w = slices.Repeat([]float32{float32(math.NaN())}, len(row))
		}
		if !same(row, w) {
			t.Fatalf("%s: sample %d: %v, want %v", rec.Path, i, row, w)
		}
	}
	a, b := there[0], blocks[0]
	if by := a.Time.Sub(b.Time).Abs(); by > 250*time.Nanosecond { // numbers of seconds are that coarse
		t.Errorf("%s: begins at %v, want %v", rec.Path, a.Time, b.Time)
	}
	if format == tdms && a.Tool != tool {
		t.Errorf("%s: tool %q, want %q", rec.Path, a.Tool, tool)
	}
	if format == tdms && (a.Hole != b.Hole || there[len(there)-1].Hole != blocks[len(blocks)-1].Hole) {
		t.Errorf("%s: holes %q to %q, want %q to %q", rec.Path, a.Hole, there[len(there)-1].Hole, b.Hole, blocks[len(blocks)-1].Hole)
	}
	if format != tdms && (a.Context != b.Context || a.Truth[0].State != b.Truth[0].State || a.Truth[0].VBMaxUM != b.Truth[0].VBMaxUM || a.Truth[0].VBMeanUM != b.Truth[0].VBMeanUM) {
		t.Errorf("%s: %+v %v, want %+v %v", rec.Path, a.Context, a.Truth[0], b.Context, b.Truth[0])
	}
}

// Memory does not grow with the recording: of 30 seconds, no format keeps more
// than 15, which is a row group of Parquet.
func TestBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes half a minute in each format")
	}
	const seconds, most = 30, 15 * 4 * (12*20_000 + 2*100)
	layout := gunDrill
	blocks := []source.Block{{Truth: []source.Truth{source.NoTruth}}, {Truth: []source.Truth{source.NoTruth}}}
	for g, group := range layout.Groups() {
		b := &blocks[g]
		b.Group, b.Tool, b.Hole = g, "T1", "H1"
		x := make([]float32, int(group.Rate))
		for i := range x {
			x[i] = rand.Float32()
		}
		b.Samples = slices.Repeat([][]float32{x}, len(group.Channels))
	}
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, format := range formats {
		if format == csvFormat { // slow, and nothing in it can grow
			continue
		}
		w, err := NewWriter(t.TempDir(), layout, format)
		if err != nil {
			t.Fatal(err)
		}
		var early int64
		for s := range seconds {
			for g := range blocks {
				b := blocks[g]
				b.First = int64(s * len(b.Samples[0]))
				b.Time = time.Unix(int64(s), 0)
				if err := w.Write(&b); err != nil {
					t.Fatal(err)
				}
			}
			if s == 2 {
				early = live()
			}
		}
		if more := live() - early; more > most {
			t.Errorf("%s: %d bytes more after %d s than after 3 s", format, more, seconds)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParquet(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, parquetFormat, 1)
	f, err := os.Open(filepath.Join(dir, "T01-100hz.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range file.Schema().Columns() {
		columns = append(columns, c[0])
	}
	if want := strings.Fields("time machine tool hole spindle_rpm thrust torque vb_mean_um vb_max_um state phase"); !slices.Equal(columns, want) {
		t.Fatalf("columns %v, want %v", columns, want)
	}
	_, blocks := collect(t, drill(t, 1, true), func(b *source.Block) bool { return b.Group == 1 && b.Tool == "T01" })
	rows := make([]parquet.Row, 1)
	if _, err := parquet.NewReader(f).ReadRows(rows); err != nil {
		t.Fatal(err)
	}
	// What no layout names is there too, and time to the nanosecond.
	if row := rows[0]; row[0].Int64() != blocks[0].Time.UnixNano() || row[10].String() != blocks[0].Truth[0].Phase {
		t.Errorf("row %v, want time %v and phase %s", row, blocks[0].Time, blocks[0].Truth[0].Phase)
	}
}

// TestWriteFixtures writes a recording in every format for the reference readers
// of make peers-formats.
func TestWriteFixtures(t *testing.T) {
	to := os.Getenv("FLANK_PEERS")
	if to == "" {
		t.Skip("set FLANK_PEERS to a folder for the fixtures; make peers-formats does")
	}
	for _, format := range formats[1:] { // but CSV
		dir := t.TempDir()
		for _, name := range write(t, dir, format, 1).Files() {
			if err := os.WriteFile(filepath.Join(to, "simulated-"+string(format)+"-"+name), read(t, dir, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	layout := gunDrill
	if _, err := NewWriter(t.TempDir(), layout, "hdf5"); err == nil || !strings.Contains(err.Error(), `format "hdf5" is not one of [csv parquet tdms]`) {
		t.Errorf("unknown format: %v", err)
	}
	used := t.TempDir()
	write(t, used, csvFormat, 1)
	if _, err := NewWriter(used, layout, csvFormat); err == nil || !strings.Contains(err.Error(), "name an empty folder") {
		t.Errorf("folder in use: %v", err)
	}
	if _, err := NewWriter(filepath.Join(used, "T01-100hz.csv"), layout, csvFormat); err == nil {
		t.Error("a file is taken for a folder")
	}
	w, err := NewWriter(t.TempDir(), layout, csvFormat)
	if err != nil {
		t.Fatal(err)
	}
	b := &source.Block{Block: signal.Block{Group: 1, Samples: [][]float32{{1}, {2}}}}
	for _, tool := range []string{"", "../T1", `a\b`} {
		if b.Tool = tool; w.Write(b) == nil {
			t.Errorf("tool %q is part of a file's name", tool)
		}
	}
	for session, tool := range []string{"T1", "T2", "T1"} {
		b.Tool, b.Session = tool, int64(session)
		if err := w.Write(b); (err != nil) != (session == 2) {
			t.Errorf("session %d of %s: %v", session, tool, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
