package card

import (
	"fmt"

	"github.com/flank-tcm/flank/pkg/score"
)

// Contest compares a candidate with the champion on the same windows. The candidate's verdicts are of networks that were trained without
// the window's tool. The champion's verdicts are its own.
type Contest struct {
	For      string   `json:"for"` // machines of the champion
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

// contests writes how a model compares with champions.
func (p *page) contests(all []Contest) {
	if len(all) == 0 {
		return
	}
	p.section("champion", "Compared with the champion")
	p.text("On the same windows. The verdicts of this model are of networks that had not seen the tool, and the champion's are its own. Unknown windows count as wrong.")
	t := p.table("windows of", "windows", "tools", "G-mean", "G-mean of the champion", "unknown", "unknown to the champion")
	for i := range all {
		c := &all[i]
		if c.Reason != "" {
			p.note(c.String())
			continue
		}
		row := func(name string, s Standing) {
			t.row(name, fmt.Sprint(s.Windows), fmt.Sprint(s.Tools), Figure(s.Candidate.GMean), Figure(s.Champion.GMean), Figure(s.Candidate.Unknown), Figure(s.Champion.Unknown))
		}
		row("tools that are new to both", c.Fresh)
		row(fmt.Sprintf("all tools, of which %s remembers some", c.Champion), c.All)
	}
}
