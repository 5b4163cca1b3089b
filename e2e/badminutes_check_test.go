//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/schemas"
)

// account holds the messages of the topics after TestBadMinutes, and the states of the alarms.
type account struct {
	windows, results, alerts, commands, dead []bus.Message
	standing                                 map[string][]monitor.Standing // by group
	kills                                    []time.Time                   // of the broker
}

// of is a machine in one group.
type of struct{ group, machine string }

// check returns a sentence for each contradiction.
func (a *account) check() (wrong []string) {
	windows, results, alerts := once(a.windows), once(a.results), once(a.alerts)
	for _, msgs := range [][]bus.Message{a.windows, a.results, a.alerts} {
		wrong = append(wrong, a.checkRepeats(msgs)...)
	}
	wrong = append(wrong, checkEveryWindow(windows, results)...)
	wrong = append(wrong, a.checkAlternate(alerts)...)
	return append(wrong, a.checkAnswers(alerts)...)
}

// once returns the first message of each id.
func once(msgs []bus.Message) (first []bus.Message) {
	seen := make(map[string]bool)
	for _, m := range msgs {
		if id := string(m.Header("ce_id")); !seen[id] {
			seen[id], first = true, append(first, m)
		}
	}
	return first
}

// checkRepeats checks that a message that came again has the same bytes, and came because the
// broker died between the two. A window may come again at any time: ingesters use no
// transactions.
func (a *account) checkRepeats(msgs []bus.Message) (wrong []string) {
	seen := make(map[string]bus.Message)
	for _, m := range msgs {
		id := string(m.Header("ce_id"))
		before, ok := seen[id]
		if !ok {
			seen[id] = m
			continue
		}
		if !bytes.Equal(before.Value, m.Value) {
			wrong = append(wrong, fmt.Sprintf("%s of %s came twice and differs:\n%s\n%s", id, m.Topic, before.Value, m.Value))
		}
		between := func(kill time.Time) bool {
			return !kill.Before(before.Time) && !m.Time.Before(kill.Truncate(time.Millisecond))
		}
		if m.Topic != bus.TopicWindows && !slices.ContainsFunc(a.kills, between) {
			wrong = append(wrong, fmt.Sprintf("%s of %s came twice, at %v and %v, and the broker did not die between", id, m.Topic, before.Time, m.Time))
		}
	}
	return wrong
}

// checkEveryWindow checks that every window has one result in each group.
func checkEveryWindow(windows, results []bus.Message) (wrong []string) {
	due := make(map[string]bool) // ids of results
	for _, m := range windows {
		for _, group := range badGroups {
			due[string(m.Header("ce_id"))+"/"+group] = true
		}
	}
	for _, m := range results {
		var r event.Result
		id := string(m.Header("ce_id"))
		if err := schemas.Validate(schemas.Result, m.Value); err != nil || json.Unmarshal(m.Value, &r) != nil {
			wrong = append(wrong, fmt.Sprintf("result %s: %v", id, err))
		}
		if id != r.ID || id != event.WindowID(r.Machine, r.Epoch, r.Seq)+"/"+r.Group || !due[id] {
			wrong = append(wrong, fmt.Sprintf("result %s belongs to no window: %s", id, m.Value))
		}
		delete(due, id)
	}
	for _, id := range slices.Sorted(maps.Keys(due)) {
		wrong = append(wrong, fmt.Sprintf("no result %s", id))
	}
	return wrong
}

// alertIn returns the alert in a message of the alerts topic, which holds other events too.
func alertIn(m bus.Message) (a event.Alert, ok bool) {
	return a, string(m.Header("ce_type")) == event.AlertType && json.Unmarshal(m.Value, &a) == nil
}

// says holds what the alerts of one machine and group have said so far.
type says struct {
	open       string // the incident that was raised and not cleared
	alarm      string // the state of the alarm, in a word
	tool       string // of the last alert
	advisories map[string]bool
}

// checkAlternate checks that raised and cleared alternate, and that the group's records agree
// with its last alert.
func (a *account) checkAlternate(alerts []bus.Message) (wrong []string) {
	said := make(map[of]*says)
	for _, m := range alerts {
		var e struct{ Group, Machine string }
		if err := json.Unmarshal(m.Value, &e); err != nil {
			return append(wrong, fmt.Sprintf("alert at %d: %v", m.Offset, err))
		}
		k := of{e.Group, e.Machine}
		if said[k] == nil {
			said[k] = &says{alarm: "normal", advisories: make(map[string]bool)}
		}
		if why := said[k].hear(m); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s in %s: %s: %s", k.machine, k.group, why, m.Value))
		}
	}
	for _, group := range badGroups {
		if n := len(a.standing[group]); n != badMachines {
			wrong = append(wrong, fmt.Sprintf("%s remembers %d machines", group, n))
		}
		for _, st := range a.standing[group] {
			if s := said[of{group, st.Machine}]; s == nil || !s.agrees(st) {
				wrong = append(wrong, fmt.Sprintf("%s in %s: records say %+v, alerts said %+v", st.Machine, group, st, s))
			}
		}
	}
	return wrong
}

// hear takes the next event. It returns why the event cannot follow, or "".
func (s *says) hear(m bus.Message) string {
	if string(m.Header("ce_type")) == event.AdvisoryType {
		return s.hearAdvisory(m)
	}
	a, ok := alertIn(m)
	if err := schemas.Validate(schemas.Alert, m.Value); !ok || err != nil {
		return fmt.Sprintf("not an alert: %v", err)
	}
	if a.Magazine {
		return "" // it tells of its tool, and not of the machine
	}
	s.alarm, s.tool = a.Alarm, a.Tool
	switch {
	case a.State == event.Raised && s.open != "":
		return "raised, and " + s.open + " was not cleared"
	case a.State == event.Raised:
		s.open = a.Incident
	case a.State == event.Cleared && s.open != a.Incident:
		return fmt.Sprintf("cleared, and raised was %q", s.open)
	case a.State == event.Cleared:
		s.open = ""
	}
	return ""
}

func (s *says) hearAdvisory(m bus.Message) string {
	var a event.Advisory
	if err := json.Unmarshal(m.Value, &a); err != nil {
		return err.Error()
	}
	about := string(a.Kind) + " " + a.Subject
	if s.advisories[about] == (a.State == event.Raised) {
		return fmt.Sprintf("advisory of %s is %s twice", about, a.State)
	}
	s.advisories[about] = a.State == event.Raised
	return ""
}

// agrees reports whether the records of a machine agree with its last alert. An alarm that is open may not have been announced: it is
// masked, acknowledged, or silent since its tool came back.
func (s *says) agrees(st monitor.Standing) bool {
	called, open := "", 0
	if st.Called {
		called = st.Incident
	}
	for _, stands := range s.advisories {
		if stands {
			open++
		}
	}
	for _, a := range st.Advisories {
		if !s.advisories[string(a.Kind)+" "+a.Subject] {
			return false
		}
	}
	// A tool with an alarm that is not announced comes and leaves without an alert, perhaps acknowledged or with a shelf.
	unsaid := s.open == "" && !st.Called && s.tool != st.Tool
	return (s.alarm == st.Alarm || unsaid) && s.open == called && open == len(st.Advisories)
}

// checkAnswers checks that each group answered every command once, in consecutive alerts. A
// command that is on the topic a second time must be set aside.
func (a *account) checkAnswers(alerts []bus.Message) (wrong []string) {
	type answer struct {
		group, command string
	}
	states := make(map[answer][]event.AlertState)
	last := make(map[of]string) // command of the previous alert
	for _, m := range alerts {
		e, ok := alertIn(m)
		if !ok {
			continue
		}
		k, by := answer{e.Group, e.Command}, of{e.Group, e.Machine}
		if e.Command != "" && last[by] != e.Command && states[k] != nil {
			wrong = append(wrong, fmt.Sprintf("command %s has another answer: %s", e.Command, m.Value))
		}
		states[k], last[by] = append(states[k], e.State), e.Command
	}
	again := make(map[int64]bool) // by place: whether the same command lies earlier
	commands := make(map[string]bool)
	for _, m := range a.commands {
		id := string(m.Header("ce_id"))
		again[place(m)] = commands[id]
		commands[id] = true
		for _, group := range badGroups {
			got := states[answer{group, id}]
			twice := len(slices.Compact(slices.Sorted(slices.Values(got)))) < len(got)
			if len(got) == 0 || twice || len(got) > 1 && slices.Contains(got, event.Refused) {
				wrong = append(wrong, fmt.Sprintf("%s answered command %s with %v: %s", group, id, got, m.Value))
			}
		}
	}
	for k := range states {
		if k.command != "" && !commands[k.command] {
			wrong = append(wrong, fmt.Sprintf("%s answered a command %s that was never sent", k.group, k.command))
		}
	}
	return append(wrong, a.checkDead(again)...)
}

// checkDead checks that only repeated commands were set aside.
func (a *account) checkDead(again map[int64]bool) (wrong []string) {
	for _, m := range a.dead {
		l, err := bus.OpenLetter(m)
		if err != nil || l.Message.Topic != bus.TopicCommands || !again[place(l.Message)] {
			wrong = append(wrong, fmt.Sprintf("set aside: %s of %s: %v", l.Reason, l.Message.Topic, err))
		}
	}
	return wrong
}

// place returns the partition and offset of a message as one number.
func place(m bus.Message) int64 { return m.Offset*badPartitions + int64(m.Partition) }

// counts returns one line of counts. They must be high enough for the checks to mean something.
func (a *account) counts() string {
	events := make(map[string]int)
	alerts := once(a.alerts)
	for _, m := range alerts {
		var e struct{ State string }
		_ = json.Unmarshal(m.Value, &e)
		if string(m.Header("ce_type")) == event.AdvisoryType {
			e.State = "advisory " + e.State
		}
		events[e.State]++
	}
	results := once(a.results)
	return fmt.Sprintf("%d windows, %d results and %d repeats, %d commands, %d alerts and %d repeats %v, %d set aside",
		len(a.windows), len(results), len(a.results)-len(results), len(a.commands), len(alerts), len(a.alerts)-len(alerts), events, len(a.dead))
}

// checkTampered checks that check finds one missing, extra or changed message.
func (a *account) checkTampered(t *testing.T) {
	t.Helper()
	alert := func(state event.AlertState, command bool) int {
		return slices.IndexFunc(a.alerts, func(m bus.Message) bool {
			e, ok := alertIn(m)
			return ok && e.State == state && (e.Command != "") == command
		})
	}
	raised, cleared := alert(event.Raised, false), alert(event.Cleared, false)
	refused, shelved := alert(event.Refused, true), alert("shelved", true)
	if len(a.results) == 0 || raised < 0 || cleared < 0 || refused < 0 || shelved < 0 {
		t.Fatalf("too little happened: %s", a.counts())
	}
	for name, change := range map[string]func(*account){
		"a result is missing":       func(a *account) { a.results = without(a.results, 0) },
		"a window is missing":       func(a *account) { a.windows = without(a.windows, 0) },
		"a result has two bodies":   func(a *account) { a.results = append(a.results, reworded(a.results[0], "", "x")) },
		"a result came twice":       func(a *account) { a.results, a.kills = append(a.results, a.results[0]), nil },
		"a result has two ids":      func(a *account) { a.results = append(a.results, reworded(a.results[0], "x", "")) },
		"a raised alert is missing": func(a *account) { a.alerts = without(a.alerts, raised) },
		"an alarm is raised twice": func(a *account) {
			a.alerts = slices.Insert(slices.Clone(a.alerts), raised, reworded(a.alerts[raised], "x", ""))
		},
		"a cleared alert is missing":  func(a *account) { a.alerts = without(a.alerts, cleared) },
		"a command has no answer":     func(a *account) { a.alerts = without(a.alerts, refused) },
		"a command has two answers":   func(a *account) { a.alerts = append(slices.Clone(a.alerts), reworded(a.alerts[shelved], "x", "")) },
		"a window is set aside":       func(a *account) { a.dead = append(a.dead, bus.DeadLetter(a.windows[0], "test", a.windows[0].Time)) },
		"a command is set aside":      func(a *account) { a.dead = append(a.dead, bus.DeadLetter(a.commands[0], "test", a.windows[0].Time)) },
		"a machine is forgotten":      func(a *account) { a.standing = map[string][]monitor.Standing{badGroups[0]: a.standing[badGroups[0]]} },
		"the records say another one": func(a *account) { a.standing = otherIncident(a.standing) },
	} {
		b := *a
		change(&b)
		if len(b.check()) == 0 {
			t.Errorf("%s, and the check does not find it", name)
		}
	}
}

func without(msgs []bus.Message, i int) []bus.Message {
	return slices.Delete(slices.Clone(msgs), i, i+1)
}

// reworded returns a message with a longer id and value.
func reworded(m bus.Message, id, value string) bus.Message {
	m.Value = append(slices.Clone(m.Value), value...)
	m.Headers = slices.Clone(m.Headers)
	for i, h := range m.Headers {
		if h.Key == "ce_id" {
			m.Headers[i].Value = append(slices.Clone(h.Value), id...)
		}
	}
	return m
}

// otherIncident returns the records with another alarm in the first one.
func otherIncident(standing map[string][]monitor.Standing) map[string][]monitor.Standing {
	standing = maps.Clone(standing)
	all := slices.Clone(standing[badGroups[0]])
	all[0].Incident, all[0].Called = "A-AAAAAAAA", true
	standing[badGroups[0]] = all
	return standing
}
