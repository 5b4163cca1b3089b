package npy

import (
	"archive/zip"
	"bytes"
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
)

// npy is a file of version 1.0, or of another.
func npy(version byte, descr string, fortran bool, shape string, values any) []byte {
	order := "False"
	if fortran {
		order = "True"
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n", descr, order, shape)
	out := append([]byte("\x93NUMPY"), version, 0)
	if version == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(head)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	}
	var data bytes.Buffer
	var o binary.ByteOrder = binary.LittleEndian
	if descr[0] == '>' {
		o = binary.BigEndian
	}
	if err := binary.Write(&data, o, values); err != nil {
		panic(err)
	}
	return append(append(out, head...), data.Bytes()...)
}

type member struct {
	name string
	data []byte
}

func npz(method uint16, members ...member) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Method: method})
		if err != nil {
			panic(err)
		}
		w.Write(m.data)
	}
	z.Close()
	return out.Bytes()
}

type fixture struct {
	name   string
	file   []byte
	values map[string][]float64
	notes  int
}

func fixtures() []fixture {
	six := []int16{1, 2, 3, 4, 5, 6}
	members := []member{
		{"DE.npy", npy(1, "<f8", false, "3, 1", []float64{1, 2, 3})}, {"two.npy", npy(1, "<i2", false, "3, 2", six)}, {"lying.npy", npy(1, "<i2", false, "2, 3", six)},
		{"complex.npy", npy(1, "<c16", false, "1,", []float64{1, 2})}, {"cube.npy", npy(1, "|u1", false, "1, 1, 1", []byte{1})}, {"README", []byte("x")},
		{"text.npy", npy(1, "<U3", false, "1,", make([]byte, 12))},
	}
	values := map[string][]float64{"DE": {1, 2, 3}, "two[:,0]": {1, 3, 5}, "two[:,1]": {2, 4, 6}, "lying[0,:]": {1, 2, 3}, "lying[1,:]": {4, 5, 6}}
	return []fixture{
		{"vector.npy", npy(1, "<f8", false, "3,", []float64{1, 2, 0.5}), map[string][]float64{"1": {1, 2, 0.5}}, 0},
		{"scalar.npy", npy(1, "<f4", false, "", []float32{0.1}), map[string][]float64{"1": {float64(float32(0.1))}}, 0},
		{"big-endian.npy", npy(2, ">i4", false, "2,", []int32{-7, 1 << 30}), map[string][]float64{"1": {-7, 1 << 30}}, 0},
		{"unsigned.npy", npy(3, ">u8", false, "2,", []uint64{1 << 60, 3}), map[string][]float64{"1": {1 << 60, 3}}, 0},
		{"truth.npy", npy(1, "|b1", false, "2,", []byte{0, 1}), map[string][]float64{"1": {0, 1}}, 0},
		{"columns.npy", npy(1, "<i2", false, "3, 2", six), map[string][]float64{"1": {1, 3, 5}, "2": {2, 4, 6}}, 0},
		{"fortran.npy", npy(1, "<i2", true, "3, 2", six), map[string][]float64{"1": {1, 2, 3}, "2": {4, 5, 6}}, 0},
		{"lying.npy", npy(1, "<i2", false, "2, 3", six), map[string][]float64{"1": {1, 2, 3}, "2": {4, 5, 6}}, 0},
		{"lying-fortran.npy", npy(1, "<i2", true, "2, 3", six), map[string][]float64{"1": {1, 3, 5}, "2": {2, 4, 6}}, 0},
		{"stored.npz", npz(zip.Store, members...), values, 4},
		{"deflated.npz", npz(zip.Deflate, members...), values, 4},
	}
}

func TestFixtures(t *testing.T) {
	for _, fx := range fixtures() {
		f, err := newFile(bytes.NewReader(fx.file), int64(len(fx.file)), fx.name)
		if err != nil {
			t.Errorf("%s: %v", fx.name, err)
			continue
		}
		if len(f.Tracks()) != len(fx.values) || len(f.Notes()) != fx.notes {
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
	x := []int16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	file := npz(zip.Deflate, member{"fs.npy", npy(1, "<f8", false, "", []float64{12000})}, member{"x.npy", npy(1, "<i2", false, "10,", x)})
	f, err := newFile(bytes.NewReader(file), int64(len(file)), "f.npz")
	if err != nil || len(f.Tracks()) != 1 || len(f.Notes()) != 2 || f.Notes()[1] != "fs is 12000: give --rate 12000, if that is the samples a second" {
		t.Fatalf("%v, %+v", err, f)
	}
	if got, err := tracktest.Read(f, 0); err != nil || fmt.Sprint(got) != fmt.Sprint(x) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestErrors(t *testing.T) {
	one := npy(1, "<f8", false, "3,", []float64{1, 2, 3})
	var out strings.Builder
	for _, tc := range []struct {
		name string
		file []byte
	}{
		{"empty", nil},
		{"another format", []byte("time,ax\n1,2\n")},
		{"ends in its header", one[:20]},
		{"values end", one[:len(one)-4]},
		{"another version", npy(9, "<f8", false, "3,", []float64{1})},
		{"header without end", append([]byte("\x93NUMPY\x02\x00\xff\xff\xff\x7f"), one...)},
		{"no shape", npy(1, "<f8", false, "x", []float64{1})},
		{"shape beyond measure", npy(1, "<f8", false, "9999999999, 9999999999", []float64{1})},
		{"no values", npy(1, "<f8", false, "0,", []float64{})},
		{"too many channels", npy(1, "|u1", false, "5000, 5000", make([]byte, 25_000_000))},
		{"text", npy(1, "<U3", false, "1,", make([]byte, 12))},
		{"no array in the archive", npz(zip.Store, member{"README", []byte("x")})},
		{"values end in the archive", npz(zip.Deflate, member{"x.npy", one[:len(one)-4]})},
		{"header ends in the archive", npz(zip.Deflate, member{"x.npy", one[:20]})},
		{"archive cut off", npz(zip.Deflate, member{"x.npy", one})[:60]},
	} {
		f, err := newFile(bytes.NewReader(tc.file), int64(len(tc.file)), "f.npy")
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

// TestMemory reads two columns of 64 MiB, deflated to little.
func TestMemory(t *testing.T) {
	const rows = 8 << 20
	file := npz(zip.Deflate, member{"x.npy", append(npy(1, "<f4", false, fmt.Sprintf("%d, 2", rows), []float32{}), make([]byte, 8*rows)...)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := newFile(bytes.NewReader(file), int64(len(file)), "f.npz")
	if err != nil {
		t.Fatal(err)
	}
	read := tracktest.Count(t, f, 0, 1)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; read != rows || grown > 2<<20 {
		t.Errorf("%d rows read, %d bytes allocated", read, grown)
	}
}

// TestWriteFixtures writes the fixtures for make peers-formats.
func TestWriteFixtures(t *testing.T) {
	dir := tracktest.FixtureFolder(t)
	for _, fx := range fixtures() {
		if err := os.WriteFile(filepath.Join(dir, fx.name), fx.file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzNPY(f *testing.F) {
	for _, fx := range fixtures() {
		f.Add(fx.file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := newFile(bytes.NewReader(file), int64(len(file)), "f.npy")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "npy: f.npy: ") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		for i, info := range r.Tracks()[:min(len(r.Tracks()), 50)] {
			if x, err := tracktest.Read(r, i); err == nil && int64(len(x)) != info.Len {
				t.Fatalf("%s: %d of %d values", info.Name, len(x), info.Len)
			}
		}
	})
}
