package score

// Sensor is the columns that come from one sensor: what is wrong with it is wrong with all
// of them.
type Sensor struct {
	Name    string
	Columns []int // ascending
}

// Sensors groups columns by the sensor that each comes from, given by its name. Sensors are
// in the order in which they first appear.
func Sensors(of []string) []Sensor {
	var out []Sensor
	at := make(map[string]int)
	for j, name := range of {
		k, known := at[name]
		if !known {
			k = len(out)
			at[name] = k
			out = append(out, Sensor{Name: name})
		}
		out[k].Columns = append(out[k].Columns, j)
	}
	return out
}

// Share returns Σw² of the sensor's columns over Σw² of all columns, in [0, 1], given the
// weight of each column; 0 if no column has any.
func (s Sensor) Share(weights []float64) float64 {
	var own, all float64
	for _, j := range s.Columns {
		own += weights[j] * weights[j]
	}
	for _, w := range weights {
		all += w * w
	}
	if all == 0 {
		return 0
	}
	return own / all
}

// Counts reports whether the sensor's Share is LeastShare or more.
func (s Sensor) Counts(weights []float64) bool { return s.Share(weights) >= LeastShare }
