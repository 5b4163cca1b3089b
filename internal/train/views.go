package train

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/signal"
)

// bare is the windows that are fit for judging and have no label.
type bare struct {
	data   []float32 // rows by columns, if they are in memory
	onDisk *table.RowFile
	group  []string
	after  []int // rows with a label that came before
	tool   []int32
}

// rows returns the features, of so many columns, as the classifier takes them.
func (b *bare) rows(columns int) dbn.Rows {
	if b.onDisk != nil {
		return b.onDisk
	}
	return dbn.Matrix{Rows: len(b.group), Cols: columns, Data: b.data}
}

// relative is what it takes to make rows relative to the references of their tools.
// Rows are then as they were before the reference, until settle.
type relative struct {
	relations []signal.Relation
	centers   [][]float32       // of each tool, as it was put in
	tool      []int32           // of each row with a label: index of its center
	least     map[string]lowest // of each group, over all its windows of cutting
	modes     []model.Mode      // to choose from, the one to keep to in doubt first
}

// viewBytes is up to how much memory a table takes for all modes of the reference to
// be tried. A larger one keeps to the first.
const viewBytes = 64 << 20

// modesOf returns the modes of the reference that the trainer chooses from, the one it
// keeps to in doubt first: for values that are features already, such as one row for
// each cut, all of them; for features that Flank computed, whose kinds are known,
// fewer.
func modesOf(relations []signal.Relation, mode model.Mode) []model.Mode {
	if mode != model.ReferenceAuto {
		return []model.Mode{mode}
	}
	if slices.Contains(relations, signal.LogRatio) {
		return []model.Mode{model.ReferenceKind, model.ReferenceLog, model.ReferenceOff}
	}
	return []model.Mode{model.ReferenceLog, model.ReferenceRatio, model.ReferenceDifference, model.ReferenceOff}
}

// bareOf returns the windows without a label that a fold learns from: windows of tools that it
// does not hold out, or with transductive all.
func (t *rowTable) bareOf(transductive bool, fold classify.Fold) (out []int) {
	held := make(map[string]bool)
	if !transductive {
		for _, i := range fold.Test {
			held[classify.Together(t.together, t.group[i])] = true
		}
	}
	for i, g := range t.bare.group {
		if !held[classify.Together(t.together, g)] {
			out = append(out, i)
		}
	}
	return out
}

// referenceSpec returns how rows are made relative in a mode, where the given rows say which
// features are positive.
func (t *rowTable) referenceSpec(of *relative, mode model.Mode, windows int, labelled, unlabelled []int) model.ReferenceSpec {
	s := model.ReferenceSpec{Windows: windows, Mode: mode}
	if mode == model.ReferenceLog {
		s.Positive = t.positive(of, labelled, unlabelled)
	}
	return s
}

// positive returns which features are positive in all windows of cutting of the groups
// that the given rows are of.
func (t *rowTable) positive(of *relative, labelled, unlabelled []int) string {
	all := newLowest(len(t.Columns))
	seen := make(map[string]bool)
	add := func(group string) {
		if !seen[group] {
			seen[group] = true
			all.add(of.least[group])
		}
	}
	for _, i := range labelled {
		add(t.group[i])
	}
	for _, i := range unlabelled {
		add(t.bare.group[i])
	}
	return all.positive()
}

// relate stores the rows of src, as before the reference, in dst relative by s. Both
// may be one. Tool has the center of each row.
func (t *rowTable) relate(s model.ReferenceSpec, dst, src []float32, tool []int32) {
	p := len(t.Columns)
	for i, k := range tool {
		s.Relate(dst[i*p:(i+1)*p], src[i*p:(i+1)*p], t.rel.centers[k], t.rel.relations)
	}
}

// views returns the ways to make the rows relative that are to be tried; none if the
// rows are as they are to be.
func (t *rowTable) views(windows int) []classify.View {
	if t.rel == nil {
		return nil
	}
	var out []classify.View
	for _, mode := range t.rel.modes {
		of := func(labelled, unlabelled []int) model.ReferenceSpec {
			return t.referenceSpec(t.rel, mode, windows, labelled, unlabelled)
		}
		log := func(labelled, unlabelled []int) []bool { return of(labelled, unlabelled).Logs(t.rel.relations) }
		out = append(out, classify.View{Name: string(mode), Log: log, Rows: func(labelled, unlabelled []int) (x, more dbn.Rows) {
			s := of(labelled, unlabelled)
			rows := dbn.NewMatrix(t.Rows(), len(t.Columns))
			t.relate(s, rows.Data, t.Data, t.rel.tool)
			if len(t.bare.group) == 0 {
				return rows, nil
			}
			others := dbn.NewMatrix(len(t.bare.group), len(t.Columns))
			t.relate(s, others.Data, t.bare.data, t.bare.tool)
			return rows, others
		}})
	}
	return out
}

// settle makes the rows relative in the given mode, for good, and returns what a model
// has of it.
func (t *rowTable) settle(mode model.Mode, windows int) model.ReferenceSpec {
	s := t.referenceSpec(t.rel, mode, windows, places(len(t.group)), places(len(t.bare.group)))
	t.relate(s, t.Data, t.Data, t.rel.tool)
	t.relate(s, t.bare.data, t.bare.data, t.bare.tool)
	t.logs, t.rel = s.Logs(t.rel.relations), nil
	return s
}

// sensorOfEach returns the sensor of each feature, nothing for a feature of two.
func sensorOfEach(origins []signal.FeatureOrigin) []string {
	of := make([]string, len(origins))
	for j, o := range origins {
		if of[j] = o.Sensor; o.Other != "" && o.Other != o.Sensor {
			of[j] = ""
		}
	}
	return of
}

// sensorsOf groups features by the sensor that they come from, for a guard. Features of two sensors belong to none.
func sensorsOf(names []string, origins []signal.FeatureOrigin) []vote.Sensor {
	var out []vote.Sensor
	for _, s := range score.Sensors(sensorOfEach(origins)) {
		if s.Name == "" {
			continue
		}
		v := vote.Sensor{Name: s.Name, Columns: s.Columns}
		for _, j := range s.Columns {
			v.Kinds = append(v.Kinds, kindOf(names[j], origins[j].Gain))
			if v.Unit == "" && v.Kinds[len(v.Kinds)-1] != vote.Other {
				v.Unit = origins[j].Group
			}
		}
		out = append(out, v)
	}
	return out
}

// kindOf returns what a feature of that name is of its sensor's signal: a level is one if its name says which.
func kindOf(name string, g signal.Gain) vote.Kind {
	if g.Power != 1 || g.Decades {
		return vote.Other
	}
	name = strings.ToLower(name)
	switch name[strings.LastIndexAny(name, "_.")+1:] {
	case "rms":
		return vote.RMS
	case "mean", "average", "avg", "abs":
		return vote.Mean
	case "max", "peak", "p2p", "pp", "ptp":
		return vote.Max
	}
	return vote.Other
}

func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// lessons returns the rows as the classifier learns from them.
func (t *rowTable) lessons(windows int) *classify.Table {
	c := &classify.Table{X: t.x(), Y: t.Class, Groups: t.group, Together: t.together, Ordered: t.ordered, Ended: t.ended(), Wear: t.wearInLimits(), Sensors: t.sensors, Log: t.logs, Views: t.views(windows)}
	if len(t.bare.group) > 0 {
		c.Unlabelled = classify.Unlabelled{X: t.bare.rows(len(t.Columns)), Groups: t.bare.group, After: t.bare.after}
	}
	return c
}

// wearInLimits returns how worn each row is, in limits of the label; nil if no limit parts
// two classes, or if the wear is not known of some row.
func (t *rowTable) wearInLimits() []float64 {
	if several(t.classes) || t.limitUM == 0 || t.wear == nil || len(t.wearAt) != len(t.Class) || slices.Contains(t.wearAt, -1) {
		return nil
	}
	out := make([]float64, len(t.Class))
	for i, at := range t.wearAt {
		out[i] = t.wear.WearUM[at] / t.limitUM
	}
	return out
}

// ended returns whether a tool was recorded until the end of its life, or nearly so:
// whether some window of it is not healthy, or its wear reached half the limit. A tool
// without any label is taken for one: it was in until it was taken out. One of unknown wear
// without a healthy window is not: it was recorded in one state, so its windows follow no wear.
func (t *rowTable) ended() func(group string) bool {
	worn, healthy := make(map[string]bool), make(map[string]bool)
	for i, g := range t.group {
		worn[g] = worn[g] || t.Class[i] != classify.Healthy
		healthy[g] = healthy[g] || t.Class[i] == classify.Healthy
	}
	return func(g string) bool {
		switch um := t.mostUM[g]; {
		case t.limitUM > 0 && um >= t.limitUM/2 || !worn[g] && !healthy[g]:
			return true
		case um > 0:
			return worn[g]
		}
		return worn[g] && healthy[g]
	}
}

// excluded returns the columns whose names match one of the patterns. It is an error
// if a pattern matches none, or if no column is left.
func excluded(columns, patterns []string) ([]int, error) {
	var out []int
	for _, p := range patterns {
		before := len(out)
		for j, name := range columns {
			if ok, err := table.MatchColumn(p, name); err != nil {
				return nil, fmt.Errorf("exclude: %q is not a pattern: write * for any characters, as in 'CV3.*'", p)
			} else if ok && !slices.Contains(out, j) {
				out = append(out, j)
			} else if ok {
				before = -1
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("exclude: no feature is named %q: `trainer inspect --features` lists a model's features; these begin with %s", p, card.Some(columns))
		}
	}
	if len(out) == len(columns) {
		return nil, fmt.Errorf("exclude: all %d features are excluded: leave some to learn from", len(columns))
	}
	slices.Sort(out)
	return out, nil
}

// clock notices rows of a tool that go back in time.
type clock struct {
	last map[string]time.Time
	back bool
}

func (c *clock) see(group string, at time.Time) {
	if at.IsZero() {
		return
	}
	if at.Before(c.last[group]) {
		c.back = true
	}
	c.last[group] = at
}
