package vote

import "slices"

// Expert is what an expert of a guard computes, for a program that writes it down.
type Expert struct {
	Sensors []int // indices in Guard.Sensors, ascending or not
	Ratio   bool  // it abstains if one of Sensors has failed; otherwise it does if all have
	Bias    float64
	Inputs  []inputReport
}

// inputReport is a part of an expert's log odds: Weight times (x − Mean)/SD within ±[ClipInput], of x the column
// A, less column B if that is not −1. It is 0 if x is missing or the sensor has failed. An expert that has no input
// left abstains.
type inputReport struct {
	A, B             int
	Sensor           int // index in Guard.Sensors
	Mean, SD, Weight float64
}

// Experts returns what the experts compute, in slices of the caller's.
func (g *Guard) Experts() []Expert {
	var out []Expert
	for _, x := range g.experts {
		e := Expert{Sensors: slices.Clone(x.sensors), Ratio: x.pair, Bias: x.bias}
		for _, in := range x.inputs {
			e.Inputs = append(e.Inputs, inputReport{in.a, in.b, x.sensors[in.sensor], in.mean, in.sd, in.weight})
		}
		out = append(out, e)
	}
	return out
}

// Watched returns of each of Sensors the columns that are all missing if it has failed, in slices of the caller's.
func (g *Guard) Watched() [][]int {
	var out [][]int
	for _, s := range g.sensors {
		out = append(out, slices.Clone(s.watched))
	}
	return out
}
