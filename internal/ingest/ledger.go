package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
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
	known := l.InWindows
	for _, n := range l.Unused {
		known += n
	}
	l.Open = l.Received - min(l.Received, known)
	return l
}

func (l *ledger) add(reason string, n uint64) {
	if n > 0 {
		l.Unused[reason] += n
	}
}

// lossWithin is the time in which samples are lost that are too many, sumWithin the time of what the page shows.
const (
	lossWithin = time.Minute
	sumWithin  = time.Hour
)

// losses are the ledgers of some time, the oldest first.
type losses []loss

type loss struct {
	at time.Time
	ledger
}

// note adds the ledger of a moment and forgets those that are older than a span, but one.
func (ls losses) note(now time.Time, l ledger, within time.Duration) losses {
	ls = append(ls, loss{now, l})
	old := 0
	for old+1 < len(ls) && now.Sub(ls[old+1].at) >= within {
		old++
	}
	return slices.Delete(ls, 0, old)
}

// sum returns what became of the samples of that time.
func (ls losses) sum() (l event.Ledger) {
	if len(ls) == 0 {
		return l
	}
	first, last := ls[0], ls[len(ls)-1]
	l = event.Ledger{
		At: last.at.UTC(), Seconds: last.at.Sub(first.at).Seconds(),
		Received: last.Received - first.Received, InWindows: last.InWindows - first.InWindows,
	}
	for reason, n := range last.Unused {
		if n -= first.Unused[reason]; n > 0 {
			l.Unused = append(l.Unused, event.UnusedSamples{Reason: reason, Samples: n})
		}
	}
	slices.SortFunc(l.Unused, func(a, b event.UnusedSamples) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Reason, b.Reason))
	})
	return l
}

// over returns how many seconds of samples of that time are in no window's way, of a source of so many samples a second;
// nil if together they are not more than a bound.
func (ls losses) over(rate float64, bound time.Duration) (lost []event.LostSamples) {
	all := 0.0
	for _, u := range ls.sum().Unused {
		if u.Reason != repeat && rate > 0 {
			lost = append(lost, event.LostSamples{Reason: u.Reason, Seconds: float64(u.Samples) / rate})
			all += float64(u.Samples) / rate
		}
	}
	if all <= bound.Seconds() {
		return nil
	}
	return lost
}

// lossText says what over has returned; empty for nothing.
func lossText(lost []event.LostSamples) string {
	if len(lost) == 0 {
		return ""
	}
	all, why := event.SumLost(lost)
	return fmt.Sprintf("%.0f s of samples that came in the last minute are in no window (%s): see the log, and docs/concepts/ledger.md for what to do", all, why)
}
