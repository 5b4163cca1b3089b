package card

import (
	"fmt"

	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/pkg/score"
)

// classColor returns the color of a class, which comes again after the fourth.
func classColor(class int) string {
	colors := []string{report.Green, report.Blue, report.Orange, report.Purple}
	return colors[class%len(colors)]
}

// ofClasses returns the curves of more than two classes, each against the rest.
// A class that all rows are of, or none, has none.
func (h HeldOut) ofClasses(names []string) []drawing {
	k := len(names)
	roc, pr, calibration := classPlots()
	m := score.NewConfusion(k)
	for i, truth := range h.Class {
		m.Add(truth, h.Decision[i])
	}
	posterior, positive := make([]float64, len(h.Class)), make([]bool, len(h.Class))
	drawn := false
	for class, name := range names {
		for i, truth := range h.Class {
			posterior[i], positive[i] = h.Posterior[i*k+class], truth == class
		}
		points := score.OperatingPoints(posterior, positive)
		all := points[len(points)-1]
		if all.TP == 0 || all.FP == 0 {
			continue
		}
		drawn = true
		fp, tp := rates(points)
		recall, precision := precisions(points)
		color := classColor(class)
		roc.Series = append(roc.Series, report.Series{Name: fmt.Sprintf("%s %.3f", name, score.AUC(posterior, positive)), X: fp, Y: tp, Color: color})
		pr.Series = append(pr.Series, report.Series{Name: fmt.Sprintf("%s %.3f", name, score.AveragePrecision(posterior, positive)), X: recall, Y: precision, Color: color})
		observed, expected := reliability(posterior, positive, color)
		observed.Name = fmt.Sprintf("%s %.3f", name, expected)
		calibration.Series = append(calibration.Series, observed)
		// Where decisions with costs are on the curve, or near it.
		taken := 0
		for truth := range m {
			taken += m[truth][class]
		}
		roc.Marks = append(roc.Marks, report.Mark{X: float64(taken-m[class][class]) / float64(all.FP), Y: m.RecallOf(class), Color: color})
	}
	if !drawn {
		return nil
	}
	return []drawing{
		{"roc", roc.SVG()}, {"precision-recall", pr.SVG()}, {"calibration", calibration.SVG()},
	}
}

// classPlots returns the plots of ofClasses without the classes' curves.
func classPlots() (roc, pr, calibration report.Plot) {
	chance := report.Series{X: []float64{0, 1}, Y: []float64{0, 1}, Color: report.Grey, Width: 1, Dashed: true}
	roc = report.Plot{
		Title:       "ROC curve of each class, and its area",
		Description: "Share of windows of a class found over share of other windows taken for it, for every threshold on its posterior.",
		X:           report.Axis{Label: "right: other windows taken for it; up: its windows found", High: 1}, Y: report.Axis{High: 1},
		Series: []report.Series{chance},
	}
	pr = report.Plot{
		Title:       "Precision and recall, and their average",
		Description: "Share of windows taken for a class that are of it, over the share of its windows found, for every threshold on its posterior.",
		X:           report.Axis{Label: "right: recall, its windows found; up: precision", High: 1}, Y: report.Axis{High: 1},
	}
	calibration = report.Plot{
		Title:       "Calibration of each class, and its error",
		Description: "Share of windows that are of a class over the mean posterior that the network gives it, in ten bins.",
		X:           report.Axis{Label: "right: posterior before costs; up: share; at each dot its windows", High: 1}, Y: report.Axis{High: 1},
		Series: []report.Series{chance},
	}
	return roc, pr, calibration
}
