package route

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/schemas"
)

func TestFilter(t *testing.T) {
	at := func(m, clock string) *Event {
		e := opened(t, alert(m, 1, event.Raised))
		sent, err := time.Parse(time.RFC3339, clock)
		if err != nil {
			t.Fatal(err)
		}
		e.Sent = sent
		return e
	}
	const noon = "2026-11-02T12:00:00Z"
	raised, cleared := at(drill, noon), opened(t, alert(drill, 2, event.Cleared))
	sensor := opened(t, advisory(drill, 3, "sensor", "ch07", event.Raised))
	evidence := opened(t, message(event.Evidence{ID: "e", Group: "tcm-monitor", Machine: drill}, "e", event.EvidenceType, drill, monday))
	unheard := opened(t, message(map[string]any{"group": "tcm-monitor", "machine": drill, "new": 1}, "n", "io.tcm.news.v1", drill, monday))
	for why, tc := range map[string]struct {
		f    Filter
		e    *Event
		want bool
	}{
		"no filter":                        {Filter{}, raised, true},
		"no filter, a type of later":       {Filter{}, unheard, true},
		"warning wants a warning":          {Filter{Severity: "warning"}, cleared, false},
		"warning has one":                  {Filter{Severity: "warning"}, raised, true},
		"info lets all pass":               {Filter{Severity: "info"}, cleared, true},
		"evidence has no severity":         {Filter{Severity: "warning"}, evidence, true},
		"alerts only":                      {Filter{Kinds: []string{"alert"}}, sensor, false},
		"an advisory by its kind":          {Filter{Kinds: []string{"alert", "sensor"}}, sensor, true},
		"an advisory of another kind":      {Filter{Kinds: []string{"silence"}}, sensor, false},
		"every advisory":                   {Filter{Kinds: []string{"advisory"}}, sensor, true},
		"a type of later is of no kind":    {Filter{Kinds: []string{"alert", "advisory", "evidence"}}, unheard, false},
		"states":                           {Filter{States: []string{"raised"}}, cleared, false},
		"evidence has no state":            {Filter{States: []string{"raised"}}, evidence, true},
		"a machine by its last part":       {Filter{Machines: []string{"usk*"}}, raised, true},
		"another machine":                  {Filter{Machines: []string{"lathe"}}, raised, false},
		"a star ends at a slash":           {Filter{Machines: []string{"acme/*"}}, raised, false},
		"a line":                           {Filter{Machines: []string{"acme/*/*/line1/*"}}, raised, true},
		"within the hours":                 {Filter{Hours: "06:00-14:00", Zone: "UTC"}, raised, true},
		"the end is not within":            {Filter{Hours: "06:00-12:00", Zone: "UTC"}, raised, false},
		"the beginning is":                 {Filter{Hours: "12:00-13:00", Zone: "UTC"}, raised, true},
		"in another zone it is later":      {Filter{Hours: "06:00-13:00", Zone: "Europe/Madrid"}, raised, false},
		"in summer by two hours":           {Filter{Hours: "14:00-15:00", Zone: "Europe/Madrid"}, at(drill, "2026-07-02T12:30:00Z"), true},
		"over midnight, before it":         {Filter{Hours: "22:00-06:00", Zone: "UTC"}, at(drill, "2026-11-02T23:59:59Z"), true},
		"over midnight, after it":          {Filter{Hours: "22:00-06:00", Zone: "UTC"}, at(drill, "2026-11-02T05:59:59Z"), true},
		"over midnight, not at noon":       {Filter{Hours: "22:00-06:00", Zone: "UTC"}, raised, false},
		"until the end of the day":         {Filter{Hours: "22:00-24:00", Zone: "UTC"}, at(drill, "2026-11-02T23:59:59Z"), true},
		"the end of the day is not at 0:0": {Filter{Hours: "22:00-24:00", Zone: "UTC"}, at(drill, "2026-11-02T00:00:00Z"), false},
	} {
		f, w := tc.f.compile()
		if w != nil {
			t.Errorf("%s: %v", why, w)
			continue
		}
		if got := f.stops(tc.e); (got == "") != tc.want {
			t.Errorf("%s: passes is %v, %q", why, !tc.want, got)
		}
	}
	if _, err := (Filter{Hours: "24:00-00:00", Zone: "UTC"}).compile(); err == nil { // one moment: no event would ever pass
		t.Error("hours that never are pass")
	}
}

// A route can be for each state and each kind of advisory that monitors publish.
func TestFilterKnowsEveryEvent(t *testing.T) {
	for _, state := range event.AlertStates {
		checkOnly(t, Filter{States: []string{string(state)}}, opened(t, alert(drill, 1, state)))
	}
	for _, kind := range event.AdvisoryKinds {
		checkOnly(t, Filter{Kinds: []string{string(kind)}}, opened(t, advisory(drill, 3, string(kind), "", event.Raised)))
	}
}

// checkOnly reports a filter that cannot be used, or that stops e, or that lets an
// event of another state and kind pass.
func checkOnly(t *testing.T, f Filter, e *Event) {
	t.Helper()
	c, w := f.compile()
	if w != nil {
		t.Errorf("%+v: %v", f, w)
		return
	}
	if why := c.stops(e); why != "" {
		t.Errorf("%+v stops its own event: %s", f, why)
	}
	other := opened(t, advisory(drill, 3, "later", "", "later"))
	if c.stops(other) == "" {
		t.Errorf("%+v lets an event of another state and kind pass", f)
	}
}

// open reports a message that is not an event, and reads every event of v1.
func TestOpen(t *testing.T) {
	good := alert(drill, 1, event.Raised)
	for why, spoil := range map[string]func(m *bus.Message){
		"no headers":         func(m *bus.Message) { m.Headers = nil },
		"no time":            func(m *bus.Message) { m.Headers[4].Value = []byte("yesterday") },
		"no JSON":            func(m *bus.Message) { m.Value = []byte("{") },
		"an array":           func(m *bus.Message) { m.Value = []byte("[]") },
		"a tombstone":        func(m *bus.Message) { m.Value = nil },
		"of another machine": func(m *bus.Message) { m.Key = "acme/other" },
		"of no group":        func(m *bus.Message) { m.Value = []byte(`{"machine":"` + drill + `"}`) },
		"a text for a number": func(m *bus.Message) {
			m.Value = []byte(`{"group":"tcm-monitor","machine":"` + drill + `","score":"high"}`)
		},
	} {
		m := good
		m.Headers = append(m.Headers[:0:0], m.Headers...)
		spoil(&m)
		if e, err := open(m); err == nil {
			t.Errorf("%s: %+v", why, e)
		}
	}
	if e := opened(t, good); e.ID != drill+"/00000000cafe0001/1/raised" || event.ShortName(e.Machine) != "usk25" || e.word() != "alert" || !e.calls() {
		t.Errorf("%+v", e)
	}
}

// When people are to be called, by the state that an alert leaves behind.
func TestCalls(t *testing.T) {
	for alarm, want := range map[string][2]bool{ // stands, calls
		"normal": {false, false}, "raised": {true, true}, "acknowledged": {true, true}, "returned": {true, true}, "news": {true, true},
		"shelved": {true, false}, "suppressed": {true, false}, "out_of_service": {true, false},
	} {
		e := opened(t, alert(drill, 1, event.Raised, func(a *event.Alert) { a.Alarm = alarm }))
		if e.stands() != want[0] || e.calls() != want[1] {
			t.Errorf("%s: stands %v, calls %v", alarm, e.stands(), e.calls())
		}
	}
}

// Marking a closed alarm as false, or declaring a tool of the magazine new, does not touch the open one: receivers of states
// get nothing, and the mail does not ask for an acknowledgement.
func TestMarked(t *testing.T) {
	p := newMachineStates()
	s := p.of(0, drill)
	s.apply(opened(t, alert(drill, 1, event.Raised)))
	before := *s
	other := opened(t, alert(drill, 2, event.ToolIsNew, func(a *event.Alert) { a.Tool, a.Alarm, a.Incident = "T9", "raised", "" }))
	if s.apply(other) || s.last != before.last || s.raised != before.raised || machineState(s).Tool == "T9" {
		t.Errorf("a tool of the magazine that is declared new: %+v", machineState(s))
	}
	for _, state := range []event.AlertState{event.MarkedFalse, event.UnmarkedFalse} {
		e := opened(t, alert(drill, 2, state, func(a *event.Alert) { a.Alarm, a.Incident = "raised", "A-AAAAAAAA" }))
		if s.apply(e) || s.last != before.last || s.raised != before.raised || machineState(s).Incident != "A-K3ZQ7M2P" {
			t.Errorf("%s: %+v", state, machineState(s))
		}
		if text := mailText(e); strings.Contains(text, "alerts ack") || !strings.Contains(text, "alarm     A-AAAAAAAA\n") {
			t.Errorf("%s: a mail says\n%s", state, text)
		}
		if _, w := (Filter{States: []string{string(state)}}).compile(); w != nil {
			t.Error(w)
		}
	}
}

// The test is an alert like any other, that says what it is.
func TestTestEvent(t *testing.T) {
	e := TestEvent(event.NewCommandID(), monday)
	if err := schemas.Validate(schemas.Alert, e.message.Value); err != nil {
		t.Error(err)
	}
	if !e.isTest() || !e.calls() || opened(t, alert(drill, 1, event.Raised)).isTest() {
		t.Errorf("%+v", e)
	}
}
