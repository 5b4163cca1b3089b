package tdms

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

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/source/track/tracktest"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
)

func TestFixtures(t *testing.T) {
	for _, fx := range fixtures() {
		f, err := newFile(bytes.NewReader(fx.file), int64(len(fx.file)), "f.tdms")
		if err != nil {
			t.Errorf("%s: %v", fx.name, err)
			continue
		}
		if len(f.Tracks()) != len(fx.values) {
			t.Errorf("%s: tracks %+v, want %d", fx.name, f.Tracks(), len(fx.values))
		}
		for i, info := range f.Tracks() {
			x, err := tracktest.Read(f, i)
			if want := fx.values[info.Path()]; err != nil || !slices.Equal(x, want) || info.Len != int64(len(want)) {
				t.Errorf("%s: %s: %d values %.12v, err %v, want %.12v", fx.name, info.Path(), info.Len, x, err, want)
			}
		}
		interrupted := strings.HasPrefix(fx.name, "unfinished") || strings.HasPrefix(fx.name, "cut off")
		if noted := strings.Contains(strings.Join(f.Notes(), "\n"), "not finished"); noted != interrupted {
			t.Errorf("%s: notes %q", fx.name, f.Notes())
		}
	}
}

// TestSideBySide reads all channels at once, in steps that fit nothing.
func TestSideBySide(t *testing.T) {
	for _, fx := range fixtures() {
		f, err := newFile(bytes.NewReader(fx.file), int64(len(fx.file)), "f.tdms")
		if err != nil {
			t.Fatal(err)
		}
		shortest := math.MaxInt
		var all []int
		for i, info := range f.Tracks() {
			shortest = min(shortest, len(fx.values[info.Path()]))
			all = append(all, i)
		}
		r, err := f.Open(all)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for {
			v, n, err := r.Read(37)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", fx.name, err)
			}
			for i, info := range f.Tracks() {
				if !slices.Equal(v[i].Numbers, fx.values[info.Path()][at:at+n]) {
					t.Fatalf("%s: %s from %d differs", fx.name, info.Path(), at)
				}
			}
			at += n
		}
		if at != shortest {
			t.Errorf("%s: %d values side by side, want %d", fx.name, at, shortest)
		}
	}
}

func TestInfo(t *testing.T) {
	for _, big := range []bool{false, true} {
		w := &build{big: big}
		w.segment(tocNewList, []obj{
			{path: "/'g'/'timed'", index: w.values(kindInt8, 1), props: []prop{
				{"wf_increment", 5e-5}, {"wf_start_time", stamp{3_800_000_000, 1 << 63}}, {"wf_start_offset", 0.25}, {"unit_string", "g"}, {"long", strings.Repeat("x", 1<<20)},
			}},
			{path: "/'g'/'without a clock'", index: w.values(kindInt8, 1), props: []prop{{"wf_increment", 0.0}, {"wf_start_time", stamp{0, 0}}}},
		}, []byte{1, 2})
		w.segment(0, []obj{{path: "/'g'/'timed'", index: w.same(), props: []prop{{"wf_start_time", stamp{3_800_000_100, 0}}}}}, []byte{3, 4})
		f, err := newFile(bytes.NewReader(w.out.Bytes()), int64(w.out.Len()), "f.tdms")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Date(1904, 1, 1, 0, 0, 0, 750e6, time.UTC).Add(3_800_000_000 * time.Second)
		want := []track.Info{
			{Name: "timed", Group: "g", Unit: "g", Rate: 20_000, Start: start, Len: 2},
			{Name: "without a clock", Group: "g", Len: 2},
		}
		if got := f.Tracks(); !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// Values that were appended later are read as if they followed, which a note says; those whose start is as their number says have none.
func TestAppended(t *testing.T) {
	at := func(s int64) []prop {
		return []prop{{"wf_increment", 0.5}, {"wf_start_time", stamp{3_800_000_000 + s, 0}}}
	}
	for name, tc := range map[string]struct {
		starts []int64 // of two values each, a second long
		note   string
	}{
		"once":            {[]int64{0}, ""},
		"the same again":  {[]int64{0, 0, 0}, ""},
		"as they follow":  {[]int64{0, 1, 2}, ""},
		"a second late":   {[]int64{0, 2, 3}, ""},
		"two hours later": {[]int64{0, 7201, 7202}, "values that do not follow those before them are read as if they did: 1 times, the first is channel g/a behind value 2, 2h0m0s late: record into another file each time"},
		"again and again": {[]int64{0, 0, 62, 162}, "values that do not follow those before them are read as if they did: 2 times, the first is channel g/a behind value 4, 1m0s late: record into another file each time"},
		"before it began": {[]int64{100, 0}, "values that do not follow those before them are read as if they did: 1 times, the first is channel g/a behind value 2, -1m41s late: record into another file each time"},
	} {
		w := new(build)
		for i, s := range tc.starts {
			index, toc := w.same(), 0
			if i == 0 {
				index, toc = w.values(kindInt8, 2), tocNewList
			}
			w.segment(uint32(toc), []obj{{path: "/'g'/'a'", index: index, props: at(s)}}, []byte{1, 2})
		}
		f, err := newFile(bytes.NewReader(w.out.Bytes()), int64(w.out.Len()), "f.tdms")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.Notes(), "; "); got != tc.note || f.Tracks()[0].Len != int64(2*len(tc.starts)) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A note names properties that look like a calibration, with their values: no program knows what they mean.
func TestUnusedProperties(t *testing.T) {
	w := new(build)
	w.segment(tocNewList, []obj{
		{path: "/'g'/'a'", index: w.values(kindInt8, 1), props: []prop{{"Sensitivity", 102.3}, {"Scale Factor", "0.5 N/V"}, {"Sensor", "ICP 7"}, {"Amplifier Gain", 1.0}, {"Calibration", "none"}}},
		{path: "/'g'/'b'", index: w.values(kindInt8, 1), props: []prop{{"GAIN", int32(10)}}},
		{path: "/'g'/'c'", index: w.values(kindInt8, 1), props: nil},
	}, []byte{1, 2, 3})
	f, err := newFile(bytes.NewReader(w.out.Bytes()), int64(w.out.Len()), "f.tdms")
	if err != nil {
		t.Fatal(err)
	}
	want := "properties that look like a calibration are not used: channel g/a \"Scale Factor\": 0.5 N/V, \"Sensitivity\": 102.3; channel g/b \"GAIN\": 10, 2 in all; where numbers are not yet in the unit, write `gain` for the channel"
	if notes := f.Notes(); len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
		t.Errorf("%q", notes)
	}
}

// A channel whose rate changes between segments is left out, with both rates: its values are not at one rate.
func TestRateChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second float64
		note          string
	}{
		"same":           {1e-3, 1e-3, ""},
		"rounded":        {1e-3, 1.0001e-3, ""},
		"not known":      {0, 1e-3, ""},
		"twice as fast":  {1e-3, 5e-4, "channel g/a is left out: it has 1000 Hz up to value 1 and 2000 Hz behind: export each rate as a file of its own"},
		"not known then": {1e-3, 0, ""},
	} {
		w := new(build)
		w.segment(tocNewList, []obj{{path: "/'g'/'a'", index: w.values(kindInt8, 1), props: []prop{{"wf_increment", tc.first}}}, {path: "/'g'/'b'", index: w.values(kindInt8, 1)}}, []byte{1, 2})
		w.segment(0, []obj{{path: "/'g'/'a'", index: w.same(), props: []prop{{"wf_increment", tc.second}}}}, []byte{3, 4})
		f, err := newFile(bytes.NewReader(w.out.Bytes()), int64(w.out.Len()), "f.tdms")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.Notes(), "; "); got != tc.note || len(f.Tracks()) != map[bool]int{true: 2, false: 1}[got == ""] {
			t.Errorf("%s: %q, %d channels", name, got, len(f.Tracks()))
		}
	}
}

// TestErrors keeps the errors of damaged files, to be read as a person at the
// machine reads it.
func TestErrors(t *testing.T) {
	w := func() *build { return new(build) }
	one := w()
	one.segment(tocNewList, []obj{{path: "/'g'/'a'", index: one.values(kindInt16, 2)}}, one.raw([]int16{1, 2}))
	patch := func(at int, b ...byte) []byte {
		f := bytes.Clone(one.out.Bytes())
		copy(f[at:], b)
		return f
	}
	seg := func(toc uint32, objs []obj, raw []byte) []byte { return w().segment(toc, objs, raw).out.Bytes() }
	a := "/'g'/'a'"
	ff := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f}
	scaled := func(ps ...prop) []byte {
		return seg(tocNewList, []obj{{path: a, index: w().values(kindInt16, 1), props: ps}}, []byte{1, 2})
	}
	cases := []struct {
		name string
		file []byte
	}{
		{"empty", nil},
		{"another format", []byte("time,ax\n1,2\n1,2\n1,2\n1,2\n1,2\n1,2\n")},
		{"an index", patch(0, 'T', 'D', 'S', 'h')},
		{"only a lead-in", one.out.Bytes()[:28]},
		{"metadata break off", one.out.Bytes()[:50]},
		{"segment in the wrong place", append(one.out.Bytes()[:one.out.Len():one.out.Len()], one.out.Bytes()[4:]...)},
		{"raw data beyond the file", patch(20, ff...)},
		{"raw data after the end", patch(12, 30)},
		{"number of objects", patch(28, 9)},
		{"name of 2 GiB", patch(32, 0xff, 0xff, 0xff, 0x7f)},
		{"first segment without metadata", seg(0, nil, []byte{1, 2})},
		{"no path", seg(tocNewList, []obj{{path: "a", index: w().values(kindInt16, 1)}}, []byte{1, 2})},
		{"as before, but nothing was", seg(tocNewList, []obj{{path: a, index: w().same()}}, []byte{1, 2})},
		{"unknown type", seg(tocNewList, []obj{{path: a, index: w().values(0x4f, 1)}}, []byte{1, 2})},
		{"unknown type of a property", func() []byte {
			f := scaled(prop{"n", uint32(1)})
			i := bytes.Index(f, []byte{7, 0, 0, 0, 1, 0, 0, 0})
			f[i] = 99
			return f
		}()},
		{"values without end", seg(tocNewList, []obj{{path: a, index: w().values(kindInt16, 1<<50)}}, []byte{1, 2})},
		{"no values in raw data", seg(tocNewList, []obj{{path: a}}, []byte{1, 2})},
		{"no values at all", seg(tocNewList, []obj{{path: a}}, nil)},
		{"unequal rows", seg(tocNewList|tocInterleaved, []obj{{path: a, index: w().values(kindInt16, 1)}, {path: "/'g'/'b'", index: w().values(kindInt16, 2)}}, make([]byte, 6))},
		{"text among rows", seg(tocNewList|tocInterleaved, []obj{{path: a, index: w().texts(1, 5)}}, make([]byte, 5))},
		{"scaler outside its buffer", seg(tocNewList, []obj{{path: a, index: w().daqmx(formatChanging, 1, []scaler{{kind: kindInt16, offset: 1}}, 2)}}, make([]byte, 2))},
		{"scaler of no buffer", seg(tocNewList, []obj{{path: a, index: w().daqmx(formatChanging, 1, []scaler{{kind: kindInt16, buffer: 3}}, 2)}}, make([]byte, 2))},
		{"buffers disagree", seg(tocNewList, []obj{
			{path: a, index: w().daqmx(formatChanging, 1, []scaler{{kind: kindInt16}}, 2)},
			{path: "/'g'/'b'", index: w().daqmx(formatChanging, 1, []scaler{{kind: kindInt16}}, 4)},
		}, make([]byte, 4))},
		{"DAQmx mixed with other data", seg(tocNewList, []obj{
			{path: a, index: w().daqmx(formatChanging, 1, []scaler{{kind: kindInt16}}, 2)}, {path: "/'g'/'b'", index: w().values(kindInt16, 1)},
		}, make([]byte, 4))},
		{"only text", seg(tocNewList, []obj{{path: a, index: w().texts(1, 5)}}, make([]byte, 5))},
		{"scale that is not supported", scaled(prop{"NI_Number_Of_Scales", uint32(1)}, prop{"NI_Scale[0]_Scale_Type", "Thermocouple"})},
		{"scale without slope", scaled(prop{"NI_Number_Of_Scales", uint32(1)}, prop{"NI_Scale[0]_Scale_Type", "Linear"})},
		{"table without numbers", scaled(prop{"NI_Scale[0]_Scale_Type", "Table"})},
		{"table that turns", scaled(table(0, []float64{1, 3, 2}, []float64{1, 2, 3})...)},
		{"table of two lengths", scaled(table(0, []float64{1, 2, 3}, []float64{1, 2})...)},
		{"scale without coefficients", scaled(prop{"NI_Number_Of_Scales", uint32(1)}, prop{"NI_Scale[0]_Scale_Type", "Polynomial"})},
		{"too many scales", scaled(prop{"NI_Number_Of_Scales", uint32(1 << 30)})},
		{"scales in a circle", scaled(prop{"NI_Number_Of_Scales", uint32(1)}, prop{"NI_Scale[0]_Scale_Type", "AdvancedAPI"}, prop{"NI_Scale[0]_AdvancedAPI_Input_Source", uint32(0)})},
		{"input that is not there", scaled(prop{"NI_Number_Of_Scales", uint32(1)}, prop{"NI_Scale[0]_Scale_Type", "AdvancedAPI"}, prop{"NI_Scale[0]_AdvancedAPI_Input_Source", uint32(7)})},
	}
	var out strings.Builder
	for _, tc := range cases {
		_, err := newFile(bytes.NewReader(tc.file), int64(len(tc.file)), "f.tdms")
		if err == nil {
			t.Errorf("%s: no error", tc.name)
		}
		fmt.Fprintf(&out, "# %s\n%v\n\n", tc.name, err)
	}
	golden.Check(t, "errors.golden", out.String())
}

// zeros is a file that begins with head and goes on with zeros.
type zeros struct {
	head []byte
	size int64
}

func (z zeros) ReadAt(p []byte, at int64) (int, error) {
	n := 0
	if at < int64(len(z.head)) {
		n = copy(p, z.head[at:])
	}
	clear(p[n:])
	if left := z.size - at; left < int64(len(p)) {
		return int(max(left, 0)), io.EOF
	}
	return len(p), nil
}

// TestMemory reads the beginning of files of 100 GB, rows and columns, in
// memory that does not depend on their size.
func TestMemory(t *testing.T) {
	for _, toc := range []uint32{0, tocInterleaved} {
		w := new(build)
		var objs []obj
		for i := range 12 {
			objs = append(objs, obj{path: fmt.Sprintf("/'g'/'%d'", i), index: w.values(kindInt16, 1<<32)})
		}
		w.segment(tocNewList|toc, objs, []byte{})
		z := zeros{unfinished(w.out.Bytes(), 0, 0), 12 * 2 << 32}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := newFile(z, z.size, "f.tdms")
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Open([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
		if err != nil {
			t.Fatal(err)
		}
		read := func() {
			if _, n, err := r.Read(4096); n == 0 || err != nil {
				t.Fatal(n, err)
			}
		}
		read()
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
			t.Errorf("flags %x: %d bytes to open and begin", toc, grown)
		}
		if per := testing.AllocsPerRun(100, read); per != 0 {
			t.Errorf("flags %x: %v allocations for 4096 rows", toc, per)
		}
	}
}

func TestRecordedRealFiles(t *testing.T) {
	dir := recorded.Folder(t)
	type channel struct {
		path, unit string
		n          int64
		rate       float64
	}
	for name, want := range map[string][]channel{
		"raw1.tdms": {
			{"Layer Data/First  Channel", "Volts", 2000, 50_000}, {"Layer Data/Second Chan", "Volts", 2000, 50_000}, {"Layer Data/Third Chan", "Volts", 2000, 50_000},
			{"Layer Data/Fourth Chan", "Volts", 2000, 50_000}, {"Layer Data/Fifth Chan", "Volts", 2000, 50_000}, {"Layer Data/Sixth Chan", "Volts", 2000, 50_000},
			{"Layer Data/Seventh Cha", "Volts", 2000, 50_000},
		},
		"big_endian.tdms":     {{"Measured Data/Amplitude sweep", "", 3500, 1000}, {"Measured Data/Phase sweep", "", 3500, 1000}},
		"raw_timestamps.tdms": {{"Untitled/Untitled", "", 128, 1000}},
		"Digital_Input.tdms": {
			{"07/09/2012 06:58:23 PM - Digital Input - All Data/Dev1_port3_line7 - line 0", "", 20000, 2000},
			{"07/09/2012 06:58:23 PM - Digital Input - Decimated Data_Level1/Dev1_port3_line7 - line 0", "", 400, 40},
			{"07/09/2012 06:58:23 PM - Digital Input - Decimated Data_Level2/Dev1_port3_line7 - line 0", "", 8, 0.8},
		},
	} {
		f, err := Format.Open(filepath.Join(dir, "tdms", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var got []channel
		for _, info := range f.Tracks() {
			got = append(got, channel{info.Path(), info.Unit, info.Len, math.Round(info.Rate*10) / 10})
		}
		if !slices.Equal(got, want) || len(f.Notes()) != 0 {
			t.Errorf("%s: %+v, notes %q, want %+v", name, got, f.Notes(), want)
		}
	}
}

// TestWriteFixtures writes the fixtures for make peers-formats.
func TestWriteFixtures(t *testing.T) {
	dir := tracktest.FixtureFolder(t)
	for _, fx := range fixtures() {
		if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(fx.name, " ", "-")+".tdms"), fx.file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzTDMS(f *testing.F) {
	for _, fx := range fixtures() {
		if len(fx.file) < 4096 {
			f.Add(fx.file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := newFile(bytes.NewReader(file), int64(len(file)), "f.tdms")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "tdms: f.tdms: ") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		for i, info := range r.Tracks() {
			x, err := tracktest.Read(r, i)
			if err != nil || int64(len(x)) != info.Len {
				t.Fatalf("%s: %d of %d values, %v", info.Path(), len(x), info.Len, err)
			}
			if info.Len > 8*int64(len(file)) {
				t.Fatalf("%s: %d values of %d bytes", info.Path(), info.Len, len(file))
			}
		}
	})
}
