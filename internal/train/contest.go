package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/score"
)

// Contest compares a candidate with the champion on the same windows. The candidate's verdicts are of networks that were trained without
// the window's tool. The champion's verdicts are its own.
type Contest struct {
	Champion string   `json:"champion"`
	Fresh    Standing `json:"tools_new_to_both"`  // tools whose labels the champion has not learnt from: they decide
	All      Standing `json:"all_tools"`          // the champion remembers some of them
	LeftOut  int      `json:"left_out,omitempty"` // windows of another class by the champion's label rule than by the candidate's
	Reason   string   `json:"not_comparable,omitempty"`
}

// Standing is how two models stand on the same windows.
type Standing struct {
	Windows   int           `json:"windows"`
	Tools     int           `json:"tools"`
	Champion  StandingModel `json:"champion"`
	Candidate StandingModel `json:"candidate"`
}

// StandingModel are the figures of one of them.
type StandingModel struct {
	GMean   score.Figure `json:"gmean"`         // of the classes that windows are of; unknown windows count as wrong
	Unknown score.Figure `json:"unknown_share"` // of the windows
}

// Worse reports that the candidate must not replace the champion, not even on trial: it is worse, or nothing shows that it is not.
func (c *Contest) Worse() bool {
	return c.Reason != "" || !(c.Fresh.Candidate.GMean >= c.Fresh.Champion.GMean)
}

// String says the outcome in words.
func (c *Contest) String() string {
	if c.Reason != "" {
		return "not comparable with " + c.Champion + ": " + c.Reason
	}
	say := func(s Standing) string {
		return fmt.Sprintf("%d windows of %d tools: G-mean %.3f, champion %.3f; unknown %.1f %%, champion %.1f %%", s.Windows, s.Tools, s.Candidate.GMean, s.Champion.GMean, 100*s.Candidate.Unknown, 100*s.Champion.Unknown)
	}
	text := "new to both, " + say(c.Fresh) + "\nall, of which the champion remembers some, " + say(c.All)
	if c.LeftOut > 0 {
		text += fmt.Sprintf("\nleft out: %d windows of another class by the champion's label rule", c.LeftOut)
	}
	return text
}

// seenWindow says which window a row is of.
type seenWindow struct {
	machine, tool string
	start         int64
}

// Compare judges the data of an exam with its model, the champion, and compares that with what networks decided of the same windows whose
// tools were held out in the training of a candidate.
func (e Exam) Compare(ctx context.Context, candidate card.HeldOut, fresh Fresh) (*Contest, error) {
	c := &Contest{Champion: e.Model.ID()}
	if len(candidate.Start) == 0 {
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

func (d *duel) standing() Standing {
	return Standing{Windows: d.champion.windows(), Tools: len(d.tools), Champion: d.champion.figures(), Candidate: d.candidate.figures()}
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

func (d decided) windows() int {
	n := d.known.Rows()
	for _, u := range d.unknown {
		n += u
	}
	return n
}

func (d decided) figures() StandingModel {
	logs, classes := 0., 0
	for k, unknown := range d.unknown {
		if all := d.known.RowsOf(k) + unknown; all > 0 {
			logs += math.Log(float64(d.known[k][k]) / float64(all))
			classes++
		}
	}
	if classes == 0 {
		return StandingModel{score.Figure(math.NaN()), score.Figure(math.NaN())}
	}
	n := d.windows()
	return StandingModel{score.Figure(math.Exp(logs / float64(classes))), score.Figure(float64(n-d.known.Rows()) / float64(n))}
}
