package train

import (
	"context"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// forgery is what is done to a recording, so that its copy is not exact.
type forgery struct {
	scale, round float64 // round 0: not
	late         float64 // windows, a sample at least; 0: not
	cut          int     // windows at the beginning
	swap         bool    // sensors of one kind
	hard         bool    // not all such copies are found
}

var forgeries = []forgery{
	{scale: 1, round: 0.01}, {scale: 1.25}, {scale: 1, late: 1e-9}, {scale: 0.5, round: 0.01, late: 1e-9}, {scale: 1, cut: 30}, {scale: 1, swap: true},
	{scale: 1, late: 0.25, hard: true}, {scale: 1, late: 0.5, hard: true}, {scale: 1, late: 0.25, cut: 30, swap: true, hard: true},
}

func (f forgery) of(v float64) float64 {
	if v *= f.scale; f.round > 0 {
		v = math.Round(v/f.round) * f.round
	}
	return v
}

// add gives a finder the rows of a copy.
func (f forgery) add(to *twinFinder, tool string, start time.Time, row []float32, seen map[string]int) {
	if seen[tool]++; seen[tool] <= f.cut {
		return
	}
	if f.swap {
		row = slices.Clone(row)
		for _, columns := range to.sums {
			for i, c := range columns[1:] {
				row[c], row[columns[i]] = row[columns[i]], row[c]
			}
		}
	}
	to.add(tool, start, row)
}

// forged is a source of forged samples.
type forged struct {
	source.Source
	forgery
	length time.Duration        // of a window
	last   map[[2]int][]float32 // samples of a channel of a group that are still to come
}

func (f *forged) Next(ctx context.Context) (*source.Block, error) {
	b, err := f.Source.Next(ctx)
	if err != nil {
		return b, err
	}
	out := *b
	out.Samples = nil
	for c, x := range b.Samples {
		y := slices.Clone(x)
		for i, v := range x {
			y[i] = float32(f.of(float64(v)))
		}
		if at := [2]int{b.Group, c}; f.late > 0 && len(x) > 0 {
			if f.last[at] == nil {
				n := f.late * f.length.Seconds() * f.Layout().Groups()[b.Group].Rate
				f.last[at] = slices.Repeat(y[:1], max(1, int(math.Round(n))))
			}
			all := slices.Concat(f.last[at], y)
			y, f.last[at] = all[:len(x)], all[len(x):]
		}
		out.Samples = append(out.Samples, y)
	}
	return &out, nil
}

const copyMark = "~" // behind the name of a tool: it is its copy

// alike returns how alike honest tools are at most, as pairs are compared, how many copies were found of how many, how alike these are at least, and which honest tools
// are taken for copies.
func alike(f *twinFinder) (honest, copies float64, found, of int, wrong []string) {
	copies = 1
	views := [2]*twinView{f.view(0), f.view(1)}
	for k, tool := range f.tools {
		for i, first := range f.tools[:k] {
			likeness := max(views[0].likeness(i, k), views[1].likeness(i, k))
			switch {
			case tool == first+copyMark:
				of++
				if likeness > 0 {
					found, copies = found+1, min(copies, likeness)
				}
			case strings.TrimSuffix(tool, copyMark) == strings.TrimSuffix(first, copyMark):
			case likeness > 0:
				wrong = append(wrong, first+" and "+tool)
			default:
				for _, v := range views {
					if m, ok := v.pairs[[2]int{i, k}]; ok {
						r, _ := v.correlation(i, k, m.shift, v.others(i, k))
						honest = max(honest, r)
					}
				}
			}
		}
	}
	return honest, copies, found, of, wrong
}

// ofJob gives a finder the windows of a job, and of forged copies.
func ofJob(t *testing.T, j Job, by forgery) *twinFinder {
	t.Helper()
	j.prepare()
	j.Config.Reference.Mode = model.ReferenceOff
	m, err := j.blank()
	if err != nil {
		t.Fatal(err)
	}
	judge := m.NewJudge()
	f := newTwinFinder(judge.FeatureNames(), judge.Origins())
	for _, mark := range []string{"", copyMark} {
		inputs := slices.Clone(j.Inputs)
		for i := range inputs {
			open := inputs[i].Open
			if mark != "" {
				inputs[i].Open = func() (source.Source, error) {
					s, err := open()
					return &forged{s, by, m.Window.Length, make(map[[2]int][]float32)}, err
				}
			}
		}
		all, _, err := collect(t.Context(), m, inputs, 1, keepAll, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		m.Usual = usual(len(m.Usual), all)
		if err := j.settleCutting(m, all); err != nil {
			t.Fatal(err)
		}
		l := newLabeller(m, j.Config.Label, nil, new(card.Tally), false)
		forge, seen := forgery{}, make(map[string]int)
		if mark != "" {
			forge = by
		}
		l.watch = func(tool string, start time.Time, row []float32) { forge.add(f, tool+mark, start, row, seen) }
		for _, os := range inOrder(all) {
			for i := range os {
				if _, _, err := l.row(&os[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return f
}

// ofRows gives a finder the mean, spread and maximum of columns of a file over so many rows, and the same of forged copies.
func ofRows(t *testing.T, path, tool string, first, last string, rows int, by forgery) *twinFinder {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at, from, to := slices.Index(all[0], tool), slices.Index(all[0], first), slices.Index(all[0], last)+1
	var names []string
	var origins []signal.FeatureOrigin
	for _, column := range all[0][from:to] {
		sensor, kind, _ := strings.Cut(column, "__")
		for _, of := range []string{"mean", "spread", "most"} {
			names, origins = append(names, sensor+"."+kind+of), append(origins, signal.FeatureOrigin{Sensor: sensor, Group: sensor[:len(sensor)-1]})
		}
	}
	f := newTwinFinder(names, origins)
	for _, mark := range []string{"", copyMark} {
		forge, seen, late := forgery{scale: 1}, make(map[string]int), 0
		if mark != "" {
			forge = by
		}
		if forge.late > 0 {
			late = max(1, int(math.Round(by.late*float64(rows))))
		}
		windows := make(map[string][][]float64)
		for i, line := range all[1:] {
			name := line[at] + mark
			if i >= late && all[1+i-late][at] == line[at] {
				line = all[1+i-late]
			}
			var x []float64
			for _, cell := range line[from:to] {
				v, err := strconv.ParseFloat(cell, 64)
				if err != nil {
					v = math.NaN()
				}
				x = append(x, forge.of(v))
			}
			if windows[name] = append(windows[name], x); len(windows[name]) < rows {
				continue
			}
			var features []float32
			for c := range x {
				sum, squares, most := 0., 0., math.Inf(-1)
				for _, r := range windows[name] {
					sum, squares, most = sum+r[c], squares+r[c]*r[c], max(most, r[c])
				}
				n := float64(rows)
				features = append(features, float32(sum/n), float32(math.Sqrt(max(0, squares/n-sum*sum/n/n))), float32(most))
			}
			forge.add(f, name, time.Time{}, features, seen)
			delete(windows, name)
		}
	}
	return f
}

// Honest tools are far from alike, and near copies of a recording are found: on every set of recordings at hand. docs/algorithm/few-tools.md
// has the figures.
func TestRecordedTwins(t *testing.T) {
	dir := recorded.Folder(t)
	sets := map[string]func(*testing.T, forgery) *twinFinder{
		"turning": func(t *testing.T, by forgery) *twinFinder {
			return ofJob(t, exampleJob(t, "turning", "vicomtech-turning/turning_wear_dev.csv"), by)
		},
		"milling": func(t *testing.T, by forgery) *twinFinder {
			return ofJob(t, exampleJob(t, "milling", "umich-cnc-mill/experiment_*.csv"), by)
		},
		"phm2010": func(t *testing.T, by forgery) *twinFinder {
			return ofRows(t, filepath.Join(dir, "phm2010-features/feature_vector.csv"), "case", "force_x__mean", "ae_rms__skewness", 1, by)
		},
		"uniwear": func(t *testing.T, by forgery) *twinFinder {
			return ofRows(t, filepath.Join(dir, "uniwear/uniwear_dev.csv"), "experiment_tag", "force_z", "vibration_y", 20, by)
		},
		"drills": func(t *testing.T, by forgery) *twinFinder {
			return ofJob(t, Simulation{Machine: "m", Seed: 1, Schedule: HistorySchedule}.Job(sim.Tools(1, HistorySchedule.Life)[:4]), by)
		},
	}
	for name, set := range sets {
		t.Run(name, func(t *testing.T) {
			some := forgeries
			if name == "drills" { // which take long
				some = []forgery{some[3], some[6]}
			}
			for _, by := range some {
				honest, copies, found, of, wrong := alike(set(t, by))
				t.Logf("%+v: honest tools at most %.2f, %d of %d copies found, these at least %.2f", by, honest, found, of, copies)
				if len(wrong) > 0 || found < of && !by.hard {
					t.Errorf("%+v: %d of %d copies found, wrong: %q", by, found, of, wrong)
				}
			}
		})
	}
}

// Copies are named with the figure, on the console and the card, and held out together in every split; honest tools are not copies.
func TestTwinsAreHeldOutTogether(t *testing.T) {
	twice := func(by forgery, of string) func(*Job) {
		return func(j *Job) {
			text := latheCSV(lives)
			for line := range strings.SplitSeq(text, "\n") {
				cells := strings.Split(line, ",")
				if cells[0] != of {
					continue
				}
				cells[0] += copyMark
				for c := 1; c < len(cells)-1; c++ { // but for the wear
					if v, err := strconv.ParseFloat(cells[c], 64); err == nil {
						cells[c] = strconv.FormatFloat(by.of(v), 'g', -1, 64)
					}
				}
				text += strings.Join(cells, ",") + "\n"
			}
			j.Inputs = []Input{latheInput(t, j.Layout, "lives", "lathe", text)}
		}
	}
	for want, change := range map[string]func(*Job){
		"":                         func(*Job) {},
		"B and B~ (1.000): if one": twice(forgery{scale: 1, round: 0.01}, "B"),
		"D and D~ (1.000): if one": twice(forgery{scale: 3}, "D"),
	} {
		j := latheJob(t)
		quick(&j.Config)
		change(&j)
		j.prepare()
		rows, _, _ := mustRows(t, j)
		if said := strings.Join(rows.copyWarnings(), "\n"); !strings.Contains(said, want) || (want == "") != (said == "") {
			t.Errorf("%q, want %q", said, want)
		}
		tool := want[:min(1, len(want))]
		for _, how := range []string{"leave-one-out", "5-fold"} {
			j.Config.Evaluate.ByTool = how
			for _, fold := range j.folds(rows, rand.New(rand.NewPCG(1, 2))) {
				held := make(map[string]bool)
				for _, i := range fold.Test {
					held[rows.group[i]] = true
				}
				for _, i := range fold.Train {
					if g := rows.group[i]; held[g] || held[tool] && g == tool+copyMark || held[tool+copyMark] && g == tool {
						t.Fatalf("%s: %s is learnt from while %v are held out", how, g, held)
					}
				}
			}
		}
	}
}

// Of a thousand tools each is compared with all others, of more only the first thousand.
func TestManyTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := newTwinFinder(nil, nil)
	for k := range twinTools + 10 {
		name := strconv.Itoa(k)
		if k == twinTools-1 {
			f.rows[name], f.tools = f.rows["0"], append(f.tools, name)
			continue
		}
		for range 20 {
			row := make([]float32, 8)
			for c := range row {
				row[c] = float32(rng.NormFloat64())
			}
			f.add(name, time.Time{}, row)
		}
	}
	if got := f.twins(); len(got) != 1 || got[0] != (twin{"0", strconv.Itoa(twinTools - 1), got[0].likeness}) || len(f.rows) != twinTools {
		t.Errorf("%v of %d tools", got, len(f.rows))
	}
}

// made returns tools of a machine whose programme does what `steps` says of each quarter of a window, from a part of it on that is drawn for each tool, with noise of its
// own: features of three sensors, in quarters of windows.
type made struct {
	rng      *rand.Rand
	steps    [][]float64 // by quarter and feature
	noise    float64
	quarters int
}

const madeFeatures = 12

func newMade(seed uint64, cycle int, noise float64, windows int) *made {
	m := &made{rng: rand.New(rand.NewPCG(seed, 2)), noise: noise, quarters: 4 * windows}
	for q := range 3 * m.quarters {
		row := make([]float64, madeFeatures)
		for c := range row {
			switch {
			case cycle > 0 && q >= 4*cycle:
				row[c] = m.steps[q-4*cycle][c]
			case q%12 > 0: // an operation takes three windows
				row[c] = m.steps[q-1][c]
			default:
				row[c] = m.rng.NormFloat64()
			}
		}
		m.steps = append(m.steps, row)
	}
	return m
}

// tool returns what a tool does from a quarter of the programme on.
func (m *made) tool(from int) [][]float64 {
	out := make([][]float64, m.quarters)
	for q := range out {
		out[q] = make([]float64, madeFeatures)
		for c := range out[q] {
			out[q][c] = 5 + m.steps[from+q][c] + 2*m.noise*m.rng.NormFloat64() + 3*float64(q)/float64(m.quarters)
		}
	}
	return out
}

// addTo gives a finder the windows of a tool that begin at a quarter, and of which keep says which are judged.
func addTo(f *twinFinder, name string, quarters [][]float64, from int, keep func(window int) bool) {
	for q := from; q+4 <= len(quarters); q += 4 {
		row := make([]float32, madeFeatures)
		for _, x := range quarters[q : q+4] {
			for c, v := range x {
				row[c] += float32(v / 4)
			}
		}
		if keep(q / 4) {
			f.add(name, time.Unix(1e9, 0).Add(time.Duration(q)*250*time.Millisecond), row)
		}
	}
}

// madeFinder returns a finder of features of three sensors.
func madeFinder() *twinFinder {
	var names []string
	var origins []signal.FeatureOrigin
	for c := range madeFeatures {
		sensor := "a" + strconv.Itoa(c%3)
		names, origins = append(names, sensor+".f"+strconv.Itoa(c/3)), append(origins, signal.FeatureOrigin{Sensor: sensor, Group: "a"})
	}
	return newTwinFinder(names, origins)
}

// Tools of one programme are not copies, at any part of it that they begin; their copies are, with any change.
func TestTwinsOfOneProgramme(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates twins")
	}
	t.Parallel()
	all := func(int) bool { return true }
	swapped := func(x [][]float64) (out [][]float64) {
		for _, row := range x {
			row = slices.Clone(row)
			for c := 0; c < madeFeatures; c += 3 {
				row[c], row[c+1], row[c+2] = row[c+1], row[c+2], row[c]
			}
			out = append(out, row)
		}
		return out
	}
	scaled := func(x [][]float64) (out [][]float64) {
		for _, row := range x {
			row = slices.Clone(row)
			for c, v := range row {
				row[c] = math.Round(250*v) / 200
			}
			out = append(out, row)
		}
		return out
	}
	for name, of := range map[string]struct {
		tools, cycle, windows int
		noise                 float64
	}{
		"no programme":      {2, 0, 100, 100},
		"three tools":       {3, 0, 100, 1},
		"once":              {8, 0, 100, 0.5},
		"in cycles":         {12, 20, 100, 0.5},
		"with little noise": {8, 0, 100, 0.3},
	} {
		for seed := range uint64(2) {
			m := newMade(seed, of.cycle, of.noise, of.windows)
			var tools [][][]float64
			add := func() *twinFinder {
				f := madeFinder()
				for k, x := range tools {
					addTo(f, strconv.Itoa(k), x, 0, all)
				}
				return f
			}
			for range of.tools {
				tools = append(tools, m.tool(m.rng.IntN(4*30)))
			}
			if got := add().twins(); len(got) > 0 {
				t.Errorf("%s, %d: %v are not copies", name, seed, got)
			}
			first := tools[1]
			for what, forge := range map[string]func(f *twinFinder){
				"scaled and rounded": func(f *twinFinder) { addTo(f, copyMark, scaled(first), 0, all) },
				"cut at the start":   func(f *twinFinder) { addTo(f, copyMark, first, 4*30, all) },
				"a quarter later":    func(f *twinFinder) { addTo(f, copyMark, first, 1, all) },
				"channels exchanged": func(f *twinFinder) { addTo(f, copyMark, swapped(first), 0, all) },
				"all of these":       func(f *twinFinder) { addTo(f, copyMark, swapped(scaled(first)), 4*12, all) },
				"with other pauses":  func(f *twinFinder) { addTo(f, copyMark, first, 0, func(w int) bool { return w%14 > 0 }) },
			} {
				f := add()
				forge(f)
				if got := f.twins(); len(got) != 1 || got[0].of != "1" || got[0].tool != copyMark {
					t.Errorf("%s, %d: a copy %s: %v", name, seed, what, got)
				}
			}
		}
	}
}
