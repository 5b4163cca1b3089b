package window

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

// drawContext draws what a control may say of a window, from nothing to everything.
func drawContext(t *rapid.T, w *Window) {
	w.FeedRate = rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-300, 1e300)).Draw(t, "feed rate")
	w.Programme = rapid.StringN(0, 60, signal.MaxContextText).Draw(t, "programme")
	w.Material = rapid.StringN(0, 60, signal.MaxContextText).Draw(t, "material")
}

// withContext returns the example of a control that says everything.
func withContext(l *signal.Layout) *Window {
	w := example(l, DefaultSpec)
	w.FeedRate, w.Programme, w.Material = 82.5, "O1234 <bore>", "42CrMo4"
	w.Rates = []float64{0, 49.9871}
	return w
}

// sealedTwice seals a window of a control that says nothing more than before, and one of a
// control that says everything.
func sealedTwice(t testing.TB, seal func(*Window) (Envelope, error), l *signal.Layout) (two [2]Envelope) {
	t.Helper()
	for i, w := range []*Window{example(l, DefaultSpec), withContext(l)} {
		e, err := seal(w)
		if err != nil {
			t.Fatal(err)
		}
		two[i] = e
	}
	return two
}

// sealers seal and open windows, and features, of one layout.
func sealers(t *testing.T, l *signal.Layout) map[string]sealer {
	c, f := newCodec(t, l, DefaultSpec), newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil)
	x := f.NewExtractor()
	return map[string]sealer{
		"window": {c.Seal, func(e Envelope, to *signal.Context) error {
			w := Window{Context: signal.Context{FeedRate: 7, Programme: "of the window before", Material: "likewise"}}
			err := c.Open(e, &w)
			*to = w.Context
			return err
		}, len(c.prefix), c.MaxSize()},
		"features": {func(w *Window) (Envelope, error) {
			var all Features
			x.Extract(w, &all)
			return f.Seal(&all)
		}, func(e Envelope, to *signal.Context) error {
			all := Features{Window: Window{Context: signal.Context{FeedRate: 7, Programme: "of the window before", Material: "likewise"}}}
			err := f.Open(e, &all)
			*to = all.Context
			return err
		}, len(f.prefix), f.MaxSize()},
	}
}

type sealer struct {
	seal          func(*Window) (Envelope, error)
	open          func(Envelope, *signal.Context) error
	schema, limit int
}

// What a control says arrives, behind the same schema. Without it the bytes are as Arrow wrote
// them, and what was not sent is not known.
func TestContext(t *testing.T) {
	l := twoRates(t)
	for name, s := range sealers(t, l) {
		two := sealedTwice(t, s.seal, l)
		var got signal.Context
		if err := s.open(two[1], &got); err != nil || got != withContext(l).Context {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err := s.open(two[0], &got); err != nil || got != example(l, DefaultSpec).Context {
			t.Errorf("%s without: %+v, %v", name, got, err)
		}
		if !bytes.Equal(two[0].Value[:s.schema], two[1].Value[:s.schema]) {
			t.Errorf("%s: the schema depends on the context", name)
		}
		if more := len(two[1].Value) - len(two[0].Value); more <= 0 || more > 256 {
			t.Errorf("%s: %d bytes more", name, more)
		}
		if !bytes.HasSuffix(two[1].Value, two[0].Value[len(two[0].Value)-64:]) {
			t.Errorf("%s: the body differs", name)
		}
	}
}

// Rates that are wrong arrive with windows and features. What another program wrote, and cannot be rates, is none.
func TestRates(t *testing.T) {
	l := twoRates(t)
	c, f := newCodec(t, l, DefaultSpec), newForm(t, l, DefaultSpec, signal.FeatureSpec{}, nil)
	var all Features
	f.NewExtractor().Extract(withContext(l), &all)
	for _, want := range [][]float64{{0, 49.9871}, nil} {
		w := withContext(l)
		w.Rates, all.Rates = want, want
		e, err := c.Seal(w)
		if err != nil {
			t.Fatal(err)
		}
		of, err := f.Seal(&all)
		if err != nil {
			t.Fatal(err)
		}
		got, features := Window{Rates: []float64{7}}, Features{Window: Window{Rates: []float64{7}}}
		if err := errors.Join(c.Open(e, &got), f.Open(of, &features)); err != nil || !slices.Equal(got.Rates, want) || !slices.Equal(features.Rates, want) {
			t.Errorf("%v: window %v, features %v, %v", want, got.Rates, features.Rates, err)
		}
	}
	for text, want := range map[string][]float64{"": nil, "1 2": {1, 2}, "0 1e3": {0, 1000}, "-1": nil, "NaN": nil, "1 Inf": nil, "fast": nil} {
		if got := parseRates(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The Arrow library reads a message with metadata as it reads one without. It is what an older
// release does, whose bounds are the same.
func TestContextIsPlainArrow(t *testing.T) {
	l := twoRates(t)
	for name, s := range sealers(t, l) {
		var rows [2]string
		for i, e := range sealedTwice(t, s.seal, l) {
			r, err := ipc.NewReader(bytes.NewReader(e.Value))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer r.Release()
			if !r.Next() {
				t.Fatalf("%s: no record: %v", name, r.Err())
			}
			rows[i] = fmt.Sprint(r.Record())
		}
		if rows[0] != rows[1] {
			t.Errorf("%s: the columns depend on the metadata", name)
		}
	}
}

// The longest texts fit into the bound that windows always had; longer ones are not sent. What
// cannot be a feed rate is not sent either.
func TestContextBounds(t *testing.T) {
	l := twoRates(t)
	for name, s := range sealers(t, l) {
		w := example(l, DefaultSpec)
		w.Tool = strings.Repeat("T", maxText-len(w.Machine)-len(w.Hole))
		w.ToolLife = strings.Repeat("l", signal.MaxToolLife)
		w.FeedRate = 1.2345678901234567e-300
		w.Programme, w.Material = strings.Repeat("p", signal.MaxContextText), strings.Repeat("m", signal.MaxContextText)
		e, err := s.seal(w)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got signal.Context
		if err := s.open(e, &got); err != nil || got != w.Context || len(e.Value) > s.limit {
			t.Errorf("%s: %+v, %v, %d bytes of %d", name, got, err, len(e.Value), s.limit)
		}
		for _, text := range []*string{&w.Programme, &w.Material} {
			*text += "x"
			if _, err := s.seal(w); err == nil || !strings.Contains(err.Error(), "257 bytes long: at most 256 are sent, shorten it") {
				t.Errorf("%s: %v", name, err)
			}
			*text = ""
		}
		plain := sealedTwice(t, s.seal, l)[0]
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
			w := example(l, DefaultSpec)
			w.FeedRate = v
			if e, err := s.seal(w); err != nil || !bytes.Equal(e.Value, plain.Value) {
				t.Errorf("%s: a feed rate of %v: %v", name, v, err)
			}
		}
	}
}

// What another program wrote is refused if it is too long; keys that are not known, and a feed
// rate that is not one, are passed over.
func TestContextOfAnotherProgram(t *testing.T) {
	l := twoRates(t)
	for name, s := range sealers(t, l) {
		plain := sealedTwice(t, s.seal, l)[0]
		known := example(l, DefaultSpec).Context
		with := func(keys ...[2]string) Envelope {
			e := plain
			p := plain.Value[s.schema:]
			header := p[8 : 8+int(p[4])+int(p[5])<<8]
			message := messageWith(header, keys)
			for len(message)%8 != 0 {
				message = append(message, 0)
			}
			e.Value = append(bytes.Clone(plain.Value[:s.schema]), 0xff, 0xff, 0xff, 0xff, byte(len(message)), byte(len(message)>>8), 0, 0)
			e.Value = append(append(e.Value, message...), p[8+len(header):]...)
			e.CRC = crc32.Checksum(e.Value, castagnoli)
			return e
		}
		var got signal.Context
		for _, text := range []string{"fast", "NaN", "-3", "1e999", "Inf", ""} {
			if err := s.open(with([2]string{"feed_rate", text}, [2]string{"coolant", "on"}), &got); err != nil || got != known {
				t.Errorf("%s: a feed rate of %.20q: %+v, %v", name, text, got, err)
			}
		}
		if err := s.open(with([2]string{"programme", "O1"}), &got); err != nil || got.Programme != "O1" || got.Material != "" || got.FeedRate != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for _, key := range []string{"programme", "material"} {
			if err := s.open(with([2]string{key, strings.Repeat("x", 257)}), &got); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %s of 257 bytes: %v", name, key, err)
			}
		}
	}
}

// A file has feed rate, programme and material if its first window knows one of them.
func TestFileContext(t *testing.T) {
	l := twoRates(t)
	c := newCodec(t, l, DefaultSpec)
	for name, want := range map[string]struct {
		windows []*Window
		columns map[string][]string
	}{
		"known":             {[]*Window{withContext(l), example(l, DefaultSpec)}, map[string][]string{"feed_rate": {"82.5", "0"}, "programme": {"O1234 <bore>", ""}, "material": {"42CrMo4", ""}}},
		"not known":         {[]*Window{example(l, DefaultSpec)}, map[string][]string{}},
		"not of the first":  {[]*Window{example(l, DefaultSpec), withContext(l)}, map[string][]string{}},
		"a file of nothing": {nil, map[string][]string{}},
	} {
		var b bytes.Buffer
		f := c.NewFileWriter(&b)
		for _, w := range want.windows {
			if err := f.Write(w); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := ipc.NewFileReader(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for i := range r.NumRecords() {
			rec, err := r.RecordAt(i)
			if err != nil {
				t.Fatal(err)
			}
			for k, field := range r.Schema().Fields()[factColumns+len(l.Channels()):] {
				text := ""
				switch col := rec.Column(factColumns + len(l.Channels()) + k).(type) {
				case *array.String:
					text = col.Value(0)
				case *array.Float64:
					text = formatFloat(col.Value(0))
				}
				got[field.Name] = append(got[field.Name], text)
			}
		}
		if !maps.EqualFunc(got, want.columns, func(a, b []string) bool { return strings.Join(a, "|") == strings.Join(b, "|") }) {
			t.Errorf("%s: %q, want %q", name, got, want.columns)
		}
		if err := ReadChannel(r, "material", nil); !errors.Is(err, ErrNoChannel) {
			t.Errorf("%s: material as a channel: %v", name, err)
		}
	}
}
