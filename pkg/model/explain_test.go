package model

import (
	"math"
	"testing"
)

// Of any window, the parts of channels add up to what the features did,
// and values and what is usual are in the unit of the feature.
func TestExplain(t *testing.T) {
	m := trained(t)
	j := m.NewJudge()
	var ref Reference
	for range m.Reference.Windows {
		j.Judge(cutting(1), &ref, nil)
	}
	for _, grown := range []float32{1, 1.3, 2} {
		v := j.Judge(cutting(grown), &ref, nil)
		e := j.Explain(&ref)
		if (e.Total > 0) != (v.Outcome == Faulty) || e.Class != 1 {
			t.Errorf("grown %v: %s, log-odds of class %d are %v", grown, v.Outcome, e.Class, e.Total)
		}
		var sum float64
		for _, c := range e.Channels {
			sum += c
		}
		if d := e.Total - e.Base; math.Abs(sum-d) > 3e-6*(1+math.Abs(d)) {
			t.Errorf("grown %v: channels %v add up to %v, want %v", grown, e.Channels, sum, d)
		}
		last := len(e.Values) - 1
		if what, unit, channel := j.Describe(last); what != "" || unit != "" || channel != 2 || float32(e.Values[last]) != -3*grown {
			t.Errorf("the last feature is %q in %q of channel %d and was %v", what, unit, channel, e.Values[last])
		}
	}
}

// What grew is what is named.
func TestExplainNamesTheChannel(t *testing.T) {
	m := trained(t)
	j := m.NewJudge()
	var ref Reference
	for range m.Reference.Windows {
		j.Judge(cutting(1), &ref, nil)
	}
	for channel, value := range map[int]float32{1: 5, 2: 1.5} { // one and a half above their references of 2 and −3, by ratio
		w := cutting(1)
		w.Samples[channel][0] = value
		j.Judge(w, &ref, nil)
		e := j.Explain(&ref)
		for c, part := range e.Channels {
			if c != channel && !(e.Channels[channel] > part) {
				t.Errorf("channel %d grew: channels have %v", channel, e.Channels)
			}
		}
	}
}
