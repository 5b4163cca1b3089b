package record

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/signal"
)

// drill is a simulated tool or two with a sensor that drops out and a second that
// is missing.
func drill(t *testing.T) source.Source {
	t.Helper()
	tools := sim.Tools(1, 3*time.Second)[:2]
	for i := range tools {
		tools[i].Life = 3 * time.Second
	}
	d, err := sim.New(sim.Settings{Machine: "a/b/c/d/drill", Start: time.Date(2026, 1, 5, 6, 0, 0, 250_000_000, time.UTC), Seed: 1, Tools: tools, Hole: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
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

// series is all samples of one rate of one tool by their counters.
type series map[int64][]float32

func collect(t *testing.T, src source.Source, want func(*source.Block) bool) (series, []source.Block) {
	t.Helper()
	all := series{}
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
		for i := range b.Len() {
			var row []float32
			for _, x := range b.Samples {
				row = append(row, x[i])
			}
			all[b.First+int64(i)] = row
		}
	}
}

func write(t *testing.T, dir string, format Format) *Writer {
	t.Helper()
	src := drill(t)
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
	for i := range want {
		want[i] += string(format)
	}
	if got := w.Files(); !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	return w
}

func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return x == y || x != x && y != y })
}

// A table is read back by package source sample by sample, with what it says of
// the tool, and its gap.
func TestCSV(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, CSV)
	for g, name := range []string{"20000hz", "100hz"} {
		for _, tool := range []string{"T01", "T02"} {
			layout, columns, err := signal.LoadLayout(filepath.Join(dir, "layout-"+name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			src, err := source.Recording{Path: filepath.Join(dir, tool+"-"+name+".csv"), Layout: layout, Columns: columns, Machine: "a/b/c/d/drill"}.Open()
			if err != nil {
				t.Fatal(err)
			}
			want, blocks := collect(t, drill(t), func(b *source.Block) bool { return b.Group == g && b.Tool == tool })
			got, read := collect(t, src, func(*source.Block) bool { return true })
			if len(got) != len(want) {
				t.Fatalf("%s %s: %d samples, want %d", tool, name, len(got), len(want))
			}
			for i, row := range want {
				if !same(got[i], row) {
					t.Fatalf("%s %s: sample %d: %v, want %v", tool, name, i, got[i], row)
				}
			}
			a, b := read[0], blocks[0]
			if a.Context != b.Context || !a.Time.Equal(b.Time) || a.Truth[0].State != b.Truth[0].State || a.Truth[0].VBMaxUM != b.Truth[0].VBMaxUM || a.Truth[0].VBMeanUM != b.Truth[0].VBMeanUM {
				t.Errorf("%s %s: %+v %v %v, want %+v %v %v", tool, name, a.Context, a.Time, a.Truth[0], b.Context, b.Time, b.Truth[0])
			}
		}
	}
}

func TestParquet(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, Parquet)
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
	want, blocks := collect(t, drill(t), func(b *source.Block) bool { return b.Group == 1 && b.Tool == "T01" })
	r := parquet.NewReader(f)
	rows := make([]parquet.Row, 1)
	for i, counter := 0, int64(0); ; i++ {
		n, err := r.ReadRows(rows)
		if n == 0 {
			if err != io.EOF || i != len(want) {
				t.Errorf("%d rows, want %d; %v", i, len(want), err)
			}
			break
		}
		if counter == 100 {
			counter = 200 // the missing second
		}
		row := rows[0]
		at := blocks[0].Time.Add(time.Duration(counter) * 10 * time.Millisecond)
		if row[0].Int64() != at.UnixNano() || row[2].String() != "T01" || row[4].Double() != blocks[0].SpindleSpeed {
			t.Fatalf("row %d: %v", i, row)
		}
		if !same([]float32{row[5].Float(), row[6].Float()}, want[counter]) {
			t.Fatalf("row %d: %v, want %v", i, row, want[counter])
		}
		if i == 0 && (row[8].Double() != blocks[0].Truth[0].VBMaxUM || row[9].String() != sim.Healthy || row[10].String() != blocks[0].Truth[0].Phase) {
			t.Errorf("row %d: %v, want truth %+v", i, row, blocks[0].Truth[0])
		}
		counter++
	}
}

// The header as the format's documents have it; samples that are missing are NaN.
func TestWAV(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, WAV)
	b, err := os.ReadFile(filepath.Join(dir, "T01-20000hz.wav"))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	const frames, channels = 60_000, 12
	switch {
	case string(b[:4]) != "RIFF" || string(b[8:16]) != "WAVEfmt " || string(b[38:42]) != "fact" || string(b[50:54]) != "data",
		int(le.Uint32(b[4:])) != len(b)-8, le.Uint32(b[16:]) != 18, le.Uint16(b[20:]) != 3, le.Uint16(b[22:]) != channels,
		le.Uint32(b[24:]) != 20_000, le.Uint32(b[28:]) != 20_000*48, le.Uint16(b[32:]) != 48, le.Uint16(b[34:]) != 32,
		le.Uint32(b[46:]) != frames, le.Uint32(b[54:]) != frames*48, len(b) != wavHeader+frames*48:
		t.Fatalf("%d bytes, header %x", len(b), b[:wavHeader])
	}
	want, _ := collect(t, drill(t), func(b *source.Block) bool { return b.Group == 0 && b.Tool == "T01" })
	for i := range int64(frames) {
		row := make([]float32, channels)
		for c := range row {
			row[c] = math.Float32frombits(le.Uint32(b[wavHeader+(i*channels+int64(c))*4:]))
		}
		w, there := want[i]
		if !there {
			w = slices.Repeat([]float32{float32(math.NaN())}, channels)
		}
		if !same(row, w) {
			t.Fatalf("frame %d: %v, want %v", i, row, w)
		}
	}
}

func TestErrors(t *testing.T) {
	layout := signal.GunDrill()
	if _, err := NewWriter(t.TempDir(), layout, "tdms"); err == nil || !strings.Contains(err.Error(), `format "tdms" is not one of [csv parquet wav]`) {
		t.Errorf("unknown format: %v", err)
	}
	used := t.TempDir()
	write(t, used, WAV)
	if _, err := NewWriter(used, layout, WAV); err == nil || !strings.Contains(err.Error(), "name an empty folder") {
		t.Errorf("folder in use: %v", err)
	}
	if _, err := NewWriter(filepath.Join(used, "T01-100hz.wav"), layout, WAV); err == nil {
		t.Error("a file is taken for a folder")
	}
	w, err := NewWriter(t.TempDir(), layout, CSV)
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
