package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	// leastDriftTools is how many tools of a machine are looked at before drift is
	// reported: one odd tool is not a drift.
	leastDriftTools = 3
	// driftMemory is the weight of what was before the newest tool: about nine tools
	// are remembered.
	driftMemory = 0.8
	// driftClip is how many standard deviations a feature of one tool counts at most.
	driftClip = 10
)

// Drift is what the references of the training tools were, for telling when the
// references of a machine's tools are unlike them: a sensor that has come loose or was
// replaced, another spindle, another coolant.
//
// A tool's reference is taken when it is new, so its wear is not in it, and drift and
// wear are never taken for each other. With z̄ the weighted mean of the last tools'
// references, less the training tools' mean and divided by their standard deviation, feature
// by feature, p features, n the tools that the weights stand for and T training tools,
//
//	F = Σ_j z̄_j² / (p·(1/n + 1/T)),
//
// which without drift is distributed about as F with r and r·(T−1) degrees of freedom,
// where r is how many independent features the p are worth: features that go together
// count once. So one test is made for each tool, however many features there are.
//
// Source: A. Dempster, "A High Dimensional Two Sample Significance Test", Ann. Math.
// Statist. 29, 1958.
type Drift struct {
	Tools   int       `json:"tools"`   // T
	Center  []float64 `json:"center"`  // by feature: mean of the tools
	Scale   []float64 `json:"scale"`   // their standard deviation; 0 leaves the feature out
	Degrees float64   `json:"degrees"` // r
	Raise   float64   `json:"raise"`   // F from which on there is drift
	Clear   float64   `json:"clear"`   // F at and below which drift ends
}

func (d *Drift) check(features int) error {
	if len(d.Center) != features || len(d.Scale) != features {
		return fmt.Errorf("drift: %d means and %d deviations, expected %d of each", len(d.Center), len(d.Scale), features)
	}
	if d.Tools < 2 || !(min(d.Clear, d.Raise-d.Clear, d.Degrees-1) >= 0) || !finite(d.Raise+d.Degrees) {
		return errors.New("drift: a number makes no sense")
	}
	for j := range d.Center {
		if !finite(d.Center[j]) || !(d.Scale[j] >= 0 && d.Scale[j] <= math.MaxFloat64) {
			return fmt.Errorf("drift: feature %d: mean %v, deviation %v", j, d.Center[j], d.Scale[j])
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Standardise stores in z how far a settled reference is from the training tools, in
// standard deviations of theirs, within ±10; 0 where a feature has no value. It
// panics if the lengths do not agree.
func (d *Drift) Standardise(z []float32, center []float32) {
	if len(z) != len(d.Center) || len(center) != len(d.Center) {
		panic(fmt.Sprintf("model: Standardise: %d of %d features, expected %d", len(z), len(center), len(d.Center)))
	}
	for j, v := range center {
		z[j] = 0
		if v == v && d.Scale[j] > 0 {
			z[j] = float32(min(max((float64(v)-d.Center[j])/d.Scale[j], -driftClip), driftClip))
		}
	}
}

// DriftMemory is what is remembered of the references of a machine's tools. The zero
// value has seen none. It is as long as the model has features, however many tools
// there were.
type DriftMemory struct {
	Tools   int     // seen
	F       float64 // after the last of them
	Drifted bool    // raised and not cleared since

	weight, squares float64   // sums of weights and of their squares
	mean            []float32 // z̄
}

// Observe takes the reference of the next tool into account, and reports whether Drifted
// has changed. Call it once for each tool, when its reference is settled. It does nothing
// with one that is not, and with a nil by.
func (m *DriftMemory) Observe(by *Drift, ref *Reference) (changed bool) {
	if by == nil || ref.Center() == nil {
		return false
	}
	if m.Tools == 0 {
		m.mean = make([]float32, len(by.Center))
	}
	z := make([]float32, len(by.Center)) // once for each tool
	by.Standardise(z, ref.Center())
	m.weight = driftMemory*m.weight + 1
	m.squares = driftMemory*driftMemory*m.squares + 1
	for j := range m.mean {
		m.mean[j] += float32(float64(z[j]-m.mean[j]) / m.weight)
	}
	m.Tools++
	m.F = by.statistic(m.mean, m.weight*m.weight/m.squares)
	was := m.Drifted
	switch {
	case m.Tools >= leastDriftTools && m.F >= by.Raise:
		m.Drifted = true
	case m.F <= by.Clear:
		m.Drifted = false
	}
	return m.Drifted != was
}

// statistic returns F of a mean that stands for n tools.
func (d *Drift) statistic(mean []float32, n float64) float64 {
	var sum float64
	p := 0
	for j, v := range mean {
		if d.Scale[j] > 0 {
			sum += float64(v) * float64(v)
			p++
		}
	}
	return sum / (float64(max(p, 1)) * (1/n + 1/float64(d.Tools)))
}

// Most returns up to n features that have moved most, and by how many standard
// deviations, the furthest first.
func (m *DriftMemory) Most(n int) (features []int, by []float64) {
	order := make([]int, len(m.mean))
	for j := range order {
		order[j] = j
	}
	size := func(j int) float64 { return math.Abs(float64(m.mean[j])) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	for _, j := range order[:min(n, len(order))] {
		features, by = append(features, j), append(by, float64(m.mean[j]))
	}
	return features, by
}

// Check reports a memory that no machine can have under a model with drift by.
func (m *DriftMemory) Check(by *Drift) error {
	if m.Tools > 0 && len(m.mean) != len(by.Center) {
		return fmt.Errorf("model: drift of %d features, the model has %d", len(m.mean), len(by.Center))
	}
	return nil
}

// driftJSON is a memory as the state topic keeps it, bit for bit.
type driftJSON struct {
	Tools   int     `json:"tools"`
	F       float64 `json:"f"`
	Drifted bool    `json:"drifted,omitempty"`
	Weight  float64 `json:"weight"`
	Squares float64 `json:"squares"`
	Mean    string  `json:"mean"` // base64 of float32, little-endian
}

// MarshalJSON returns the memory in a form that UnmarshalJSON restores exactly.
func (m *DriftMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(driftJSON{m.Tools, m.F, m.Drifted, m.weight, m.squares, packFloats(m.mean)})
}

// sound reports whether Observe can have made m.
func (m *DriftMemory) sound() bool {
	far := func(v float32) bool { return !(math.Abs(float64(v)) <= driftClip) }
	if m.Tools < 0 || (m.Tools > 0) != (len(m.mean) > 0) || m.Tools > 0 && !(min(m.weight, m.squares) >= 1) {
		return false
	}
	return m.F >= 0 && finite(m.F) && finite(m.weight) && finite(m.squares) && !slices.ContainsFunc(m.mean, far)
}

// UnmarshalJSON restores a memory. It refuses one that Observe cannot have made.
func (m *DriftMemory) UnmarshalJSON(text []byte) error {
	var j driftJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("model: drift: %w", err)
	}
	mean, whole, err := unpackFloats(j.Mean)
	if err != nil {
		return fmt.Errorf("model: drift: %w", err)
	}
	read := DriftMemory{Tools: j.Tools, F: j.F, Drifted: j.Drifted, weight: j.Weight, squares: j.Squares, mean: mean}
	if !whole || !read.sound() {
		return errors.New("model: drift: damaged")
	}
	*m = read
	return nil
}
