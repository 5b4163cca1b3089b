package model

import (
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// JointForm returns the form of features by which models of one layout and window length judge
// together: the default features of the layout, and what the models take beyond them. The
// models come in the order of their importance: one that would keep features from a model
// before it does not fit, for example one that takes features of another version. Unfit has the
// reasons of those that do not fit, by their place; the others are nil. The form is nil if no
// model fits.
func JointForm(models []*Model) (form *window.Form, unfit []error) {
	unfit = make([]error, len(models))
	var fit []*Model // of each need one
	needs := make(map[string]bool)
	for i, m := range models {
		if form != nil {
			if unfit[i] = m.Fits(fit[0].Layout, fit[0].Window); unfit[i] != nil || needs[m.need()] {
				continue
			}
		}
		next := form
		if form == nil || m.Covers(form) != nil {
			if next, unfit[i] = jointForm(append(slices.Clone(fit), m)); unfit[i] != nil {
				continue
			}
		}
		form, fit, needs[m.need()] = next, append(fit, m), true
	}
	return form, unfit
}

// need says which features the model takes, of windows of its layout and length.
func (m *Model) need() string {
	text := fmt.Sprintf("%d %q", m.Features.Version, m.Features.Set)
	if m.Gate != nil {
		text += fmt.Sprintf(" gate %q", m.Gate.Channel)
	}
	if m.Cycle != nil {
		text += fmt.Sprintf(" cycle %d", m.Cycle.Frames)
		for _, in := range m.Cycle.Inputs {
			text += fmt.Sprintf(" %q %s", in.Channel, in.Measure)
		}
	}
	return text
}

// jointForm returns the form of models of one layout and length, or why the last one does not
// fit the others.
func jointForm(models []*Model) (*window.Form, error) {
	first, last := models[0], models[len(models)-1]
	if err := first.Window.Check(first.Layout); err != nil {
		return nil, err
	}
	var also signal.FeatureSpec
	cutting := window.CuttingOf(first.Layout, first.SamplesPerChannel())
	for _, m := range models {
		also.Set = union(also.Set, m.Features.Set)
		if m.Gate != nil {
			cutting.Gate = m.Gate.Channel
		}
		if m.Cycle != nil {
			cutting.Cycle = m.Cycle
		}
	}
	form, err := window.NewForm(first.Layout, first.Window, signal.FeatureSpec{}, &cutting, also)
	if err != nil {
		return nil, err
	}
	if err := last.Covers(form); err != nil {
		return nil, err
	}
	for _, m := range models {
		if m.Covers(form) != nil {
			return nil, fmt.Errorf("%w: it tells cutting by another channel or other frames than %s, and windows are measured by one of them: train it with this release, on this layout", ErrUnfit, m.ID())
		}
	}
	return form, nil
}

// union returns a with the elements of b that it lacks.
func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
