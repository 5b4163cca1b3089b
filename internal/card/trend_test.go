package card

import (
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/trend"
)

// The part of the card about wear, of made-up figures.
func TestTrendForPeople(t *testing.T) {
	nan := trend.Estimate{}
	nan.UM = nan.UM / nan.UM
	w := &Trend{
		OfTools: 4, Windows: 5, LimitUM: 300, Choice: trend.Choice{
			Parts: []trend.Part{trend.Ridge, trend.Trees}, Penalty: 30, Median: 5, RMS: 1.5, Steady: 24,
			Tried: []trend.Tried{{Parts: []trend.Part{trend.Ridge, trend.Weighted, trend.Trees}, RMS: 1.75}, {Parts: []trend.Part{trend.Ridge, trend.Trees}, RMS: 1.5}},
		},
		Measured: []float64{10, 20, 15, 30, 40}, Tool: []string{"A|1", "A|1", "B", "B", "B"},
		Score: &trend.Score{
			Rows: 5, Known: 4, MAEUM: 12.34, AllMAEUM: 13.5, Coverage: 0.75, WidthUM: 66, Life: 4, LifeKnown: 2, LifeMAE: 3.5, LifeCoverage: 0.5,
			Tools:     []trend.ToolScore{{Tool: "A|1", Rows: 2, Known: 2, MAEUM: 10, Coverage: 0.5, MostUM: 20}, {Tool: "B", Rows: 3, Known: 2, MAEUM: 15, Coverage: 1, MostUM: 40}},
			Estimates: []trend.Estimate{{UM: 12}, {UM: 25}, {UM: 20}, nan, {UM: 55}},
		},
	}
	var b strings.Builder
	write := func(w *Trend, ds ...drawing) {
		p := &page{drawings: ds}
		w.writeTo(p)
		b.WriteString(wordsOf(p))
	}
	write(w, drawing{"wear", []byte("<svg><title>Wear</title></svg>")})
	b.WriteString(w.Words() + "\n\n")
	w.Score = nil
	w.OfTools, w.Choice = 2, trend.Choice{Parts: []trend.Part{trend.Ridge, trend.Weighted, trend.Trees}, Penalty: 5, Weighted: 5, Median: 5, Fixed: true, Steady: 3}
	write(w)
	w.OfTools, w.Choice = 9, trend.Choice{Parts: []trend.Part{trend.Ridge}, Penalty: 30, Median: 3, Tried: []trend.Tried{{Parts: []trend.Part{trend.Ridge}, RMS: 2}}}
	write(w)
	b.WriteString(w.Words() + "\n")
	write(nil)
	golden.Check(t, "trend.txt", b.String())
}
