package train

import (
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/alarm"
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
	h := card.HeldOut{Class: rows.Class, Faulty: card.FaultyOf(posterior, len(rows.classes)), Score: score, Group: rows.group, Machine: rows.Machine, Tool: rows.Tool, Start: rows.Start}
	if several(rows.classes) {
		h.Posterior, h.Decision = posterior, decision
	}
	return h
}

// decide gives the report its verdict on the model.
func (j *Job) decide(rows rowTable, r *card.Report) {
	limit, _ := j.Config.Label.Limit()
	r.CostsSeen = r.CostsSeen && !r.ByWear // what was held out of its networks says nothing of the estimate of wear
	r.Decide(rows.lives(r.Held.Score, r.Held.Unknown), alarm.Default, j.timing(rows), limit)
}

// lives returns what an alarm sees of each tool, also of tools that get worn where no window
// is judged.
func (t rowTable) lives(score []float64, unknown []model.UnknownReason) []card.Life {
	lives := card.LivesOf(t.group, t.Class, score, unknown, t.wearUM())
	for _, u := range t.unjudged {
		i := slices.IndexFunc(lives, func(l card.Life) bool { return l.Tool == u.Tool })
		if i < 0 {
			i, lives = len(lives), append(lives, card.Life{Tool: u.Tool})
		}
		lives[i].Unjudged, lives[i].Why = u.Windows(), u.Words()
	}
	slices.SortStableFunc(lives, func(a, b card.Life) int { return card.CompareNames(a.Tool, b.Tool) })
	return lives
}

// timing returns how long windows are. Of a table without times that is not known unless
// the configuration says so.
func (j *Job) timing(rows rowTable) card.Timing {
	if j.Config.Window.Said || !tables(j.Inputs) {
		return card.Timing{Length: j.Config.Window.Length, Step: j.Config.Window.Hop}
	}
	return card.Timing{Length: rows.hop}
}
