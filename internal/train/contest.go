package train

import (
	"context"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/score"
)

// seenWindow says which window a row is of.
type seenWindow struct {
	machine, tool string
	start         int64
}

// Compare judges the data of an exam with its model, the champion, and compares that with what networks decided of the same windows whose
// tools were held out in the training of a candidate. Without such a score the report's verdicts flatter, and nothing is compared.
func (e Exam) Compare(ctx context.Context, report *card.Report, fresh Fresh) (*card.Contest, error) {
	c, candidate := &card.Contest{Champion: e.Model.ID()}, report.Held
	if report.Pooled == nil || len(candidate.Start) == 0 {
		c.Reason = "no tools were held out in the training, or its windows did not fit in memory: the report says why; set evaluate.by_tool, or label more worn tools"
		return c, nil
	}
	e.Alarm = alarm.Default // no alarm is compared
	r, err := e.judge(ctx)
	if err != nil {
		return nil, err
	}
	all, own := newDuel(r.judged.Classes), newDuel(r.judged.Classes)
	c.LeftOut = r.meet(candidate, func(k, i int) {
		d := []*duel{all}
		if fresh.Has(r.rows.Machine[k], r.rows.Tool[k]) {
			d = append(d, own)
		}
		for _, d := range d {
			d.tools[r.rows.Machine[k]+"/"+r.rows.Tool[k]] = true
			d.champion.add(r.judged.Class[k], r.judged.Decided[k], r.judged.Unknown[k] != "")
			d.candidate.add(candidate.Class[i], candidate.Decided(i), candidate.Unknown != nil && candidate.Unknown[i] != "")
		}
	})
	if c.Fresh, c.All = own.standing(), all.standing(); c.Fresh.Windows == 0 {
		c.Reason = "both judged no window of a tool that is new to both: the windows of these tools may be gone from Kafka, or their labels are of another time"
	}
	return c, nil
}

// meet calls fn with the rows of each window that both judged. It returns how many are not of the same class by both label rules.
func (r *examined) meet(candidate card.HeldOut, fn func(champion, candidate int)) (apart int) {
	of := make(map[seenWindow]int, len(candidate.Class))
	for i, at := range candidate.Start {
		of[windowOf(candidate.Machine[i], candidate.Tool[i], at)] = i
	}
	for k, class := range r.judged.Class {
		i, both := of[windowOf(r.rows.Machine[k], r.rows.Tool[k], r.rows.Start[k])]
		switch {
		case !both:
		case candidate.Class[i] != class || candidate.Decided(i) >= r.judged.Classes:
			apart++
		default:
			fn(k, i)
		}
	}
	return apart
}

func windowOf(machine, tool string, at time.Time) seenWindow {
	return seenWindow{machine, tool, at.UnixNano()}
}

// duel counts what two models decided of the same windows.
type duel struct {
	champion, candidate decided
	tools               map[string]bool
}

func newDuel(classes int) *duel {
	side := func() decided { return decided{score.NewConfusion(classes), make([]int, classes)} }
	return &duel{side(), side(), make(map[string]bool)}
}

func (d *duel) standing() card.Standing {
	return card.Standing{Windows: d.champion.all().Rows(), Tools: len(d.tools), Champion: d.champion.figures(), Candidate: d.candidate.figures()}
}

// decided counts decisions of a model, and its unknown windows by their class.
type decided struct {
	known   score.Confusion
	unknown []int
}

func (d decided) add(class, decision int, unknown bool) {
	if unknown {
		d.unknown[class]++
	} else {
		d.known.Add(class, decision)
	}
}

// all returns the decisions with unknown windows counted as wrong.
func (d decided) all() score.Confusion { return d.known.WithWrong(d.unknown) }

func (d decided) figures() card.StandingModel {
	all := d.all()
	n := all.Rows()
	if n == 0 {
		return card.StandingModel{GMean: score.Figure(math.NaN()), Unknown: score.Figure(math.NaN())}
	}
	return card.StandingModel{GMean: score.Figure(all.GMean()), Unknown: score.Figure(float64(n-d.known.Rows()) / float64(n))}
}
