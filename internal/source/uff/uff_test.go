package uff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/source/track/tracktest"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// function is a data set 58 to be written.
type function struct {
	id, date, response  string // the response as 31 columns: name, node, direction
	kind, even, of      int    // of numbers; 1 if evenly spaced; function type
	begin, step         string
	abscissa, unit      string
	label               string
	values              []float64
	count               int // of values; 0: as many as there are
	order               binary.ByteOrder
	claimed, sign, mode int // bytes, byte order and floating-point format that it says; 0: as they are
}

func (d function) bytes() []byte {
	if d.kind == 0 {
		d.kind = 4
	}
	parts := 1
	if d.kind > 4 {
		parts = 2
	}
	if d.count == 0 {
		d.count = len(d.values) / parts
	}
	single := d.kind == 2 || d.kind == 5
	var data bytes.Buffer
	for i, v := range d.values {
		switch {
		case d.order != nil && single:
			binary.Write(&data, d.order, float32(v))
		case d.order != nil:
			binary.Write(&data, d.order, v)
		case single:
			fmt.Fprintf(&data, "%13.5e%s", v, map[bool]string{true: "\n"}[i%6 == 5 || i == len(d.values)-1])
		default:
			fmt.Fprintf(&data, "%20.12e%s", v, map[bool]string{true: "\n"}[i%4 == 3 || i == len(d.values)-1])
		}
	}
	or := func(s, other string) string { return map[bool]string{true: other, false: s}[s == ""] }
	var b bytes.Buffer
	fmt.Fprintf(&b, "    -1\n    58")
	if d.order != nil {
		if d.claimed == 0 {
			d.claimed = data.Len()
		}
		if d.sign == 0 {
			d.sign = map[binary.ByteOrder]int{binary.LittleEndian: 1, binary.BigEndian: 2}[d.order]
		}
		if d.mode == 0 {
			d.mode = 2
		}
		fmt.Fprintf(&b, "b%6d%6d%12d%12d%6d%6d%12d%12d", d.sign, d.mode, 11, d.claimed, 0, 0, 0, 0)
	}
	fmt.Fprintf(&b, "\n%-80s\n%-80s\n%-80s\n%-80s\n%-80s\n", or(d.id, "NONE"), "NONE", or(d.date, "NONE"), "NONE", "NONE")
	fmt.Fprintf(&b, "%5d%10d%5d%10d %s %10s%10d%4d\n", d.of, 0, 0, 0, or(d.response, "NONE               0   0"), "NONE", 0, 0)
	fmt.Fprintf(&b, "%10d%10d%10d%13s%13s%13.5e\n", d.kind, d.count, d.even, or(d.begin, "0.00000e+00"), or(d.step, "1.00000e-03"), 0.0)
	fmt.Fprintf(&b, "%10s%5d%5d%5d %-20s %-20s\n", or(d.abscissa, "17"), 0, 0, 0, "Time", or(d.unit, "s"))
	fmt.Fprintf(&b, "%10d%5d%5d%5d %-20s %-20s\n", 12, 0, 0, 0, or(d.label, "NONE"), "m/s2")
	fmt.Fprintf(&b, "%10d%5d%5d%5d %-20s %-20s\n%[1]*[2]d%5[2]d%5[2]d%5[2]d %-20[5]s %-20[6]s\n", 10, 0, 0, 0, "NONE", "NONE")
	b.Write(data.Bytes())
	fmt.Fprintf(&b, "    -1\n")
	return b.Bytes()
}

// point10 is a response of 24 columns.
func point10(name string, node, direction int) string {
	return fmt.Sprintf("%-10s%10d%4d", name, node, direction)
}

func join(ds ...function) (out []byte) {
	for _, d := range ds {
		out = append(out, d.bytes()...)
	}
	return out
}

var values = []float64{1, -2.5, 3, 0, 4096, -6, 7}

func time1(response string, values ...float64) function {
	return function{response: response, of: 1, even: 1, values: values}
}

type fixture struct {
	name   string
	file   []byte
	tracks string // group/name unit rate, one after another
	values [][]float64
	notes  []string
}

func fixtures() []fixture {
	with := func(d function, change func(d *function)) function {
		change(&d)
		return d
	}
	x, y := time1(point10("", 12, 1), values...), time1(point10("", 12, -2), values[:3]...)
	single := func(d *function) { d.kind = 2 }
	at := func(begin string) func(*function) { return func(d *function) { d.begin = begin } }
	dated := func(date string) func(*function) { return func(d *function) { d.date = date } }
	rate := func(d *function) { d.step = "1.00000e-01" }
	both := [][]float64{values, values[:3]}
	complexes := [][]float64{{1, 3, 4096}, {-2.5, 0, -6}}
	imaginary := with(time1(point10("", 1, 3), values[:6]...), func(d *function) { d.kind = 6 })
	order := func(o binary.ByteOrder) func(*function) { return func(d *function) { d.order = o } }
	half := func(d *function) { d.claimed = 24 }
	file := []fixture{
		{"text-double", join(x, y), "12+X m/s2 1000; 12-Y m/s2 1000", both, nil},
		{"text-single", join(with(x, single), with(y, single)), "12+X m/s2 1000; 12-Y m/s2 1000", both, nil},
		{"little-double", join(with(x, order(binary.LittleEndian)), with(y, order(binary.LittleEndian))), "12+X m/s2 1000; 12-Y m/s2 1000", both, nil},
		{"big-double", join(with(x, order(binary.BigEndian))), "12+X m/s2 1000", both[:1], nil},
		{"big-single", join(with(with(x, single), order(binary.BigEndian)), with(with(y, single), order(binary.BigEndian))), "12+X m/s2 1000; 12-Y m/s2 1000", both, nil},
		{"text-complex", join(imaginary), "1+Z (re) m/s2 1000; 1+Z (im) m/s2 1000", complexes, nil},
		{"little-complex", join(with(imaginary, order(binary.LittleEndian))), "1+Z (re) m/s2 1000; 1+Z (im) m/s2 1000", complexes, nil},
		{"half-the-bytes", join(with(with(imaginary, order(binary.LittleEndian)), half)), "1+Z (re) m/s2 1000; 1+Z (im) m/s2 1000", complexes, nil},
		{"date", join(with(x, dated("02-Nov-26 06:00:00")), with(y, dated("by M2 10/B"))), "12+X m/s2 1000; 12-Y m/s2 1000", both, nil},
		{"other-date", join(with(x, dated("05/03/26 06:00:00")), with(y, dated("05/03/26 06:00:00"))), "12+X m/s2 1000; 12-Y m/s2 1000", both, []string{
			`the date "05/03/26 06:00:00" of data set 1 at line 1 is not as the standard writes it, 02-NOV-26 06:00:00, and is not read: name the start by --start`,
		}},
		{"two-rates", join(x, with(y, rate)), "12+X m/s2 1000; 12-Y m/s2 10", both, nil},
		{"entities", join(time1(point10("spindle", 3, 4), 1), time1(point10("table", 0, 0), 2)), "spindle:3+RX m/s2 1000; table m/s2 1000", [][]float64{{1}, {2}}, nil},
		{"by-id", join(with(x, func(d *function) { d.id = "thrust" }), with(x, func(d *function) { d.id = "torque \xb5" })), "thrust m/s2 1000; torque µ m/s2 1000", [][]float64{values, values}, nil},
		{"by-label", join(with(x, func(d *function) { d.label = "force" }), with(x, func(d *function) { d.label = "acc" })), "force m/s2 1000; acc m/s2 1000", [][]float64{values, values}, nil},
		{"without-names", join(time1("", 1), time1("", 2)), "1 m/s2 1000; 2 m/s2 1000", [][]float64{{1}, {2}}, nil},
		{"again", join(x, y, x, y), "1/12+X m/s2 1000; 1/12-Y m/s2 1000; 2/12+X m/s2 1000; 2/12-Y m/s2 1000", append(both, both...), []string{"channels that are recorded several times"}},
		{"goes-on", join(x, with(x, at("7.00000e-03")), with(x, at("1.40004e-02"))), "12+X m/s2 1000", [][]float64{slices.Concat(values, values, values)}, nil},
		{"six-digits", join(with(x, func(d *function) { d.step = "1.95312e-04" })), "12+X m/s2 5120", both[:1], nil},
		{"milliseconds", join(with(x, func(d *function) { d.step, d.unit = "2.00000e+00", "ms" })), "12+X m/s2 500", both[:1], nil},
		{"left-out", join(x, with(x, func(d *function) { d.of = 4 }), with(with(imaginary, order(binary.LittleEndian)), func(d *function) { d.of, d.claimed = 12, 24 }), with(y, func(d *function) { d.even = 0 })),
			"12+X m/s2 1000", both[:1], []string{
				"data set 2 at line 17 is left out: it is a frequency response function, not a time response; data set 3 at line 33 is left out: it is a spectrum, not a time response; data set 4 at byte 2952 is left out: its values are not evenly spaced",
			}},
		{"other-sets", slices.Concat([]byte("    -1\n   151\nmodel\n    -1\n"), x.bytes(), []byte("\n    -1\n  2411\n    -1\n")), "12+X m/s2 1000", both[:1], []string{"data sets without functions are left out: 2411"}},
	}
	spaced := bytes.ReplaceAll(x.bytes(), []byte("\n"), []byte("\r\n"))
	file = append(file, fixture{"windows", spaced, "12+X m/s2 1000", both[:1], nil})
	text := string(join(imaginary))
	end := strings.LastIndex(text, "    -1\n")
	file = append(file, fixture{"blank-line", []byte(text[:end] + "\n   \n" + text[end:]), "1+Z (re) m/s2 1000; 1+Z (im) m/s2 1000", complexes, nil},
		fixture{"on-two-lines", []byte(text[:end-21] + "\n" + text[end-21:]), "1+Z (re) m/s2 1000; 1+Z (im) m/s2 1000", complexes, nil})
	fused := join(time1(point10("", 12, 1), -1e-100, -2, 3))
	fused = bytes.Replace(fused, []byte(" -1.000000000000e-100 -2.000000000000e+00  3.000000000000e+00"), []byte("-1.00000000000D-0100-2.00000000000D+0000  3.00000000000D+000"), 1)
	return append(file, fixture{"fused", fused, "12+X m/s2 1000", [][]float64{{-1e-100, -2, 3}}, nil})
}

func open(file []byte) (track.Contents, error) {
	return newFile(bytes.NewReader(file), int64(len(file)), "f.uff")
}

func TestFixtures(t *testing.T) {
	for _, fx := range fixtures() {
		f, err := open(fx.file)
		if err != nil {
			t.Errorf("%s: %v", fx.name, err)
			continue
		}
		var got []string
		for i, info := range f.Tracks() {
			got = append(got, fmt.Sprintf("%s %s %.9g", info.Path(), info.Unit, info.Rate))
			x, err := tracktest.Read(f, i)
			if err != nil || i >= len(fx.values) || !slices.Equal(x, fx.values[i]) || info.Len != int64(len(x)) {
				t.Errorf("%s: %s: %v, err %v", fx.name, info.Path(), x, err)
			}
		}
		if strings.Join(got, "; ") != fx.tracks {
			t.Errorf("%s: %q, want %q", fx.name, got, fx.tracks)
		}
		if len(f.Notes()) != len(fx.notes) {
			t.Errorf("%s: notes %q, want %q", fx.name, f.Notes(), fx.notes)
		}
		for i, note := range f.Notes()[:min(len(fx.notes), len(f.Notes()))] {
			if !strings.HasPrefix(note, fx.notes[i]) {
				t.Errorf("%s: note %q, want %q", fx.name, note, fx.notes[i])
			}
		}
		if !Format.Like.Match(fx.file) {
			t.Errorf("%s: it does not look like UFF", fx.name)
		}
	}
}

// Tables whose first value is -1 are none.
func TestLike(t *testing.T) {
	for _, table := range []string{"-1\n58\n", "    -1   2\n    58   3\n", "    -1\n", "    -1\n  0.58\n"} {
		if Format.Like.MatchString(table) {
			t.Errorf("%q looks like UFF", table)
		}
	}
}

// What pyuff wrote is read as it says.
func TestWrittenByPyuff(t *testing.T) {
	for name, want := range map[string]struct {
		tracks int
		value  float64 // the last one of the first track
		count  int
	}{"pyuff-text.uff": {3, 0.593748071786, 17}, "pyuff-complex.uff": {6, -2.7111624789659685, 9}} {
		file, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		f, err := open(file)
		if err != nil {
			t.Fatal(err)
		}
		x, err := tracktest.Read(f, 0)
		info := f.Tracks()[0]
		if err != nil || len(f.Tracks()) != want.tracks || x[len(x)-1] != want.value || len(x) != want.count || info.Unit != "m/s2" || math.Abs(info.Rate-5000) > 1e-9 || !info.Start.Equal(time.Date(2026, 11, 26, 10, 20, 30, 0, time.UTC)) {
			t.Errorf("%s: %+v, %v, %v", name, f.Tracks(), x, err)
		}
	}
}

func TestErrors(t *testing.T) {
	x := time1(point10("", 12, 1), values...)
	change := func(f func(d *function)) []byte { d := x; f(&d); return d.bytes() }
	little := func(d *function) { d.order = binary.LittleEndian }
	text := x.bytes()
	bin := change(little)
	var out strings.Builder
	for _, tc := range []struct {
		name string
		file []byte
	}{
		{"empty", nil},
		{"another format", []byte("time,ax\n1,2\n3,4\n")},
		{"values before the first data set", slices.Concat(bin[len(bin)-40:], text)},
		{"a word between data sets", slices.Concat(text, []byte("x\n"), text)},
		{"only geometry", []byte("    -1\n    15\n 1\n    -1\n")},
		{"a spectrum", change(func(d *function) { d.of = 12 })},
		{"unknown type", change(func(d *function) { d.of = 77 })},
		{"by frequency", change(func(d *function) { d.abscissa = "18" })},
		{"in minutes", change(func(d *function) { d.unit = "min" })},
		{"uneven", change(func(d *function) { d.even = 0 })},
		{"type of values", change(func(d *function) { d.kind = 3 })},
		{"no step", change(func(d *function) { d.step = "0.00000e+00" })},
		{"step in words", change(func(d *function) { d.step = "x" })},
		{"begins nowhere", change(func(d *function) { d.begin = "NaN" })},
		{"no values", change(func(d *function) { d.values = nil })},
		{"more values than there are", change(func(d *function) { d.count = 9 })},
		{"fewer values than there are", change(func(d *function) { d.count = 3 })},
		{"fewer lines than there are", change(func(d *function) { d.count = 4 })},
		{"cut off in the head", text[:400]},
		{"cut off in the values", text[:len(text)-40]},
		{"no node", bytes.Replace(text, []byte("        12"), []byte("        1x"), 1)},
		{"not a number", bytes.Replace(text, []byte(" 3.000000000000e+00"), []byte(" 3.0000x0000000e+00"), 1)},
		{"binary cut off", bin[:len(bin)-20]},
		{"more bytes than there are", change(func(d *function) { little(d); d.count = 1 << 30 })},
		{"fewer bytes than there are", change(func(d *function) { little(d); d.count = 3 })},
		{"numbers of DEC", change(func(d *function) { little(d); d.mode = 1 })},
		{"byte order 3", change(func(d *function) { little(d); d.sign = 3 })},
		{"58b without numbers", []byte("    -1\n    58b     1     2\n")},
		{"58b with words", []byte("    -1\n    58b     1     2  eleven  7\n")},
	} {
		f, err := open(tc.file)
		if err == nil {
			_, err = tracktest.Read(f, 0)
		}
		if err == nil {
			t.Errorf("%s: no error", tc.name)
		}
		fmt.Fprintf(&out, "# %s\n%v\n\n", tc.name, err)
	}
	golden.Check(t, "errors.golden", out.String())
}

// TestWriteFixtures writes the fixtures for make peers-formats that pyuff reads, too.
func TestWriteFixtures(t *testing.T) {
	dir := tracktest.FixtureFolder(t)
	for _, fx := range fixtures()[:7] {
		if err := os.WriteFile(filepath.Join(dir, fx.name+".uff"), fx.file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzUFF(f *testing.F) {
	for _, fx := range fixtures() {
		f.Add(fx.file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := open(file)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "uff: f.uff: ") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		for i, info := range r.Tracks()[:min(len(r.Tracks()), 50)] {
			if x, err := tracktest.Read(r, i); err == nil && int64(len(x)) != info.Len {
				t.Fatalf("%s: %d of %d values", info.Path(), len(x), info.Len)
			}
		}
	})
}
