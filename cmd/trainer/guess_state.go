package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/internal/table/wear"
)

// flagWords are the words of loggers for values that can be trusted and that cannot be: a column of them says nothing of a tool.
var flagWords = []string{"good", "bad", "uncertain"}

// findState gives the role of the state to a column of text whose name says a label and whose words all are common ones for the state
// of a tool, of both classes, if no column has a label by its name alone.
func (p *proposal) findState(s *inspect.Summary, names []string) {
	for _, r := range inspect.Roles {
		if p.roles[r.Key] != "" && (r.Key == "state" || strings.HasPrefix(r.Key, "vb_")) {
			return
		}
	}
	for i := range s.Channels {
		c := &s.Channels[i]
		if _, both := statesOf(c); both && ofState(source.SaysLabel(c.Name, names)) {
			p.roles["state"] = c.Name
			return
		}
	}
}

// ofState reports whether a name that says so may be of the state of a tool: lives and predictions are not.
func ofState(says string) bool { return says == source.SaysState || says == source.SaysQuality }

// statesOf reports whether all words of a column of text are common ones for the state of a tool, and whether some are of healthy tools and
// some of others.
func statesOf(c *inspect.Channel) (all, both bool) {
	if !c.Text || c.More || len(c.Words) == 0 || !slices.ContainsFunc(c.Words, func(w string) bool { return !slices.Contains(flagWords, source.PlainName(w)) }) {
		return false, false
	}
	seen := make(map[int]bool)
	for _, w := range c.Words {
		class, ok := wear.DefaultRule().StateClass(w)
		if !ok {
			return false, false
		}
		seen[class] = true
	}
	return true, len(seen) > 1
}

// whyText says why a column of text has no role, and what to do if it holds the labels.
func (p *proposal) whyText(c *inspect.Channel, names []string) string {
	says := source.SaysLabel(c.Name, names)
	words := c.Words[:min(len(c.Words), 3)]
	why := fmt.Sprintf("its words, such as %q, may be states of the tool", words)
	switch all, both := statesOf(c); {
	case says != "" && !ofState(says):
		return ""
	case both, all && says != "":
		why += ": if they are the label, name it as `state` in the layout"
	case ofState(says) && len(c.Words) > 0:
		why = fmt.Sprintf("its name says %s, but not all of its words, such as %q, are known: if it is the label, write words such as healthy and worn, or name it as `state` in the layout and say under `label` in train.yaml what its words mean", says, words)
	default:
		return ""
	}
	p.maybe = append(p.maybe, c.Name)
	return why
}
