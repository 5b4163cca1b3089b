package inspect

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/track"
)

// role says which columns are not channels, and what they are for.
type role struct {
	Key   string // of a layout's `recording`
	names []string
	text  bool // of text only
}

// Roles are the roles of columns by their names, without case, units and signs. Of several
// columns that are there, the one whose name comes first here has the role.
var Roles = []role{
	{"tool", []string{"tool", "toolid", "toolno", "toolnumber", "toolname", "toolnr", "werkzeug", "werkzeugnummer", "werkzeugnr", "wzg", "wz", "wkz", "outil", "herramienta", "utensile", "insert", "insertid", "schneide", "cutter", "cutterid",
		"experiment", "experimenttag", "experimentid", "case", "caseid", "caseno"}, false},
	{"vb_max_um", []string{"vbmax", "maxvb", "vbbmax", "vb", "vbb", "maxwear", "wearmax", "maxflankwear", "flankwearmax", "flankwear", "toolwear", "wear", "verschleiss", "verschleiß", "freiflächenverschleiß", "freiflaechenverschleiss",
		"verschleißmarkenbreite", "verschleissmarkenbreite", "vbreite", "usure", "desgaste", "usura", "slijtage"}, false},
	{"vb_mean_um", []string{"vbmean", "meanvb", "vbavg", "avgvb", "meanwear", "wearmean", "flankwearmean", "meanflankwear"}, false},
	{"state", []string{"state", "toolstate", "condition", "toolcondition", "label", "class", "zustand"}, true},
	{"hole", []string{"hole", "holeid", "bohrung", "cut", "cutid", "cutno", "schnitt", "pass", "passid", "run", "runid", "runno"}, false},
	{"machine", []string{"machine", "machineid", "machinename", "maschine"}, true},
}

// Fits reports whether a column may have the role by its name. Wear is numbers, also if the cells between them are words.
func (r role) Fits(c *Channel) bool {
	words := c.Text && strings.HasPrefix(r.Key, "vb_") && len(c.Words) > 0 && !slices.ContainsFunc(c.Words, isNumber)
	return r.rank(c.Name) >= 0 && (c.Text || !r.text) && !words
}

func isNumber(word string) bool {
	_, err := strconv.ParseFloat(strings.Replace(word, ",", ".", 1), 64)
	return err == nil
}

// rank returns the position of a column's name among the names of the role, -1 if it is none. Wear may have its unit behind it, as VB_mm.
func (r role) rank(column string) int {
	plain := source.PlainName(column)
	if at := slices.Index(r.names, plain); at >= 0 || !strings.HasPrefix(r.Key, "vb_") {
		return at
	}
	return slices.Index(r.names, wearUnit.ReplaceAllString(plain, ""))
}

// wearUnit is a unit of wear at the end of a name.
var wearUnit = regexp.MustCompile("([uµμ]m|mm|microns?)$")

// Columns returns the columns that may have the role, the best name first.
func (r role) Columns(s *Summary) (names []string) {
	for i := range s.Channels {
		if c := &s.Channels[i]; r.Fits(c) {
			names = append(names, c.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(r.rank(a), r.rank(b)) })
	return names
}

// NamesSensors returns the column of a table that has one row for each value, and in it the name of the sensor: its words take turns in the rows of each time, or
// time begins again wherever it changes. It is empty of other tables.
func (s *Summary) NamesSensors() string {
	c := s.Clock
	if c == nil {
		return ""
	}
	values := 0
	for i := range s.Channels {
		if !s.Channels[i].Text && i != c.channel && !s.Channels[i].Constant() && s.Channels[i].Leak.Why() == "" {
			values++
		}
	}
	for i := range s.Channels {
		ch := &s.Channels[i]
		if !ch.Text || i == c.channel || i == c.date || len(ch.Words) < 2 {
			continue
		}
		inTurn := 10*ch.turns > 9*ch.Count && 3*int64(c.Still) > ch.Count
		inBlocks := values == 1 && !ch.More && c.Backwards > 0 && ch.turns == int64(c.Backwards)+1 && len(ch.Words) == c.Backwards+1
		if inTurn || inBlocks {
			return ch.Name
		}
	}
	return ""
}

// tools follows the column of the tool.
type tools struct {
	column  int // −1: none
	known   bool
	word    string
	number  float64
	changed []bool // by row of the values last read
}

// findTools finds the column of the tool, which a person may name: the tool of a role by that name counts otherwise.
func (s *Summary) findTools(name string) {
	if name == "" {
		if names := Roles[0].Columns(s); len(names) > 0 {
			name = names[0]
		}
	}
	s.tools.column = slices.IndexFunc(s.Channels, func(c Channel) bool { return name != "" && c.Name == name })
	if s.tools.column >= 0 {
		s.ToolColumn = name
	}
}

// noteTools says which rows may be of no tool.
func (s *Summary) noteTools() {
	if s.tools.column < 0 {
		return
	}
	c := &s.Channels[s.tools.column]
	if c.Missing > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("column %q, which names the tool, is empty in %d rows of %d: they count as of a tool that is named after the file; fill the cells in, unless no tool was in", c.Name, c.Missing, c.Count))
	}
	if !c.Text && c.Min == 0 && c.Max > 0 || c.Text && slices.Contains(c.Words, "0") {
		s.Notes = append(s.Notes, fmt.Sprintf("column %q, which names the tool, is 0 in some rows, which counts as a tool of its own: leave these cells empty if no tool was in", c.Name))
	}
}

// noteQuality names the columns that say, as OPC does, that values next to them are bad.
func (s *Summary) noteQuality() {
	bad := func(word string) bool { return strings.HasPrefix(strings.ToLower(word), "bad") }
	good := func(word string) bool { return strings.HasPrefix(strings.ToLower(word), "good") }
	for i := range s.Channels {
		c := &s.Channels[i]
		named := strings.Contains(source.PlainName(c.Name), "qualit")
		if c.Text && slices.ContainsFunc(c.Words, bad) && (named || slices.ContainsFunc(c.Words, good)) || !c.Text && named && c.Max == goodOPC && c.Min < goodOPC {
			s.Notes = append(s.Notes, fmt.Sprintf("column %q says that some values are bad: they count as measured; empty their cells if they are not", c.Name))
		}
	}
}

// goodOPC is the number of good values in OPC DA.
const goodOPC = 192

// follow notes at which rows the tool is another one than before.
func (s *Summary) followTools(v track.Values) {
	t := &s.tools
	t.changed = t.changed[:0]
	next := func(same bool) {
		if t.changed = append(t.changed, t.known && !same); !t.known || !same {
			s.Runs = append(s.Runs, 0)
		}
		s.Runs[len(s.Runs)-1]++
		t.known = true
	}
	for _, word := range v.Texts {
		next(word == t.word)
		t.word = word
	}
	for _, number := range v.Numbers {
		next(number == t.number || number != number && t.number != t.number)
		t.number = number
	}
}
