package vote_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// watched returns the gains of a tool's windows, one row for each, as across a restart after every window.
func watched(t testing.TB, g *vote.Guard, windows [][]float32) (gains [][]float64) {
	var m vote.Memory
	for n, raw := range windows {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if m = nil; json.Unmarshal(b, &m) != nil {
			t.Fatalf("%s", b)
		}
		sensed := make([]vote.Sensed, len(g.Sensors()))
		g.Watch(&m, raw, n >= reference, sensed)
		var of []float64
		for _, s := range sensed {
			of = append(of, s.Gain)
		}
		gains = append(gains, of)
	}
	return gains
}

// times returns windows of which some sensors read gain times as much from one on.
func times(windows [][]float32, from int, gain float64, sensors ...int) [][]float32 {
	out := make([][]float32, len(windows))
	for n, row := range windows {
		out[n] = slices.Clone(row)
		for _, p := range sensors {
			for j := 4 * p; j < 4*p+3 && n >= from; j++ {
				out[n][j] *= float32(gain)
			}
		}
	}
	return out
}

// A step in the gain of one sensor is found in its second window and taken out. Wear, and what two sensors do, are not.
func TestStepOfAGain(t *testing.T) {
	s := newShop(11, 6, 5)
	g := fitted(t, s.table(s.tools[:9]))
	for _, tool := range s.tools[9:] {
		for n, gains := range watched(t, g, s.raw[tool]) {
			if slices.Max(gains) != 1 || slices.Min(gains) != 1 {
				t.Errorf("tool %s, window %d: gains %v", tool, n, gains)
			}
		}
	}
	life := s.raw[s.tools[9]]
	const from = 30
	for p, of := range parts {
		k := slices.Index(g.Sensors(), of.name)
		for _, gain := range []float64{0.5, 2} {
			for n, gains := range watched(t, g, times(life, from, gain, p)) {
				want := 1.0
				if n > from {
					want = gain
				}
				for other, v := range gains {
					if other == k && math.Abs(math.Log(v/want)) > 0.25 || other != k && v != 1 {
						t.Errorf("%s reads %v times: window %d: gains %v", of.name, gain, n, gains)
					}
				}
			}
		}
		for name, windows := range map[string][][]float32{
			"another one too":                    times(life, from, 2, p, (p+1)%len(parts)),
			"while the reference is being taken": times(life, 5, 2, p),
			"one size only":                      times(life, len(life), 2, p),
		} {
			if name == "one size only" {
				for _, row := range windows[from:] {
					row[4*p] *= 2
				}
			}
			if gains := watched(t, g, windows); slices.ContainsFunc(gains, func(of []float64) bool { return slices.Max(of) != 1 }) {
				t.Errorf("%s, %s: %v", of.name, name, gains[len(gains)-1])
			}
		}
	}
	cutting := slices.Index(g.Sensors(), "cutting")
	last := func(windows [][]float32) float64 { all := watched(t, g, windows); return all[len(all)-1][cutting] }
	if v := last(times(times(life, 20, 2, 1), 35, 0.5, 1)); v != 1 {
		t.Errorf("twice as much, and then as before: %v", v)
	}
	for _, gain := range []float64{1.5, 0.6} { // wear makes the step at the end smaller, or larger
		wearing := times(times(life, 20, gain, 1), 32, 1/gain, 1)
		for n := range wearing {
			for j := 4; j < 7; j++ {
				wearing[n][j] *= float32(math.Exp(0.04 * float64(max(0, min(n, 36)-30))))
			}
		}
		if v := last(wearing); v != 1 {
			t.Errorf("%v times as much, and then as before while the tool wears fast: %v", gain, v)
		}
	}
	if v := last(times(times(life, 20, 3, 1), 35, 1.3/3, 1)); math.Abs(math.Log(v/1.3)) > 0.2 {
		t.Errorf("3 times as much, and then 1.3 times: %v", v)
	}
	if v := last(times(life, reference-1, 2, 1)); math.Abs(math.Log(v/2)) > 0.25 {
		t.Errorf("from the last window of the reference on: %v", v)
	}
	unplugged := times(life, 30, 2, 1)
	for _, row := range unplugged[28:34] {
		row[4], row[5], row[6] = nan, nan, nan
	}
	for n := 35; n < len(unplugged); n += 7 {
		unplugged[n][6] = nan // one size only
	}
	if v := last(unplugged); math.Abs(math.Log(v/2)) > 0.25 {
		t.Errorf("plugged in again with twice the gain: %v", v)
	}
	for _, row := range unplugged[24:34] {
		row[4], row[5], row[6] = nan, nan, nan
	}
	if v := last(unplugged); v != 1 {
		t.Errorf("plugged in again after long: %v", v)
	}
}

// stepOracle is the rule of steps as a batch over all windows of a tool, from the definition: of each sensor in logs, by window
// and size; nil: a value is missing. Such windows are passed over, and ten of them are a new beginning.
func stepOracle(g *vote.Guard, windows [][][]float64) (gains [][]float64) {
	sensors := len(g.Sensors())
	gain, gap, quiet, noise, of := make([]float64, sensors), make([]int, sensors), make([]int, sensors), make([]float64, sensors), make([]float64, sensors)
	median := func(x ...float64) float64 {
		x = slices.Sorted(slices.Values(x))
		return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
	}
	short := func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
	ends := make([]bool, sensors)         // a step that takes back more than half of the gain
	right := make([][][]float64, sensors) // windows with values, without the gains
	for _, window := range windows {
		var over, moved []int
		steps := make([]float64, sensors)
		for k := range sensors {
			_, natural, least := g.Steps(k)
			if window[k] == nil {
				if gap[k]++; gap[k] >= 10 {
					right[k], quiet[k], noise[k], of[k], gap[k] = nil, 0, 0, 0, 0
				}
				continue
			}
			gap[k] = 0
			var sizes []float64
			for _, v := range window[k] {
				sizes = append(sizes, short(v-gain[k]))
			}
			right[k] = append(right[k], sizes)
			n := len(right[k]) - 1
			if n >= 4 {
				of[k] = min(of[k]+1, 20)
				first := max(n-3, 0) // n−3 and the one before are the newest of the five old windows
				d := math.Abs(median(right[k][first]...) - median(right[k][first-1]...))
				noise[k] = short(noise[k] + (d-noise[k])/of[k])
			}
			if n < 7 {
				continue
			}
			var by []float64
			for size := range sizes {
				at := func(i int) float64 { return right[k][n-i][size] }
				by = append(by, median(at(0), at(1), at(2))-median(at(3), at(4), at(5), at(6), at(7)))
			}
			steps[k] = median(by...)
			// Standard deviation of the difference of two medians of normal values, of 3 and of 5, for a mean difference.
			deviation := noise[k] * math.Sqrt(math.Pi) / 2 * math.Sqrt(math.Pi/6+math.Pi/10)
			if math.Abs(steps[k]) > natural {
				moved = append(moved, k)
			}
			if left := gain[k] + steps[k]; (gain[k] > 0 && steps[k] < 0 || gain[k] < 0 && steps[k] > 0) && (math.Abs(left) < 0.1 || math.Abs(left) < 0.2 && math.Abs(left) < math.Abs(gain[k])/2) {
				least, ends[k] = max(0.1, natural), true
			} else {
				ends[k] = false
			}
			if math.Abs(steps[k]) > max(least, 5*deviation) && slices.Max(by)-slices.Min(by) < 0.15 && n >= quiet[k] {
				over = append(over, k)
			}
		}
		if len(over) == 1 && len(moved) == 1 {
			k := over[0]
			before := gain[k]
			if gain[k] = short(gain[k] + steps[k]); math.Abs(gain[k]) < 0.1 || ends[k] {
				gain[k] = 0
			}
			n := len(right[k]) - 1
			quiet[k] = n + 8
			for _, row := range right[k][n-1:] {
				for size := range row {
					row[size] = short(row[size] - (gain[k] - before))
				}
			}
		}
		out := make([]float64, sensors)
		for k := range out {
			out[k] = math.Exp(gain[k])
		}
		gains = append(gains, out)
	}
	return gains
}

// Window by window Watch says what the definition says of all windows at once, also of sensors that fail for a while.
func TestStepsAreThoseOfTheDefinition(t *testing.T) {
	s := newShop(12, 4, 4)
	g := fitted(t, s.table(s.tools))
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		noise := rapid.Float64Range(0.005, 0.1).Draw(t, "noise") // with none a sensor is stuck
		level, gap := make([]float64, len(parts)), make([]int, len(parts))
		var windows [][]float32
		var logs [][][]float64
		for range 60 {
			row, log := make([]float32, g.Columns()), make([][]float64, len(parts))
			for p, of := range parts {
				if rng.IntN(40) == 0 {
					level[p] += 1.6 * (rng.Float64() - 0.5)
				}
				k, missing := slices.Index(g.Sensors(), of.name), rng.IntN(100) == 0 || gap[p] > 0
				switch {
				case gap[p] > 0:
					gap[p]--
				case missing:
					gap[p] = rng.IntN(15)
				}
				for j := range 3 {
					if row[4*p+j] = float32(math.Exp(level[p] + noise*rng.NormFloat64())); missing {
						row[4*p+j] = nan
					} else {
						log[k] = append(log[k], math.Log(math.Abs(float64(row[4*p+j]))))
					}
				}
			}
			windows, logs = append(windows, row), append(logs, log)
		}
		want := stepOracle(g, logs)
		var m vote.Memory
		sensed := make([]vote.Sensed, len(g.Sensors()))
		for n, row := range windows {
			g.Watch(&m, row, true, sensed)
			for k := range sensed {
				if math.Abs(sensed[k].Gain-want[n][k]) > 1e-9 {
					t.Fatalf("window %d, sensor %d: gain %v, want %v", n, k, sensed[k].Gain, want[n][k])
				}
				if want[n][k] != 1 {
					found++
				}
			}
		}
	})
	if found == 0 {
		t.Error("no step was ever found")
	}
}

// The largest natural step is the largest one of any training tool, and a gain steps from half as much again on, with few tools from more.
func TestNaturalSteps(t *testing.T) {
	s := newShop(13, 4, 4)
	for _, tools := range []int{4, 8} {
		g := fitted(t, s.table(s.tools[:tools]))
		for k, name := range g.Sensors() {
			p := slices.IndexFunc(parts, func(of part) bool { return of.name == name })
			largest := 0.0
			for _, tool := range s.tools[:tools] {
				life := s.raw[tool][reference:]
				for n := 7; n < len(life); n++ {
					var by []float64
					for j := 4 * p; j < 4*p+3; j++ {
						var x []float64
						for i := n - 7; i <= n; i++ {
							x = append(x, math.Log(float64(life[i][j])))
						}
						slices.Sort(x[:5])
						slices.Sort(x[5:])
						by = append(by, x[6]-x[2])
					}
					slices.Sort(by)
					largest = max(largest, math.Abs(by[1]))
				}
			}
			margin := 1.5
			if tools == 4 {
				margin = 2
			}
			sizes, natural, least := g.Steps(k)
			if len(sizes) != 3 || math.Abs(natural-largest) > 2e-4 || math.Abs(least-max(0.1, margin*natural)) > 1e-12 {
				t.Errorf("%s of %d tools: sizes %v, natural %v, want %v, least %v", name, tools, sizes, natural, largest, least)
			}
		}
	}
}

// Steps are not looked for where a tool of the training seems to have one, or where too few sensors can be compared; the report says so.
func TestNoSteps(t *testing.T) {
	s := newShop(14, 4, 4)
	stepping := newShop(14, 4, 4)
	tool := stepping.tools[2]
	stepping.raw[tool] = times(stepping.raw[tool], 30, 2, 3)
	two := s.table(s.tools)
	two.Log = slices.Repeat([]bool{false}, len(shopLogs))
	copy(two.Log, shopLogs[:8])
	for name, tc := range map[string]struct {
		table vote.Table
		steps bool
		want  string
	}{
		"not asked for":    {s.table(s.tools), false, ""},
		"one tool has one": {stepping.table(stepping.tools), true, "torque of tool c changes as if its gain stepped, and no other tool's does"},
		"two sensors":      {two, true, "2 sensors have 2 to 9 levels that are taken as logarithms, and it takes 3"},
	} {
		g, r, err := vote.Fit(t.Context(), tc.table, vote.Settings{Steps: tc.steps})
		if err != nil || g == nil || r.StepsOff != tc.want {
			t.Fatalf("%s: %v, %+v", name, err, r)
		}
		for n, gains := range watched(t, g, times(s.raw["a"], 30, 3, 1)) {
			if slices.Max(gains) != 1 {
				t.Errorf("%s, window %d: gains %v", name, n, gains)
			}
		}
	}
}

// Memories do not share what they remember.
func TestMemoryClone(t *testing.T) {
	s := newShop(11, 6, 3)
	g := fitted(t, s.table(s.tools))
	var m vote.Memory
	sensed := make([]vote.Sensed, len(g.Sensors()))
	for _, row := range s.raw["a"][:20] {
		g.Watch(&m, row, true, sensed)
	}
	before, err := json.Marshal(m)
	if err != nil || !strings.Contains(string(before), `"levels"`) {
		t.Fatalf("%s, %v", before, err)
	}
	clone := m.Clone()
	g.Watch(&clone, s.raw["a"][20], true, sensed)
	if after, _ := json.Marshal(m); string(after) != string(before) {
		t.Errorf("%s, before its clone went on %s", after, before)
	}
}

// Rows without a class count for what tools do by nature: a fit without them would take gaps between windows for steps.
func TestWholeTools(t *testing.T) {
	s := newShop(11, 6, 5)
	all := s.table(s.tools[:9])
	some := all
	some.X, some.Y, some.Groups = dbn.Matrix{Cols: all.X.Cols}, nil, nil
	for i, tool := range all.Groups {
		if i%2 == 0 || tool != s.tools[1] {
			some.X.Rows++
			some.X.Data = append(some.X.Data, all.X.Row(i)...)
			some.Y, some.Groups = append(some.Y, all.Y[i]), append(some.Groups, tool)
		}
	}
	weights := all.Weights(nil) // the same in all fits
	some.Weights = func([]string) []float64 { return weights }
	all.Weights = some.Weights
	want, gaps := fitted(t, all), fitted(t, some)
	some.Whole = &vote.Whole{Row: all.X.Row}
	for i, tool := range all.Groups {
		if n := len(some.Whole.Lives); n == 0 || some.Whole.Lives[n-1].Tool != tool {
			some.Whole.Lives = append(some.Whole.Lives, score.Life{Tool: tool})
		}
		life := &some.Whole.Lives[len(some.Whole.Lives)-1]
		life.Rows = append(life.Rows, i)
	}
	got := fitted(t, some)
	differ := false
	for k := range want.Sensors() {
		_, natural, least := want.Steps(k)
		if _, n, l := got.Steps(k); n != natural || l != least {
			t.Errorf("sensor %d: natural step %v, least %v; want %v and %v", k, n, l, natural, least)
		}
		_, n, _ := gaps.Steps(k)
		differ = differ || n != natural
	}
	if !differ {
		t.Error("rows that are left out make no difference: the test says nothing")
	}
	some.Whole.Row = func(i int) []float32 { return all.X.Row(i)[1:] }
	if _, _, err := vote.Fit(t.Context(), some, vote.Settings{}); !errors.Is(err, vote.ErrSize) {
		t.Errorf("rows of other columns: %v", err)
	}
}
