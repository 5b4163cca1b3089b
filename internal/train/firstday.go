package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score/firstday"
	"github.com/flank-tcm/flank/pkg/score/stability"
)

// firstDay says, behind a semicolon, what healthy tools alone tell: which sensor leads, and from where on a tool is different from them. It is
// empty if the table has rows of another class, or labels that look wrong, or if no sensor follows the lives.
func firstDay(t *rowTable, m *model.Model) string {
	if m.Reference.Mode == model.ReferenceOff || slices.Max(t.Class) != classify.Healthy || t.suspicion(classify.Faulty) != "" {
		return ""
	}
	level, data, ok := leading(t, m)
	if !ok {
		return ""
	}
	var reached []float64
	for _, l := range livesOf(t.group) {
		var levels []float64
		for _, i := range l.Rows {
			levels = append(levels, level.Of(data(i)))
		}
		if r := firstday.Reach(levels, alarm.Default.K, alarm.Default.N); !math.IsInf(r, -1) {
			reached = append(reached, r)
		}
	}
	if len(reached) == 0 {
		return ""
	}
	times := func(nepers float64) string { return fmt.Sprintf("%.2g", math.Exp(nepers)) }
	return fmt.Sprintf("; no worn tool seen yet, so a tool can be different from before, and no one knows whether it is worn: sensor %s follows the lives of healthy tools most steadily and came to at most %s times its reference in %d of them; "+
		"until worn tools are recorded, look at a tool whose %s comes to %s times its reference",
		level.Sensor, times(slices.Max(reached)), len(reached), level.Sensor, times(firstday.Limit(reached, firstday.Share, firstday.Least)))
}

// leading returns the level of the sensor that follows the lives of the rows most steadily, and the rows that it takes; false if
// there is none, or the rows before the reference are not in memory.
func leading(t *rowTable, m *model.Model) (level firstday.Level, row func(i int) []float32, ok bool) {
	rel, before, p := t.rel, t.Data, len(t.Columns)
	if rel == nil {
		rel, before = t.was, t.plain
	}
	if rel == nil || len(before) == 0 {
		return level, nil, false
	}
	spec := t.referenceSpec(rel, model.ReferenceLog, m.Reference.Windows, places(len(t.group)), places(len(t.bare.group)))
	data := make([]float32, len(before))
	for i, k := range rel.tool {
		spec.Relate(data[i*p:(i+1)*p], before[i*p:(i+1)*p], rel.centers[k], rel.relations)
	}
	row = func(i int) []float32 { return data[i*p : (i+1)*p] }
	followed := stability.Rank(p, row, livesOf(t.group))
	followed.Exclude(t.exclude)
	origins := m.NewJudge().Origins()
	level, ok = firstday.Lead(followed, stability.Sensors(sensorOfEach(origins)), spec.Nepers(rel.relations, origins))
	return level, row, ok
}

// livesOf returns the rows of each group, in the order of the rows.
func livesOf(group []string) []stability.Life {
	var out []stability.Life
	at := make(map[string]int)
	for i, g := range group {
		k, known := at[g]
		if !known {
			k = len(out)
			at[g] = k
			out = append(out, stability.Life{Tool: g})
		}
		out[k].Rows = append(out[k].Rows, i)
	}
	return out
}
