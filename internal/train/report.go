package train

import (
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// newReport returns a report of rows that nothing has learnt from yet.
func newReport(job *Job, m *model.Model, rows rowTable, counts card.Tally) *card.Report {
	r := &card.Report{
		Label: job.Config.Label.String(), Windows: counts, Balance: rows.balance(), Features: len(rows.Columns), Warnings: []string{},
		Job: m.Provenance, Bounds: rows.bounds(), Cutting: m.Cutting(), Reference: m.Reference,
	}
	if job.Config.Reference.Mode == model.ReferenceAuto {
		r.ViewLimitMiB = viewBytes >> 20
	}
	if several(rows.classes) {
		r.Classes = rows.classes
	}
	return r
}

// heldOut returns rows for the plots of the card.
func heldOut(rows rowTable, posterior []float64, decision []int, score []float64) card.HeldOut {
	h := card.HeldOut{Class: rows.Class, Faulty: card.FaultyOf(posterior, len(rows.classes)), Score: score, Group: rows.group}
	if several(rows.classes) {
		h.Posterior, h.Decision = posterior, decision
	}
	return h
}

// scoresOf returns the scores of posteriors.
func scoresOf(c *classify.Classifier, posterior []float64) []float64 {
	k := c.Classes()
	s := make([]float64, len(posterior)/k)
	for i := range s {
		s[i] = c.Score(posterior[k*i : k*(i+1)])
	}
	return s
}

// decisionsOf returns the decisions on posteriors.
func decisionsOf(c *classify.Classifier, posterior []float64) []int {
	k := c.Classes()
	d := make([]int, len(posterior)/k)
	for i := range d {
		d[i] = c.Decide(posterior[k*i : k*(i+1)])
	}
	return d
}
