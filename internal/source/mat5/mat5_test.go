package mat5

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/source/track/tracktest"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
)

// build writes MAT-files for tests.
type build struct {
	out bytes.Buffer
	big bool
}

func (b *build) order() binary.AppendByteOrder {
	if b.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (b *build) header() *build {
	head := append([]byte("MATLAB 5.0 MAT-file"), bytes.Repeat([]byte{' '}, 105)...)
	b.out.Write(head)
	if b.big {
		b.out.WriteString("\x01\x00MI")
	} else {
		b.out.WriteString("\x00\x01IM")
	}
	return b
}

// element is a tag with data, padded. Up to four bytes go into the tag.
func (b *build) element(k kind, data []byte) []byte {
	o := b.order()
	if n := len(data); n > 0 && n <= 4 {
		e := o.AppendUint32(nil, uint32(n)<<16|uint32(k))
		return append(append(e, data...), make([]byte, 4-n)...)
	}
	e := o.AppendUint32(o.AppendUint32(nil, uint32(k)), uint32(len(data)))
	return append(append(e, data...), make([]byte, -len(data)&7)...)
}

func (b *build) raw(v any) []byte {
	var out bytes.Buffer
	var o binary.ByteOrder = binary.LittleEndian
	if b.big {
		o = binary.BigEndian
	}
	if err := binary.Write(&out, o, v); err != nil {
		panic("mat5: build: " + err.Error())
	}
	return out.Bytes()
}

// matrix is a matrix of a class with what follows its name.
func (b *build) matrix(name string, class uint32, dims []int32, rest ...[]byte) []byte {
	body := b.element(kindUint32, b.raw([]uint32{class, 0}))
	body = append(body, b.element(kindInt32, b.raw(dims))...)
	body = append(body, b.element(kindInt8, []byte(name))...)
	for _, r := range rest {
		body = append(body, r...)
	}
	return b.element(kindMatrix, body)
}

// numbers is an array of doubles stored in a type.
func (b *build) numbers(name string, rows, columns int32, k kind, values any) []byte {
	return b.matrix(name, classDouble, []int32{rows, columns}, b.element(k, b.raw(values)))
}

// structure is an array of structures.
func (b *build) structure(name string, n int32, fields []string, values ...[]byte) []byte {
	var names []byte
	for _, f := range fields {
		names = append(names, append([]byte(f), make([]byte, 32-len(f))...)...)
	}
	rest := [][]byte{b.element(kindInt32, b.raw([]int32{32})), b.element(kindInt8, names)}
	return b.matrix(name, classStruct, []int32{1, n}, append(rest, values...)...)
}

func (b *build) compressed(element []byte) []byte {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(element)
	w.Close()
	return append(b.order().AppendUint32(b.order().AppendUint32(nil, kindCompressed), uint32(z.Len())), z.Bytes()...)
}

type fixture struct {
	name   string
	file   []byte
	values map[string][]float64
	left   int // variables
}

func fixtures() (fs []fixture) {
	for _, big := range []bool{false, true} {
		for _, compress := range []bool{false, true} {
			b := &build{big: big}
			b.header()
			add := func(element []byte) {
				if compress {
					element = b.compressed(element)
				}
				b.out.Write(element)
			}
			add(b.numbers("i8", 3, 1, kindInt8, []int8{-1, 2, 3}))
			add(b.numbers("u8", 1, 2, kindUint8, []uint8{200, 2}))
			add(b.numbers("i16", 1, 3, kindInt16, []int16{-300, 1, 2}))
			add(b.numbers("u16", 1, 1, kindUint16, []uint16{65535}))
			add(b.numbers("i32", 2, 1, kindInt32, []int32{-70000, 1}))
			add(b.numbers("u32", 1, 1, kindUint32, []uint32{4e9}))
			add(b.numbers("f32", 1, 2, kindFloat32, []float32{0.1, 2}))
			add(b.numbers("f64", 1, 2, kindFloat64, []float64{0.1, 2}))
			add(b.matrix("i64", 14, []int32{1, 1}, b.element(kindInt64, b.raw([]int64{-1 << 40}))))
			add(b.matrix("u64", 15, []int32{1, 1}, b.element(kindUint64, b.raw([]uint64{1 << 60}))))
			add(b.numbers("tall", 3, 2, kindUint8, []uint8{1, 2, 3, 4, 5, 6}))
			add(b.numbers("wide", 2, 3, kindInt16, []int16{1, 2, 3, 4, 5, 6}))
			add(b.matrix("deep", classDouble, []int32{1, 1, 3}, b.element(kindUint8, []byte{7, 8, 9})))
			add(b.matrix("cube", classDouble, []int32{2, 2, 2}, b.element(kindUint8, make([]byte, 8))))
			add(b.matrix("row", classDouble, []int32{1, 3, 2}, b.element(kindUint8, make([]byte, 6)))) // two channels, not one of 6 values
			add(b.matrix("text", classChar, []int32{1, 2}, b.element(kindUint8, []byte("ab"))))
			add(b.matrix("empty", classDouble, []int32{0, 0}, b.element(kindFloat64, nil)))
			add(b.matrix("complex", classDouble|0x800, []int32{1, 1}, b.element(kindUint8, []byte{1}), b.element(kindUint8, []byte{1})))
			add(b.structure("s", 1, []string{"x", "text", "inner", "none", "y"},
				b.numbers("", 2, 1, kindUint8, []uint8{1, 2}),
				b.matrix("", classChar, []int32{1, 9}, b.element(kindUint8, []byte("not a number"[:9]))),
				b.structure("", 2, []string{"z"}, b.numbers("", 1, 1, kindFloat64, []float64{0.5}), b.numbers("", 1, 1, kindUint8, []uint8{9})),
				b.element(kindMatrix, nil),
				b.numbers("", 2, 2, kindInt16, []int16{1, 2, 3, 4})))
			name := fmt.Sprintf("big %v, compressed %v", big, compress)
			fs = append(fs, fixture{name, bytes.Clone(b.out.Bytes()), map[string][]float64{
				"i8": {-1, 2, 3}, "u8": {200, 2}, "i16": {-300, 1, 2}, "u16": {65535}, "i32": {-70000, 1}, "u32": {4e9}, "f32": {float64(float32(0.1)), 2},
				"f64": {0.1, 2}, "i64": {-1 << 40}, "u64": {1 << 60}, "tall(:,1)": {1, 2, 3}, "tall(:,2)": {4, 5, 6}, "wide(1,:)": {1, 3, 5}, "wide(2,:)": {2, 4, 6},
				"deep": {7, 8, 9}, "s.x": {1, 2}, "s.inner(1).z": {0.5}, "s.inner(2).z": {9}, "s.y(:,1)": {1, 2}, "s.y(:,2)": {3, 4},
			}, 5})
		}
	}
	return fs
}

func TestFixtures(t *testing.T) {
	for _, fx := range fixtures() {
		f, err := newFile(bytes.NewReader(fx.file), int64(len(fx.file)), "f.mat")
		if err != nil {
			t.Errorf("%s: %v", fx.name, err)
			continue
		}
		if len(f.Tracks()) != len(fx.values) || len(f.Notes()) != fx.left {
			t.Errorf("%s: tracks %+v, want %d; notes %q", fx.name, f.Tracks(), len(fx.values), f.Notes())
		}
		for i, info := range f.Tracks() {
			x, err := tracktest.Read(f, i)
			if want := fx.values[info.Name]; err != nil || !slices.Equal(x, want) || info.Len != int64(len(want)) {
				t.Errorf("%s: %s: %v, err %v, want %v", fx.name, info.Name, x, err, want)
			}
		}
	}
}

// Arrays that are far shorter than the others are not taken as channels; the others keep their values.
func TestFacts(t *testing.T) {
	x := []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	b := new(build).header()
	b.out.Write(b.compressed(b.structure("s", 1, []string{"RPM", "dt", "x"}, b.numbers("", 1, 1, kindUint8, x[:1]), b.numbers("", 1, 1, kindFloat64, []float64{0.0025}), b.numbers("", 10, 1, kindUint8, x))))
	f, err := newFile(bytes.NewReader(b.out.Bytes()), int64(b.out.Len()), "f.mat")
	if err != nil || len(f.Tracks()) != 1 || len(f.Notes()) != 2 || f.Notes()[1] != "s.dt is 0.0025: give --rate 400, if that is the samples a second" {
		t.Fatalf("%v, %+v", err, f)
	}
	if got, err := tracktest.Read(f, 0); err != nil || len(got) != 10 || got[9] != 9 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestErrors(t *testing.T) {
	file := func(elements ...[]byte) []byte {
		b := new(build).header()
		for _, e := range elements {
			b.out.Write(e)
		}
		return b.out.Bytes()
	}
	var b build
	one := b.numbers("x", 2, 1, kindFloat64, []float64{1, 2})
	patch := func(at int, v ...byte) []byte {
		e := bytes.Clone(one)
		copy(e[at:], v)
		return e
	}
	nested := b.numbers("", 1, 1, kindUint8, []uint8{1})
	for range maxDepth + 2 {
		nested = b.structure("", 1, []string{"s"}, nested)
	}
	long := b.compressed(b.numbers("x", 100, 1, kindFloat64, make([]float64, 100)))
	var out strings.Builder
	for _, tc := range []struct {
		name string
		file []byte
	}{
		{"empty", nil},
		{"version 7.3", append([]byte("MATLAB 7.3 MAT-file"), make([]byte, 200)...)},
		{"another format", []byte(strings.Repeat("time,ax\n", 50))},
		{"no variable", file()},
		{"only text", file(b.matrix("t", classChar, []int32{1, 2}, b.element(kindUint8, []byte("ab"))))},
		{"breaks off in a tag", file(one[:5])},
		{"breaks off in a variable", file(one[:50])},
		{"no variable where one should begin", file(patch(0, 9))},
		{"no flags", file(patch(8, 9))},
		{"negative dimension", file(patch(32, 0xff, 0xff, 0xff, 0xff))},
		{"one dimension", file(b.matrix("x", classDouble, []int32{2}, b.element(kindUint8, []byte{1, 2})))},
		{"dimensions beyond measure", file(b.matrix("x", classDouble, []int32{1 << 30, 1 << 30}, b.element(kindUint8, []byte{1, 2})))},
		{"values do not fill the array", file(b.matrix("x", classDouble, []int32{2, 2}, b.element(kindUint8, []byte{1, 2})))},
		{"values of no type", file(b.matrix("x", classDouble, []int32{1, 2}, b.element(99, []byte{1, 2})))},
		{"values beyond the variable", file(patch(4, 56))},
		{"no zlib", file(b.element(kindCompressed, make([]byte, 16)))},
		{"no matrix in zlib", file(b.compressed(b.element(kindUint8, make([]byte, 16))))},
		{"nested without end", file(nested)},
		{"field that is not a matrix", file(b.structure("s", 1, []string{"x"}, b.element(kindUint8, make([]byte, 8))))},
		{"compressed values break off", file(append(b.order().AppendUint32(b.order().AppendUint32(nil, kindCompressed), uint32(len(long)-8-20)), long[8:len(long)-20]...))},
	} {
		f, err := newFile(bytes.NewReader(tc.file), int64(len(tc.file)), "f.mat")
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

// TestMemory inflates 256 MiB of zeros.
func TestMemory(t *testing.T) {
	const n = 32 << 20
	var b build
	head := b.numbers("x", n, 1, kindFloat64, []float64{})
	b.order().(binary.ByteOrder).PutUint32(head[4:], uint32(len(head)-8+8*n))
	b.order().(binary.ByteOrder).PutUint32(head[len(head)-4:], 8*n)
	var z bytes.Buffer
	w, err := zlib.NewWriterLevel(&z, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(head)
	for range n / 512 {
		w.Write(make([]byte, 4096))
	}
	w.Close()
	b.header()
	b.out.Write(append(b.order().AppendUint32(b.order().AppendUint32(nil, kindCompressed), uint32(z.Len())), z.Bytes()...))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := newFile(bytes.NewReader(b.out.Bytes()), int64(b.out.Len()), "f.mat")
	if err != nil {
		t.Fatal(err)
	}
	read := tracktest.Count(t, f, 0)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; read != n || grown > 2<<20 {
		t.Errorf("%d values read, %d bytes allocated", read, grown)
	}
}

func TestRecordedLathe(t *testing.T) {
	dir := recorded.Folder(t)
	f, err := Format.Open(filepath.Join(dir, "cnc-lathe-mat", "Data_KS-NPC-6FF_0.mat"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	long := 0
	for _, info := range f.Tracks() {
		if info.Len == 177_000 {
			long++
		}
	}
	// 12 variables, of which TimeStamp is text.
	if long != 11 || len(f.Notes()) != 1 {
		t.Errorf("%d channels, notes %q", long, f.Notes())
	}
}

// TestWriteFixtures writes the fixtures for make peers-formats.
func TestWriteFixtures(t *testing.T) {
	dir := tracktest.FixtureFolder(t)
	for i, fx := range fixtures() {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("fixture-%d.mat", i)), fx.file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzMAT(f *testing.F) {
	for _, fx := range fixtures() {
		f.Add(fx.file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := newFile(bytes.NewReader(file), int64(len(file)), "f.mat")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "mat5: f.mat: ") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		for i, info := range r.Tracks()[:min(len(r.Tracks()), 50)] {
			x, err := tracktest.Read(r, i)
			if err == nil && int64(len(x)) != info.Len {
				t.Fatalf("%s: %d of %d values", info.Name, len(x), info.Len)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "mat5: f.mat: ") {
				t.Fatalf("error does not name the file: %v", err)
			}
		}
	})
}
