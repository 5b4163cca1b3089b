package window

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

func newForm(t testing.TB, l *signal.Layout, spec Spec, list signal.FeatureSpec, cutting *Cutting) *Form {
	t.Helper()
	f, err := NewForm(l, spec, list, cutting)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// equalFeatures compares features bit by bit.
func equalFeatures(a, b *Features) bool {
	same := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	return equal(&a.Window, &b.Window) && a.Form == b.Form && math.Float64bits(a.Level) == math.Float64bits(b.Level) &&
		slices.EqualFunc(a.Frames, b.Frames, same) && slices.EqualFunc(a.Values, b.Values, same)
}

// A form has what its layout offers: the level of the first force, the frames of the cycle,
// and the features of its list and version.
func TestForm(t *testing.T) {
	feature, err := signal.NewLayout("features", []signal.Channel{{Name: "F_c", Kind: signal.Feature, Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	drill := signal.GunDrill()
	for name, tc := range map[string]struct {
		layout         *signal.Layout
		list           signal.FeatureSpec
		cutting        *Cutting
		values, frames int
		gate           string
		version        int
	}{
		"gun drill":             {drill, signal.FeatureSpec{}, nil, 671, 30, "thrust", 2},
		"a set":                 {drill, signal.FeatureSpec{Set: []string{"rms", "mean"}}, nil, 28, 30, "thrust", 2},
		"cutting by the torque": {drill, signal.FeatureSpec{}, &Cutting{Gate: "torque"}, 671, 0, "torque", 2},
		"no cutting":            {drill, signal.FeatureSpec{}, &Cutting{}, 671, 0, "", 2},
		"values":                {feature, signal.FeatureSpec{}, nil, 1, 0, "", 2},
	} {
		spec := DefaultSpec
		if tc.layout == drill {
			spec.Hop = 500 * time.Millisecond
		}
		f := newForm(t, tc.layout, spec, tc.list, tc.cutting)
		var x Features
		f.NewExtractor().Extract(example(tc.layout, DefaultSpec), &x)
		if len(x.Values) != tc.values || len(f.Names()) != tc.values || len(x.Frames) != tc.frames || f.cutting.Gate != tc.gate || f.List().Version != tc.version {
			t.Errorf("%s: %d values, %d names, %d measures of frames, gate %q, version %d", name, len(x.Values), len(f.Names()), len(x.Frames), f.cutting.Gate, f.List().Version)
		}
		if f.Length() != DefaultSpec || f.Layout() != tc.layout {
			t.Errorf("%s: windows of %v: the hop is not part of a form", name, f.Length())
		}
	}
	for name, tc := range map[string]struct {
		spec    Spec
		list    signal.FeatureSpec
		cutting *Cutting
	}{
		"no length":       {Spec{}, signal.FeatureSpec{}, nil},
		"unknown version": {DefaultSpec, signal.FeatureSpec{Version: 99}, nil},
		"unknown feature": {DefaultSpec, signal.FeatureSpec{Set: []string{"horsepower"}}, nil},
		"unknown gate":    {DefaultSpec, signal.FeatureSpec{}, &Cutting{Gate: "horsepower"}},
	} {
		if _, err := NewForm(drill, tc.spec, tc.list, tc.cutting); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Every form has a fingerprint of its own, and the same whenever it is made.
func TestFormFingerprint(t *testing.T) {
	l := twoRates(t)
	cutting := CuttingOf(l, newCodec(t, l, DefaultSpec).samples)
	fewer := *cutting.Cycle
	fewer.Frames--
	other := fewer
	other.Frames, other.Inputs = cutting.Cycle.Frames, other.Inputs[:1]
	forms := map[string]*Form{
		"default":       newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil),
		"length":        newForm(t, l, Spec{Length: 2 * time.Second}, signal.FeatureSpec{}, nil),
		"set":           newForm(t, l, DefaultSpec, signal.FeatureSpec{Set: []string{"rms"}}, nil),
		"gate":          newForm(t, l, DefaultSpec, signal.FeatureSpec{}, &Cutting{Cycle: cutting.Cycle}),
		"frames":        newForm(t, l, DefaultSpec, signal.FeatureSpec{}, &Cutting{Gate: cutting.Gate, Cycle: &fewer}),
		"frame columns": newForm(t, l, DefaultSpec, signal.FeatureSpec{}, &Cutting{Gate: cutting.Gate, Cycle: &other}),
	}
	by := make(map[string]string)
	for name, f := range forms {
		if was, dup := by[f.Fingerprint()]; dup || len(f.Fingerprint()) != 16 {
			t.Errorf("%s and %s have the fingerprint %s", name, was, f.Fingerprint())
		}
		by[f.Fingerprint()] = name
	}
	if f := newForm(t, l, DefaultSpec, signal.FeatureSpec{Version: signal.FeatureVersion}, &cutting); f.Fingerprint() != forms["default"].Fingerprint() {
		t.Error("the default, spelled out, has another fingerprint")
	}
	for name, c := range map[string]Cutting{"nothing": {}, "the gate": {Gate: cutting.Gate}, "the cycle": {Cycle: cutting.Cycle}, "both": cutting} {
		if !forms["default"].Measures(c) {
			t.Errorf("the default does not measure %s", name)
		}
	}
	for name, c := range map[string]Cutting{"another gate": {Gate: "a"}, "fewer frames": {Cycle: &fewer}, "other columns": {Cycle: &other}} {
		if forms["default"].Measures(c) {
			t.Errorf("the default measures %s", name)
		}
	}
}

// Features that are taken out of features that have more are those that are extracted from the
// window, bit for bit, also in memory that other features were in.
func TestPartOf(t *testing.T) {
	l := twoRates(t)
	part := newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil)
	whole, err := NewForm(l, DefaultSpec, signal.FeatureSpec{}, nil, signal.FeatureSpec{Set: []string{"min", "shape"}}, signal.FeatureSpec{Set: []string{"max"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Names()) <= len(part.Names()) || whole.Fingerprint() == part.Fingerprint() || whole.List().Version != part.List().Version {
		t.Fatalf("%d features of %d", len(part.Names()), len(whole.Names()))
	}
	p, ok := part.PartOf(whole)
	if !ok {
		t.Fatal("the default features are not part of more")
	}
	var all, want, got Features
	rapid.Check(t, func(t *rapid.T) {
		w := example(l, DefaultSpec)
		w.Tool, w.Seq = rapid.String().Draw(t, "tool"), rapid.Uint64().Draw(t, "seq")
		for i := range w.Samples {
			w.Quality[i] = signal.Quality(rapid.Byte().Draw(t, "quality"))
			for k := range w.Samples[i] {
				w.Samples[i][k] = bits(i+rapid.IntRange(0, 99).Draw(t, "channel"), int64(k))
			}
		}
		whole.NewExtractor().Extract(w, &all)
		part.NewExtractor().Extract(w, &want)
		p.Take(&all, &got)
		if !equalFeatures(&got, &want) {
			t.Fatalf("%+v, extracted %+v", got, want)
		}
		if got.Quality[0]++; all.Quality[0] == got.Quality[0] {
			t.Fatal("both share their memory")
		}
	})
	for name, other := range map[string]*Form{
		"fewer features": newForm(t, l, DefaultSpec, signal.FeatureSpec{Set: []string{"rms"}}, nil),
		"a length":       newForm(t, l, Spec{Length: 2 * time.Second}, signal.FeatureSpec{}, nil),
		"a layout":       newForm(t, signal.GunDrill(), DefaultSpec, signal.FeatureSpec{}, nil),
		"no cutting":     newForm(t, l, DefaultSpec, signal.FeatureSpec{}, &Cutting{}),
		"no frames":      newForm(t, l, DefaultSpec, signal.FeatureSpec{}, &Cutting{Gate: CuttingOf(l, part.samples).Gate}),
	} {
		if _, ok := part.PartOf(other); ok {
			t.Errorf("the default features are part of others: %s", name)
		}
	}
}

// The law: what is sealed and opened is the same, bit for bit, for any facts and any numbers,
// also in memory that other features were in.
func TestFeaturesAnyWindow(t *testing.T) {
	l := twoRates(t)
	forms := []*Form{
		newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil),
		newForm(t, l, DefaultSpec, signal.FeatureSpec{Set: []string{"rms"}}, &Cutting{}),
	}
	var got Features
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(forms).Draw(t, "form")
		w := example(l, DefaultSpec)
		w.Tool = rapid.StringN(0, 40, 200).Draw(t, "tool")
		w.Hole = rapid.StringN(0, 40, 200).Draw(t, "hole")
		w.ToolLife = rapid.StringN(0, 30, signal.MaxToolLife).Draw(t, "life")
		w.Seq, w.Epoch = rapid.Uint64().Draw(t, "seq"), rapid.Uint64().Draw(t, "epoch")
		w.Session, w.Drift = rapid.Int64().Draw(t, "session"), time.Second
		w.SpindleSpeed = rapid.SampledFrom([]float64{0, 1650.5, math.NaN(), math.Inf(1)}).Draw(t, "speed")
		drawContext(t, w)
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			w.FeedRate = rapid.SampledFrom([]float64{-1, math.NaN(), math.Inf(1)}).Draw(t, "odd feed rate")
		}
		for i, x := range w.Samples {
			copy(x, rapid.SliceOfN(rapid.Float32(), len(x), len(x)).Draw(t, fmt.Sprint("x", i)))
			w.Quality[i] = signal.Quality(rapid.Uint8().Draw(t, "quality"))
		}
		var x Features
		f.NewExtractor().Extract(w, &x)
		e, err := f.Seal(&x)
		if err != nil {
			t.Fatal(err)
		}
		arrowAgrees(t, &f.wire, e, &x.Window, func() ([]cell, error) { return f.cells(&x) })
		if err := f.Open(e, &got); err != nil {
			t.Fatal(err)
		}
		if !equalFeatures(&got, &x) {
			t.Fatalf("got %+v, want %+v", got, x)
		}
		again, err := f.Seal(&got)
		if err != nil || string(again.Value) != string(e.Value) || again.CRC != e.CRC || len(e.Value) > f.MaxSize() {
			t.Fatalf("sealed again it differs: %v", err)
		}
	})
}

// What is not the features that their headers say is refused, and the Arrow reader sees
// nothing of it.
func TestOpenFeaturesRefuses(t *testing.T) {
	l := twoRates(t)
	f := newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil)
	var x Features
	f.NewExtractor().Extract(example(l, DefaultSpec), &x)
	good, err := f.Seal(&x)
	if err != nil {
		t.Fatal(err)
	}
	resum := func(e Envelope) Envelope { e.CRC = crc32.Checksum(e.Value, castagnoli); return e }
	value := func(f func([]byte) []byte) Envelope {
		e := good
		e.Value = f(slices.Clone(good.Value))
		return e
	}
	loud := x
	loud.Level = math.Inf(1)
	endless, err := f.Seal(&loud)
	if err != nil {
		t.Fatal(err)
	}
	infinite := func(change func(*Features)) Envelope {
		t.Helper()
		x := x
		x.Values, x.Frames = slices.Clone(x.Values), slices.Clone(x.Frames)
		change(&x)
		e, err := f.Seal(&x)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	longer := newForm(t, l, Spec{Length: 2 * time.Second}, signal.FeatureSpec{}, nil)
	var y Features
	longer.NewExtractor().Extract(example(l, Spec{Length: 2 * time.Second}), &y)
	other, err := longer.Seal(&y)
	if err != nil {
		t.Fatal(err)
	}
	few := newForm(t, l, Spec{Length: f.Length().Length}, signal.FeatureSpec{Set: []string{"rms"}}, nil)
	var z Features
	few.NewExtractor().Extract(example(l, f.Length()), &z)
	fewer, err := few.Seal(&z)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := fewer
	elsewhere.Layout = "0123456789abcdef"
	wrongSpan := x
	wrongSpan.Length = 2 * time.Second
	span, err := f.Seal(&wrongSpan)
	if err != nil {
		t.Fatal(err)
	}
	meta := len(f.prefix)
	for name, tc := range map[string]struct {
		e    Envelope
		kind error
		text string
	}{
		"another list":       {fewer, ErrForeign, "expected " + f.Fingerprint() + ": other features, or of another version than 2"},
		"of another layout":  {elsewhere, ErrForeign, "features of layout \"0123456789abcdef\", expected layout " + l.Fingerprint()},
		"of longer windows":  {other, ErrForeign, "features of windows of 2s, expected windows of 1s"},
		"another length":     {span, ErrForeign, "windows of 2s, expected windows of 1s"},
		"a window":           {func() Envelope { e := good; e.Features = ""; return e }(), ErrForeign, "expected " + f.Fingerprint()},
		"truncated":          {value(func(p []byte) []byte { return p[:len(p)/2] }), ErrCorrupt, "checksum"},
		"one bit flipped":    {value(func(p []byte) []byte { p[len(p)-20] ^= 1; return p }), ErrCorrupt, "checksum"},
		"truncated, new sum": {resum(value(func(p []byte) []byte { return p[:meta/2] })), ErrForeign, "schema"},
		"empty":              {resum(value(func([]byte) []byte { return nil })), ErrForeign, "schema"},
		"schema only":        {resum(value(func(p []byte) []byte { return p[:meta] })), ErrCorrupt, "no record batch"},
		"no end":             {resum(value(func(p []byte) []byte { return p[:len(p)-8] })), ErrCorrupt, "body of"},
		"huge":               {resum(value(func(p []byte) []byte { return append(p, make([]byte, 1<<20)...) })), ErrCorrupt, "at most"},
		"metadata of 2 GiB":  {resum(value(func(p []byte) []byte { binary.LittleEndian.PutUint32(p[meta+4:], 1<<31-1); return p })), ErrCorrupt, "metadata of"},
		"headers of another": {func() Envelope { e := good; e.Seq++; return e }(), ErrCorrupt, "headers say"},
		"another life":       {func() Envelope { e := good; e.ToolLife = "2"; return e }(), ErrCorrupt, "life"},
		"endless level":      {endless, ErrCorrupt, "level"},
		"endless feature":    {infinite(func(x *Features) { x.Values[len(x.Values)-1] = float32(math.Inf(-1)) }), ErrCorrupt, "a value of -Inf"},
		"endless frame":      {infinite(func(x *Features) { x.Frames[0] = float32(math.Inf(1)) }), ErrCorrupt, "a value of +Inf"},
	} {
		var got Features
		err := f.Open(tc.e, &got)
		if !errors.Is(err, tc.kind) || !strings.Contains(fmt.Sprint(err), tc.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, tc.kind, tc.text)
		}
	}
	long := x
	long.Tool = strings.Repeat("T", maxText)
	if _, err := f.Seal(&long); err == nil {
		t.Error("a tool name of 4 kB was sealed")
	}
}

// However a message is damaged, and even when its checksum is made to fit, Open returns.
func TestOpenFeaturesSurvivesMutants(t *testing.T) {
	l := twoRates(t)
	f := newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil)
	var x, got Features
	seeds := sealedTwice(t, func(w *Window) (Envelope, error) {
		f.NewExtractor().Extract(w, &x)
		return f.Seal(&x)
	}, l)
	rng := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for i := range 40_000 {
		good := seeds[i%2]
		e := good
		e.Value = slices.Clone(good.Value)
		for range 1 + rng.IntN(4) {
			at := len(f.prefix) + rng.IntN(min(1500, len(e.Value)-len(f.prefix)))
			e.Value[at] = byte(rng.UintN(256))
		}
		e.CRC = crc32.Checksum(e.Value, castagnoli)
		if f.Open(e, &got) != nil {
			refused++
		}
	}
	if refused < 10_000 {
		t.Errorf("only %d of 40,000 mutants were refused", refused)
	}
}

func FuzzOpenFeatures(f *testing.F) {
	l := twoRates(f)
	form := newForm(f, l, DefaultSpec, signal.FeatureSpec{}, nil)
	var x Features
	form.NewExtractor().Extract(example(l, DefaultSpec), &x)
	good, err := form.Seal(&x)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.Value[len(form.prefix):])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		e := good
		e.Value = append(slices.Clip(form.prefix), p...)
		e.CRC = crc32.Checksum(e.Value, castagnoli)
		var got, again Features
		if form.Open(e, &got) != nil {
			return
		}
		sealed, err := form.Seal(&got)
		if err != nil {
			return // the texts grew too long
		}
		if err := form.Open(sealed, &again); err != nil || !equalFeatures(&again, &got) {
			t.Errorf("sealed again: %v", err)
		}
	})
}

// A default message of features is 5 kB long: 2.7 kB of values, 1.2 kB of schema, which
// Arrow needs and which is the same in every message, and 1.2 kB of facts and lengths.
func TestFeaturesSize(t *testing.T) {
	l := signal.GunDrill()
	f := newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil)
	var x Features
	f.NewExtractor().Extract(example(l, DefaultSpec), &x)
	e, err := f.Seal(&x)
	if err != nil {
		t.Fatal(err)
	}
	if values := 4 * len(x.Values); values != 2684 || len(f.prefix) > 1200 || len(e.Value) > 5200 {
		t.Errorf("%d bytes, of them %d values and %d schema", len(e.Value), values, len(f.prefix))
	}
}

// drillWindow is a window of the gun drill with noise in it.
func drillWindow(b testing.TB) (*Form, *Window) {
	l := signal.GunDrill()
	w := example(l, DefaultSpec)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, x := range w.Samples {
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
	}
	return newForm(b, l, DefaultSpec, signal.FeatureSpec{}, nil), w
}

func BenchmarkExtractFeatures(b *testing.B) {
	f, w := drillWindow(b)
	x := f.NewExtractor()
	var features Features
	b.ReportAllocs()
	for b.Loop() {
		x.Extract(w, &features)
	}
}

func BenchmarkSealFeatures(b *testing.B) {
	f, w := drillWindow(b)
	var x Features
	f.NewExtractor().Extract(w, &x)
	b.ReportAllocs()
	for b.Loop() {
		e, err := f.Seal(&x)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(e.Value)), "bytes/message")
	}
}

func BenchmarkOpenFeatures(b *testing.B) {
	f, w := drillWindow(b)
	var x Features
	f.NewExtractor().Extract(w, &x)
	e, err := f.Seal(&x)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Open(e, &x); err != nil {
			b.Fatal(err)
		}
	}
}
