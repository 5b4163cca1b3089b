package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
)

// settingsTable has twelve tools of twelve windows, worn in the second half if lives, else all along or never. Speed and feed are the same in all
// windows of a tool; the speed says which tools are worn if tells, and the sensor says it if senses.
func settingsTable(lives, tells, senses bool) *table.Table {
	rng := rand.New(rand.NewPCG(9, 1))
	t := table.New([]string{"rms", "hum", "speed", "feed"})
	for k := range 12 {
		speed := 100 + 50*float64(k/2%2)
		if tells {
			speed = 100 + 50*float64(k%2)
		}
		for s := range 12 {
			class := k % 2
			if lives {
				class = s / 6
			}
			rms := 1 + 0.1*rng.NormFloat64()
			if senses {
				rms += 3 * float64(class)
			}
			t.Append(table.Row{
				Tool: fmt.Sprintf("T%02d", k), Class: class, VBMaxUM: math.NaN(),
				Features: []float32{float32(rms), float32(rng.NormFloat64()), float32(speed), float32(0.1 * float64(1+k/4))},
			})
		}
	}
	return t
}

// The card says what settings reach without sensors, and warns if sensors add nothing that shows.
func TestSettingsAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		table       *table.Table
		warns       bool
		least, most float64 // of the settings' G-mean
	}{
		"settings tell, sensors do not":         {settingsTable(false, true, false), true, 0.9, 1},
		"sensors tell, settings do not":         {settingsTable(false, false, true), false, 0, 0.6},
		"both tell":                             {settingsTable(false, true, true), true, 0.9, 1},
		"lives, of which sensors tell":          {settingsTable(true, false, true), false, 0, 0.6},
		"lives, of which nothing tells a thing": {settingsTable(true, false, false), true, 0, 0.6},
	} {
		j := tableJob(t, tc.table, false)
		j.Config.Label = wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn"}}}
		j.Config.Reference = model.ReferenceSpec{Mode: model.ReferenceOff}
		j.Config.Evaluate = Evaluate{ByTool: "leave-one-out"}
		j.Config.Network.FineTune.Epochs, j.Config.Costs.JADE.Generations = 30, 10
		_, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		s := r.Settings
		if s == nil || !slices.Equal(s.Columns, []string{"speed", "feed"}) {
			t.Errorf("%s: %+v", name, s)
			continue
		}
		warned := strings.Contains(strings.Join(r.Warnings, "\n"), "sensors add nothing that shows")
		if g := float64(s.Pooled.GMean); warned != tc.warns || g < tc.least || g > tc.most {
			t.Errorf("%s: %s, warned %v", name, s.Words(), warned)
		}
		if !strings.Contains(r.Summary(), "settings alone (speed, feed): G-mean ") || !strings.Contains(cardText(t, r), "Settings alone (speed, feed): G-mean ") {
			t.Errorf("%s: console or card lack it", name)
		}
	}
	if got := settingsOf([]float32{1, 2, 1, 3, 1, 4, 1, 5}, 2, []string{"A", "A", "B", "B"}); got != nil {
		t.Errorf("what is the same in all tools, or not in one, is taken for a setting: %v", got)
	}
	if got := settingsOf([]float32{1, 2, 3}, 1, []string{"A", "B", "C"}); got != nil {
		t.Errorf("of one window each: %v", got)
	}
}
