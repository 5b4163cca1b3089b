package deploy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
)

// Bounds of a glob. A machine has five levels.
const (
	mostLevels = 16
	mostLevel  = 64 // bytes of a level
)

// Glob names machines by their paths: levels with slashes between them. In a level, * stands
// for any characters, none included. A last level ** stands for all levels below, none
// included.
//
//	acme/spore/bay2/line1/usk25   one machine
//	acme/spore/bay2/**            all machines of the area bay2
//	acme/spore/*/line1/usk*       in every area, machines of line1 whose names begin with usk
//	**                            all machines
//
// Two globs are compared level by level from the left, and the first difference decides:
//
//	usk25   a name beats
//	usk*    a name with *, of which the one with more characters beats the other, and with
//	        as many characters the one with fewer *; they beat
//	*       any name, which beats
//	        the end of the glob, which beats
//	**      all levels below
//
// If every machine that one glob names is named by the other one too, and not the other
// way round, then the first is the more specific of the two.
type Glob struct {
	text   string
	levels []string // without **
	open   bool     // ends in **
}

// One returns the machine that the glob names by its whole path; false if it may stand for others.
func (g Glob) One() (machine string, ok bool) {
	return g.text, g.text != "" && !strings.Contains(g.text, "*")
}

// ParseGlob reads a glob.
func ParseGlob(text string) (Glob, error) {
	bad := func(why string) (Glob, error) {
		return Glob{}, fmt.Errorf("%.200q: %s: write levels with slashes between them, for example acme/spore/bay2/** or acme/spore/bay2/line1/usk25", text, why)
	}
	if text == "" {
		return bad("it names no machine")
	}
	g := Glob{text: text, levels: strings.Split(text, "/")}
	if n := len(g.levels); n > mostLevels {
		return bad(fmt.Sprintf("%d levels, at most %d", n, mostLevels))
	} else if g.levels[n-1] == "**" {
		g.levels, g.open = g.levels[:n-1], true
	}
	for _, l := range g.levels {
		if why := wrongLevel(l); why != "" {
			return bad(why)
		}
	}
	return g, nil
}

// wrongLevel returns what is wrong with a level, "" if nothing is.
func wrongLevel(l string) string {
	switch {
	case l == "":
		return "a level is empty"
	case l == "**":
		return "** stands for all levels below, so it can only be the last level; write * for each level before"
	case strings.Contains(l, "**"):
		return "** must be a level of its own"
	case len(l) > mostLevel:
		return fmt.Sprintf("a level has %d characters, at most %d", len(l), mostLevel)
	case strings.ContainsFunc(l, func(r rune) bool { return r != '*' && !event.MachineRune(r) }):
		return "machines are named in a-z, 0-9, - and _"
	}
	return ""
}

// String returns the text of the glob.
func (g Glob) String() string { return g.text }

// Match reports whether g names the machine.
func (g Glob) Match(machine string) bool {
	rest, more := machine, machine != ""
	for _, l := range g.levels {
		if !more {
			return false
		}
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if !matchLevel(l, name) {
			return false
		}
	}
	return g.open || !more
}

// matchLevel reports whether a level of a glob names a level of a machine.
func matchLevel(level, name string) bool {
	parts := strings.Split(level, "*")
	if len(parts) == 1 {
		return level == name
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(name, p)
		if i < 0 {
			return false
		}
		name = name[i+len(p):]
	}
	return true
}

// weight says how specific a level is: by the fields, in their order.
type weight struct{ kind, letters, stars int }

// Kinds of levels.
const (
	below = iota // **
	end          // the glob has ended
	anyName
	someNames
	oneName
)

// weight returns how specific the level at i is.
func (g Glob) weight(i int) weight {
	switch {
	case i < len(g.levels):
		l := g.levels[i]
		stars := strings.Count(l, "*")
		switch {
		case l == "*":
			return weight{kind: anyName}
		case stars > 0:
			return weight{someNames, len(l) - stars, -stars}
		}
		return weight{kind: oneName}
	case g.open:
		return weight{kind: below}
	}
	return weight{kind: end}
}

// Compare returns a positive number if g is more specific than other, a negative one if
// other is, and 0 if none is.
func (g Glob) Compare(other Glob) int {
	for i := range max(len(g.levels), len(other.levels)) + 1 {
		a, b := g.weight(i), other.weight(i)
		if c := cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.letters, b.letters), cmp.Compare(a.stars, b.stars)); c != 0 {
			return c
		}
	}
	return 0
}

// Ties reports whether there may be a machine that both globs name while none is more
// specific.
func (g Glob) Ties(other Glob) bool { return g.Compare(other) == 0 && g.Meets(other) }

// Meets reports whether there may be a machine that both globs name.
func (g Glob) Meets(other Glob) bool {
	n := min(len(g.levels), len(other.levels))
	if len(g.levels) > n && !other.open || len(other.levels) > n && !g.open {
		return false
	}
	for i := range n {
		if !meet(g.levels[i], other.levels[i]) {
			return false
		}
	}
	return true
}

// meet reports whether there is a name that both levels of globs name.
func meet(a, b string) bool {
	ends := make([][]bool, len(a)+1) // ends[i][j]: a[i:] and b[j:] name a common name
	for i := len(a); i >= 0; i-- {
		ends[i] = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			moreA, moreB := i < len(a), j < len(b)
			switch {
			case moreA && a[i] == '*':
				ends[i][j] = ends[i+1][j] || moreB && ends[i][j+1]
			case moreB && b[j] == '*':
				ends[i][j] = ends[i][j+1] || moreA && ends[i+1][j]
			case moreA && moreB:
				ends[i][j] = a[i] == b[j] && ends[i+1][j+1]
			default:
				ends[i][j] = !moreA && !moreB
			}
		}
	}
	return ends[0][0]
}
