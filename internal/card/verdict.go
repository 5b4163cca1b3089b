package card

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/score"
)

// Level says whether to switch a model on.
type Level int

// The levels, the worst first.
const (
	NotYet Level = iota
	Shadow
	SwitchOn
)

var levelWords = [...][2]string{NotYet: {"not_yet", "Not yet"}, Shadow: {"shadow", "Switch on in shadow"}, SwitchOn: {"switch_on", "Switch on"}}

// String returns the level in words.
func (l Level) String() string { return levelWords[l][1] }

// MarshalText returns the level for programs.
func (l Level) MarshalText() ([]byte, error) { return []byte(levelWords[l][0]), nil }

// UnmarshalText reads what MarshalText writes.
func (l *Level) UnmarshalText(b []byte) error {
	for k, w := range levelWords {
		if w[0] == string(b) {
			*l = Level(k)
			return nil
		}
	}
	return fmt.Errorf("card: verdict %.20q: expected not_yet, shadow or switch_on", b)
}

// Verdict says whether to switch a model on, and why.
type Verdict struct {
	Level   Level    `json:"level"`
	Reasons []Reason `json:"reasons"` // the worst first
}

// Reason is one of the things that a verdict rests on.
type Reason struct {
	About   string `json:"about"`
	Level   Level  `json:"level"`        // the best verdict that this reason allows
	Because string `json:"because"`      // with figures
	Do      string `json:"do,omitempty"` // what to do; empty if all is well
}

// Evidence is what a verdict rests on. A figure that is not known is NaN.
type Evidence struct {
	// Held says that the tools had no part in the training of what judged them, but for the
	// choice of costs if CostsSeen. Seen names what of them the model was trained on, if it
	// is known to have seen some.
	Held, CostsSeen bool
	Seen            string
	NotOfModel      string // see Report

	// UnknownNotMeasured says that the model has the verdict unknown, and that no one knows
	// how many windows get it.
	UnknownNotMeasured bool

	Alarms    Alarms
	GMean     score.Figure // of windows, healthy against all other classes; unknown ones count as wrong
	Ours      score.Figure // the same as if no window were unknown, to compare with those below
	Random    score.Figure // of a random split, which leaks
	Baselines []baselineFigure

	NotCompared string // why there are no baselines, if that is known

	Robustness *Robustness // what a sensor that reads wrong does; nil: it was not looked at
}

// baselineFigure is what another method reaches on the same windows and folds.
type baselineFigure struct {
	Method string
	GMean  score.Figure
}

// The limits of the rule. docs/concepts/verdict-of-a-model.md gives the reasons for each.
const (
	// inTimeFrom, tooEarlyBelow and tooLateBeyond are shares of the limit of the wear. An alarm from
	// inTimeFrom to tooLateBeyond is in time. Below tooEarlyBelow it throws away half of the tool's life.
	inTimeFrom, tooEarlyBelow, tooLateBeyond = 0.8, 0.5, 1.5

	leastWorn, enoughWorn    = 2, 5       // worn tools: for shadow, to switch on
	mostTools                = 0.2        // share of the worn tools that may be missed, or have a bad alarm
	shift                    = 8          // hours of cutting in which one alarm may be false
	someUnknown, mostUnknown = 0.2, 0.5   // share of the windows: to switch on, for shadow
	goodGMean, leastGMean    = 0.85, 0.7  // to switch on, for shadow
	someLeak, mostLeak       = 0.1, 0.2   // random split less tools held out: to switch on, for shadow
	leastSure                = 0.5        // share of right verdicts on each tool, to switch on
	someBetter, mostBetter   = 0.05, 0.15 // best baseline less ours: to switch on, for shadow
)

// VerdictOf returns the verdict on a model: the worst of what each reason allows.
func VerdictOf(e Evidence) Verdict {
	v := Verdict{Level: SwitchOn}
	if held := e.held(); held.Level == NotYet { // then no other figure is worth much
		v.Reasons = []Reason{held, e.wornTools()}
	} else {
		v.Reasons = []Reason{held, e.wornTools(), e.alarms(), e.falseAlarms(), e.unknown(), e.windows(), e.leastSureTool(), e.baselines(), e.robustness()}
		v.Reasons = slices.DeleteFunc(v.Reasons, func(r Reason) bool { return r.Because == "" })
	}
	slices.SortStableFunc(v.Reasons, func(a, b Reason) int { return int(a.Level) - int(b.Level) })
	for _, r := range v.Reasons {
		v.Level = min(v.Level, r.Level)
	}
	return v
}

// atMost returns the level that a figure allows of which less is better. NaN is the worst.
func atMost(f, switchOn, shadow float64) Level {
	switch {
	case f <= switchOn:
		return SwitchOn
	case f <= shadow:
		return Shadow
	}
	return NotYet
}

func (e *Evidence) held() Reason {
	r := Reason{About: "tools held out", Level: NotYet}
	switch {
	case e.Seen != "":
		r.Because = fmt.Sprintf("the model was trained on some of this data (%s): the figures say how well it remembers", e.Seen)
		r.Do = "evaluate it on recordings of other tools"
	case !e.Held:
		r.Because = "no tool could be held out, so nothing is known of a tool that the model has not seen"
		r.Do = e.toHoldOut()
	case e.CostsSeen:
		r.Level = Shadow
		r.Because = "networks had not seen the tools that they judged, but costs were chosen on these tools, which flatters"
		r.Do = "train with evaluate.by_tool at leave-one-out or 5-fold"
	case e.NotOfModel != "":
		r.Level = Shadow
		r.Because = e.NotOfModel + ": scores and alarms are of these folds, and not quite of the model"
		r.Do = moreWorn
	default:
		r.Level = SwitchOn
	}
	return r
}

const moreWorn = "record more tools until they are worn"

// toHoldOut says what it takes to hold tools out: two that get worn, and two with healthy windows.
func (e *Evidence) toHoldOut() string {
	worn, _ := e.worn()
	healthy := 0
	for _, t := range e.Alarms.Tools {
		if t.Healthy > 0 {
			healthy++
		}
	}
	switch {
	case worn >= leastWorn && healthy == 1:
		return "record a second tool from its first cut on, and label it healthy as long as it is"
	case worn >= leastWorn && healthy > 1:
		return "set evaluate.by_tool to leave-one-out"
	}
	return "label more worn tools, and set evaluate.by_tool to leave-one-out"
}

func (e *Evidence) wornTools() Reason {
	r := Reason{About: "worn tools", Level: SwitchOn}
	n, healthy := e.worn()
	r.Because = fmt.Sprintf("%d of %s worn by the label", n, count(len(e.Alarms.Tools), "tool gets", "tools get"))
	more := func(enough int) string {
		return fmt.Sprintf("record %s until worn, and label its wear", count(enough-n, "more tool", "more tools"))
	}
	switch {
	case healthy == 0:
		r.Level, r.Because, r.Do = NotYet, "no window is healthy by the label, so nothing is known of false alarms", "record tools from their first cut on, and label them"
	case n < leastWorn:
		r.Level, r.Do = NotYet, more(leastWorn)
	case n < enoughWorn:
		r.Level = Shadow
		r.Because += fmt.Sprintf(": if all of them got an alarm, that would show (95 %%) that %.0f %% of worn tools do", 100*math.Pow(0.05, 1/float64(n)))
		r.Do = more(enoughWorn)
	}
	if n != 1 {
		r.Do = strings.Replace(r.Do, "label its wear", "label their wear", 1)
	}
	return r
}

// worn returns how many tools get worn, and how many windows are healthy.
func (e *Evidence) worn() (tools, healthy int) {
	for _, t := range e.Alarms.Tools {
		healthy += t.Healthy
		if t.Worn > 0 {
			tools++
		}
	}
	return tools, healthy
}

// moment is when the first alarm of a worn tool came.
type moment int

const (
	missed moment = iota // never
	inTime
	early
	farTooEarly
	late
	inTimeOrLate // in time or late: the wear at the alarm is not known
)

func (a *Alarms) moment(t toolAlarm) moment {
	ratio := float64(t.WearUM) / a.LimitUM
	known := a.LimitUM > 0 && ratio == ratio
	switch {
	case t.Alarm == 0:
		return missed
	case t.Alarm >= t.Worn && !known:
		return inTimeOrLate
	case t.Alarm >= t.Worn && ratio > tooLateBeyond:
		return late
	case t.Alarm >= t.Worn || known && ratio >= inTimeFrom:
		return inTime
	case ratio < tooEarlyBelow:
		return farTooEarly
	}
	return early
}

func (e *Evidence) alarms() Reason {
	r := Reason{About: "alarms of worn tools"}
	tools := make(map[moment][]string)
	n := 0
	for _, t := range e.Alarms.Tools {
		if t.Worn == 0 {
			continue
		}
		n++
		m := e.Alarms.moment(t)
		tools[m] = append(tools[m], e.Alarms.named(t))
	}
	if n == 0 {
		return Reason{}
	}
	share := func(ms ...moment) float64 {
		sum := 0
		for _, m := range ms {
			sum += len(tools[m])
		}
		return float64(sum) / float64(n)
	}
	r.Level = min(atMost(share(missed), 0, mostTools), atMost(share(missed, farTooEarly), mostTools, mostTools), atMost(share(missed, early, farTooEarly, late, inTimeOrLate), mostTools, 1))
	r.Because = fmt.Sprintf("%d of %s got an alarm%s", n-len(tools[missed]), count(n, "worn tool", "worn tools"), e.Alarms.wear())
	var do []string
	for _, part := range []struct {
		of    []string
		words string
		do    string
	}{
		{tools[missed], "missed", "look at their lives on the card: where the score rises too late, choose k, n and threshold with `trainer tune`; where it does not rise, record more worn tools of that kind; where the record ends too soon, record on"},
		{tools[farTooEarly], "far too early, before half of the limit", ""},
		{tools[early], "early", ""},
		{tools[late], "late, past one and a half times the limit", "choose a lower threshold or k with `trainer tune`"},
		{tools[inTimeOrLate], fmt.Sprintf("in time or late, as the wear at the alarm is not known, so that %d to %d are in time", len(tools[inTime]), len(tools[inTime])+len(tools[inTimeOrLate])), "measure the wear of tools that are taken out"},
	} {
		if len(part.of) == 0 {
			continue
		}
		if r.Because += fmt.Sprintf("; %s: %s", part.words, Some(part.of)); part.do != "" {
			do = append(do, part.do)
		}
	}
	if share(early, farTooEarly) > 0 {
		do = append(do, "an early alarm throws a good tool away: choose a higher threshold or k with `trainer tune`, or a lower limit if such tools ought to be changed")
	}
	if r.Level < SwitchOn {
		r.Do = strings.Join(do, "; ")
	}
	return r
}

// named returns the name of a worn tool, with what explains its alarm.
func (a *Alarms) named(t toolAlarm) string {
	switch worn := t.Judged - t.Healthy; {
	case t.Unjudged > 0 && t.Worn > t.Judged:
		return fmt.Sprintf("%s (its worn windows were not judged: %s)", t.Tool, t.Why)
	case t.Alarm == 0 && worn > 0 && worn < a.K:
		return fmt.Sprintf("%s (only %s, an alarm takes %d)", t.Tool, count(worn, "worn window", "worn windows"), a.K)
	case t.WearUM == t.WearUM:
		return fmt.Sprintf("%s at %.0f µm", t.Tool, float64(t.WearUM))
	}
	return t.Tool
}

// wear says how much wear worn tools had when their first alarm came, if it was measured.
func (a *Alarms) wear() string {
	var um []float64
	for _, t := range a.Tools {
		if v := float64(t.WearUM); t.Worn > 0 && t.Alarm > 0 && v == v {
			um = append(um, v)
		}
	}
	if len(um) == 0 || a.LimitUM == 0 {
		return ""
	}
	if len(um) == 1 {
		return fmt.Sprintf(", with %.0f µm of wear; the limit is %.4g µm", um[0], a.LimitUM)
	}
	return fmt.Sprintf(", with %.0f to %.0f µm of wear (median %.0f); the limit is %.4g µm", slices.Min(um), slices.Max(um), medianOf(um), a.LimitUM)
}

func (e *Evidence) falseAlarms() Reason {
	r := Reason{About: "false alarms"}
	n, rang := 0, 0
	for _, t := range e.Alarms.Tools {
		n += t.False
		if t.False > 0 {
			rang++
		}
	}
	hours, words := float64(e.Alarms.HealthyHours), count(n, "false alarm", "false alarms")
	if hours != hours || hours < 0 || math.IsInf(hours, 1) {
		r.Level = min(Shadow, atMost(float64(rang)/float64(max(1, len(e.Alarms.Tools))), mostTools, mostTools))
		r.Because = fmt.Sprintf("%s, at %d of %s; in how many hours is not known, as the length of the windows is not", words, rang, count(len(e.Alarms.Tools), "tool", "tools"))
		if r.Do = "write window.length of the table into train.yaml"; r.Level == NotYet {
			r.Do += "; choose k, n and threshold with `trainer tune`"
		}
		return r
	}
	low, high := score.RateInterval(n, hours)
	r.Because = fmt.Sprintf("%s in %s h of healthy cutting", words, twoDigits(hours))
	switch {
	case low*shift > 1:
		r.Level = NotYet
		r.Because += fmt.Sprintf(": more than one in a shift of %d h, at least %s (95 %%)", shift, twoDigits(low*shift))
		r.Do = "look at the lives on the card where they rang, choose k, n and threshold with `trainer tune`, and record more tools"
	case high*shift > 1:
		r.Level = Shadow
		if math.IsInf(high, 1) {
			r.Because = "no window of healthy cutting was judged, so nothing is known of false alarms"
		} else {
			r.Because += fmt.Sprintf(": that shows (95 %%) only that there are at most %s in a shift of %d h", twoDigits(high*shift), shift)
		}
		_, once := score.RateInterval(n, 1)
		r.Do = fmt.Sprintf("run in shadow for %.0f more hours of healthy cutting without a false alarm: then there is at most one in a shift", math.Ceil(once*shift-hours))
	default:
		r.Level = SwitchOn
		r.Because += fmt.Sprintf(": at most %s in a shift of %d h (95 %%)", twoDigits(high*shift), shift)
	}
	return r
}

func (e *Evidence) unknown() Reason {
	r := Reason{About: "unknown windows"}
	unknown, of := 0, 0
	for _, t := range e.Alarms.Tools {
		unknown, of = unknown+t.Unknown, of+t.Judged
	}
	if of == 0 {
		return Reason{}
	}
	if e.UnknownNotMeasured {
		r.Level, r.Because = Shadow, "how many windows are unknown was not measured"
		if r.Do = "hold tools out with evaluate.by_tool; for conformal sets it takes three tools of each class"; e.NotOfModel != "" {
			r.Do = moreWorn
		}
		return r
	}
	r.Level = atMost(float64(unknown)/float64(of), someUnknown, mostUnknown)
	r.Because = fmt.Sprintf("%s of %d windows are unknown", share(unknown, of), of)
	if r.Level < SwitchOn {
		r.Do = "no alarm counts windows that are out of distribution: look on the card which tools have them, and why, and record more tools like these"
	}
	return r
}

func (e *Evidence) windows() Reason {
	r := Reason{About: "windows"}
	g, leak := float64(e.GMean), float64(e.Random)-float64(e.Ours)
	r.Because = fmt.Sprintf("the G-mean of single windows is %s%s; guessing gives 0.5", Figure(e.GMean), map[bool]string{false: " with unknown ones counted as wrong"}[e.UnknownNotMeasured])
	if !(g >= 0 && g <= 1) {
		r.Because, r.Do = "the G-mean of single windows is not defined", "add tools with healthy windows and with worn ones"
		return r
	}
	r.Level = atMost(1-g, 1-goodGMean, 1-leastGMean)
	if r.Level < SwitchOn {
		r.Do = "record more tools until they are worn; look whether the features that count follow wear, and whether the reference suits"
	}
	if leak != leak {
		return r
	}
	if l := atMost(leak, someLeak, mostLeak); l < SwitchOn {
		r.Level = min(r.Level, l)
		r.Because += fmt.Sprintf("; on a random split it is %.2f more than on tools held out: the model knows its tools again rather than their wear", leak)
		r.Do = "record more tools, as different as those to come; exclude features that tell tools apart"
	}
	return r
}

func (e *Evidence) leastSureTool() Reason {
	r := Reason{About: "least sure tool", Level: SwitchOn}
	least, name := math.Inf(1), ""
	for _, t := range e.Alarms.Tools {
		if v := float64(t.Right) / float64(t.Judged); t.Judged > 0 && v < least {
			least, name = v, t.Tool
		}
	}
	if name == "" {
		return Reason{}
	}
	r.Because = fmt.Sprintf("on tool %s, the least sure one, %.0f %% of the verdicts are right", name, 100*least)
	if least < leastSure {
		r.Level, r.Do = Shadow, fmt.Sprintf("look at the life of %s on the card, at its labels and at its recordings: if it is like those to come, record more such tools", name)
	}
	return r
}

// bestBaseline returns the best of the other methods, one whose G-mean is not known, if there is one, and all in words.
func (e *Evidence) bestBaseline() (best, unknown baselineFigure, words []string) {
	best.GMean = -1
	for _, b := range e.Baselines {
		words = append(words, b.Method+" is "+Figure(b.GMean))
		switch {
		case b.GMean != b.GMean:
			unknown = b
		case b.GMean > best.GMean:
			best = b
		}
	}
	return best, unknown, words
}

func (e *Evidence) baselines() Reason {
	r := Reason{About: "other methods", Level: SwitchOn}
	if len(e.Baselines) == 0 {
		r.Because = "it is not compared with a linear model and a forest on the same folds"
		if e.NotCompared != "" {
			r.Because += ": " + e.NotCompared
		}
		return r
	}
	best, unknown, words := e.bestBaseline()
	r.Level = atMost(float64(best.GMean)-float64(e.Ours), someBetter, mostBetter)
	if unknown.Method != "" && r.Level > Shadow {
		best, r.Level = unknown, Shadow
	}
	r.Because = fmt.Sprintf("on the same folds the G-mean of %s; this model's is %s", Listed(words), Figure(e.Ours))
	if lead := float64(best.GMean) - float64(e.Ours); r.Level == SwitchOn && lead > 0 {
		r.Because += fmt.Sprintf(": %s is %.3f ahead, less than the %v that count here", best.Method, lead, someBetter)
	}
	if r.Level == SwitchOn {
		return r
	}
	if best.GMean != best.GMean {
		r.Do = fmt.Sprintf("look why %s has no G-mean", best.Method)
		return r
	}
	r.Do = fmt.Sprintf("%s does better here: try another reference.mode and network.encoding, and `trainer study` on the same data, before you rely on this model", best.Method)
	return r
}

// count returns a number with its noun.
func count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// twoDigits writes hours or a rate.
func twoDigits(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

var verdictMarks = [...]string{NotYet: "✗", Shadow: "~", SwitchOn: "+"}

// Text returns the verdict for a terminal.
func (v *Verdict) Text() string {
	var b strings.Builder
	b.WriteString(v.Level.String() + ": " + v.Level.Meaning() + "\n")
	for _, r := range v.Reasons {
		fmt.Fprintf(&b, "  %s %s\n", verdictMarks[r.Level], r.Because)
		if r.Do != "" {
			fmt.Fprintf(&b, "      do: %s\n", r.Do)
		}
	}
	return b.String()
}

// Short returns the verdict and its worst reason on one line.
func (v *Verdict) Short() string {
	if len(v.Reasons) == 0 || v.Level == SwitchOn {
		return v.Level.String()
	}
	return v.Level.String() + ": " + v.Reasons[0].Because
}

// Meaning says what to do at this level.
func (l Level) Meaning() string {
	switch l {
	case SwitchOn:
		return "people may act on its alarms"
	case Shadow:
		return "let it judge, but call no one; count its alarms until it has proved itself"
	}
	return "do not rely on it"
}
