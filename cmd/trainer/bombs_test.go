package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// bombMemory is what a process may take from the operating system that reads hostile files.
const bombMemory = 512 << 20

// readers read one file of a kind. Their errors do not count here.
var readers = map[string]func(path string) error{
	"model":   func(path string) error { _, err := model.Load(path); return err },
	"csv":     scanTable,
	"parquet": scanTable,
	"arrow":   scanTable,
	"recording": func(path string) error {
		_, err := inspect.Inspect(context.Background(), path, inspect.Options{Rate: 1000})
		return err
	},
	"evidence": func(path string) error {
		s, err := evidence.Open(filepath.Dir(path), 1)
		if err == nil {
			_, err = s.Spectra(strings.TrimSuffix(filepath.Base(path), ".arrow"), "ch01")
			if errors.Is(err, evidence.ErrNoSpectrum) { // the file is read, and the page says what it lacks
				err = nil
			}
		}
		return err
	},
	"yaml": func(path string) error {
		var into map[string]any
		err := config.Load(path, &into)
		config.Lines(path)
		if len(into) == 0 && strings.Contains(path, "long") {
			_, _, err = signal.LoadLayout(path)
		}
		return err
	},
}

// remedy finds what an error asks for.
var remedy = regexp.MustCompile(`\b(add|check|close|copy|correct|declare|delete|get|have|leave|list|make|must|name|record|remove|rename|save|train|use|write)\b`)

// scanTable reads a table as the commands do: row by row.
func scanTable(path string) error {
	return table.Scan(path, func([]string) error { return nil }, func(table.Row) error { return nil })
}

// TestMain reads hostile files in place of the tests if it is asked to, and prints how much memory
// the process has taken.
func TestMain(m *testing.M) {
	kind := os.Getenv("FLANK_BOMB")
	if kind == "" {
		for key, value := range map[string]string{"USER": "kim", "COLUMNS": "100"} {
			if err := os.Setenv(key, value); err != nil {
				panic(err)
			}
		}
		lookFor = time.Minute
		os.Exit(m.Run())
	}
	for _, path := range os.Args[1:] {
		stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if err := readers[kind](path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %.400v\n", filepath.Base(path), err)
			if !strings.Contains(err.Error(), stem) || !remedy.MatchString(err.Error()) {
				fmt.Fprintf(os.Stderr, "%s: WITHOUT FILE OR REMEDY: %v\n", filepath.Base(path), err)
			}
		} else {
			fmt.Fprintf(os.Stderr, "%s: read\n", filepath.Base(path))
		}
		runtime.GC() // what a file has taken, and not when the collector came by
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		fmt.Fprintf(os.Stderr, "%s: %d MiB\n", filepath.Base(path), s.Sys>>20)
		fmt.Println(s.Sys)
	}
}

// Ten hostile files of each kind leave the process that reads them below 512 MiB, and alive.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("processes that read hostile files")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for kind, files := range bombs(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if len(files) < 10 {
				t.Errorf("%d files, want ten", len(files))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, files...)
			cmd.Env = append(os.Environ(), "FLANK_BOMB="+kind, "GOGC=100", "GOMEMLIMIT=off")
			var log bytes.Buffer
			cmd.Stderr = &log
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &log)
			}
			took := strings.Fields(string(out))
			if strings.Contains(log.String(), "WITHOUT FILE OR REMEDY") {
				t.Error("an error names no file or no remedy")
			}
			if len(took) != len(files) {
				t.Fatalf("%d of %d files were read\n%s", len(took), len(files), &log)
			}
			for i, s := range took {
				if n, err := strconv.Atoi(s); err != nil || n > bombMemory {
					t.Errorf("%s: the process has taken %d MiB, %v", filepath.Base(files[i]), n>>20, err)
				}
			}
			t.Logf("at most %s bytes\n%s", took[len(took)-1], &log)
		})
	}
}

// bombs writes hostile files and returns their names by kind.
func bombs(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	dir := t.TempDir()
	fill := func(kind, name string, f filling) string {
		path := filepath.Join(dir, kind, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), f.write(path)); err != nil {
			t.Fatal(err)
		}
		all[kind] = append(all[kind], path)
		return path
	}
	add := func(kind, name string, b []byte) string { return fill(kind, name, filling{head: b}) }
	modelBombs(t, func(name string, f filling) string { return fill("model", name, f) })
	for name, f := range textBombs() {
		fill("csv", name+".csv", f)
	}
	for name, f := range yamlBombs() {
		fill("yaml", name+".yaml", f)
	}
	pq, ar := parquetBomb(t), arrowBomb(t)
	parquets, arrows := parquetBombs(t), arrowBombs(t, ar)
	for i, b := range mutants(pq) {
		parquets[strconv.Itoa(i)] = b
	}
	for i, b := range mutants(ar) {
		arrows[strconv.Itoa(i)] = b
	}
	parquets["long"] = pq
	for name, b := range packedArrowBombs(t) {
		arrows[name] = b
	}
	for _, kind := range []string{"recording", ""} {
		for name, b := range parquets {
			add(cmp.Or(kind, "parquet"), name+".parquet", b)
		}
		for name, b := range arrows {
			add(cmp.Or(kind, "arrow"), name+".arrow", b)
		}
	}
	if err := os.Truncate(add("arrow", "endless.arrow", []byte("ARROW1")), 1<<40); err != nil { // sparse
		t.Fatal(err)
	}
	number := 100
	for what, b := range arrowBombs(t, evidenceFile(t)) {
		number++
		name := fmt.Sprintf("A-K3ZQ7M2P-%d", number)
		t.Logf("%s is %s", name, what)
		add("evidence", name+".arrow", b)
		text := `{"from":"2026-11-02T00:00:00Z","to":"2026-11-02T00:00:10Z","at":"2026-11-02T00:00:10Z"}`
		if err := os.WriteFile(filepath.Join(dir, "evidence", name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range mutants(evidenceFile(t)) {
		name := fmt.Sprintf("A-K3ZQ7M2P-%d", i)
		add("evidence", name+".arrow", b)
		span := []string{`"2026-11-02T00:00:00Z"`, `"2026-11-02T00:00:10Z"`}
		switch i % 3 {
		case 1:
			span = []string{`"0001-01-01T00:00:00Z"`, `"9999-01-01T00:00:00Z"`}
		case 2:
			slices.Reverse(span)
		}
		text := fmt.Sprintf(`{"from":%s,"to":%s,"at":%[2]s,"channels":[{"name":"ch02","usual":[%s{}]}]}`, span[0], span[1], strings.Repeat("{},", i*250_000))
		if err := os.WriteFile(filepath.Join(dir, "evidence", name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, channels := range []string{
		`{"name":"ch01","usual":[` + strings.Repeat("{},", 5_000_000) + `{}]}`,
		`{"name":"ch01","usual":` + strings.Repeat("[", 5_000_000),
		strings.Repeat("{},", 5_000_000) + `{"name":"ch01","usual":{}}`,
	} {
		name := fmt.Sprintf("A-K3ZQ7M2P-%d", 200+i)
		add("evidence", name+".arrow", evidenceFile(t))
		text := `{"from":"2026-11-02T00:00:00Z","to":"2026-11-02T00:00:10Z","at":"2026-11-02T00:00:10Z","channels":[` + channels + `]}`
		if err := os.WriteFile(filepath.Join(dir, "evidence", name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// filling is a file that has one text many times. It is never whole in memory: that took longer than
// to read it.
type filling struct {
	head   []byte
	unit   string
	times  int
	tail   string
	sealed bool // a checksum is behind it
}

// repeat returns as many of a text as n bytes have room for.
func repeat(unit string, n int) filling { return filling{unit: unit, times: n / len(unit)} }

// after puts texts before and behind a filling.
func after(head string, f filling, tail string) filling {
	f.head, f.tail = []byte(head), tail
	return f
}

func (f filling) size() int { return len(f.head) + len(f.unit)*f.times + len(f.tail) }

func (f filling) write(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	w := io.Writer(file)
	if f.sealed {
		w = io.MultiWriter(file, sum)
	}
	_, err = w.Write(f.head)
	some := bytes.Repeat([]byte(f.unit), min(f.times, 1<<16))
	for left := f.times * len(f.unit); left > 0 && err == nil; left -= len(some) {
		_, err = w.Write(some[:min(left, len(some))])
	}
	if err == nil {
		_, err = io.WriteString(w, f.tail)
	}
	if err == nil && f.sealed {
		_, err = file.Write(sum.Sum(nil))
	}
	return err
}

// mutants returns ten files in which a length or a count is what it cannot be. Half of them are
// changed at the end, where footers are.
func mutants(b []byte) (all [][]byte) {
	for i := range 10 {
		c := bytes.Clone(b)
		at := len(c) * i / 10
		if i >= 5 {
			at = len(c) - 16 - 24*(i-5)
		}
		huge := []uint64{1<<31 - 1, 1<<32 - 1, 1<<62 - 1, 1<<40 + 8, 1<<63 - 1}[i%5]
		if i == 0 {
			at = len(c) / 20
		}
		binary.LittleEndian.PutUint64(c[at:], huge)
		all = append(all, c)
	}
	return all
}

func modelBombs(t *testing.T, add func(string, filling) string) {
	good, err := machinetest.WithWear(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	good = good[:len(good)-sha256.Size]
	// The numbers behind each section's head are its lengths and counts.
	for _, section := range []string{"manifest", "classifier", "golden", "wear"} {
		head := append([]byte{byte(len(section))}, section...)
		at := bytes.Index(good, head)
		if at < 0 {
			t.Fatalf("the model has no section %s", section)
		}
		for n, off := range []int{0, 8, 12, 16, 20, 24} {
			c := bytes.Clone(good)
			at := at + len(head) + off
			if off == 0 {
				binary.LittleEndian.PutUint64(c[at:], 1<<62)
			} else {
				binary.LittleEndian.PutUint32(c[at:], 1<<31-1)
			}
			add(fmt.Sprintf("%s-%d.flank", section, n), filling{head: c, sealed: true})
		}
	}
	// with puts a section behind a head that announces it.
	with := func(head []byte, section filling) filling {
		section.head, section.sealed = append(binary.LittleEndian.AppendUint64(head, uint64(section.size())), section.head...), true
		return section
	}
	withManifest := func(text filling) filling {
		b := append([]byte("FLANKMDL"), 1, 0, 0, 0, 1, 0, 0, 0, 8)
		return with(append(b, "manifest"...), text)
	}
	for name, f := range map[string]filling{
		"wear":       {[]byte(`{"parts":[`), `{},`, 20 << 20, `{}]}`, true},
		"drift":      {[]byte(`{"features":[`), `{},`, 20 << 20, `{}]}`, true},
		"golden":     goldenBomb(20 << 20),
		"classifier": {[]byte("FCLS\x01\x00\x00\x00"), "\xff\xff\xff\x00", 20 << 20, "", true},
		"conformal":  repeat("\x01", 64<<20),
		"novelty":    repeat("\x00", 64<<20),
	} {
		add("large-"+name+".flank", with(withSection(good, name), f))
	}
	add("nested.flank", withManifest(repeat("[", 20<<20)))
	add("names.flank", withManifest(filling{[]byte(`{"feature_names":[`), `"",`, 5 << 20, `""]}`, true}))
	add("many-names.flank", withManifest(filling{[]byte(`{"feature_names":[`), `"",`, 60 << 20, `""]}`, true}))
	add("usual.flank", withManifest(filling{[]byte(`{"usual_quality":[`), `[],`, 5 << 20, `[]]}`, true}))
	for name, size := range map[string]int64{"zeros.flank": 256 << 20, "endless.flank": 1 << 40} {
		if err := os.Truncate(add(name, filling{head: []byte("FLANKMDL")}), size); err != nil { // sparse
			t.Fatal(err)
		}
	}
}

// goldenBomb is a section of golden vectors of one number each.
func goldenBomb(rows int) filling {
	b := binary.LittleEndian.AppendUint32(nil, uint32(rows))
	return filling{head: append(b, 1, 0, 0, 0, 0, 0, 0, 0), unit: "\x00\x00\x00\x00", times: rows}
}

// withSection returns a model without its checksum in which one section is the last, up to that section's length.
func withSection(model []byte, section string) []byte {
	out := append([]byte(nil), model[:16]...)
	count := uint32(0)
	named := func(name string) {
		out = append(append(out, byte(len(name))), name...)
		count++
	}
	for rest := model[16:]; len(rest) > 0; {
		name := string(rest[1 : 1+rest[0]])
		rest = rest[1+len(name):]
		n := binary.LittleEndian.Uint64(rest)
		if name != section {
			named(name)
			out = append(out, rest[:8+n]...)
		}
		rest = rest[8+n:]
	}
	named(section)
	binary.LittleEndian.PutUint32(out[12:], count)
	return out
}

// textBombs are tables as text.
func textBombs() map[string]filling {
	const mb = 1 << 20
	return map[string]filling{
		"line":       repeat("a", 64*mb),
		"separators": repeat(",", 64*mb),
		"quote":      after(`"`, repeat("a,\n", 64*mb), ""),
		"quotes":     repeat(`"",`, 64*mb),
		"zeros":      repeat("\x00", 64*mb),
		"columns":    after("", repeat("c,", 4*mb-64), "c\n1\n"),
		"same":       after("", repeat("c,", 1*mb), "c\n1\n"),
		"ragged":     after("machine,tool,x\n", repeat("a,b,1,2,3,4\n", 16*mb), ""),
		"numbers":    after("machine,tool,x\n", repeat("1", 3*mb), "\n"),
		"returns":    repeat("\r", 64*mb),
	}
}

func yamlBombs() map[string]filling {
	aliases := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%[1]c [%s]\n", c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	return map[string]filling{
		"aliases": {head: []byte(aliases)}, "nested": repeat("[", 1<<18), "nested-maps": repeat("{a: ", 1<<18), "dashes": repeat("- ", 1<<18),
		"list": after("a: [", repeat("1,", 1<<20-64), ""), "short-list": after("a: [", repeat("1,", 1<<20-64), "1]"),
		"long": repeat("a: 1\n", 64<<20), "one-line": after("a: ", repeat("x", 64<<20), ""), "indents": repeat("a:\n ", 1<<18),
		"documents": repeat("---\n", 1<<18), "anchors": repeat("? &a a\n: *a\n", 1<<18), "zeros": repeat("\x00", 32<<20), "escapes": after(`a: "`, repeat(`\U0010FFFF`, 1<<20-64), ""),
	}
}

// parquetBomb returns a small file that holds 200,000 equal rows.
func parquetBomb(t *testing.T) []byte {
	t.Helper()
	type row struct {
		Machine string  `parquet:"machine,dict,zstd"`
		Tool    string  `parquet:"tool,dict,zstd"`
		X       float64 `parquet:"x,dict,zstd"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.PageBufferSize(8<<20))
	rows := make([]row, 100_000)
	for i := range rows {
		rows[i] = row{"m", "t", 1}
	}
	for range 2 {
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func arrowBomb(t *testing.T) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "machine", Type: arrow.BinaryTypes.String}, {Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil)
	r := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer r.Release()
	for i := range 200 {
		r.Field(0).(*array.StringBuilder).Append("m")
		r.Field(1).(*array.Float64Builder).Append(float64(i))
	}
	rec := r.NewRecord()
	defer rec.Release()
	path := filepath.Join(t.TempDir(), "a.arrow")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(rec), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func evidenceFile(t *testing.T) []byte {
	t.Helper()
	l, err := signal.NewLayout("one", []signal.Channel{{Name: "ch01", Kind: signal.Vibration, Unit: "g", Rate: 2000}})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(l, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := codec.NewFileWriter(&b)
	at := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	for i := range 3 {
		if err := w.Write(&window.Window{
			Context: signal.Context{Machine: "m"}, Epoch: 1, Seq: uint64(i), Start: at.Add(time.Duration(i) * time.Second), Length: time.Second,
			Samples: [][]float32{make([]float32, 2000)}, Quality: make([]signal.Quality, 1),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
