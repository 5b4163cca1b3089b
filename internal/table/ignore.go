package table

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Ignore names columns that are left out when a table is read. A nil Ignore leaves out
// none.
type Ignore struct {
	patterns []string
	used     []bool   // by pattern: it has matched a column
	columns  []string // names
}

// NewIgnore returns the Ignore of columns whose names match one of the patterns, in which
// * stands for any characters.
func NewIgnore(patterns []string) (*Ignore, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("ignore: %q is not a pattern: write * for any characters, as in 'note*'", p)
		}
	}
	return &Ignore{patterns: slices.Clone(patterns), used: make([]bool, len(patterns))}, nil
}

// Add leaves out the column of a name too.
func (g *Ignore) Add(column string) { g.columns = append(g.columns, column) }

// Unused returns the patterns that have matched no column of the tables read so far.
func (g *Ignore) Unused() []string {
	var out []string
	for i, p := range g.patterns {
		if !g.used[i] {
			out = append(out, p)
		}
	}
	return out
}

// match reports whether the column is left out.
func (g *Ignore) match(column string) bool {
	if g == nil {
		return false
	}
	any := slices.Contains(g.columns, column)
	for i, p := range g.patterns {
		if ok, _ := MatchColumn(p, column); ok { // NewIgnore checked the pattern
			g.used[i], any = true, true
		}
	}
	return any
}

// MatchColumn reports whether a pattern, in which * stands for any characters, or a name, matches a column.
func MatchColumn(pattern, column string) (bool, error) {
	slash := strings.NewReplacer("/", "\x00") // which * would not stand for
	ok, err := path.Match(slash.Replace(pattern), slash.Replace(column))
	return ok || pattern == column, err
}

// textColumn is a column of which no cell is a number.
type textColumn struct {
	name, example string // the example is empty if none is known
}

// textError returns the error for features that are not numbers, all at once.
func textError(of int, columns []textColumn) error {
	const most = 5 // that are named
	var words, names, keys []string
	for i, c := range columns {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(columns)-most))
			names, keys = append(names, "…"), append(keys, "…")
			break
		}
		key := c.name
		if strings.ContainsAny(key, "[]{},:#&*!|>'\"%@`\\") { // which mean another thing in YAML
			key = strconv.Quote(key)
		}
		names, keys = append(names, strings.ReplaceAll(c.name, ",", "*")), append(keys, key)
		if c.example != "" {
			words = append(words, fmt.Sprintf("%s (%.40q)", c.name, c.example))
		} else {
			words = append(words, c.name)
		}
	}
	are := "are not numbers"
	if len(columns) == 1 {
		are = "is not a number"
	}
	return fmt.Errorf("%d of %d columns %s, as features must be: %s: leave them out with --ignore '%s', or with `ignore: [%s]` in train.yaml",
		len(columns), of, are, strings.Join(words, ", "), strings.Join(names, ","), strings.Join(keys, ", "))
}
