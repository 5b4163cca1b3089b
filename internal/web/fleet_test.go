package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web/summary"
)

// fleetPage is the page of the fleet as a program of its own would write it: it knows nothing
// but what schemas/openapi.yaml says of the events.
type fleetPage struct {
	at       fleetView
	machines map[uint64]map[string]any
	alarms   float64
}

func newFleetPage(h *Hub) *fleetPage {
	return &fleetPage{at: fleetView{server: &h.server, r: httptest.NewRequest(http.MethodGet, "/", nil)}}
}

func (p *fleetPage) read(t fatal) {
	for _, m := range p.at.next() {
		var e struct {
			Now      time.Time
			Alarms   *float64
			Machines []map[string]any
		}
		if err := json.Unmarshal(m.data, &e); err != nil {
			t.Fatalf("%s: %v", m.data, err)
		}
		if m.name == "snapshot" {
			p.machines = make(map[uint64]map[string]any)
		}
		if e.Alarms != nil {
			p.alarms = *e.Alarms
		}
		for _, tile := range e.Machines {
			id := uint64(tile["id"].(float64))
			switch was := p.machines[id]; {
			case tile["name"] != nil:
				p.machines[id] = tile
			case was == nil:
				t.Fatalf("a patch of machine %d, which the page does not have: %s", id, m.data)
			default:
				patched(was, tile)
			}
		}
	}
}

type fatal interface{ Fatalf(string, ...any) }

// patched changes a tile as patchOf says.
func patched(tile, patch map[string]any) {
	if more, ok := patch["+"].(string); ok {
		strip := tile["strip"].(string) + more
		tile["strip"] = strip[max(0, len(strip)-summary.MaxStrip):]
		if at, ok := tile["verdict_at"].(string); ok && patch["verdict_at"] == nil {
			t, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				panic(err)
			}
			seconds, _ := tile["span"].(float64)
			tile["verdict_at"] = t.Add(time.Duration(float64(len(more)) * seconds * float64(time.Second))).Format(time.RFC3339Nano)
		}
		delete(patch, "+")
	}
	for k, v := range patch {
		changed, isObject := v.(map[string]any)
		was, wasObject := tile[k].(map[string]any)
		switch {
		case v == nil:
			delete(tile, k)
		case k == "wear" && isObject && wasObject:
			for k, v := range changed {
				if was[k] = v; v == nil {
					delete(was, k)
				}
			}
		default:
			tile[k] = v
		}
	}
}

// ageless returns tiles by id without what grows by itself.
func ageless(t fatal, all []*Tile) map[uint64]map[string]any {
	tiles := make(map[uint64]map[string]any)
	for _, one := range all {
		var m map[string]any
		if err := json.Unmarshal(encode(one), &m); err != nil {
			t.Fatalf("%v", err)
		}
		delete(m, "window_age")
		delete(m, "refused_age")
		tiles[one.ID] = m
	}
	return tiles
}

// drawEvent lets something happen to a machine.
func drawEvent(t *rapid.T, h *Hub, name string, seq uint64) {
	switch rapid.SampledFrom([]string{"result", "result", "result", "result", "window", "alert", "advisory", "models", "retire"}).Draw(t, "what") {
	case "result":
		r := testResult(seq)
		r.Machine, r.Verdict = name, rapid.SampledFrom(event.Verdicts).Draw(t, "verdict")
		r.Tool, r.Hole = rapid.SampledFrom([]string{"", "T1", "T2"}).Draw(t, "tool"), rapid.SampledFrom([]string{"", "H1"}).Draw(t, "hole")
		r.Score = rapid.SampledFrom([]float64{0, 0.25, 1}).Draw(t, "score")
		r.Late, r.WearUnknown = rapid.IntRange(0, 9).Draw(t, "late") == 0, rapid.Bool().Draw(t, "wear unknown")
		if !r.WearUnknown {
			r.Wear = &event.Wear{WearUM: rapid.Float64Range(0, 400).Draw(t, "wear"), WearHighUM: 200}
			if rapid.Bool().Draw(t, "left") {
				r.HolesLeft = ptr(rapid.Float64Range(0, 3).Draw(t, "holes"))
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "without times") == 0 {
			r.Start, r.End = time.Time{}, time.Time{}
		}
		r.Alarm, r.Incident = rapid.SampledFrom([][2]string{{"normal", ""}, {"raised", "A-K3ZQ7M2P"}, {"acknowledged", "A-K3ZQ7M2P"}}).Draw(t, "alarm")[0], ""
		if r.Alarm != "normal" {
			r.Incident = "A-K3ZQ7M2P"
		}
		h.Result(r)
	case "window":
		w := testWindow(seq)
		w.Machine = name
		h.Window(w)
	case "alert":
		a := testAlert(seq)
		a.Machine, a.ID, a.Incident, a.Alarm = name, fmt.Sprint(name, seq), "A-K3ZQ7M2P", rapid.SampledFrom([]string{"raised", "acknowledged", "shelved", "normal"}).Draw(t, "alarm")
		if a.Tool = rapid.SampledFrom([]string{"", "T1", "T2"}).Draw(t, "tool"); a.Tool != "" {
			a.Incident, a.Magazine = "A-K3ZQ7M2Q", rapid.Bool().Draw(t, "magazine")
		}
		h.Alert(a)
	case "advisory":
		h.Advisory(event.Advisory{
			ID: fmt.Sprint(name, seq), Machine: name, Kind: rapid.SampledFrom(event.AdvisoryKinds).Draw(t, "kind"), Since: t0,
			Subject: rapid.SampledFrom([]string{"", "ch01"}).Draw(t, "subject"), State: rapid.SampledFrom([]event.AlertState{event.Raised, event.Cleared}).Draw(t, "state"),
		})
	case "models":
		h.Models(name, Models{Now: rapid.SampledFrom([]string{"", "m1", "m2"}).Draw(t, "model")})
	case "retire":
		if rapid.IntRange(0, 4).Draw(t, "really") == 0 {
			h.Alert(event.Alert{Machine: name, State: event.Retired})
		}
	}
}

// A machine that is not watched: its tile says why once, and the system lists it with the command that helps.
func TestUnwatched(t *testing.T) {
	h := NewHub(Config{System: func(context.Context) System { return System{Problems: []Problem{{What: "a disk", Command: "du"}}} }})
	advise := func(machine string, kind event.AdvisoryKind, text string) {
		h.Advisory(event.Advisory{ID: machine, Machine: machine, Kind: kind, State: event.Raised, Severity: "warning", Since: t0, At: t0, Text: text})
	}
	advise("acme/b", event.RefusedAdvisory, "b: NOT WATCHED, no model is deployed for it with layout two. Deploy one: `trainer promote MODEL --for MACHINE`")
	advise("acme/a", event.SilenceAdvisory, "a: SILENT, no window to judge since 10:00")
	advise("acme/d", event.RefusedAdvisory, "d: NOT WATCHED, its windows are refused: they are of another layout. Give its ingester the layout of the model")
	want := []Problem{
		{What: "acme/a: SILENT, no window to judge since 10:00"},
		{What: "acme/b: NOT WATCHED, no model is deployed for it with layout two. Deploy one", Command: "trainer promote MODEL --for acme/b"},
		{What: "acme/d: NOT WATCHED, its windows are refused: they are of another layout. Give its ingester the layout of the model"},
		{What: "a disk", Command: "du"},
	}
	if got := h.server.systemNow(t.Context()).Problems; !slices.Equal(got, want) {
		t.Errorf("the problems are %+v", got)
	}
	for machine, want := range map[string]string{
		"acme/b": "no model is deployed for it with layout two. Deploy one: `trainer promote MODEL --for MACHINE`", "acme/d": "they are of another layout. Give its ingester the layout of the model",
	} {
		if got := tiles(h)[machine].Instruction.Args["text"]; got != want {
			t.Errorf("the tile of %s says %q", machine, got)
		}
	}
	if b, d := tiles(h)["acme/b"].Instruction, tiles(h)["acme/d"].Instruction; b.Key != "no_model" || b.Args["command"] != "trainer promote MODEL --for acme/b" || d.Key != "windows_refused" || d.Args["command"] != nil {
		t.Errorf("%+v and %+v", b, d)
	}
	for i := range 2 * mostNeedy {
		advise(fmt.Sprint("x", i), event.SilenceAdvisory, "silent")
	}
	if got := h.server.systemNow(t.Context()).Problems; len(got) != mostNeedy+2 || got[mostNeedy].What != "23 more machines need a person" {
		t.Errorf("of many machines the problems are %+v", got)
	}
}

// Every machine that needs a person is a problem of the system, with what its tile says, the worst first. One whose alarm
// is masked, or that has nothing but an advisory of information, is not.
func TestNeedy(t *testing.T) {
	h := NewHub(Config{Facts: func(string, string) Facts { return Facts{LimitUM: 300} }})
	result := func(machine string, change func(r *event.Result)) {
		r := event.Result{Machine: machine, Tool: "T07", Verdict: event.Healthy, Start: t0, End: t0.Add(time.Second), Alarm: "normal"}
		change(&r)
		h.Result(r)
	}
	advise := func(machine string, kind event.AdvisoryKind, severity, subject, text string) {
		h.Advisory(event.Advisory{ID: machine, Machine: machine, Kind: kind, Subject: subject, State: event.Raised, Severity: severity, Since: t0, At: t0, Text: text})
	}
	if got := h.server.systemNow(t.Context()).Problems; len(got) != 0 {
		t.Fatalf("without machines: %+v", got)
	}
	alarm := func(state string) func(r *event.Result) {
		return func(r *event.Result) { r.Alarm, r.Incident = state, "A-K3ZQ7M2P" }
	}
	result("acme/g", alarm("raised"))
	result("acme/f", alarm("acknowledged"))
	result("acme/e", alarm("shelved"))
	result("acme/d", func(r *event.Result) { r.Wear = &event.Wear{WearUM: 320, WearLowUM: 300, WearHighUM: 350} })
	advise("acme/c", event.SensorAdvisory, "warning", "ch07", "c: ch07 has failed")
	advise("acme/b", event.RivalAdvisory, "warning", "", "b: two ingesters")
	advise("acme/a", event.DriftAdvisory, "info", "", "a: drift")
	result("acme/0", func(*event.Result) {})
	want := []string{
		"acme/g: the alarm A-K3ZQ7M2P is raised change_tool", "acme/f: the alarm A-K3ZQ7M2P is acknowledged change_tool_acknowledged",
		"acme/d: the wear of the tool is 320 µm, its limit is 300 µm plan_tool_change", "acme/c: ch07 has failed check_sensor", "acme/b: two ingesters stop_second_ingester",
	}
	var got []string
	for _, p := range h.server.systemNow(t.Context()).Problems {
		got = append(got, p.What+" "+p.Instruction.Key)
		if !strings.HasPrefix(p.What, p.Machine+":") {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An alarm of a tool that left the spindle is open: the tile, the list of alarms and the alarm itself say so.
func TestMagazine(t *testing.T) {
	h := NewHub(Config{
		Alarms: func(summary.AlarmFilter) ([]summary.Alarm, error) {
			return []summary.Alarm{{Incident: "A-K3ZQ7M2P", Machine: testMachine, State: "normal", Cleared: t0}, {Incident: "A-K3ZQ7M2Q", Machine: testMachine, State: "normal", Cleared: t0}}, nil
		},
		Alarm: func(incident string) (summary.AlarmDetail, error) {
			return summary.AlarmDetail{Machine: testMachine, Alarm: summary.Alarm{Incident: incident, Machine: testMachine, State: "normal", Cleared: t0}}, nil
		},
	})
	said := func() (all []string) {
		for _, path := range []string{"/api/alarms", "/api/alarms/A-K3ZQ7M2P"} {
			var got struct {
				Alarms []summary.Alarm
				Alarm  summary.Alarm
			}
			if err := json.Unmarshal(get(h, http.MethodGet, path).Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			for _, a := range append(got.Alarms, got.Alarm) {
				if a.Incident != "" {
					all = append(all, fmt.Sprint(a.State, " ", a.Magazine))
				}
			}
		}
		return append(all, string(encode(tiles(h)[testMachine].Magazine)))
	}
	r := testResult(1)
	r.Tool, r.Alarm, r.Incident = "T07", "raised", "A-K3ZQ7M2P"
	h.Result(r)
	if got, want := said(), []string{"raised false", "normal false", "raised false", "null"}; !slices.Equal(got, want) {
		t.Errorf("in the spindle: %q, want %q", got, want)
	}
	a := testAlert(2)
	a.State, a.Reason, a.Alarm, a.Incident = event.Cleared, "tool_change", "normal", "A-K3ZQ7M2P"
	h.Alert(a)
	r = testResult(2)
	r.Tool, r.Alarm, r.Incident = "T08", "normal", ""
	h.Result(r)
	if got, want := said(), []string{"raised true", "normal false", "raised true", `[{"tool":"T07","incident":"A-K3ZQ7M2P","alarm":"raised","since":"` + a.Since.UTC().Format(time.RFC3339Nano) + `"}]`}; !slices.Equal(got, want) {
		t.Errorf("in the magazine: %q, want %q", got, want)
	}
	a.ID, a.State, a.Reason, a.Magazine = "ack", event.Acknowledged, "", true
	h.Alert(a)
	if got, want := said(), []string{"normal false", "normal false", "normal false", "null"}; !slices.Equal(got, want) {
		t.Errorf("acknowledged when the condition was over: %q, want %q", got, want)
	}
}

// Many things happen to machines, and pages read at any pace: what a page of the fleet has
// from its snapshot and its updates is what a page gets that opens now.
func TestFleetPageFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newTestHub()
		now := t0
		h.now = func() time.Time { return now }
		h.limit = 3
		h.facts = func(machine, model string) Facts { return Facts{Threshold: 0.5, LimitUM: float64(len(machine)) * 100} }
		pages := []*fleetPage{newFleetPage(h), newFleetPage(h)}
		names := []string{"a", "bb", "ccc", "dddd"}
		for seq := range rapid.Uint64Range(1, 80).Draw(t, "events") {
			drawEvent(t, h, rapid.SampledFrom(names).Draw(t, "machine"), seq)
			if rapid.Bool().Draw(t, "wait") {
				now = now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "ms")) * time.Millisecond)
			}
			if rapid.Bool().Draw(t, "read") {
				rapid.SampledFrom(pages).Draw(t, "page").read(t)
			}
		}
		now = now.Add(framePause)
		for _, p := range pages {
			p.read(t)
			snapshot := h.server.fleet(p.at.r)
			want := ageless(t, snapshot.Machines)
			for id, tile := range p.machines {
				delete(tile, "window_age")
				delete(tile, "refused_age")
				if !reflect.DeepEqual(tile, want[id]) {
					t.Fatalf("machine %d is\n%v, want\n%v", id, tile, want[id])
				}
			}
			if len(p.machines) != len(want) || int(p.alarms) != snapshot.Alarms {
				t.Fatalf("%d machines and %v alarms, want %d and %d", len(p.machines), p.alarms, len(want), snapshot.Alarms)
			}
			if n := len(slices.DeleteFunc(snapshot.Machines, func(t *Tile) bool { return t.Rank != rankAlarm })); n != snapshot.Alarms {
				t.Fatalf("the page says %d machines with an alarm that calls, and %d tiles have one", snapshot.Alarms, n)
			}
		}
	})
}

// Results that come late from Kafka do not look as if they had come with the frame, and such as
// come at once cost no bytes.
func TestFleetPageOfLateResults(t *testing.T) {
	h := newTestHub()
	now := t0
	h.now = func() time.Time { return now }
	page := newFleetPage(h)
	for seq, c := range []struct {
		late time.Duration
		want any // window_age in the patch
	}{
		{0, nil}, {5 * time.Minute, 300.0}, {0, nil}, {framePause, nil}, {framePause + time.Second/2, 1.5},
	} {
		now = now.Add(time.Hour) // so that the result is the last one, however late it is
		h.ResultAt(testResult(uint64(seq)+1), now.Add(-c.late))
		if seq == 0 {
			page.read(t) // the snapshot
			continue
		}
		all := page.at.next()
		if len(all) != 1 {
			t.Fatalf("%d events, want one", len(all))
		}
		var e struct{ Machines []map[string]any }
		if err := json.Unmarshal(all[0].data, &e); err != nil || len(e.Machines) != 1 || e.Machines[0]["+"] == nil {
			t.Fatalf("%s: %v", all[0].data, err)
		}
		if got := e.Machines[0]["window_age"]; got != c.want {
			t.Errorf("a result that comes after %v has window_age %v, want %v", c.late, got, c.want)
		}
	}
}

// fleetSecond lets one window of each machine come.
func fleetSecond(h *Hub, names []string, second uint64) {
	for _, r := range fleetResults(names, second) {
		h.Result(r)
	}
}

// fleetResults returns a result of each machine, in which all changes that changes in practice.
func fleetResults(names []string, second uint64) (all []event.Result) {
	for i, name := range names {
		r := fullResult(name, second)
		r.Score = float64((second*7+uint64(i)*13)%1000) / 1000
		r.Alarm, r.Incident, r.Sensors = "normal", "", nil
		r.Wear = &event.Wear{WearUM: float64(second), WearLowUM: float64(second) * 0.8, WearHighUM: float64(second) * 1.2, HolesLeft: ptr(20.0), HolesLeftLow: ptr(1.0), HolesLeftHigh: ptr(40.0)}
		all = append(all, r)
	}
	return all
}

func fleetNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("acme/spore/bay%d/line%d/machine%d", i/50, i/10%5, i))
	}
	return names
}

// 200 machines with a window a second each, whose score and wear change with every window, are
// at most 20 kB/s for a page of the fleet, in one event a second.
func TestFleetPageTakesFewBytes(t *testing.T) {
	const machines, seconds, most = 200, 30, 20_000
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub()
		h.now = time.Now
		names := fleetNames(machines)
		fleetSecond(h, names, 0)
		b, stop := open(h, "page=fleet", "")
		defer stop()
		synctest.Wait()
		if es := b.read(t); len(es) != 1 || es[0].name != "snapshot" || len(es[0].Machines) != machines {
			t.Fatalf("%d events", len(es))
		}
		total, events := 0, 0
		for s := range uint64(seconds) {
			for part := range 10 { // the machines' windows do not end at the same time
				fleetSecond(h, names[part*machines/10:(part+1)*machines/10], s+1)
				time.Sleep(time.Second / 10)
			}
			synctest.Wait()
			b.mu.Lock()
			total += b.text.Len()
			b.mu.Unlock()
			events += len(b.read(t))
		}
		t.Logf("%d bytes in a second", total/seconds)
		if total/seconds > most || events > seconds+1 || events < seconds-1 {
			t.Errorf("%d bytes a second in %d events in %d s, want at most %d and one a second", total/seconds, events, seconds, most)
		}
	})
}

// A page of the fleet that comes back gets what it missed if that is kept, and all if not.
func TestFleetResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub()
		h.now = time.Now
		names := fleetNames(3)
		fleetSecond(h, names, 0)
		first, stop := open(h, "page=fleet", "")
		synctest.Wait()
		id := first.read(t)[0].id
		stop()
		fleetSecond(h, names, 1)
		time.Sleep(3 * framePause)
		for name, tc := range map[string]struct{ id, want string }{
			"what it missed":           {id, "update"},
			"of another hub":           {"other" + id[5:], "snapshot"},
			"from the future":          {"testboot-fleet-999", "snapshot"},
			"not a number":             {"testboot-fleet-x", "snapshot"},
			"of the page of a machine": {"testboot-1-0-0-0-0-0-0-0", "snapshot"},
			"nothing":                  {"", "snapshot"},
		} {
			b, stop := open(h, "page=fleet", tc.id)
			synctest.Wait()
			time.Sleep(framePause)
			synctest.Wait()
			if es := b.read(t); len(es) != 1 || es[0].name != tc.want || len(es[0].Machines) != 3 {
				t.Errorf("%s: %+v", name, es)
			}
			stop()
		}
		h.Alert(event.Alert{Machine: names[0], State: event.Retired})
		b, stop := open(h, "page=fleet", id)
		defer stop()
		time.Sleep(2 * framePause)
		synctest.Wait()
		if es := b.read(t); len(es) == 0 || es[len(es)-1].name != "snapshot" || len(es[len(es)-1].Machines) != 2 {
			t.Errorf("a machine is gone: %+v", es)
		}
	})
}

// Tiles are sorted by what a person should look at first, and each says what to do.
func TestRankAndInstruction(t *testing.T) {
	h := newTestHub()
	h.facts = func(string, string) Facts { return Facts{LimitUM: 300} }
	alert := func(name string, state event.AlertState, alarm string) {
		a := testAlert(1)
		a.ID, a.Machine, a.State, a.Alarm, a.Incident = name+string(state), name, state, alarm, "A-K3ZQ7M2P"
		h.Alert(a)
	}
	advise := func(name string, kind event.AdvisoryKind, severity string) {
		h.Advisory(event.Advisory{ID: name + string(kind), Machine: name, Kind: kind, State: event.Raised, Severity: severity, Since: t0, Text: "text"})
	}
	wear := func(name string, um float64) {
		r := testResult(1)
		r.Machine, r.Wear = name, &event.Wear{WearUM: um}
		h.Result(r)
	}
	wear("g-normal", 100)
	wear("f-worn", 300)
	advise("e-drift", event.DriftAdvisory, "warning")
	advise("d-sensor", event.SensorAdvisory, "warning")
	advise("c-refused", event.SilenceAdvisory, "warning")
	advise("c-refused", event.RefusedAdvisory, "warning")
	advise("c-silent", event.SilenceAdvisory, "warning")
	advise("c-stopped", event.RefusedAdvisory, "warning")
	advise("c-stopped", event.StoppedAdvisory, "warning")
	advise("c-unknown", event.ModelAdvisory, "info")
	h.Advisory(event.Advisory{ID: "e-used", Machine: "e-used", Kind: event.ModelAdvisory, Subject: "reference", State: event.Raised, Severity: "warning", Since: t0, Text: "text"})
	alert("b-acknowledged", event.Raised, "raised")
	alert("b-acknowledged", event.Acknowledged, "acknowledged")
	alert("b-shelved", event.Raised, "raised")
	alert("b-shelved", event.Shelved, "shelved")
	alert("b-removed", event.TakenOutOfService, "out_of_service")
	h.machines["b-removed"].lastChange.Incident = "" // no alarm is open
	alert("a-raised", event.Raised, "raised")
	advise("a-raised", event.RefusedAdvisory, "warning")
	alert("a-word-of-a-later-release", event.Raised, "escalated")
	alert("a-chatter", event.Raised, "raised")
	alert("b-chatter", event.Raised, "raised")
	alert("b-chatter", event.Acknowledged, "acknowledged")
	alert("a-different", event.Raised, "raised")
	alert("a-different-back", event.Raised, "raised")
	h.machines["a-different-back"].raised.Class = event.Different
	back := testResult(9)
	back.Machine, back.Alarm, back.Incident = "a-different-back", "raised", "A-K3ZQ7M2P"
	h.Result(back)
	h.machines["a-different-back"].lastChange = &event.Alert{State: event.Cleared, Incident: "A-OTHER", Alarm: "normal"} // of the tool between
	alert("b-different", event.Raised, "raised")
	alert("b-different", event.Acknowledged, "acknowledged")
	for _, name := range []string{"a-different", "b-different"} {
		h.machines[name].lastChange.Finding, h.machines[name].lastChange.Class = "different from before", event.Different
	}
	for _, name := range []string{"a-chatter", "b-chatter"} {
		h.machines[name].lastChange.Finding = "chatter"
	}
	var got []string
	for _, tile := range h.server.fleet(httptest.NewRequest(http.MethodGet, "/", nil)).Machines {
		key := "-"
		if tile.Instruction != nil {
			key = tile.Instruction.Key
		}
		got = append(got, fmt.Sprint(tile.Rank, " ", tile.Name, " ", key))
	}
	want := []string{
		"0 a-chatter look_at_finding", "0 a-different look_at_different", "0 a-different-back look_at_different", "0 a-raised change_tool", "0 a-word-of-a-later-release change_tool", "1 b-acknowledged change_tool_acknowledged", "1 b-chatter look_at_finding_acknowledged", "1 b-different look_at_different_acknowledged", "1 b-removed alarm_out_of_service", "1 b-shelved alarm_shelved",
		"2 c-refused windows_refused", "2 c-silent check_gateway", "2 c-stopped judging_stopped", "2 c-unknown reference_rebuilt", "3 f-worn plan_tool_change", "4 d-sensor check_sensor", "5 e-drift check_drift", "5 e-used reference_of_used_tool", "6 g-normal -",
	}
	if !slices.Equal(got, want) {
		t.Errorf("tiles are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The alarm of a tool that is back has no alert of its own. Its beginning and what is to be done are as before, also if the tool
// between had an alarm.
func TestAlarmOfAToolThatIsBack(t *testing.T) {
	h := newTestHub()
	for seq, a := range []event.Alert{
		{Tool: "T1", Incident: "A-AAAAAAAA", State: event.Raised, Alarm: "raised", Class: event.Different, Since: t0.Add(-time.Hour), Faulty: 5, Of: 8},
		{Tool: "T1", Incident: "A-AAAAAAAA", State: event.Cleared, Alarm: "normal", Reason: "tool_change", Since: t0.Add(-time.Hour)},
		{Tool: "T2", Incident: "A-BBBBBBBB", State: event.Raised, Alarm: "raised", Since: t0, Faulty: 6, Of: 8},
		{Tool: "T2", Incident: "A-BBBBBBBB", State: event.Cleared, Alarm: "normal", Reason: "recovered", Since: t0},
	} {
		a.ID, a.Machine, a.Epoch, a.Seq = fmt.Sprint(seq), testMachine, testResult(1).Epoch, uint64(seq)
		h.Alert(a)
	}
	r := testResult(9)
	r.Tool, r.Alarm, r.Incident = "T1", "raised", "A-AAAAAAAA"
	h.Result(r)
	tile := tiles(h)[testMachine]
	if tile.Since == nil || !tile.Since.Equal(t0.Add(-time.Hour)) || tile.Instruction.Key != "look_at_different" || tile.Instruction.Args["faulty"] != 5 {
		t.Errorf("%s", encode(tile))
	}
}

// The level of a tile is of the tool that is in: what the last window reads, and after how many more windows it comes to the limit,
// by the windows of this tool and model alone. It goes when the model is another one.
func TestLevelOfTile(t *testing.T) {
	h := newTestHub()
	first := &FirstDay{Sensor: "F_f", Limit: 2, Lives: 3}
	h.facts = func(_, model string) Facts {
		if model != "first" {
			return Facts{}
		}
		return Facts{FirstDay: first, Borrowed: true}
	}
	seq := uint64(0)
	result := func(tool, model string, verdict event.Verdict, times float64) *Tile {
		seq++
		r := event.Result{ID: fmt.Sprint(seq), Machine: "m", Epoch: "00000000000000a1", Seq: seq, Tool: tool, Model: model, Verdict: verdict, Start: t0.Add(time.Duration(seq) * time.Second), End: t0.Add(time.Duration(seq+1) * time.Second)}
		if times > 0 {
			r.Score, r.Level = times/(times+first.Limit), times
			r.Posterior = []float64{1 - r.Score, r.Score}
		}
		h.Result(r)
		return h.machines["m"].tile(t0)
	}
	for i := range 30 { // a tool before, which fell
		result("A", "first", event.Healthy, 3-float64(i)/20)
	}
	if l := result("B", "first", event.Learning, 0).Level; l == nil || l.Times != nil || l.WindowsLeft != nil || l.FirstDay != *first {
		t.Errorf("while the reference is learnt: %+v", l)
	}
	var tile *Tile
	for i := range 40 {
		tile = result("B", "first", event.Healthy, math.Exp(0.01*float64(i))) // ln 2 at 69.3, the median of the last five is at 37
		if i == 8 && tile.Level.WindowsLeft != nil {
			t.Errorf("a trend of nine windows: %v", *tile.Level.WindowsLeft)
		}
	}
	if l := tile.Level; l == nil || *l.Times != 1.48 || l.WindowsLeft == nil || *l.WindowsLeft != 33 || !tile.Borrowed {
		t.Errorf("%s", event.JSON(tile))
	}
	if l := result("B", "first", event.SensorFault, 0).Level; l == nil || l.Times != nil {
		t.Errorf("a window that was not judged: %+v", l)
	}
	if tile := result("B", "second", event.Healthy, 0); tile.Level != nil || tile.Borrowed {
		t.Errorf("another model: %s", event.JSON(tile))
	}
}

// The wear of a tile is of the tool that is in, and of its reference.
func TestWearOfTile(t *testing.T) {
	h := newTestHub()
	h.facts = func(string, string) Facts { return Facts{LimitUM: 300} }
	seq := uint64(0)
	step := func(what, want string, change func(*event.Result)) {
		t.Helper()
		seq++
		r := testResult(seq)
		change(&r)
		h.Result(r)
		tile := tiles(h)[testMachine]
		if got := string(encode([]any{tile.Wear, tile.Left})); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	full := `[{"um":120,"low_um":0,"high_um":200,"limit_um":300},{"holes":[0.3,0,null]}]`
	step("a model that estimates no wear", `[null,null]`, func(*event.Result) {})
	step("wear, its interval from 0", full, func(r *event.Result) {
		r.Wear = &event.Wear{WearUM: 120.4, WearLowUM: 0, WearHighUM: 200, HolesLeft: ptr(0.21), HolesLeftLow: ptr(0.1)}
	})
	step("between holes it stays", full, func(r *event.Result) { r.Verdict = event.NotCutting })
	step("without a tool's name it stays", full, func(r *event.Result) { r.Tool, r.Verdict, r.Unknown = "", event.Unknown, event.NoTool })
	step("and with it", full, func(*event.Result) {})
	step("unknown", `[{"limit_um":300,"unknown":true},null]`, func(r *event.Result) { r.WearUnknown = true })
	step("at the limit", `[{"um":300,"low_um":250,"high_um":350,"limit_um":300},{"holes":[0,0,4]}]`, func(r *event.Result) {
		r.Wear = &event.Wear{WearUM: 300, WearLowUM: 250, WearHighUM: 350, HolesLeft: ptr(0.0), HolesLeftLow: ptr(0.0), HolesLeftHigh: ptr(3.2)}
	})
	step("another one under its name", `[null,null]`, func(r *event.Result) { r.ToolLife, r.Verdict = "2", event.NotCutting })
	step("another tool", `[null,null]`, func(r *event.Result) { r.Tool = "T08" })
	step("its wear", `[{"um":0,"low_um":0,"high_um":0,"limit_um":300},{"windows":[7,6,9]}]`, func(r *event.Result) {
		r.Tool, r.Wear = "T08", &event.Wear{WindowsLeft: ptr(7.0), WindowsLeftLow: ptr(6.5), WindowsLeftHigh: ptr(8.5)}
	})
	step("its reference is made again", `[null,null]`, func(r *event.Result) { r.Tool, r.Verdict = "T08", event.Learning })
}

// What is not known is left out, and no number is left out because it is 0.
func TestNumbersOfTheWire(t *testing.T) {
	seen := make(map[reflect.Type]bool)
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] || !strings.HasSuffix(of.PkgPath(), "internal/web") {
			return
		}
		seen[of] = true
		for f := range of.NumField() {
			field := of.Field(f)
			omits := strings.Contains(field.Tag.Get("json"), "omit")
			switch field.Type.Kind() {
			case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Float32, reflect.Float64:
				if omits {
					t.Errorf("%s.%s is left out if it is 0", of, field.Name)
				}
			}
			if field.Type == reflect.TypeFor[time.Time]() && field.Name != "Now" && field.IsExported() {
				t.Errorf("%s.%s is a time that is sent if it is not known: use a pointer", of, field.Name)
			}
			look(field.Type)
		}
	}
	for _, v := range []any{fleetJSON{}, frameJSON{}, machineSnapshot{}, machineUpdate{}, alarmSnapshotJSON{}, systemPage{}, spectrumJSON{}, Deployed{}, ModelDetail{}} {
		look(reflect.TypeOf(v))
	}
	h := newTestHub()
	h.Result(event.Result{Machine: testMachine, Verdict: event.Unknown})
	h.Alert(event.Alert{Machine: testMachine, ID: "a", State: event.Raised, Alarm: "raised", Incident: "A-K3ZQ7M2P"})
	h.Advisory(event.Advisory{Machine: testMachine, ID: "b", Kind: event.RefusedAdvisory, State: event.Raised})
	h.Evidence(event.Evidence{Machine: testMachine, ID: "c", Incident: "A-K3ZQ7M2P"})
	h.Window(Window{Machine: testMachine})
	s, _ := h.server.snapshot(testMachine)
	a, _, err := h.server.alarm(testMachine, "A-K3ZQ7M2P")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{s, a, h.server.fleet(httptest.NewRequest(http.MethodGet, "/", nil))} {
		if data := encode(v); bytes.Contains(data, []byte(`"0001-`)) || bytes.Contains(data, []byte(`"1970-`)) {
			t.Errorf("a time that is not known: %s", data)
		}
	}
}

// What one second of 500 machines with a window each costs the hub and ten pages of the fleet,
// per machine and second. Judging a window of the gun drill takes the monitor some milliseconds
// (docs/figures/performance.md): a tenth of one is 100,000 ns.
func BenchmarkFleetPage(b *testing.B) {
	const machines, pages = 500, 10
	h := newTestHub()
	now := t0
	h.now = func() time.Time { return now }
	names := fleetNames(machines)
	rounds := make([][]event.Result, 64)
	for i := range rounds {
		rounds[i] = fleetResults(names, uint64(i))
	}
	for _, r := range rounds[0] {
		h.Result(r)
	}
	var views []*fleetView
	for range pages {
		v := &fleetView{server: &h.server, r: httptest.NewRequest(http.MethodGet, "/", nil)}
		v.next()
		views = append(views, v)
	}
	second := uint64(0)
	bytes := 0
	b.ReportAllocs()
	for b.Loop() {
		second++
		now = now.Add(time.Second)
		for _, r := range rounds[second%uint64(len(rounds))] {
			r.Seq = second
			h.Result(r)
		}
		for _, v := range views {
			for _, m := range v.next() {
				bytes += len(m.data)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/machines, "ns/machine-second")
	b.ReportMetric(float64(bytes)/float64(b.N)/pages, "B/page-second")
}
