package table

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go"
)

const strange = "operator,tool,rms,note 1,note 2,peak\nAnna,T1,1,x,,2\nBen,T2,3,,y,4\n"

// Columns that are left out may hold anything.
func TestIgnore(t *testing.T) {
	g, err := NewIgnore([]string{"operator", "note*", "shift"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := gather(func(s sink) error { return scanCSV(strings.NewReader(strange), "f.csv", g, s) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Columns, []string{"rms", "peak"}) || !slices.Equal(got.Data, []float32{1, 2, 3, 4}) {
		t.Errorf("read\n%s", text(got))
	}
	if unused := g.Unused(); !slices.Equal(unused, []string{"shift"}) {
		t.Errorf("patterns without a column: %q", unused)
	}
	if _, err := NewIgnore([]string{"a["}); err == nil || !strings.Contains(err.Error(), `"a["`) {
		t.Errorf("a pattern that is none: %v", err)
	}
	if g, err = NewIgnore([]string{"t*"}); err != nil {
		t.Fatal(err)
	}
	if _, err := gather(func(s sink) error { return scanCSV(strings.NewReader(strange), "f.csv", g, s) }); err == nil || !strings.Contains(err.Error(), `"tool" cannot be left out`) {
		t.Errorf("without tools: %v", err)
	}
}

// A column is left out by its own name, with any characters in it, and * stands for a slash too.
func TestIgnoreStrangeNames(t *testing.T) {
	g, err := NewIgnore([]string{"force [N]", "note*"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := gather(func(s sink) error {
		return scanCSV(strings.NewReader("tool,force [N],note/1,rms\nT1,x,2,1\n"), "f.csv", g, s)
	})
	if err != nil || !slices.Equal(got.Columns, []string{"rms"}) || g.Unused() != nil {
		t.Errorf("%v, %v, %q without a column", got, err, g.Unused())
	}
	_, err = gather(func(s sink) error {
		return scanCSV(strings.NewReader("tool,force [N],\"by, at\",rms\nT1,x,y,1\n"), "f.csv", nil, s)
	})
	if want := "leave them out with --ignore 'force [N],by* at', or with `ignore: [\"force [N]\", \"by, at\"]` in train.yaml"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if g, err = NewIgnore([]string{"by* at"}); err != nil || !g.match("by, at") {
		t.Errorf("%v", err)
	}
}

// Columns of Parquet that are of no kind that is read can be left out, as the error says.
func TestIgnoreKindsOfParquet(t *testing.T) {
	type row struct {
		Tool  string  `parquet:"tool"`
		Day   int32   `parquet:"day,date"`
		Codes []int32 `parquet:"codes"`
		RMS   float64 `parquet:"rms"`
	}
	var p bytes.Buffer
	if err := parquet.Write(&p, []row{{"T1", 7, []int32{1, 2}, 3}, {"T2", 8, nil, 4}}); err != nil {
		t.Fatal(err)
	}
	g, err := NewIgnore([]string{"day", "codes"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := gather(func(s sink) error { return scanParquet(bytes.NewReader(p.Bytes()), int64(p.Len()), "f", g, s) })
	if err != nil || !slices.Equal(got.Columns, []string{"rms"}) || !slices.Equal(got.Data, []float32{3, 4}) || !slices.Equal(got.Tool, []string{"T1", "T2"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// Text and times in typed files are named all at once, and left out on request.
func TestTypedColumnsOfText(t *testing.T) {
	type row struct {
		Tool     string  `parquet:"tool"`
		Operator string  `parquet:"operator"`
		RMS      float64 `parquet:"rms"`
		Note     string  `parquet:"note"`
	}
	var p bytes.Buffer
	if err := parquet.Write(&p, []row{{"T1", "Anna", 1, "x"}}); err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "tool", Type: arrow.BinaryTypes.String}, {Name: "operator", Type: arrow.BinaryTypes.String},
		{Name: "rms", Type: arrow.PrimitiveTypes.Float64}, {Name: "note", Type: arrow.FixedWidthTypes.Timestamp_s},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.StringBuilder).Append("T1")
	b.Field(1).(*array.StringBuilder).Append("Anna")
	b.Field(2).(*array.Float64Builder).Append(1)
	b.Field(3).(*array.TimestampBuilder).Append(7)
	var a bytes.Buffer
	w, err := ipc.NewFileWriter(&appender{w: &a}, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b.NewRecord()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(*Ignore) (*Table, error){
		"parquet": func(g *Ignore) (*Table, error) {
			return gather(func(s sink) error { return scanParquet(bytes.NewReader(p.Bytes()), int64(p.Len()), "f", g, s) })
		},
		"arrow": func(g *Ignore) (*Table, error) {
			return gather(func(s sink) error { return scanArrow(bytes.NewReader(a.Bytes()), int64(a.Len()), "f", g, s) })
		},
	} {
		_, err := read(nil)
		if err == nil || !strings.Contains(err.Error(), "2 of 4 columns are not numbers") || !strings.Contains(err.Error(), "operator") || !strings.Contains(err.Error(), "note") {
			t.Errorf("%s: %v", name, err)
		}
		g, err := NewIgnore([]string{"operator", "note"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(g); err != nil || !slices.Equal(got.Columns, []string{"rms"}) || got.Data[0] != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// What goes with a table is read again from every format.
func TestMeta(t *testing.T) {
	d := unknownDetails()
	d.Status, d.Level = Judged, math.Pi
	h := Head{Columns: []string{"rms"}, Detailed: true, Named: true, Meta: `{"a":[1,2],"b":"µ"}`}
	each := func(visit func(Row) error) error {
		return visit(Row{Tool: "T1", Class: NoClass, Label: "healthy", VBMaxUM: nan, Features: []float32{0.1}, Details: &d})
	}
	for _, ext := range append(Formats, ".feather") {
		path := filepath.Join(t.TempDir(), "f"+ext)
		if got, err := Meta(path); ext == ".csv" && (err != nil || got != "") {
			t.Errorf("%s: no file: %q, %v", ext, got, err)
		}
		if err := h.Save(path, each); err != nil {
			t.Fatal(err)
		}
		got, err := Meta(path)
		if err != nil || strings.Join(strings.Fields(got), "") != h.Meta {
			t.Errorf("%s: %q, %v", ext, got, err)
		}
		again, err := Load(path)
		if err != nil || again.Details[0].Level != math.Pi || again.Details[0].Status != Judged || again.Label[0] != "healthy" {
			t.Errorf("%s: %v, %v", ext, again, err)
		}
		if err := small().Save(path + ext); err != nil {
			t.Fatal(err)
		}
		if got, err := Meta(path + ext); err != nil || got != "" {
			t.Errorf("%s: a table without: %q, %v", ext, got, err)
		}
	}
}
