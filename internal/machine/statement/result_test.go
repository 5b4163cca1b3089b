package statement

import (
	"math"
	"reflect"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// The range of a channel comes from the features that say it best, and only from finite values.
func TestRangesOf(t *testing.T) {
	layout, err := signal.NewLayout("two", []signal.Channel{
		{Name: "force", Kind: signal.Force, Unit: "N", Rate: 100},
		{Name: "acc", Kind: signal.Vibration, Unit: "g", Rate: 1000},
		{Name: "level", Kind: signal.Force, Unit: "N", Rate: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	between := func(channel string, low, high float32) event.Range {
		return event.Range{Channel: channel, Low: low, High: high}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, tc := range map[string]struct {
		set    []string
		values map[string]float32 // others are missing
		faults []signal.Quality
		want   []event.Range
	}{
		"least and greatest":        {[]string{"mean", "min", "max", "peak_to_peak"}, map[string]float32{"force.min": -2, "force.max": 3, "acc.min": -4, "acc.max": 5}, nil, []event.Range{between("force", -2, 3), between("acc", -4, 5)}},
		"all below zero":            {[]string{"min", "max"}, map[string]float32{"force.min": -5, "force.max": -1}, nil, []event.Range{between("force", -5, -1)}},
		"as wide as can be":         {[]string{"min", "max"}, map[string]float32{"force.min": -math.MaxFloat32 / 2, "force.max": math.MaxFloat32 / 2}, nil, []event.Range{between("force", -math.MaxFloat32/2, math.MaxFloat32/2)}},
		"one sample":                {[]string{"mean"}, map[string]float32{"level.mean": 3}, nil, []event.Range{between("level", 3, 3)}},
		"mean and peak to peak":     {[]string{"mean", "peak_to_peak"}, map[string]float32{"force.mean": 10, "force.peak_to_peak": 4, "acc.mean": 0, "acc.peak_to_peak": 2}, nil, []event.Range{between("force", 8, 12), between("acc", -1, 1)}},
		"peak":                      {[]string{"rms", "peak"}, map[string]float32{"force.peak": 4, "acc.peak": 2}, nil, []event.Range{between("force", -4, 4), between("acc", -2, 2)}},
		"a sensor is clipped":       {[]string{"peak"}, map[string]float32{"force.peak": 4, "acc.peak": 2}, []signal.Quality{signal.Clipped, 0, 0}, []event.Range{between("acc", -2, 2)}},
		"nothing says it":           {[]string{"rms"}, nil, nil, nil},
		"one channel is missing":    {[]string{"peak"}, map[string]float32{"force.peak": nan, "acc.peak": 2}, nil, []event.Range{between("acc", -2, 2)}},
		"one channel is not finite": {[]string{"min", "max"}, map[string]float32{"force.min": 0, "force.max": inf, "acc.min": 1, "acc.max": 1}, nil, []event.Range{between("acc", 1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			form, err := window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{Set: tc.set}, nil)
			if err != nil {
				t.Fatal(err)
			}
			values := make([]float32, len(form.Names()))
			for i, n := range form.Names() {
				values[i] = nan
				if v, ok := tc.values[n]; ok {
					values[i] = v
				}
			}
			if got := Ranges(form, values, tc.faults); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("ranges %v, want %v", got, tc.want)
			}
		})
	}
}
