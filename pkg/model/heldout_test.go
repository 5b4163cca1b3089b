package model

import (
	"math"
	"reflect"
	"testing"
	"time"
)

func heldExample() *HeldOut {
	at := time.Date(2026, 11, 2, 6, 0, 0, 5, time.UTC)
	return &HeldOut{
		ByTool: true, Folds: 5, Classes: 3, Votes: true, Temperature: 1.25,
		Tools: []HeldTool{
			{Machine: "acme/m", Tool: "T1", Recording: "a", Group: "T1", Apart: "T1", Began: at, First: at, Last: at.Add(time.Hour), CutOff: true},
			{Tool: "Ü", Group: "m/Ü", Apart: "T1"},
		},
		Rows: []HeldRow{
			{Tool: 0, Hole: "h1", Start: at.Add(2 * time.Second), Was: 1, Class: 2, Fold: 4, Posterior: []float32{0.25, 0.5, 0.25}, Vote: -3},
			{Tool: 1, Was: -1, Class: -1, Fold: Taught, Posterior: []float32{1, 0, 0}, Vote: 6},
			{Tool: 1, Start: at, Was: -1, Class: 0, Fold: Judged, Posterior: []float32{1, 0, 1e-30}, Vote: 0},
			{Tool: 1, Was: 0, Class: 0, Fold: 0, Posterior: []float32{1, 0, 0}, Vote: 1},
			{Tool: 0, Hole: "h1", Start: at.Add(4 * time.Second), Was: 1, Class: 1, Fold: 4, Posterior: []float32{0.25, 0.5, 0.25}, Vote: 2},
		},
	}
}

func TestHeldOutRoundTrip(t *testing.T) {
	for _, votes := range []bool{true, false} {
		h := heldExample()
		if h.Votes = votes; !votes {
			for i := range h.Rows {
				h.Rows[i].Vote = 0
			}
		}
		got, err := DecodeHeldOut(h.Encode())
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("votes %t: %v\n%+v\nwant\n%+v", votes, err, got, h)
		}
	}
}

// Of windows that follow each other a row takes the bytes that schemas/model.md says.
func TestHeldOutBytes(t *testing.T) {
	h := &HeldOut{Folds: 5, Classes: 2, Votes: true, Temperature: 1, Tools: []HeldTool{{Tool: "T1"}}}
	size := func(n int) int {
		h.Rows = nil
		for i := range n {
			h.Rows = append(h.Rows, HeldRow{Start: time.Unix(1_800_000_000+2*int64(i), 0), Posterior: make([]float32, 2), Fold: 1})
		}
		return len(h.Encode())
	}
	if a, b := size(10), size(1010); b-a < 18*1000 || b-a > 18*1000+8 {
		t.Errorf("%d bytes for 1000 rows", b-a)
	}
}

func TestHeldOutDamaged(t *testing.T) {
	b := heldExample().Encode()
	for n := range b {
		if _, err := DecodeHeldOut(b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are taken for the whole", n, len(b))
		}
	}
	if _, err := DecodeHeldOut(append(b, 0)); err == nil {
		t.Error("a byte too many")
	}
}

func FuzzDecodeHeldOut(f *testing.F) {
	f.Add(heldExample().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHeldOut(b)
		if err != nil {
			return
		}
		again, err := DecodeHeldOut(h.Encode())
		if err != nil || len(again.Rows) != len(h.Rows) || math.Float64bits(again.Temperature) != math.Float64bits(h.Temperature) {
			t.Errorf("%v: %+v became %+v", err, h, again)
		}
	})
}
