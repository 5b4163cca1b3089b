package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/signal"
)

// A column that decides the class or follows the wear alone is named; one that is only good is not.
func TestTelltales(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, tc := range map[string]struct {
		rows, classes int
		value         func(i, class int, um float64) float64
		says          string
	}{
		"the class":                     {480, 2, func(_, class int, _ float64) float64 { return float64(class) }, `column "x" alone decides the class in all 480 rows: if it is not a measurement, leave it out with --ignore x`},
		"one of two classes, upside":    {480, 2, func(_, class int, _ float64) float64 { return 1 - float64(class) }, "decides the class in all 480 rows"},
		"an operator":                   {480, 2, func(_, class int, _ float64) float64 { return []float64{7, 12}[class] }, "decides the class in all 480 rows"},
		"codes without an order":        {480, 2, func(i, class int, _ float64) float64 { return float64([][]int{{3, 9}, {5, 1}}[class][i%2]) }, "decides the class in all 480 rows"},
		"one class of three":            {480, 3, func(_, class int, _ float64) float64 { return float64(5 - class) }, "decides the class in all 480 rows"},
		"rounded wear":                  {480, 2, func(i, _ int, um float64) float64 { return math.Round(um/10) / 100 }, "alone decides the class in "},
		"two rows are wrong":            {480, 2, func(i, class int, um float64) float64 { return um + float64(i/5%2*90-45)*float64(i/470) }, "decides the class in "},
		"wear, with a class of its own": {480, 0, func(_, _ int, um float64) float64 { return math.Sqrt(um) }, `column "x" alone follows the wear with a rank correlation of 0.999 or more`},
		"wear that falls":               {480, 0, func(_, _ int, um float64) float64 { return -math.Round(um) }, `follows the wear`},
		"thinned":                       {5000, 2, func(_, class int, _ float64) float64 { return float64(class) }, "rows that were looked at"},
		"a good feature":                {480, 2, func(_, _ int, um float64) float64 { return um + 40*rng.NormFloat64() }, ""},
		"noise":                         {480, 2, func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, ""},
		"a constant":                    {480, 2, func(_, _ int, _ float64) float64 { return 4 }, ""},
		"few rows":                      {30, 2, func(_, class int, _ float64) float64 { return float64(class) }, ""},
		"mostly missing":                {480, 2, func(i, class int, _ float64) float64 { return []float64{math.NaN(), float64(class)}[i%2] }, ""},
		"codes of both classes":         {480, 2, func(i, class int, _ float64) float64 { return float64(i % 3) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := signal.NewLayout("l", []signal.Channel{{Name: "n", Kind: signal.Feature, Rate: 1}, {Name: "x", Kind: signal.Feature, Rate: 1}})
			if err != nil {
				t.Fatal(err)
			}
			tell := newTelltales(l, []string{"x", "n"})
			for i := range tc.rows {
				um := float64(i*7%60) * 9 // of tools that wear side by side
				class := i % 2
				if tc.classes > 0 {
					class = min(int(um)*tc.classes/540, tc.classes-1)
				}
				tell.add(class, um, []float32{float32(tc.value(i, class, um)), rng.Float32()})
			}
			got := strings.Join(tell.warnings(nil, true), "; ")
			if tc.says == "" && got != "" || !strings.Contains(got, tc.says) {
				t.Errorf("said %q, want %q", got, tc.says)
			}
			if again := tell.warnings([]int{0}, true); again != nil {
				t.Errorf("of a column that is excluded: %q", again)
			}
			if got := strings.Join(tell.warnings(nil, false), ""); got != "" && !strings.Contains(got, "take it out of the layout") {
				t.Errorf("of recordings: %q", got)
			}
		})
	}
	l, _ := signal.NewLayout("l", []signal.Channel{{Name: "x", Kind: signal.Force, Rate: 1000}})
	if tell := newTelltales(l, []string{"x"}); tell != nil || tell.warnings(nil, true) != nil {
		t.Error("features that are computed here are looked at")
	}
}

// Several columns are named together, and of wide tables fewer rows are kept.
func TestTelltalesOfManyColumns(t *testing.T) {
	t.Parallel()
	var cs []signal.Channel
	var names []string
	for i := range 9000 {
		names = append(names, fmt.Sprintf("x%d", i))
		cs = append(cs, signal.Channel{Name: names[i], Kind: signal.Feature, Rate: 1})
	}
	l, err := signal.NewLayout("l", cs)
	if err != nil {
		t.Fatal(err)
	}
	tell := newTelltales(l, names)
	row := make([]float32, len(names))
	for i := range 700 {
		for k := range row {
			row[k] = float32((i + k*i) % 7)
		}
		row[1], row[4] = float32(i%2), float32(i%2*3+i%5)
		tell.add(i%2, math.NaN(), row)
	}
	if n := len(tell.rows) * len(names); n > telltaleValues || len(tell.rows) < leastTelltale {
		t.Errorf("%d values of %d rows are kept", n, len(tell.rows))
	}
	got := tell.warnings(nil, true)
	if len(got) != 1 || !strings.Contains(got[0], `column "x1" alone decides`) {
		t.Errorf("said %q", got)
	}
	if slices.Contains(tell.class, 2) {
		t.Error("a class that no row has")
	}
}
