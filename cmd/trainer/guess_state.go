package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/internal/table/wear"
)

// flagWords are the words of loggers for values that can be trusted and that cannot be: a column of them says nothing of a tool.
var flagWords = []string{"good", "bad", "uncertain"}

// findState gives the role of the state to a column whose name says a label and whose words all are common ones for the state
// of a tool, of both classes, if no column has a label by its name alone. Of a column such as is_worn, these are yes and no.
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

// noteStates says which words of the column of the state are of which class.
func (p *proposal) noteStates(c *inspect.Channel) {
	words := make(map[string][]string)
	for _, w := range wordsOf(c) {
		if class, ok := wear.DefaultRule().StateClass(wear.Stated(c.Name, w)); ok {
			name := wear.DefaultRule().Names()[class]
			words[name] = append(words[name], w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(words)) {
		p.notes = append(p.notes, fmt.Sprintf("column %q: %q is taken for %s: if that is wrong, say under `label` in train.yaml what the words mean", c.Name, words[name], name))
	}
}

// wordsOf returns the words of a column of text, and of numbers that answer what its name asks.
func wordsOf(c *inspect.Channel) []string {
	if !c.Text && c.Binary() && wear.Asked(c.Name) != "" {
		return []string{"0", "1"}
	}
	return c.Words
}

// ofState reports whether a name that says so may be of the state of a tool: lives and predictions are not.
func ofState(says string) bool { return says == source.SaysState || says == source.SaysQuality }

// statesOf reports whether all words of a column are common ones for the state of a tool, and whether some are of healthy tools and
// some of others.
func statesOf(c *inspect.Channel) (all, both bool) {
	words := wordsOf(c)
	if c.More || len(words) == 0 || !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(flagWords, source.PlainName(w)) }) {
		return false, false
	}
	seen := make(map[int]bool)
	for _, w := range words {
		class, ok := wear.DefaultRule().StateClass(wear.Stated(c.Name, w))
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
