package monitor

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/schemas"
)

// fiveForces returns a layout of five channels, of which one may fail without the tool
// being judged no more.
func fiveForces(t *testing.T) *signal.Layout {
	t.Helper()
	var channels []signal.Channel
	for i := range 5 {
		channels = append(channels, signal.Channel{Name: fmt.Sprint("ch", i+1), Kind: signal.Feature, Unit: "N", Rate: 1})
	}
	l, err := signal.NewLayout("five forces", channels)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// resultAt returns what a judge says of window seq, one a second.
func resultAt(seq int, v event.Verdict) *event.Result {
	w := at(uint64(seq), "T1", false)
	return &event.Result{ID: event.WindowID(drill, w.EpochString(), w.Seq), Machine: drill, Epoch: w.EpochString(), Seq: w.Seq, Tool: "T1", Start: w.Start, End: w.End(), Verdict: v, Model: "m"}
}

func TestSensorAdvisories(t *testing.T) {
	const flat, step, clip, rate = signal.Flatline, signal.ClockStep, signal.Clipped, signal.RateError
	bad := func(n int, q signal.Quality) (s []signal.Quality) { return slices.Repeat([]signal.Quality{q}, n) }
	good := func(n int) []signal.Quality { return bad(n, 0) }
	for name, tc := range map[string]struct {
		ch2     []signal.Quality // of the second channel, window by window
		all     bool             // the others have the flags too
		verdict event.Verdict
		want    []string // seq, state, status, severity: text
	}{
		"a touch is none": {slices.Concat(good(3), bad(2, clip), good(90)), false, event.Healthy, nil},
		"a dead sensor, mended": {slices.Concat(good(2), bad(10, flat), good(70)), false, event.Healthy, []string{
			"4 raised failure warning: drill: SENSOR ch2 Failure: flatline; tool verdict on 4 channels",
			"71 cleared  info: drill: SENSOR ch2 normal again; flatline of 02:00:02 is over",
		}},
		"the gravest of what is wrong": {slices.Concat(bad(2, clip), bad(1, clip|flat)), false, event.NotCutting, []string{
			"2 raised failure warning: drill: SENSOR ch2 Failure: flatline, clipped; tool verdict on 4 channels",
		}},
		"clipping": {bad(3, clip), false, event.Healthy, []string{
			"2 raised out_of_specification warning: drill: SENSOR ch2 Out of specification: clipped; tool verdict on 4 channels",
		}},
		"a clock that jumps once, and all its channels with it": {slices.Concat(good(1), bad(1, step), good(70)), true, event.SensorFault, []string{
			"1 raised maintenance_required info: drill: SENSOR clock Maintenance required: clock_step; no tool verdict",
			"61 cleared  info: drill: SENSOR clock normal again; clock_step of 02:00:01 is over",
		}},
		"a wrong rate for as long as it is wrong": {slices.Concat(bad(100, rate), good(10)), false, event.Healthy, []string{
			"0 raised out_of_specification warning: drill: SENSOR clock Out of specification: rate_error; tool verdict on 4 channels",
		}},
		"a loose wire does not chatter": {slices.Concat(bad(5, flat), good(30), bad(5, flat), good(30), bad(5, flat)), false, event.Healthy, []string{
			"2 raised failure warning: drill: SENSOR ch2 Failure: flatline; tool verdict on 4 channels",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mach := newTestMachine(t, oneValue(t))
			var got []string
			for seq, q := range tc.ch2 {
				faults := make([]signal.Quality, 5)
				faults[1] = q
				if tc.all {
					faults = slices.Repeat([]signal.Quality{q}, 5)
				}
				mach.told = nil
				mach.senses(faults, fiveForces(t), resultAt(seq, tc.verdict))
				for _, a := range mach.told {
					got = append(got, fmt.Sprintf("%d %s %s %s: %s", a.Seq, a.State, a.Status, a.Severity, a.Text))
					if err := schemas.Validate(schemas.Advisory, event.JSON(a)); err != nil {
						t.Error(err)
					}
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
			if n := len(mach.notices); len(tc.want)%2 == 0 && n != 0 {
				t.Errorf("%d notices are kept of what is over", n)
			}
		})
	}
}

// All channels of a card that dies are one advisory, which names them; what is the
// matter with one of them beyond that is told when the card is back.
func TestSensorsOfOneRate(t *testing.T) {
	const flat, drop, clip = signal.Flatline, signal.Dropout, signal.Clipped
	layout, err := signal.NewLayout("two cards", []signal.Channel{
		{Name: "x", Kind: signal.Vibration, Rate: 20000}, {Name: "thrust", Kind: signal.Force, Rate: 100}, {Name: "y", Kind: signal.Vibration, Rate: 20000},
		{Name: "z", Kind: signal.Vibration, Rate: 20000}, {Name: "temperature", Kind: signal.Feature, Rate: 0.1},
	})
	if err != nil {
		t.Fatal(err)
	}
	type span struct {
		windows          int
		x, y, z, another signal.Quality
	}
	const (
		down  = "drill: SENSORS 20000Hz Failure: dropout of all 3 channels, x, y, z; no tool verdict"
		up    = "drill: SENSORS 20000Hz: dropout of 02:00:02 of all 3 channels, x, y, z, is over"
		named = "x,y,z"
	)
	for name, tc := range map[string]struct {
		spans []span
		want  []string // seq, state, status, channels: text
	}{
		"a card dies and comes back": {[]span{{2, 0, 0, 0, 0}, {100, drop, drop, drop, 0}, {80, 0, 0, 0, 0}}, []string{
			"4 raised failure " + named + ": " + down, "161 cleared  " + named + ": " + up,
		}},
		"two of three": {[]span{{10, drop, drop, 0, 0}}, []string{
			"2 raised failure : drill: SENSOR x Failure: dropout; no tool verdict", "2 raised failure : drill: SENSOR y Failure: dropout; no tool verdict",
		}},
		"a card with another beside it": {[]span{{2, 0, 0, 0, 0}, {3, drop, drop, drop, flat}}, []string{
			"4 raised failure " + named + ": " + down, "4 raised failure : drill: SENSOR thrust Failure: flatline; no tool verdict",
		}},
		"clipping together is of each": {[]span{{3, clip, clip, clip, 0}}, []string{
			"2 raised out_of_specification : drill: SENSOR x Out of specification: clipped; no tool verdict",
			"2 raised out_of_specification : drill: SENSOR y Out of specification: clipped; no tool verdict",
			"2 raised out_of_specification : drill: SENSOR z Out of specification: clipped; no tool verdict",
		}},
		"one stays dead": {[]span{{2, 0, 0, 0, 0}, {10, drop, drop, drop, 0}, {70, 0, drop, 0, 0}, {60, 0, 0, 0, 0}}, []string{
			"4 raised failure " + named + ": " + down, "71 cleared  " + named + ": " + up,
			"71 raised failure : drill: SENSOR y Failure: dropout; no tool verdict", "141 cleared  : drill: SENSOR y normal again; dropout of 02:00:02 is over",
		}},
		"one stays dead for a while": {[]span{{2, 0, 0, 0, 0}, {10, drop, drop, drop, 0}, {30, 0, drop, 0, 0}, {90, 0, 0, 0, 0}}, []string{
			"4 raised failure " + named + ": " + down, "71 cleared  " + named + ": " + up,
		}},
		"one was dead before": {[]span{{2, 0, 0, drop, 0}, {10, 0, 0, drop, 0}, {10, drop, drop, drop, 0}, {70, 0, 0, 0, 0}}, []string{
			"2 raised failure : drill: SENSOR z Failure: dropout; no tool verdict",
			"14 raised failure " + named + ": " + down,
			"81 cleared  " + named + ": " + strings.Replace(up, ":02 of", ":12 of", 1),
			"81 cleared  : drill: SENSOR z normal again; dropout of 02:00:00 is over",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mach := newTestMachine(t, oneValue(t))
			var got []string
			seq := 0
			for _, s := range tc.spans {
				for range s.windows {
					mach.told = nil
					mach.senses([]signal.Quality{s.x, s.another, s.y, s.z, 0}, layout, resultAt(seq, event.SensorFault))
					for _, a := range mach.told {
						got = append(got, fmt.Sprintf("%d %s %s %s: %s", a.Seq, a.State, a.Status, strings.Join(a.Channels, ","), a.Text))
						if err := schemas.Validate(schemas.Advisory, event.JSON(a)); err != nil {
							t.Error(err)
						}
						if n := mach.notice(a.Kind, a.Subject); a.State == event.Raised {
							shown := n.shown(drill, "m")
							if a.ID, a.Tool, a.At, a.Epoch, a.Seq = shown.ID, "", shown.At, "", 0; !reflect.DeepEqual(a, shown) {
								t.Errorf("shown after a restart as\n%s\nwant\n%s", event.JSON(shown), event.JSON(a))
							}
						}
					}
					seq++
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// Whatever happens, raised and cleared alternate for each subject, and a condition of
// the tool ends with the tool.
func TestAdvisoriesAlternate(t *testing.T) {
	layout := fiveForces(t)
	rule := alarm.Hysteresis{K: 2, N: 4, Hold: 3 * time.Second}
	m := oneValue(t)
	rapid.Check(t, func(t *rapid.T) {
		mach := newTestMachine(t, m)
		last := map[string]event.AlertState{}
		ids := map[string]bool{}
		for seq := range rapid.IntRange(1, 300).Draw(t, "windows") {
			r := resultAt(seq, event.Healthy)
			faults := make([]signal.Quality, 5)
			dead := rapid.IntRange(0, 2).Draw(t, "dead") == 0
			for i := range faults {
				if dead {
					faults[i] = signal.Dropout
				} else if rapid.IntRange(0, 3).Draw(t, "fault") == 0 {
					faults[i] = signal.Quality(rapid.IntRange(1, 63).Draw(t, "quality"))
				}
			}
			mach.told = nil
			changed := rapid.IntRange(0, 30).Draw(t, "change") == 0
			if changed {
				mach.dismiss("T0", r)
			}
			if rapid.IntRange(0, 30).Draw(t, "restart") == 0 {
				record := event.JSON(mach.notices)
				mach.notices = nil
				if err := json.Unmarshal(record, &mach.notices); err != nil {
					t.Fatal(err)
				}
			}
			mach.senses(faults, layout, r)
			if a := mach.advise(event.UnknownAdvisory, "", rapid.Bool().Draw(t, "unknown"), rule, r); a != nil {
				a.Text = "unknown"
			}
			if changed && mach.notice(event.UnknownAdvisory, "") != nil && mach.notice(event.UnknownAdvisory, "").Raised {
				t.Fatal("it stands after a single window of the next tool")
			}
			for _, a := range mach.told {
				key := string(a.Kind) + a.Subject
				if n := mach.notice(event.SensorAdvisory, "1Hz"); a.State == event.Raised && strings.HasPrefix(a.Subject, "ch") && n != nil && n.Raised {
					t.Fatalf("%s beside that of its card", event.JSON(a))
				}
				if a.State == last[key] || last[key] == "" && a.State != event.Raised {
					t.Fatalf("%s after %s: %s", a.State, last[key], event.JSON(a))
				}
				if last[key] = a.State; ids[a.ID] {
					t.Fatalf("%s twice", a.ID)
				}
				ids[a.ID] = true
				if err := schemas.Validate(schemas.Advisory, event.JSON(a)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// silence is a monitor's Config for the tests below, with a clock that they set.
func silence(ahead *atomic.Int64) func(*Monitor) {
	return func(m *Monitor) {
		m.cfg.Silence = time.Minute
		m.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
}

// untilAdvisories waits for so many advisories, and returns the last.
func (p *plant) untilAdvisories(n int) (last bus.Message) {
	p.t.Helper()
	ids := map[string]bool{}
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		if last = msgs[len(msgs)-1]; string(last.Header("ce_type")) == event.AdvisoryType {
			ids[string(last.Header("ce_id"))] = true
		}
		return len(ids) == n
	})
	return last
}

// A machine whose windows stop is said to be silent, once, through a restart, and
// to be there again when they come.
func TestSilence(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	var ahead atomic.Int64
	p.send(p.messages(life(3, 9)...)...)
	mon := p.monitor(silence(&ahead))
	p.untilResults(3)
	ahead.Store(int64(61 * time.Second))
	if text := string(p.untilAdvisories(1).Value); !strings.Contains(text, "drill: SILENT, no window to judge since ") {
		t.Error(text)
	}
	if st := p.standing(drill); len(st.Advisories) != 1 || st.Advisories[0].Kind != event.SilenceAdvisory || st.Alarm != "normal" {
		t.Errorf("standing %+v", st)
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	mon = p.monitor(silence(&ahead))
	ahead.Store(int64(20 * time.Minute))
	p.send(p.message(at(3, "T1", false)))
	if text := string(p.untilAdvisories(2).Value); !strings.Contains(text, "windows come again, after 20m") {
		t.Error(text)
	}
	if st := p.standing(drill); len(st.Advisories) != 0 {
		t.Errorf("standing %+v", st)
	}
	ahead.Store(int64(22 * time.Minute))
	p.untilAdvisories(3)
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	states := map[event.AlertState]int{}
	for _, a := range p.advisories() {
		states[a.State]++
	}
	if states[event.Raised] != 2 || states[event.Cleared] != 1 {
		t.Errorf("%v", states)
	}
	if n := mon.Stats().Advisories; n != 2 {
		t.Errorf("the second monitor counts %d advisories", n)
	}
}

// ear is a partition that has judged a window of the drill and looks at a clock that
// the test moves.
func ear(t *testing.T, p *plant) (s *partition, mach *machine, pass func(time.Duration)) {
	mon, err := New(Config{Model: p.model, Bus: p.bus, Alarm: testAlarm, Silence: time.Minute, Log: zerolog.New(&p.log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mon.Close)
	now := noon
	mon.now = func() time.Time { return now }
	s = &partition{Monitor: mon, machines: make(map[string]*machine), judge: p.model.NewJudge(), log: zerolog.Nop()}
	if err := s.settle(t.Context(), p.messages(at(0, "T1", false))); err != nil {
		t.Fatal(err)
	}
	return s, s.machines[drill], func(d time.Duration) {
		t.Helper()
		now = now.Add(d)
		for range 2 { // it may have to ask first
			if err := s.hark(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (m *machine) isSilent() bool { return m.notice(event.SilenceAdvisory, "") != nil }

// A monitor that is behind hears nothing of a machine whose windows lie in Kafka, or
// may: it says nothing before it has judged all that was there.
func TestSilenceOfAMonitorThatIsBehind(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	p.send(p.messages(life(5, 9)...)...)
	s, mach, pass := ear(t, p)
	s.next = 1
	pass(10 * time.Minute)
	if mach.isSilent() {
		t.Fatal("silent while its windows wait")
	}
	if err := s.settle(t.Context(), p.messages(at(1, "T1", false))); err != nil {
		t.Fatal(err)
	}
	s.next = 5 // the rest were of others
	pass(59 * time.Second)
	if mach.isSilent() {
		t.Fatal("silent before its time")
	}
	p.send(p.message(at(5, "T2", false))) // a machine beside it that never rests: there is always one more
	pass(2 * time.Second)
	if mach.isSilent() {
		t.Fatal("silent while nobody knows whose window waits")
	}
	p.send(p.message(at(6, "T2", false)))
	s.next = 6 // what was there when it was asked
	pass(time.Second)
	if !mach.isSilent() {
		t.Fatal("not silent, with everything judged that had come")
	}
	pass(10 * time.Minute)
	if n := len(p.advisories()); n != 1 {
		t.Errorf("%d advisories, want one", n)
	}
}

// Retention, or a topic made anew, may have taken what the position says is there.
func TestSilenceWhereNothingLies(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	s, mach, pass := ear(t, p)
	s.next = -2 // the first there is
	pass(time.Minute)
	if !mach.isSilent() {
		t.Error("an empty partition holds no windows")
	}
}

// Trouble with the broker is no silence of machines: their time begins anew when
// there is word of it, and while Kafka does not answer.
func TestOutageIsNoSilence(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	s, mach, pass := ear(t, p)
	pass(50 * time.Second)
	s.cfg.Bus.OnRetry(nil, 0) // it is back
	pass(50 * time.Second)
	if mach.isSilent() {
		t.Fatal("silent within a minute of an outage")
	}
	p.broker.Close()
	pass(20 * time.Second)
	if mach.isSilent() || !mach.patient.Equal(s.now()) {
		t.Errorf("silent %v, patient since %v, now %v", mach.isSilent(), mach.patient, s.now())
	}
}

// Two monitors that both believe to have the machine say its silence under one id:
// readers see it once.
func TestSilenceSaidTwice(t *testing.T) {
	m := oneValue(t)
	say := func(now time.Time) string {
		mach := newTestMachine(t, m)
		r, _ := mach.observe(at(0, "T1", false), m.NewJudge(), m.Layout, m.ID())
		mach.awake(noon, r)
		mach.silent(now, m.ID())
		if err := schemas.Validate(schemas.Advisory, event.JSON(mach.told[0])); err != nil {
			t.Error(err)
		}
		return mach.told[0].ID
	}
	if a, b := say(noon.Add(time.Minute)), say(noon.Add(time.Hour)); a != b || a != fmt.Sprintf("%s/silence/%d/raised", drill, noon.UnixNano()) {
		t.Errorf("%s, %s", a, b)
	}
}

func TestSilenceChecks(t *testing.T) {
	_, err := New(Config{Model: oneValue(t), Bus: bus.Config{Brokers: []string{"127.0.0.1:1"}}, Silence: time.Second})
	if err == nil || !strings.Contains(err.Error(), "silence: 1s: must be 5s or more") {
		t.Error(err)
	}
}

// A late window says nothing of a sensor now.
func TestLateWindowAdvisesNothing(t *testing.T) {
	m := oneValue(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	seen := func(seq uint64) (n int) {
		w := at(seq, "T1", false)
		w.Quality[0] = signal.ClockStep
		mach.observe(w, judge, m.Layout, m.ID())
		return len(mach.told)
	}
	mach.observe(at(5, "T1", false), judge, m.Layout, m.ID())
	if n := seen(3); n != 0 {
		t.Errorf("late: %d advisories", n)
	}
	if n := seen(6); n != 1 {
		t.Errorf("in time: %d advisories", n)
	}
}
