package train

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/window"
)

// windowTime says how long the windows of an exam last, and how that is known.
type windowTime struct {
	window.Spec // of the model, if nothing is known

	Words   string // how that is known, where it is not from the recordings themselves
	Unknown string // why it is not known, and what to do about it; empty: it is known
}

// noLength says why a table has no hours, and what to do about it.
const noLength = "nothing says how long a row of the table lasts: give `window: {length: 2s}` in train.yaml, or the flag --window 2s, or a column `start` in the table"

// windowTime returns how long the windows of the exam last. Windows of recordings are as
// long as the model's. Rows of tables are as long as the exam says, or as the model was
// trained on, if that was known then; their hops follow from the times at which they
// started, if the table has these: hop is the median, see medianHop.
func (e Exam) windowTime(hop time.Duration) windowTime {
	if !tables(e.Inputs) {
		return windowTime{Spec: e.Model.Window}
	}
	every := ""
	if hop > 0 {
		every = fmt.Sprintf(", one every %v by the column start", hop)
	}
	of := func(s window.Spec, why string) windowTime {
		if s.Hop = min(s.Step(), s.Length); hop > 0 {
			s.Hop = min(hop, s.Length) // more is a pause, which is not cutting
		}
		return windowTime{Spec: s, Words: fmt.Sprintf("rows of %v, %s%s", s.Length, why, every)}
	}
	switch {
	case e.Window.Length > 0:
		return of(e.Window, "as the configuration or the flag says")
	case e.Model.Provenance.LengthKnown:
		return of(e.Model.Window, "as the model was trained on")
	case hop > 0:
		return windowTime{Spec: window.Spec{Length: hop}, Words: fmt.Sprintf("rows of %v, by the column start", hop)}
	}
	return windowTime{Spec: e.Model.Window, Unknown: noLength}
}

// tables reports whether the inputs are tables, and not of recordings.
func tables(inputs []Input) bool {
	return slices.ContainsFunc(inputs, func(in Input) bool { return in.Table != nil && !in.Observed || in.Scan != nil })
}

// medianHop returns the median of the times from one window's start to the next one's of
// the same tool; 0 if windows have no times or these do not rise.
func medianHop(found [][]observed) time.Duration {
	var hops []time.Duration
	for _, os := range found {
		for i := 1; i < len(os); i++ {
			a, b := &os[i-1], &os[i]
			if a.Start.IsZero() || b.Start.IsZero() {
				return 0
			}
			if a.machine != b.machine || a.Tool != b.Tool {
				continue
			}
			hop := b.Start.Sub(a.Start)
			if hop <= 0 {
				return 0
			}
			hops = append(hops, hop)
		}
	}
	if len(hops) == 0 {
		return 0
	}
	slices.Sort(hops)
	return hops[(len(hops)-1)/2]
}
