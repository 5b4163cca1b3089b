package train

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// Modes of the reference are scored on tools held out where tools × windows with a label are
// up to mostModeWork: then all modes take minutes of the processors. With a committee, whose networks take ten times
// as long, they are scored up to mostCommitteeWork.
const (
	mostModeWork      = 30_000
	mostCommitteeWork = 6_000
)

// modesScored is what modes of the reference give on tools held out, in the order of
// modes.
type modesScored struct {
	modes  []card.ModeScore
	scores []classify.ViewScore
}

// work is tools × windows with a label.
func (t *rowTable) work() int {
	return len(t.tools()) * len(t.group)
}

// rowsOfModes adds to t the rows that modes are scored on, if they are few enough and t's own
// do not do, because the configuration names a mode.
func (j *Job) rowsOfModes(t *rowTable, m *model.Model, found windows, join *wear.Join) error {
	if !j.scoresModes || m.Decides() || t.rel != nil && len(t.rel.modes) > 1 || t.work() > mostModeWork || 4*(len(t.Data)+len(t.bare.data)) > viewBytes {
		return nil
	}
	plain := *m
	plain.Reference.Mode, plain.Reference.Positive = model.ReferenceDifference, ""
	plain.Reference.Windows = cmp.Or(plain.Reference.Windows, model.DefaultReference.Windows)
	rows, l, err := j.plainRows(&plain, found, join, new(card.Tally), nil)
	if err != nil {
		return err
	}
	named := j.Config.Reference.Mode
	all := modesOf(l.judge.Relations(), model.ReferenceAuto)
	rows.rel.modes = append([]model.Mode{named}, slices.DeleteFunc(all, func(m model.Mode) bool { return m == named })...)
	t.modes = &rows
	return nil
}

// scoreModes says what the modes of the reference give on tools held out, with the
// configured encoding and with a committee; nothing if there are too many rows, or too few
// tools of some class.
func (j *Job) scoreModes(ctx context.Context, t *rowTable) (modesScored, error) {
	rows := t
	if t.modes != nil {
		rows = t.modes
		rows.exclude = t.exclude
	}
	if !j.scoresModes || rows.rel == nil || len(rows.rel.modes) < 2 || rows.work() > mostModeWork || t.byWear(nil) {
		return modesScored{}, nil
	}
	for k := range rows.classes { // without the windows of references
		if tools := rows.unlike(k); len(tools) < 2 {
			return modesScored{}, nil
		}
	}
	folds := j.folds(*rows, rand.New(rand.NewPCG(j.Config.Seed, foldSeed)))
	s := j.settings(*rows)
	lessons := rows.lessons(cmp.Or(j.Config.Reference.Windows, model.DefaultReference.Windows))
	encodings := []classify.Encoding{j.encoding()}
	if rows.work() <= mostCommitteeWork && encodings[0] != classify.Committee {
		encodings = append(encodings, classify.Committee)
	}
	var out modesScored
	for i, encoding := range encodings {
		s.Encoding, s.Progress = encoding, j.phase([]string{"scoring modes of the reference", "scoring modes with committees"}[i])
		scores, err := classify.ScoreViews(ctx, lessons, s, folds)
		if errors.Is(err, classify.ErrTooFew) {
			return modesScored{}, nil
		} else if err != nil {
			return modesScored{}, err
		}
		out.scores = append(out.scores, scores...)
		for _, mode := range rows.rel.modes {
			out.modes = append(out.modes, card.ModeScore{Mode: mode, Encoding: s.Encoding})
		}
	}
	return out, nil
}

func (j *Job) encoding() classify.Encoding {
	return cmp.Or(j.Config.Network.Encoding, classify.Standard)
}

// sayModes adds the scores of modes to the report of a model with the given one, and says
// which would be better.
func (j *Job) sayModes(r *card.Report, s modesScored, kept model.Mode) {
	at := slices.IndexFunc(s.modes, func(m card.ModeScore) bool { return m.Mode == kept && m.Encoding == j.encoding() })
	if at < 0 {
		return
	}
	r.SetModes(s.modes, s.scores, at)
	if advice := r.Modes.Advice(); advice != "" {
		j.warn(r, advice)
	}
}
