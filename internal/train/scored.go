package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// Scored are windows of labelled data with the scores that an alarm goes by.
type Scored struct {
	Tool  []string // by judged window, in the order of cutting
	Class []int    // by its label
	Score []float64

	// Unknown says of each why the verdict is unknown; empty: it is not.
	Unknown []model.UnknownReason

	Unjudged []unjudged // tools with windows that are faulty by their label and were not judged
	Time     windowTime

	Networks int    // trained for this, each without the tools it scores; 0: the scores are the model's own
	Seen     string // what of the data the model was trained on, if it is known to have seen some
	Windows  string // what became of all windows, in words
	Warnings []string
}

// Score scores all windows of the exam's data. The model itself does that, unless
// it was trained on some of them, which flatters, or holdOut is true: then networks
// are trained again under the model's own configuration on the data at hand, and
// each window is scored by one that was trained without its tool.
func Score(ctx context.Context, e Exam, holdOut bool) (*Scored, error) {
	seen := func(sum func(i int) string) string {
		for i := range e.Inputs {
			if name, known := trainedOn(e.Model, sum(i)); known {
				return name
			}
		}
		return ""
	}
	name := seen(func(i int) string { return e.Inputs[i].SHA256 })
	if e.Model.FirstDay != nil {
		r, err := e.judge(ctx)
		if err != nil {
			return nil, err
		}
		s := r.scored()
		if taught := cmp.Or(name, seenTools(r.Seen)); taught != "" {
			s.Warnings = append(s.Warnings, "the limit of the model, which has seen no worn tool, was taught by "+taught+": these lives flatter")
		}
		return s, nil
	}
	if name == "" && !holdOut {
		r, err := e.judge(ctx)
		if err != nil {
			return nil, err
		}
		name = seen(func(i int) string { return r.Data[i].SHA256 }) // known of windows on Kafka once they are read
		if name = cmp.Or(name, seenTools(r.Seen)); name == "" {
			return r.scored(), nil
		}
	}
	s, err := e.heldOut(ctx)
	if err != nil && name != "" {
		return nil, fmt.Errorf("the model was trained on %s, so that networks must be trained without each tool: %w", name, err)
	} else if err != nil {
		return nil, err
	}
	s.Seen = name
	return s, nil
}

// scored returns the model's own scores.
func (r *examined) scored() *Scored {
	return &Scored{
		Tool: r.judged.Tool, Class: r.Class, Score: r.score, Unknown: r.judged.Unknown, Unjudged: r.unjudged, Time: r.time,
		Windows: r.Windows.Words(), Warnings: r.Warnings,
	}
}

// heldOut scores the windows by networks that are trained without their tools.
func (e Exam) heldOut(ctx context.Context) (*Scored, error) {
	c, err := configOf(e.Model)
	if err != nil {
		return nil, err
	}
	c.Join = e.Join
	j := Job{Config: c, Layout: e.Model.Layout, Inputs: e.Inputs, Wear: e.Wear, Workers: e.Workers, Progress: e.Progress, Log: e.Log}
	j.prepare()
	rows, _, counts, err := j.rows(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.close()
	if err := rows.check(c.Label); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	for k, name := range rows.classes {
		if tools := rows.unlike(k); len(tools) == 1 {
			return nil, fmt.Errorf("train: %w: tool %s alone has %s windows, and without it there are none to learn from: add another such tool, or data that the model was not trained on", errData, tools[0], name)
		}
	}
	folds := j.folds(rows, rand.New(rand.NewPCG(c.Seed, foldSeed)))
	s := j.settings(rows)
	s.Progress = j.phase("training without each tool")
	v, err := classify.CrossValidateTable(ctx, rows.lessons(c.Reference.Windows), s, folds)
	if errors.Is(err, classify.ErrTooFew) {
		return nil, fmt.Errorf("train: %w: too few tools are left where some are held out: %w", errData, err)
	}
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if e.Model.ByWear != nil { // an alarm goes by the scores of a kind that the model gives
		if _, _, err := j.decideByWear(ctx, rows, v, folds); err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
	}
	if rows.rel != nil {
		rows.settle(e.Model.Reference.Mode, c.Reference.Windows)
	}
	unknown, err := j.unknown(ctx, rows, e.Model, v, folds)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return &Scored{
		Unknown: unknown, Unjudged: rows.unjudged, Time: e.windowTime(j.hop), Tool: rows.group, Class: rows.Class, Score: v.Score, Networks: len(folds), Windows: counts.Words(), Warnings: counts.Warnings(),
	}, nil
}

// JoinOf returns how a wear file's measurements became labels in the training of a model.
func JoinOf(m *model.Model) wear.Mode {
	c := DefaultConfig()
	if len(m.Provenance.Config) > 0 && config.Decode(m.Provenance.Config, m.ID(), &c) != nil {
		return DefaultConfig().Join // of a release that knows more
	}
	return c.Join
}

// configOf returns the configuration that a model was trained with.
func configOf(m *model.Model) (Config, error) {
	c := DefaultConfig()
	if len(m.Provenance.Config) == 0 {
		return c, fmt.Errorf("train: %s does not say how it was trained, so that it cannot be done again without some tools: name data that it was not trained on", m.ID())
	}
	if err := config.Decode(m.Provenance.Config, "the configuration in "+m.ID(), &c); err != nil {
		return c, fmt.Errorf("train: %w", err)
	}
	c.Label = card.RuleOf(m)        // as it is, without defaults
	c.Evaluate.Transductive = false // what is held out stays so
	c.Reference.Windows, c.ReferenceSaid = m.Reference.Windows, true
	if c.Reference.Mode != model.ReferenceAuto { // else each fold chooses for itself
		c.Reference.Mode = m.Reference.Mode
	}
	return c, nil
}
