package wav

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

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/source/track/tracktest"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// wav is a file with a chunk that is not needed, of odd length.
func wav(code, channels, bits int, extensible bool, data []byte) []byte {
	format := binary.LittleEndian.AppendUint16(nil, uint16(code))
	if extensible {
		format = binary.LittleEndian.AppendUint16(nil, 0xfffe)
	}
	format = binary.LittleEndian.AppendUint16(format, uint16(channels))
	format = binary.LittleEndian.AppendUint32(format, 48_000)
	format = binary.LittleEndian.AppendUint32(format, uint32(48_000*channels*bits/8))
	format = binary.LittleEndian.AppendUint16(format, uint16(channels*bits/8))
	format = binary.LittleEndian.AppendUint16(format, uint16(bits))
	if extensible {
		format = append(format, 22, 0, byte(bits), 0, 0, 0, 0, 0, byte(code), 0)
		format = append(format, "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
	}
	out := []byte("WAVE")
	chunk := func(id string, b []byte) {
		out = binary.LittleEndian.AppendUint32(append(out, id...), uint32(len(b)))
		out = append(append(out, b...), make([]byte, len(b)&1)...)
	}
	chunk("fmt ", format)
	chunk("LIST", []byte("odd"))
	chunk("data", data)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(out))), out...)
}

func raw(v any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

type fixture struct {
	name   string
	file   []byte
	values [][]float64
	notes  int
}

func fixtures() []fixture {
	two := raw([]int16{-32768, 32767, 16384, 0, 1, -1})
	values := [][]float64{{-1, 0.5, 1.0 / (1 << 15)}, {32767.0 / (1 << 15), 0, -1.0 / (1 << 15)}}
	unfinished := func(length uint32) []byte {
		f := wav(1, 2, 16, false, two)
		binary.LittleEndian.PutUint32(f[len(f)-len(two)-4:], length)
		return append(f, 1) // and half a frame
	}
	big := unfinished(math.MaxUint32)
	copy(big, "RF64")
	sized := bytes.Clone(big[:len(big)-1]) // the length of the samples is in a chunk of its own, and a chunk follows them
	length := binary.LittleEndian.AppendUint64(append([]byte("ds64\x1c\x00\x00\x00"), make([]byte, 8)...), uint64(len(two)))
	sized = slices.Insert(sized, 12, append(length, make([]byte, 12)...)...)
	sized = append(sized, "LIST\x04\x00\x00\x00INFO"...)
	return []fixture{
		{"pcm8", wav(1, 1, 8, false, []byte{0, 128, 255}), [][]float64{{-1, 0, 127.0 / 128}}, 0},
		{"pcm16", wav(1, 2, 16, false, two), values, 0},
		{"pcm16-extensible", wav(1, 2, 16, true, two), values, 0},
		{"pcm24", wav(1, 1, 24, false, []byte{0, 0, 0x80, 0xff, 0xff, 0x7f, 1, 0, 0}), [][]float64{{-1, 8388607.0 / (1 << 23), 1.0 / (1 << 23)}}, 0},
		{"pcm32", wav(1, 1, 32, false, raw([]int32{math.MinInt32, 1 << 30})), [][]float64{{-1, 0.5}}, 0},
		{"float32", wav(3, 1, 32, false, raw([]float32{0.1, -2})), [][]float64{{float64(float32(0.1)), -2}}, 0},
		{"float64", wav(3, 2, 64, true, raw([]float64{0.1, -2})), [][]float64{{0.1}, {-2}}, 0},
		{"unfinished", unfinished(0), values, 1},
		{"cut-off", unfinished(1000), values, 1},
		{"rf64", big, values, 0},
		{"rf64 with what follows the samples", sized, values, 0},
		{"rf64 cut off", sized[:len(sized)-12-4], [][]float64{values[0][:2], values[1][:2]}, 1},
	}
}

func TestFixtures(t *testing.T) {
	for _, fx := range fixtures() {
		f, err := newFile(bytes.NewReader(fx.file), int64(len(fx.file)), "f.wav")
		if err != nil {
			t.Errorf("%s: %v", fx.name, err)
			continue
		}
		if len(f.Tracks()) != len(fx.values) || len(f.Notes()) != fx.notes {
			t.Errorf("%s: tracks %+v, notes %q", fx.name, f.Tracks(), f.Notes())
		}
		for i, info := range f.Tracks() {
			x, err := tracktest.Read(f, i)
			want := track.Info{Name: fmt.Sprint(i + 1), Rate: 48_000, Len: int64(len(fx.values[i]))}
			if err != nil || !slices.Equal(x, fx.values[i]) || info != want {
				t.Errorf("%s: %+v: %v, err %v, want %v", fx.name, info, x, err, fx.values[i])
			}
		}
	}
}

func TestErrors(t *testing.T) {
	one := wav(1, 1, 16, false, []byte{1, 2})
	var out strings.Builder
	for _, tc := range []struct {
		name string
		file []byte
	}{
		{"empty", nil},
		{"another format", []byte("time,ax\n1,2\n3,4\n")},
		{"ends before the samples", one[:40]},
		{"format cut off", one[:25]},
		{"no samples", wav(1, 1, 16, false, nil)},
		{"less than a frame", wav(1, 2, 16, false, []byte{1, 2})},
		{"compressed", wav(85, 1, 16, false, []byte{1, 2})},
		{"12 bits", wav(1, 1, 12, false, []byte{1, 2})},
		{"no channels", wav(1, 0, 16, false, []byte{1, 2})},
		{"samples first", append(bytes.Clone(one[:12]), "data\x02\x00\x00\x00ab"...)},
	} {
		_, err := newFile(bytes.NewReader(tc.file), int64(len(tc.file)), "f.wav")
		if err == nil {
			t.Errorf("%s: no error", tc.name)
		}
		fmt.Fprintf(&out, "# %s\n%v\n\n", tc.name, err)
	}
	golden.Check(t, "errors.golden", out.String())
}

// TestMemory reads in memory that does not depend on the length of the file.
func TestMemory(t *testing.T) {
	file := wav(1, 2, 16, false, make([]byte, 8<<20))
	f, err := newFile(bytes.NewReader(file), int64(len(file)), "f.wav")
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Open([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if per := testing.AllocsPerRun(100, func() {
		if _, n, err := r.Read(4096); n != 4096 || err != nil {
			t.Fatal(n, err)
		}
	}); per != 0 {
		t.Errorf("%v allocations for 4096 frames", per)
	}
}

// TestWriteFixtures writes the fixtures for make peers-formats: the whole
// files, which scipy reads.
func TestWriteFixtures(t *testing.T) {
	dir := tracktest.FixtureFolder(t)
	for _, fx := range fixtures()[:7] {
		if err := os.WriteFile(filepath.Join(dir, fx.name+".wav"), fx.file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzWAV(f *testing.F) {
	for _, fx := range fixtures() {
		f.Add(fx.file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := newFile(bytes.NewReader(file), int64(len(file)), "f.wav")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "wav: f.wav: ") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		for i, info := range r.Tracks()[:min(len(r.Tracks()), 50)] {
			if x, err := tracktest.Read(r, i); err != nil || int64(len(x)) != info.Len {
				t.Fatalf("%s: %d of %d values, %v", info.Name, len(x), info.Len, err)
			}
		}
	})
}
