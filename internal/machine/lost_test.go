package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
)

// losing are losses in a minute: pairs of reason and seconds.
func losing(pairs ...any) (all []event.LostSamples) {
	for i := 0; i < len(pairs); i += 2 {
		seconds, ok := pairs[i+1].(float64)
		if !ok {
			seconds = float64(pairs[i+1].(int))
		}
		all = append(all, event.LostSamples{Reason: pairs[i].(string), Seconds: seconds})
	}
	return all
}

// account gives the machine the next ledger of its gateway.
func (b *bench) account(loss []event.LostSamples, idle float64) Decision {
	b.t.Helper()
	l := &event.SourceLedger{Machine: drill, Ledger: event.Ledger{Received: 60, InWindows: 5, Unused: []event.UnusedSamples{{Reason: "gap", Samples: 3}}}, Lost: loss, Idle: idle}
	return b.apply(sourceLedger{l, noon.Add(b.sent)})
}

// A ledger with too many lost samples raises one advisory, which names the reasons and lasts until a ledger has none, or
// until windows come and no ledgers. Restarts change nothing.
func TestSamplesLost(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		b := newBench(t, machinetest.OneValue(t))
		step := b.steps(restarts)
		step(b.window(at(0, "T1", false)))
		wantStrings(t, "a ledger without losses", step(b.account(nil, 0)), nil)
		d := b.account(losing("short_session", 40.2, "gap", 5), 0)
		wantStrings(t, "losses", step(d), []string{"samples_lost raised"})
		if a := d.Advisories[0]; a.Severity != "warning" || a.Tool != "T1" || !a.At.Equal(noon.Add(b.sent)) || !strings.Contains(a.Text, "drill: SAMPLES LOST, 45 s of the samples of a minute are in no window (short session 40 s, gap 5 s)") {
			t.Errorf("%+v", a)
		}
		wantStrings(t, "more of them", step(b.account(losing("gap", 50), 0)), nil)
		wantStrings(t, "no losses", step(b.account(nil, 0)), []string{"samples_lost cleared"})
		wantStrings(t, "losses again", step(b.account(losing("gap", 50), 0)), []string{"samples_lost raised"})
		b.sent += 10 * time.Minute
		wantStrings(t, "windows within 10 minutes", step(b.window(at(1, "T1", false))), nil)
		wantStrings(t, "windows without ledgers", step(b.window(at(2, "T1", false))), []string{"samples_lost cleared"})
	}
}

// The next result has the ledger, once.
func TestResultHasLedger(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.account(nil, 0)
	if l := b.window(at(0, "T1", false)).Result.Ledger; l == nil || l.Received != 60 || l.InWindows != 5 {
		t.Errorf("%+v", l)
	}
	if l := b.window(at(1, "T1", false)).Result.Ledger; l != nil {
		t.Errorf("%+v again", l)
	}
}

// A machine that is silent says what its gateway knows of the reason, if that is not old.
func TestSilentWithLedger(t *testing.T) {
	for name, tc := range map[string]struct {
		lost []event.LostSamples
		idle float64
		age  time.Duration
		want string
	}{
		"old samples":               {nil, 30, time.Minute, "Its ingester said at 12:00:01 that for 30s only samples had come that came before: restart what sends them"},
		"a rate that is missing":    {nil, 0, time.Minute, "Its ingester said at 12:00:01 that no samples of 100 Hz come while others do: look at the sensors of that rate"},
		"samples that are lost":     {losing("counter", 58), 0, time.Minute, "Its ingester said at 12:00:01 that samples come, and 58 s of the samples of a minute are in no window (counter 58 s)"},
		"no samples":                {nil, 57, time.Minute, "Its ingester said at 12:00:01 that no sample had come for 57s"},
		"samples":                   {nil, 0, time.Minute, "Its ingester said at 12:00:01 that samples come: look whether it still runs, at its log, and at Kafka"},
		"what was a long time ago":  {nil, 57, 2*time.Minute + 1, "Look at its ingester and sensors"},
		"no windows, but a ledger?": {nil, 57, 2 * time.Minute, "no sample had come for 57s"},
	} {
		b, _ := silent(t)
		l := event.SourceLedger{Machine: drill, Lost: tc.lost, Idle: tc.idle, Repeating: name == "old samples"}
		if name == "a rate that is missing" {
			l.Silent = []float64{100}
		}
		b.apply(sourceLedger{&l, noon.Add(b.sent)})
		now := noon.Add(b.sent + tc.age)
		b.m.EndIs(Position{Windows: 1}, true, now)
		d := b.apply(Tick{Now: now, Next: Position{Windows: 1}})
		if got := d.Advisories; len(got) != 1 || !strings.Contains(got[0].Text, "its tool is not monitored. ") || !strings.Contains(got[0].Text, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A machine that a deployment names is silent if no window of it ever comes, in the partition where its windows would
// come, until one does. One that only a pattern means is not missed.
func TestNeverSeen(t *testing.T) {
	const never, other = "acme/spore/bay2/line1/never", "acme/spore/bay2/line1/other"
	f := Everything(machinetest.OneValue(t))
	f.Named = []string{never, other}
	for name, begin := range map[string]func(o *Owner){
		"at the start": func(o *Owner) { o.On(&f, time.Time{}); o.On(Loaded{}, noon) },
		"deployed later": func(o *Owner) {
			o.On(Loaded{}, noon)
			o.On(Published{}, noon)
			o.On(&f, noon)
		},
	} {
		o := NewOwner(&Settings{Group: group, Alarm: testAlarm, Silence: time.Minute}, Everything(machinetest.OneValue(t)), 0)
		o.Has = func(machine string) bool { return machine == never }
		o.Start()
		o.On(Fenced{At: Position{}}, time.Time{})
		begin(o)
		o.On(Published{}, noon)
		var texts []string
		for after := range 63 {
			now := noon.Add(time.Duration(after) * time.Second)
			actions := o.On(Tick{Now: now, Next: Position{Windows: 1, Features: 1}}, now)
			for len(actions) > 0 {
				a := actions[0]
				actions = actions[1:]
				if is[AskEnd](a) {
					actions = append(actions, o.On(End{Known: true}, now)...)
				}
				if b, ok := a.(*Batch); ok {
					for _, e := range b.Events {
						a := e.(Advisory)
						texts = append(texts, a.Machine+" "+string(a.State)+" "+a.Text)
					}
					actions = append(actions, o.On(Published{}, now)...)
				}
			}
		}
		if len(texts) != 1 || !strings.HasPrefix(texts[0], never+" raised never: SILENT, no window of it has ever come") {
			t.Errorf("%s: %q", name, texts)
		}
	}
}

// An owner meets a machine of which it knows nothing if the samples of its source are lost, or if no windows come of them. Then it is silent.
func TestOwnerAccounts(t *testing.T) {
	o := readyOwner(t)
	ledger := func(machine string, windowed uint64, loss []event.LostSamples) Reply {
		return Read{Log: WindowLog, Inputs: []Input{{At: noon, Ledger: &event.SourceLedger{Machine: machine, Ledger: event.Ledger{Received: 60, InWindows: windowed}, Lost: loss, Silent: []float64{100}}}}}
	}
	o.On(ledger("acme/spore/bay2/line1/well", 60, nil), noon)
	o.On(Published{}, noon)
	if m := o.Machine("acme/spore/bay2/line1/well"); m != nil {
		t.Error("a ledger with windows makes a machine: they will")
	}
	o.On(ledger("acme/spore/bay2/line1/mute", 0, nil), noon)
	o.On(Published{}, noon)
	if m := o.Machine("acme/spore/bay2/line1/mute"); m == nil || m.waitingSince.IsZero() || !strings.Contains(m.source.whySilent(noon), "no samples of 100 Hz come") {
		t.Error("a ledger without windows makes no machine that can be silent")
	}
	var said []string
	for _, a := range o.On(ledger(drill, 60, losing("counter", 60)), noon) {
		if b, ok := a.(*Batch); ok {
			for _, e := range b.Events {
				said = append(said, string(e.(Advisory).Kind))
			}
		}
	}
	wantStrings(t, "losses of a machine without windows", said, []string{"samples_lost"})
}
