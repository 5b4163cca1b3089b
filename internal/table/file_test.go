package table

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go"
)

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"t.csv", "t.CSV", "t.parquet", "t.arrow", "t.feather"} {
		path := filepath.Join(dir, name)
		if err := small().Save(path); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if text(got) != text(small()) {
			t.Errorf("%s: read\n%swant\n%s", name, text(got), text(small()))
		}
	}
	bad := small()
	bad.Columns[0] = "tool"
	if err := bad.Save(filepath.Join(dir, "bad.parquet")); err == nil {
		t.Error("a table that cannot be written was saved")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*bad*")); len(left) > 0 {
		t.Errorf("left %v behind", left)
	}
}

func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	here := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	load := func(path string) error { _, err := Load(path); return err }
	for _, tc := range []struct {
		why  string
		err  error
		want []string
	}{
		{"unknown ending", load(here("t.xlsx", "")), []string{"t.xlsx", ".csv, .parquet, .arrow"}},
		{"no file", load(filepath.Join(dir, "gone.csv")), []string{"gone.csv", "check the path"}},
		{"empty Parquet", load(here("e.parquet", "")), []string{"e.parquet", "not a Parquet file", "again"}},
		{"CSV named Parquet", load(here("c.parquet", "tool,rms\nT1,1\n")), []string{"c.parquet", "not a Parquet file"}},
		{"empty Arrow", load(here("e.arrow", "")), []string{"e.arrow", "not an Arrow file", "begin and end with ARROW1"}},
		{"CSV named Arrow", load(here("c.arrow", "tool,rms\nT1,1\n")), []string{"c.arrow", "not an Arrow file"}},
		{"no folder", small().Save(filepath.Join(dir, "gone", "t.csv")), []string{filepath.Join(dir, "gone", "t.csv")}},
		{"unknown ending to write", small().Save(filepath.Join(dir, "t.txt")), []string{"t.txt", "the ending says no format"}},
	} {
		for _, want := range tc.want {
			if tc.err == nil || !strings.Contains(tc.err.Error(), want) {
				t.Errorf("%s: %v, want an error with %q", tc.why, tc.err, want)
			}
		}
	}
}

// Other programs write other types and orders of columns.
type foreign struct {
	Peak    float64  `parquet:"peak"`
	Tool    int64    `parquet:"tool"`
	Start   int64    `parquet:"start,timestamp(microsecond)"`
	Count   uint64   `parquet:"count"`
	Class   bool     `parquet:"class"`
	Current *float32 `parquet:"current,optional"`
}

func TestReadForeignParquet(t *testing.T) {
	at := time.Date(1850, 3, 1, 12, 0, 0, 5000, time.UTC) // outside nanoseconds
	var out bytes.Buffer
	if err := parquet.Write(&out, []foreign{{1.5, 14, at.UnixMicro(), 1 << 63, true, nil}}, parquet.Compression(&parquet.Zstd)); err != nil {
		t.Fatal(err)
	}
	got, err := readParquet(out.Bytes(), "f.parquet")
	if err != nil {
		t.Fatal(err)
	}
	want := New([]string{"peak", "count", "current"})
	want.Append(Row{Tool: "14", Start: at, Class: 1, VBMaxUM: nan, Features: []float32{1.5, 1 << 63, nan32}})
	if text(got) != text(want) {
		t.Errorf("read\n%swant\n%s", text(got), text(want))
	}
	var refused bytes.Buffer
	if err := parquet.Write(&refused, []struct {
		Tool string   `parquet:"tool"`
		Wave []string `parquet:"wave"`
	}{{"T1", nil}}); err != nil {
		t.Fatal(err)
	}
	if _, err := readParquet(refused.Bytes(), "f.parquet"); err == nil || !strings.Contains(err.Error(), `f.parquet: column "wave" is of type`) {
		t.Errorf("a list: %v", err)
	}
}

func TestReadForeignArrow(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "peak", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "tool", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
		{Name: "start", Type: &arrow.TimestampType{Unit: arrow.Second}},
		{Name: "class", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		{Name: "count", Type: arrow.PrimitiveTypes.Uint16},
		{Name: "spare", Type: arrow.Null, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.Float64Builder).AppendValues([]float64{1.5, 0}, []bool{true, false})
	tools := b.Field(1).(*array.BinaryDictionaryBuilder)
	for range 2 {
		if err := tools.AppendString("T1"); err != nil {
			t.Fatal(err)
		}
	}
	b.Field(2).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{100, 200}, nil)
	b.Field(3).(*array.Int8Builder).AppendValues([]int8{1, 0}, []bool{true, false})
	b.Field(4).(*array.Uint16Builder).AppendValues([]uint16{65535, 3}, nil)
	b.Field(5).(*array.NullBuilder).AppendNulls(2)
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&appender{w: &out}, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b.NewRecord()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readArrow(out.Bytes(), "f.arrow")
	if err != nil {
		t.Fatal(err)
	}
	want := New([]string{"peak", "count", "spare"})
	want.Append(Row{Tool: "T1", Start: time.Unix(100, 0).UTC(), Class: 1, VBMaxUM: nan, Features: []float32{1.5, 65535, nan32}})
	want.Append(Row{Tool: "T1", Start: time.Unix(200, 0).UTC(), Class: NoClass, VBMaxUM: nan, Features: []float32{nan32, 3, nan32}})
	if text(got) != text(want) {
		t.Errorf("read\n%swant\n%s", text(got), text(want))
	}
}

// Bytes changed at random give an error that names the file, or a table; never
// a crash, and never an allocation beyond all proportion to the file, which
// would be fatal if it failed.
func TestReadDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats {
		var out bytes.Buffer
		if err := f.write(small(), &out); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		for range 2000 {
			b := bytes.Clone(out.Bytes())
			for range 1 + rng.IntN(3) {
				b[rng.IntN(len(b))] = byte(rng.IntN(256))
			}
			if rng.IntN(8) == 0 {
				b = b[:rng.IntN(len(b))]
			}
			runtime.ReadMemStats(&before)
			if _, err := f.read(b, "f"); err != nil && !strings.HasPrefix(err.Error(), "table: f") {
				t.Fatalf("%s: error does not name the file: %v", f.name, err)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<30 { // lengths of Parquet pages have 31 bits, and nothing is touched
				t.Fatalf("%s: allocates %d MiB for %d bytes", f.name, n>>20, len(b))
			}
		}
	}
}

// Values that no table holds are named by row and column.
func TestTypedValueErrors(t *testing.T) {
	h, err := newHeader([]string{"tool", "start", "class", "vb_max_um", "rms"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		col  int
		v    value
		want string
	}{
		{0, value{kind: isTime}, `column "tool": 0001-01-01T00:00:00Z is not a name`},
		{0, value{kind: isNumber, number: 1 << 53}, `column "tool": 9.007199254740992e+15 is too large for a name, as its neighbours are the same number: make the column text`},
		{0, value{kind: isNumber, number: math.Inf(1)}, `column "tool": +Inf is too large for a name`},
		{0, value{kind: isText, text: "\xb5"}, `"\xb5" is not valid UTF-8`},
		{1, value{kind: isNumber, number: 12}, `column "start": 12 is not a time: make the column a timestamp`},
		{1, value{kind: isText, text: "noon"}, `"noon" is not a time: write RFC 3339`},
		{2, value{kind: isNumber, number: 0.5}, `column "class": 0.5 is not a class`},
		{2, value{kind: isNumber, number: -1}, `-1 is not a class`},
		{2, value{kind: isText, text: "-1"}, `"-1" is not a class`},
		{2, value{kind: isTime}, `is not a class`},
		{3, value{kind: isText, text: "worn"}, `column "vb_max_um": "worn" is not a finite number`},
		{4, value{kind: isNumber, number: 1e39}, `column "rms": 1e+39 is not a finite number of 32 bits`},
	} {
		r := h.row()
		if err := h.set(&r, tc.col, tc.v); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want an error with %q", err, tc.want)
		}
	}
}
