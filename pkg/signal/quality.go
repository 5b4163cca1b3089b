package signal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Quality says what is wrong with the samples of one channel in one window: a
// set of flags, 0 if nothing is. A fault of a sensor is not a fault of the tool.
type Quality uint8

// The flags. Dropout, Flatline, Clipped and NonFinite are found by Assess from
// the samples of a window; RateError and ClockStep by who cuts windows, from
// sample counters and sensor times. The layout's [Limits] say from where on.
// ClockOff comes with the blocks of a live source: it compares their times with the host's clock.
const (
	Dropout   Quality = 1 << iota // samples are missing (NaN)
	Flatline                      // one value fills the window, or too much of it without a break
	Clipped                       // too many samples are at full scale
	NonFinite                     // some samples are infinite
	RateError                     // the sensor delivered at another rate than its layout says
	ClockStep                     // the sensor clock jumped
	ClockOff                      // the sensor clock is far from the clock of the host that received the samples
)

// Clock are the flags of a sensor's clock. Of these, ClockOff leaves samples and rates as good as they are: it is not a
// reason not to judge them.
const Clock = RateError | ClockStep | ClockOff

// Flags are the names of the flags, by bit, as schemas/ spells them.
var Flags = [...]string{"dropout", "flatline", "clipped", "non_finite", "rate_error", "clock_step", "clock_off"}

// Limits says from where on something counts as a fault of a sensor. It is part
// of a layout, but not of its fingerprint: it changes flags and no value.
type Limits struct {
	Dropout   float64       `yaml:"dropout"`    // share of a window's samples that may be missing; the default is 0
	Flatline  float64       `yaml:"flatline"`   // share that one value may fill without a break; 0 means 0.05
	Clipped   float64       `yaml:"clipped"`    // share that may be at full scale; 0 means 0.001: a touch is not a fault
	Rate      float64       `yaml:"rate"`       // by how much a rate may differ from the layout's, relatively; 0 means 0.005
	ClockStep time.Duration `yaml:"clock_step"` // by how much a sensor clock may jump; 0 means 100 ms
}

// filled returns l with its defaults filled in.
func (l Limits) filled() Limits {
	l.Flatline = cmp.Or(l.Flatline, 0.05)
	l.Clipped = cmp.Or(l.Clipped, 0.001)
	l.Rate = cmp.Or(l.Rate, 0.005)
	l.ClockStep = cmp.Or(l.ClockStep, 100*time.Millisecond)
	return l
}

func (l Limits) check() error {
	for _, s := range []struct {
		name  string
		value float64
	}{{"dropout", l.Dropout}, {"flatline", l.Flatline}, {"clipped", l.Clipped}, {"rate", l.Rate}} {
		if !(s.value >= 0 && s.value <= 1) {
			return fmt.Errorf("%s: %v: must be a share, from 0 to 1", s.name, s.value)
		}
	}
	if l.ClockStep < 0 {
		return fmt.Errorf("clock_step: %v: must not be negative", l.ClockStep)
	}
	return nil
}

const (
	// flatlineSamples is the least number of equal samples that count as flat if
	// they are the whole window.
	flatlineSamples = 8
	// flatlineRun is the least number that count as flat in a part of it: a slow
	// channel may well read the same value for a while.
	flatlineRun = 64
)

// Names returns the names of the flags in q, as schemas/ spells them.
func (q Quality) Names() []string {
	var names []string
	for i, n := range Flags {
		if q&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// String returns the names of the flags joined by "+", or "good".
func (q Quality) String() string {
	if q == 0 {
		return "good"
	}
	return strings.Join(q.Names(), "+")
}

// The states of a sensor by NAMUR NE 107. The fifth, function check, means that
// people work on the sensor; no flag reports it.
const (
	normal              = "normal"
	MaintenanceRequired = "maintenance_required" // the values hold, but something should be seen to
	OutOfSpecification  = "out_of_specification" // the values are less good than they should be
	Failure             = "failure"              // there are none, or they mean nothing
)

// Status returns the status of a sensor with the flags of q, the gravest of what
// they mean each.
func (q Quality) Status() string {
	switch {
	case q&(Dropout|Flatline|NonFinite) != 0:
		return Failure
	case q&(Clipped|RateError|ClockOff) != 0:
		return OutOfSpecification
	case q != 0:
		return MaintenanceRequired // ClockStep, and what a newer ingester has found
	}
	return normal
}

// Assess returns the flags of the samples x of channel c under the limits, in
// which a zero stands for its default. It does not keep x.
func Assess(c Channel, x []float32, limits Limits) Quality {
	full := float32(math.Inf(1))
	if c.Range > 0 {
		full = float32(c.Range)
	}
	if plain(x, full) {
		return 0
	}
	limits = limits.filled()
	var q Quality
	var missing, clipped, longest int
	run := 0 // samples up to the one at hand that are equal
	last := float32(math.NaN())
	for _, v := range x {
		switch {
		case v != v:
			missing++
		case v > math.MaxFloat32 || v < -math.MaxFloat32:
			q |= NonFinite
		case v >= full || v <= -full:
			clipped++
		}
		if v != last {
			run, last = 0, v
		}
		if run++; run > longest {
			longest = run
		}
	}
	n := float64(len(x))
	if float64(missing) > limits.Dropout*n {
		q |= Dropout
	}
	if longest >= flatlineSamples && longest == len(x) || longest >= flatlineRun && float64(longest) > limits.Flatline*n {
		q |= Flatline
	}
	if float64(clipped) > limits.Clipped*n {
		q |= Clipped
	}
	return q
}

// plain reports, in one pass without branches, that all samples are below full scale, and none is missing, and that
// no run of them is flat.
func plain(x []float32, full float32) bool {
	if len(x) < flatlineRun {
		return false
	}
	magnitude := func(v float32) uint32 { return math.Float32bits(v) &^ (1 << 31) } // in the order of |v|; NaN is above infinity
	var a, b, c, d uint32
	for i := 0; i+4 <= len(x); i += 4 {
		y := x[i : i+4 : i+4]
		a, b, c, d = max(a, magnitude(y[0])), max(b, magnitude(y[1])), max(c, magnitude(y[2])), max(d, magnitude(y[3]))
	}
	for _, v := range x[len(x)&^3:] {
		a = max(a, magnitude(v))
	}
	if max(a, b, c, d) >= magnitude(full) {
		return false
	}
	for i := 0; i+1 < len(x); i += flatlineRun / 2 {
		if x[i] == x[i+1] { // each flat run has two neighbours here
			return false
		}
	}
	return true
}

// ParseQuality returns the flags with the given names, as Names returns them.
func ParseQuality(names []string) (Quality, error) {
	var q Quality
	for _, n := range names {
		i := slices.Index(Flags[:], n)
		if i < 0 {
			return 0, fmt.Errorf("signal: quality flag %q is not one of %v", n, Flags)
		}
		q |= 1 << i
	}
	return q, nil
}
