package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

var (
	nan   = math.NaN()
	nan32 = float32(math.NaN())
)

// small returns a table with everything that a cell can hold.
func small() *Table {
	t := New([]string{"ch01.rms", "a, \"b\""})
	t.Append(Row{
		Machine: "acme/usk25", Tool: "T08", Hole: "H1", Start: time.Date(2026, 1, 31, 14, 0, 0, 250e6, time.UTC),
		Class: 1, VBMaxUM: 310.125, Features: []float32{0.1, -1e-45},
	})
	t.Append(Row{Tool: "14", Class: NoClass, VBMaxUM: nan, Features: []float32{nan32, math.MaxFloat32}})
	t.Append(Row{Tool: "a,\"b\"", Hole: " 1", Class: 0, VBMaxUM: 0, Features: []float32{float32(math.Copysign(0, -1)), 23939045.05}})
	return t
}

// detailed returns a table of which more is known.
func detailed() *Table {
	t := New([]string{"ch01.rms"})
	t.Append(Row{Tool: "T08", Class: NoClass, Label: "worn", VBMaxUM: 310.125, Features: []float32{0.1}, Details: &Details{
		VBMeanUM: 200, State: "3", Recording: "day, 1", Sequence: 7, StartS: 3.5, LengthS: 0.5, Status: NotCutting, Phase: "idle",
		Level: math.Pi, Quality: "ch01=dropout", Frames: "1 nan 2",
	}})
	d := unknownDetails()
	t.Append(Row{Tool: "T09", Class: NoClass, VBMaxUM: nan, Features: []float32{nan32}, Details: &d})
	return t
}

func readCSV(in io.Reader, file string) (*Table, error) {
	return gather(func(s sink) error { return scanCSV(in, file, nil, s) })
}

func readParquet(b []byte, file string) (*Table, error) {
	return gather(func(s sink) error { return scanParquet(bytes.NewReader(b), int64(len(b)), file, nil, s) })
}

func readArrow(b []byte, file string) (*Table, error) {
	return gather(func(s sink) error { return scanArrow(bytes.NewReader(b), int64(len(b)), file, nil, s) })
}

// text shows a table so that equal tables, and only they, look equal.
func text(t *Table) string {
	s := fmt.Sprintf("%q\n", t.Columns)
	for i := range t.Rows() {
		r := t.Row(i)
		s += fmt.Sprintf("%q %q %q %d %d %q %x", r.Machine, r.Tool, r.Hole, r.Start.UnixNano(), r.Class, r.Label, r.VBMaxUM)
		for _, v := range r.Features {
			s += fmt.Sprintf(" %x", v)
		}
		if r.Details != nil {
			s += fmt.Sprintf(" %+v", *r.Details)
		}
		s += "\n"
	}
	return s
}

func TestWriteGolden(t *testing.T) {
	var out bytes.Buffer
	if err := formats[0].write(small(), &out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "small.csv", out.String())
	var more bytes.Buffer
	if err := formats[0].write(detailed(), &more); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "detailed.csv", more.String())
	// Computed from small.csv by testdata/sha256.py, which follows the text of
	// SHA256 and not its code.
	if got, want := fmt.Sprintf("%x", small().SHA256()), strings.TrimSpace(read(t, "small.sha256")); got != want {
		t.Errorf("SHA-256 %s, want %s", got, want)
	}
}

func TestReadByteOrderMark(t *testing.T) {
	got, err := readCSV(strings.NewReader("\xef\xbb\xbf"+read(t, "small.csv")), "f.csv")
	if err != nil {
		t.Fatal(err)
	}
	if text(got) != text(small()) {
		t.Errorf("read\n%swant\n%s", text(got), text(small()))
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSelect(t *testing.T) {
	all := small()
	s := all.Select([]int{2, 0, 2})
	if s.Rows() != 3 || s.Tool[0] != all.Tool[2] || s.Tool[1] != "T08" || s.Data[3] != all.Data[1] {
		t.Errorf("rows 2, 0, 2 are\n%s", text(s))
	}
	s.Data[2] = 7
	if all.Data[0] == 7 {
		t.Error("a selection shares its values with the table")
	}
	missing := func(v float32) bool { return v != v }
	if slices.IndexFunc(all.Data, missing) != 2 || slices.ContainsFunc(s.Data, missing) {
		t.Errorf("missing are other values than the third of the table: %v, of the selection %v", all.Data, s.Data)
	}
	if p := all.Part(1, 3); text(p) != text(small().Select([]int{1, 2})) {
		t.Errorf("rows 1 and 2 are\n%s", text(p))
	}
	if e := all.Select(nil); e.Rows() != 0 || len(e.Columns) != 2 {
		t.Errorf("no rows are\n%s", text(e))
	}
}

func TestAppendPanics(t *testing.T) {
	for name, r := range map[string]Row{
		"too few features": {Features: []float32{1}},
		"class -2":         {Features: []float32{1, 2}, Class: -2},
		"class 1, worn":    {Features: []float32{1, 2}, Class: 1, Label: "worn"},
	} {
		func() {
			defer func() {
				if msg := fmt.Sprint(recover()); !strings.HasPrefix(msg, "table: Append: ") {
					t.Errorf("%s: panics with %q", name, msg)
				}
			}()
			small().Append(r)
		}()
	}
}

func TestSHA256TellsTablesApart(t *testing.T) {
	want := small().SHA256()
	same := small()
	same.Data[2] = math.Float32frombits(0x7fc00001)
	same.VBMaxUM[1] = math.Float64frombits(0x7ff8000000000f00)
	same.Start[0] = same.Start[0].In(time.FixedZone("", 3600))
	if same.SHA256() != want {
		t.Error("another NaN or zone makes another sum")
	}
	for name, change := range map[string]func(*Table){
		"column":              func(t *Table) { t.Columns[0] = "x" },
		"value":               func(t *Table) { t.Data[0] = 0.2 },
		"sign of zero":        func(t *Table) { t.Data[4] = 0 },
		"machine":             func(t *Table) { t.Machine[1] = "m" },
		"tool":                func(t *Table) { t.Tool[0] = "T8" },
		"hole":                func(t *Table) { t.Hole[0] = "" },
		"text moved":          func(t *Table) { t.Tool[0], t.Hole[0] = "T", "08H1" },
		"time":                func(t *Table) { t.Start[0] = t.Start[0].Add(1) },
		"class":               func(t *Table) { t.Class[1] = 0 },
		"class by name":       func(t *Table) { t.Label[1] = "worn" },
		"wear":                func(t *Table) { t.VBMaxUM[1] = 0 },
		"rows in other order": func(t *Table) { *t = *t.Select([]int{1, 0, 2}) },
		"one row less":        func(t *Table) { *t = *t.Select([]int{0, 1}) },
	} {
		other := small()
		change(other)
		if other.SHA256() == want {
			t.Errorf("%s: the sum does not tell", name)
		}
	}
}

// TestReadErrors keeps every error in testdata/errors.golden.
func TestReadErrors(t *testing.T) {
	const header = "machine,tool,hole,start,class,vb_max_um,rms,peak\n"
	var out strings.Builder
	for _, tc := range []struct{ name, text string }{
		{"empty file", ""},
		{"no tool", "rms,vb_max_um\n5,0\n"},
		{"column twice", "machine,tool,hole,start,class,vb_max_um,rms,peak,rms\n"},
		{"name in Latin-1", "machine,tool,hole,start,class,vb_max_um,\xb5\n"},
		{"cut off", header + "m,T1,,,1,310,0.5,2\nm,T1,,,1,31"},
		{"stray quote", header + "m,T1,,,1,310,0.5,2\"\n"},
		{"open quote", header + "\"m,T1,,,1,310,0.5,2\n"},
		{"tool in Latin-1", header + "m,\xb5,,,1,310,0.5,2\n"},
		{"time of day", header + "m,T1,,14:05,1,310,0.5,2\n"},
		{"class that is not a whole number", header + "m,T1,,,0.5,310,0.5,2\n"},
		{"class with a blank", header + "m,T1,,,worn ,310,0.5,2\n"},
		{"negative class", header + "m,T1,,,-1,310,0.5,2\n"},
		{"text in wear", header + "m,T1,,,1,high,0.5,2\n"},
		{"columns of text", "tool,operator,rms,shift,note\nT1,Anna,1,early,\nT1,Ben,2,late,new coolant\n"},
		{"many columns of text", "tool,a,b,c,d,e,f,g\nT1,x,x,1,x,x,x,x\n"},
		{"state that is a number", "tool,state,rms\nT1,3,1\n"},
		{"status of a newer release", "tool,window.status,rms\nT1,skipped,1\n"},
		{"text in a feature", header + "m,T1,,,1,310,0.5,2\nm,T1,,,1,310,low,2\n"},
		{"infinite feature", header + "m,T1,,,1,310,0.5,-Inf\n"},
		{"beyond float32", header + "m,T1,,,1,310,0.5,1e39\n"},
		{"NaN in words", header + "m,T1,,,1,310,NaN,2\n"},
	} {
		table, err := readCSV(strings.NewReader(tc.text), "f.csv")
		if err == nil || table != nil {
			t.Errorf("%s: no error", tc.name)
		}
		fmt.Fprintf(&out, "# %s\n%v\n\n", tc.name, err)
	}
	golden.Check(t, "errors.golden", out.String())
}

// failing is a writer that fails.
type failing struct{}

var errFull = errors.New("disk full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	for _, f := range formats {
		if err := f.write(small(), failing{}); !errors.Is(err, errFull) {
			t.Errorf("%s: full disk: %v", f.name, err)
		}
	}
	for want, change := range map[string]func(*Table){
		`row 2, column "ch01.rms"`:      func(t *Table) { t.Data[2] = float32(math.Inf(-1)) },
		`row 3: wear is infinite`:       func(t *Table) { t.VBMaxUM[2] = math.Inf(1) },
		`two columns are named "a, \"b`: func(t *Table) { t.Columns[0] = t.Columns[1] },
		`a feature is named "class"`:    func(t *Table) { t.Columns[0] = "class" },
		`row 2: class "1e3" would not`:  func(t *Table) { t.Label[1] = "1e3" },
	} {
		for _, f := range formats {
			bad := small()
			change(bad)
			if err := f.write(bad, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error with %q", f.name, err, want)
			}
		}
	}
}

// TestRoundTrip writes tables and reads them again: the same bits come back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[A-Za-z0-9 ,"'/µ.-]{0,6}`)
		value := rapid.Map(rapid.Uint32(), func(b uint32) float32 {
			if v := math.Float32frombits(b); !math.IsInf(float64(v), 0) {
				return v
			}
			return 0
		})
		columns := rapid.SliceOfNDistinct(word, 0, 5, rapid.ID[string]).Draw(t, "columns")
		table := New(columns)
		detailed := rapid.Bool().Draw(t, "detailed")
		number := rapid.OneOf(rapid.Just(nan), rapid.Float64Range(-1e9, 1e9))
		wear := rapid.OneOf(rapid.Just(nan), rapid.Float64Range(0, 1e4))
		for range rapid.IntRange(0, 8).Draw(t, "rows") {
			r := Row{
				Machine: word.Draw(t, "machine"), Tool: strings.Join(strings.Fields(word.Draw(t, "tool")), " "), Hole: word.Draw(t, "hole"),
				Class:    rapid.IntRange(NoClass, 5).Draw(t, "class"),
				VBMaxUM:  wear.Draw(t, "wear"),
				Features: rapid.SliceOfN(value, len(columns), len(columns)).Draw(t, "features"),
			}
			if rapid.Bool().Draw(t, "named") {
				r.Class, r.Label = NoClass, rapid.SampledFrom([]string{"", "healthy", "worn, µ", "3 b"}).Draw(t, "label")
			}
			if rapid.Bool().Draw(t, "timed") {
				r.Start = time.Unix(0, rapid.Int64().Draw(t, "start")).UTC()
			}
			if detailed {
				r.Details = &Details{
					VBMeanUM: wear.Draw(t, "mean"), State: word.Draw(t, "state"), Recording: word.Draw(t, "recording"),
					Sequence: number.Draw(t, "sequence"), StartS: number.Draw(t, "start_s"), LengthS: number.Draw(t, "length_s"),
					Status: rapid.SampledFrom(append(Statuses, "")).Draw(t, "status"), Phase: word.Draw(t, "phase"), Level: number.Draw(t, "level"),
					Quality: word.Draw(t, "quality"), Frames: word.Draw(t, "frames"),
				}
			}
			table.Append(r)
		}
		for _, f := range formats {
			var out bytes.Buffer
			if err := f.write(table, &out); err != nil {
				t.Fatal(err)
			}
			again, err := f.read(out.Bytes(), "f")
			if err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
			if text(again) != text(table) {
				t.Fatalf("%s: wrote\n%sread\n%s", f.name, text(table), text(again))
			}
			if again.SHA256() != table.SHA256() {
				t.Fatalf("%s: the sums differ", f.name)
			}
		}
	})
}

// A class may be named, or numbered by text: in CSV everything is text.
func TestClassesByName(t *testing.T) {
	const table = "tool,class,rms\nT1,healthy,1\nT1,worn,2\nT1,,3\nT1,2,4\nT1,worn,5\n"
	first, err := readCSV(strings.NewReader(table), "f.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range formats {
		var out bytes.Buffer
		if err := f.write(first, &out); err != nil {
			t.Fatal(err)
		}
		got, err := f.read(out.Bytes(), "f")
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		if !slices.Equal(got.Label, []string{"healthy", "worn", "", "", "worn"}) || !slices.Equal(got.Class, []int{NoClass, NoClass, NoClass, 2, NoClass}) {
			t.Errorf("%s: classes %v, labels %q", f.name, got.Class, got.Label)
		}
	}
}

// formats are all that a table can be written in.
var formats = []struct {
	name  string
	write func(*Table, io.Writer) error
	read  func([]byte, string) (*Table, error)
}{
	{"csv", inFormat(".csv"), func(b []byte, file string) (*Table, error) { return readCSV(bytes.NewReader(b), file) }},
	{"parquet", inFormat(".parquet"), func(b []byte, file string) (*Table, error) {
		return readParquet(b, file)
	}},
	{"arrow", inFormat(".arrow"), readArrow},
}

func inFormat(ext string) func(*Table, io.Writer) error {
	return func(t *Table, w io.Writer) error { return t.head().write(w, ext, t.each) }
}

func FuzzReadCSV(f *testing.F)     { fuzz(f, 0) }
func FuzzReadParquet(f *testing.F) { fuzz(f, 1) }
func FuzzReadArrow(f *testing.F)   { fuzz(f, 2) }

// fuzz reads bytes that may be a damaged table of the format: an error names
// the file, and what was read is written and read again alike.
func fuzz(f *testing.F, format int) {
	to := formats[format]
	var out bytes.Buffer
	if err := to.write(small(), &out); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(out.Bytes()))
	out.Reset()
	if err := to.write(detailed(), &out); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(out.Bytes()))
	f.Fuzz(func(t *testing.T, in []byte) {
		table, err := to.read(in, "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "table: f") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		var out bytes.Buffer
		if err := formats[0].write(table, &out); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := readCSV(&out, "f")
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if text(again) != text(table) {
			t.Fatalf("first\n%sthen\n%s", text(table), text(again))
		}
	})
}

// schemas/features-table.md describes the columns, in the order in which they are written.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../schemas/features-table.md")
	if err != nil {
		t.Fatal(err)
	}
	_, columns, _ := strings.Cut(string(page), "## Columns")
	columns, _, _ = strings.Cut(columns, "\n## ")
	var got []string
	for line := range strings.Lines(columns) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			got = append(got, name)
		}
	}
	var want []string
	for _, c := range (Head{Detailed: true}).columns() {
		want = append(want, c.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("documented are\n%q\nthere are\n%q", got, want)
	}
}

// Names of tools that look the same are the same, as in recordings and wear files: rows of one tool do not part.
func TestNamesOfTools(t *testing.T) {
	got, err := readCSV(strings.NewReader("tool,rms\nFra\u0308ser 7,1\n Fräser\u00a07,2\nFräser  7 ,3\n"), "f.csv")
	if err != nil || !slices.Equal(got.Tool, []string{"Fräser 7", "Fräser 7", "Fräser 7"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readCSV(strings.NewReader("tool,rms\nT1\u200b,1\n"), "f.csv"); err == nil || !strings.Contains(err.Error(), `has an invisible character: write the name again`) {
		t.Error(err)
	}
}

// Scan says the same as Load, of every format, and stops where its caller wants.
func TestScan(t *testing.T) {
	want := small()
	for _, ext := range Formats {
		path := filepath.Join(t.TempDir(), "t"+ext)
		if err := want.Save(path); err != nil {
			t.Fatal(err)
		}
		var got *Table
		begin := func(columns []string) error { got = New(columns); return nil }
		if err := Scan(path, begin, func(r Row) error { got.Append(r); return nil }); err != nil {
			t.Fatal(err)
		}
		if got.SHA256() != want.SHA256() {
			t.Errorf("%s: another table", ext)
		}
		enough := errors.New("enough")
		rows := 0
		if err := Scan(path, begin, func(Row) error { rows++; return enough }); !errors.Is(err, enough) || rows != 1 {
			t.Errorf("%s: told to stop at a row: %v after %d", ext, err, rows)
		}
		if err := Scan(path, func([]string) error { return enough }, nil); !errors.Is(err, enough) {
			t.Errorf("%s: told to stop at the header: %v", ext, err)
		}
	}
}
