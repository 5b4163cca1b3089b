package statement

import (
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// Verdict puts what a model says of a window of a layout into the window's result.
func Verdict(r *event.Result, v model.Verdict, layout *signal.Layout) {
	if r.Verdict = event.Verdict(v.Outcome); v.Class != string(v.Outcome) {
		r.Class = v.Class
	}
	if v.State != cycle.Unknown {
		r.CuttingState = v.State.String()
	}
	r.Unknown, r.Novelty = string(v.Reason), v.Novelty
	r.Posterior = slices.Clone(v.Posterior)
	r.Score, r.ReferenceLen = v.Score, v.Learnt
	if v.Posterior != nil && v.Level != 0 {
		r.Level = digits(model.Times(v.Level), 4)
	}
	for i, q := range v.Faults {
		if v.Found != nil {
			q |= v.Found[i]
		}
		if q != 0 {
			r.Sensors = append(r.Sensors, event.Sensor{Channel: layout.Channels()[i].Name, Flags: Flags(q)})
		}
	}
}

// Flags returns the names of the flags in q, and "unknown" if a newer
// ingester sent only flags that this monitor has no name for.
func Flags(q signal.Quality) []string {
	if names := q.Names(); len(names) > 0 {
		return names
	}
	return []string{"unknown"}
}

// Wear returns an estimate as a result has it, to a tenth of a µm and of a hole;
// nil if it is unknown. Rounding keeps the order of what is rounded.
func Wear(e trend.Estimate) *event.Wear {
	if !e.Known() {
		return nil
	}
	tenth := func(v float64) float64 { return math.Round(10*v) / 10 }
	known := func(v float64) *float64 {
		if v != v {
			return nil
		}
		v = tenth(v)
		return &v
	}
	w := &event.Wear{WearUM: tenth(e.UM), WearLowUM: tenth(e.LowUM), WearHighUM: tenth(e.HighUM)}
	if e.Holes {
		w.HolesLeft, w.HolesLeftLow, w.HolesLeftHigh = known(e.Left), known(e.LowLeft), known(e.HighLeft)
	} else {
		w.WindowsLeft, w.WindowsLeftLow, w.WindowsLeftHigh = known(e.Left), known(e.LowLeft), known(e.HighLeft)
	}
	return w
}

// bounds returns between which values a channel was, by its features or by the one sample of the window.
func bounds(value func(feature string) float32, single bool) (low, high float32) {
	low, high = value(".min"), value(".max")
	self, mean, half, peak := value(""), value(".mean"), value(".peak_to_peak")/2, value(".peak")
	switch {
	case low == low && high == high: // they are known
		return low, high
	case self == self: // the channel is a feature
		return self, self
	case single:
		return mean, mean
	case mean == mean && half == half:
		return mean - half, mean + half
	}
	return -peak, peak
}

// Ranges returns between which values the channels of a window were, as far as its features
// say that. It leaves out channels of which they do not, and those that cannot be trusted.
func Ranges(f *window.Form, values []float32, faults []signal.Quality) (all []event.Range) {
	at := make(map[string]int, len(f.Names()))
	for i, name := range f.Names() {
		at[name] = i
	}
	for i, c := range f.Layout().Channels() {
		if i < len(faults) && faults[i] != 0 {
			continue
		}
		value := func(feature string) float32 {
			if i, ok := at[c.Name+feature]; ok {
				return values[i]
			}
			return float32(math.NaN())
		}
		r := event.Range{Channel: c.Name}
		r.Low, r.High = bounds(value, c.Rate*f.Length().Length.Seconds() < 1.5)
		if d := r.High - r.Low; d >= 0 && d <= math.MaxFloat32 { // else they are not known, or not finite
			all = append(all, r)
		}
	}
	return all
}
