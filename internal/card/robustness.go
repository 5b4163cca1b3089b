package card

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/score"
)

// FaultKind is what may be wrong with a sensor.
type FaultKind string

// The kinds. Noise and Drift last the whole life of a tool, the others begin within it.
const (
	Gain    FaultKind = "gain"    // it reads Factor times what it should
	Drift   FaultKind = "drift"   // from 1 at the tool's first judged window to Factor at its last
	Noise   FaultKind = "noise"   // each window reads exp(Factor·z) times what it should, z normal
	Dead    FaultKind = "dead"    // it reads zero
	Stuck   FaultKind = "stuck"   // it reads what it read last
	Missing FaultKind = "missing" // it delivers nothing
)

// Fault is what is wrong with one sensor, or with several alike.
type Fault struct {
	Kind    FaultKind `json:"kind"`
	Factor  float64   `json:"factor,omitempty"`
	Sensors []string  `json:"sensors"`

	// Flagged says that the quality flags of the sensor's channels tell: its features are left
	// out of the verdict then, whether it is dead, stuck or missing.
	Flagged bool `json:"flagged,omitempty"`
}

// more says how much more or less a factor of f is.
func more(f float64) string {
	if f < 1 {
		return fmt.Sprintf("%.0f %% less", 100*(1-f))
	}
	return fmt.Sprintf("%.0f %% more", 100*(f-1))
}

// Words says what is wrong, as in "F_c reads 10 % more".
func (f Fault) Words() string {
	words := map[FaultKind]string{
		Gain: "reads " + more(f.Factor), Drift: "drifts to " + more(f.Factor), Noise: fmt.Sprintf("has %.0f %% noise", 100*f.Factor),
		Dead: "reads zero", Stuck: "is stuck at its last value", Missing: "is missing",
	}[f.Kind]
	switch {
	case len(f.Sensors) > 1:
		words = strings.NewReplacer("reads", "read", "drifts", "drift", "has", "have").Replace(words)
		if len(f.Sensors) > 5 {
			return Some(f.Sensors) + " " + words
		}
	case f.Flagged:
		words = "is dead, stuck or missing, which its quality flags tell"
	}
	return Listed(f.Sensors) + " " + words
}

// class returns what kind of fault f is in the summary.
func (f Fault) class() string {
	gain := "20 % less to 25 % more"
	if f.Factor > 1.25 {
		gain = more(f.Factor)
	}
	several := len(f.Sensors) > 1
	switch {
	case several && f.Kind == Noise:
		return "all have 5 or 10 % noise"
	case several:
		return "several read " + gain
	case f.Kind == Gain:
		return "reads " + gain
	case f.Kind == Drift:
		return "drifts that far over a life"
	case f.Kind == Noise:
		return "has 5 or 10 % noise"
	case f.Kind == Missing:
		return "is missing"
	}
	return "is dead: zero or stuck"
}

// Robustness says what becomes of decisions and alarms on tools that a model has not seen if a
// sensor reads wrong. All decisions count, also those whose verdict is unknown.
type Robustness struct {
	Note   string `json:"note,omitempty"`   // why nothing was measured; then there is nothing else
	Remedy string `json:"remedy,omitempty"` // what to do to have it measured

	Guarded bool `json:"guarded,omitempty"` // a guard bounds every network that judges here

	// Unguarded says why some network that judges here has no guard; empty: all have one, or none was asked for.
	Unguarded string `json:"unguarded,omitempty"`

	Tools int `json:"tools"`
	Worn  int `json:"worn"` // tools that get worn

	Clean Effect       `json:"clean"` // without any fault; its counts are of all tools
	Worst score.Figure `json:"worst"` // least G-mean of all trials with one sensor
	Mean  score.Figure `json:"mean"`  // mean of these

	Kinds  []FaultSummary `json:"kinds"`
	Trials []Trial        `json:"trials"`

	replay  func(lives []Life) Alarms
	clean   Alarms // without any fault
	alarmed int    // worn tools that get an alarm then
}

// Effect says how good decisions and alarms are. In a trial the counts are of what is not so
// without the fault.
type Effect struct {
	GMean  score.Figure `json:"gmean"`        // of all windows, healthy against all other classes
	Missed int          `json:"missed"`       // worn tools without an alarm
	False  int          `json:"false_alarms"` // see toolAlarm
	Late   int          `json:"late"`         // alarms more than n windows after the one without the fault, or past tooLateBeyond of the limit
}

// Trial is what becomes of them with a fault.
type Trial struct {
	Fault
	Effect
	MissedTools []string `json:"missed_tools,omitempty"`
}

// FaultSummary sums up trials with faults of a kind.
type FaultSummary struct {
	Kind    string       `json:"kind"` // in words
	Trials  int          `json:"trials"`
	Worst   score.Figure `json:"worst"` // G-mean
	WorstIf string       `json:"worst_if"`
	Mean    score.Figure `json:"mean"`
	Missed  int          `json:"missed"`
	Of      int          `json:"of"` // alarms of worn tools without the faults
	False   int          `json:"false_alarms"`
	Late    int          `json:"late"`
}

// NewRobustness returns what is known of lives without any fault, and no trial. The alarm has
// the given settings, which pass their Check; limitUM is the wear from which on a tool is
// faulty, or 0. It has a Note if fewer than two tools get worn or no window is healthy.
func NewRobustness(lives []Life, s alarm.Settings, t Timing, limitUM float64) *Robustness {
	r := &Robustness{replay: func(lives []Life) Alarms { return Replay(lives, s, t, limitUM) }, Tools: len(lives)}
	a := r.replay(lives)
	r.clean, r.Worn = a, a.Worn
	r.Clean = Effect{GMean: gmeanOfLives(lives), False: a.False}
	for _, l := range a.Tools {
		switch {
		case l.Worn == 0:
		case l.Alarm == 0:
			r.Clean.Missed++
		case a.moment(l) == late:
			r.Clean.Late++
		}
		if l.Worn > 0 && l.Alarm > 0 {
			r.alarmed++
		}
	}
	switch undefined := r.Clean.GMean != r.Clean.GMean; {
	case r.Worn < leastWorn:
		return NotRobust(count(r.Worn, "tool gets worn, and it takes two", "tools get worn, and it takes two"), "record more tools until they are worn, and label their wear")
	case undefined:
		return NotRobust("no window is healthy, or none faulty, by its label", "record tools from their first cut on, and label them")
	}
	return r
}

// NotRobust returns a Robustness that was not measured, and says why.
func NotRobust(why, remedy string) *Robustness {
	undefined := score.Figure(math.NaN())
	return &Robustness{Note: why, Remedy: remedy, Clean: Effect{GMean: undefined}, Worst: undefined, Mean: undefined}
}

// gmeanOfLives returns the G-mean of all decisions.
func gmeanOfLives(lives []Life) score.Figure {
	c := score.NewConfusion(2)
	for _, l := range lives {
		for i, faulty := range l.Faulty {
			c.Add(classOf(faulty), classOf(l.Score[i] >= alarm.Default.Threshold))
		}
	}
	return c.Summary().GMean
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func classOf(faulty bool) int {
	if faulty {
		return 1
	}
	return 0
}

// Try returns what becomes of the lives that r was made of when their scores are those with
// a fault. Any number of goroutines may call it.
func (r *Robustness) Try(f Fault, lives []Life) Trial {
	a := r.replay(lives)
	t := Trial{Fault: f, Effect: Effect{GMean: gmeanOfLives(lives)}}
	for k, l := range a.Tools {
		clean := r.clean.Tools[k]
		t.False += max(0, l.False-clean.False)
		switch {
		case l.Worn == 0 || clean.Alarm == 0:
		case l.Alarm == 0:
			t.Missed++
			t.MissedTools = append(t.MissedTools, l.Tool)
		case l.Alarm > clean.Alarm+a.N || a.moment(l) == late && a.moment(clean) != late:
			t.Late++
		}
	}
	return t
}

// SetTrials sets the trials, and sums them up.
func (r *Robustness) SetTrials(trials []Trial) {
	r.Trials, r.Kinds = trials, nil
	single := FaultSummary{Worst: score.Figure(math.NaN())}
	for _, t := range trials {
		k := slices.IndexFunc(r.Kinds, func(s FaultSummary) bool { return s.Kind == t.class() })
		if k < 0 {
			k = len(r.Kinds)
			r.Kinds = append(r.Kinds, FaultSummary{Kind: t.class(), Worst: score.Figure(math.NaN())})
		}
		r.Kinds[k].add(t, r.alarmed)
		if len(t.Sensors) == 1 {
			single.add(t, r.alarmed)
		}
	}
	r.Worst, r.Mean = single.Worst, single.mean()
	for k := range r.Kinds {
		r.Kinds[k].Mean = r.Kinds[k].mean()
	}
}

// add adds a trial; Mean is the sum until mean is called.
func (s *FaultSummary) add(t Trial, of int) {
	if s.Worst != s.Worst || t.GMean < s.Worst {
		s.Worst, s.WorstIf = t.GMean, t.Words()
	}
	s.Trials++
	s.Mean += t.GMean
	s.Missed, s.Of, s.False, s.Late = s.Missed+t.Missed, s.Of+of, s.False+t.False, s.Late+t.Late
}

func (s *FaultSummary) mean() score.Figure {
	if s.Trials == 0 {
		return score.Figure(math.NaN())
	}
	return s.Mean / score.Figure(s.Trials)
}

// leastRobust is the share of the G-mean that must be left with one sensor wrong to switch a
// model on.
const leastRobust = 0.9

// broken returns the trials with one sensor that lose an alarm or too much of the G-mean, the
// one that loses most alarms first, and of equal ones the one with the least G-mean.
func (r *Robustness) broken() []Trial {
	var out []Trial
	for _, t := range r.Trials {
		if len(t.Sensors) == 1 && (t.Missed > 0 || t.GMean < leastRobust*r.Clean.GMean) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(b.Missed, a.Missed), cmp.Compare(a.GMean, b.GMean))
	})
	return out
}

// singles returns how many trials are with one sensor.
func (r *Robustness) singles() (n int) {
	for _, t := range r.Trials {
		if len(t.Sensors) == 1 {
			n++
		}
	}
	return n
}

func (e *Evidence) robustness() Reason {
	r := Reason{About: "sensors that read wrong", Level: SwitchOn}
	b := e.Robustness
	switch {
	case b == nil:
		return Reason{}
	case b.Note != "":
		r.Level, r.Because, r.Do = Shadow, "what a sensor that reads wrong does was not measured, because "+b.Note, b.Remedy
		return r
	}
	n, broken := b.singles(), b.broken()
	if len(broken) == 0 {
		r.Because = fmt.Sprintf("with one sensor wrong no further alarm is missed, and the G-mean stays at %s or more (mean %s; %s without)", Figure(b.Worst), Figure(b.Mean), Figure(b.Clean.GMean))
		if n == 0 {
			r.Because = "no single sensor counts, so that none of them alone spoils a verdict"
		}
		return r
	}
	worst := broken[0]
	r.Level = Shadow
	r.Because = fmt.Sprintf("if %s, the G-mean is %s instead of %s", worst.Words(), Figure(worst.GMean), Figure(b.Clean.GMean))
	if worst.GMean >= b.Clean.GMean {
		r.Because = fmt.Sprintf("if %s, the G-mean does not fall (%s, without it %s)", worst.Words(), Figure(worst.GMean), Figure(b.Clean.GMean))
	}
	if worst.Missed > 0 {
		r.Because += fmt.Sprintf(", and of %s %d %s missed (%s)", count(b.alarmed, "alarm", "alarms"), worst.Missed, isAre(worst.Missed), Some(worst.MissedTools))
	}
	lose := "lose"
	if len(broken) == 1 {
		lose = "loses"
	}
	r.Because += fmt.Sprintf("; %d of %s %s an alarm or a tenth of the G-mean, and the mean is %s", len(broken), count(n, "trial with one sensor wrong", "trials with one sensor wrong"), lose, Figure(b.Mean))
	sensor := worst.Sensors[0]
	guard := ""
	switch {
	case b.Unguarded != "":
		guard = "networks that judge the tools held out have no guard to bound what one sensor can do: " + b.Unguarded + "; "
	case !b.Guarded:
		guard = "train with a guard (`guard: vote-and-gains`, three labelled worn tools or more), which bounds what one sensor can do; "
	}
	r.Do = guard + fmt.Sprintf("check mounting, cable and calibration of %s whenever the machine is serviced, and watch it on the page; record tools with a second sensor that follows wear, or see with `exclude` in train.yaml whether a model without %s does as well", sensor, sensor)
	return r
}

// Words returns the table of kinds for a terminal; nothing if nothing was measured, which the
// verdict says.
func (r *Robustness) Words() string {
	switch {
	case r == nil || r.Note != "":
		return ""
	case len(r.Trials) == 0:
		return "no single sensor counts, so that none was made to read wrong"
	}
	var b strings.Builder
	if r.Unguarded != "" {
		fmt.Fprintf(&b, "The networks that judge here have no guard (%s), so this is without one.\n", r.Unguarded)
	}
	fmt.Fprintf(&b, "If a sensor reads wrong, on %d tools of which %d get worn. Without a fault: G-mean %s, %d missed, %d late, %d false. Counts below come on top:", r.Tools, r.Worn, Figure(r.Clean.GMean), r.Clean.Missed, r.Clean.Late, r.Clean.False)
	fmt.Fprintf(&b, "\n%-36s %7s %7s %12s %6s %6s   %s", "", "worst", "mean", "missed", "late", "false", "worst if")
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "\n%-36s %7s %7s %12s %6d %6d   %s", k.Kind, Figure(k.Worst), Figure(k.Mean), fmt.Sprintf("%d of %d", k.Missed, k.Of), k.Late, k.False, k.WorstIf)
	}
	return b.String()
}

// faultColumns are the columns of the table of sensors.
var faultColumns = []Fault{
	{Kind: Gain, Factor: 0.8}, {Kind: Gain, Factor: 0.9}, {Kind: Gain, Factor: 1.1}, {Kind: Gain, Factor: 1.25}, {Kind: Gain, Factor: 1.5},
	{Kind: Drift, Factor: 0.8}, {Kind: Drift, Factor: 1.25}, {Kind: Noise, Factor: 0.05}, {Kind: Noise, Factor: 0.1}, {Kind: Dead}, {Kind: Stuck}, {Kind: Missing},
}

// FaultsOf returns the faults that sensors are given: of a single one all, of those that
// measure in one unit together the gains. Flagged is as in Fault: then being dead or stuck is
// the same as missing.
func FaultsOf(sensors []string, flagged bool) []Fault {
	var out []Fault
	for _, f := range faultColumns {
		f.Sensors, f.Flagged = sensors, flagged && f.Kind == Missing
		if len(sensors) > 1 && f.Kind != Gain || flagged && (f.Kind == Dead || f.Kind == Stuck) {
			continue
		}
		out = append(out, f)
	}
	return out
}

// NoiseOf returns the faults of all sensors together that have noise.
func NoiseOf(sensors []string) []Fault {
	var out []Fault
	for _, f := range faultColumns {
		if f.Kind == Noise && len(sensors) > 1 {
			f.Sensors = sensors
			out = append(out, f)
		}
	}
	return out
}

// robustness writes what a sensor that reads wrong does.
func (r *Report) robustness(p *page) {
	b := r.Robustness
	if b == nil {
		return
	}
	p.section("robustness", "If a sensor reads wrong")
	switch {
	case b.Note != "":
		p.text("Not measured, because %s. To have it measured, %s.", b.Note, b.Remedy)
		return
	case len(b.Trials) == 0:
		p.text("No single sensor counts, so that none was made to read wrong.")
		return
	}
	p.text("Features of one sensor at a time were changed in the windows of tools held out, and judged by networks that had not seen these tools. "+
		"A sensor counts if its features have %.0f %% of the squared weights or more. Gains, and being dead, stuck or missing, begin at a random window between a quarter and three quarters of a life. "+
		"Features are relative to the reference that the tool had before. Every decision counts, also an unknown one.", 100*score.LeastShare)
	p.text("Without any fault the G-mean is %s. Of %s, %d %s missed and %d late, and there %s %s. "+
		"The counts below come on top of these. An alarm is late if it comes more than %d windows after the one without the fault, or past %.0f %% of the limit.",
		Figure(b.Clean.GMean), count(b.Worn, "alarm of a worn tool", "alarms of worn tools"), b.Clean.Missed, isAre(b.Clean.Missed), b.Clean.Late, isAre(b.Clean.False), count(b.Clean.False, "false alarm", "false alarms"), b.clean.N, 100*tooLateBeyond)
	if b.Unguarded != "" {
		p.note("the networks that judge here have no guard (" + b.Unguarded + "), so this is without one")
	}
	t := p.table("the sensor", "trials", "worst G-mean", "mean G-mean", "missed", "late", "false", "worst if")
	for _, k := range b.Kinds {
		t.row(k.Kind, fmt.Sprint(k.Trials), Figure(k.Worst), Figure(k.Mean), fmt.Sprintf("%d of %d", k.Missed, k.Of), fmt.Sprint(k.Late), fmt.Sprint(k.False), k.WorstIf)
	}
	p.text("G-mean sensor by sensor. A number behind the figure is of alarms that are missed.")
	b.sensorTable(p)
	if slices.ContainsFunc(b.Trials, func(t Trial) bool { return t.Flagged }) {
		p.text("Flank computes some of these features from samples. If such a sensor is dead, stuck or missing, its quality flags tell, and its features are left out: the column missing has the figure for all three.")
	}
}

// sensorTable lists what each fault of each sensor does.
func (r *Robustness) sensorTable(p *page) {
	head := []string{"sensor"}
	for _, f := range faultColumns {
		head = append(head, map[FaultKind]string{
			Gain: fmt.Sprintf("× %.4g", f.Factor), Drift: fmt.Sprintf("drift to %.4g", f.Factor), Noise: fmt.Sprintf("%.0f %% noise", 100*f.Factor),
			Dead: "zero", Stuck: "stuck", Missing: "missing",
		}[f.Kind])
	}
	t := p.table(head...)
	at := make(map[string]int)
	for _, trial := range r.Trials {
		name := Listed(trial.Sensors)
		if _, known := at[name]; !known {
			at[name] = len(t.Rows)
			t.row(append([]string{name}, slices.Repeat([]string{"–"}, len(faultColumns))...)...)
		}
		for k, f := range faultColumns {
			if f.Kind != trial.Kind || f.Factor != trial.Factor {
				continue
			}
			cell := Figure(trial.GMean)
			if trial.Missed > 0 {
				cell += fmt.Sprintf(" (%d)", trial.Missed)
			}
			t.Rows[at[name]][k+1] = cell
		}
	}
}
