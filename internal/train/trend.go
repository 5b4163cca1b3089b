package train

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/trend"
)

// addWear adds the window that l's judge was asked about last, if it is of cutting and
// its wear was measured; otherwise it returns false. Windows of cutting whose wear was not
// measured are added too if all is true, with NaN.
func (l *labeller) addWear(rows *trend.Rows, o *observed, all bool) bool {
	x, um := l.judge.Cutting(), l.um
	if len(x) == 0 {
		return false
	}
	if !(um >= 0) || math.IsInf(um, 0) {
		if um = math.NaN(); !all {
			return false
		}
	}
	rows.X = append(rows.X, x...)
	rows.WearUM = append(rows.WearUM, um)
	rows.Tool = append(rows.Tool, l.names[l.group(o)])
	rows.Hole = append(rows.Hole, o.hole)
	rows.Reference = append(rows.Reference, l.judge.Center())
	return true
}

// trend fits the estimate of wear, if wear was measured of tools enough, and
// scores it unless nothing is held out.
func (j *Job) trend(ctx context.Context, t *rowTable, m *model.Model, r *card.Report) error {
	rows := t.wearRows(m.Reference.Mode != model.ReferenceOff)
	if rows == nil || len(rows.Tool) == 0 {
		return nil
	}
	set := j.wearSettings(*t)
	set.Shared = trend.NewShared()
	const estimating = "estimating wear of tools held out"
	set.Progress = func(done, total int) { j.Progress(estimating, done, total) }
	j.Progress(estimating, 0, 1)
	fitted, choice, err := trend.Fit(ctx, rows, set)
	if errors.Is(err, trend.ErrTooFew) {
		j.Log.Info().Err(err).Msg("wear will not be estimated")
		return nil
	}
	if err != nil {
		return err
	}
	tools := slices.Compact(slices.Sorted(slices.Values(rows.Tool)))
	m.Wear = fitted
	m.GoldenWear = goldenWear(fitted, rows)
	r.Trend = &card.Trend{OfTools: len(tools), Windows: len(rows.Tool), LimitUM: set.LimitUM, Choice: choice, Measured: rows.WearUM, Tool: rows.Tool}
	if t.byWear(nil) {
		m.ByWear, r.ByWear = wearVerdict(t.limitUM, choice), true
		j.warn(r, sayByWear(m.ByWear))
	}
	if j.Config.Evaluate.ByTool == "off" {
		return nil
	}
	r.Trend.Score, err = trend.CrossValidate(ctx, rows, set, j.Workers)
	if errors.Is(err, trend.ErrTooFew) {
		return nil
	}
	return err
}

// goldenWear picks rows for the model's estimate of wear to be checked by, which have a
// reference if it takes one.
func goldenWear(m *trend.Model, rows *trend.Rows) []model.GoldenWear {
	var from []int
	for i, ref := range rows.Reference {
		if !m.Reference || ref != nil {
			from = append(from, i)
		}
	}
	const golden = 4
	var out []model.GoldenWear
	for k := range min(golden, len(from)) {
		i := from[k*len(from)/golden]
		g := model.GoldenWear{Features: slices.Clone(rows.Row(i))}
		if m.Reference {
			g.Reference = slices.Clone(rows.Reference[i])
		}
		g.Root, _ = m.Root(g.Features, g.Reference)
		out = append(out, g)
	}
	return out
}
