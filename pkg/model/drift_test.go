package model

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// settled returns the reference of a tool.
func settled(tool string, center []float32) *Reference {
	r := Reference{Tool: tool}
	r.Learn(center, ReferenceSpec{Windows: 1, Mode: ReferenceRatio})
	return &r
}

// F is what the formula says, of weights 0.8^age.
func TestDriftStatistic(t *testing.T) {
	d := &Drift{Tools: 4, Center: []float64{1, 10, 0}, Scale: []float64{1, 2, 0}, Degrees: 2, Raise: 5, Clear: 1}
	var m DriftMemory
	if m.Observe(d, &Reference{Tool: "A"}) || m.Observe(nil, settled("A", []float32{1, 1, 1})) || m.Tools != 0 {
		t.Errorf("%+v of a reference that is not settled, or without a model", m)
	}
	for _, tool := range []string{"A", "B"} {
		at := map[string][]float32{"A": {2, 14, 99}, "B": {3, float32(math.NaN()), -99}}[tool]
		m.Observe(d, settled(tool, at))
	}
	z := [2]float64{(0.8*1 + 2) / 1.8, (0.8*2 + 0) / 1.8}
	n := 1.8 * 1.8 / (1 + 0.64)
	if want := (z[0]*z[0] + z[1]*z[1]) / (2 * (1/n + 0.25)); m.Tools != 2 || math.Abs(m.F-want) > 1e-6 {
		t.Errorf("F = %v after %d tools, want %v", m.F, m.Tools, want)
	}
	if f, by := m.Most(1); f[0] != 0 || math.Abs(by[0]-z[0]) > 1e-6 {
		t.Errorf("moved most is feature %v by %v", f, by)
	}
}

// Drift is raised by no fewer than three tools, once, and is over when new ones are as
// they were; a restart at any tool changes nothing.
func TestDriftIsRaisedAndCleared(t *testing.T) {
	const p = 40
	d := &Drift{Tools: 20, Center: make([]float64, p), Scale: slices.Repeat([]float64{1}, p), Degrees: p, Raise: 2, Clear: 1.4}
	rng := rand.New(rand.NewPCG(1, 2))
	var m, restarted DriftMemory
	var changes []int
	for tool := range 60 {
		center := make([]float32, p)
		for j := range center {
			center[j] = float32(rng.NormFloat64())
			if tool >= 20 && tool < 40 && j < 10 {
				center[j] += 4 // a quarter of the channels reads more
			}
		}
		ref := settled(string(rune('A'+tool)), center)
		changed := m.Observe(d, ref)
		if changed {
			changes = append(changes, tool)
		}
		text, err := json.Marshal(&restarted)
		if err != nil {
			t.Fatal(err)
		}
		restarted = DriftMemory{}
		if err := json.Unmarshal(text, &restarted); err != nil {
			t.Fatal(err)
		}
		if restarted.Observe(d, ref) != changed || !reflect.DeepEqual(m, restarted) {
			t.Fatalf("after a restart %+v, without %+v", restarted, m)
		}
		if err := m.Check(d); err != nil {
			t.Fatal(err)
		}
	}
	if len(changes) != 2 || changes[0] < 20 || changes[0] > 25 || changes[1] < 41 || changes[1] > 56 {
		t.Errorf("changed at tools %v: drift begins at 20 and ends at 40", changes)
	}
	var distant DriftMemory
	for tool := range 3 {
		if changed := distant.Observe(d, settled(string(rune('A'+tool)), slices.Repeat([]float32{9}, p))); changed != (tool == 2) {
			t.Errorf("tool %d: changed %v", tool, changed)
		}
	}
	if err := distant.Check(&Drift{Center: make([]float64, 3)}); err == nil {
		t.Error("a memory of other features was taken")
	}
}

func FuzzDriftMemory(f *testing.F) {
	d := &Drift{Tools: 4, Center: []float64{1, 10}, Scale: []float64{1, 2}, Degrees: 2, Raise: 5, Clear: 1}
	var m DriftMemory
	m.Observe(d, settled("A", []float32{2, 14}))
	text, err := json.Marshal(&m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"tools":1,"weight":1,"squares":1,"mean":"AAAAAAAAAAA="}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m, same DriftMemory
		if json.Unmarshal(text, &m) != nil {
			return
		}
		again, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &same); err != nil || !reflect.DeepEqual(m, same) {
			t.Fatalf("%s becomes %s: %v", text, again, err)
		}
		if m.Check(d) == nil {
			m.Observe(d, settled("new", []float32{1, 2}))
		}
	})
}
