package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/signal"
)

// firstDayConfig says which of the tools teach a model that has seen no worn tool: all, or those before a number of lives or of
// hours of cutting is over, whichever comes first. The others are judged by it.
type firstDayConfig struct {
	Lives int     `yaml:"lives" json:"lives,omitempty"`
	Hours float64 `yaml:"hours" json:"hours,omitempty"`
}

func (c firstDayConfig) check() error {
	return cmp.Or(
		config.Under("first_day.lives", config.Wrong(c.Lives < 0, "%d: say how many tools teach, or leave it out", c.Lives)),
		config.Under("first_day.hours", config.Wrong(!(c.Hours >= 0) || math.IsInf(c.Hours, 0), "%v: say how many hours of cutting teach, or leave it out", c.Hours)))
}

// hintFirstDay says, behind a semicolon, what can be had without a worn tool. It is empty if rows are missing of another class, or
// labels look wrong.
func hintFirstDay(t *rowTable) string {
	if len(t.Class) == 0 || slices.Max(t.Class) != classify.Healthy || t.suspicion(classify.Faulty) != "" {
		return ""
	}
	return "; no worn tool seen yet: `trainer fit --first-day` makes a model that says which tools are different from before, until worn ones are recorded"
}

// FirstDay makes a model of tools none of which was worn: see model.FirstDay. Windows without a label are taken for healthy.
// Equal jobs give equal models, byte for byte. It is an error if a tool is worn by its label.
func FirstDay(ctx context.Context, job Job) (*model.Model, *card.FirstDay, error) {
	job.prepare()
	if err := job.Config.Check(); err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if job.Config.Reference.Mode == model.ReferenceOff {
		return nil, nil, keyError("reference.mode", "off: without a worn tool, a tool is compared with its own first windows: remove it, or set it to log")
	}
	if len(job.Config.Label.Classes) > 0 {
		return nil, nil, keyError("label.classes", "without a worn tool there are no others than healthy and different: remove them until worn tools are recorded")
	}
	job.Config.Reference.Mode = model.ReferenceLog // a level is a ratio
	job.presume = true
	rows, m, counts, err := job.rows(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer rows.close()
	if worn := rows.unlike(classify.Faulty); len(worn) > 0 {
		return nil, nil, fmt.Errorf("train: %w: worn by their labels are %s: leave --first-day out, so that they are learnt from, or leave out their data", errLabels, firstTools(worn))
	}
	var dead []string
	if rows.rel != nil {
		dead = deadIn(rows.rel.least, m.NewJudge().Origins())
		m.Reference = rows.settle(model.ReferenceLog, m.Reference.Windows)
	}
	m.Provenance.Labels, m.Provenance.LabelsFrom = labelSum(&rows), counts.LabelsFrom
	r, err := teachFirstDay(&rows, m, job.Config.FirstDay)
	if err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	if _, err := m.Encode(); err != nil { // checks it and gives it its id
		return nil, nil, err
	}
	r.Model, r.Windows, r.Job = m.ID(), counts, m.Provenance
	said := slices.Concat(dead, r.Warnings, r.Doubts(), rows.columnWarnings(), rows.copyWarnings(), counts.Warnings())
	for _, w := range said {
		job.Log.Warn().Msg(w)
	}
	r.Warnings = said
	return m, r, nil
}

// teachFirstDay completes a model by the lives of its rows.
func teachFirstDay(t *rowTable, m *model.Model, c firstDayConfig) (*card.FirstDay, error) {
	buffer, x := make([]float32, len(t.Columns)), t.x()
	var failed error
	row := func(i int) []float32 {
		if err := x.ReadRows(buffer, i); err != nil {
			failed = cmp.Or(failed, err)
		}
		return buffer
	}
	lives := livesOf(t.group)
	if len(t.Start) == len(t.group) { // without times as they came
		slices.SortStableFunc(lives, func(a, b score.Life) int { return t.Start[a.Rows[0]].Compare(t.Start[b.Rows[0]]) })
	}
	taught := c.taught(lives, cmp.Or(t.hop, m.Window.Step()))
	followed := score.RankColumns(len(t.Columns), row, taught)
	followed.Exclude(t.exclude)
	judge := m.NewJudge()
	origins, relations := judge.Origins(), judge.Relations()
	sensors, nepers := score.Sensors(sensorOfEach(origins)), m.Reference.Nepers(relations, origins)
	level, ok := score.Lead(followed, sensors, nepers)
	if failed != nil {
		return nil, failed
	}
	if !ok {
		return nil, fmt.Errorf("%w: no sensor follows the lives of %d tools: give more tools, each from new until it was taken out", errData, len(taught))
	}
	m.FirstDay = &model.FirstDay{Level: level}
	other := func(tool string) string { // the sensor that leads without it
		without := followed.Without([]string{tool})
		without.Exclude(t.exclude)
		l, _ := score.Lead(without, sensors, nepers)
		return l.Sensor
	}
	r := &card.FirstDay{Warnings: oddLife(level.Sensor, taught, other), Sensor: level.Sensor, K: alarm.Default.K, N: alarm.Default.N, Cutting: m.Cutting(), Reference: m.Reference.Windows}
	for k, l := range lives {
		of := card.FirstDayLife{Tool: l.Tool, Windows: len(l.Rows)}
		if k < len(taught) {
			of.Taught = len(taught[k].Rows)
		}
		for _, i := range l.Rows {
			of.Levels = append(of.Levels, level.Of(row(i)))
		}
		r.Lives = append(r.Lives, of)
	}
	if failed != nil {
		return nil, failed
	}
	if m.FirstDay.Reached = reached(r); len(m.FirstDay.Reached) == 0 {
		return nil, fmt.Errorf("%w: no tool has %d windows behind its reference of %d: give tools that lasted longer, let more of them teach with `first_day`, or shorten `reference: windows`", errData, r.K, m.Reference.Windows)
	}
	m.FirstDay.Limit = score.DifferenceLimit(m.FirstDay.Reached, score.ShareDifferent, score.LeastDifferent)
	r.Judge(m.FirstDay.Limit)
	m.Drift = fitDrift(t.starts, weighty(followed.Weight))
	var err error
	m.Golden, err = goldenRows(m, *t)
	return r, errors.Join(failed, err)
}

// reached returns what each life that taught reached, unless it was too short.
func reached(r *card.FirstDay) (all []float64) {
	for _, l := range r.Lives {
		if reached := score.ReachedLevel(l.Levels[:l.Taught], r.K, r.N); !math.IsInf(reached, -1) {
			all = append(all, reached)
		}
	}
	return all
}

// oddLife says, if one life alone decides which sensor leads, that the other one may have failed in it.
func oddLife(leads string, taught []score.Life, without func(tool string) string) []string {
	odd, other := "", ""
	for _, l := range taught {
		s := without(l.Tool)
		if len(taught) < 3 || s == leads || s == "" {
			continue
		}
		if odd != "" {
			return nil // sensors are about as steady as each other
		}
		odd, other = l.Tool, s
	}
	if odd == "" {
		return nil
	}
	return []string{fmt.Sprintf("without tool %s the model would go by sensor %s and not %s: look whether %s failed in it, and leave the tool out if it did", odd, other, leads, other)}
}

// deadIn names sensors whose amplitudes are 0 in one tool alone, so that ratios are taken of them in no tool and they cannot lead.
func deadIn(least map[string]lowest, origins []signal.FeatureOrigin) []string {
	if len(least) < 3 {
		return nil
	}
	var all []string
	tools, positive, said := slices.Sorted(maps.Keys(least)), make(map[string]string), make(map[string]bool)
	for tool, l := range least {
		positive[tool] = l.positive()
	}
	for j, o := range origins {
		if o.Gain.Power == 0 || o.Gain.Decades || said[o.Sensor] {
			continue
		}
		in := slices.DeleteFunc(slices.Clone(tools), func(tool string) bool { return positive[tool][j] == '1' })
		if len(in) == 1 {
			said[o.Sensor] = true
			all = append(all, fmt.Sprintf("%s (tool %s)", o.Sensor, in[0]))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return []string{"sensors that read 0 or less in one tool alone count in no tool: " + card.Some(all) + ": look whether they failed in it, and leave the tool out if they did"}
}

// taught returns the lives that teach, as far as they do, of windows that begin a hop apart.
func (c firstDayConfig) taught(lives []score.Life, hop time.Duration) []score.Life {
	if c.Lives > 0 {
		lives = lives[:min(c.Lives, len(lives))]
	}
	if c.Hours == 0 {
		return lives
	}
	left := int(min(c.Hours*float64(time.Hour)/float64(hop), math.MaxInt32)) // windows
	var out []score.Life
	for _, l := range lives {
		if left == 0 {
			break
		}
		l.Rows = l.Rows[:min(left, len(l.Rows))]
		left -= len(l.Rows)
		out = append(out, l)
	}
	return out
}

// weighty says which weights are not 0.
func weighty(weights []float64) []bool {
	out := make([]bool, len(weights))
	for j, w := range weights {
		out[j] = w != 0
	}
	return out
}

// livesOf returns the rows of each group, in the order of the rows.
func livesOf(group []string) []score.Life {
	number, names := classify.NumberGroups(group)
	out := make([]score.Life, len(names))
	for i, k := range number {
		out[k].Tool = group[i]
		out[k].Rows = append(out[k].Rows, i)
	}
	return out
}
