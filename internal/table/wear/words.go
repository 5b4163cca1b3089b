package wear

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// condition is what a common word says of a tool.
type condition int

const (
	isGood condition = iota
	isWorn
	isBroken
	isFaulty // worn or broken
	isUnknown
)

// commonWords are the common words for the condition of a tool, in English and German, as fold returns them.
var commonWords = [isUnknown][]string{
	isGood:   {"healthy", "new", "good", "ok", "okay", "normal", "fresh", "sharp", "unworn", "intact", "pass", "passed", "gesund", "neu", "gut", "io", "inordnung", "scharf", "intakt", "unverschlissen", "nichtverschlissen", "notworn", "nowear", "undamaged", "unbroken", "neuf", "neuve", "nonusé", "nuevo", "nueva", "nuovo", "nuova", "новый", "正常"},
	isWorn:   {"worn", "wear", "wornout", "dull", "blunt", "verschlissen", "verschleiß", "verschleiss", "abgenutzt", "stumpf", "usé", "usée", "desgastado", "desgastada", "usurato", "usurata", "изношен", "磨损"},
	isBroken: {broken, Chipped, "breakage", "fractured", "cracked", "chipping", "gebrochen", "bruch", "ausgebrochen", "ausbruch", "gerissen", "cassé", "cassée", "roto", "rota", "rotto", "rotta"},
	isFaulty: {"faulty", "fault", "bad", "nok", "notok", "ng", "notgood", "nogood", "unhealthy", "defect", "defective", "damaged", "fail", "failed", "failure", "nio", "nichtio", "nichtok", "nichtinordnung", "defekt", "schlecht", "beschädigt", "kaputt"},
}

// fold returns the letters and digits of a word in lower case, so that "N.i.O." is "nio".
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, word)
}

// conditionOf returns what a word, or what [Stated] returns, commonly says, or isUnknown.
func conditionOf(word string) condition {
	f := fold(inWords(word))
	for c, words := range commonWords {
		if slices.Contains(words, f) {
			return condition(c)
		}
	}
	if not, ok := strings.CutPrefix(f, "not"); ok {
		switch conditionOf(not) {
		case isWorn, isBroken, isFaulty:
			return isGood
		case isGood:
			return isFaulty
		}
	}
	return isUnknown
}

// answers are the cells, in lower case, of a column whose name is a question: whether it is so.
var answers = map[string]bool{"yes": true, "y": true, "true": true, "t": true, "1": true, "1.0": true, "ja": true, "j": true, "wahr": true, "oui": true, "si": true, "sí": true,
	"no": false, "n": false, "false": false, "f": false, "0": false, "0.0": false, "nein": false, "falsch": false, "non": false}

// Stated returns the state that a cell of a column says: the cell, but of a column whose name is a condition, such as is_worn, and that holds yes or no, or 1 or
// 0, the condition and the cell, as "worn=yes".
func Stated(column, cell string) string {
	if _, ok := answers[strings.ToLower(cell)]; !ok {
		return cell
	}
	if word := Asked(column); word != "" {
		return word + "=" + cell
	}
	return cell
}

// Asked returns the condition that the name of a column asks for, such as worn for is_worn; empty: none. Wear is a number.
func Asked(column string) string {
	name := fold(column)
	if conditionOf(name) != isUnknown && !slices.Contains([]string{"wear", "verschleiß", "verschleiss"}, name) {
		return name
	}
	for _, part := range []string{"is", "ist", "has", "was", "tool", "werkzeug", "machine"} {
		if rest, ok := strings.CutPrefix(name, part); ok && Asked(rest) != "" {
			return Asked(rest)
		}
	}
	if rest, ok := strings.CutSuffix(name, "flag"); ok {
		return Asked(rest)
	}
	return ""
}

// split divides what [Stated] returns; it is false of a word.
func split(state string) (word, cell string, yes, ok bool) {
	word, cell, ok = strings.Cut(state, "=")
	yes, known := answers[strings.ToLower(cell)]
	return word, cell, yes, ok && known
}

// inWords returns a state without yes and no: of "worn=yes" worn, of "worn=no" not worn.
func inWords(state string) string {
	switch word, _, yes, ok := split(state); {
	case !ok:
		return state
	case yes:
		return word
	default:
		return "not " + word
	}
}

// StateClass returns the class of a state: what the rule says of the word, else the class of that name, else what the
// word commonly means. Of several classes that is the one whose name or states mean the same, or faulty for
// what is worn or broken. It reports false for a word that means no class, or any of several.
func (r Rule) StateClass(state string) (class int, ok bool) {
	_, cell, _, _ := split(state)
	words := []string{state, cell, inWords(state)}
	same := func(s string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return w != "" && strings.EqualFold(s, w) })
	}
	classes := r.conditions()
	for k, c := range classes {
		if k > 0 && slices.ContainsFunc(c.States, same) {
			return k, true
		}
	}
	if slices.ContainsFunc(r.HealthyStates, same) {
		return healthy, true
	}
	if k := slices.IndexFunc(classes, func(c Class) bool { return same(c.Name) }); k >= 0 {
		return k, true
	}
	means := conditionOf(state)
	switch {
	case means == isGood:
		return healthy, true
	case means == isUnknown:
		return 0, false
	case len(classes) == 2:
		return Faulty, true
	}
	for _, m := range []condition{means, isFaulty} {
		if k, n := meaning(classes, m); n > 0 {
			return k, n == 1
		}
	}
	return 0, false
}

// meaning returns the last class with a name or a state of a condition, and how many there are.
func meaning(classes []Class, means condition) (class, n int) {
	for k, c := range classes {
		if k > 0 && slices.ContainsFunc(append([]string{c.Name}, c.States...), func(s string) bool { return conditionOf(s) == means }) {
			class, n = k, n+1
		}
	}
	return class, n
}

// CheckState reports a state of which the rule does not know the class, with the words that it knows.
func (r Rule) CheckState(state string) error {
	if _, ok := r.StateClass(state); ok || state == "" {
		return nil
	}
	names := r.Names()
	known := make([][]string, len(names))
	for _, w := range slices.Concat(r.vocabulary()...) {
		if k, ok := r.StateClass(w); ok && !slices.Contains(known[k], w) {
			known[k] = append(known[k], w)
		}
	}
	var lists []string
	for k, name := range names {
		lists = append(lists, fmt.Sprintf("%s are %s", name, strings.Join(known[k], ", ")))
	}
	remedy := "correct it"
	if _, ok := answers[strings.ToLower(state)]; ok {
		remedy = "write yes and no in a column that is named for what yes means, such as worn"
	}
	bad := fmt.Sprintf("`states: [%s]`", state)
	if len(r.Classes) > 0 {
		bad += " in its class"
	}
	return fmt.Errorf("state %q means none of the classes: %s: %s, or say under `label` in train.yaml what it means: %s, or `healthy_states: [%s]` if the tool is healthy", state, strings.Join(lists, "; "), remedy, bad, state)
}

// vocabulary returns the words that may have a class: of the rule, its names, and common ones.
func (r Rule) vocabulary() [][]string {
	words := [][]string{r.HealthyStates, r.Names()}
	for _, c := range r.conditions() {
		words = append(words, c.States)
	}
	return append(words, commonWords[:]...)
}

// Cause returns what made a window of a class: its state, if that is of the class, else worn if it has a limit, else the class's name.
func (r Rule) Cause(class int, state string) string {
	c := r.conditions()[class]
	switch k, ok := r.StateClass(state); {
	case ok && k == class && state != "":
		return strings.ToLower(inWords(state))
	case c.VBMaxUM > 0 || c.VBMeanUM > 0:
		return "worn"
	}
	return c.Name
}

// Finding returns the causes of a class, as alarms have them, if one of them is another thing than wear and breakage; else nothing.
func Finding(causes []string) string {
	if slices.ContainsFunc(causes, func(c string) bool { return !ofTool(c) }) {
		return strings.Join(causes, " or ")
	}
	return ""
}

// ofTool reports whether a word of a faulty class, such as "slightly worn", is a condition of the tool, so that a new one ends it.
func ofTool(word string) bool {
	named := func(part string) bool {
		return slices.ContainsFunc(slices.Concat(commonWords[isWorn], commonWords[isBroken]), func(w string) bool { return strings.HasSuffix(fold(part), w) })
	}
	return conditionOf(word) != isUnknown || slices.ContainsFunc(strings.Fields(word), named)
}

// StatesByClass says in words which states were taken for which class, given the windows of each. It is empty
// if there are none.
func (r Rule) StatesByClass(windows map[string]int) string {
	names := r.Names()
	by := make([][]string, len(names))
	for _, state := range slices.Sorted(maps.Keys(windows)) {
		if k, ok := r.StateClass(state); ok {
			by[k] = append(by[k], fmt.Sprintf("%q (%d)", state, windows[state]))
		}
	}
	var out []string
	for k, name := range names {
		if len(by[k]) > 0 {
			out = append(out, name+" "+strings.Join(by[k], ", "))
		}
	}
	return strings.Join(out, "; ")
}
