package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// suits says which machines a model suits, by what they have sent lately.
type suits struct {
	can    []string            // it can judge what they send, as far as that can be known
	sure   bool                // of all of them the hop is known, too
	cannot map[string][]string // machines by what is wrong and what to do about it
	other  []string            // they send other layouts
	known  bool                // what machines send could be read
	whole  bool                // all of it
}

// suitsOf returns which of the machines for which want holds a model suits.
func suitsOf(m *model.Model, all map[string]*sent, want func(machine string) bool) (suits, error) {
	s := suits{cannot: make(map[string][]string), sure: true}
	form, err := window.NewForm(m.Layout, m.Window, signal.FeatureSpec{}, nil)
	if err != nil {
		return s, err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		from := all[name]
		if !want(name) {
			continue
		}
		if from.layout != m.Layout.Fingerprint() {
			s.other = append(s.other, name)
			continue
		}
		if why := cannotJudge(m, from, form); why != "" {
			s.cannot[why] = append(s.cannot[why], name)
			continue
		}
		s.can, s.sure = append(s.can, name), s.sure && from.hop() > 0
	}
	return s, nil
}

// cannotJudge says why a model cannot judge what a machine of its layout sends, and what to do; empty
// if it can. form is the layout's own features in windows that the model is trained on.
func cannotJudge(m *model.Model, from *sent, form *window.Form) string {
	_, otherHop := m.Window.Follow(from.hop())
	switch known := from.form == form.Fingerprint(); {
	case !known && from.length != 0 && from.length != m.Window.Length:
		return fmt.Sprintf("windows of %v, and it is trained on windows of %v: set window.length to %v in their ingest.yaml, or train on windows of %v", from.length, m.Window.Length, m.Window.Length, from.length)
	case !known && from.form != "":
		return fmt.Sprintf("features of windows of another length than %v, or of another release: look at window.length in their ingest.yaml, or install this release of ingest there", m.Window.Length)
	case from.hop() != 0 && otherHop:
		return fmt.Sprintf("a window every %v, and it is trained on one every %v: set window.hop to %v in their ingest.yaml, or train with a hop of %v", from.hop(), m.Window.Step(), m.Window.Step(), from.hop())
	case !known || !from.edge || m.Covers(form) == nil:
		return ""
	}
	return "the default features, since their gateways extract (mode: edge), and it takes others: train without features.set, or let them send windows (mode: raw)"
}

// all reports whether the model can judge what every machine sends, so far as machines have sent
// anything, and its hop is known.
func (s *suits) all() bool { return len(s.can) > 0 && s.sure && len(s.cannot) == 0 }

// problems says what the model cannot judge, a line for each cause.
func (s *suits) problems(id string) (lines []string) {
	for _, why := range slices.Sorted(maps.Keys(s.cannot)) {
		lines = append(lines, fmt.Sprintf("%s cannot judge %s: they send %s", id, plain.Text(card.Some(s.cannot[why])), why))
	}
	return lines
}

// notes writes what people should know of a model that judges machines of a glob from now on.
func (s *suits) notes(w io.Writer, m *model.Model, glob string) {
	lines := s.problems(m.ID())
	switch {
	case !s.known || len(lines) > 0 || len(s.can) > 0:
	case len(s.other) > 0:
		lines = append(lines, fmt.Sprintf("no machine of %s sends windows of layout %s (%s), which the model judges: %s send other ones", glob, m.Layout.Name(), m.Layout.Fingerprint(), plain.Text(card.Some(s.other))))
	case !s.whole:
		lines = append(lines, fmt.Sprintf("what was sent in the last %v was too much to look at all of it, and no machine of %s was met: whether the model suits them is not known", lately, glob))
	default:
		lines = append(lines, fmt.Sprintf("no machine of %s has sent windows in the last %v: is the glob right?", glob, lately))
	}
	for _, line := range lines {
		fmt.Fprintf(w, "note: %s\n", plain.Text(line))
	}
}

// refusal returns why the model must not judge the machines unless someone asks for it anyway: it
// could judge none of them.
func (s *suits) refusal(id string) error {
	if len(s.can) > 0 || len(s.cannot) == 0 {
		return nil
	}
	return errors.New(strings.Join(s.problems(id), "; ") + "; --anyway lets it judge all the same, which it does once they send what it takes")
}

// suitsFor returns which machines of a glob a published model suits, without those that another
// deployment judges because its glob is more specific.
func suitsFor(ctx context.Context, cfg bus.Config, t *deploy.Topic, m *model.Model, glob string) (suits, error) {
	g, err := deploy.ParseGlob(glob)
	if err != nil {
		return suits{}, err
	}
	set, _, err := t.Set(ctx)
	if err != nil {
		return suits{}, err
	}
	layout := m.Layout.Fingerprint()
	all, known, whole := sentLately(ctx, cfg)
	s, err := suitsOf(m, all, func(machine string) bool {
		if !g.Match(machine) {
			return false
		}
		d, ok := set.Resolve(machine, layout)
		return !ok || d.For.Compare(g) <= 0
	})
	s.known, s.whole = known, whole
	return s, err
}

// noteSuits notes which machines the champion of a change cannot judge, if that can be found out.
func noteSuits(ctx context.Context, out cli.Output, w *deploy.Writer, c deploy.RecordedChange) {
	t, err := w.Topic(ctx)
	if err != nil {
		return
	}
	m, err := t.Model(ctx, c.Champion)
	if err != nil {
		return
	}
	if s, err := suitsFor(ctx, w.Bus, t, m, c.For); err == nil {
		s.notes(out.Stderr, m, c.For)
	}
}

// noteFeatures notes that machines in mode edge cannot be judged by a model, whichever they are.
func noteFeatures(w io.Writer, m *model.Model) {
	form, err := window.NewForm(m.Layout, m.Window, signal.FeatureSpec{}, nil)
	if err != nil || m.Covers(form) == nil {
		return
	}
	fmt.Fprintln(w, "note: it takes features beyond the default ones, so it can judge no machine whose gateway extracts (mode: edge): train without features.set if there are such machines")
}
