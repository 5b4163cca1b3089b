package window

import (
	"errors"
	"hash/crc32"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

// sealedFeatures returns features of two channels in an envelope.
func sealedFeatures(t testing.TB) (Envelope, Window) {
	layout, err := signal.NewLayout("", []signal.Channel{
		{Name: "force", Kind: signal.Force, Unit: "N", Rate: 100, Range: 100}, {Name: "current", Kind: signal.Current, Unit: "A", Rate: 10, Range: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	form, err := NewForm(layout, Spec{Length: time.Second}, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := Window{
		Context: signal.Context{Machine: "acme/line1/drill", Tool: "T1", ToolLife: "x", Hole: "h7", Programme: "O1"},
		Epoch:   7, Seq: 9, Start: time.Date(2026, 11, 2, 12, 0, 0, 5, time.UTC), Length: time.Second,
		Session: 3, First: 900, Samples: [][]float32{make([]float32, 100), make([]float32, 10)}, Quality: make([]signal.Quality, 2),
	}
	var x Features
	form.NewExtractor().Extract(&w, &x)
	e, err := form.Seal(&x)
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

// A reader that does not know the form of features can still tell which window they are of.
func TestFactsOf(t *testing.T) {
	e, w := sealedFeatures(t)
	got, err := FactsOf(e)
	if err != nil || got.Machine != w.Machine || got.Tool != w.Tool || got.ToolLife != w.ToolLife || got.Hole != w.Hole || got.Epoch != w.Epoch || got.Seq != w.Seq ||
		!got.Start.Equal(w.Start) || got.Length != w.Length {
		t.Errorf("%+v, %v", got, err)
	}
	for name, change := range map[string]func(*Envelope){
		"another machine": func(e *Envelope) { e.Machine = "x" }, "another life": func(e *Envelope) { e.ToolLife = "" }, "another number": func(e *Envelope) { e.Seq++ },
		"another checksum": func(e *Envelope) { e.CRC++ }, "nothing": func(e *Envelope) { e.Value, e.CRC = nil, 0 },
	} {
		e := e
		if change(&e); true {
			if _, err := FactsOf(e); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A value of any bytes gives facts that agree with the headers, or an error.
func TestFactsOfAnyBytes(t *testing.T) {
	whole, w := sealedFeatures(t)
	rapid.Check(t, func(t *rapid.T) {
		e := whole
		e.Value = append([]byte(nil), whole.Value...)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			at := rapid.IntRange(0, len(e.Value)-1).Draw(t, "at")
			e.Value[at] = rapid.Byte().Draw(t, "byte")
		}
		e.Value = e.Value[:rapid.IntRange(len(e.Value)-rapid.IntRange(0, len(e.Value)).Draw(t, "most"), len(e.Value)).Draw(t, "length")]
		e.CRC = crc32.Checksum(e.Value, castagnoli)
		got, err := FactsOf(e)
		if err == nil && (got.Machine != w.Machine || got.Seq != w.Seq || got.Epoch != w.Epoch) || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}
