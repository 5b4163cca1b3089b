package ingest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/source/feed"
)

// ledger says what became of the samples of a source, of all channels together, since the program was
// started: Received is the sum of the others.
type ledger struct {
	Received  uint64 `json:"received"`
	InWindows uint64 `json:"in_windows"`
	Open      uint64 `json:"not_yet_cut"`

	Unused map[string]uint64 `json:"unused,omitempty"` // by reason: in no window's way
}

// repeat is the reason of samples that came before: nothing is lost.
const repeat = "repeat"

// newLedger returns the ledger of what a gateway and a feed have counted, the gateway first. Stopped are the
// samples that were not cut when an earlier gateway was closed. Without a feed, the source has all.
func newLedger(g gateway.Stats, f feed.Stats, live bool, stopped uint64) ledger {
	t := g.Samples
	l := ledger{Received: f.Samples, InWindows: t.Windowed, Unused: map[string]uint64{}}
	if !live {
		l.Received = t.Pushed
	}
	for r, n := range f.Unused {
		l.add(feed.Reason(r).String(), n)
	}
	l.add(repeat, t.Repeated)
	l.add("late", t.Late)
	l.add("gap", t.Gaps)
	l.add("short_session", t.Tails)
	l.add("stopped", stopped)
	l.Open = l.Received - min(l.Received, l.InWindows+l.unused(true))
	return l
}

func (l *ledger) add(reason string, n uint64) {
	if n > 0 {
		l.Unused[reason] += n
	}
}

// unused returns how many samples are in no window's way, with repeats or without.
func (l ledger) unused(repeats bool) (n uint64) {
	for reason, one := range l.Unused {
		if repeats || reason != repeat {
			n += one
		}
	}
	return n
}

const (
	// lossWithin and lossBound: a machine of which more samples than come in lossBound were lost in lossWithin
	// is not ready.
	lossWithin = time.Minute
	lossBound  = 10 * time.Second
)

// losses are the ledgers of the last minute, the oldest first.
type losses []struct {
	at time.Time
	ledger
}

// note adds the ledger of a moment and forgets those that are older than a minute, but one.
func (ls losses) note(now time.Time, l ledger) losses {
	ls = append(ls, struct {
		at time.Time
		ledger
	}{now, l})
	old := 0
	for old+1 < len(ls) && now.Sub(ls[old+1].at) >= lossWithin {
		old++
	}
	return slices.Delete(ls, 0, old)
}

// problem returns why too many samples of the last minute are in no window's way, of a source of so many
// samples a second; empty if they are not too many.
func (ls losses) problem(rate float64) string {
	if len(ls) == 0 || rate == 0 {
		return ""
	}
	first, last := ls[0].ledger, ls[len(ls)-1].ledger
	lost := float64(last.unused(false)-first.unused(false)) / rate
	if lost <= lossBound.Seconds() {
		return ""
	}
	var why []string
	for reason, n := range last.Unused {
		if n -= first.Unused[reason]; n > 0 && reason != repeat {
			why = append(why, fmt.Sprintf("%s %.0f s", reason, float64(n)/rate))
		}
	}
	slices.Sort(why)
	return fmt.Sprintf("%.0f s of samples that came in the last minute are in no window (%s): see the log, and docs/concepts/ledger.md for what to do", lost, strings.Join(why, ", "))
}
