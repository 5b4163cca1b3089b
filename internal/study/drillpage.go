package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// paperDrills are the mean accuracy and G-mean that the paper prints for its own
// gun drills. Its weighted extreme learning machine does not say which weights.
//
// Source: C. Zhang et al., "A Cost-Sensitive Deep Belief Network for Imbalanced
// Classification", IEEE TNNLS 30(1), 2019, the tables of gun drilling.
var paperDrills = map[string][2]float64{
	"ecs-dbn":               {0.9960, 0.9946},
	"csdbn":                 {0.9957, 0.9916},
	"smote-svm-dbn":         {0.9961, 0.9858},
	"adasyn-dbn":            {0.9964, 0.9857},
	"smote-borderline2-dbn": {0.9962, 0.9852},
	"smote-borderline1-dbn": {0.9958, 0.9837},
	"smote-dbn":             {0.9959, 0.9837},
	"dbn":                   {0.9954, 0.9830},
	"welm-w1":               {0.7397, 0.7532},
	"welm-w2":               {0.7397, 0.7532},
	"eco-ensemble":          {0.9895, 0.9713},
}

const drillIntroduction = `# Gun drills

The paper's experiment on gun drills, on simulated ones: 20 tools until the end of their life. A row is one reading of the 14 channels at 20 kHz. It is of the
positive class, faulty, if the tool is chipped, broken, or worn by 300 µm or more. ` + "`make study-drill`" + ` wrote this page.

- *drill-random* parts the rows 70 to 30 at random, as the paper does: readings a twenty-thousandth of a second apart are on both sides, so it tells nothing about
  a tool that is new.
- *drill-tools* holds out six of the tools. It is what a shop would see.
- *-full* are the same with as many rows as the paper had.

The paper's recordings are not public. What it prints for them stands in the last two columns, to be set beside drill-random if at all. Its AUC is that of decisions,
and its precision and F1 are of the larger class; here they are of the faulty one.

`

// DrillPage returns cells of a Drill as a page in Markdown: the paper's table, for
// each set, the best G-mean first.
func DrillPage(cells []Cell) string {
	cells = slices.Clone(cells)
	SortCells(cells)
	var b strings.Builder
	b.WriteString(drillIntroduction)
	for from := 0; from < len(cells); {
		set := cells[from].Dataset
		to := from
		for to < len(cells) && cells[to].Dataset == set {
			to++
		}
		some := cells[from:to]
		slices.SortStableFunc(some, func(a, b Cell) int { return cmp.Compare(b.GMean, a.GMean) })
		fmt.Fprintf(&b, "## %s\n\n%d test rows, %d of them faulty.", set, some[0].TP+some[0].FN+some[0].FP+some[0].TN, some[0].TP+some[0].FN)
		if i := slices.IndexFunc(some, func(c Cell) bool { return c.Method == "ecs-dbn" }); i >= 0 {
			fmt.Fprintf(&b, " By G-mean ECS-DBN has place %d of %d.", i+1, len(some))
		}
		b.WriteString("\n\n| method | trial | accuracy | G-mean | AUC by ranks | AUC of decisions | precision | recall | F1 | s to train | accuracy, paper | G-mean, paper |\n" +
			"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
		for _, c := range some {
			paper := "– | –"
			if p, ok := paperDrills[c.Method]; ok {
				paper = fmt.Sprintf("%.4f | %.4f", p[0], p[1])
			}
			fmt.Fprintf(&b, "| %s | %d | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f | %.1f | %s |\n",
				c.Method, c.Trial, c.Accuracy, c.GMean, c.AUC, c.BalancedAccuracy, c.Precision, c.Recall, c.F1, c.Seconds, paper)
		}
		b.WriteByte('\n')
		from = to
	}
	return strings.TrimSuffix(b.String(), "\n")
}
