package machine

import (
	"math"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/trend"
)

// wearOf returns an estimate as a result has it, to a tenth of a µm and of a hole;
// nil if it is unknown. Rounding keeps the order of what is rounded.
func wearOf(e trend.Estimate) *event.Wear {
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
