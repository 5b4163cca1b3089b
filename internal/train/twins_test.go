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

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
	"github.com/flank-tcm/flank/pkg/model"
)

// forgery is what is done to a recording, so that its copy is not exact.
type forgery struct {
	scale, round float64 // round 0: not
	late         bool    // by a sample
}

var forgeries = []forgery{{1, 0.01, false}, {1.25, 0, false}, {1, 0, true}, {0.5, 0.01, true}}

func (f forgery) of(v float64) float64 {
	if v *= f.scale; f.round > 0 {
		v = math.Round(v/f.round) * f.round
	}
	return v
}

// forged is a source of forged samples.
type forged struct {
	source.Source
	forgery
	last map[[2]int]float32 // sample of a channel of a group
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
		if at := [2]int{b.Group, c}; f.late && len(x) > 0 {
			last := y[len(y)-1]
			copy(y[1:], y)
			if before, ok := f.last[at]; ok {
				y[0] = before
			}
			f.last[at] = last
		}
		out.Samples = append(out.Samples, y)
	}
	return &out, nil
}

const copyMark = "~" // behind the name of a tool: it is its copy

// alike returns how alike honest tools are at most, tools and their copies at least, and which pairs are taken for the wrong thing.
func alike(f *twinFinder) (honest, copies float64, wrong []string) {
	copies = 1
	all := f.changes()
	for i, b := range all {
		for _, a := range all[:i] {
			of, tool := a.tool, b.tool
			most := 0.0
			for shift := -1; shift <= 1; shift++ {
				r, _ := medianCorrelation(a, b, shift)
				most = max(most, r)
			}
			isCopy := tool == of+copyMark
			switch {
			case isCopy:
				copies = min(copies, most)
			case strings.HasSuffix(tool, copyMark) || strings.HasSuffix(of, copyMark):
				continue
			default:
				honest = max(honest, most)
			}
			if isCopy != (likeness(a, b) > 0) {
				wrong = append(wrong, of+" and "+tool)
			}
		}
	}
	return honest, copies, wrong
}

// ofJob gives a finder the windows of a job, and of forged copies.
func ofJob(t *testing.T, j Job, by forgery) *twinFinder {
	t.Helper()
	j.prepare()
	j.Config.Reference.Mode = model.ReferenceOff
	f := newTwinFinder()
	m, err := j.blank()
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"", copyMark} {
		inputs := slices.Clone(j.Inputs)
		for i := range inputs {
			open := inputs[i].Open
			if mark != "" {
				inputs[i].Open = func() (source.Source, error) {
					s, err := open()
					return &forged{s, by, make(map[[2]int]float32)}, err
				}
			}
		}
		all, _, err := collect(t.Context(), m, inputs, 1, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		m.Usual = usual(len(m.Usual), all)
		if err := j.settleCutting(m, all); err != nil {
			t.Fatal(err)
		}
		l := newLabeller(m, j.Config.Label, nil, new(card.Tally), false)
		l.watch = func(tool string, row []float32) { f.add(tool+mark, row) }
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
	f := newTwinFinder()
	for _, mark := range []string{"", copyMark} {
		windows := make(map[string][][]float64)
		for i, line := range all[1:] {
			name := line[at] + mark
			if mark != "" && by.late && i > 0 && all[i][at] == line[at] {
				line = all[i]
			}
			var x []float64
			for _, cell := range line[from:to] {
				v, err := strconv.ParseFloat(cell, 64)
				if err != nil {
					v = math.NaN()
				}
				if mark != "" {
					v = by.of(v)
				}
				x = append(x, v)
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
			f.add(name, features)
			delete(windows, name)
		}
	}
	return f
}

// Honest tools are far from alike, and near copies of a recording are found: on every set of recordings at hand. docs/algorithm/few-tools.md
// has the figures.
func TestRecordedTwins(t *testing.T) {
	dir := recorded.Folder(t)
	sets := map[string]func(forgery) *twinFinder{
		"turning": func(by forgery) *twinFinder {
			return ofJob(t, exampleJob(t, "turning", "vicomtech-turning/turning_wear_dev.csv"), by)
		},
		"milling": func(by forgery) *twinFinder {
			return ofJob(t, exampleJob(t, "milling", "umich-cnc-mill/experiment_*.csv"), by)
		},
		"phm2010": func(by forgery) *twinFinder {
			return ofRows(t, filepath.Join(dir, "phm2010-features/feature_vector.csv"), "case", "force_x__mean", "ae_rms__skewness", 1, by)
		},
		"uniwear": func(by forgery) *twinFinder {
			return ofRows(t, filepath.Join(dir, "uniwear/uniwear_dev.csv"), "experiment_tag", "force_z", "vibration_y", 20, by)
		},
		"drills": func(by forgery) *twinFinder {
			return ofJob(t, Simulation{Machine: "m", Seed: 1, Schedule: HistorySchedule}.Job(sim.Tools(1, HistorySchedule.Life)[:4]), by)
		},
	}
	for name, set := range sets {
		t.Run(name, func(t *testing.T) {
			some := forgeries
			if name == "drills" { // which take long
				some = some[3:]
			}
			for _, by := range some {
				honest, copies, wrong := alike(set(by))
				t.Logf("scaled by %v, rounded to %v, late %v: honest tools at most %.3f, copies at least %.3f", by.scale, by.round, by.late, honest, copies)
				if len(wrong) > 0 {
					t.Errorf("%+v: %q", by, wrong)
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
		"B and B~ (1.000): if one": twice(forgery{1, 0.01, false}, "B"),
		"D and D~ (1.000): if one": twice(forgery{3, 0, false}, "D"),
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
	f := newTwinFinder()
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
			f.add(name, row)
		}
	}
	if got := f.twins(); len(got) != 1 || got[0] != (twin{"0", strconv.Itoa(twinTools - 1), got[0].likeness}) || len(f.rows) != twinTools {
		t.Errorf("%v of %d tools", got, len(f.rows))
	}
}
