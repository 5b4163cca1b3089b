package sim

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source"
)

var _ source.Source = (*Drill)(nil)

// start is an arbitrary time with a fraction of a second.
var start = time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)

func newDrill(t testing.TB, s Settings) *Drill {
	t.Helper()
	s.Start = start
	d, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tool returns one of the experiment's tools with the given end and life.
func tool(end string, life time.Duration) Tool {
	t := Tools(1, life)[0]
	t.End, t.Life = end, life
	return t
}

// second is what a drill delivers in a second, copied.
type second struct {
	block  source.Block // of the accelerations, without samples
	truth  source.Truth
	fast   [][]float32
	thrust []float32
	torque []float32
}

// drain returns all that d delivers.
func drain(t testing.TB, d *Drill) []second {
	t.Helper()
	var all []second
	for {
		fast, err := d.Next(t.Context())
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		s := second{block: *fast, truth: fast.Truth[0]}
		s.block.Samples = nil
		for _, x := range fast.Samples {
			s.fast = append(s.fast, slices.Clone(x))
		}
		slow, err := d.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.thrust, s.torque = slices.Clone(slow.Samples[0]), slices.Clone(slow.Samples[1])
		all = append(all, s)
	}
}

func TestBlocks(t *testing.T) {
	tools := []Tool{tool(Worn, 7*time.Second), tool(Broken, 5*time.Second)}
	tools[1].Name, tools[1].Seed = "T02", 77
	d := newDrill(t, Settings{Machine: "a/b/c/d/drill", Seed: 5, Tools: tools, Hole: 3 * time.Second, Pause: 1700 * time.Millisecond})
	groups := d.Layout().Groups()
	var session, seconds int64
	began, last := start, ""
	var holes []string
	for n := 0; ; n++ {
		b, err := d.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Group != n%2 {
			t.Fatalf("block %d is of group %d", n, b.Group)
		}
		if b.Session != session {
			if n > 0 && (b.Tool != "T02" || last != "T01") {
				t.Errorf("session changes from tool %q to %q", last, b.Tool)
			}
			session = b.Session
			began = began.Add(time.Duration(seconds) * time.Second)
			seconds = 0
		}
		rate := int64(groups[b.Group].Rate)
		if b.First != seconds*rate || !b.Time.Equal(began.Add(time.Duration(seconds)*time.Second)) {
			t.Errorf("block %d: first %d at %v, want %d at %v", n, b.First, b.Time, seconds*rate, began.Add(time.Duration(seconds)*time.Second))
		}
		if b.Len() != int(rate) || len(b.Samples) != len(groups[b.Group].Channels) {
			t.Errorf("block %d: %d channels of %d samples", n, len(b.Samples), b.Len())
		}
		if b.Machine != "a/b/c/d/drill" || b.SpindleSpeed != 1200 || len(b.Truth) != 1 || b.Truth[0].State == "" {
			t.Errorf("block %d: %+v, truth %+v", n, b.Context, b.Truth)
		}
		if id := b.Tool + " " + b.Hole; !slices.Contains(holes, id) {
			holes = append(holes, id)
		}
		last = b.Tool
		seconds += int64(b.Group) // the second group ends the second
	}
	// the last second of T01's life is too short for a hole of its own
	if want := []string{"T01 H01", "T01 H02", "T02 H01", "T02 H02"}; !slices.Equal(holes, want) {
		t.Errorf("holes %v, want %v", holes, want)
	}
	if _, err := d.Next(t.Context()); err != io.EOF {
		t.Errorf("after the last block: %v, want io.EOF again", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newDrill(t, Settings{Tools: tools}).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestTruth(t *testing.T) {
	for _, end := range []string{Worn, Chipped, Broken} {
		d := newDrill(t, Settings{Tools: []Tool{tool(end, 20*time.Second)}, Hole: 5 * time.Second, Pause: time.Second})
		before := source.Truth{State: Healthy}
		all := drain(t, d)
		for i, s := range all {
			if s.truth.VBMaxUM < before.VBMaxUM || s.truth.VBMeanUM < before.VBMeanUM {
				t.Errorf("%s: second %d: wear goes back from %+v to %+v", end, i, before, s.truth)
			}
			if (s.truth.State == Healthy) != (s.truth.VBMaxUM < LimitUM) || s.truth.State != Healthy && s.truth.State != end {
				t.Errorf("%s: second %d: %q at %v µm", end, i, s.truth.State, s.truth.VBMaxUM)
			}
			before = s.truth
		}
		if all[0].truth.VBMaxUM > 100 || before.State != end {
			t.Errorf("%s: from %+v to %+v", end, all[0].truth, before)
		}
	}
}

// Truth names the phase that takes most of each second.
func TestPhases(t *testing.T) {
	d := newDrill(t, Settings{Tools: []Tool{tool(Worn, 10*time.Second)}, Hole: 5 * time.Second, Pause: 10 * time.Second})
	cycle := []string{ // entry takes 0.71 s
		Idle, Idle, StartUp, Coolant, Entry, Drilling, Drilling, Drilling, Drilling, Retract, Retract, Retract, Idle, Idle, Idle,
	}
	all := drain(t, d)
	if len(all) != 2*len(cycle) {
		t.Fatalf("%d seconds of two holes", len(all))
	}
	for i, s := range all {
		if want := cycle[i%len(cycle)]; s.truth.Phase != want {
			t.Errorf("second %d: phase %q, want %q", i, s.truth.Phase, want)
		}
	}
}

// The same seeds give the same bytes, whichever tools came before and however
// many frames are simulated at a time; other seeds give others.
func TestSeeds(t *testing.T) {
	tools := []Tool{tool(Worn, 2*time.Second), tool(Chipped, 4*time.Second)}
	tools[1].Seed = 8
	settings := Settings{Seed: 3, Tools: tools, Hole: 2 * time.Second, Pause: time.Second}
	all := drain(t, newDrill(t, settings))
	again := drain(t, newDrill(t, settings))
	settings.Tools = tools[1:]
	alone := drain(t, newDrill(t, settings))
	tail := all[len(all)-len(alone):]

	r := newRun(tools[1], &settings)
	for i, s := range tail {
		if !equal(s, alone[i]) {
			t.Fatalf("second %d of the tool differs when it is the first", i)
		}
		if !equal(s, again[len(all)-len(alone)+i]) {
			t.Fatalf("second %d differs the second time", i)
		}
		for f := range framesPerBlock { // one frame at a time, into other memory
			fast, slow := make([][]float32, channels), make([][]float32, 2)
			for ch := range fast {
				fast[ch] = make([]float32, perFrame)
			}
			slow[0], slow[1] = make([]float32, 1), make([]float32, 1)
			r.frame(fast, slow, 0)
			for ch := range fast {
				if !slices.Equal(fast[ch], s.fast[ch][f*perFrame:][:perFrame]) {
					t.Fatalf("second %d, frame %d: channel %d differs when taken alone", i, f, ch)
				}
			}
			if slow[0][0] != s.thrust[f] || slow[1][0] != s.torque[f] {
				t.Fatalf("second %d, frame %d: thrust or torque differs when taken alone", i, f)
			}
		}
	}
	for name, change := range map[string]func(s *Settings){
		"of the settings": func(s *Settings) { s.Seed++ },
		"of the tool":     func(s *Settings) { s.Tools = slices.Clone(s.Tools); s.Tools[0].Seed++ },
	} {
		other := settings
		change(&other)
		if equal(drain(t, newDrill(t, other))[1], alone[1]) {
			t.Errorf("another seed %s gives the same signals", name)
		}
	}
}

func equal(a, b second) bool {
	same := slices.Equal(a.thrust, b.thrust) && slices.Equal(a.torque, b.torque) && a.truth == b.truth
	for ch := range a.fast {
		same = same && slices.Equal(a.fast[ch], b.fast[ch])
	}
	return same
}

func TestMeasurements(t *testing.T) {
	tools := Tools(2, 30*time.Second)[:10]
	for i := range tools {
		tools[i].Life = 10 * time.Second // five holes
	}
	d := newDrill(t, Settings{Machine: "m", Tools: tools, Hole: 2 * time.Second})
	for {
		if _, err := d.Next(t.Context()); err == io.EOF {
			break
		}
	}
	var errs, squares float64
	got := d.Measurements()
	if len(got) != 5*len(tools) {
		t.Fatalf("%d measurements of %d holes", len(got), 5*len(tools))
	}
	for i, m := range got {
		if m.Machine != "m" || m.Tool != tools[i/5].Name || m.Hole != []string{"H01", "H02", "H03", "H04", "H05"}[i%5] {
			t.Errorf("measurement %d is of %q %q %q", i, m.Machine, m.Tool, m.Hole)
		}
		if want := start.Add(time.Duration(i+1) * 2 * time.Second); !m.Time.Equal(want) {
			t.Errorf("measurement %d at %v, drilling ended at %v", i, m.Time, want)
		}
		r := newRun(tools[i/5], &d.settings)
		vbMax, _, state := r.curve.at(float64(i%5+1) / 5)
		errs += m.VBMaxUM - vbMax
		squares += (m.VBMaxUM - vbMax) * (m.VBMaxUM - vbMax)
		if state == Chipped || state == Broken {
			if m.State != state {
				t.Errorf("measurement %d: %q, the tool is %s", i, m.State, state)
			}
		} else if (m.State == Worn) != (m.VBMaxUM >= LimitUM) {
			t.Errorf("measurement %d: %q at %v µm", i, m.State, m.VBMaxUM)
		}
	}
	n := float64(len(got)) // 50: the standard error of the mean is 0.7, of the deviation 0.5
	if mean, dev := errs/n, math.Sqrt(squares/n); math.Abs(mean) > 2 || math.Abs(dev-measuringErrorUM) > 1.5 {
		t.Errorf("measuring error %v ± %v µm, want 0 ± 5", mean, dev)
	}
}

// Measurements come when the hole is over, not before.
func TestMeasurementsSoFar(t *testing.T) {
	d := newDrill(t, Settings{Tools: []Tool{tool(Worn, 6*time.Second)}, Hole: 2 * time.Second, Pause: time.Second})
	for n := 1; ; n++ {
		if _, err := d.Next(t.Context()); err == io.EOF {
			break
		}
		if got, want := len(d.Measurements()), (n+1)/6; got != want {
			t.Errorf("after %d blocks of 6 a hole: %d measurements, want %d", n, got, want)
		}
	}
}

// After the last hole of a tool the machine stands until the tool is changed, and nothing else of
// what it does changes.
func TestChange(t *testing.T) {
	tools := []Tool{tool(Worn, 6*time.Second), tool(Worn, 4*time.Second)}
	tools[1].Name = "T02"
	settings := Settings{Seed: 3, Tools: tools, Hole: 2 * time.Second, Pause: time.Second}
	plain := drain(t, newDrill(t, settings))
	settings.Change = 4100 * time.Millisecond
	waits := drain(t, newDrill(t, settings))
	const wait = 5 // whole seconds, of both tools
	if len(waits) != len(plain)+2*wait {
		t.Fatalf("%d seconds, want %d more than %d", len(waits), 2*wait, len(plain))
	}
	end := slices.IndexFunc(plain, func(s second) bool { return s.block.Tool == "T02" })
	for i, s := range waits {
		of := -1 // the second of plain that it is
		switch {
		case i < end:
			of = i
		case i >= end+wait && i < len(waits)-wait:
			of = i - wait
		}
		if of < 0 {
			if want := waits[i-1].block.Tool; s.block.Tool != want || s.truth.Phase != Idle {
				t.Errorf("second %d: tool %s, %s; want %s, idle", i, s.block.Tool, s.truth.Phase, want)
			}
			continue
		}
		if !slices.Equal(s.thrust, plain[of].thrust) || s.block.Hole != plain[of].block.Hole {
			t.Errorf("second %d differs from second %d without the wait", i, of)
		}
	}
}

func TestNewRejects(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Settings)
		want   string
	}{
		"no tools":       {func(s *Settings) { s.Tools = nil }, "no tools"},
		"no start":       {func(s *Settings) { s.Start = time.Time{} }, "no start time"},
		"count":          {func(s *Settings) { s.Count = -1 }, "-1 tools: must not be negative"},
		"short hole":     {func(s *Settings) { s.Hole = time.Millisecond }, "1ms to drill a hole"},
		"negative pause": {func(s *Settings) { s.Pause = -1 }, "pause -1ns"},
		"negative wait":  {func(s *Settings) { s.Change = -1 }, "-1ns to change a tool"},
		"tool name":      {func(s *Settings) { s.Tools[1].Name = "" }, "tool 2 (): has no name"},
		"diameter":       {func(s *Settings) { s.Tools[1].DiameterMM = math.NaN() }, "tool 2 (T02): diameter NaN mm"},
		"speed":          {func(s *Settings) { s.Tools[0].SpeedRPM = 1e5 }, "tool 1 (T01): speed 100000 rev/min"},
		"feed":           {func(s *Settings) { s.Tools[0].FeedUM = 0 }, "feed 0 µm/rev"},
		"end":            {func(s *Settings) { s.Tools[0].End = "lost" }, `end "lost" is not one of worn, chipped, broken`},
		"life":           {func(s *Settings) { s.Tools[0].Life = 0 }, "life 0s"},
	} {
		s := Settings{Start: start, Tools: Tools(1, time.Minute)}
		tc.change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q in it", name, err, tc.want)
		}
	}
}

// Tools beyond those that are named are of their kinds, in their order, and pieces of their own.
func TestCount(t *testing.T) {
	kinds := Tools(1, 4*time.Second)[:2]
	counted := drain(t, newDrill(t, Settings{Machine: "m", Seed: 1, Tools: kinds, Count: 3, Prefix: "T06", Hole: 2 * time.Second}))
	named := slices.Concat(kinds, kinds[:1])
	for i, name := range []string{"T06-01", "T06-02", "T06-03"} {
		named[i].Name = name
	}
	named[2].Seed += 1 << 32
	if want := drain(t, newDrill(t, Settings{Machine: "m", Seed: 1, Tools: named, Hole: 2 * time.Second})); !slices.EqualFunc(counted, want, equal) {
		t.Errorf("%d seconds of counted tools, %d of the same by name, or others", len(counted), len(want))
	}
}

// A tool that was used before begins in a later hole, as worn as it is there.
func TestUsed(t *testing.T) {
	settings := Settings{Machine: "m", Start: start, Seed: 1, Tools: Tools(1, 12*time.Second)[:1], Hole: 2 * time.Second}
	all := drain(t, newDrill(t, settings))
	settings.Tools[0].Used = 0.5
	used := drain(t, newDrill(t, settings))
	if len(used) == 0 || len(used) >= len(all) {
		t.Fatalf("%d seconds of a used tool, %d of a new one", len(used), len(all))
	}
	for i, s := range all[len(all)-len(used):] {
		if s.truth != used[i].truth {
			t.Errorf("second %d of the used tool: %+v, want %+v", i, used[i].truth, s.truth)
		}
	}
	if first := used[0].truth.VBMaxUM; first < 100 {
		t.Errorf("it begins at %v µm", first)
	}
	for _, wrong := range []float64{-0.1, 1, math.NaN()} {
		settings.Tools[0].Used = wrong
		if _, err := New(settings); err == nil || !strings.Contains(err.Error(), "of its life used") {
			t.Errorf("used %v: %v", wrong, err)
		}
	}
}

// Hundreds of thousands of tools take no memory before they are drilled with.
func BenchmarkNew(b *testing.B) {
	settings := Settings{Start: start, Tools: Tools(1, time.Minute), Count: 400_000, Prefix: "T06"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(settings); err != nil {
			b.Fatal(err)
		}
	}
}

// One operation is a second of every channel.
func BenchmarkSimulator(b *testing.B) {
	d := newDrill(b, Settings{Tools: Tools(1, 24*time.Hour)})
	b.ReportAllocs()
	if _, err := d.Next(b.Context()); err != nil { // draws up the tool's life
		b.Fatal(err)
	}
	for b.Loop() {
		for range 2 {
			if _, err := d.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}
