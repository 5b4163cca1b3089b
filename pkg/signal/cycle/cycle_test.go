package cycle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// usual is the model of the machine as it usually is.
var usual = sync.OnceValue(func() *cycle.Model {
	return must(school(dynamometer, samples, func(rng *rand.Rand) tool { return anyTool(rng, 4) }))
})

var sound = make([]signal.Quality, 3)

func follower(m *cycle.Model) *cycle.Follower {
	return cycle.NewFollower(m, dynamometer, time.Second, time.Second)
}

// follow returns the states of the windows of one tool.
func follow(m *cycle.Model, ws []window, faults []signal.Quality) []cycle.State {
	f := follower(m)
	var k cycle.Memory
	var got []cycle.State
	for _, w := range ws {
		got = append(got, f.Follow(&k, "T1", w.start, f.Measure(nil, w.samples), faults))
	}
	return got
}

// wrong returns how many windows are wrong.
func wrong(ws []window, got []cycle.State) (n int) {
	for i, w := range ws {
		if got[i] != w.state {
			n++
		}
	}
	return n
}

func TestStatesAreLearntWithoutLabels(t *testing.T) {
	want := []cycle.State{cycle.Idle, cycle.StartUp, cycle.Coolant, cycle.Entry, cycle.Drilling, cycle.Retract}
	if got := usual().States(); !slices.Equal(got, want) {
		t.Fatalf("states %v, want %v", got, want)
	}
	if err := usual().Check(dynamometer); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(l *tool){
		"as it was learnt":               func(*tool) {},
		"a weak tool":                    func(l *tool) { l.thrust, l.torque = 190, 0.95 },
		"a tool that is broken":          func(l *tool) { l.thrust, l.torque = 900, 4 },
		"another zero":                   func(l *tool) { l.zero = 40 },
		"a zero that drifts":             func(l *tool) { l.drift = 0.2 },
		"holes that take ten times long": func(l *tool) { l.steps[4].tenths = 887 },
		"long pauses":                    func(l *tool) { l.steps[0].tenths, l.steps[6].tenths, l.steps[13].tenths = 400, 618, 718 },
	} {
		rng := rand.New(rand.NewPCG(3, 4))
		windows, errors := 0, 0
		for range 8 {
			l := anyTool(rng, 4)
			change(&l)
			ws := l.run(rng)
			windows += len(ws)
			errors += wrong(ws, follow(usual(), ws, sound))
		}
		if errors > windows/100 {
			t.Errorf("%s: %d of %d windows are wrong", what, errors, windows)
		}
	}
}

// Machines that lack something are learnt all the same, as far as it shows.
func TestOtherMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("learns from other machines")
	}
	forceOnly := must(signal.NewLayout("force", dynamometer.Channels()[:1]))
	for what, tc := range map[string]struct {
		layout *signal.Layout
		change func(l *tool)
		states string
	}{
		"thrust that pulls":        {dynamometer, func(l *tool) { l.sign = -1 }, "[idle start-up coolant entry drilling retract]"},
		"coolant that is not felt": {dynamometer, func(l *tool) { l.jet = 0 }, "[idle start-up coolant entry drilling retract]"},
		"thrust alone":             {forceOnly, func(*tool) {}, "[idle start-up coolant entry drilling retract]"},
		"a spindle that never stops": {dynamometer, func(l *tool) {
			l.steps = slices.Repeat([]step{{cycle.Coolant, 24}, {cycle.Entry, 14}, {cycle.Drilling, 86}, {cycle.Retract, 26}}, 4)
		}, "[coolant entry drilling retract]"},
	} {
		rng := rand.New(rand.NewPCG(5, 6))
		kind := func(rng *rand.Rand) tool {
			l := anyTool(rng, 4)
			tc.change(&l)
			return l
		}
		m, err := school(tc.layout, samples, kind)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got := fmt.Sprint(m.States()); got != tc.states {
			t.Errorf("%s: states %s, want %s", what, got, tc.states)
		}
		f := cycle.NewFollower(m, tc.layout, time.Second, time.Second)
		windows, errors := 0, 0
		for range 8 {
			var k cycle.Memory
			for _, w := range kind(rng).run(rng) {
				got := f.Follow(&k, "T1", w.start, f.Measure(nil, w.samples), sound)
				if windows++; (got == cycle.Drilling) != (w.state == cycle.Drilling) {
					errors++
				}
			}
		}
		if errors > windows/50 {
			t.Errorf("%s: drilling is wrong in %d of %d windows", what, errors, windows)
		}
	}
}

func TestNothingToLearn(t *testing.T) {
	if testing.Short() {
		t.Skip("looks for cycles where none are")
	}
	for why, tc := range map[string]struct {
		kind func(rng *rand.Rand) tool
		says string
	}{
		"two cuts are too few": {func(rng *rand.Rand) tool {
			return tool{thrust: 300, torque: 1, sign: 1, steps: []step{{cycle.Idle, 100}}}
		}, "0 cuts"},
		"it cuts all the time": {func(rng *rand.Rand) tool {
			return tool{thrust: 300, torque: 1, sign: 1, steps: []step{{cycle.Drilling, 100}}}
		}, "never stops cutting"},
		"the force rises in all of the cut": {func(rng *rand.Rand) tool {
			l := anyTool(rng, 1)
			l.steps = nil
			for range 4 {
				l.steps = append(l.steps, step{cycle.Idle, 50}, step{cycle.Entry, 150})
			}
			return l
		}, "agree on cutting"},
	} {
		_, err := school(dynamometer, samples, tc.kind)
		if !errors.Is(err, cycle.ErrNoCycle) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", why, err, tc.says)
		}
	}
	for why, kinds := range map[string][]signal.Kind{"vibration alone": {signal.Vibration}, "features": {signal.Feature}, "nothing of force": {signal.Current, signal.Acoustic}} {
		var cs []signal.Channel
		for i, k := range kinds {
			cs = append(cs, signal.Channel{Name: fmt.Sprint("c", i), Kind: k, Rate: 1000})
		}
		if m := cycle.New(must(signal.NewLayout("x", cs)), []int{1000, 1000}[:len(cs)]); m != nil {
			t.Errorf("%s: %+v", why, m)
		}
	}
}

// Equal recordings give equal models, bit for bit, and a model survives its file.
func TestLearningRepeats(t *testing.T) {
	again := must(school(dynamometer, samples, func(rng *rand.Rand) tool { return anyTool(rng, 4) }))
	a, b := must(json.Marshal(usual())), must(json.Marshal(again))
	if string(a) != string(b) {
		t.Error("another model from the same recordings")
	}
	var read cycle.Model
	if err := json.Unmarshal(a, &read); err != nil || !reflect.DeepEqual(&read, usual()) {
		t.Errorf("read again: %v\n%+v\n%+v", err, read, usual())
	}
}

// A recording of which no window is left teaches nothing.
func TestLearningFromAnEmptyRecording(t *testing.T) {
	blank, rng := cycle.New(dynamometer, samples), rand.New(rand.NewPCG(1, 2))
	some := tracks(follower(blank), []tool{anyTool(rng, 4), anyTool(rng, 4)}, rng)
	want := must(blank.Learn(some, 150))
	got, err := blank.Learn(append(some, nil), 150)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, want %+v", err, got, want)
	}
}

// A restart between any two windows changes nothing that follows.
func TestMemoryRestores(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	ws := anyTool(rng, 2).run(rng)
	blind := slices.Clone(sound)
	blind[1] = signal.Dropout
	rapid.Check(t, func(t *rapid.T) {
		f := follower(usual())
		var old, now cycle.Memory
		start := began
		for range 30 {
			w := &ws[rapid.IntRange(0, len(ws)-1).Draw(t, "window")]
			tool := rapid.SampledFrom([]string{"T1", "T1", "T2"}).Draw(t, "tool")
			faults := rapid.SampledFrom([][]signal.Quality{sound, sound, blind}).Draw(t, "faults")
			frames := f.Measure(nil, w.samples)
			a, b := f.Follow(&old, tool, start, frames, faults), f.Follow(&now, tool, start, frames, faults)
			if a != b {
				t.Fatalf("%v, after a restart %v", a, b)
			}
			text := must(json.Marshal(&now))
			if want := must(json.Marshal(&old)); string(text) != string(want) {
				t.Fatalf("after a restart\n%s\nwithout\n%s", text, want)
			}
			now = cycle.Memory{}
			if err := json.Unmarshal(text, &now); err != nil {
				t.Fatal(err)
			}
			if err := now.Check(usual()); err != nil {
				t.Fatal(err)
			}
			start = start.Add(time.Duration(rapid.SampledFrom([]int{1, 1, 1, 7, 4000, -50}).Draw(t, "seconds later")) * time.Second)
		}
	})
}

func TestForeignMemoryIsRefused(t *testing.T) {
	f := follower(usual())
	rng := rand.New(rand.NewPCG(9, 9))
	w := anyTool(rng, 1).run(rng)[0]
	for why, spoil := range map[string]func(k *cycle.Memory){
		"of fewer parts":   func(k *cycle.Memory) { k.Belief = k.Belief[1:] },
		"of fewer inputs":  func(k *cycle.Memory) { k.Zero = k.Zero[1:] },
		"beliefs of 2":     func(k *cycle.Memory) { k.Belief[0]++ },
		"a negative one":   func(k *cycle.Memory) { k.Belief[0], k.Belief[1] = -1, 2 },
		"none":             func(k *cycle.Memory) { k.Belief[0] = math.NaN() },
		"variance below 0": func(k *cycle.Memory) { k.Variance[0] = -1 },
		"zero at infinity": func(k *cycle.Memory) { k.Zero[0] = math.Inf(1) },
		"last at infinity": func(k *cycle.Memory) { k.Last[0] = math.Inf(1) },
	} {
		var k cycle.Memory
		f.Follow(&k, "T1", w.start, f.Measure(nil, w.samples), sound)
		if err := k.Check(usual()); err != nil {
			t.Fatal(err)
		}
		spoil(&k)
		if err := k.Check(usual()); err == nil {
			t.Errorf("%s: taken", why)
		}
	}
	if err := new(cycle.Memory).Check(usual()); err != nil {
		t.Errorf("a machine that is not known yet: %v", err)
	}
}

// Sensors fail: the others give the state, and without thrust and torque nothing
// does.
func TestFaults(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	ws := anyTool(rng, 4).run(rng)
	for what, tc := range map[string]struct {
		out     []int
		unknown bool
	}{
		"thrust": {[]int{0}, false}, "torque": {[]int{1}, false}, "vibration": {[]int{2}, false}, "thrust and torque": {[]int{0, 1}, true},
	} {
		faults := slices.Clone(sound)
		for _, c := range tc.out {
			faults[c] = signal.Flatline
		}
		got := follow(usual(), ws, faults)
		off := 0
		for i, w := range ws {
			if tc.unknown != (got[i] == cycle.Unknown) {
				t.Fatalf("%s: window %d is %v", what, i, got[i])
			}
			if (got[i] == cycle.Drilling) != (w.state == cycle.Drilling) {
				off++
			}
		}
		if !tc.unknown && off > len(ws)/20 {
			t.Errorf("without %s, drilling is wrong in %d of %d windows", what, off, len(ws))
		}
	}
}

// After a gap the machine may be anywhere, and is found where it is.
func TestGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	ws := anyTool(rng, 4).run(rng)
	for from := 3; from < len(ws)-12; from += 5 {
		for _, gap := range []int{1, 6, 200} {
			f := follower(usual())
			var k cycle.Memory
			ask := func(w window, later int) cycle.State {
				return f.Follow(&k, "T1", w.start.Add(time.Duration(later)*time.Second), f.Measure(nil, w.samples), sound)
			}
			for _, w := range ws[:from] {
				ask(w, 0)
			}
			next := min(from+gap, len(ws)-3)
			for i, w := range ws[next:min(next+2, len(ws))] {
				got := ask(w, gap-(next-from))
				if i == 1 && (got == cycle.Drilling) != (w.state == cycle.Drilling) {
					t.Errorf("%d s missing from second %d: %v comes out as %v two windows later", gap, from, w.state, got)
				}
			}
		}
	}
}

func TestFollowAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	w := anyTool(rng, 1).run(rng)[0]
	f := follower(usual())
	var k cycle.Memory
	frames := f.Measure(nil, w.samples)
	start := w.start
	next := func() {
		f.Follow(&k, "T1", start, f.Measure(frames[:0], w.samples), sound)
		start = start.Add(time.Second)
	}
	next()
	if n := testing.AllocsPerRun(50, next); n > 0 {
		t.Errorf("%v allocations a window", n)
	}
	if n := testing.AllocsPerRun(50, func() { f.Follow(nil, "T1", start, frames, sound) }); n > 0 {
		t.Errorf("%v allocations for a window alone", n)
	}
}

func TestModelsThatAreNone(t *testing.T) {
	text := must(json.Marshal(usual()))
	for why, spoil := range map[string]func(m *cycle.Model){
		"no frames":                      func(m *cycle.Model) { m.Frames = 0 },
		"a channel that is not there":    func(m *cycle.Model) { m.Inputs[0].Channel = "x" },
		"a measure that is none":         func(m *cycle.Model) { m.Inputs[0].Measure = "peak" },
		"no scale":                       func(m *cycle.Model) { m.Inputs[0].Scale = 0 },
		"no spread of outliers":          func(m *cycle.Model) { m.Inputs[0].Rise.SD = 0 },
		"a zero that is none":            func(m *cycle.Model) { m.Inputs[0].Zero = math.NaN() },
		"nothing that is drilling":       func(m *cycle.Model) { m.Parts = m.Parts[:1] },
		"a part too few":                 func(m *cycle.Model) { m.Parts = m.Parts[1:] },
		"probabilities that add up to 2": func(m *cycle.Model) { m.Parts[0].Next[1]++ },
		"a level too few":                func(m *cycle.Model) { m.Parts[2].Level = m.Parts[2].Level[1:] },
		"a spread below 0":               func(m *cycle.Model) { m.Parts[2].Rise[0].SD = -1 },
		"a part of no state":             func(m *cycle.Model) { m.Parts[2].State = cycle.Unknown },
	} {
		var m cycle.Model
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		spoil(&m)
		if err := m.Check(dynamometer); err == nil {
			t.Errorf("%s: taken", why)
		}
	}
	var s cycle.State
	if err := s.UnmarshalText([]byte("turning")); err == nil {
		t.Error("a state of turning")
	}
}

func BenchmarkFollow(b *testing.B) {
	rng := rand.New(rand.NewPCG(13, 1))
	ws := anyTool(rng, 1).run(rng)
	f := follower(usual())
	var k cycle.Memory
	var frames []float32
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w := &ws[i%len(ws)]
		frames = f.Measure(frames[:0], w.samples)
		f.Follow(&k, "T1", began.Add(time.Duration(i)*time.Second), frames, sound)
	}
}

// The numbers of a memory are written into one piece of memory, however long they are.
func TestNumbersInOnePiece(t *testing.T) {
	for name, n := range map[string][]float64{
		"none":     {},
		"short":    {0, 1, 2},
		"unknown":  {math.NaN(), math.NaN()},
		"longest":  {-math.MaxFloat64, -2.2250738585072014e-308, -1.2345678901234567e-300},
		"thousand": slices.Repeat([]float64{-math.MaxFloat64}, 1000),
	} {
		k := cycle.Memory{Belief: n}
		if objects := testing.AllocsPerRun(10, func() { _, _ = k.Belief.MarshalJSON() }); objects != 1 {
			t.Errorf("%s: %v objects", name, objects)
		}
	}
}
