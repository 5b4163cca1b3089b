package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// proposal is what a recording seems to be: what `trainer init` writes.
type proposal struct {
	rec      signal.Recording // how it is written, and its columns
	channels []proposedChannel
	left     [][2]string       // columns that are not channels, and why
	keep     []string          // columns that a person wants as channels
	roles    map[string]string // by key of inspect.Roles: the column that has the role
	length   time.Duration
	dated    bool   // windows have dates
	clocked  bool   // a column of times says the rate
	counts   string // what the size of the numbers in the column of times says that they count; empty: nothing
	notes    []string
	label    string   // key of the column with labels; empty: none
	maybe    []string // columns of text that may be the label
}

type proposedChannel struct {
	signal.Channel
	why string // how its kind was found; empty: not at all
}

// rank gives each role to the column that fits it best. Tool is the column of the tool, "none" if no column names it, empty
// if none may; names are the names of all columns.
func (p *proposal) rank(s *inspect.Summary, names []string, tool string) error {
	p.roles = make(map[string]string)
	for _, k := range p.keep {
		if !slices.Contains(names, k) {
			return fmt.Errorf("--keep %s: there is no such column in %s, but %s", k, s.Path, strings.Join(names, ", "))
		}
	}
	if tool != "" && tool != "none" && !slices.Contains(names, tool) {
		return fmt.Errorf("--tool %s: there is no such column in %s, but %s; write none if each file is a tool", tool, s.Path, strings.Join(names, ", "))
	}
	for _, r := range inspect.Roles {
		if columns := r.Columns(s); len(columns) > 0 {
			p.roles[r.Key] = columns[0]
		}
	}
	if tool != "" {
		p.roles["tool"] = tool
	}
	p.findState(s, names)
	return nil
}

// errTools says that a column may not name the tool, because most tools would be far shorter than a reference.
var errTools = errors.New("name the column of the tool with --tool COLUMN, or give --tool none if each file is a tool")

// manyTools is from how many tools on a person is asked if they are short.
const manyTools = 5

// usualRun returns the median of how many rows name one tool.
func usualRun(runs []int64) int64 { return slices.Sorted(slices.Values(runs))[len(runs)/2] }

// checkTools refuses a guess of the tool's column that makes many short tools. Windows is how many the reference of a tool takes.
func (p *proposal) checkTools(s *inspect.Summary, windows int) error {
	runs := s.Runs
	if len(runs) < manyTools || s.Pieces > 0 {
		return nil
	}
	most := usualRun(runs)
	switch {
	case most == 1:
		return fmt.Errorf("%s: column %q, which may name the tool, is another one in each of %d rows: %w", s.Path, p.rec.Tool, len(runs), errTools)
	case float64(most) < float64(windows)/2*p.length.Seconds()*p.channels[0].Rate:
		return fmt.Errorf("%s: column %q, which may name the tool, is another one %d times, most often for %d rows or less, and the reference of a tool alone takes %d windows of %v: %w",
			s.Path, p.rec.Tool, len(runs), most, windows, p.length, errTools)
	}
	return nil
}

// indexNames are names of columns that count rows.
var indexNames = []string{"", "unnamed", "index", "row", "rownumber", "sample", "id"}

// milliNames are names of columns of the milliseconds of a time.
var milliNames = []string{"ms", "millitm", "msec", "millis", "milliseconds", "millisecond", "millisekunden"}

// propose says what a recording seems to be. Rate and tool are what a person says of it: samples a second, 0 if nothing;
// the column of the tool, "none" if no column names it, empty if nothing; columns that are channels although they look like a clock.
func propose(s *inspect.Summary, rate float64, tool string, keep []string) (*proposal, error) {
	p := &proposal{rec: s.Written, keep: keep}
	var names []string
	for _, c := range s.Channels {
		names = append(names, c.Name)
	}
	if err := p.rank(s, names, tool); err != nil {
		return nil, err
	}
	if of := s.NamesSensors(); of != "" && of != p.roles["tool"] && of != p.roles["hole"] {
		return nil, fmt.Errorf("%s: column %q seems to name the sensor of each row, and Flank reads a row for each time with a column for each sensor: write it so, as pivot of pandas does", s.Path, of)
	}
	p.clocked = s.Clock != nil && rate == 0
	if err := p.readClock(s.Clock, rate); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	p.dated = signal.HasClock(s.Start) && (s.Clock == nil || p.rec.Time != "" || !signal.HasClock(s.Clock.Start))
	for _, c := range onceEach(s.Channels) {
		if s.Clock != nil && (c.Name == s.Clock.Column || c.Name == s.Clock.Date && c.Text) {
			continue
		}
		p.column(&c, names)
	}
	if len(p.channels) == 0 {
		why := ""
		for _, l := range p.left[:min(len(p.left), 5)] {
			why += fmt.Sprintf("; %q: %s", l[0], l[1])
		}
		return nil, fmt.Errorf("%s: no column of numbers can be a channel: give --keep COLUMN for those that are, or write the layout by hand, see schemas/layout.md%s", s.Path, why)
	}
	if rows := s.Channels[0].Samples(); len(p.channels) > 50 && rows*10 < int64(len(p.channels)) {
		return nil, fmt.Errorf("%s: it has %d columns of numbers and %d rows: it seems that each row is a channel: turn the table, so that each column is one", s.Path, len(p.channels), rows)
	}
	for _, c := range p.channels {
		if i := slices.Index(names, c.Name); i >= 0 && slices.Contains(names[i+1:], c.Name) {
			return nil, fmt.Errorf("%s: two columns are named %q: give one another name in the header, or remove it", s.Path, c.Name)
		}
		if c.Rate == 0 && s.Unclear != "" {
			return nil, fmt.Errorf("%s: column %q has dates of which the day or the month may come first: give --time-format \"D/M/YYYY hh:mm:ss\" or \"M/D/YYYY hh:mm:ss\"", s.Path, s.Unclear)
		}
		if c.Rate == 0 {
			return nil, fmt.Errorf("%s: nothing says how many samples a second channel %s has%s: give --rate HZ, or --rate 1 for a table with one row a second", s.Path, c.Name, notRead(s))
		}
	}
	var seconds float64
	for _, c := range s.Channels {
		seconds = max(seconds, c.Duration().Seconds())
	}
	if len(s.Runs) > 1 && p.rec.Tool != "" { // of its tools
		seconds = min(seconds, float64(usualRun(s.Runs))/p.channels[0].Rate)
	}
	return p, p.choose(s.Path, seconds)
}

// notRead names the columns that may hold times and are not read as such.
func notRead(s *inspect.Summary) string {
	text := ""
	for _, c := range s.Channels {
		switch {
		case !slices.Contains(s.Idle, c.Name):
		case len(c.Words) > 0:
			text += fmt.Sprintf(", and column %q, such as %q, is not read as times, or these do not rise", c.Name, c.Words[0])
		default:
			text += fmt.Sprintf(", and column %q, from %v to %v, does not rise as times do", c.Name, c.Min, c.Max)
		}
	}
	return text
}

// onceEach returns channels without those that record another one again, in a group of their own: under their names alone they are
// sessions. Groups of one name that record at the same time are channels of their own.
func onceEach(channels []inspect.Channel) (once []inspect.Channel) {
	first, last := make(map[string]int), make(map[string]inspect.Channel)
	for _, c := range channels {
		name, grouped := strings.CutPrefix(c.Name, c.Group+"/")
		before, seen := last[name]
		_, err := strconv.Atoi(c.Group) // formats number sessions that say no start
		if end := before.Start.Add(before.Duration()); grouped && seen && c.Rate == before.Rate && (err == nil || !c.Start.IsZero() && !c.Start.Before(end)) {
			once[first[name]].Name = name
			last[name] = c
			continue
		}
		if grouped && !seen {
			first[name], last[name] = len(once), c
		}
		once = append(once, c)
	}
	return once
}

// readClock takes the column of times into account, unless a person says another rate.
func (p *proposal) readClock(c *inspect.Clock, rate float64) error {
	switch {
	case c == nil:
	case rate != 0 && (math.Abs(c.Step*rate-1) > 0.01 || c.Doubt != "" && !c.ByRate):
		p.leave(c.Column, fmt.Sprintf("--rate says the rate, and the column says %.6g Hz", 1/c.Step))
	case c.Doubt != "" && rate == 0:
		return fmt.Errorf("column %q: %s: give --rate HZ, the samples a second", c.Column, c.Doubt)
	case rate == 0 && !c.Stamps && c.Unit == 0 && c.Step == math.Trunc(c.Step):
		return fmt.Errorf("column %q counts in steps of %v, which may be seconds, milliseconds or rows: give --rate HZ, the samples a second", c.Column, c.Step)
	case c.Disorder() != "":
		p.leave(c.Column, c.Disorder()+"; the rate is taken from all of them")
	default:
		p.rec.Time, p.rec.Date, p.rec.TimeUnit, p.rec.TimeFormat, p.counts = c.Column, c.Date, c.Days, c.Format, c.Counts
		if p.counts != "" && signal.HasClock(c.Start) {
			p.counts += c.Start.Format(", from 2006-01-02 on")
			if c.Step >= 1 && c.Unit == 1 {
				p.counts += "; if it is an uptime in milliseconds, give --rate"
			}
		}
	}
	return nil
}

// leave notes a column that is not used.
func (p *proposal) leave(name, why string) {
	if name == "" {
		name = "(unnamed)"
	}
	p.left = append(p.left, [2]string{name, why})
}

// column finds what a column is for, among the names of all columns.
func (p *proposal) column(c *inspect.Channel, names []string) {
	if p.role(c) {
		return
	}
	if why := p.whyNot(c, names); why != "" {
		p.leave(c.Name, why)
		return
	}
	p.channel(c, names)
}

// role takes a column that names a tool, a hole or a label, or leaves it out because another one is better. It reports false
// for a column that has no such role.
func (p *proposal) role(c *inspect.Channel) bool {
	key := ""
	for _, r := range inspect.Roles {
		if p.roles[r.Key] == c.Name || r.Fits(c) {
			key = r.Key
			break
		}
	}
	if key == "" || c.Name == "" {
		return false
	}
	switch best := p.roles[key]; best {
	case c.Name:
	case "none":
		p.leave(c.Name, "--tool says that no column names the tool")
		return true
	default:
		remedy := map[bool]string{true: "give --tool COLUMN", false: "correct the layout"}[key == "tool"]
		p.leave(c.Name, fmt.Sprintf("it competes with %q, which is taken for the %s: if that is wrong, %s", best, key, remedy))
		return true
	}
	_, unit, _ := table.SplitUnit(c.Name)
	if wear, um := strings.CutSuffix(key, "_um"); um && !c.Text && (unit == "mm" || strings.HasSuffix(source.PlainName(c.Name), "mm") || unit == "" && c.Max < 5) {
		key = wear + "_mm"
	}
	switch um := unit == "µm" || unit == "um"; {
	case strings.HasPrefix(key, "vb_") && um && c.Max > 0 && c.Max < 5:
		p.notes = append(p.notes, fmt.Sprintf("column %q has a wear of at most %.4g µm: is it in mm? Then correct its name", c.Name, c.Max))
	case strings.HasPrefix(key, "vb_") && unit == "mm" && c.Max > 20:
		p.notes = append(p.notes, fmt.Sprintf("column %q has a wear of up to %.4g mm: is it in µm? Then correct its name", c.Name, c.Max))
	}
	if key == "state" {
		p.noteStates(c)
	}
	*p.columnOf(key) = c.Name
	if strings.HasPrefix(key, "vb_") || key == "state" && p.label == "" {
		p.label = key
	}
	return true
}

// whyNot says why a column cannot be a channel, nothing if it can. Names are the names of all columns.
func (p *proposal) whyNot(c *inspect.Channel, names []string) string {
	kept, plain := slices.Contains(p.keep, c.Name), source.PlainName(c.Name)
	switch {
	case kept && !c.Text:
		return ""
	case c.Name == "" && c.Leak.Why() == "":
		return "it has no name: name it in the header if it is a channel"
	case slices.Contains(milliNames, plain) && c.Min >= 0 && c.Max < 1000:
		return "it seems to hold the milliseconds of the time, which are read only in the column of times: join them if stamps to the second are too coarse"
	case slices.Contains(indexNames, plain), inspect.NamesTime(c.Name):
		return "it seems to count rows or time"
	case c.Text:
		if why := p.whyText(c, names); why != "" {
			return why
		}
		if i := slices.IndexFunc(c.Words, func(w string) bool { _, err := strconv.ParseFloat(w, 64); return err != nil }); i >= 0 {
			return fmt.Sprintf("it is text, such as %q", c.Words[i])
		}
		return "it is text"
	case c.Leak.Why() != "":
		return c.Leak.Why() + ": give --keep COLUMN if it is a channel"
	case source.SaysLabel(c.Name, names) != "":
		return fmt.Sprintf("its name says %s, which is a label and no measurement: write states as words, such as healthy and worn, or give --keep COLUMN if it is a channel", source.SaysLabel(c.Name, names))
	case c.Constant():
		return fmt.Sprintf("it is %v in every row", c.Min)
	case temperature.MatchString(strings.ToLower(c.Name)) || slices.Contains([]string{"°C", "°F", "degC", "degF", "C", "F", "K"}, c.Unit):
		return "it seems to be a temperature, which follows time more than wear: give --keep COLUMN if it is a channel"
	case c.Count > 0 && c.Missing == c.Count:
		return "it has no values"
	case c.Slower != "":
		return c.Slower
	}
	return ""
}

// channel makes a column a channel, among the names of all columns.
func (p *proposal) channel(c *inspect.Channel, names []string) {
	ch := signal.Channel{Name: c.Name, Unit: c.Unit, Rate: roundRate(c.Rate, p.clocked)}
	if name, unit, ok := table.SplitUnit(c.Name); ok {
		if ch.Unit == "" {
			ch.Unit = unit
		}
		if slices.Index(names, c.Name) == source.FindName(name, names) {
			ch.Name = name // which stands for the column
		}
	}
	var why string
	ch.Kind, why = guessKind(c.Name, ch.Unit)
	p.channels = append(p.channels, proposedChannel{ch, why})
}

// columnOf returns the key of `recording` that names a column.
func (p *proposal) columnOf(key string) *string {
	r := &p.rec
	return map[string]*string{
		"tool": &r.Tool, "hole": &r.Hole, "machine": &r.Machine, "state": &r.State,
		"vb_max_um": &r.VBMax, "vb_mean_um": &r.VBMean, "vb_max_mm": &r.VBMaxMM, "vb_mean_mm": &r.VBMeanMM,
	}[key]
}

// clockError is by what part a clock may be wrong, so that a rate of two digits is meant, and not one such as 4096.
const clockError = 0.0005

// roundRate takes the noise of a clock's steps out of a rate, and its error if the rate is by a clock. A window wants a whole number
// of millihertz, or of milliseconds between rows.
func roundRate(rate float64, clocked bool) float64 {
	if rate == 0 {
		return 0
	}
	if ms := math.Round(1000 / rate); ms > 0 && math.Abs(1000/rate/ms-1) < 1e-9 {
		return 1000 / ms
	}
	if scale := math.Pow(10, math.Floor(math.Log10(rate))-1); clocked && math.Abs(math.Round(rate/scale)*scale/rate-1) < clockError {
		rate = math.Round(rate/scale) * scale
	}
	return max(math.Round(1000*rate)/1000, 0.001)
}

// temperature is how names of temperatures begin or end.
var temperature = regexp.MustCompile(`^temp([_ .]|erat|$)|[_ .]temp(erat\w*)?\d*$|temperat`)

// unitKinds says what kind of channel has a unit, nameKinds what kind has a name.
var unitKinds = map[string]signal.Kind{
	"g": signal.Vibration, "m/s²": signal.Vibration, "m/s2": signal.Vibration, "m/s^2": signal.Vibration, "mm/s²": signal.Vibration, "mg": signal.Vibration,
	"N": signal.Force, "kN": signal.Force, "lbf": signal.Force, "Nm": signal.Torque, "N·m": signal.Torque, "N*m": signal.Torque, "kNm": signal.Torque,
	"A": signal.Current, "mA": signal.Current, "V": signal.Voltage, "mV": signal.Voltage, "W": signal.Power, "kW": signal.Power, "Pa": signal.Acoustic,
	"mm": signal.Position, "µm": signal.Position, "um": signal.Position, "rpm": signal.Velocity, "rev/min": signal.Velocity, "mm/min": signal.Velocity, "1/min": signal.Velocity,
}

var nameKinds = []struct {
	pattern *regexp.Regexp
	kind    signal.Kind
}{
	{regexp.MustCompile(`current[_ ]?(feed|speed|veloc|rpm)`), signal.Velocity}, // the present one
	{regexp.MustCompile(`vib|acc(el)?(_|\b|[xyz0-9])|acceleration|^a[xyz]\d*(_|\b)|bearing`), signal.Vibration},
	{regexp.MustCompile(`torque|moment|^m[xyz](_|\b)`), signal.Torque},
	{regexp.MustCompile(`force|thrust|^f_?[xyzcfp]?\d*(_|\b)`), signal.Force},
	{regexp.MustCompile(`^ae(_|\b)|(_|\b)ae$|acoustic|audio|micro|sound|noise`), signal.Acoustic},
	{regexp.MustCompile(`current|^i[uvwxyz]?(_|\b)|amp(ere|s)?(_|\b)|^smc(ac|dc)`), signal.Current},
	{regexp.MustCompile(`volt|^v[uvw](_|\b)`), signal.Voltage},
	{regexp.MustCompile(`power|watt|load`), signal.Power},
	{regexp.MustCompile(`pos|psition|err(or)?_`), signal.Position},
	{regexp.MustCompile(`speed|veloc|feed|rpm`), signal.Velocity},
}

// guessKind returns the kind of a channel, and what it was guessed from; empty if from
// nothing.
func guessKind(name, unit string) (signal.Kind, string) {
	if k, ok := unitKinds[unit]; ok {
		return k, "unit"
	}
	lower := strings.ToLower(name)
	for _, n := range nameKinds {
		if n.pattern.MatchString(lower) {
			return n.kind, "name"
		}
	}
	return signal.Vibration, ""
}

// Least windows of a recording and samples in a window that are aimed at.
const (
	enoughWindows = 40
	enoughSamples = 256
	leastSamples  = 16
)

// choose makes rows that come once a second or more seldom features, and chooses the
// length of windows. The recording, or most of its tools, lasts so many seconds.
func (p *proposal) choose(path string, seconds float64) error {
	slowest := slices.MinFunc(p.channels, func(a, b proposedChannel) int { return int(math.Copysign(1, a.Rate-b.Rate)) }).Rate
	var lengths []time.Duration
	switch {
	case slowest <= 1:
		for i := range p.channels {
			p.channels[i].Kind, p.channels[i].why = signal.Feature, "rate"
		}
		lengths = []time.Duration{seconds1(1 / slowest)} // one row
	case slowest < leastSamples:
		lengths = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, seconds1(leastSamples / slowest)}
		lengths = slices.DeleteFunc(lengths, func(d time.Duration) bool { return d.Seconds()*slowest < leastSamples-0.5 })
	default:
		for _, d := range []time.Duration{time.Second, 500 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond} {
			if seconds >= enoughWindows*d.Seconds() && d.Seconds()*slowest >= enoughSamples {
				lengths = append(lengths, d)
			}
		}
		lengths = append(lengths, time.Second, 2*time.Second, 5*time.Second, 10*time.Second, seconds1(leastSamples/slowest))
	}
	layout, err := p.layout(path)
	if err != nil {
		return err
	}
	var bad error
	for _, d := range lengths {
		if err := (window.Spec{Length: d}).Check(layout); err != nil {
			bad = errors.Join(bad, err)
			continue
		}
		p.length = d
		return nil
	}
	return fmt.Errorf("%s: no length of windows suits all channels: give --window: %w", path, bad)
}

func seconds1(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// layout returns the channels as a layout called after the file.
func (p *proposal) layout(path string) (*signal.Layout, error) {
	var cs []signal.Channel
	for _, c := range p.channels {
		cs = append(cs, c.Channel)
	}
	return signal.NewLayout(layoutName(path), cs)
}

func layoutName(path string) string { return source.Recording{Path: path}.Name() }
