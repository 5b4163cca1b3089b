package inspect

import (
	"cmp"
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

// What names of columns say that are labels.
const (
	SaysState   = "the wear or the state of the tool"
	SaysQuality = "how good the part is"
)

// SaysLabel returns what the name of a column says that it is, in words, if that is what a model is to find out and no measurement, also
// if it has no role; empty if it may be a channel. Names are the names of all columns: y next to x is an axis.
func SaysLabel(column string, names []string) string {
	plain := source.PlainName(column)
	if plain == "y" && (len(names) < 3 || slices.ContainsFunc(names, func(n string) bool { return axis.MatchString(source.PlainName(n)) })) {
		return ""
	}
	for _, l := range labelNames {
		if l.pattern.MatchString(plain) {
			return l.says
		}
	}
	return ""
}

// axis is a name of a channel next to which y is an axis.
var axis = regexp.MustCompile(`^[xz]\d?$`)

// labelNames are patterns of names, as source.PlainName returns them. Most are of whole names: a channel may be target_speed or drive_status.
var labelNames = []struct {
	says    string
	pattern *regexp.Regexp
}{
	{SaysState, regexp.MustCompile(`wear|verschlei|usure|desgaste|usura|slijtage|износ|磨损|磨耗|摩耗|^label(healthy|faulty|worn|id|no|\d)?$|label$|` +
		`^vb[abcn]?((max|mean|avg).*|([uµμ]m|mm)?|flute\d*|est|true)$|^(kt|kolktiefe|crater(depth|width)?|flute\d+|flank)([uµμ]m|mm)?$|` +
		`^(tool|is|y|werkzeug|machine)?(worn|wornout|faulty|fault|failure|failed|defect|defective|defekt|broken|breakage|bruch|damaged?|anomaly|outlier|chatter|healthy|verschlissen|stumpf|schlecht|sharp|dull|blunt|severity|rul)s?(id|no|code|flag|score|index|type|class)?$|` +
		`^(tool|is|y|werkzeug)?(state|status|condition|label|class|target|zustand|klasse|ok|nok|grade)s?(id|no|code)?$|^y(true|test|train)?$|` +
		`^(etat|état|estado|stato|toestand)(de|del?)?l?a?(outil|herramienta|utensile|gereedschap)?$|^состояние|^(工具)?(状態|状态)$|^(twf|hdf|pwf|osf|rnf)$|` +
		`^(tool|machine|anomaly|damage|condition)?health(index|indicator|score|state|status|level|pct|percent)?$|^hi$|^(condition|damage|degradation|anomaly|novelty|fault|failure)(index|indicator|score|level|rate|pct|percent)?$`)},
	{"how much of the tool's life is used or left", regexp.MustCompile(`^(tool|rest|remaining|residual|used|useful|total)*life(time|span)?(used|left|rest|remaining|pct|percent|ratio|fraction|consumed|min|s|h|cycles)*$|` +
		`^(rest|rel)?(standzeit|standweg|standmenge)(rest|ist|verbraucht|proz|prozent)?$|^(werkzeug)?einsatz(zeit|dauer)$|^durée(de)?vie|^vidautil|^寿命|^剩余寿命`)},
	{"what a model predicts", regexp.MustCompile(`^(y|vb|class|state|tool|model)?(pred|predicted|prediction|predictions|prob|proba|probability|hat|forecast)(vb|y|class|state|rul|life|worn|healthy|faulty|score|\d)?$`)},
	{SaysQuality, regexp.MustCompile(`roughness|rauheit|rauhtiefe|rugosi|^ra([uµμ]m)?$|^(part|surface|product|cut)?(quality|qualität|qualitaet)(class|index|score|grade|label)?$|` +
		`^(ok|io|gut|good|pass)(nok|notok|nio|ng|schlecht|bad|fail)$|^(gut|gutteil|schlechtteil|ausschuss|scrap|good|bad|judge|judgement|judgment|verdict|urteil|良否|判定)$`)},
}

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
