package tune

import (
	"cmp"

	"github.com/flank-tcm/flank/pkg/alarm"
)

// Saved returns the choice for a model as a Curve.
func (c *Choice) Saved(model string) alarm.Curve {
	tools, turned := c.Tools()
	out := alarm.Curve{Model: model, Budget: c.Budget.String(), Within: c.Within, Tools: tools, Turned: turned, Settings: c.Settings, Hours: c.NoHours == "", Points: []alarm.Point{}}
	out.Now, out.Chosen = pointOf(out.Hours, c.Now), pointOf(out.Hours, c.Best)
	for _, f := range c.Curve {
		out.Points = append(out.Points, pointOf(out.Hours, f))
	}
	return out
}

func pointOf(hours bool, f figures) alarm.Point {
	p := alarm.Point{K: f.Settings.K, N: f.Settings.N, Threshold: cmp.Or(f.Settings.Threshold, alarm.Default.Threshold), False: f.False, Found: f.Found, Missed: f.Missed()}
	delay := f.MeanWindows
	if hours {
		p.PerHour, delay = new(f.Rate()), f.MeanDelay.Seconds()
	}
	if f.Found > 0 {
		p.Delay = &delay
	}
	return p
}
