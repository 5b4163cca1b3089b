package window

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"bytes"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

// example is a full window of the layout with values that show where they
// belong, and one that is missing.
func example(l *signal.Layout, spec Spec) *Window {
	w := &Window{
		Context: signal.Context{Machine: "acme/spore/bay2/line1/usk25", Tool: "T08", Hole: "H3_08", SpindleSpeed: 1650},
		Epoch:   0xfeedbeefcafe0001, Seq: 17, Start: origin, Length: spec.Length, Session: 3, First: 340_000,
		Quality: make([]signal.Quality, len(l.Channels())),
	}
	for i, c := range l.Channels() {
		x := make([]float32, spec.Samples(c.Rate))
		for n := range x {
			x[n] = value(i, int64(n))
		}
		w.Samples = append(w.Samples, x)
	}
	w.Samples[0][0] = float32(math.NaN())
	w.Quality[0] = signal.Dropout
	return w
}

func newCodec(t testing.TB, l *signal.Layout, spec Spec) *Codec {
	c, err := NewCodec(l, spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// equal compares windows; NaN equals NaN.
func equal(a, b *Window) bool {
	if a.Context != b.Context || a.Epoch != b.Epoch || a.Seq != b.Seq || !a.Start.Equal(b.Start) || a.Length != b.Length ||
		a.Session != b.Session || a.First != b.First || !slices.Equal(a.Quality, b.Quality) || len(a.Samples) != len(b.Samples) {
		return false
	}
	same := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	for i := range a.Samples {
		if !slices.EqualFunc(a.Samples[i], b.Samples[i], same) {
			return false
		}
	}
	return true
}

func TestCodecRoundTrip(t *testing.T) {
	feature, err := signal.NewLayout("features", []signal.Channel{{Name: "F_c", Kind: signal.Feature, Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*signal.Layout{"gun drill": signal.GunDrill(), "two rates": twoRates(t), "one value": feature} {
		c := newCodec(t, l, DefaultSpec)
		want := example(l, DefaultSpec)
		e, err := c.Seal(want)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got Window
		for range 2 { // the second time into used memory
			if err := c.Open(e, &got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !equal(&got, want) {
				t.Errorf("%s: got %+v", name, got)
			}
		}
		if !bytes.HasPrefix(e.Value, c.prefix) {
			t.Errorf("%s: the schema bytes are not constant", name)
		}
	}
}

// What a reader of another make sees: the contract of schemas/window.arrow.md.
func TestCodecIsPlainArrow(t *testing.T) {
	l := signal.GunDrill()
	e, err := newCodec(t, l, DefaultSpec).Seal(example(l, DefaultSpec))
	if err != nil {
		t.Fatal(err)
	}
	if limit := 1_048_588; len(e.Value) > limit-4096 {
		t.Errorf("%d bytes: a default window must fit Kafka's default limit of %d", len(e.Value), limit)
	}
	r, err := ipc.NewReader(bytes.NewReader(e.Value))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal("no record batch")
	}
	rec := r.Record()
	ch, ok := r.Schema().FieldsByName("ch05")
	if !ok {
		t.Fatal("no column ch05")
	}
	for key, want := range map[string]string{"kind": "vibration", "unit": "g", "rate": "20000", "range": "50", "sensor": "acc2-y"} {
		if got, _ := ch[0].Metadata.GetValue(key); got != want {
			t.Errorf("ch05: %s = %q, want %q", key, got, want)
		}
	}
	if rec.NumRows() != 1 {
		t.Errorf("%d rows", rec.NumRows())
	}
	x := rec.Column(r.Schema().FieldIndices("torque")[0]).(*array.FixedSizeList).ListValues().(*array.Float32).Float32Values()
	if len(x) != 100 || x[99] != value(13, 99) {
		t.Errorf("torque has %d samples, the last is %v", len(x), x[99])
	}
	if r.Next() {
		t.Error("more than one record batch")
	}
}

func TestOpenRefuses(t *testing.T) {
	l := twoRates(t)
	c := newCodec(t, l, DefaultSpec)
	good, err := c.Seal(example(l, DefaultSpec))
	if err != nil {
		t.Fatal(err)
	}
	resum := func(e Envelope) Envelope { e.CRC = crc32.Checksum(e.Value, castagnoli); return e }
	value := func(f func([]byte) []byte) Envelope {
		e := good
		e.Value = f(slices.Clone(good.Value))
		return e
	}
	meta := len(c.prefix)
	longer := newCodec(t, l, Spec{Length: 2 * time.Second})
	other, err := longer.Seal(example(l, Spec{Length: 2 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		e    Envelope
		kind error
		text string
	}{
		"another layout":      {func() Envelope { e := good; e.Layout = "0123456789abcdef"; return e }(), ErrForeign, "0123456789abcdef"},
		"another length":      {other, ErrForeign, "windows of 2s, expected windows of 1s"},
		"truncated":           {value(func(p []byte) []byte { return p[:len(p)/2] }), ErrCorrupt, "checksum"},
		"one bit flipped":     {value(func(p []byte) []byte { p[len(p)-20] ^= 1; return p }), ErrCorrupt, "checksum"},
		"truncated, new sum":  {resum(value(func(p []byte) []byte { return p[:meta/2] })), ErrForeign, "schema"},
		"no end":              {resum(value(func(p []byte) []byte { return p[:len(p)-8] })), ErrCorrupt, "body of"},
		"empty":               {resum(value(func([]byte) []byte { return nil })), ErrForeign, "schema"},
		"schema only":         {resum(value(func(p []byte) []byte { return p[:meta] })), ErrCorrupt, "no record batch"},
		"a sum that is known": {func() Envelope { e := good; e.Sum, e.Summed = e.CRC^1, true; return e }(), ErrCorrupt, fmt.Sprintf("checksum %08x", good.CRC^1)},
		"huge":                {resum(value(func(p []byte) []byte { return append(p, make([]byte, 1<<20)...) })), ErrCorrupt, "at most"},
		"schema changed":      {resum(value(func(p []byte) []byte { p[40] ^= 1; return p })), ErrForeign, "schema"},
		"metadata of 2 GiB":   {resum(value(func(p []byte) []byte { binary.LittleEndian.PutUint32(p[meta+4:], 1<<31-1); return p })), ErrCorrupt, "metadata of"},
		"negative metadata":   {resum(value(func(p []byte) []byte { binary.LittleEndian.PutUint32(p[meta+4:], 1<<31); return p })), ErrCorrupt, "metadata of"},
		"headers of another":  {func() Envelope { e := good; e.Seq++; return e }(), ErrCorrupt, "headers say"},
		"machine of another":  {func() Envelope { e := good; e.Machine = "b"; return e }(), ErrCorrupt, "headers say"},
		"trailing second batch": {resum(value(func(p []byte) []byte {
			return append(p[:len(p)-8:len(p)-8], p[meta:]...)
		})), ErrCorrupt, "body of"},
	} {
		var w Window
		err := c.Open(tc.e, &w)
		if !errors.Is(err, tc.kind) || !strings.Contains(fmt.Sprint(err), tc.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, tc.kind, tc.text)
		}
	}
}

// A checksum that the carrier has computed is not computed again.
func TestSumIsTakenOver(t *testing.T) {
	l := twoRates(t)
	c := newCodec(t, l, DefaultSpec)
	e, err := c.Seal(example(l, DefaultSpec))
	if err != nil {
		t.Fatal(err)
	}
	e.Value[len(e.Value)-20] ^= 1
	e.Sum = e.CRC
	for summed, want := range map[bool]error{false: ErrCorrupt, true: nil} {
		var w Window
		if e.Summed = summed; !errors.Is(c.Open(e, &w), want) || !errors.Is(c.View(e, &w), want) {
			t.Errorf("summed %v: want %v", summed, want)
		}
	}
}

// The life of the tool travels in the envelope: the value is the same with and
// without it.
func TestToolLifeIsNotInTheValue(t *testing.T) {
	l := twoRates(t)
	c := newCodec(t, l, DefaultSpec)
	plain, err := c.Seal(example(l, DefaultSpec))
	if err != nil {
		t.Fatal(err)
	}
	w := example(l, DefaultSpec)
	w.ToolLife = strings.Repeat("x", signal.MaxToolLife)
	e, err := c.Seal(w)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(e.Value, plain.Value) || e.CRC != plain.CRC {
		t.Error("the value says which life of the tool it is")
	}
	var got Window
	if err := c.Open(e, &got); err != nil || !equal(&got, w) {
		t.Errorf("opened: %+v, %v", got.Context, err)
	}
	if err := c.Open(plain, &got); err != nil || got.ToolLife != "" {
		t.Errorf("a window without one, in the memory of one with: %q, %v", got.ToolLife, err)
	}
	e.ToolLife += "x"
	if err := c.Open(e, &got); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%d bytes: %v", len(e.ToolLife), err)
	}
	w.ToolLife += "x"
	if _, err := c.Seal(w); err == nil {
		t.Errorf("%d bytes were sealed", len(w.ToolLife))
	}
}

func TestSealRefusesLongTexts(t *testing.T) {
	l := twoRates(t)
	w := example(l, DefaultSpec)
	w.Tool = strings.Repeat("T", maxText)
	if _, err := newCodec(t, l, DefaultSpec).Seal(w); err == nil {
		t.Error("a tool name of 4 kB was sealed")
	}
}

// However a message is damaged, and even when its checksum is made to fit,
// Open returns; it never asks for more memory than the message has.
func TestOpenSurvivesMutants(t *testing.T) {
	l := twoRates(t)
	c := newCodec(t, l, DefaultSpec)
	seeds := sealedTwice(t, c.Seal, l)
	rng := rand.New(rand.NewPCG(1, 2))
	var w, v Window
	refused := 0
	for i := range 40_000 {
		good := seeds[i%2]
		e := good
		e.Value = slices.Clone(good.Value)
		for range 1 + rng.IntN(4) {
			// Most flips go where the lengths are: into the metadata.
			at := len(c.prefix) + rng.IntN(min(1500, len(e.Value)-len(c.prefix)))
			e.Value[at] = byte(rng.UintN(256))
		}
		e.CRC = crc32.Checksum(e.Value, castagnoli)
		opened, viewed := c.Open(e, &w), c.View(e, &v)
		if (opened == nil) != (viewed == nil) || opened != nil && opened.Error() != viewed.Error() || opened == nil && !equal(&w, &v) {
			t.Fatalf("mutant %d: Open %v, View %v", i, opened, viewed)
		}
		if opened != nil {
			refused++
		}
	}
	if refused < 10_000 {
		t.Errorf("only %d of 40,000 mutants were refused", refused)
	}
}

func FuzzOpen(f *testing.F) {
	l := twoRates(f)
	c := newCodec(f, l, DefaultSpec)
	good, err := c.Seal(example(l, DefaultSpec))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.Value[len(c.prefix):])
	f.Add(sealedTwice(f, c.Seal, l)[1].Value[len(c.prefix):])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		e := good
		e.Value = append(slices.Clip(c.prefix), p...)
		e.CRC = crc32.Checksum(e.Value, castagnoli)
		var w Window
		if err := c.Open(e, &w); err == nil {
			// What was opened can be sealed again and says the same.
			again, err := c.Seal(&w)
			if err != nil {
				return // the texts grew too long
			}
			var v Window
			if err := c.Open(again, &v); err != nil || !equal(&v, &w) {
				t.Errorf("sealed again: %v", err)
			}
		}
	})
}

func TestCodecAnyWindow(t *testing.T) {
	l := twoRates(t)
	c := newCodec(t, l, DefaultSpec)
	rapid.Check(t, func(t *rapid.T) {
		w := example(l, DefaultSpec)
		w.Tool = rapid.StringN(0, 40, 200).Draw(t, "tool")
		w.Hole = rapid.StringN(0, 40, 200).Draw(t, "hole")
		drawContext(t, w)
		w.Seq = rapid.Uint64().Draw(t, "seq")
		w.Epoch = rapid.Uint64().Draw(t, "epoch")
		w.Session = rapid.Int64().Draw(t, "session")
		for i, x := range w.Samples {
			copy(x, rapid.SliceOfN(rapid.Float32(), len(x), len(x)).Draw(t, fmt.Sprint("x", i)))
		}
		e, err := c.Seal(w)
		if err != nil {
			t.Fatal(err)
		}
		arrowAgrees(t, &c.wire, e, w, func() ([]cell, error) { return c.cells(w) })
		var got Window
		if err := c.Open(e, &got); err != nil {
			t.Fatal(err)
		}
		if !equal(&got, w) {
			t.Fatalf("got %+v, want %+v", got, w)
		}
		if !reflect.DeepEqual(got.Start, w.Start) {
			t.Fatalf("start %v, want %v", got.Start, w.Start)
		}
	})
}

// arrowAgrees compares a sealed value with the stream that the Arrow library writes of the same row. It knows no metadata of
// a record batch, which comes before the body.
func arrowAgrees(t *rapid.T, s *wire, e Envelope, w *Window, row func() ([]cell, error)) {
	cells, err := row()
	keys, err2 := contextKeys(&w.Context)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	want, err := writeStream(s.schema, record(s.schema, cells))
	if err != nil {
		t.Fatal(err)
	}
	from := 0
	if len(keys) > 0 || w.Rates != nil {
		from = len(s.prefix) + 8 + len(s.header)
		from, want = from+len(e.Value)-len(want), want[from:]
	}
	if !bytes.Equal(e.Value[from:], want) {
		t.Fatalf("%d bytes, and Arrow's %d, differ", len(e.Value)-from, len(want))
	}
}

// Once its memory is there, to open a window or features makes no object, and to seal them makes few.
func TestCodecMakesFewObjects(t *testing.T) {
	l := signal.GunDrill()
	c, f := newCodec(t, l, DefaultSpec), newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil)
	w := example(l, DefaultSpec)
	var x Features
	f.NewExtractor().Extract(w, &x)
	sealed, err := c.Seal(w)
	features, err2 := f.Seal(&x)
	var into, view Window
	var intoFeatures Features
	memory := make([]byte, len(sealed.Value))
	if err := errors.Join(err, err2, c.Open(sealed, &into), c.View(sealed, &view), f.Open(features, &intoFeatures)); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		do   func() error
		most float64
	}{
		"open a window":  {func() error { return c.Open(sealed, &into) }, 0},
		"view a window":  {func() error { return c.View(sealed, &view) }, 0},
		"open features":  {func() error { return f.Open(features, &intoFeatures) }, 0},
		"seal a window":  {func() error { _, err := c.Seal(w); return err }, 5},
		"seal in memory": {func() error { _, err := c.SealIn(memory, w); return err }, 4},
		"seal features":  {func() error { _, err := f.Seal(&x); return err }, 5},
	} {
		if n := testing.AllocsPerRun(20, func() {
			if err := one.do(); err != nil {
				t.Fatal(err)
			}
		}); n > one.most {
			t.Errorf("to %s makes %v objects, at most %v may be", name, n, one.most)
		}
	}
}

// View says what Open does, wherever the value lies, in the value's own memory. Features of both are the same bits.
func TestView(t *testing.T) {
	form, w := drillWindow(t)
	w.Samples[3][5], w.Quality[3] = float32(math.NaN()), signal.Dropout
	c := newCodec(t, form.Layout(), DefaultSpec)
	e, err := c.Seal(w)
	if err != nil {
		t.Fatal(err)
	}
	x := form.NewExtractor()
	var want, got Features
	x.Extract(w, &want)
	bits := func(f *Features) (all []uint32) {
		for _, v := range slices.Concat(f.Values, f.Frames, []float32{float32(f.Level)}) {
			all = append(all, math.Float32bits(v))
		}
		return all
	}
	var view Window
	memory := make([]byte, 8+len(e.Value))
	for at := range 8 {
		e.Value = append(memory[at:at], e.Value...)
		if err := c.View(e, &view); err != nil || !equal(&view, w) {
			t.Fatalf("at %d: %v", at, err)
		}
		if x.Extract(&view, &got); !slices.Equal(bits(&got), bits(&want)) {
			t.Errorf("at %d: other features", at)
		}
		var opened Window
		if err := c.Open(e, &opened); err != nil {
			t.Fatal(err)
		}
		last := len(view.Samples) - 1
		kept, kept2 := view.Samples[last][0], opened.Samples[last][0]
		for i := range e.Value {
			e.Value[i] ^= 0xff
		}
		if (view.Samples[last][0] != kept) != anyAddress || opened.Samples[last][0] != kept2 {
			t.Errorf("at %d: the value changes, the samples of View from %v to %v, of Open from %v to %v", at, kept, view.Samples[last][0], kept2, opened.Samples[last][0])
		}
		for i := range e.Value {
			e.Value[i] ^= 0xff
		}
	}
}

// SealIn makes the bytes of Seal, in the memory that it is given if there is room.
func TestSealIn(t *testing.T) {
	l := signal.GunDrill()
	c := newCodec(t, l, DefaultSpec)
	w := example(l, DefaultSpec)
	want, err := c.Seal(w)
	if err != nil {
		t.Fatal(err)
	}
	for room, used := range map[int]bool{0: false, len(want.Value) - 1: false, len(want.Value): true, 2 * len(want.Value): true} {
		memory := bytes.Repeat([]byte{0xff}, room) // of another window
		got, err := c.SealIn(memory, w)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("with room for %d bytes: %d bytes, %v", room, len(got.Value), err)
		}
		if in := room > 0 && &got.Value[0] == &memory[0]; in != used {
			t.Errorf("with room for %d bytes: in that memory: %v, want %v", room, in, used)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	l := signal.GunDrill()
	c := newCodec(b, l, DefaultSpec)
	w := example(l, DefaultSpec)
	b.SetBytes(4 * (12*20_000 + 2*100))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Seal(w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	l := signal.GunDrill()
	c := newCodec(b, l, DefaultSpec)
	e, err := c.Seal(example(l, DefaultSpec))
	if err != nil {
		b.Fatal(err)
	}
	var w Window
	b.SetBytes(int64(len(e.Value)))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Open(e, &w); err != nil {
			b.Fatal(err)
		}
	}
}
