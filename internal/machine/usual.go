package machine

import (
	"math"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// rangesOf returns between which values the channels of a window were, as far as its features
// say that. It leaves out channels of which they do not, and those that cannot be trusted.
func rangesOf(f *window.Form, values []float32, faults []signal.Quality) (all []event.Range) {
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
		r := event.Range{Channel: c.Name, Low: value(".min"), High: value(".max")}
		self, mean, half, peak := value(""), value(".mean"), value(".peak_to_peak")/2, value(".peak")
		switch {
		case r.Low == r.Low && r.High == r.High: // they are known
		case self == self: // the channel is a feature
			r.Low, r.High = self, self
		case c.Rate*f.Length().Length.Seconds() < 1.5: // one sample
			r.Low, r.High = mean, mean
		case mean == mean && half == half:
			r.Low, r.High = mean-half, mean+half
		default:
			r.Low, r.High = -peak, peak
		}
		if d := r.High - r.Low; d >= 0 && d <= math.MaxFloat32 { // else they are not known, or not finite
			all = append(all, r)
		}
	}
	return all
}
