package source

import (
	"regexp"
	"slices"
)

// What the name of a label says.
const (
	SaysState   = "the wear or the state of the tool"
	SaysQuality = "how good the part is"
)

// SaysLabel returns what the name of a column says that it is, in words, if that is what a model is to find out and no measurement, also
// if it has no role; empty if it may be a channel. Names are the names of all columns: y next to x is an axis.
func SaysLabel(column string, names []string) string {
	plain := PlainName(column)
	if plain == "y" && (len(names) < 3 || slices.ContainsFunc(names, func(n string) bool { return axis.MatchString(PlainName(n)) })) {
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

// labelNames are patterns of names, as PlainName returns them. Most are of whole names: a channel may be target_speed or drive_status.
var labelNames = []struct {
	says    string
	pattern *regexp.Regexp
}{
	{SaysState, regexp.MustCompile(`wear|verschlei|usure|desgaste|usura|slijtage|износ|磨损|磨耗|摩耗|^label(healthy|faulty|worn|id|no|\d)?$|label$|` +
		`^vb[abcn]?((max|mean|avg).*|([uµμ]m|mm)?|flute\d*|est|true)$|^(kt|kolktiefe|crater(depth|width)?|flute\d+|flank)([uµμ]m|mm)?$|` +
		`^(tool|is|y|werkzeug|machine)?(worn|wornout|faulty|fault|failure|failed|defect|defective|defekt|broken|breakage|bruch|damaged?|anomaly|outlier|chatter|healthy|verschlissen|stumpf|schlecht|sharp|dull|blunt|severity|rul)s?(id|no|code|flag|score|index|type|class)?$|` +
		`^(tool|is|y|werkzeug)?(state|status|condition|label|class|target|zustand|klasse|ok|nok|grade)s?(id|no|code)?$|^y(true|test|train)?$|` +
		`^(etat|état|estado|stato|toestand)(de|del?)?l?a?(outil|herramienta|utensile|gereedschap)?$|^состояние|^(工具)?(状態|状态)$|^(twf|hdf|pwf|osf|rnf)$|` +
		`^(tool|machine|anomaly|damage|condition)?health(index|indicator|score|state|status|level|pct|percent)?$|^hi$|^rul(est|estimate|pred|true|s|min|h|cycles)?$|^(condition|damage|degradation|anomaly|novelty|fault|failure)(index|indicator|score|level|rate|pct|percent)?$`)},
	{"how much of the tool's life is used or left", regexp.MustCompile(`^(tool|rest|remaining|residual|used|useful|total)*life(time|span)?(used|left|rest|remaining|pct|percent|ratio|fraction|consumed|min|s|h|cycles)*$|` +
		`^(rest|rel)?(standzeit|standweg|standmenge)(rest|ist|verbraucht|proz|prozent)?$|^(werkzeug)?einsatz(zeit|dauer)$|^durée(de)?vie|^vidautil|^寿命|^剩余寿命`)},
	{"what a model predicts", regexp.MustCompile(`^(y|vb|class|state|tool|model)?(pred|predicted|prediction|predictions|prob|proba|probability|hat|forecast)(vb|y|class|state|rul|life|worn|healthy|faulty|score|\d)?$`)},
	{SaysQuality, regexp.MustCompile(`roughness|rauheit|rauhtiefe|rugosi|^ra([uµμ]m)?$|^(part|surface|product|cut)?(quality|qualität|qualitaet)(class|index|score|grade|label)?$|` +
		`^(ok|io|gut|good|pass)(nok|notok|nio|ng|schlecht|bad|fail)$|^(gut|gutteil|schlechtteil|ausschuss|scrap|good|bad|judge|judgement|judgment|verdict|urteil|良否|判定)$`)},
}
