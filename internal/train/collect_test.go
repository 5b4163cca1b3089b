package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

var (
	nan   = math.NaN()
	nan32 = float32(math.NaN())
)

func TestLearnGate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	around := func(n int, mean, sd float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Abs(mean + sd*rng.NormFloat64())
		}
		return x
	}
	for why, tc := range map[string]struct {
		levels    []float64
		low, high float64 // bounds of the threshold; both 0 if there is none
	}{
		"cutting and idle":                      {slices.Concat(around(300, 500, 40), around(100, 5, 1)), 10, 400},
		"seldom idle":                           {slices.Concat(around(990, 500, 15), around(10, 5, 1)), 10, 450},
		"mostly idle":                           {slices.Concat(around(20, 500, 40), around(980, 5, 1)), 10, 400},
		"two kinds without spread":              {[]float64{0, 300, 0, 300, 300}, 150, 150},
		"always cutting":                        {around(400, 500, 40), 0, 0},
		"wear doubles the force, all cutting":   {slices.Concat(around(200, 300, 10), around(200, 600, 10)), 0, 0},
		"every level from idle to hard cutting": {ramp(400), 0, 0},
		"one level":                             {[]float64{7, 7, 7}, 0, 0},
		"all zero":                              {make([]float64, 9), 0, 0},
		"a single window":                       {[]float64{500}, 0, 0},
		"no window":                             {nil, 0, 0},
	} {
		got, ok := learnGate(tc.levels)
		if ok != (tc.high > 0) {
			t.Errorf("%s: two kinds: %v", why, ok)
		}
		if ok && (got < tc.low || got > tc.high) {
			t.Errorf("%s: threshold %v, want %v to %v", why, got, tc.low, tc.high)
		}
	}
}

func ramp(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i)
	}
	return x
}

// The order of windows and the unit of the force do not matter.
func TestLearnGateLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.SliceOfN(rapid.Float64Range(0, 1000), 1, 50).Draw(t, "levels")
		threshold, ok := learnGate(levels)
		shuffled := rapid.Permutation(levels).Draw(t, "shuffled")
		if again, ok2 := learnGate(shuffled); again != threshold || ok2 != ok {
			t.Fatalf("%v, %v in another order: %v, %v", threshold, ok, again, ok2)
		}
		for i := range levels {
			levels[i] *= 1024 // exact in binary
		}
		if scaled, ok2 := learnGate(levels); ok2 != ok || scaled != 1024*threshold {
			t.Fatalf("%v, %v in other units: %v, %v", threshold, ok, scaled, ok2)
		}
	})
}

// What a channel does in one window of a hundred is its nature.
func TestUsual(t *testing.T) {
	found := [][]observed{make([]observed, 150), make([]observed, 50)}
	for _, os := range found {
		for i := range os {
			os[i].Quality = make([]signal.Quality, 2)
		}
	}
	found[0][0].Quality[0] = signal.Clipped // 1 of 200
	found[0][7].Quality[1] = signal.Flatline
	found[1][9].Quality[1] = signal.Flatline | signal.Dropout // 2 of 200 and 1 of 200
	if got, want := usual(2, found), []signal.Quality{0, signal.Flatline}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The drill idles for 2 s before each hole and cuts for 8. It does not say how
// fast it turns, so the ten harmonics of its spindle are missing.
func TestGateIsLearntFromTheForce(t *testing.T) {
	l := drillLayout(t)
	d := newDrill(l, "m", "T1", drillStart, 3)
	ms := []wear.Measurement{atEnd("T1", drillStart, 3, 300, "")}
	_, m, counts := mustRows(t, drillJob(t, wear.Interpolate, ms, drillInput(d)))
	if m.Gate == nil || m.Gate.Channel != "thrust" || m.Gate.Threshold < 10 || m.Gate.Threshold > 290 {
		t.Errorf("gate %+v, want one on thrust between 1 and 300 N", m.Gate)
	}
	if want := (card.Tally{Windows: 30, NotCutting: 3 * idleSeconds, Learning: 4, Missing: 20 * 10, Used: 20, Join: "20 labelled, 0 not"}); fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", counts, want)
	}

	j := drillJob(t, wear.Interpolate, ms, drillInput(newDrill(l, "m", "T1", drillStart, 3)))
	j.Config.Gate = "off"
	if _, m, counts := mustRows(t, j); m.Gate != nil || counts.NotCutting != 0 || counts.Used != 30-4 {
		t.Errorf("gate off: %+v, %+v", m.Gate, counts)
	}

	d = newDrill(l, "m", "T1", drillStart, 3)
	d.busy, d.unplugged = true, 2
	if _, m, _ := mustRows(t, drillJob(t, wear.Interpolate, ms, drillInput(d))); m.Gate != nil {
		t.Errorf("gate %+v: a cable that was pulled does not mean idling", m.Gate)
	}
}

// faultyWindows returns the starts of faulty rows in seconds after the drill's.
func faultyWindows(rows rowTable) []int {
	var at []int
	for i, c := range rows.Class {
		if c == wear.Faulty {
			at = append(at, int(rows.Start[i].Sub(drillStart)/time.Second))
		}
	}
	return at
}

func TestLabelsByWearFile(t *testing.T) {
	l := drillLayout(t)
	ms := []wear.Measurement{
		atEnd("T1", drillStart, 1, 100, ""), atEnd("T1", drillStart, 2, 350, ""), atEnd("T1", drillStart, 3, 360, wear.Chipped),
		atEnd("T7", drillStart, 1, 20, ""), // of a tool that no recording has
	}
	for _, tc := range []struct {
		join       wear.Mode
		faulty     []int
		unlabelled int
		why        string
	}{
		// Hole n takes the seconds from 10n−8 to 10n; the first 4 windows of
		// the first hole make the reference.
		{wear.HoleEnd, seconds(12, 20, 22, 30), 8, "holes 2 and 3 end faulty, 4 was not measured"},
		{wear.Interpolate, append([]int{18, 19}, seconds(22, 30, 32, 40)...), 0, "300 µm are passed at 18 s; chipped once is chipped for good"},
	} {
		rows, _, counts := mustRows(t, drillJob(t, tc.join, ms, drillInput(newDrill(l, "m", "T1", drillStart, 4))))
		if got := faultyWindows(rows); !slices.Equal(got, tc.faulty) {
			t.Errorf("%s: faulty windows start at %v, want %v (%s)", tc.join, got, tc.faulty, tc.why)
		}
		if counts.Unlabelled != tc.unlabelled || counts.Used != 4*holeSeconds-4-tc.unlabelled {
			t.Errorf("%s: %+v, want %d without label", tc.join, counts, tc.unlabelled)
		}
		if rows.Hole[0] != "H1" || rows.Machine[0] != "m" || rows.VBMaxUM[0] < 50 || rows.VBMaxUM[0] > 100 {
			t.Errorf("%s: first row %+v", tc.join, rows.Row(0))
		}
	}
}

// seconds returns the numbers of the half-open intervals [a, b), [c, d), …
func seconds(bounds ...int) []int {
	var out []int
	for ; len(bounds) > 0; bounds = bounds[2:] {
		for s := bounds[0]; s < bounds[1]; s++ {
			out = append(out, s)
		}
	}
	return out
}

// A measurement may also come from the input itself, as the simulator's do.
func TestInputsMayBringTheirWear(t *testing.T) {
	l := drillLayout(t)
	in := drillInput(newDrill(l, "m", "T1", drillStart, 2))
	in.Wear = func() []wear.Measurement { return []wear.Measurement{atEnd("T1", drillStart, 2, 400, "")} }
	rows, _, _ := mustRows(t, drillJob(t, wear.Interpolate, nil, in))
	if got, want := faultyWindows(rows), seconds(15, 20); !slices.Equal(got, want) {
		t.Errorf("faulty windows start at %v, want %v: 300 of 400 µm are passed at 15 of 20 s", got, want)
	}
}

// A tool with reference windows only teaches nothing, and the report says so.
func TestToolWithoutRows(t *testing.T) {
	j := latheJob(t)
	j.Inputs = append(j.Inputs, latheInput(t, j.Layout, "short", "lathe", latheCSV([]life{{"F", 5, 10}, {"G", 3, 10}})))
	j.Progress = func(string, int, int) {}
	j.Workers = 1
	rows, _, counts := mustRows(t, j)
	if want := []string{"F", "G"}; !slices.Equal(counts.Unused, want) || counts.Learning != 5*5+5+3 {
		t.Errorf("%+v, want unused tools %v", counts, want)
	}
	if slices.Contains(rows.Tool, "F") || len(counts.Warnings()) != 1 || !strings.Contains(counts.Warnings()[0], "F (5), G (3)") {
		t.Errorf("warnings %q", counts.Warnings())
	}
}

// Tools of two machines may have one name: they have references of their own
// and are apart in every split.
func TestMachinesAreApart(t *testing.T) {
	l := drillLayout(t)
	ms := []wear.Measurement{atEnd("T1", drillStart, 2, 400, "")}
	var inputs []Input
	for _, machine := range []string{"plant/a", "plant/b"} {
		inputs = append(inputs, drillInput(newDrill(l, machine, "T1", drillStart, 2)))
	}
	rows, _, counts := mustRows(t, drillJob(t, wear.Interpolate, ms, inputs...))
	if counts.Learning != 2*4 {
		t.Errorf("%d windows make references, want 4 of each machine", counts.Learning)
	}
	if got := slices.Compact(slices.Clone(rows.group)); !slices.Equal(got, []string{"plant/a/T1", "plant/b/T1"}) {
		t.Errorf("groups %v", got)
	}
	if rows, _, _ := mustRows(t, drillJob(t, wear.Interpolate, ms, drillInput(newDrill(l, "plant/a", "T1", drillStart, 2)))); rows.group[0] != "T1" {
		t.Errorf("group %q of the only machine, want its tool", rows.group[0])
	}
}

// A tool that a machine goes on with in its next recording keeps its
// reference, in any order of the recordings. Another tool gets one
// of its own.
func TestReferenceOutlivesARecording(t *testing.T) {
	l := drillLayout(t)
	later := drillStart.Add(time.Hour)
	ms := []wear.Measurement{atEnd("T1", later, 1, 400, ""), atEnd("T2", later.Add(time.Hour), 1, 10, "")}
	parts := []*drill{
		newDrill(l, "m", "T1", drillStart, 1), newDrill(l, "m", "T1", later, 1), newDrill(l, "m", "T2", later.Add(time.Hour), 1),
	}
	var first []float32
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		j := drillJob(t, wear.Interpolate, ms)
		for _, i := range order {
			d := *parts[i]
			d.rng = rand.New(rand.NewPCG(uint64(i), 9))
			j.Inputs = append(j.Inputs, drillInput(&d))
		}
		rows, _, counts := mustRows(t, j)
		if counts.Learning != 2*4 || counts.Used != 4+8+4 {
			t.Errorf("order %v: %+v, want references of T1 and T2 only", order, counts)
		}
		if first == nil {
			first = rows.Data
		} else if !slices.EqualFunc(first, rows.Data, func(a, b float32) bool { return a == b || a != a && b != b }) {
			t.Errorf("order %v: other rows", order)
		}
	}
}

// Progress goes up to its total, by windows where their number is known.
func TestReadingProgress(t *testing.T) {
	l := drillLayout(t)
	for _, known := range []int{0, 20} {
		var inputs []Input
		for i := range 3 {
			in := drillInput(newDrill(l, "m", fmt.Sprint("T", i), drillStart, 2))
			in.Windows = known
			inputs = append(inputs, in)
		}
		var got []int
		m := &model.Model{Layout: l, Window: window.DefaultSpec, Usual: make([]signal.Quality, 2)}
		if _, _, err := collect(t.Context(), m, inputs, 2, keepAll, func(done, total int) { got = append(got, done); got = append(got, total) }); err != nil {
			t.Fatal(err)
		}
		want, steps := 3*20, 3*20
		if known == 0 {
			want, steps = 3, 3+1
		}
		if len(got) != 2*steps || got[len(got)-2] != want || got[len(got)-1] != want {
			t.Errorf("%d windows known: %d reports up to %v, want %d of %d", known, len(got)/2, got[len(got)-2:], want, want)
		}
	}
}
