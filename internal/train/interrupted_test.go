package train

import (
	"slices"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
)

// The rows of a tool are the same whether or not other tools come in between: its reference
// waits for it, in training and evaluation as in the monitor. So no recall is lost.
func TestInterruptedTool(t *testing.T) {
	m := machinetest.OneValue(t)
	rows := func(order []string) map[string][]float32 {
		l := newLabeller(m, wear.Rule{VBMaxUM: 300}, nil, new(card.Tally), false)
		judge := m.NewJudge()
		got, seen := make(map[string][]float32), make(map[string]int)
		for i, tool := range order {
			n := seen[tool]
			seen[tool]++
			w := machinetest.At(uint64(i), tool, false)
			w.Samples[0][0] = 10 + float32(n)
			var o observed
			o.class = table.NoClass
			judge.Observe(w, &o.Observation)
			o.Start = w.Start.Add(time.Duration(i) * time.Second)
			o.truth = source.Truth{VBMaxUM: float64(20 * n)}
			row, ok, err := l.row(&o)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				got[tool] = append(got[tool], slices.Clone(row.features)...)
			}
		}
		return got
	}
	life := slices.Repeat([]string{"T4"}, 30)
	interrupted := slices.Concat(life[:12], slices.Repeat([]string{"T3"}, 20), life[12:])
	alone, between := rows(life)["T4"], rows(interrupted)["T4"]
	if len(alone) != 30-m.Reference.Windows || !slices.Equal(alone, between) {
		t.Errorf("rows of the tool alone\n%v\nand with another tool in between\n%v", alone, between)
	}
	if m.Reference.Mode != model.ReferenceRatio {
		t.Fatal("rows are not relative to the reference: the test has no teeth")
	}
}
