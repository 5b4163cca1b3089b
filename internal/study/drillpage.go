package study

import (
	"cmp"
	"fmt"
	"math"
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
- *drill-tools* holds out six of the tools, then six others, then the other eight. Figures are means of the three, followed by the least and the greatest
  G-mean: which tools are held out matters more than the method.
- *drill-tools-reference* holds out the same tools. Each column is divided by its root mean square over the first 12 s of the row's own tool, for every method
  alike. This is what a monitor sees: it knows when a tool was changed, and a new tool is healthy. It needs no label.
- *-full* are the same with as many rows as the paper had, drill-tools with the first six tools held out only.

The study's networks, of all methods but those ending in -paper, are trained for fewer epochs than on KEEL's sets: above 50,000 rows 5 of pre-training and 60 of
fine-tuning in batches of 64, above a million 1 and 2 in batches of 256. Up to a million rows without groups, as in drill-random, they have two hidden layers of
60 and 30 units instead of one of 30, a rate of 0.01 instead of 0.005 and a decay of 1/rows, and costs are chosen on 5 folds instead of 10. [How this was
chosen](../defaults.md#gun-drills), on other simulated tools, says why.

Seconds to train and microseconds to judge a row are of one processor, from raw values to decisions. A dash: judging was not measured when the cell was made.

The paper's recordings are not public. What it prints for them is in the last two columns; compare it with drill-random if at all. Its AUC is of decisions,
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
		rows := drillRows(cells[from:to])
		first := cells[from]
		held, faulty := 0, 0
		for _, c := range cells[from:to] {
			if c.Method == first.Method && c.Trial == first.Trial {
				held, faulty = held+c.TP+c.FN+c.FP+c.TN, faulty+c.TP+c.FN
			}
		}
		fmt.Fprintf(&b, "## %s\n\n%d test rows, %d of them faulty.", set, held, faulty)
		if i := slices.IndexFunc(rows, func(r drillRow) bool { return r.Method == Control }); i >= 0 {
			fmt.Fprintf(&b, " By G-mean ECS-DBN has place %d of %d.", i+1, len(rows))
		}
		b.WriteString("\n\n| method | trial | accuracy | G-mean | AUC by ranks | AUC of decisions | precision | recall | F1 | s to train | µs to judge a row | accuracy, paper | G-mean, paper |\n" +
			"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
		for _, r := range rows {
			paper := "– | –"
			if p, ok := paperDrills[r.Method]; ok {
				paper = fmt.Sprintf("%.4f | %.4f", p[0], p[1])
			}
			micros := "–"
			if !math.IsNaN(r.Micros) {
				micros = fmt.Sprintf("%.1f", r.Micros)
			}
			span := ""
			if r.folds > 1 {
				span = fmt.Sprintf(" (%.3f–%.3f)", r.least, r.most)
			}
			fmt.Fprintf(&b, "| %s | %d | %.4f | %.4f%s | %.4f | %.4f | %.4f | %.4f | %.4f | %.1f | %s | %s |\n",
				r.Method, r.Trial, r.Accuracy, r.GMean, span, r.AUC, r.BalancedAccuracy, r.Precision, r.Recall, r.F1, r.Seconds, micros, paper)
		}
		b.WriteByte('\n')
		from = to
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// drillRow is the mean of the cells of a method's trial over its folds, with the
// least and the greatest G-mean.
type drillRow struct {
	Cell
	folds       int
	least, most float64
}

// drillRows returns the rows of the sorted cells of a set, the best mean G-mean
// first.
func drillRows(cells []Cell) []drillRow {
	var rows []drillRow
	for from := 0; from < len(cells); {
		to := from
		for to < len(cells) && cells[to].Method == cells[from].Method && cells[to].Trial == cells[from].Trial {
			to++
		}
		r := drillRow{Cell: Cell{Key: cells[from].Key}, folds: to - from, least: math.Inf(1), most: math.Inf(-1)}
		for _, c := range cells[from:to] {
			share := 1 / float64(to-from)
			r.Accuracy += share * c.Accuracy
			r.GMean += share * c.GMean
			r.AUC += share * c.AUC
			r.BalancedAccuracy += share * c.BalancedAccuracy
			r.Precision += share * c.Precision
			r.Recall += share * c.Recall
			r.F1 += share * c.F1
			r.Seconds += share * c.Seconds
			r.Micros += share * c.Micros
			r.least, r.most = min(r.least, c.GMean), max(r.most, c.GMean)
		}
		rows = append(rows, r)
		from = to
	}
	slices.SortStableFunc(rows, func(a, b drillRow) int { return cmp.Compare(b.GMean, a.GMean) })
	return rows
}
