package classify_test

import (
	"context"
	"fmt"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Two features of four tools, of which the second half of the life of two was
// faulty.
func Example() {
	x := dbn.NewMatrix(80, 2)
	y := make([]int, 80)
	tool := make([]string, 80)
	for i := range y {
		age := i % 20
		tool[i] = fmt.Sprint("T", i/20)
		x.Row(i)[0], x.Row(i)[1] = float32(i%7), float32(i%5)
		if i < 40 && age >= 15 {
			y[i] = classify.Faulty
			x.Row(i)[0] += 6
		}
	}
	c, report, err := classify.Fit(context.Background(), x, y, tool, classify.Settings{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Costs.Posteriors, report.Costs.Folds, report.ClassCounts)
	scorer := c.NewScorer()
	for _, row := range [][]float32{{3, 2}, {9, 2}} {
		posterior := scorer.Posterior(row)
		fmt.Println(c.Decide(posterior) == classify.Faulty, c.Score(posterior) >= 0.5)
	}
	// Output:
	// out-of-fold by group 4 [70 10]
	// false false
	// true true
}
