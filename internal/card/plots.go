package card

import (
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// HeldOut are rows with what was decided of them by a classifier that was not
// fitted to them.
type HeldOut struct {
	Class  []int
	Faulty []float64 // P(faulty)
	Score  []float64 // with costs; from 0.5 on the row is called faulty
	Group  []string

	// Machine and tool of each row, and when its window began; nil if the rows are not in memory.
	Machine, Tool []string
	Start         []time.Time

	Unknown []model.UnknownReason // why the verdict is unknown; nil: none is, or that was not measured

	// Of more than two classes only.
	Posterior []float64 // of all classes, row by row
	Decision  []int
}

// Decided returns the class that a row was called, also where the verdict is unknown.
func (h *HeldOut) Decided(row int) int {
	switch {
	case h.Decision != nil:
		return h.Decision[row]
	case h.Score[row] >= 0.5:
		return 1
	}
	return 0
}

// drawing is a plot of the model card.
type drawing struct {
	name string
	svg  []byte
}

const (
	mostLives = 24 // tools whose lives are drawn
	mostDots  = 60
)

// drawings returns the plots of the card; those that the data cannot give are
// missing.
func (r *Report) drawings() []drawing {
	h := r.Held
	ds := h.drawings(r.Classes)
	if r.Landscape != nil {
		ds = append(ds, drawing{"costs", r.Landscape.drawing(float64(r.Fit.Costs.Kept)).SVG()})
	}
	if r.Fit.History != nil {
		ds = append(ds, r.training()...)
	}
	if r.Pooled != nil {
		ds = append(ds, drawing{"tools", r.dots()})
	}
	if r.Pooled != nil || r.Alarms != nil {
		ds = append(ds, drawing{"lives", h.lives(r.Alarms)})
	}
	if d, ok := r.followersDrawing(); ok {
		ds = append(ds, d)
	}
	if r.Trend != nil && r.Trend.Score != nil {
		ds = append(ds, drawing{"wear", r.Trend.drawing().SVG()})
	}
	return ds
}

// drawings returns the plots of the verdicts on tools that were held out.
func (h HeldOut) drawings(classes []string) []drawing {
	positive := Positives(h.Class)
	switch {
	case several(classes):
		return h.ofClasses(classes)
	case slices.Contains(positive, true) && slices.Contains(positive, false):
		return []drawing{{"roc", h.roc(positive).SVG()}, {"precision-recall", h.precisionRecall(positive).SVG()}, {"calibration", h.calibration(positive).SVG()}}
	}
	return nil
}

// training returns the plots of the network's training.
func (r *Report) training() (ds []drawing) {
	h := r.Fit.History
	if loss := h.Loss; len(loss) > 1 {
		p := report.Plot{
			Title: "Fine-tuning", Description: "Mean cross-entropy of a training row by epoch.",
			X: report.Axis{Label: "epoch"}, Y: report.Axis{Label: "cross-entropy, nats", Log: true},
			Series: []report.Series{{X: epochs(len(loss)), Y: loss, Color: report.Blue}},
		}
		if held := h.Validation; len(held) > 1 { // early stopping
			p.Series[0].Name = "training rows"
			p.Series = append(p.Series, report.Series{Name: "rows held out", X: epochs(len(held)), Y: held, Color: report.Orange})
			kept := h.Kept
			p.Marks = []report.Mark{{X: float64(kept), Y: held[kept-1], Text: "kept", Color: report.Orange}}
		}
		ds = append(ds, drawing{"fine-tuning", p.SVG()})
	}
	if layers := h.Pretrain; len(layers) > 0 && len(layers[0].ReconstructionError) > 1 {
		p := report.Plot{
			Title: "Pre-training", Description: "Reconstruction error of each layer by epoch.",
			X: report.Axis{Label: "epoch"}, Y: report.Axis{Label: "reconstruction error", Log: true},
		}
		colors := []string{report.Blue, report.Orange, report.Green, report.Purple}
		for i, l := range layers {
			p.Series = append(p.Series, report.Series{Name: fmt.Sprintf("layer %d", i+1), X: epochs(len(l.ReconstructionError)), Y: l.ReconstructionError, Color: colors[i%len(colors)]})
		}
		ds = append(ds, drawing{"pre-training", p.SVG()})
	}
	return ds
}

func epochs(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i + 1)
	}
	return x
}

// decided returns how the rows were decided.
func (h HeldOut) decided() score.Confusion {
	m := score.NewConfusion(2)
	for i, s := range h.Score {
		d := classify.Healthy
		if s >= 0.5 {
			d = classify.Faulty
		}
		m.Add(h.Class[i], d)
	}
	return m
}

const (
	drawnWhole = 10_000 // rows up to which curves have all points
	drawnSteps = 1000   // of more rows: points are this part of a class apart
)

// points returns the operating points that curves are drawn of, with the counts
// of all rows.
func (h HeldOut) points(positive []bool) ([]score.OperatingPoint, rowCount) {
	all := totals(positive)
	var points []score.OperatingPoint
	var skipped *score.OperatingPoint
	for p := range score.OperatingPointSeq(h.Faulty, positive) {
		if n := len(points); n > 0 && len(positive) > drawnWhole {
			if last := points[n-1]; (p.TP-last.TP)*drawnSteps < all.faulty && (p.FP-last.FP)*drawnSteps < all.healthy {
				skipped = &p
				continue
			}
		}
		points, skipped = append(points, p), nil
	}
	if skipped != nil {
		points = append(points, *skipped)
	}
	return points, all
}

// rates returns the shares of negative and of positive rows above the threshold of
// each point. The last point is of all rows.
func rates(points []score.OperatingPoint) (negative, positive []float64) {
	all := points[len(points)-1]
	for _, p := range points {
		negative, positive = append(negative, float64(p.FP)/float64(all.FP)), append(positive, float64(p.TP)/float64(all.TP))
	}
	return negative, positive
}

// precisions returns recall and precision in steps, as average precision sums them. The last
// point is of all rows, the first of none.
func precisions(points []score.OperatingPoint) (recall, precision []float64) {
	all := points[len(points)-1]
	for _, p := range points[1:] {
		v := float64(p.TP) / float64(p.TP+p.FP)
		if n := len(recall); n > 0 {
			recall, precision = append(recall, recall[n-1]), append(precision, v)
		}
		recall, precision = append(recall, float64(p.TP)/float64(all.TP)), append(precision, v)
	}
	return recall, precision
}

func (h HeldOut) roc(positive []bool) report.Plot {
	points, _ := h.points(positive)
	x, y := rates(points)
	m := h.decided()
	return report.Plot{
		Title:       fmt.Sprintf("ROC curve, area %.3f", score.AUC(h.Faulty, positive)),
		Description: "Share of faulty windows found over share of healthy windows called faulty, for every threshold on P(faulty).",
		X:           report.Axis{Label: "healthy windows called faulty", High: 1}, Y: report.Axis{Label: "faulty windows found", High: 1},
		Series: []report.Series{
			{Name: "chance", X: []float64{0, 1}, Y: []float64{0, 1}, Color: report.Grey, Width: 1, Dashed: true},
			{X: x, Y: y, Color: report.Blue},
		},
		Marks: []report.Mark{{X: 1 - m.Specificity(), Y: m.Recall(), Text: "decided", Color: report.Orange}},
	}
}

func (h HeldOut) precisionRecall(positive []bool) report.Plot {
	points, all := h.points(positive)
	x, y := precisions(points)
	m := h.decided()
	share := float64(all.faulty) / float64(all.faulty+all.healthy)
	return report.Plot{
		Title:       fmt.Sprintf("Precision and recall, average precision %.3f", score.AveragePrecision(h.Faulty, positive)),
		Description: "Share of windows called faulty that are, over the share of faulty windows found, for every threshold on P(faulty).",
		X:           report.Axis{Label: "recall: faulty windows found", High: 1}, Y: report.Axis{Label: "precision: called faulty rightly", High: 1},
		Series: []report.Series{
			{Name: "chance", X: []float64{0, 1}, Y: []float64{share, share}, Color: report.Grey, Width: 1, Dashed: true},
			{X: x, Y: y, Color: report.Blue},
		},
		Marks: []report.Mark{{X: m.Recall(), Y: m.Precision(), Text: "decided", Color: report.Orange, Words: report.Before}},
	}
}

func (h HeldOut) calibration(positive []bool) report.Plot {
	observed, expected := reliability(h.Faulty, positive, report.Blue)
	return report.Plot{
		Title:       fmt.Sprintf("Calibration, expected error %.3f", expected),
		Description: "Share of windows that are faulty over the mean P(faulty) that the network gives them, in ten bins. At each dot the number of its windows.",
		X:           report.Axis{Label: "P(faulty) before costs, mean of a bin; at each dot its windows", High: 1}, Y: report.Axis{Label: "share that is faulty", High: 1},
		Series: []report.Series{
			{Name: "calibrated", X: []float64{0, 1}, Y: []float64{0, 1}, Color: report.Grey, Width: 1, Dashed: true},
			observed,
		},
	}
}

// reliability returns what is observed over what is predicted, in ten bins with the number of their rows, and the calibration error.
func reliability(predicted []float64, positive []bool, color string) (s report.Series, expected float64) {
	bins := score.Reliability(predicted, positive, 10)
	s = report.Series{Color: color, Dots: true}
	for _, b := range bins {
		s.X, s.Y, s.Notes = append(s.X, b.Predicted), append(s.Y, b.Observed), append(s.Notes, fmt.Sprint(b.Rows))
	}
	return s, score.CalibrationError(bins)
}

func (l *landscape) drawing(kept float64) report.Plot {
	at := 0
	for i, t := range l.Threshold {
		if t <= kept {
			at = i
		}
	}
	g := l.GMean[at]
	return report.Plot{
		Title:       fmt.Sprintf("Cost landscape, best G-mean %.3f", l.Best),
		Description: "G-mean, recall and specificity over the threshold on P(faulty) that costs stand for, on the windows that costs were chosen on.",
		X:           report.Axis{Label: "called faulty above this P(faulty)", Low: l.Threshold[0], High: l.Threshold[len(l.Threshold)-1], Odds: true},
		Y:           report.Axis{High: 1},
		Series: []report.Series{
			{Name: "recall", X: l.Threshold, Y: l.Recall, Color: report.Orange, Width: 1.2},
			{Name: "specificity", X: l.Threshold, Y: l.Specificity, Color: report.Green, Width: 1.2},
			{Name: "G-mean", X: l.Threshold, Y: l.GMean, Color: report.Blue, Width: 2.5},
		},
		Marks: []report.Mark{{X: l.Threshold[at], Y: g, Text: fmt.Sprintf("kept, %.3g", kept), Color: report.Blue, Words: report.Below}},
	}
}

func (r *Report) dots() []byte {
	names, colors := []string{"G-mean", "recall", "specificity"}, []string{report.Blue, report.Orange, report.Green}
	if several(r.Classes) {
		names, colors = []string{"G-mean"}, []string{report.Grey}
		for k, name := range r.Classes {
			names, colors = append(names, "recall of "+name), append(colors, classColor(k))
		}
	}
	tools := slices.SortedFunc(slices.Values(r.Tools), CompareNames)
	rows := make([]report.DotRow, min(len(tools), mostDots))
	for i := range rows {
		s := r.Groups[tools[i]]
		row := report.DotRow{
			Tool: tools[i], Values: []float64{float64(s.GMean), float64(s.Recall), float64(s.Specificity)},
			Note: fmt.Sprintf("%d of %d faulty", s.Positive, s.Rows),
		}
		if several(r.Classes) {
			row.Values, row.Note = row.Values[:1], fmt.Sprintf("%d windows", s.Rows)
			for _, f := range s.Recalls {
				row.Values = append(row.Values, float64(f))
			}
		}
		rows[i] = row
	}
	return report.Dots("Each tool while it was held out"+theFirst(len(rows), len(tools), "tools"), names, colors, rows)
}

// theFirst ends the title of a drawing that does not show all.
func theFirst(n, of int, what string) string {
	if n == of {
		return ""
	}
	return fmt.Sprintf(": the first %d of %d %s", n, of, what)
}

// lives draws the tools that come first as people count, with their first alarms if a is not nil.
func (h HeldOut) lives(a *Alarms) []byte {
	all := LivesOf(h.Group, h.Class, h.Score, nil, nil)
	var drawn []report.Life
	for _, l := range all[:min(len(all), mostLives)] {
		life := report.Life{Tool: l.Tool, Score: l.Score, Faulty: l.Faulty}
		if a != nil {
			life.Alarm, life.Note = a.firstOf(l.Tool)
		}
		drawn = append(drawn, life)
	}
	return report.Lives("Score of each window, by networks that had not seen the tool"+theFirst(len(drawn), len(all), "tools"), drawn)
}

// firstOf returns the window of a tool's first alarm, and the wear then in words.
func (a *Alarms) firstOf(tool string) (window int, words string) {
	for _, l := range a.Tools {
		if l.Tool != tool || l.Alarm == 0 {
			continue
		}
		if l.WearUM == l.WearUM {
			words = fmt.Sprintf("%.0f µm", float64(l.WearUM))
		}
		return l.Alarm, words
	}
	return 0, ""
}
