package signal

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Quality says what is wrong with the samples of one channel in one window: a
// set of flags, 0 if nothing is. A fault of a sensor is not a fault of the tool.
type Quality uint8

// The flags. Dropout, Flatline, Clipped and NonFinite are found by Assess from
// the samples; RateError and ClockStep are set by who compares sample counters
// with clocks.
const (
	Dropout   Quality = 1 << iota // some samples are missing (NaN)
	Flatline                      // every sample is the same
	Clipped                       // more than ClippedShare of the samples are at full scale
	NonFinite                     // some samples are infinite
	RateError                     // the sensor delivered at another rate than its layout says
	ClockStep                     // the sensor clock jumped
)

var qualityNames = []string{"dropout", "flatline", "clipped", "non_finite", "rate_error", "clock_step"}

const (
	// ClippedShare is the share of samples at full scale above which a channel
	// counts as clipped. A single touch of full scale is no fault.
	ClippedShare = 0.001
	// flatlineSamples is the least number of equal samples that count as flat.
	flatlineSamples = 8
)

// Names returns the names of the flags in q, as schemas/ spells them.
func (q Quality) Names() []string {
	var names []string
	for i, n := range qualityNames {
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

// Assess returns the flags of the samples x of channel c. It does not keep x.
func Assess(c Channel, x []float32) Quality {
	var q Quality
	var clipped int
	flat := len(x) >= flatlineSamples
	limit := float32(math.Inf(1))
	if c.Range > 0 {
		limit = float32(c.Range)
	}
	for _, v := range x {
		switch {
		case v != v:
			q |= Dropout
		case v > math.MaxFloat32 || v < -math.MaxFloat32:
			q |= NonFinite
		case v >= limit || v <= -limit:
			clipped++
		}
		if v != x[0] {
			flat = false
		}
	}
	if flat {
		q |= Flatline
	}
	if float64(clipped) > ClippedShare*float64(len(x)) {
		q |= Clipped
	}
	return q
}

// ParseQuality returns the flags with the given names, as Names returns them.
func ParseQuality(names []string) (Quality, error) {
	var q Quality
	for _, n := range names {
		i := slices.Index(qualityNames, n)
		if i < 0 {
			return 0, fmt.Errorf("signal: quality flag %q is not one of %v", n, qualityNames)
		}
		q |= 1 << i
	}
	return q, nil
}
