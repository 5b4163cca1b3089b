package web

import (
	"encoding/json"
	"math"
	"time"
	"unique"

	"github.com/flank-tcm/flank/internal/event"
)

// A hub keeps 600 results of each of 500 machines, so they take little: some 130 bytes each.
// What is the same in most results of a machine is there once.

// keptResult is a result in little memory. Numbers that are not known are NaN.
type keptResult struct {
	of           unique.Handle[resultContext]
	seq          uint64
	start, end   int64 // Unix microseconds
	posterior    []float32
	score        float32
	novelty      float32
	threshold    float32
	wear, left   [3]float32 // estimate, low and high end
	feedRate     float32
	leftWindows  bool  // left are windows, not holes
	referenceLen int32 // -1: the reference is complete, or there is none
	late         bool
	wearUnknown  bool
}

// resultContext is what changes seldom from one result to the next.
type resultContext struct {
	epoch, tool, hole, programme, material, class, state, unknown, model, alarm, incident string

	verdict event.Verdict
	sensors string // as JSON; empty: none
}

// resultJSON is a result as pages get it: a result of tcm.results.v1 without what is the same
// for the whole page, and without numbers and times that are not known.
type resultJSON struct {
	Epoch        string          `json:"epoch"`
	Seq          uint64          `json:"seq"`
	Tool         string          `json:"tool,omitempty"`
	Hole         string          `json:"hole,omitempty"`
	FeedRate     *float32        `json:"feed_rate,omitempty"`
	Programme    string          `json:"programme,omitempty"`
	Material     string          `json:"material,omitempty"`
	Start        *time.Time      `json:"start,omitempty"`
	End          *time.Time      `json:"end,omitempty"`
	Verdict      event.Verdict   `json:"verdict"`
	Class        string          `json:"class,omitempty"`
	CuttingState string          `json:"cutting_state,omitempty"`
	Unknown      string          `json:"unknown_reason,omitempty"`
	Novelty      *float32        `json:"novelty,omitempty"`
	Posterior    []float32       `json:"posterior,omitempty"`
	Score        *float32        `json:"score,omitempty"` // left out if the model did not judge the window
	Threshold    *float32        `json:"threshold,omitempty"`
	Model        string          `json:"model"`
	Alarm        string          `json:"alarm"`
	Incident     string          `json:"incident,omitempty"`
	Late         bool            `json:"late,omitempty"`
	Sensors      json.RawMessage `json:"sensors,omitempty"`
	ReferenceLen *int32          `json:"reference_len,omitempty"`

	WearUnknown     bool     `json:"wear_unknown,omitempty"`
	WearUM          *float32 `json:"wear_um,omitempty"`
	WearLowUM       *float32 `json:"wear_low_um,omitempty"`
	WearHighUM      *float32 `json:"wear_high_um,omitempty"`
	HolesLeft       *float32 `json:"holes_left,omitempty"`
	HolesLeftLow    *float32 `json:"holes_left_low,omitempty"`
	HolesLeftHigh   *float32 `json:"holes_left_high,omitempty"`
	WindowsLeft     *float32 `json:"windows_left,omitempty"`
	WindowsLeftLow  *float32 `json:"windows_left_low,omitempty"`
	WindowsLeftHigh *float32 `json:"windows_left_high,omitempty"`
}

// judged reports whether the model judged the window of a result.
func judged(r *event.Result) bool {
	return r.Verdict == event.Healthy || r.Verdict == event.Faulty || r.Verdict == event.Unknown && len(r.Posterior) > 0
}

// keep returns a result in little memory. It shares nothing with r.
func keep(r *event.Result) keptResult {
	c := resultContext{
		epoch: r.Epoch, tool: r.Tool, hole: r.Hole, programme: r.Programme, material: r.Material, class: r.Class, state: r.CuttingState, unknown: r.Unknown,
		model: r.Model, alarm: r.Alarm, incident: r.Incident, verdict: r.Verdict,
	}
	if len(r.Sensors) > 0 {
		c.sensors = string(encode(r.Sensors))
	}
	k := keptResult{
		of: unique.Make(c), seq: r.Seq, start: r.Start.UnixMicro(), end: r.End.UnixMicro(), late: r.Late, wearUnknown: r.WearUnknown,
		score: notKnown, novelty: positive(r.Novelty), feedRate: positive(r.FeedRate), threshold: positive(r.Threshold), wear: [3]float32{notKnown, notKnown, notKnown}, left: [3]float32{notKnown, notKnown, notKnown}, referenceLen: -1,
	}
	if judged(r) {
		k.score = float32(r.Score)
	}
	if r.Verdict == event.Learning {
		k.referenceLen = int32(min(r.ReferenceLen, math.MaxInt32))
	}
	if len(r.Posterior) > 0 {
		k.posterior = make([]float32, len(r.Posterior))
		for i, p := range r.Posterior {
			k.posterior[i] = float32(p)
		}
	}
	if w := r.Wear; w != nil {
		k.wear = [3]float32{float32(w.WearUM), float32(w.WearLowUM), float32(w.WearHighUM)}
		k.left, k.leftWindows = [3]float32{orNaN(w.HolesLeft), orNaN(w.HolesLeftLow), orNaN(w.HolesLeftHigh)}, false
		if w.WindowsLeft != nil {
			k.left, k.leftWindows = [3]float32{orNaN(w.WindowsLeft), orNaN(w.WindowsLeftLow), orNaN(w.WindowsLeftHigh)}, true
		}
	}
	return k
}

// positive returns a figure that is not known if it is 0.
func positive(v float64) float32 {
	if v > 0 {
		return float32(v)
	}
	return notKnown
}

var notKnown = float32(math.NaN())

func orNaN(x *float64) float32 {
	if x == nil {
		return notKnown
	}
	return float32(*x)
}

// number returns x, or nil if it is not finite.
func number(x float32) *float32 {
	if x-x != 0 {
		return nil
	}
	return &x
}

// wire returns the result as pages get it.
func (k *keptResult) wire() resultJSON {
	c := k.of.Value()
	r := resultJSON{
		Epoch: c.epoch, Seq: k.seq, Tool: c.tool, Hole: c.hole, FeedRate: number(k.feedRate), Programme: c.programme, Material: c.material, Start: known(time.UnixMicro(k.start)), End: known(time.UnixMicro(k.end)), Verdict: c.verdict, Class: c.class,
		CuttingState: c.state, Unknown: c.unknown, Novelty: number(k.novelty), Posterior: k.posterior, Score: number(k.score), Threshold: number(k.threshold), Model: c.model,
		Alarm: c.alarm, Incident: c.incident, Late: k.late, WearUnknown: k.wearUnknown,
		WearUM: number(k.wear[0]), WearLowUM: number(k.wear[1]), WearHighUM: number(k.wear[2]),
	}
	if c.sensors != "" {
		r.Sensors = json.RawMessage(c.sensors)
	}
	if k.referenceLen >= 0 {
		r.ReferenceLen = &k.referenceLen
	}
	mid, low, high := number(k.left[0]), number(k.left[1]), number(k.left[2])
	if k.leftWindows {
		r.WindowsLeft, r.WindowsLeftLow, r.WindowsLeftHigh = mid, low, high
	} else {
		r.HolesLeft, r.HolesLeftLow, r.HolesLeftHigh = mid, low, high
	}
	return r
}

// resultsSince returns the results from number i on, as pages get them.
func (m *machine) resultsSince(i uint64) []resultJSON {
	all := make([]resultJSON, 0, m.results.total-i)
	for ; i < m.results.total; i++ {
		k := *m.results.at(i) // a copy: the answer outlives the lock
		all = append(all, k.wire())
	}
	return all
}
