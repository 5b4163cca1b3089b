package vote_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/recorded"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

const (
	limitUM   = 300
	reference = 10 // windows
)

// recording is the windows of turning tools, by tool in the order of time.
type recording struct {
	columns []string
	tools   []string
	raw     map[string][][]float32
	y       map[string][]int
	wear    map[string][]float64 // in limits
}

func readTurning(t testing.TB) *recording {
	folder := recorded.Folder(t)
	f, err := os.Open(filepath.Join(folder, "vicomtech-turning", "turning_wear_dev.csv"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	p := len(lines[0]) - 2
	r := &recording{columns: lines[0][:p], raw: make(map[string][][]float32), y: make(map[string][]int), wear: make(map[string][]float64)}
	for _, line := range lines[1:] {
		tool, row := line[p], make([]float32, p)
		for j := range row {
			v, err := strconv.ParseFloat(line[j], 32)
			if err != nil {
				v = math.NaN()
			}
			row[j] = float32(v)
		}
		um, err := strconv.ParseFloat(line[p+1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if r.raw[tool] == nil {
			r.tools = append(r.tools, tool)
		}
		class := 0
		if um >= limitUM {
			class = 1
		}
		r.raw[tool], r.y[tool] = append(r.raw[tool], row), append(r.y[tool], class)
		r.wear[tool] = append(r.wear[tool], um/limitUM)
	}
	return r
}

// size returns the power of the gain that a column grows with, and its kind.
func size(column string) (float64, vote.Kind) {
	switch column[strings.LastIndexByte(column, '_')+1:] {
	case "RMS":
		return 1, vote.RMS
	case "MEAN":
		return 1, vote.Mean
	case "MAX":
		return 1, vote.Max
	case "VAR":
		return 2, vote.Other
	}
	return 0, vote.Other
}

func (r *recording) sensors() []vote.Sensor {
	var out []vote.Sensor
	for j, c := range r.columns {
		name, _, ok := strings.Cut(c, "_")
		if i := strings.LastIndexByte(c, '_'); name != "AE" && i > 0 {
			name = c[:i]
		} else if !ok {
			continue
		}
		k := slices.IndexFunc(out, func(s vote.Sensor) bool { return s.Name == name })
		if k < 0 {
			k = len(out)
			unit := ""
			if strings.HasPrefix(name, "F_") {
				unit = "N"
			}
			out = append(out, vote.Sensor{Name: name, Unit: unit})
		}
		_, kind := size(c)
		out[k].Columns, out[k].Kinds = append(out[k].Columns, j), append(out[k].Kinds, kind)
	}
	return out
}

// positive returns which columns are positive in all windows of some tools.
func (r *recording) positive(tools []string) []bool {
	out := slices.Repeat([]bool{true}, len(r.columns))
	for _, tool := range tools {
		for _, row := range r.raw[tool] {
			for j, v := range row {
				out[j] = out[j] && v > 0
			}
		}
	}
	return out
}

// relative returns rows relative to the median of the first ones, in the mode log of the
// reference, without these.
func relative(rows [][]float32, logs []bool) [][]float32 {
	center := make([]float64, len(logs))
	for j := range center {
		var first []float64
		for _, row := range rows[:reference] {
			if v := float64(row[j]); v == v {
				first = append(first, v)
			}
		}
		slices.Sort(first)
		center[j] = math.NaN()
		if n := len(first); n > 0 {
			center[j] = (first[(n-1)/2] + first[n/2]) / 2
		}
	}
	out := make([][]float32, 0, len(rows))
	for _, row := range rows[reference:] {
		to := make([]float32, len(row))
		for j, v := range row {
			if logs[j] {
				to[j] = float32(min(max(math.Log(max(float64(v), 1e-12)/max(center[j], 1e-12)), -5), 5))
			} else {
				to[j] = float32(float64(v) - center[j])
			}
		}
		out = append(out, to)
	}
	return out
}

func (r *recording) table(tools []string) vote.Table {
	t := vote.Table{Log: r.positive(tools), Sensors: r.sensors()}
	t.X.Cols = len(r.columns)
	for _, tool := range tools {
		for n, row := range relative(r.raw[tool], t.Log) {
			t.X.Rows++
			t.X.Data = append(t.X.Data, row...)
			t.Y, t.Groups = append(t.Y, r.y[tool][reference+n]), append(t.Groups, tool)
			t.Wear = append(t.Wear, r.wear[tool][reference+n])
		}
	}
	t.Weights = weigher(&t)
	return t
}

func weigher(t *vote.Table) func([]string) []float64 {
	var lives []score.Life
	for i, g := range t.Groups {
		if len(lives) == 0 || lives[len(lives)-1].Tool != g {
			lives = append(lives, score.Life{Tool: g})
		}
		l := &lives[len(lives)-1]
		l.Rows = append(l.Rows, i)
	}
	all := score.RankColumns(t.X.Cols, t.X.Row, lives)
	return func(without []string) []float64 { return all.Without(without).Weight }
}

// scene changes window n of so many, in place; last is the window before the middle.
type scene struct {
	class, name string
	change      func(n, of int, row, last []float32)
}

func (r *recording) scenes(names []string) []scene {
	out := []scene{{"clean", "clean", func(int, int, []float32, []float32) {}}}
	for _, sigma := range []float64{0.05, 0.1} {
		rng := rand.New(rand.NewPCG(5, 1))
		out = append(out, scene{"noise", fmt.Sprintf("noise of %g", sigma), func(_, _ int, row, _ []float32) {
			for j := range row {
				row[j] *= float32(math.Exp(sigma * rng.NormFloat64()))
			}
		}})
	}
	always := r.positive(r.tools)
	gain := func(row []float32, s vote.Sensor, f float64) {
		for _, j := range s.Columns {
			if power, _ := size(r.columns[j]); power > 0 && always[j] {
				row[j] *= float32(math.Pow(f, power))
			}
		}
	}
	var forces []vote.Sensor
	for _, s := range r.sensors() {
		if s.Unit == "N" {
			forces = append(forces, s)
		}
		if !slices.Contains(names, s.Name) {
			continue
		}
		for _, f := range []float64{0.8, 0.9, 1.1, 1.2, 1.25, 1.5} {
			class := "gain"
			if f == 1.5 {
				class = "gain of 1.5"
			}
			out = append(out, scene{class, fmt.Sprintf("%s x%g", s.Name, f), func(n, of int, row, _ []float32) {
				if n >= of/2 {
					gain(row, s, f)
				}
			}})
		}
		for _, f := range []float64{0.8, 1.25} {
			out = append(out, scene{"drift", fmt.Sprintf("%s drift %g", s.Name, f), func(n, of int, row, _ []float32) { gain(row, s, 1+(f-1)*float64(n)/float64(of-1)) }})
		}
		for _, dead := range []struct {
			name  string
			value func(last float32) float32
		}{
			{"zero", func(float32) float32 { return 0 }},
			{"stuck", func(last float32) float32 { return last }},
			{"missing", func(float32) float32 { return nan }},
		} {
			out = append(out, scene{"dead", s.Name + " " + dead.name, func(n, of int, row, last []float32) {
				for _, j := range s.Columns {
					if n >= of/2 {
						row[j] = dead.value(last[j])
					}
				}
			}})
		}
	}
	for _, f := range []float64{0.8, 0.9, 1.1, 1.2, 1.25} {
		out = append(out, scene{"all forces", fmt.Sprintf("all forces x%g", f), func(n, of int, row, _ []float32) {
			for _, s := range forces {
				if n >= of/2 {
					gain(row, s, f)
				}
			}
		}})
	}
	return out
}

// alarms says whether 5 of any 8 windows in a row are true, as the default of pkg/alarm has it
// and vote.NamedIn of vote.NamedOf.
func alarms(decided []bool) bool {
	n := 0
	for i, d := range decided {
		if d {
			n++
		}
		if i >= 8 && decided[i-8] {
			n--
		}
		if n >= 5 {
			return true
		}
	}
	return false
}

// tally is what decisions on tools held out were.
type tally struct {
	g      score.Confusion
	missed int            // worn tools without an alarm
	named  map[string]int // tools in which a sensor was named for long, by sensor
}

const (
	alone = iota // without the guard
	guarded
	voteAlone
	ways
)

// judge returns scores of test rows by what is learnt from a table.
type judge func(t *testing.T, table vote.Table, test dbn.Matrix) []float64

// Leave one tool out: clean windows, and windows of which one sensor changes its gain, drifts or
// is dead from the middle of a tool's life on. What is guarded is logistic regression on all
// columns and, unless tests are to be short, the product's network. The log has the figures:
// go test ./pkg/classify/vote -run Turning -v.
func TestRecordedTurning(t *testing.T) {
	r := readTurning(t)
	t.Run("logistic", func(t *testing.T) {
		r.study(t, func(t *testing.T, table vote.Table, test dbn.Matrix) []float64 {
			a, err := study.LogisticRegression.Judge(t.Context(), study.Task{X: table.X, Y: table.Y, Groups: table.Groups, Test: test, Weights: table.Weights(nil), Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			return a.Scores()
		})
	})
	t.Run("network", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it takes a minute")
		}
		r.study(t, func(t *testing.T, table vote.Table, test dbn.Matrix) []float64 {
			all := func(string) bool { return true }
			c, _, err := classify.FitTable(t.Context(), &classify.Table{X: table.X, Y: table.Y, Groups: table.Groups, Ordered: true, Ended: all}, classify.Settings{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			scorer, scores := c.NewScorer(), make([]float64, test.Rows)
			for i := range scores {
				scores[i] = c.Score(scorer.Posterior(test.Row(i)))
			}
			return scores
		})
	})
}

func (r *recording) study(t *testing.T, by judge) {
	scenes := r.scenes([]string{"F_f", "F_p", "F_c", "TV2.Z", "CV3.Z", "AE"})
	results := make([][ways]tally, len(scenes))
	for s := range results {
		for w := range ways {
			results[s][w] = tally{g: score.NewConfusion(2), named: make(map[string]int)}
		}
	}
	for _, held := range r.tools {
		r.judgeHeld(t, by, held, scenes, results)
	}
	for s, of := range scenes {
		a, b, v := &results[s][alone], &results[s][guarded], &results[s][voteAlone]
		t.Logf("%-16s alone %.3f, guarded %.3f, vote %.3f; tools in which a sensor is named %v", of.name, a.g.GMean(), b.g.GMean(), v.g.GMean(), b.named)
	}
	for _, class := range []string{"clean", "noise", "gain", "gain of 1.5", "drift", "dead", "all forces"} {
		least, missed := [ways]float64{1, 1, 1}, [ways]int{}
		for w, name := range [ways]string{"alone", "guarded", "vote"} {
			var sum, n float64
			for s, of := range scenes {
				if of.class == class {
					g := results[s][w].g.GMean()
					least[w], sum, n = min(least[w], g), sum+g, n+1
					missed[w] += results[s][w].missed
				}
			}
			t.Logf("%-11s %-7s: G-mean %.3f at worst, %.3f in the mean; %d worn tools missed", class, name, least[w], sum/n, missed[w])
		}
		if missed[guarded] > 0 {
			t.Errorf("%s: %d worn tools are missed", class, missed[guarded])
		}
		gained := 0.1
		switch class {
		case "clean":
			gained = -0.01
		case "noise", "all forces":
			gained = -0.03
		}
		if least[guarded] < least[alone]+gained {
			t.Errorf("%s: G-mean %.3f at worst, without the guard %.3f", class, least[guarded], least[alone])
		}
	}
}

// judgeHeld fits a guard without a tool and adds what it makes of the tool in each scene.
func (r *recording) judgeHeld(t *testing.T, by judge, held string, scenes []scene, results [][ways]tally) {
	table := r.table(slices.DeleteFunc(slices.Clone(r.tools), func(tool string) bool { return tool == held }))
	guard, report, err := vote.Fit(t.Context(), table, vote.Settings{})
	if err != nil || guard == nil {
		t.Fatal(err, report)
	}
	var experts []string
	for _, e := range report.Experts {
		experts = append(experts, strings.Join(e.Sensors, map[bool]string{true: "/", false: "+"}[e.Ratio]))
	}
	t.Logf("without tool %s: cut %.2f, experts %s", held, report.Cut, strings.Join(experts, ", "))
	test := dbn.Matrix{Cols: len(r.columns)}
	var flags [][]bool
	for _, s := range scenes {
		raw := make([][]float32, len(r.raw[held]))
		var m vote.Memory
		for n, row := range r.raw[held] {
			raw[n] = slices.Clone(row)
			s.change(n, len(raw), raw[n], r.raw[held][len(raw)/2-1])
			failed := guard.Failed(&m, raw[n])
			if n >= reference {
				flags = append(flags, failed)
			}
		}
		for _, row := range relative(raw, table.Log) {
			test.Rows++
			test.Data = append(test.Data, row...)
		}
	}
	scores, scorer, y := by(t, table, test), guard.NewScorer(), r.y[held][reference:]
	for s := range scenes {
		var decided [ways][]bool
		named := make([][]bool, len(guard.Sensors()))
		for n := range y {
			i := s*len(y) + n
			j := scorer.Judge(scorer.Without(test.Row(i), flags[i]), scores[i])
			for w, worn := range [ways]bool{scores[i] >= 0.5, j.Score >= 0.5, j.Vote >= guard.Cut()} {
				results[s][w].g.Add(y[n], class(worn))
				decided[w] = append(decided[w], worn)
			}
			for k := range named {
				named[k] = append(named[k], j.Sensor == k)
			}
		}
		for w := range ways {
			if slices.Contains(y, 1) && !alarms(decided[w]) {
				results[s][w].missed++
			}
		}
		for k, name := range guard.Sensors() {
			if alarms(named[k]) {
				results[s][guarded].named[name]++
			}
		}
	}
}
