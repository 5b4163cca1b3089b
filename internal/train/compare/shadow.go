package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// Trials compares the shadows of a group of monitors with its champions, by what they published
// of the windows that both judged. First comes everything that shadows published, then what
// champions did. One goroutine at a time may use it.
type Trials struct {
	group    string
	since    time.Time
	labels   *Labels
	byShadow map[string]*trial
}

// trial is one shadow on trial.
type trial struct {
	*Comparison
	windows   [2]map[epochKey]*event.Seqs // that each side judged
	champions map[string]time.Time        // models, by when they judged first
	from      time.Time                   // of the first window
}

type epochKey struct{ machine, epoch string }

// NewTrials returns trials of a group's shadows, of windows that began at a time or later.
// Labels may be nil.
func NewTrials(group string, since time.Time, labels *Labels) *Trials {
	return &Trials{group: group, since: since, labels: labels, byShadow: make(map[string]*trial)}
}

// judged notes that a side has judged a window, and reports whether it had not yet.
func (t *trial) judged(s modelSide, r *event.Result) bool {
	key := epochKey{r.Machine, r.Epoch}
	w := t.windows[s][key]
	if w == nil {
		w = new(event.Seqs)
		t.windows[s][key] = w
	}
	return w.Add(r.Seq, math.MaxInt)
}

// has reports whether the shadow has judged a window.
func (t *trial) has(machine, epoch string, seq uint64) bool {
	w := t.windows[sideB][epochKey{machine, epoch}]
	return w != nil && w.Has(seq)
}

// ShadowResult takes a result of the topic of shadows.
func (ts *Trials) ShadowResult(r *event.Result) {
	if r.Group != event.ShadowGroup(ts.group, r.Model) || r.Start.Before(ts.since) {
		return
	}
	t := ts.byShadow[r.Model]
	if t == nil {
		t = &trial{Comparison: New(ts.labels), windows: [2]map[epochKey]*event.Seqs{{}, {}}, champions: make(map[string]time.Time), from: r.Start}
		ts.byShadow[r.Model] = t
	}
	if t.judged(sideB, r) {
		if r.Start.Before(t.from) {
			t.from = r.Start
		}
		t.Result(sideB, r)
	}
}

// ShadowAlert takes an alert of the topic of shadows, after the result of its window.
func (ts *Trials) ShadowAlert(a *event.Alert) {
	t := ts.byShadow[a.Model]
	if t != nil && a.Group == event.ShadowGroup(ts.group, a.Model) && t.has(a.Machine, a.Epoch, a.Seq) {
		t.Alert(sideB, a, nan)
	}
}

// From returns when the first window began that a shadow judged. It is false if there is none.
func (ts *Trials) From() (from time.Time, ok bool) {
	for _, t := range ts.byShadow {
		if !ok || t.from.Before(from) {
			from, ok = t.from, true
		}
	}
	return from, ok
}

// Alert takes an alert of a champion.
func (ts *Trials) Alert(a *event.Alert) {
	for _, t := range ts.byShadow {
		if a.Group == ts.group && t.has(a.Machine, a.Epoch, a.Seq) {
			t.Comparison.Alert(sideA, a, nan)
		}
	}
}

// Result takes a result of a champion.
func (ts *Trials) Result(r *event.Result) {
	for _, t := range ts.byShadow {
		if r.Group != ts.group || !t.has(r.Machine, r.Epoch, r.Seq) || !t.judged(sideA, r) {
			continue
		}
		if at, known := t.champions[r.Model]; !known || r.Start.Before(at) {
			t.champions[r.Model] = r.Start
		}
		t.Comparison.Result(sideA, r)
	}
}

// Reports returns a report for each shadow, by the name of its model.
func (ts *Trials) Reports() []*Report {
	var out []*Report
	for _, id := range slices.Sorted(maps.Keys(ts.byShadow)) {
		t := ts.byShadow[id]
		champions := slices.SortedFunc(maps.Keys(t.champions), func(a, b string) int {
			return cmp.Or(t.champions[a].Compare(t.champions[b]), cmp.Compare(a, b))
		})
		r := t.Report([2]string{"champion " + strings.Join(champions, ", then "), "shadow " + id})
		var lost uint64
		for _, m := range r.Machines {
			lost += m.Counts[sideB].Windows() - m.Counts[sideA].Windows()
		}
		if lost > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("of %s windows that the shadow judged, Kafka has no result of the champion any more: they count for B only", number(lost)))
		}
		out = append(out, r)
	}
	return out
}
