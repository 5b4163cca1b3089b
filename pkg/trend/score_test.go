package trend

import (
	"math"
	"testing"
)

// Windows whose wear was not measured are in no figure, but the tool sees them: estimates of
// the others stay as they are.
func TestAssess(t *testing.T) {
	rows := lives(4, 60)
	m, _ := fitted(t, rows, Settings{LimitUM: 300})
	all := Assess(m, rows)
	if all.Rows != len(rows.Tool) || len(all.Tools) != 4 || !(all.MAEUM < 12) || all.Known == 0 {
		t.Fatalf("%d rows of %d tools, off by %.1f µm", all.Rows, len(all.Tools), all.MAEUM)
	}
	some := *rows
	some.WearUM = append([]float64(nil), rows.WearUM...)
	for i := range some.WearUM {
		if i%3 > 0 {
			some.WearUM[i] = math.NaN()
		}
	}
	part := Assess(m, &some)
	if part.Rows != (len(rows.Tool)+2)/3 || !(part.MAEUM < 12) || part.Known > part.Rows {
		t.Errorf("%d of %d rows were measured, off by %.1f µm", part.Rows, len(rows.Tool), part.MAEUM)
	}
	for i := range all.Estimates {
		if a, b := all.Estimates[i], part.Estimates[i]; a.UM != b.UM && (a.Known() || b.Known()) {
			t.Fatalf("window %d: %v µm, and %v µm where others are not measured", i, a.UM, b.UM)
		}
	}
	for i := range rows.WearUM {
		some.WearUM[i] = rows.WearUM[i] + 100
	}
	if more := Assess(m, &some); !(more.MAEUM > all.MAEUM+60) {
		t.Errorf("off by %.1f µm where 100 µm more were measured, %.1f µm before", more.MAEUM, all.MAEUM)
	}
	for i := range some.WearUM {
		some.WearUM[i] = math.NaN()
	}
	if none := Assess(m, &some); none.Rows != 0 || none.Known != 0 || none.MAEUM != 0 {
		t.Errorf("nothing was measured: %+v", none)
	}
}
