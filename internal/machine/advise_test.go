package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/flank-tcm/flank/schemas"
)

// fiveForces returns a layout of five channels, of which one may fail while the
// tool is still judged.
func fiveForces(t testing.TB) *signal.Layout {
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
	return &event.Result{ID: event.WindowID(drill, w.EpochString(), w.Seq), Group: group, Machine: drill, Epoch: w.EpochString(), Seq: w.Seq, Tool: "T1", Start: w.Start, End: w.End(), Verdict: v, Model: "m"}
}

// sensedBy returns what is published of the sensors in a window.
func sensedBy(m *Machine, faults []signal.Quality, layout *signal.Layout, r *event.Result) []event.Advisory {
	var d Decision
	(&sensing{&m.Notices, &d, faults, byFeatures{}, layout, &window.Window{}, r}).advise()
	return d.Advisories
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
		"steps that turn out to be a rate": {slices.Concat(bad(3, step), bad(100, rate), bad(2, step)), false, event.Healthy, []string{
			"0 raised maintenance_required info: drill: SENSOR clock Maintenance required: clock_step; tool verdict on 4 channels",
			"3 cleared  info: drill: SENSOR clock: what was advised at 02:00:00 is worse now, and is advised again",
			"3 raised out_of_specification warning: drill: SENSOR clock Out of specification: rate_error, clock_step; tool verdict on 4 channels",
		}},
		"a loose wire does not chatter": {slices.Concat(bad(5, flat), good(30), bad(5, flat), good(30), bad(5, flat)), false, event.Healthy, []string{
			"2 raised failure warning: drill: SENSOR ch2 Failure: flatline; tool verdict on 4 channels",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mach := newBench(t, machinetest.OneValue(t)).m
			var got []string
			for seq, q := range tc.ch2 {
				faults := make([]signal.Quality, 5)
				faults[1] = q
				if tc.all {
					faults = slices.Repeat([]signal.Quality{q}, 5)
				}
				for _, a := range sensedBy(mach, faults, fiveForces(t), resultAt(seq, tc.verdict)) {
					got = append(got, fmt.Sprintf("%d %s %s %s: %s", a.Seq, a.State, a.Status, a.Severity, a.Text))
					if err := schemas.Validate(schemas.Advisory, event.JSON(a)); err != nil {
						t.Error(err)
					}
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
			if n := len(mach.Notices); len(tc.want)%2 == 0 && n != 0 {
				t.Errorf("%d notices are kept of conditions that have ended", n)
			}
		})
	}
}

// What a model's guard says of sensors by their features: one of a channel is that channel, one of several has a notice under its
// name, and both take longer to be named than a channel that fails.
func TestSensorsOfAGuard(t *testing.T) {
	one := func(q signal.Quality, disagrees bool) byFeatures {
		return byFeatures{judged: true, sensors: []sensed{{subject: "F", channels: []string{"ch1", "ch3"}, guarded: true}, {subject: "ch2", guarded: true, flags: q, disagrees: disagrees}}}
	}
	many := func(q signal.Quality, disagrees bool) byFeatures {
		b := one(0, false)
		b.sensors[0].flags, b.sensors[0].disagrees = q, disagrees
		return b
	}
	reads := func(gain float64) byFeatures {
		b := one(0, false)
		b.sensors[1].gain = gain
		return b
	}
	lacks := func(channels ...int) byFeatures {
		b := one(0, false)
		b.absent = make([]bool, 5)
		for _, c := range channels {
			b.absent[c] = true
		}
		b.sensors[0].absent = b.absent[0] && b.absent[2]
		return b
	}
	notJudged, idle := many(signal.Flatline, true), one(0, false)
	notJudged.judged, idle.judged = false, false
	const flat = signal.Flatline
	for name, tc := range map[string]struct {
		windows []byFeatures
		want    []string
	}{
		"one disagrees now and then": {slices.Concat(slices.Repeat([]byFeatures{one(0, true), one(0, false)}, 40), slices.Repeat([]byFeatures{one(0, false)}, 8)), nil},
		"one disagrees, and agrees again": {slices.Concat(slices.Repeat([]byFeatures{one(0, true)}, 9), slices.Repeat([]byFeatures{one(0, false)}, 70)), []string{
			"4 raised out_of_specification warning []: drill: SENSOR ch2 Out of specification: it disagrees with the other sensors since 02:00:00, the verdict leans on those: check its mounting, cable and amplifier; tool verdict on 5 channels",
			"68 cleared  info []: drill: SENSOR ch2 normal again; advisory of 02:00:00 is over",
		}},
		"a gain has stepped, and a new tool comes": {slices.Concat(slices.Repeat([]byFeatures{reads(1.5)}, 9), slices.Repeat([]byFeatures{reads(1)}, 70)), []string{
			"4 raised out_of_specification warning []: drill: SENSOR ch2 Out of specification: it reads 1.5 times what it did at the beginning of this tool, since 02:00:00 at the latest, and no other sensor has changed; the verdict does not count that: check its mounting, cable and amplifier; tool verdict on 5 channels",
			"68 cleared  info []: drill: SENSOR ch2 normal again; advisory of 02:00:00 is over",
		}},
		"one of two channels is dead": {slices.Concat(slices.Repeat([]byFeatures{many(flat, false)}, 5)), []string{
			"4 raised failure warning [ch1 ch3]: drill: SENSOR F Failure: flatline of channels ch1, ch3; tool verdict on 3 channels",
		}},
		"one disagrees, and then nothing is cut": {slices.Concat(slices.Repeat([]byFeatures{one(0, true)}, 5), slices.Repeat([]byFeatures{idle}, 200)), []string{
			"4 raised out_of_specification warning []: drill: SENSOR ch2 Out of specification: it disagrees with the other sensors since 02:00:00, the verdict leans on those: check its mounting, cable and amplifier; tool verdict on 5 channels",
		}},
		"a channel was dead when the reference was learnt": {slices.Concat(slices.Repeat([]byFeatures{lacks(1)}, 9), slices.Repeat([]byFeatures{one(0, false)}, 70)), []string{
			"4 raised out_of_specification warning []: drill: SENSOR ch2 Out of specification: it gave no values while the reference of this tool was learnt, so it takes no part in the verdict until the next tool; tool verdict on 4 channels",
			"68 cleared  info []: drill: SENSOR ch2 normal again; advisory of 02:00:00 is over",
		}},
		"a sensor of two channels was": {slices.Repeat([]byFeatures{lacks(0, 2)}, 9), []string{
			"4 raised out_of_specification warning [ch1 ch3]: drill: SENSOR F Out of specification: it gave no values while the reference of this tool was learnt, so it takes no part in the verdict until the next tool; tool verdict on 3 channels",
		}},
		"one of its channels was": {slices.Repeat([]byFeatures{lacks(2)}, 9), []string{
			"2 raised out_of_specification warning []: drill: SENSOR ch3 Out of specification: it gave no values while the reference of this tool was learnt, so it takes no part in the verdict until the next tool; tool verdict on 4 channels",
		}},
		"not judged": {slices.Repeat([]byFeatures{notJudged}, 20), nil},
		"the model after it does not know the sensor": {slices.Concat(slices.Repeat([]byFeatures{many(flat, false)}, 5), []byFeatures{{}}), []string{
			"4 raised failure warning [ch1 ch3]: drill: SENSOR F Failure: flatline of channels ch1, ch3; tool verdict on 3 channels",
			"5 cleared  info [ch1 ch3]: drill: advisory of 02:00:00 is over, no layout or model has F any more",
		}},
	} {
		mach := newBench(t, machinetest.OneValue(t)).m
		var got []string
		for seq, of := range tc.windows {
			var d Decision
			(&sensing{&mach.Notices, &d, make([]signal.Quality, 5), of, fiveForces(t), &window.Window{}, resultAt(seq, event.Healthy)}).advise()
			for _, a := range d.Advisories {
				got = append(got, fmt.Sprintf("%d %s %s %s %v: %s", a.Seq, a.State, a.Status, a.Severity, a.Channels, a.Text))
				if err := schemas.Validate(schemas.Advisory, event.JSON(a)); err != nil {
					t.Error(err)
				}
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}

// A verdict speaks of sensors by their number, and of channels; both reach the sensor that they are of.
func TestByFeatures(t *testing.T) {
	m := NewModel(guarded(t))
	names := m.judge.Sensors()
	for k, name := range names {
		found, gains := make([]signal.Quality, guardSensors), slices.Repeat([]float64{1}, guardSensors)
		found[m.judge.SensorChannels(k)[0]], gains[(k+1)%guardSensors] = signal.Flatline, 2
		of := m.byFeatures(model.Verdict{Found: found, Gains: gains, Disagrees: (k + 2) % guardSensors})
		for i, s := range of.sensors {
			if s.subject != names[i] || (s.flags != 0) != (s.subject == name) || s.stepped() != (i == (k+1)%guardSensors) || s.disagrees != (i == (k+2)%guardSensors) {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

// A sensor that is dead while a tool's reference is learnt, and works again, is named until the next tool. An advisory that it
// is dead goes on as one that it has no reference.
func TestSensorWithoutAReference(t *testing.T) {
	for before, want := range map[uint64][]string{
		0:  {"raised[no_reference]", "cleared[]"},
		10: {"raised[dropout]", "raised[no_reference]", "cleared[]"},
	} {
		if got := deadAtFirst(t, before); !slices.Equal(got, want) {
			t.Errorf("%d windows of a tool before: %v, want %v", before, got, want)
		}
	}
}

// deadAtFirst returns the advisories of a sensor that is dead in the last windows of a tool of so many, while the reference of the next is learnt, and once later.
func deadAtFirst(t *testing.T, before uint64) (got []string) {
	b := newBench(t, guarded(t))
	for seq := range before + 90 {
		tool, dead := "T1", seq < before+2 && seq+5 >= before || seq == before+12
		if seq < before {
			tool = "T0"
		}
		if seq >= before+20 {
			tool = "T2"
		}
		w := at(seq, tool, false)
		w.Samples, w.Quality = nil, make([]signal.Quality, guardSensors)
		for s := range guardSensors {
			w.Samples = append(w.Samples, []float32{10 + float32(seq%3) + float32(s)})
		}
		if dead {
			w.Samples[1][0], w.Quality[1] = float32(math.NaN()), signal.Dropout
		}
		for _, a := range b.window(w).Advisories {
			if a.Kind == event.SensorAdvisory && a.Subject == "s1" {
				got = append(got, fmt.Sprint(a.State, a.Flags))
			}
		}
	}
	return got
}

// A model that goes on with the reference of another one goes on with the gains of sensors since then too.
func TestSeedHasGains(t *testing.T) {
	m := guarded(t)
	b := newBench(t, m)
	for seq := range uint64(6) {
		w := at(seq, "T1", false)
		w.Samples, w.Quality = nil, make([]signal.Quality, guardSensors)
		for s := range guardSensors {
			w.Samples = append(w.Samples, []float32{10 + float32(seq%3) + float32(s)})
		}
		b.window(w)
	}
	tool := b.m.inSpindle()
	j := tool.judging(b.m.Model)
	if err := json.Unmarshal([]byte(`{"s1":{"at":[1],"windows":1,"steps":{"gain":0.5,"levels":[1,2]}}}`), &j.Sensors); err != nil {
		t.Fatal(err)
	}
	next := guarded(t)
	next.Provenance.Seed = 7
	n := tool.seed(NewModel(next), false)
	if n == nil || !bytes.Equal(event.JSON(n.Sensors), event.JSON(j.Sensors)) || n.Sensors["s1"] == j.Sensors["s1"] {
		t.Errorf("%+v", n)
	}
}

// Many channels are named as far as a line holds them.
func TestListedChannels(t *testing.T) {
	var names []string
	for i := range 17 {
		names = append(names, fmt.Sprint("c", i+1))
	}
	all := "c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16"
	for n, want := range map[int]string{2: "c1, c2", 16: all, 17: all + " and 1 more"} {
		if got := listed(names[:n]); got != want {
			t.Errorf("%d channels: %q", n, got)
		}
	}
}

// A channel that is called as a rate is has its advisories to itself.
func TestChannelCalledAsARate(t *testing.T) {
	layout, err := signal.NewLayout("odd names", []signal.Channel{{Name: "100Hz", Kind: signal.Force, Rate: 100}, {Name: "torque", Kind: signal.Force, Rate: 100}})
	if err != nil {
		t.Fatal(err)
	}
	mach := newBench(t, machinetest.OneValue(t)).m
	var subjects []string
	for seq := range uint64(5) {
		for _, a := range sensedBy(mach, []signal.Quality{signal.Flatline, signal.Flatline}, layout, resultAt(int(seq), event.SensorFault)) {
			subjects = append(subjects, a.Subject+" "+strings.Join(a.Channels, ","))
		}
	}
	wantStrings(t, "subjects", subjects, []string{"100Hz ", "torque "})
}

// All channels of a card that dies are one advisory, which names them; what is the
// matter with one of them apart from that is published when the card is back.
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
		"a card, and a channel of another": {[]span{{2, 0, 0, 0, 0}, {3, drop, drop, drop, flat}}, []string{
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
			mach := newBench(t, machinetest.OneValue(t)).m
			var got []string
			seq := 0
			for _, s := range tc.spans {
				for range s.windows {
					for _, a := range sensedBy(mach, []signal.Quality{s.x, s.another, s.y, s.z, 0}, layout, resultAt(seq, event.SensorFault)) {
						got = append(got, fmt.Sprintf("%d %s %s %s: %s", a.Seq, a.State, a.Status, strings.Join(a.Channels, ","), a.Text))
						if err := schemas.Validate(schemas.Advisory, event.JSON(a)); err != nil {
							t.Error(err)
						}
						if n := mach.Notices.of(a.Kind, a.Subject); a.State == event.Raised {
							shown := n.Shown(group, drill, "m")
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

// Raised and cleared alternate for each subject, for any behaviour of sensors, and a condition of
// the tool ends with the tool.
func TestAdvisoriesAlternate(t *testing.T) {
	layout := fiveForces(t)
	rule := alarm.Hysteresis{K: 2, N: 4, Hold: 3 * time.Second}
	m := machinetest.OneValue(t)
	rapid.Check(t, func(t *rapid.T) {
		mach := newBench(t, m).m
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
			d := mach.decision
			*d = Decision{}
			changed := rapid.IntRange(0, 30).Draw(t, "change") == 0
			if changed {
				mach.tools.dismiss("T0", ofWindow(r, "tool_change"))
			}
			if rapid.IntRange(0, 30).Draw(t, "restart") == 0 {
				record := event.JSON(mach.Notices)
				mach.Notices = nil
				if err := json.Unmarshal(record, &mach.Notices); err != nil {
					t.Fatal(err)
				}
			}
			(&sensing{&mach.Notices, d, faults, byFeatures{}, layout, &window.Window{}, r}).advise()
			if a := mach.Notices.observe(d, event.UnknownAdvisory, "", rapid.Bool().Draw(t, "unknown"), rule, r); a != nil {
				a.Text = "unknown"
			}
			if changed && mach.Notices.of(event.UnknownAdvisory, "") != nil && mach.Notices.of(event.UnknownAdvisory, "").Raised {
				t.Fatal("it stands after a single window of the next tool")
			}
			for _, a := range d.Advisories {
				key := string(a.Kind) + a.Subject
				if n := mach.Notices.of(event.SensorAdvisory, "1Hz"); a.State == event.Raised && strings.HasPrefix(a.Subject, "ch") && n != nil && n.Raised {
					t.Fatalf("%s while the advisory of its card stands", event.JSON(a))
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

// silent is a bench whose machine has judged a window at noon and may be silent for a
// minute. Tick lets the clock stand at a time after noon, with the partition judged up to
// next; it returns what is published and whether the end of the partition is asked for.
func silent(t *testing.T) (b *bench, tick func(after time.Duration, next int64) Decision) {
	b = newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Silence = time.Minute })
	b.window(at(0, "T1", false))
	return b, func(after time.Duration, next int64) Decision {
		t.Helper()
		return b.apply(Tick{Now: noon.Add(after), Next: Position{Windows: next}})
	}
}

func (b *bench) isSilent() bool { return b.m.Notices.of(event.SilenceAdvisory, "") != nil }

// A machine whose windows stop is silent once, across a restart, until they come again.
func TestSilence(t *testing.T) {
	b, tick := silent(t)
	if d := tick(59*time.Second, 1); d.AskEnd || len(d.Advisories) > 0 {
		t.Fatalf("before its time: %+v", d)
	}
	if d := tick(time.Minute, 1); !d.AskEnd || len(d.Advisories) > 0 {
		t.Fatalf("it does not ask how far the partition goes: %+v", d)
	}
	b.m.EndIs(Position{Windows: 1}, true, noon.Add(time.Minute))
	d := tick(time.Minute, 1)
	if len(d.Advisories) != 1 || d.Advisories[0].State != event.Raised || !strings.Contains(d.Advisories[0].Text, "drill: SILENT, no window to judge since 12:00:00") {
		t.Fatalf("%+v", d)
	}
	b.restart()
	b.sent = 20 * time.Minute
	if d := tick(b.sent, 1); d.AskEnd || len(d.Advisories) > 0 {
		t.Errorf("silent twice: %+v", d)
	}
	d = b.window(at(1, "T1", false))
	if len(d.Advisories) != 1 || d.Advisories[0].State != event.Cleared || !strings.Contains(d.Advisories[0].Text, "windows come again, after 20m") {
		t.Errorf("%+v", d)
	}
	b.restart()
	if b.isSilent() {
		t.Error("silent after a window")
	}
}

// A monitor that is behind gets no windows either. It calls a machine silent when it has
// judged all that was in Kafka when it asked.
func TestSilenceOfAMonitorThatIsBehind(t *testing.T) {
	b, tick := silent(t)
	tick(10*time.Minute, 1)
	b.m.EndIs(Position{Windows: 5}, true, noon.Add(10*time.Minute))
	for _, next := range []int64{1, 4} {
		if tick(11*time.Minute, next); b.isSilent() {
			t.Fatalf("silent at offset %d of 5: its windows may wait", next)
		}
	}
	b.m.EndIs(Position{Windows: 9}, true, noon.Add(11*time.Minute)) // another machine of the partition never rests
	if tick(12*time.Minute, 5); !b.isSilent() {
		t.Fatal("not silent, with everything judged that was there when it asked")
	}
}

// A window that comes after the end was asked for begins the time again.
func TestSilenceIsAskedAgain(t *testing.T) {
	b, tick := silent(t)
	tick(time.Minute, 1)
	b.m.EndIs(Position{Windows: 2}, true, noon.Add(time.Minute))
	b.sent = 61 * time.Second
	b.window(at(1, "T1", false))
	if d := tick(62*time.Second, 2); d.AskEnd || b.isSilent() {
		t.Error("silent a second after a window")
	}
	if d := tick(2*time.Minute+time.Second, 2); !d.AskEnd || b.isSilent() {
		t.Error("it goes by the answer of before the window")
	}
}

// Retention may have taken what the position says is there: nothing lies before such an end.
func TestSilenceWhereNothingLies(t *testing.T) {
	b, tick := silent(t)
	tick(time.Minute, -2) // the first there is
	b.m.EndIs(Position{Windows: math.MinInt64}, true, noon.Add(time.Minute))
	if tick(time.Minute, -2); !b.isSilent() {
		t.Error("an empty partition holds no windows")
	}
}

// Trouble with the broker is not the silence of a machine: its time begins again when the
// broker answers, and when it does not.
func TestOutageIsNotSilence(t *testing.T) {
	b, tick := silent(t)
	tick(70*time.Second, 1)
	b.m.EndIs(Position{Windows: 1}, true, noon.Add(70*time.Second))
	b.apply(Tick{Now: noon.Add(100 * time.Second), Trouble: noon.Add(90 * time.Second), Next: Position{Windows: 1}})
	if b.isSilent() {
		t.Fatal("silent ten seconds after an outage")
	}
	if d := tick(150*time.Second, 1); !d.AskEnd || b.isSilent() {
		t.Fatal("it goes by the answer of before the outage")
	}
	b.m.EndIs(Position{Windows: 0}, false, noon.Add(150*time.Second))
	if d := tick(209*time.Second, 1); d.AskEnd || b.isSilent() {
		t.Error("the time does not begin again when the broker does not answer")
	}
}

// Two monitors that both believe to have the machine publish its silence under one id:
// readers see it once.
func TestSilenceHasOneID(t *testing.T) {
	id := func(after time.Duration) string {
		b, tick := silent(t)
		tick(after, 1)
		b.m.EndIs(Position{Windows: 1}, true, noon)
		return tick(after, 1).Advisories[0].ID
	}
	if a, b := id(time.Minute), id(time.Hour); a != b || a != fmt.Sprintf("%s/%s/silence/%d/raised", drill, group, noon.UnixNano()) {
		t.Errorf("%s, %s", a, b)
	}
}

// Silence that comes again is another one, also if only refused windows came in between.
func TestSilenceAgain(t *testing.T) {
	b, tick := silent(t)
	ids := make(map[string]bool)
	for i := range 3 {
		now := time.Duration(1+i) * time.Hour
		tick(now, 1)
		b.m.EndIs(Position{Windows: 1}, true, noon.Add(now))
		d := tick(now, 1)
		if len(d.Advisories) != 1 || ids[d.Advisories[0].ID] {
			t.Fatalf("silence %d: %+v", i, d.Advisories)
		}
		ids[d.Advisories[0].ID] = true
		b.restart()
		at := noon.Add(now + time.Minute)
		b.apply(refusedWindow{&Refusal{Machine: drill, Epoch: "0000000000000001", Seq: uint64(10 + i), Why: &window.Mismatch{What: window.OtherLength}}, at, at})
	}
}

// What retention deletes before anyone has read it does not keep a machine from being silent.
func TestSilenceBehindDeletedWindows(t *testing.T) {
	p := newPartition()
	o := NewOwner(&Settings{Group: group, Alarm: testAlarm, Silence: time.Minute}, Everything(machinetest.OneValue(t)), 0)
	p.windows = append(p.windows, at(0, "T1", false))
	p.finish(o, o.Start(), 9)
	later := noon.Add(time.Hour)
	for i, end := range []Bounds{{0, 3}, {0, 3}, {3, 3}, {3, 3}} { // the last two are deleted, and never read
		actions := o.On(Tick{Now: later}, later)
		if asks := slices.ContainsFunc(actions, is[AskEnd]); asks != (i < 3) {
			t.Fatalf("%d: asks %v", i, asks)
		}
		p.finish(o, slices.DeleteFunc(actions, is[AskEnd]), 9)
		p.finish(o, o.On(End{Windows: end, Known: true}, later), 9)
	}
	if !strings.Contains(strings.Join(p.published, "\n"), "SILENT") || p.position.Windows != 1 {
		t.Errorf("at %+v, published %q", p.position, p.published)
	}
}

// The advisory of a clock says which rate was measured, and which dates windows have. A date that is off does not make a channel bad: the
// window has a verdict.
func TestClockAdvisories(t *testing.T) {
	b := newBench(t, machinetest.TwoValues(t))
	window := func(seq uint64, q signal.Quality, rates ...float64) Decision {
		w := at(seq, "T1", false)
		w.Samples, w.Quality, w.Rates = [][]float32{{10}, {10}}, []signal.Quality{q, q}, rates
		return b.window(w)
	}
	for seq := range uint64(3) {
		window(seq, 0)
	}
	d := window(3, signal.ClockOff)
	wantStrings(t, "a date", texts(d.Advisories), []string{
		"raised : drill: SENSOR clock Out of specification: clock_off: windows are dated 2026-11-02 02:00:03 UTC, far from the clock of their ingester: set the clocks of the sensors, or of their ingester; tool verdict on 2 channels",
	})
	if a := d.Advisories[0]; a.Severity != "warning" || d.Result.Verdict != event.Healthy || len(d.Result.Sensors) > 0 {
		t.Errorf("%s, a window is %s with %v", a.Severity, d.Result.Verdict, d.Result.Sensors)
	}
	for seq := range uint64(60) {
		d = window(4+seq, 0)
	}
	wantStrings(t, "set", texts(d.Advisories), []string{"cleared : drill: SENSOR clock normal again; clock_off of 02:00:03 is over"})
	wantStrings(t, "a rate", texts(window(64, signal.RateError, 0.5).Advisories), []string{
		"raised : drill: SENSOR clock Out of specification: rate_error: 0.5 samples a second come where the layout says 1: correct `rate` in the layout, or the sensors; no tool verdict",
	})
}

// A late window raises no advisory of a sensor.
func TestLateWindowAdvisesNothing(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	seen := func(seq uint64) int {
		w := at(seq, "T1", false)
		w.Quality[0] = signal.ClockStep
		return len(b.window(w).Advisories)
	}
	b.window(at(5, "T1", false))
	if n := seen(3); n != 0 {
		t.Errorf("late: %d advisories", n)
	}
	if n := seen(6); n != 1 {
		t.Errorf("in time: %d advisories", n)
	}
}

// The advisories of channels and rates that the next layout does not have end with it; advisories of
// the others go on.
func TestSensorsOfAnotherLayout(t *testing.T) {
	layout := func(channels ...signal.Channel) *signal.Layout {
		l, err := signal.NewLayout("cards", channels)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	x, y, thrust, torque := signal.Channel{Name: "x", Kind: signal.Vibration, Rate: 20000}, signal.Channel{Name: "y", Kind: signal.Vibration, Rate: 20000},
		signal.Channel{Name: "thrust", Kind: signal.Force, Rate: 100}, signal.Channel{Name: "torque", Kind: signal.Force, Rate: 50}
	mach := newBench(t, machinetest.OneValue(t)).m
	const flat, drop = signal.Flatline, signal.Dropout
	var d []event.Advisory
	seq := 0
	see := func(windows int, l *signal.Layout, faults ...signal.Quality) {
		d = nil
		for range windows {
			d = append(d, sensedBy(mach, faults, l, resultAt(seq, event.Healthy))...)
			seq++
		}
	}
	see(2, layout(x, y, thrust, torque), drop, drop, flat, 0)
	see(3, layout(x, y, thrust, torque), drop, drop, flat, flat|signal.ClockStep)
	for _, a := range d {
		if err := schemas.Validate(schemas.Advisory, event.JSON(a)); err != nil {
			t.Error(err)
		}
	}
	wantStrings(t, "before", texts(d), []string{
		"raised 20000Hz: drill: SENSORS 20000Hz Failure: dropout of all 2 channels, x, y; tool verdict on 0 channels",
		"raised : drill: SENSOR clock Maintenance required: clock_step; tool verdict on 0 channels",
		"raised thrust: drill: SENSOR thrust Failure: flatline; tool verdict on 0 channels",
		"raised torque: drill: SENSOR torque Failure: flatline; tool verdict on 0 channels",
	})
	see(1, layout(y, thrust), drop, 0)
	wantStrings(t, "after", texts(d), []string{
		"cleared 20000Hz: drill: advisory of 02:00:00 is over, no layout or model has 20000Hz any more",
		"cleared torque: drill: advisory of 02:00:02 is over, no layout or model has torque any more",
		"raised y: drill: SENSOR y Failure: dropout; tool verdict on 1 channels",
	})
	for _, a := range d {
		if err := schemas.Validate(schemas.Advisory, event.JSON(a)); err != nil {
			t.Error(err)
		}
	}
	see(1, layout(y, thrust), drop, 0)
	if len(d) > 0 || len(mach.Notices) != 3 {
		t.Errorf("%q, %d notices", texts(d), len(mach.Notices))
	}
}

// Retiring a machine clears the advisory of a rate, and none of the channels that it covers: they were not raised.
func TestRetiredWithCoveredSensors(t *testing.T) {
	layout, err := signal.NewLayout("card", []signal.Channel{{Name: "x", Kind: signal.Vibration, Rate: 20000}, {Name: "y", Kind: signal.Vibration, Rate: 20000}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, machinetest.OneValue(t))
	for seq := range 3 {
		sensedBy(b.m, []signal.Quality{signal.Dropout, signal.Dropout}, layout, resultAt(seq, event.Healthy))
	}
	d := b.command(event.Command{ID: "c1", Action: event.Retire}, noon)
	wantStrings(t, "retired", texts(d.Advisories), []string{"cleared 20000Hz: drill: advisory of 02:00:00 is over, the machine is retired"})
}

// texts returns state, subject and text of advisories, in order.
func texts(advisories []event.Advisory) (all []string) {
	for _, a := range advisories {
		all = append(all, fmt.Sprintf("%s %s: %s", a.State, a.Subject, a.Text))
	}
	slices.Sort(all)
	return all
}

// A channel that is out of the verdict for two reasons is one channel less.
func TestChannelsOfTheVerdict(t *testing.T) {
	absent := []bool{false, true, false, false, false}
	for name, of := range map[string]byFeatures{
		"its reference lacks it":  {absent: absent},
		"its features say it too": {judged: true, sensors: []sensed{{subject: "ch2", guarded: true, flags: signal.Flatline}}},
		"both": {judged: true, absent: absent, sensors: []sensed{
			{subject: "ch2", guarded: true, flags: signal.Flatline}, {subject: "F", channels: []string{"ch1", "ch2"}, guarded: true, flags: signal.Flatline},
		}},
	} {
		mach := newBench(t, machinetest.OneValue(t)).m
		var text string
		for seq := range 5 {
			var d Decision
			(&sensing{&mach.Notices, &d, []signal.Quality{0, signal.Flatline, 0, 0, 0}, of, fiveForces(t), &window.Window{}, resultAt(seq, event.Healthy)}).advise()
			for _, a := range d.Advisories {
				text = a.Text
			}
		}
		want := "tool verdict on 4 channels"
		if name == "both" { // ch1 is out, too
			want = "tool verdict on 3 channels"
		}
		if !strings.HasSuffix(text, want) {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}
