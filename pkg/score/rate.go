package score

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// confidence is the level of RateInterval.
const confidence = 0.95

// RateInterval returns the exact interval of 95 % for the rate of a Poisson
// process in which n events were seen in the given hours, in events an hour:
//
//	low = χ²(α/2; 2n)/2/hours,  high = χ²(1−α/2; 2n+2)/2/hours,  α = 5 %.
//
// If there were none, low is 0 and high the one-sided bound −ln(α)/hours, so some
// 3/hours. Without hours nothing is known: 0 and +Inf.
//
// Source: F. Garwood, "Fiducial Limits for the Poisson Distribution", Biometrika
// 28, 1936; for none: J. Hanley and A. Lippman-Hand, JAMA 249, 1983.
func RateInterval(n int, hours float64) (low, high float64) {
	const alpha = 1 - confidence
	switch {
	case !(hours > 0):
		return 0, math.Inf(1)
	case n == 0:
		return 0, -math.Log(alpha) / hours
	}
	// χ²(p; 2a)/2 is the quantile p of the gamma distribution with shape a.
	return mathext.GammaIncRegInv(float64(n), alpha/2) / hours, mathext.GammaIncRegInv(float64(n)+1, 1-alpha/2) / hours
}
