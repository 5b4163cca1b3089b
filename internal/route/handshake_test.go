package route

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const handshakeTimeout = 30 * time.Second

func testPause(failures int) time.Duration { return time.Duration(min(failures, 6)) * 10 * time.Second }

// plc is a controller with the three variables and a way to answer.
type plc struct {
	requestVariables
	seen  map[string]int // rising edges of request, by id
	acked map[string]bool
	was   bool
}

func newPLC(byID bool) *plc {
	return &plc{requestVariables: requestVariables{byID: byID}, seen: make(map[string]int), acked: make(map[string]bool)}
}

func (p *plc) apply(w requestWrite, incident string) {
	switch w {
	case writeAsk:
		p.request, p.id = true, incident
	case writeTaken:
		p.request, p.id = false, incident
	case writeWithdraw:
		p.request, p.id = false, ""
	}
	if p.request && !p.was {
		p.seen[p.id]++
	}
	p.was = p.request
}

// cycle is one cycle of a PLC whose program follows the how-to.
func (p *plc) cycle() {
	switch {
	case p.request && p.byID:
		p.acknowledged = p.id
		p.acked[p.id] = true
	case p.request && !p.set:
		p.set = true
		p.acked[p.id] = true
	case !p.request:
		p.set = false
	}
}

// Cases that a table shows better than a property does.
func TestHandshake(t *testing.T) {
	const id, other = "A-K3ZQ7M2P", "A-AAAAAAAA"
	at := func(s int) time.Time { return monday.Add(time.Duration(s) * time.Second) }
	for name, tc := range map[string]struct {
		h     handshake
		want  string
		v     requestVariables
		now   int
		write requestWrite
		found outcome
		phase phase
	}{
		"an alarm is raised":                             {handshake{}, id, requestVariables{}, 0, writeAsk, undecided, asking},
		"no alarm and nothing is left":                   {handshake{}, "", requestVariables{}, 0, writeNothing, undecided, idle},
		"the PLC has not answered yet":                   {handshake{id, asking, at(0), 0, at(0)}, id, requestVariables{request: true, id: id}, 29, writeNothing, undecided, asking},
		"it acknowledges":                                {handshake{id, asking, at(0), 0, at(0)}, id, requestVariables{request: true, id: id, set: true}, 1, writeTaken, requestTaken, taken},
		"it acknowledges the id":                         {handshake{id, asking, at(0), 0, at(0)}, id, requestVariables{request: true, id: id, byID: true, acknowledged: id}, 1, writeTaken, requestTaken, taken},
		"it acknowledges another id":                     {handshake{id, asking, at(0), 0, at(0)}, id, requestVariables{request: true, id: id, byID: true, acknowledged: other}, 1, writeNothing, undecided, asking},
		"the time is over":                               {handshake{id, asking, at(0), 0, at(0)}, id, requestVariables{request: true, id: id}, 30, writeWithdraw, requestMissed, pausing},
		"it acknowledges in the last moment":             {handshake{id, asking, at(0), 0, at(0)}, id, requestVariables{request: true, id: id, set: true}, 31, writeTaken, requestTaken, taken},
		"a pause":                                        {handshake{id, pausing, at(0), 1, at(40)}, id, requestVariables{}, 39, writeNothing, undecided, pausing},
		"a withdrawal that did not get there":            {handshake{id, pausing, at(0), 1, at(40)}, id, requestVariables{request: true, id: id}, 35, writeWithdraw, undecided, pausing},
		"the pause is over":                              {handshake{id, pausing, at(0), 1, at(40)}, id, requestVariables{}, 40, writeAsk, undecided, asking},
		"the id is acknowledged late":                    {handshake{id, pausing, at(0), 1, at(40)}, id, requestVariables{byID: true, acknowledged: id}, 35, writeTaken, requestTaken, taken},
		"a Boolean is late, and says not of what":        {handshake{id, pausing, at(0), 1, at(40)}, id, requestVariables{set: true}, 35, writeNothing, undecided, pausing},
		"a Boolean that is set before any request":       {handshake{}, id, requestVariables{set: true}, 0, writeNothing, undecided, asking},
		"and stays set":                                  {handshake{id, asking, at(0), 0, at(0)}, id, requestVariables{set: true}, 30, writeNothing, requestMissed, pausing},
		"restarted while the PLC thinks":                 {handshake{}, id, requestVariables{request: true, id: id}, 500, writeNothing, undecided, asking},
		"restarted, and acknowledged meanwhile":          {handshake{}, id, requestVariables{request: true, id: id, set: true}, 500, writeTaken, requestTaken, taken},
		"restarted after it was taken":                   {handshake{}, id, requestVariables{id: id}, 500, writeNothing, undecided, taken},
		"restarted, with a request of an earlier alarm":  {handshake{}, id, requestVariables{request: true, id: other}, 500, writeWithdraw, undecided, asking},
		"restarted, an earlier alarm was acknowledged":   {handshake{}, id, requestVariables{request: true, id: other, set: true}, 500, writeWithdraw, undecided, asking},
		"the alarm ends before the PLC answers":          {handshake{id, asking, at(0), 0, at(0)}, "", requestVariables{request: true, id: id}, 5, writeWithdraw, undecided, idle},
		"the alarm ends after it was taken":              {handshake{id, taken, at(0), 0, at(0)}, "", requestVariables{id: id}, 5, writeWithdraw, undecided, idle},
		"the next alarm follows at once":                 {handshake{id, taken, at(0), 0, at(0)}, other, requestVariables{id: id}, 5, writeAsk, undecided, asking},
		"the next alarm, and the Boolean is still set":   {handshake{id, taken, at(0), 0, at(0)}, other, requestVariables{id: id, set: true}, 5, writeNothing, undecided, asking},
		"the PLC was restarted while it was asked":       {handshake{id, asking, at(0), 0, at(0)}, id, requestVariables{}, 5, writeAsk, undecided, asking},
		"the PLC was restarted after it took it":         {handshake{id, taken, at(0), 0, at(0)}, id, requestVariables{}, 5, writeTaken, undecided, taken},
		"a monitor that lost the machine wrote too late": {handshake{id, taken, at(0), 0, at(0)}, id, requestVariables{request: true, id: id}, 5, writeTaken, undecided, taken},
	} {
		h := tc.h
		write, found := h.next(tc.want, tc.v, at(tc.now), handshakeTimeout, testPause)
		if write != tc.write || found != tc.found || h.phase != tc.phase {
			t.Errorf("%s: write %d, outcome %d, phase %d, want %d, %d, %d", name, write, found, h.phase, tc.write, tc.found, tc.phase)
		}
	}
}

// For any alarms, restarts and take-overs of monitors, restarts of the PLC, lost answers and late writes:
// a request is taken only if the PLC acknowledged it; a request never outlives its alarm by more
// than a step; and once the PLC follows the how-to and the rest is quiet, it takes the request.
func TestHandshakeWithAnyPLC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPLC(rapid.Bool().Draw(t, "by id"))
		now, want, incidents := monday, "", 0
		var h, zombie handshake
		step := func(h *handshake, want string) outcome {
			w, found := h.next(want, p.requestVariables, now, handshakeTimeout, testPause)
			if found == requestTaken && !p.acked[want] {
				t.Fatalf("%s counts as taken, and the PLC acknowledged %v", want, p.acked)
			}
			p.apply(w, want)
			if p.request && p.id == "" {
				t.Fatal("a request without an id")
			}
			return found
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // the alarm begins or ends
				if want != "" {
					want = ""
				} else {
					incidents++
					want = "A-" + string(rune('A'+incidents))
				}
			case 1:
				h = handshake{} // the monitor is restarted
			case 2:
				zombie, h = h, handshake{} // another one takes over
			case 3:
				if zombie.incident != "" {
					step(&zombie, zombie.incident)
				}
			case 4: // the PLC is restarted
				p.requestVariables, p.was = requestVariables{byID: p.byID}, false
			case 5: // the PLC acknowledges anything
				p.acknowledged = rapid.SampledFrom([]string{"", "A-A", "A-B", "A-Z"}).Draw(t, "acknowledged")
				if p.set = rapid.Bool().Draw(t, "set"); p.byID || p.set && p.request {
					p.acked[p.acknowledged], p.acked[p.id] = true, true
				}
			case 6:
				p.cycle()
			default:
				step(&h, want)
				if want == "" && (p.request || p.id != "") {
					t.Fatalf("no alarm is open, the PLC has %+v", p.requestVariables)
				}
			}
		}
		if want == "" {
			want = "A-Y"
		}
		for range 200 {
			now = now.Add(time.Second)
			p.cycle()
			step(&h, want)
		}
		if h.phase != taken || p.request || p.id != want {
			t.Fatalf("phase %d, the PLC has %+v", h.phase, p.requestVariables)
		}
	})
}

// A PLC that answers in time sees each alarm's request once, for any restarts of the monitor.
func TestHandshakeAsksOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPLC(rapid.Bool().Draw(t, "by id"))
		var h handshake
		now, want, incidents := monday, "", 0
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				if want != "" {
					want = ""
				} else {
					incidents++
					want = "A-" + string(rune('A'+incidents))
				}
			case 1:
				h = handshake{}
			}
			p.cycle()
			w, _ := h.next(want, p.requestVariables, now, time.Hour, testPause)
			p.apply(w, want)
		}
		for id, n := range p.seen {
			if n > 1 {
				t.Fatalf("%s was requested %d times", id, n)
			}
		}
	})
}
