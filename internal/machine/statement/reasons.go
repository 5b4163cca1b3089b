package statement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Reasons returns an explanation as an alert has it. Channels and features that
// spoke against faulty have no share.
func Reasons(e model.Explanation, judge *model.Judge, layout *signal.Layout) *event.Reasons {
	r := &event.Reasons{
		Method: "integrated_gradients", Of: "log_odds", Base: digits(e.Base, 6), Total: digits(e.Total, 6),
		Channels: []event.ChannelReason{}, Features: []event.FeatureReason{},
	}
	strongest := make([]int, len(e.Channels)) // feature of each channel
	for c := range strongest {
		strongest[c] = -1
	}
	for i, part := range e.Parts {
		_, _, c := judge.Describe(i)
		if s := strongest[c]; s < 0 || part > e.Parts[s] {
			strongest[c] = i
		}
	}
	order, shares := ranked(e.Channels, event.MaxChannels)
	for k, c := range order {
		what, _, _ := judge.Describe(strongest[c])
		r.Channels = append(r.Channels, event.ChannelReason{Channel: layout.Channels()[c].Name, Words: what, Share: shares[k]})
	}
	order, shares = ranked(e.Parts, event.MaxFeatures)
	for k, i := range order {
		what, unit, c := judge.Describe(i)
		r.Features = append(r.Features, event.FeatureReason{
			Feature: judge.FeatureNames()[i], Channel: layout.Channels()[c].Name, Words: what, Unit: unit,
			Value: finite(e.Values[i]), Usual: finite(e.Usual[i]), Share: shares[k],
		})
	}
	return r
}

// ranked returns the indices of the greatest positive parts, at most so many, and
// the share that each has in the sum of all positive ones, to a thousandth.
func ranked(parts []float64, most int) (order []int, shares []float64) {
	var sum float64
	for i, p := range parts {
		if p > 0 {
			sum += p
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(parts[b], parts[a]) })
	order = order[:min(len(order), most)]
	for _, i := range order {
		shares = append(shares, math.Round(1000*parts[i]/sum)/1000)
	}
	return order, shares
}

// digits rounds to so many significant digits: what lies behind them is of the
// processor, not of the tool.
func digits(v float64, n int) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil {
		panic("statement: digits: " + err.Error()) // of what it printed itself
	}
	return v
}

func finite(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	v = digits(v, 6)
	return &v
}

// because says what speaks for an alert and how long the tool lasts, as sentences
// behind a blank; nothing where neither is known.
func because(a *event.Alert) string {
	var b strings.Builder
	if r := a.Reasons; r != nil {
		before := " Reasons: "
		for _, c := range r.Channels {
			fmt.Fprintf(&b, "%s%s %.0f %%", before, c.Channel, 100*c.Share)
			if before = ", "; c.Words != "" {
				fmt.Fprintf(&b, " (%s)", c.Words)
			}
		}
		if len(r.Channels) > 0 {
			b.WriteByte('.')
		}
		if len(r.Doubted) > 0 {
			fmt.Fprintf(&b, " In doubt: %s.", strings.Join(r.Doubted, ", "))
		}
	}
	if w := a.Wear; w != nil {
		if w.HolesLeft != nil {
			b.WriteString(" " + left(*w.HolesLeft, w.HolesLeftLow, w.HolesLeftHigh, "hole") + " left.")
		} else if w.WindowsLeft != nil {
			b.WriteString(" " + left(*w.WindowsLeft, w.WindowsLeftLow, w.WindowsLeftHigh, "window") + " of cutting left.")
		}
	}
	return b.String()
}

// left says how many are left, and the interval: "~3 holes (1-6)", or "No holes".
func left(n float64, low, high *float64, what string) string {
	n = math.Round(n) // %.0f alone takes a half for the even number next to it
	if n == 0 && (high == nil || math.Round(*high) == 0) {
		return "No " + what + "s"
	}
	s := fmt.Sprintf("~%.0f %ss", n, what)
	if n == 1 {
		s = s[:len(s)-1]
	}
	switch {
	case low != nil && high != nil:
		s += fmt.Sprintf(" (%.0f-%.0f)", math.Round(*low), math.Round(*high))
	case low != nil:
		s += fmt.Sprintf(" (%.0f or more)", math.Round(*low))
	}
	return s
}
