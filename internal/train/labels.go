package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// Labels finds the label of each window of the job, and why others have none. It neither
// computes features nor asks whether the machine was cutting.
func (j Job) Labels(ctx context.Context) (*card.Labels, error) {
	j.prepare()
	fail := func(err error) (*card.Labels, error) { return nil, fmt.Errorf("train: %w", err) }
	if err := j.Config.Check(); err != nil {
		return fail(err)
	}
	if err := cmp.Or(j.checkWear(), checkLabelled(j.Inputs, j.Wear)); err != nil {
		return fail(err)
	}
	m, err := j.blank()
	if err != nil {
		return fail(err)
	}
	defer closeCut(j.Inputs)
	places, err := j.places(ctx, m)
	if err != nil {
		return fail(err)
	}
	join, err := j.join(windowsOf(j.Inputs, places, false))
	if err != nil {
		return fail(err)
	}
	found := windowsOf(j.Inputs, places, true)
	machines, err := severalMachines(found)
	if err != nil {
		return fail(err)
	}
	rule := j.Config.Label
	out := &card.Labels{Source: "columns of the data", Rule: rule.String(), Classes: rule.Names()}
	if join != nil {
		out.Source = "wear file"
	}
	l := &labeller{rule: rule, join: join, length: m.Window.Length, machines: machines, states: make(map[string]int)}
	if m.Reference.Mode != model.ReferenceOff {
		l.takes = m.Reference.Windows
	}
	most, index := math.NaN(), make(map[string]int)
	for o, err := range found {
		if err != nil {
			return fail(err)
		}
		w, err := l.explain(o)
		if err != nil {
			return nil, err
		}
		if !(w.WearUM <= most) && w.WearUM == w.WearUM {
			most = w.WearUM
		}
		name := l.group(o)
		k, known := index[name]
		if !known {
			k = len(out.Tools)
			index[name] = k
			out.Tools = append(out.Tools, card.LabelledTool{Name: name})
		}
		out.Tools[k].Windows = append(out.Tools[k].Windows, w)
	}
	if len(out.Tools) == 0 {
		return fail(fmt.Errorf("%w: the recordings hold no whole window of %v: record for longer, or shorten `window: length`", errData, m.Window.Length))
	}
	out.States = rule.StatesByClass(l.states)
	if join != nil {
		out.Mismatches = join.Mismatches()
		if from := model.LabelsFrom(join.Sources()); from != "" {
			out.Source = from
		}
	} else if text := wear.UnitDoubt(most); text != "" {
		out.Warnings = []string{text}
	}
	out.Warnings = append(out.Warnings, card.Tally{LeftOut: leftOut(j.Inputs)}.Losses()...)
	if text := l.contradictions(); text != "" {
		out.Warnings = append(out.Warnings, text)
	}
	if text := out.ShortOfAlarm(alarm.Default.K); text != "" {
		out.Warnings = append(out.Warnings, text)
	}
	return out, nil
}

// places returns the windows of all inputs, without what is observed in them.
func (j *Job) places(ctx context.Context, m *model.Model) ([][]observed, error) {
	found := make([][]observed, len(j.Inputs))
	var gaps atomic.Int64
	for i := range j.Inputs {
		in, out := &j.Inputs[i], &found[i]
		var err error
		if in.Observed {
			if *out, err = observeTable(m, m.NewJudge(), in); err != nil {
				err = fmt.Errorf("%s: %w", in.Name, err)
			}
		} else if in.Table != nil || in.Scan != nil {
			err = j.observeRows(ctx, m, *in, func(o *observed) error {
				place := *o
				place.Features, place.Quality = nil, nil
				*out = append(*out, place)
				return nil
			})
		} else if err = observeAll(ctx, m, nil, in, out, &gaps, unended(func(done, total int) { j.Progress(Reading, done, total) }), keepAll); err != nil {
			err = fmt.Errorf("%s: %w", in.Name, err)
		}
		if err != nil {
			return nil, err
		}
		j.Progress(Reading, i+1, len(j.Inputs))
	}
	return found, nil
}

// explain returns the label of a window, or why it has none.
func (l *labeller) explain(o *observed) (card.LabelledWindow, error) {
	w := card.LabelledWindow{Start: o.Start, Length: l.length, Class: card.NoLabel}
	truth, err := l.known(o)
	if err != nil {
		return w, err
	}
	w.WearUM = l.wearOf(truth)
	class, _, ok, err := label(o, l.length, l.rule, l.join)
	switch {
	case err != nil:
		return w, fmt.Errorf("train: %w", err)
	case o.cutOff && l.takes > 0:
		w.Why = "the beginning of its tool was not read"
		return w, nil
	case ok:
		w.Class = class
		if truth.State != "" {
			l.states[strings.ToLower(truth.State)]++
		}
		return w, nil
	case truth.VBMaxUM == truth.VBMaxUM || truth.VBMeanUM == truth.VBMeanUM || truth.State != "":
		w.Why = "what is known of it is not what the rule asks for"
	case l.join == nil:
		w.Why = "its cells are empty, or the layout names no column of a label"
	default:
		_, why := l.join.Peek(o.window(l.length))
		w.Why = why.String()
	}
	return w, nil
}

// inOrder returns the windows of recordings that have some, in the order of their first
// windows.
func inOrder(found [][]observed) [][]observed {
	found = slices.DeleteFunc(slices.Clone(found), func(os []observed) bool { return len(os) == 0 })
	slices.SortStableFunc(found, func(a, b []observed) int { return a[0].Start.Compare(b[0].Start) })
	return found
}

// severalMachines reports whether the windows are of more than one machine.
func severalMachines(found windows) (bool, error) {
	first := ""
	for o, err := range found {
		if err != nil {
			return false, err
		}
		if first = cmp.Or(first, o.machine); o.machine != first {
			return true, nil
		}
	}
	return false, nil
}
