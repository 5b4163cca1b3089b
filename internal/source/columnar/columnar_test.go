package columnar

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// row is a row of the files under test.
type row struct {
	Time  time.Time `parquet:"time,timestamp(microsecond)"`
	Ax    *float32  `parquet:"ax,optional"`
	F     float64   `parquet:"f"`
	I     int16     `parquet:"i"`
	U     uint64    `parquet:"u"`
	On    bool      `parquet:"on"`
	Tool  string    `parquet:"tool,dict"`
	State *string   `parquet:"state,optional"`
}

func rows(n int) (rs []row) {
	for i := range n {
		r := row{Time: time.Unix(1_800_000_000, int64(i)*50_000_000).UTC(), F: float64(i) / 8, I: int16(-i), U: 1<<60 + 512*uint64(i), On: i%3 == 0, Tool: fmt.Sprintf("T%02d", i/400)}
		if i%7 != 0 {
			x := float32(i) / 3
			r.Ax = &x
			s := "worn"
			r.State = &s
		}
		rs = append(rs, r)
	}
	return rs
}

// want is what the columns of rows(n) hold.
func want(n int) (numbers map[string][]float64, texts map[string][]string) {
	numbers, texts = make(map[string][]float64), make(map[string][]string)
	for _, r := range rows(n) {
		ax, state, on := math.NaN(), "", 0.0
		if r.Ax != nil {
			ax, state = float64(*r.Ax), *r.State
		}
		if r.On {
			on = 1
		}
		for name, v := range map[string]float64{"time": float64(r.Time.UnixMicro()) / 1e6, "ax": ax, "f": r.F, "i": float64(r.I), "u": float64(r.U), "on": on} {
			numbers[name] = append(numbers[name], v)
		}
		texts["tool"], texts["state"] = append(texts["tool"], r.Tool), append(texts["state"], state)
	}
	return numbers, texts
}

// parquetFile has row groups of 300 rows and small pages.
func parquetFile(t testing.TB, n int, options ...parquet.WriterOption) []byte {
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, append(options, parquet.MaxRowsPerRowGroup(300), parquet.PageBufferSize(512))...)
	if _, err := w.Write(rows(n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// arrowFile has record batches of 300 rows.
func arrowFile(t testing.TB, n int, options ...ipc.Option) []byte {
	words := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "time", Type: &arrow.TimestampType{Unit: arrow.Microsecond}}, {Name: "ax", Type: arrow.PrimitiveTypes.Float32, Nullable: true, Metadata: arrow.NewMetadata([]string{"unit", "rate"}, []string{"g", "20"})},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64}, {Name: "i", Type: arrow.PrimitiveTypes.Int16}, {Name: "u", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "on", Type: arrow.FixedWidthTypes.Boolean}, {Name: "tool", Type: words}, {Name: "state", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	out, err := os.Create(filepath.Join(t.TempDir(), "f.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := ipc.NewFileWriter(out, append(options, ipc.WithSchema(schema))...)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	// Every batch has all words, so that the dictionary is the same.
	dict := b.Field(6).(*array.BinaryDictionaryBuilder)
	all := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range n/400 + 1 {
		all.Append(fmt.Sprintf("T%02d", i))
	}
	if err := dict.InsertStringDictValues(all.NewStringArray()); err != nil {
		t.Fatal(err)
	}
	for chunk := range slices.Chunk(rows(n), 300) {
		for _, r := range chunk {
			b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(r.Time.UnixMicro()))
			b.Field(2).(*array.Float64Builder).Append(r.F)
			b.Field(3).(*array.Int16Builder).Append(r.I)
			b.Field(4).(*array.Uint64Builder).Append(r.U)
			b.Field(5).(*array.BooleanBuilder).Append(r.On)
			if err := dict.AppendString(r.Tool); err != nil {
				t.Fatal(err)
			}
			if r.Ax == nil {
				b.Field(1).AppendNull()
				b.Field(7).AppendNull()
				continue
			}
			b.Field(1).(*array.Float32Builder).Append(*r.Ax)
			b.Field(7).(*array.StringBuilder).Append(*r.State)
		}
		if err := w.Write(b.NewRecord()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func openParquet(b []byte) (track.Contents, error) {
	return newParquet(bytes.NewReader(b), int64(len(b)), "f.parquet")
}

func openArrow(b []byte) (track.Contents, error) {
	return newArrow(bytes.NewReader(b), int64(len(b)), "f.arrow")
}

// readAll reads all columns side by side.
func readAll(f track.Contents) (all []track.Values, err error) {
	var tracks []int
	for i := range f.Tracks() {
		tracks = append(tracks, i)
	}
	r, err := f.Open(tracks)
	if err != nil {
		return nil, err
	}
	all = make([]track.Values, len(tracks))
	for {
		v, _, err := r.Read(170)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		for i := range v {
			all[i].Numbers, all[i].Texts = append(all[i].Numbers, v[i].Numbers...), append(all[i].Texts, v[i].Texts...)
		}
	}
}

func TestValues(t *testing.T) {
	const n = 1000
	numbers, texts := want(n)
	for name, tc := range map[string]struct {
		file []byte
		open func([]byte) (track.Contents, error)
	}{
		"parquet":           {parquetFile(t, n), openParquet},
		"parquet, snappy":   {parquetFile(t, n, parquet.Compression(&parquet.Snappy)), openParquet},
		"parquet, zstd":     {parquetFile(t, n, parquet.Compression(&parquet.Zstd)), openParquet},
		"parquet, version1": {parquetFile(t, n, parquet.DataPageVersion(1)), openParquet},
		"arrow":             {arrowFile(t, n), openArrow},
		"arrow, lz4":        {arrowFile(t, n, ipc.WithLZ4()), openArrow},
		"arrow, zstd":       {arrowFile(t, n, ipc.WithZstd()), openArrow},
	} {
		f, err := tc.open(tc.file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := readAll(f)
		if err != nil || len(got) != 8 {
			t.Errorf("%s: %d columns, %v", name, len(got), err)
			continue
		}
		for i, info := range f.Tracks() {
			same := func(a, b float64) bool { return a == b || a != a && b != b }
			if !info.Text && !slices.EqualFunc(got[i].Numbers, numbers[info.Name], same) || info.Text && !slices.Equal(got[i].Texts, texts[info.Name]) {
				t.Errorf("%s: column %s differs", name, info.Name)
			}
			if info.Name == "ax" && strings.HasPrefix(name, "arrow") && (info.Unit != "g" || info.Rate != 20) {
				t.Errorf("%s: %+v", name, info)
			}
		}
	}
}

// Times as Spark writes them, in 96 bits, are times, and times of the day are seconds since midnight.
func TestParquetTimes(t *testing.T) {
	type row struct {
		At    deprecated.Int96 `parquet:"at"`
		Milli int32            `parquet:"milli,time(millisecond)"`
		Micro int64            `parquet:"micro,time(microsecond)"`
	}
	const nanos = 21_600_250_000_000 // 06:00:00.25
	var out bytes.Buffer
	if err := parquet.Write(&out, []row{{deprecated.Int96{nanos & math.MaxUint32, nanos >> 32, 2440588 + 20454}, 21_600_250, 21_600_250_000}}); err != nil {
		t.Fatal(err)
	}
	f, err := openParquet(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(f)
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []float64{20454*86400 + 21600.25, 21600.25, 21600.25} {
		if math.Abs(got[i].Numbers[0]-want) > 1e-6 {
			t.Errorf("%s: %v, want %v", f.Tracks()[i].Name, got[i].Numbers, want)
		}
	}
}

func TestErrors(t *testing.T) {
	p, a := parquetFile(t, 1000), arrowFile(t, 1000)
	hurt := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		for i := range 64 {
			b[at+i] ^= 0xa5
		}
		return b
	}
	var out strings.Builder
	for _, tc := range []struct {
		name string
		file []byte
		open func([]byte) (track.Contents, error)
	}{
		{"empty", nil, openParquet},
		{"empty", nil, openArrow},
		{"another format", []byte("time,ax\n1,2\n3,4\n"), openParquet},
		{"another format", []byte("time,ax\n1,2\n3,4\n"), openArrow},
		{"not finished", p[:len(p)/2], openParquet},
		{"not finished", a[:len(a)/2], openArrow},
		{"no rows", parquetFile(t, 0), openParquet},
		{"no rows", arrowFile(t, 0), openArrow},
		{"LZ4", parquetFile(t, 10, parquet.Compression(&parquet.Lz4Raw)), openParquet},
		{"damaged in the middle", hurt(p, 4), openParquet},
	} {
		f, err := tc.open(tc.file)
		if err == nil {
			_, err = readAll(f)
		}
		if err == nil {
			t.Errorf("%s: no error", tc.name)
			continue
		}
		fmt.Fprintf(&out, "# %s\n%v\n\n", tc.name, err)
	}
	golden.Check(t, "errors.golden", out.String())
}

// TestMemory reads long files and looks at what is alive half-way.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 300,000 rows")
	}
	const n = 300_000
	for name, write := range map[string]func(testing.TB, int) []byte{
		"f.parquet": func(t testing.TB, n int) []byte { return parquetFile(t, n) },
		"f.arrow":   func(t testing.TB, n int) []byte { return arrowFile(t, n) },
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, write(t, n), 0o644); err != nil {
			t.Fatal(err)
		}
		alive := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		var f track.File
		var err error
		if name == "f.parquet" {
			f, err = ParquetFormat.Open(path)
		} else {
			f, err = ArrowFormat.Open(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		before := alive()
		r, err := f.Open([]int{0, 1, 2, 3, 4, 5, 6, 7})
		if err != nil {
			t.Fatal(err)
		}
		read, most := 0, uint64(0)
		for {
			_, m, err := r.Read(4096)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if before, after := read, read+m; before/50_000 != after/50_000 {
				most = max(most, alive())
			}
			read += m
		}
		f.Close()
		if read != n || most > before+2<<20 {
			t.Errorf("%s: %d rows read, %d bytes alive, %d before", name, read, most, before)
		}
	}
}

func fuzz(f *testing.F, open func([]byte) (track.Contents, error)) {
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := open(file)
		if err == nil {
			_, err = readAll(r)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "columnar: f.") {
			t.Fatalf("error does not name the file: %v", err)
		}
	})
}

func FuzzParquet(f *testing.F) {
	f.Add(parquetFile(f, 20))
	f.Add(parquetFile(f, 20, parquet.Compression(&parquet.Snappy), parquet.DataPageVersion(1)))
	fuzz(f, openParquet)
}

func FuzzArrow(f *testing.F) {
	f.Add(arrowFile(f, 20))
	f.Add(arrowFile(f, 20, ipc.WithZstd()))
	fuzz(f, openArrow)
}
