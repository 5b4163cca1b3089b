package feed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/signal"
)

// force returns a frame of channel c in a column of any type.
func force(t tester, meta map[string]string, of arrow.DataType, values string, opts ...ipc.Option) []byte {
	t.Helper()
	return arrowFrame(t, meta, []arrow.Field{{Name: "c", Type: of, Nullable: true}}, func(b *array.RecordBuilder) {
		if err := b.Field(0).UnmarshalJSON([]byte(values)); err != nil {
			t.Fatal(err)
		}
	}, opts...)
}

// Every type of number reaches the block, calibrated; what is null is missing.
func TestFrame(t *testing.T) {
	t.Parallel()
	l := layout(t)
	d := newDecoder(Config{Machine: drill, Layout: l, Columns: signal.Recording{
		Origins: map[string]signal.Origin{"c": {From: "c", Gain: 2, Offset: 1}},
	}})
	nan := float32(math.NaN())
	p := arrow.PrimitiveTypes
	for why, tc := range map[string]struct {
		frame []byte
		want  []float32
	}{
		"float32":          {force(t, metadata(), p.Float32, "[1.5, -2, 1e30]"), []float32{4, -3, 2e30}},
		"float64":          {force(t, metadata(), p.Float64, "[1.5, 0.1]"), []float32{4, 1.2}},
		"int8":             {force(t, metadata(), p.Int8, "[-128, 127]"), []float32{-255, 255}},
		"uint8":            {force(t, metadata(), p.Uint8, "[255]"), []float32{511}},
		"int16":            {force(t, metadata(), p.Int16, "[-32768, 5]"), []float32{-65535, 11}},
		"int32":            {force(t, metadata(), p.Int32, "[-3]"), []float32{-5}},
		"int64":            {force(t, metadata(), p.Int64, "[-3]"), []float32{-5}},
		"uint64":           {force(t, metadata(), p.Uint64, "[3]"), []float32{7}},
		"nulls":            {force(t, metadata(), p.Float32, "[null, 1, null, 2, 3, 4, 5, 6, 7, null]"), []float32{nan, 3, nan, 5, 7, 9, 11, 13, 15, nan}},
		"json":             {[]byte(fmt.Sprintf(`{"session": 7, "first": 0, "time_ns": %d, "channels": {"c": [1.5, null]}}`, origin.UnixNano())), []float32{4, nan}},
		"no end mark":      {force(t, metadata(), p.Int8, "[1]")[:len(force(t, metadata(), p.Int8, "[1]"))-8], []float32{3}},
		"rate as it is":    {force(t, metadata("rate", "10"), p.Int8, "[1]"), []float32{3}},
		"machine as it is": {force(t, metadata("machine", drill), p.Int8, "[1]"), []float32{3}},
	} {
		b, err := d.decode(tc.frame)
		if err != nil {
			t.Errorf("%s: %v", why, err)
			continue
		}
		if b.Group != 1 || b.Session != 7 || b.First != 0 || !b.Time.Equal(origin) || len(b.Samples) != 1 {
			t.Errorf("%s: %+v", why, b.Block)
		}
		if got := b.Samples[0]; fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: %v, want %v", why, got, tc.want)
		}
	}
	// What the layout takes for missing is missing, before it is calibrated.
	d = newDecoder(Config{Machine: drill, Layout: l, Columns: signal.Recording{
		Origins: map[string]signal.Origin{"c": {From: "c", Gain: 2, Offset: 1}}, Missing: []string{"undefined", "-9999", "0.1"},
	}})
	for _, frame := range [][]byte{
		force(t, metadata(), p.Float32, "[0.1, -9999, 2]"), force(t, metadata(), p.Float64, "[-9999, 0.1, 2]"),
		[]byte(fmt.Sprintf(`{"session": 7, "first": 0, "time_ns": %d, "channels": {"c": [-9999, null, 2]}}`, origin.UnixNano())),
	} {
		if b, err := d.decode(frame); err != nil || fmt.Sprint(b.Samples) != "[[NaN NaN 5]]" {
			t.Errorf("%+v, %v", b, err)
		}
	}
	d = newDecoder(Config{Machine: drill, Layout: l})
	// Columns in another order, and one that is not a channel.
	b, err := d.decode(floats(t, metadata("first", "80", "hole", "H3"), []string{"b", "index", "a"}, []float32{1, 2}, []float32{9, 9}, []float32{3, 4}))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(b.Samples) != "[[3 4] [1 2]]" || b.Group != 0 || b.First != 80 || b.Hole != "H3" {
		t.Errorf("%+v", b.Block)
	}
}

// An error says what is wrong with a frame so that its sender can be corrected.
func TestFrameErrors(t *testing.T) {
	t.Parallel()
	l := layout(t)
	d := newDecoder(Config{Machine: drill, Layout: l})
	c := []string{"c"}
	one := []float32{1}
	good := floats(t, metadata(), c, one)
	text := func(s string) []byte { return []byte(s) }
	var got strings.Builder
	for _, tc := range []struct {
		why   string
		frame []byte
	}{
		{"nothing", nil},
		{"text", text("GET / HTTP/1.1\r\n\r\n")},
		{"an Arrow file", text("ARROW1\x00\x00........................")},
		{"no JSON", text(`{"session": `)},
		{"JSON without a counter", text(`{"session": 1, "time_ns": 1}`)},
		{"JSON with text for a number", text(`{"session": 1, "first": "0", "time_ns": 1}`)},
		{"JSON without channels", text(`{"session": 1, "first": 0, "time_ns": 1}`)},
		{"no session", floats(t, metadata("session", ""), c, one)},
		{"a counter that is not a number", floats(t, metadata("first", "1.5"), c, one)},
		{"a counter below nothing", floats(t, metadata("first", "-1"), c, one)},
		{"a counter without sense", floats(t, metadata("first", "9223372036854775807"), c, one)},
		{"no time", floats(t, metadata("time_ns", "0"), c, one)},
		{"another machine", floats(t, metadata("machine", "a/b/c/d/e"), c, one)},
		{"another rate", floats(t, metadata("rate", "100"), c, one)},
		{"a speed that is none", floats(t, metadata("spindle_speed", "NaN"), c, one)},
		{"a tool of two lines", floats(t, metadata("tool", "a\nb"), c, one)},
		{"a tool of a book", floats(t, metadata("tool", strings.Repeat("x", 300)), c, one)},
		{"no samples", floats(t, metadata(), c, nil)},
		{"no channel", floats(t, metadata(), []string{"d"}, one)},
		{"a channel of two is missing", floats(t, metadata(), []string{"a"}, one)},
		{"two rates", floats(t, metadata(), []string{"a", "b", "c"}, one, one, one)},
		{"a channel twice", floats(t, metadata(), []string{"c", "c"}, one, one)},
		{"text for samples", force(t, metadata(), arrow.BinaryTypes.String, `["1"]`)},
		{"half precision", force(t, metadata(), arrow.FixedWidthTypes.Float16, `[]`)},
		{"a dictionary", force(t, metadata(), &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["x"]`)},
		{"compressed", force(t, metadata(), arrow.PrimitiveTypes.Int64, "[1, 1, 1, 1, 1, 1, 1, 1]", ipc.WithZstd())},
		{"cut off", good[:len(good)-20]},
		{"two frames", append(good[:len(good):len(good)], good...)},
	} {
		b, err := d.decode(tc.frame)
		if err == nil {
			t.Errorf("%s: no error, %+v", tc.why, b.Block)
			continue
		}
		fmt.Fprintf(&got, "# %s\n%s\n\n", tc.why, err)
	}
	if _, err := d.decode(make([]byte, maxFrame+1)); err == nil {
		t.Error("a frame that is too long: no error")
	}
	golden.Check(t, "errors.golden", got.String())
}

// Flipped bits cost an error and never memory.
func TestDamagedFrames(t *testing.T) {
	l := layout(t)
	d := newDecoder(Config{Machine: drill, Layout: l})
	good := piece(t, l, 0, 1, 0, 40)
	rng := rand.New(rand.NewPCG(1, 2))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const mutants = 20_000
	taken := 0
	for range mutants {
		p := append([]byte(nil), good...)
		for range 1 + rng.IntN(4) {
			p[rng.IntN(len(p))] ^= byte(1 << rng.IntN(8))
		}
		if _, err := d.decode(p); err == nil {
			taken++
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / mutants; each > uint64(20*len(good)) {
		t.Errorf("%d bytes allocated for a frame of %d", each, len(good))
	}
	t.Logf("%d of %d pass: their samples are what changed, and a checksum sees that", taken, mutants)
}

func FuzzDecode(f *testing.F) {
	l := layout(f)
	f.Add(piece(f, l, 0, 1, 0, 4))
	f.Add(piece(f, l, 1, 1, 10, 12))
	f.Add(force(f, metadata("tool", "T1", "rate", "10"), arrow.PrimitiveTypes.Int16, "[1, null]"))
	f.Add([]byte(`{"session": 1, "first": 0, "time_ns": 1, "tool": "T", "channels": {"c": [1, null, -2.5e3]}}`))
	d := newDecoder(Config{Machine: drill, Layout: l})
	f.Fuzz(func(t *testing.T, frame []byte) {
		b, err := d.decode(frame)
		if err != nil {
			return
		}
		g := l.Groups()[b.Group]
		if len(b.Samples) != len(g.Channels) || b.Len() == 0 || b.First < 0 {
			t.Errorf("%+v", b.Block)
		}
		for _, x := range b.Samples {
			if len(x) != b.Len() {
				t.Errorf("channels of %d and %d samples", b.Len(), len(x))
			}
		}
	})
}
