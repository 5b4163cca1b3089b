package model

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/trend"
)

// byWear returns a model that decides by wear: √wear is 10 + 4·a, so that the limit of
// 324 µm is at a = 2, where a window is not grown.
func byWear(t testing.TB) *Model {
	m := trained(t)
	j := m.NewJudge()
	p := len(j.FeatureNames())
	w := &trend.Model{
		Center: make([]float64, 2*p), Scale: make([]float64, 2*p), Weights: make([]float64, 2*p),
		Bias: 10, Median: 5, Low: -1, High: 1, MostUM: 500, Distance: 1e9, LimitUM: 324,
	}
	for i := range w.Scale {
		w.Scale[i] = 1
	}
	for i, name := range j.FeatureNames() {
		if name == "a" {
			w.Weights[i] = 4
		}
	}
	m.Wear, m.ByWear = w, &WearVerdict{LimitUM: 324, Spread: 2}
	root, _ := w.Root(m.Golden[0].Features, nil)
	m.GoldenWear = []GoldenWear{{Features: m.Golden[0].Features, Root: root}}
	return m
}

func TestVerdictByWear(t *testing.T) {
	m := byWear(t)
	j := m.NewJudge()
	var ref Reference
	for range 2 {
		j.Judge(cutting(1), &ref, nil)
	}
	for _, tc := range []struct {
		grown float32
		want  Outcome
		p     float64 // Φ((10 + 8·grown − 18)/2)
	}{
		{0.9, Healthy, 0.344578258}, // Φ(−0.4)
		{1.1, Faulty, 0.655421742},  // Φ(0.4)
		{1.5, Faulty, 0.977249868},  // Φ(2)
	} {
		v := j.Judge(cutting(tc.grown), &ref, nil)
		if v.Outcome != tc.want || math.Abs(v.Posterior[1]-tc.p) > 1e-6 || math.Abs(v.Posterior[0]+v.Posterior[1]-1) > 1e-12 || math.Abs(v.Score-tc.p) > 1e-6 {
			t.Errorf("grown by %v: %s, P %v, score %v, want %s and %v", tc.grown, v.Outcome, v.Posterior, v.Score, tc.want, tc.p)
		}
		if e := j.Explain(&ref); len(e.Parts) != len(j.FeatureNames()) {
			t.Errorf("grown by %v: %d parts of an explanation", tc.grown, len(e.Parts))
		}
	}
	w := cutting(1.2)
	if n := testing.AllocsPerRun(100, func() { j.Judge(w, &ref, nil) }); n > 0 {
		t.Errorf("%v allocations a window", n)
	}
	if !strings.Contains(m.String(), "faulty from an estimated wear of 324 µm on") {
		t.Errorf("in words: %s", m)
	}

	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	// A program that does not know the verdict must not decide by the classifier instead.
	if v := binary.LittleEndian.Uint32(b[8:]); v != 2 {
		t.Errorf("the file's version is %d", v)
	}
	read, err := Decode(b)
	if err != nil || !reflect.DeepEqual(read.ByWear, m.ByWear) {
		t.Fatalf("read as %+v, %v", read.ByWear, err)
	}
	again, err := read.Encode()
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("written again it has other bytes, %v", err)
	}

	for name, spoil := range map[string]func(m *Model){
		"no estimate":     func(m *Model) { m.Wear, m.GoldenWear = nil, nil },
		"no limit":        func(m *Model) { m.ByWear = &WearVerdict{Spread: 2} },
		"no spread":       func(m *Model) { m.ByWear = &WearVerdict{LimitUM: 300} },
		"a spread of NaN": func(m *Model) { m.ByWear = &WearVerdict{LimitUM: 300, Spread: math.NaN()} },
	} {
		m := byWear(t)
		spoil(m)
		if _, err := m.Encode(); err == nil || !strings.Contains(err.Error(), "verdict by wear") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
