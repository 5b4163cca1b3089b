package oracle

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// script plays the words of a script to a machine, and returns what is published in words.
//
//	T1:FFh     windows of tool T1, a second each, of epoch a: F faulty, h healthy, u unknown
//	b/T1:F     of epoch b
//	a-3/T1:F   the window with number 3 of epoch a
//	T1#x:F     of the life x
//	+61s       time goes by
//	.          a tick
//	!ack       a command: of the tool in the spindle, or of the machine
//	!ack(2)    of alarm 2
//	!out*T2    of tool T2
//	!rename    the machine gets another name
type script struct {
	m      *Machine
	now    time.Time
	number map[string]uint64
	sent   int
	out    []string
	seen   *[]Alert // nil, or where alerts are kept
}

var actions = map[string]string{
	"ack": "acknowledge", "shelve": "shelve", "unshelve": "unshelve", "supp": "suppress", "unsupp": "unsuppress", "out": "out_of_service", "in": "in_service",
	"new": "new_tool", "retire": "retire", "false": "mark_false", "notfalse": "unmark_false",
}

func play(m *Machine, words string) string {
	s := &script{m: m, now: noon, number: make(map[string]uint64)}
	return s.play(words)
}

func (s *script) play(words string) string {
	s.out = nil
	for _, word := range strings.Fields(words) {
		switch {
		case word == ".":
			s.tell(s.m.Tick(Tick{Now: s.now}))
		case word[0] == '+':
			s.pass(word[1:])
		case word == "!rename":
			s.sent++
			next, out := Rename(s.m, fmt.Sprint("c", s.sent), s.now, s.now)
			s.m, s.number = next, make(map[string]uint64)
			s.tell(out)
		case word[0] == '!':
			s.command(word[1:])
		default:
			s.windows(word)
		}
	}
	return strings.Join(s.out, " ")
}

func (s *script) pass(d string) {
	long, err := time.ParseDuration(d)
	if err != nil {
		panic(err)
	}
	s.now = s.now.Add(long)
}

func (s *script) command(word string) {
	s.sent++
	c := Command{ID: fmt.Sprint("c", s.sent), At: s.now, Issued: s.now, Until: s.now.Add(10 * time.Second)}
	word, c.Tool, c.OfTool = strings.Cut(word, "*")
	word, of, named := strings.Cut(strings.TrimSuffix(word, ")"), "(")
	if c.Action = actions[word]; c.Action == "" {
		panic(word)
	}
	switch {
	case named:
		c.Incident, _ = strconv.Atoi(of)
	case c.Action == "acknowledge":
		if c.Incident = -1; len(s.m.tools) > 0 {
			c.Incident = cmp.Or(s.m.spindle().alarm.incident, -1)
		}
	}
	out := s.m.Command(c)
	if s.tell(out); out.Answer != Done {
		s.out = append(s.out, string(out.Answer))
	}
}

func (s *script) windows(word string) {
	of, verdicts, _ := strings.Cut(word, ":")
	epoch, tool, found := strings.Cut(of, "/")
	if !found {
		epoch, tool = "a", of
	}
	epoch, number, fixed := strings.Cut(epoch, "-")
	tool, life, _ := strings.Cut(tool, "#")
	for _, v := range verdicts {
		w := Window{Tool: tool, Life: life, Epoch: epoch, Seq: s.number[epoch], Start: s.now, End: s.now.Add(time.Second), At: s.now, Now: s.now, Value: verdictOf(v)}
		if fixed {
			w.Seq, _ = strconv.ParseUint(number, 10, 64)
		} else {
			s.number[epoch]++
		}
		out := s.m.Window(w)
		if out.Place != InOrder {
			s.out = append(s.out, string(out.Place))
		}
		s.tell(out)
		s.now = s.now.Add(time.Second)
	}
}

func verdictOf(v rune) Verdict {
	switch v {
	case 'F':
		return Verdict{Outcome: "faulty", Score: 1}
	case 'u':
		return Verdict{Outcome: "unknown", Reason: "out_of_distribution", Score: 1}
	case 'a':
		return Verdict{Outcome: "unknown", Reason: "ambiguous"}
	case 'A':
		return Verdict{Outcome: "unknown", Reason: "ambiguous", Score: 1}
	}
	return Verdict{Outcome: "healthy"}
}

func (s *script) tell(out Outcome) {
	if s.seen != nil {
		*s.seen = append(*s.seen, out.Alerts...)
	}
	for _, a := range out.Alerts {
		text := a.State + "(" + a.Tool + ")"
		if a.Reason != "" {
			text += "=" + a.Reason
		}
		if !a.At.IsZero() {
			text += fmt.Sprintf("@%.0f", a.At.Sub(noon).Seconds())
		}
		s.out = append(s.out, text)
	}
	for _, a := range out.Advisories {
		s.out = append(s.out, "["+a.Kind+" "+a.State+"]")
	}
}

// usual are 2 of 3, latched, and five seconds after a call in which a tool that comes back is silent.
func usual() Settings {
	return Settings{K: 2, N: 3, Latch: true, MaxShelf: 8 * time.Hour, ReAlarm: 5 * time.Second, Threshold: 0.5}
}

func machineOf(s Settings) *Machine {
	return &Machine{Settings: s, Deployed: map[string]*Deployment{"": {Champion: Given}}}
}

func TestPromises(t *testing.T) {
	open, slow, patient := usual(), usual(), usual()
	open.Latch = false
	slow.OnHold, slow.OffHold = 3*time.Second, 3*time.Second
	patient.ReAlarm = 10 * time.Minute
	for _, c := range []struct {
		what     string
		settings Settings
		script   string
		want     string
	}{
		// When an alarm is raised.
		{"k of n", usual(), "T1:FhhF T1:F", "raised(T1)"},
		{"a window before the last n does not count", usual(), "T1:FhhFhh", ""},
		{"unknown windows do not count", usual(), "T1:FuuuuF", "raised(T1)"},
		{"ambiguous ones count as they were decided", usual(), "T1:FaA", "raised(T1)"},
		{"also against an alarm", usual(), "T1:FaaA", ""},
		{"on_hold", slow, "T1:FFF T1:F", "raised(T1)"},
		{"a hold does not run on in unknown windows", slow, "T1:FFuuuuF", ""},
		{"off_hold", slow, "T1:FFFFhhh T1:hh", "raised(T1) returned(T1)"},

		// States.
		{"not latched", open, "T1:FFhhh", "raised(T1) cleared(T1)=recovered"},
		{"latched", usual(), "T1:FFhhh", "raised(T1) returned(T1)"},
		{"reactivated", usual(), "T1:FFhhhFF", "raised(T1) returned(T1) reactivated(T1)"},
		{"acknowledged: the same wear is quiet", usual(), "T1:FF !ack T1:FFFF", "raised(T1) acknowledged(T1)"},
		{"acknowledged, and over", usual(), "T1:FF !ack T1:hhhFF", "raised(T1) acknowledged(T1) cleared(T1)=recovered raised(T1)"},
		{"returned, and acknowledged", usual(), "T1:FFhhh !ack", "raised(T1) returned(T1) acknowledged(T1) cleared(T1)=acknowledged"},
		{"acknowledged while it is on again: on_hold goes on", slow, "T1:FFFFhhhhhFFF !ack T1:F", "raised(T1) returned(T1) acknowledged(T1) cleared(T1)=acknowledged raised(T1)"},
		{"acknowledged twice", usual(), "T1:FF !ack !ack", "raised(T1) acknowledged(T1) refused"},
		{"nothing to acknowledge", usual(), "T1:h !ack", "refused"},
		{"an alarm that is closed", usual(), "T1:FF !ack T1:hhhFF !ack(1) !ack(2)", "raised(T1) acknowledged(T1) cleared(T1)=recovered raised(T1) refused acknowledged(T1)"},

		// Tools.
		{"the tool leaves", usual(), "T1:FF T2:h", "raised(T1) cleared(T1)=tool_change"},
		{"it comes back", usual(), "T1:FF T2:hhhh T1:h", "raised(T1) cleared(T1)=tool_change raised(T1)=tool_back"},
		{"it comes back soon: silent for re_alarm", usual(), "T1:FF T2:hh T1:F .  +2s . T1:F", "raised(T1) cleared(T1)=tool_change raised(T1)=tool_back@6"},
		{"re_alarm runs out before the next event", usual(), "T1:FF T2:h T1:F +60s T1:h", "raised(T1) cleared(T1)=tool_change raised(T1)=tool_back@6"},
		{"two tools in turn call once for re_alarm", patient, "T1:FF T2:h T1:F T2:h T1:F T2:h T1:F T2:h", "raised(T1) cleared(T1)=tool_change"},
		{"silent, it returns and is on again: one alert", usual(), "T1:FFh T2:h T1:hhF .", "raised(T1) cleared(T1)=tool_change raised(T1)=tool_back@6 returned(T1)@6"},
		{"its condition ends while it is silent: nothing", open, "T1:FFh T2:h T1:hh +60s .", "raised(T1) cleared(T1)=tool_change"},
		{"another alarm is not silent", open, "T1:FFh T2:h T1:hhFF", "raised(T1) cleared(T1)=tool_change raised(T1)"},
		{"its counted windows wait", usual(), "T1:F T2:FF T1:F", "raised(T2) cleared(T2)=tool_change raised(T1)"},
		{"it comes back acknowledged: nothing", usual(), "T1:FF !ack T2:h +60s T1:F !ack", "raised(T1) acknowledged(T1) cleared(T1)=tool_change refused"},
		{"and ends without an alert", usual(), "T1:FF !ack T2:h +60s T1:hhh T1:FF", "raised(T1) acknowledged(T1) cleared(T1)=tool_change raised(T1)"},
		{"it comes back returned", usual(), "T1:FFhhh T2:h T1:h", "raised(T1) returned(T1) cleared(T1)=tool_change raised(T1)=tool_back returned(T1)"},
		{"its first window makes it return", usual(), "T1:FFhh +60s T2:h T1:h", "raised(T1) cleared(T1)=tool_change raised(T1)=tool_back returned(T1)"},
		{"another life under the name", usual(), "T1#x:FF T1#y:h T1:F", "raised(T1) cleared(T1)=new_tool tool_is_new(T1)"},
		{"another life in the magazine", usual(), "T1#x:FF T2:h T1#y:h +60s .", "raised(T1) cleared(T1)=tool_change tool_is_new(T1)"},
		{"another life, twice", usual(), "T1:h T1#x:h T1:h T2:h T1#x:h T1#y:h", "tool_is_new(T1) tool_is_new(T1)"},
		{"declared new", usual(), "T1:FF !new*T1 T1:F", "raised(T1) cleared(T1)=new_tool tool_is_new(T1)"},
		{"declared new in the magazine", usual(), "T1:FF T2:h !new*T1 T1:F", "raised(T1) cleared(T1)=tool_change tool_is_new(T1)"},
		{"declared new, not remembered", usual(), "T1:h !new*T7", "refused"},
		{"acknowledged in the magazine", usual(), "T1:FF T2:h !ack(1) +60s T1:F", "raised(T1) cleared(T1)=tool_change acknowledged(T1)"},

		// Masks.
		{"shelved", usual(), "T1:h !shelve T1:FF !unshelve", "shelved(T1) unshelved(T1) raised(T1)"},
		{"a shelf ends at its time", usual(), "T1:h !shelve T1:FF +60s T1:F", "shelved(T1) unshelved(T1)=expired@11 raised(T1)@11"},
		{"a shelf is its tool's: it does not hide the next one", usual(), "T1:h !shelve T2:FF", "shelved(T1) raised(T2)"},
		{"and waits with its tool", usual(), "T1:FF !shelve T2:hhh T1:F !unshelve", "raised(T1) shelved(T1) cleared(T1)=tool_change unshelved(T1) raised(T1)"},
		{"it ends in the magazine", usual(), "T1:FF !shelve T2:h +60s .  T1:F", "raised(T1) shelved(T1) cleared(T1)=tool_change unshelved(T1)=expired@12 raised(T1)=tool_back"},
		{"a tool in the magazine is shelved by its alarm", usual(), "T1:FF T2:h !shelve(1) T1:F +60s .", "raised(T1) cleared(T1)=tool_change shelved(T1) unshelved(T1)=expired@13 raised(T1)@13"},
		{"a mask ends within re_alarm", patient, "T1:FF !shelve T2:h T1:F +20s . +600s .", "raised(T1) shelved(T1) cleared(T1)=tool_change unshelved(T1)=expired@12 raised(T1)=tool_back@601"},
		{"a new life has no shelf", usual(), "T1#x:F !shelve T1#y:FF", "shelved(T1) unshelved(T1)=new_tool tool_is_new(T1) raised(T1)"},
		{"declared new, it has no shelf", usual(), "T1:F !shelve !new*T1 T1:FF", "shelved(T1) unshelved(T1) tool_is_new(T1) raised(T1)"},
		{"came and went under the mask", usual(), "T1:h !supp T1:FFhhh !unsupp", "suppressed(T1) unsuppressed(T1) raised(T1) returned(T1)"},
		{"not latched, it leaves nothing", open, "T1:h !supp T1:FFhhh !unsupp", "suppressed(T1) unsuppressed(T1)"},
		{"a mask of the machine outlives the tool", usual(), "T1:h !out T2:FF !in", "out_of_service(T1) in_service(T2) raised(T2)"},
		{"the last mask counts", usual(), "T1:h !out !supp T1:FF !in !unsupp", "out_of_service(T1) suppressed(T1) in_service(T1) unsuppressed(T1) raised(T1)"},
		{"suppressed twice", usual(), "T1:h !supp !supp", "suppressed(T1) refused"},
		{"a mask of a tool", usual(), "T1:h !supp*T1 T1:FF T2:FF !unsupp*T1 T1:h", "suppressed(T1) raised(T2) unsuppressed(T1) cleared(T2)=tool_change raised(T1)=tool_back"},
		{"of the tool and of the machine", usual(), "T1:h !out*T1 !out T1:FF !in !in*T1", "out_of_service(T1) out_of_service(T1) in_service(T1) in_service(T1) raised(T1)"},
		{"of a tool that is not remembered", usual(), "T1:h !out*T2 !in*T1", "refused refused"},

		// Retired, renamed, false alarms.
		{"retired", usual(), "T1:FF !shelve !retire !ack(1)", "raised(T1) shelved(T1) unshelved(T1) cleared(T1)=retired retired(T1) unknown"},
		{"nothing is left", usual(), "T1:FF !out !retire T1:F T1:F", "raised(T1) out_of_service(T1) cleared(T1)=retired retired(T1) raised(T1)"},
		{"renamed", patient, "T1:FF !rename T1:F", "raised(T1) renamed(T1) raised(T1)=tool_back"},
		{"renamed, acknowledged", usual(), "T1:FF !ack !rename T1:F T1:hhh", "raised(T1) acknowledged(T1) renamed(T1)"},
		{"renamed, shelved", usual(), "T1:FF !shelve !rename T1:F +60s .", "raised(T1) shelved(T1) renamed(T1) unshelved(T1)=expired@12 raised(T1)@12"},
		{"renamed: another spool, another tool", usual(), "T1:F !rename T2:h", "renamed(T1)"},
		{"marked false", usual(), "T1:FF !ack T1:hhh !false(1) !false(1) !notfalse(1) !false(2)", "raised(T1) acknowledged(T1) cleared(T1)=recovered marked_false(T1) refused unmarked_false(T1) refused"},

		// Order.
		{"a repeat", usual(), "T1:hF a-1/T1:F T1:F", "repeat raised(T1)"},
		{"late windows move nothing", usual(), "a-9/T1:h a-3/T1:FF", "late repeat"},
		{"a number far ahead mutes nothing", usual(), "T1:h a-900/T1:h T1:FF", "raised(T1)"},
		{"unless another one follows it", usual(), "T1:h a-900/T1:h a-901/T1:h T1:FF", "late late"},
		{"a new spool with the same tool", usual(), "T1:F b/T1:F", "raised(T1)"},
		{"a new spool with another tool", usual(), "T1:FF b/T2:hhh", "raised(T1) provisional provisional cleared(T1)=tool_change"},
		{"its windows count for their own tool", usual(), "T1:h b/T2:FFh", "provisional provisional raised(T2)=tool_back"},
		{"one stray window", usual(), "T1:F b/T9:F T1:F", "provisional raised(T1)"},
		{"two ingesters, other tool", usual(), "T1:h b/T9:h T1:h b/T9:F T1:h b/T9:F T1:h b/T9:F", "provisional rival [two_ingesters raised] rival rival"},
		{"two ingesters, same tool: the first one is judged", usual(), "T1:h b/T1:h T1:F b/T1:h T1:F b/T1:h T1:F", "rival [two_ingesters raised] raised(T1) rival"},
		{"one ingester for a minute", usual(), "T1:h b/T1:h T1:h b/T1:h T1:" + strings.Repeat("h", 60), "rival [two_ingesters raised] [two_ingesters cleared]"},
		{"the second one takes over after a minute", usual(), "T1:h b/T1:h T1:h b/T1:h +61s b/T1:FF", "rival [two_ingesters raised] raised(T1)"},
		{"what an old spool brings", usual(), "T1:h b/T1:h +61s b/T1:h a/T1:FF", "rival [two_ingesters raised] rival"},

		// Commands.
		{"of a machine that is not known", usual(), "!out", "unknown"},
	} {
		if got := play(machineOf(c.settings), c.script); got != c.want {
			t.Errorf("%s: %s\n got %q\nwant %q", c.what, c.script, got, c.want)
		}
	}
}

// Windows that overlap do not cut twice.
func TestOverlaps(t *testing.T) {
	s := usual()
	s.OnHold = 3 * time.Second
	m := machineOf(s)
	raised := 0
	for i := range 20 {
		start := noon.Add(time.Duration(i) * time.Second / 4)
		out := m.Window(Window{Tool: "T1", Epoch: "a", Seq: uint64(i), Start: start, End: start.Add(time.Second), At: noon, Value: verdictOf('F')})
		if len(out.Alerts) > 0 {
			raised = i
		}
	}
	if raised != 12 { // from the second window on a quarter of a second each
		t.Errorf("raised by window %d", raised)
	}
}

// Settings hold from the next window on, and windows that were counted stay as they were.
func TestOtherSettings(t *testing.T) {
	m := machineOf(usual())
	s := &script{m: m, now: noon, number: make(map[string]uint64)}
	s.play("T1:Fhh")
	m.Settings.N = 4
	if got := s.play("T1:F"); got != "raised(T1)" {
		t.Errorf("2 of 4: %q", got)
	}
	m.Settings.Threshold = 1
	s.play("T1:hhhh")
	m.Settings.Latch = false
	if got := s.play("T1:F"); got != "cleared(T1)=recovered" {
		t.Errorf("not latched any more: %q", got)
	}
	m.Settings.Threshold = 1.5
	if got := s.play("T1:FFFF"); got != "" {
		t.Errorf("with a threshold that no window reaches: %q", got)
	}
}

// A machine that no model watches says so, until windows have been judged for a minute.
func TestRefused(t *testing.T) {
	s := &script{m: machineOf(usual()), now: noon, number: make(map[string]uint64)}
	s.play("T1:h")
	s.m.Unreadable(s.now, s.now)
	if got := s.play("T1:" + strings.Repeat("h", 60)); got != "" {
		t.Errorf("within a minute: %q", got)
	}
	if got := s.play("T1:h"); got != "[windows_refused cleared]" {
		t.Errorf("a minute later: %q", got)
	}
}

// A shadow has the alarm that it would raise, which no mask hides and no one acknowledges.
func TestTrial(t *testing.T) {
	m := machineOf(usual())
	m.Deployed[""].Shadows = []Shadow{{Model: &Model{ID: "shadow", Judge: Given.Judge}}}
	s := &script{m: m, now: noon, number: make(map[string]uint64)}
	for _, c := range []struct{ words, want string }{
		{"T1:FF", "raised(T1) raised(T1)"},
		{"!ack", "acknowledged(T1)"},
		{"T2:hhhh", "cleared(T1)=tool_change cleared(T1)=tool_change"},
		{"!supp T1:hh", "suppressed(T2) raised(T1)=tool_back"},
		{"T1:h", "returned(T1)"},
		{"T1:FF", "reactivated(T1)"},
		{"!new*T1", "cleared(T1)=new_tool tool_is_new(T1)"},
	} {
		if got := s.play(c.words); got != c.want {
			t.Errorf("%s: %q, want %q", c.words, got, c.want)
		}
	}
}

// A command that comes again is not carried out, and one of another time is refused.
func TestCommandsOnce(t *testing.T) {
	m := machineOf(usual())
	play(m, "T1:h")
	c := Command{ID: "x", Action: "suppress", At: noon, Issued: noon}
	for _, want := range []Answer{Done, Again} {
		if got := m.Command(c).Answer; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, age := range []time.Duration{oldest + time.Second, -ahead - time.Second} {
		if got := m.Command(Command{ID: fmt.Sprint(age), Action: "unsuppress", At: noon, Issued: noon.Add(-age)}).Answer; got != RefusedAnswer {
			t.Errorf("issued %v before it came: %s", age, got)
		}
	}
}

// Severity is "warning" where someone must act now.
func TestSeverity(t *testing.T) {
	m := machineOf(usual())
	s := &script{m: m, now: noon, number: make(map[string]uint64)}
	for _, c := range []struct{ words, want string }{
		{"T1:FF", "raised=warning"},
		{"!supp", "suppressed=info"},
		{"!unsupp", "unsuppressed=warning"},
		{"!new*T2", ""},
		{"T2:hh", "cleared=info"},
		{"!supp*T1", "suppressed=info"},
		{"!unsupp*T1", "unsuppressed=info"}, // T1 is in the magazine
	} {
		var got []string
		for _, a := range s.alerts(c.words) {
			got = append(got, a.State+"="+a.Severity)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.words, text, c.want)
		}
	}
}

// alerts plays one word and returns its alerts.
func (s *script) alerts(word string) (all []Alert) {
	s.seen = &all
	s.play(word)
	s.seen = nil
	return all
}

// A tool is forgotten after 64 others: it is then a used one. It is a new one after 1,064 others. An epoch is new after 256
// others.
func TestForgotten(t *testing.T) {
	const used = "[used_reference raised]"
	for _, c := range []struct {
		others       int
		script, want string
	}{
		{63, "a-9000/T#x:h", "raised(T)=tool_back"},
		{64, "a-9000/T#x:h", used},
		{64, "a-9000/T:h", used},
		{64, "a-9000/T#x:h a-9001/X1:h", used + " [used_reference cleared]"},
		{64, "a-9000/T#y:h", "tool_is_new(T)"},
		{64, "!new*T a-9000/T#x:h", "tool_is_new(T)"},
		{64, "!new*Y", "refused"},
		{64, "!retire a-9000/T#x:h", "retired(X63)"},
		{64, "!rename T#x:h T#x:h", "renamed(X63) " + used},
		{1063, "a-9000/T#x:h", used},
		{1064, "a-9000/T#x:h", ""},
	} {
		m := machineOf(usual())
		play(m, "T#x:FF")
		for i := range c.others {
			if out := m.Window(Window{Tool: fmt.Sprint("X", i), Epoch: "a", Seq: uint64(100 + i), At: noon.Add(time.Minute), Value: verdictOf('h')}); i > 0 && len(out.Alerts)+len(out.Advisories) > 0 {
				t.Fatalf("tool %d: %+v", i, out)
			}
		}
		if got := play(m, "+2m "+c.script); got != c.want {
			t.Errorf("after %d other tools, %s: %q, want %q", c.others, c.script, got, c.want)
		}
	}
	for others, want := range map[int]Place{255: Repeat, 256: InOrder} {
		m := machineOf(usual())
		play(m, "T:hh")
		for i := range others {
			m.Window(Window{Tool: "T", Epoch: fmt.Sprint("e", i), At: noon, Value: verdictOf('h')})
		}
		if got := m.Window(Window{Tool: "T", Epoch: "a", Seq: 1, At: noon, Value: verdictOf('h')}).Place; got != want {
			t.Errorf("after %d other epochs: %q, want %q", others, got, want)
		}
	}
}

// Silence counts by the monitor's clock.
func TestSilence(t *testing.T) {
	m := machineOf(usual())
	m.Silence = time.Minute
	play(m, "T1:h")
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		what string
		do   func() Outcome
		want string
	}{
		{"not yet", func() Outcome { return m.Tick(Tick{Now: at(59)}) }, ""},
		{"the monitor is behind", func() Outcome { return m.Tick(Tick{Now: at(61), Behind: true}) }, ""},
		{"no window for a minute", func() Outcome { return m.Tick(Tick{Now: at(62)}) }, "[silence raised]"},
		{"people know", func() Outcome { return m.Tick(Tick{Now: at(63)}) }, ""},
		{"a window, if only one that is refused", func() Outcome { return m.Unreadable(at(70), at(70)) }, "[silence cleared] [windows_refused raised]"},
		{"the broker had trouble", func() Outcome { return m.Tick(Tick{Now: at(131), Trouble: at(100)}) }, ""},
		{"a minute later", func() Outcome { return m.Tick(Tick{Now: at(160), Trouble: at(100)}) }, "[silence raised]"},
	} {
		s := &script{}
		if s.tell(c.do()); strings.Join(s.out, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.what, s.out, c.want)
		}
	}
}
