// Package window cuts streams of samples into windows and gives windows their
// form on the wire.
//
// A [Window] is every channel of a layout over the same span of time,
// [Start, Start+Length): 1 s by default, so 20,000 samples of a channel at
// 20 kHz next to 100 of one at 100 Hz. Lengths come from sample counts, never
// from clocks. A [Slicer] cuts windows from blocks; no window spans a gap, a
// change of tool or two recordings. A [Codec] seals a window into an
// [Envelope], which is one self-describing Arrow stream with a checksum, and
// opens it again without trusting it.
package window

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Spec says how a stream is cut into windows.
type Spec struct {
	Length time.Duration // a whole number of samples at every rate; must be positive
	Hop    time.Duration // between window starts; 0 means Length, so no overlap
}

// DefaultSpec is one second without overlap.
var DefaultSpec = Spec{Length: time.Second}

// Step returns the distance between window starts: Hop, or Length if Hop is 0.
func (s Spec) Step() time.Duration {
	if s.Hop == 0 {
		return s.Length
	}
	return s.Hop
}

// Follow tells how windows were cut of which one begins so long after another: as s says, or with another hop. It is neither
// if there is a gap between them. The clocks of sensors are a little off.
func (s Spec) Follow(hop time.Duration) (same, other bool) {
	off := hop - s.Step()
	same = max(off, -off) <= s.Step()/100
	return same, !same && hop <= s.Length+s.Length/100
}

// mostSamples is how many samples of a channel a window has at most: 64 MB of them, and their features take sixteen times as much.
const mostSamples = 1 << 24

// Check reports why windows of s cannot be cut from streams of the layout.
func (s Spec) Check(layout *signal.Layout) error {
	if s.Length <= 0 {
		return fmt.Errorf("window: length %v: must be positive, for example 1s", s.Length)
	}
	if s.Hop < 0 || s.Hop > s.Length {
		return fmt.Errorf("window: hop %v: must be between 0 and the length %v", s.Hop, s.Length)
	}
	for _, g := range layout.Groups() {
		for _, d := range []time.Duration{s.Length, s.Step()} {
			n, ok := wholeSamples(g.Rate, d)
			if n > mostSamples {
				return fmt.Errorf("window: %v is %d samples at %v Hz, and at most %d are taken: choose a shorter length", d, n, g.Rate, mostSamples)
			}
			if !ok || n == 0 {
				return fmt.Errorf("window: %v is %.6g samples at %v Hz (channel %s): choose a length and hop that are whole numbers of samples",
					d, g.Rate*d.Seconds(), g.Rate, layout.Channels()[g.Channels[0]].Name)
			}
		}
	}
	return nil
}

// Samples returns how many samples of a channel at rate Hz a window holds.
func (s Spec) Samples(rate float64) int {
	n, _ := wholeSamples(rate, s.Length)
	return int(n)
}

func wholeSamples(rate float64, d time.Duration) (int64, bool) {
	n := rate * d.Seconds()
	r := math.Round(n)
	return int64(r), math.Abs(n-r) < 1e-6
}

// Window is every channel of a layout over one span of time.
type Window struct {
	signal.Context
	Epoch   uint64           // minted with the spool, so that a lost spool never repeats a seq
	Seq     uint64           // counts the windows of a machine within an epoch
	Start   time.Time        // sensor time of the first sample
	Length  time.Duration    // span of time
	Session int64            // session of the blocks it was cut from
	First   int64            // counter of the first sample, at the layout's highest rate
	Samples [][]float32      // one slice per channel, in layout order
	Quality []signal.Quality // one per channel

	// Rates are the rates that the sensor clocks say, in the order of Layout.Groups, 0 where
	// that is the layout's or is not known; nil if none is wrong. With RateError.
	Rates []float64

	// Drift says by how much the sensor clocks of the rates disagree on when the
	// window began: the time of the rate that is furthest from the layout's
	// highest one, less the start of the highest. It is not sent on the wire.
	Drift time.Duration
}

// End returns the sensor time of the first sample after the window.
func (w *Window) End() time.Time { return w.Start.Add(w.Length) }

// AllQuality returns the flags that any channel has.
func (w *Window) AllQuality() (all signal.Quality) {
	for _, q := range w.Quality {
		all |= q
	}
	return all
}

// WrongRates says which rates are wrong, by the sensors' clocks, for a person; empty if none is, or it is not known.
func (w *Window) WrongRates(layout *signal.Layout) string {
	var wrong []string
	for g, group := range layout.Groups() {
		if len(w.Rates) == len(layout.Groups()) && w.Rates[g] != 0 {
			wrong = append(wrong, fmt.Sprintf("%.4g samples a second come where the layout says %v", w.Rates[g], group.Rate))
		}
	}
	return strings.Join(wrong, ", ")
}

// WrongDates says which clocks are off, for a person; empty if no channel has the flag ClockOff.
func (w *Window) WrongDates(layout *signal.Layout) string {
	var off []string
	groups := layout.Groups()
	for _, group := range groups {
		if c := group.Channels[0]; c < len(w.Quality) && w.Quality[c]&signal.ClockOff != 0 {
			off = append(off, fmt.Sprintf("%v Hz", group.Rate))
		}
	}
	switch len(off) {
	case 0:
		return ""
	case len(groups):
		return "windows are dated " + w.Start.UTC().Format("2006-01-02 15:04:05") + " UTC, far from the clock of their ingester"
	}
	return fmt.Sprintf("the clocks of the samples of %s and %v Hz are more than %v apart", strings.Join(off, ", "), groups[0].Rate, clocksApart)
}

// EpochString returns the epoch as 16 hexadecimal digits, its form in ids.
func (w *Window) EpochString() string { return FormatEpoch(w.Epoch) }

// FormatEpoch returns epoch as 16 hexadecimal digits.
func FormatEpoch(epoch uint64) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, epoch))
}

// Assess adds to w.Quality what the samples have wrong, under the limits of the
// layout.
func (w *Window) Assess(layout *signal.Layout) {
	cs := layout.Channels()
	if len(w.Quality) != len(cs) {
		w.Quality = make([]signal.Quality, len(cs))
	}
	for i, c := range cs {
		w.Quality[i] |= signal.Assess(c, w.Samples[i], layout.Limits())
	}
}

// ErrCorrupt is returned when a payload is not the one its producer sealed.
var ErrCorrupt = errors.New("corrupt payload")

// ErrForeign is the kind of error of a payload that was sealed for another layout or
// window length than the reader's, see Mismatch.
var ErrForeign = errors.New("payload of another layout or window length")
