package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
)

// kept is what a hub should hold of a machine.
type kept struct {
	results []uint64 // seqs
	alerts  []string // ids
	shown   time.Time
	open    bool // an alarm is open
	event   int
}

// plainHub says in the plainest way what a hub holds after a series of events.
type plainHub struct {
	limit    int
	machines map[string]*kept
	removed  []string
	events   int
}

func (p *plainHub) get(name string, now time.Time) *kept {
	p.events++
	if p.machines[name] == nil {
		if len(p.machines) == p.limit {
			names := slices.Collect(maps.Keys(p.machines))
			names = slices.DeleteFunc(names, func(n string) bool { return now.Sub(p.machines[n].shown) < time.Minute })
			if len(names) == 0 {
				return &kept{} // it is not shown
			}
			slices.SortFunc(names, func(a, b string) int {
				x, y := p.machines[a], p.machines[b]
				switch {
				case x.open != y.open && x.open:
					return 1
				case x.open != y.open:
					return -1
				case !x.shown.Equal(y.shown):
					return x.shown.Compare(y.shown)
				}
				return x.event - y.event
			})
			p.removed = append(p.removed, names[0])
			delete(p.machines, names[0])
		}
		p.machines[name] = &kept{}
	}
	p.machines[name].event = p.events
	return p.machines[name]
}

// viewer is a page that looks at one machine and reads now and then.
type viewer struct {
	name    string
	at      cursor
	fresh   bool
	results []uint64
	alerts  []string
	listed  map[string]*Tile
}

// read takes what is new, and reports an event of another machine.
func (v *viewer) read(t *rapid.T, h *Hub) {
	var u machineUpdate
	if v.fresh {
		u, v.at, v.fresh = h.server.since(v.at, v.name)
	}
	if !v.fresh {
		var s machineJSON
		s, v.at = page(h, v.name)
		u, v.fresh = machineUpdate{Window: s.Window, Results: s.Results, Alerts: s.Alerts}, true
		v.results, v.alerts = nil, nil
	}
	if u.Tile != nil && u.Tile.Name != v.name || u.Window != nil && u.Window.Machine != v.name {
		t.Fatalf("the page of %s got an update of another machine: %+v", v.name, u)
	}
	for _, r := range u.Results {
		v.results = append(v.results, r.Seq)
	}
	for _, a := range u.Alerts {
		if a.Machine != v.name {
			t.Fatalf("the page of %s got an alert of %s", v.name, a.Machine)
		}
		v.alerts = append(v.alerts, a.ID)
	}
	v.listed = tiles(h)
}

// Machines come and go in any order: each page sees its own machine and no other, all of
// it once, and the list that it has is the hub's.
func TestMachinesAreKeptApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newTestHub()
		h.limit = rapid.IntRange(1, 4).Draw(t, "limit")
		now := t0
		h.now = func() time.Time { return now }
		plain := &plainHub{limit: h.limit, machines: make(map[string]*kept)}
		var names []string
		for i := range 7 {
			names = append(names, fmt.Sprintf("acme/site/area/line/m%d", i))
		}
		pages := make([]*viewer, 3)
		for i := range pages {
			pages[i] = &viewer{name: names[i]}
		}
		for seq := range rapid.Uint64Range(1, 120).Draw(t, "events") {
			name := rapid.SampledFrom(names).Draw(t, "machine")
			switch rapid.SampledFrom([]string{"window", "result", "raised", "cleared", "wait", "read"}).Draw(t, "what") {
			case "window":
				w := testWindow(seq)
				w.Machine = name
				h.Window(w)
				plain.get(name, now).shown = now
			case "result":
				r := testResult(seq)
				r.Machine, r.Late = name, true // so that it says nothing of the alarm
				h.Result(r)
				k := plain.get(name, now)
				k.results, k.shown = append(k.results, seq), now
			case "raised", "cleared":
				a := testAlert(seq)
				a.ID, a.Machine, a.Alarm, a.Incident = fmt.Sprintf("%s/%d", name, seq), name, "raised", "A-K3ZQ7M2P"
				open := seq%2 == 0
				if !open {
					a.State, a.Alarm = event.Cleared, "normal"
				}
				h.Alert(a)
				k := plain.get(name, now)
				k.alerts, k.open = append(k.alerts, a.ID), open
			case "wait":
				now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			case "read":
				rapid.SampledFrom(pages).Draw(t, "page").read(t, h)
			}
		}
		for _, v := range pages {
			v.read(t, h)
			want := plain.machines[v.name]
			if want == nil {
				want = &kept{}
			}
			if !slices.Equal(v.results, want.results) || !slices.Equal(v.alerts, want.alerts) {
				t.Fatalf("the page of %s has results %v and alerts %v, want %v and %v", v.name, v.results, v.alerts, want.results, want.alerts)
			}
			if got, want := slices.Sorted(maps.Keys(v.listed)), slices.Sorted(maps.Keys(plain.machines)); !slices.Equal(got, want) {
				t.Fatalf("the list has %v, want %v; %v were removed", got, want, plain.removed)
			}
			for name, m := range v.listed {
				if open := plain.machines[name].open; (m.Incident != "") != open {
					t.Fatalf("%s has the open alarm %q, want one: %v", name, m.Incident, open)
				}
			}
		}
	})
}

// More machines than there is room for: those that deliver stay, and the page says that
// there are others.
func TestCrowdedHub(t *testing.T) {
	h := newTestHub()
	h.limit = 2
	send := func(name string) {
		w := testWindow(1)
		w.Machine = name
		h.Window(w)
	}
	list := func() []string { return slices.Sorted(maps.Keys(tiles(h))) }
	crowded := func() bool { return h.server.fleet(httptest.NewRequest(http.MethodGet, "/", nil)).Crowded }
	for range 5 {
		for _, name := range []string{"a", "b", "c", ""} {
			send(name)
		}
	}
	if got := list(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("shown: %v", got)
	}
	if !crowded() {
		t.Error("a third machine is not shown, and the page does not say so")
	}
	h.now = func() time.Time { return t0.Add(time.Minute) }
	send("b")
	send("c")
	if got := list(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("shown after a was idle for a minute: %v", got)
	}
	if s, _ := h.server.snapshot("a"); crowded() || s != nil {
		t.Errorf("of a machine that is gone: %+v", s)
	}
}

// The state of an alarm comes from the last result, or from a later alert.
func TestStanding(t *testing.T) {
	at := func(epoch string, seq uint64, state event.AlertState, alarm string) event.Alert {
		return event.Alert{Machine: testMachine, ID: fmt.Sprint(epoch, seq, state), Epoch: epoch, Seq: seq, State: state, Alarm: alarm, Incident: "A-ALERTAAA"}
	}
	result := func(epoch string, seq uint64, alarm, incident string) event.Result {
		return event.Result{Machine: testMachine, Epoch: epoch, Seq: seq, Alarm: alarm, Incident: incident}
	}
	late := result("e", 9, "normal", "")
	late.Late = true
	for name, tc := range map[string]struct {
		events          []any
		alarm, incident string
	}{
		"nothing yet":                      {nil, "", ""},
		"a result":                         {[]any{result("e", 1, "raised", "A-RESULTAA")}, "raised", "A-RESULTAA"},
		"a late result says nothing":       {[]any{result("e", 1, "raised", "A-RESULTAA"), late}, "raised", "A-RESULTAA"},
		"an alert of before a restart":     {[]any{at("e", 7, "acknowledged", "acknowledged")}, "acknowledged", "A-ALERTAAA"},
		"a person, since the last result":  {[]any{result("e", 7, "raised", "A-ALERTAAA"), at("e", 7, "acknowledged", "acknowledged")}, "acknowledged", "A-ALERTAAA"},
		"a result since the alert":         {[]any{at("e", 7, "acknowledged", "acknowledged"), result("e", 8, "returned", "A-RESULTAA")}, "returned", "A-RESULTAA"},
		"another epoch":                    {[]any{at("d", 70, "raised", "raised"), result("e", 1, "normal", "")}, "normal", ""},
		"cleared":                          {[]any{at("e", 7, event.Cleared, "normal")}, "normal", ""},
		"cleared while it is shelved":      {[]any{at("e", 7, event.Cleared, "shelved")}, "shelved", ""},
		"a mark says nothing of the alarm": {[]any{at("e", 7, "raised", "raised"), at("e", 8, event.MarkedFalse, "normal")}, "raised", "A-ALERTAAA"},
	} {
		h := newTestHub()
		h.Window(testWindow(1))
		for _, e := range tc.events {
			switch e := e.(type) {
			case event.Alert:
				h.Alert(e)
			case event.Result:
				h.Result(e)
			}
		}
		if m := tiles(h)[testMachine]; m.Alarm != tc.alarm || m.Incident != tc.incident {
			t.Errorf("%s: %q %q, want %q %q", name, m.Alarm, m.Incident, tc.alarm, tc.incident)
		}
	}
}

// A machine that is retired leaves the list, and what still comes of it does not bring it
// back; its next window does.
func TestRetired(t *testing.T) {
	h := newTestHub()
	h.Window(testWindow(1))
	h.Alert(testAlert(1))
	_, at := h.server.snapshot(testMachine)
	retired := testAlert(2)
	retired.ID, retired.State = "retired", event.Retired
	h.Alert(retired)
	h.Advisory(event.Advisory{Machine: testMachine, ID: "a", State: event.Cleared})
	h.Evidence(event.Evidence{Machine: testMachine, ID: "e"})
	if _, _, ok := h.server.since(at, testMachine); ok {
		t.Error("a page goes on with a machine that is retired")
	}
	if s, _ := h.server.snapshot(testMachine); s != nil || len(tiles(h)) != 0 {
		t.Errorf("of a machine that is retired: %+v", s)
	}
	h.Window(testWindow(3))
	if s, _ := page(h, testMachine); len(tiles(h)) != 1 || len(s.Alerts) != 0 || s.Window == nil {
		t.Errorf("of a machine that came back: %+v", s)
	}
}

// A page of a machine that is not there yet waits for it, and sees no other machine.
func TestEventsOfOneMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub()
		b, stop := open(h, "page=machine&machine=z", "")
		defer stop()
		synctest.Wait()
		if es := b.read(t); len(es) != 1 || es[0].name != "snapshot" || es[0].Known || es[0].Machine != nil {
			t.Fatalf("before there is a machine: %+v", es)
		}
		for i, name := range []string{"z", "a", "z", "a"} {
			r := testResult(uint64(i))
			r.Machine = name
			h.Result(r)
			time.Sleep(pause)
			synctest.Wait()
			es := b.read(t)
			switch {
			case name == "a":
				if len(es) != 0 {
					t.Errorf("event %d is of another machine: %+v", i, es)
				}
			case i == 0:
				if len(es) != 1 || es[0].name != "snapshot" || !es[0].Known || len(es[0].Machine.Results) != 1 {
					t.Errorf("the machine came: %+v", es)
				}
			case len(es) != 1 || es[0].name != "update" || len(es[0].Results) != 1 || es[0].Tile.Strip != "hh":
				t.Errorf("event %d: %+v", i, es)
			}
		}
	})
}

// What a machine costs is bounded, and what the comment of Hub says: 500 machines, each with ten
// minutes of results and as many alerts that say why as a hub keeps, take 100 MB at most.
func TestMemoryOfAMachine(t *testing.T) {
	const machines, most = 6, 100e6 / maxMachines
	h := NewHub(Config{Layout: signal.GunDrill()})
	heap := func() float64 {
		runtime.GC()
		runtime.GC() // strings that are held once are freed by the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	samples := make([][]float32, len(signal.GunDrill().Channels()))
	for i := range samples {
		samples[i] = make([]float32, 100)
	}
	for i := range machines {
		name := fmt.Sprintf("acme/site/area/line/m%d", i)
		for seq := range uint64(keptResults + 50) {
			h.Window(Window{Machine: name, Seq: seq, Samples: samples})
			var r event.Result
			if err := json.Unmarshal(event.JSON(fullResult(name, seq)), &r); err != nil { // its strings are its own
				t.Fatal(err)
			}
			h.Result(r)
		}
	}
	full := (heap() - before) / machines
	for i := range machines {
		for seq := range uint64(2 * keptAlerts) {
			a := testAlert(seq)
			a.ID, a.Machine, a.Trace = fmt.Sprint(seq), fmt.Sprintf("acme/site/area/line/m%d", i), make([]event.Point, event.MaxTrace)
			a.Text = strings.Repeat("x", 300) + a.ID
			a.Reasons = &event.Reasons{Channels: make([]event.ChannelReason, event.MaxChannels), Features: make([]event.FeatureReason, event.MaxFeatures)}
			h.Alert(a)
		}
	}
	each := (heap() - before) / machines
	t.Logf("%.0f kB after ten minutes, %.0f kB with alerts that say why", full/1e3, each/1e3)
	if each > most {
		t.Errorf("a machine takes %.0f kB, want at most %.0f", each/1e3, most/1e3)
	}
	runtime.KeepAlive(h)
}

// fullResult returns a result of which everything is known. Every tenth has another hole.
func fullResult(machine string, seq uint64) event.Result {
	r := testResult(seq)
	r.Machine, r.ID, r.Hole = machine, event.WindowID(machine, r.Epoch, seq), fmt.Sprintf("H%d", seq/10)
	r.Wear = &event.Wear{WearUM: float64(seq) / 7, WearHighUM: 200, HolesLeft: ptr(12.0), HolesLeftLow: ptr(0.0), HolesLeftHigh: ptr(20.0)}
	r.Novelty, r.CuttingState, r.Incident, r.Alarm = 0.5, "drilling", "A-K3ZQ7M2P", "raised"
	r.Sensors = []event.Sensor{{Channel: "ch03", Flags: []string{"clipped"}}}
	return r
}

// A result comes out of the hub as it went in, but for the digits of its numbers: also numbers
// that are 0, and without those that are not known.
func TestResultsOfAPage(t *testing.T) {
	h := newTestHub()
	h.Result(fullResult(testMachine, 1))
	bare := event.Result{Machine: testMachine, Epoch: "00000000000000a1", Seq: 2, Verdict: event.Learning, Model: "m", Alarm: "normal", WearUnknown: true}
	h.Result(bare)
	windows := testResult(3)
	windows.Wear = &event.Wear{WindowsLeft: ptr(0.0), WindowsLeftLow: ptr(0.0)}
	h.Result(windows)
	s, _ := page(h, testMachine)
	for i, want := range []string{
		`{"epoch":"00000000000000a1","seq":1,"tool":"T07","hole":"H0","start":"2026-03-01T02:13:42Z","end":"2026-03-01T02:13:43Z","verdict":"healthy",` +
			`"cutting_state":"drilling","novelty":0.5,"posterior":[0.75,0.25],"score":0.25,"model":"ecs-dbn-17","alarm":"raised","incident":"A-K3ZQ7M2P",` +
			`"sensors":[{"channel":"ch03","flags":["clipped"]}],"wear_um":0.14285715,"wear_low_um":0,"wear_high_um":200,"holes_left":12,"holes_left_low":0,"holes_left_high":20}`,
		`{"epoch":"00000000000000a1","seq":2,"verdict":"learning","model":"m","alarm":"normal","reference_len":0,"wear_unknown":true}`,
		`{"epoch":"00000000000000a1","seq":3,"tool":"T07","hole":"H3_08","start":"2026-03-01T02:13:44Z","end":"2026-03-01T02:13:45Z","verdict":"healthy",` +
			`"posterior":[0.75,0.25],"score":0.25,"model":"ecs-dbn-17","alarm":"normal","wear_um":0,"wear_low_um":0,"wear_high_um":0,"windows_left":0,"windows_left_low":0}`,
	} {
		if got := string(encode(s.Results[i])); got != want {
			t.Errorf("result %d is\n%s, want\n%s", i, got, want)
		}
	}
}

// A machine whose windows are refused is in the list of machines, with the time since when,
// until that is over; also one of which no window was ever judged.
func TestRefusedMachine(t *testing.T) {
	h := newTestHub()
	refused := func() *float64 {
		m := tiles(h)[testMachine]
		if m == nil || m.Verdict != "" || m.WindowAge != nil {
			t.Fatalf("tile %+v", m)
		}
		return m.RefusedAge
	}
	a := event.Advisory{Machine: testMachine, ID: "1", Kind: event.RefusedAdvisory, State: event.Raised, Since: t0}
	h.Advisory(a)
	h.now = func() time.Time { return t0.Add(3 * time.Second) }
	h.Advisory(a) // again, after a restart of the monitor
	h.Advisory(event.Advisory{Machine: testMachine, ID: "2", Kind: event.SilenceAdvisory, State: event.Raised})
	if age := refused(); age == nil || *age != 3 {
		t.Errorf("refused for %v", age)
	}
	h.Advisory(event.Advisory{Machine: testMachine, ID: "3", Kind: event.SilenceAdvisory, State: event.Cleared})
	if refused() == nil {
		t.Error("the end of another advisory ends it")
	}
	h.Advisory(event.Advisory{Machine: testMachine, ID: "4", Kind: event.RefusedAdvisory, State: event.Cleared})
	if age := refused(); age != nil {
		t.Errorf("refused for %v s after the end", *age)
	}
}
