package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/window"
)

// What counts: a worn tool is warned of if its alarm comes before its wear is above late limits, an alarm is false if it comes
// below soon limits. Between them an alarm is neither early nor late.
const (
	late   = 1.2
	soon   = 0.8
	sooner = 0.9 // a narrower band, for comparison
)

// outcome is what became of one judged life.
type outcome struct {
	tool                   string
	taught                 []*life // by which tools' healthy lives
	worn                   bool
	warned, false_, false9 bool
}

// judge returns the outcomes of all splits with one setting.
func judge(s *set, of []taughtSplit, t setting) []outcome {
	var out []outcome
	for _, p := range of {
		limit := t.limit(p.score, p.taught)
		for _, l := range p.judged {
			o := outcome{tool: l.tool, taught: p.taught, worn: l.worst() >= s.Limit}
			if at := score.FirstAbove(p.score(l), t.k, t.n, limit); at >= 0 {
				w := l.wear[at] / s.Limit
				o.warned, o.false_, o.false9 = w <= late, w < soon, w < sooner
			}
			out = append(out, o)
		}
	}
	return out
}

// taughtSplit is a split whose method has learnt.
type taughtSplit struct {
	score  scorer
	taught []*life
	judged []*life
}

func learn(s *set, m *method, splits []split) []taughtSplit {
	var out []taughtSplit
	for _, p := range splits {
		t := taughtSplit{}
		for _, tool := range p.Taught {
			t.taught = append(t.taught, s.lifeOf(tool))
		}
		for _, tool := range p.Judged {
			t.judged = append(t.judged, s.lifeOf(tool))
		}
		t.score = remember(m.learn(s, p, t.taught))
		out = append(out, t)
	}
	return out
}

// remember computes the scores of each life once.
func remember(of scorer) scorer {
	known := make(map[*life][]float64)
	return func(l *life) []float64 {
		if known[l] == nil {
			known[l] = of(l)
		}
		return known[l]
	}
}

// figures are shares of tools, each of which counts as often as another.
type figures struct {
	Warned    float64 // of worn tools
	False     float64 // lives with a false alarm, of all
	FalseNine float64 // the same below 0.9 limits
	Worn      int     // tools
	Tools     int

	WarnedIn, FalseIn bootstrap.Interval
}

// sum returns the figures of outcomes, with intervals over tools if bounds is true.
func sum(os []outcome, bounds bool) figures {
	type tally struct{ yes, of [3]float64 } // of warnings, of false alarms, and of these in the narrower band
	by := make(map[string]*tally)
	var tools []string
	for _, o := range os {
		t := by[o.tool]
		if t == nil {
			t = &tally{}
			by[o.tool], tools = t, append(tools, o.tool)
		}
		for k, yes := range [3]bool{o.warned, o.false_, o.false9} {
			if k == 0 && !o.worn {
				continue
			}
			if t.of[k]++; yes {
				t.yes[k]++
			}
		}
	}
	mean := func(times map[string]float64) []float64 {
		out := make([]float64, 3)
		for k := range out {
			var yes, of float64
			for _, tool := range tools { // in order: sums of the same shares must not differ in their last bit
				t := by[tool]
				if n := times[tool]; t.of[k] > 0 {
					yes, of = yes+n*t.yes[k]/t.of[k], of+n
				}
			}
			out[k] = yes / of
		}
		return out
	}
	once := make(map[string]float64)
	f := figures{Tools: len(tools), WarnedIn: bootstrap.None, FalseIn: bootstrap.None}
	for tool, t := range by {
		once[tool] = 1
		if t.of[0] > 0 {
			f.Worn++
		}
	}
	m := mean(once)
	f.Warned, f.False, f.FalseNine = m[0], m[1], m[2]
	if bounds {
		in := bootstrap.Tools(tools, 2, func(times map[string]float64) []float64 {
			if v := mean(times); v[0] == v[0] {
				return v[:2]
			}
			return nil
		})
		f.WarnedIn, f.FalseIn = in[0], in[1]
	}
	return f
}

// mostFalse is how many lives may have a false alarm.
const mostFalse = 0.1

// choice is one of a method's settings, with what became of the lives.
type choice struct {
	setting
	of []outcome
}

func choices(s *set, of []taughtSplit, settings []setting) []choice {
	var out []choice
	for _, t := range settings {
		out = append(out, choice{t, judge(s, of, t)})
	}
	return out
}

// best returns the choice that warns of most worn tools with false alarms in at most a tenth of lives, of equals the one with fewest of
// these, then the first; if none has so few, the one with fewest. Outcomes count that keep says yes to; nil stands for all.
func best(of []choice, keep func(outcome) bool) choice {
	f := make([]figures, len(of))
	order := make([]int, len(of))
	for i, c := range of {
		order[i] = i
		kept := c.of
		if keep != nil {
			kept = slices.DeleteFunc(slices.Clone(c.of), func(o outcome) bool { return !keep(o) })
		}
		f[i] = sum(kept, false)
	}
	over := func(f figures) float64 { return math.Max(0, f.False-mostFalse) }
	return of[slices.MinFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(over(f[a]), over(f[b])), cmp.Compare(f[b].Warned, f[a].Warned), cmp.Compare(f[a].False, f[b].False), a-b)
	})]
}

// nested judges each tool by the choice that is best on the other tools, in splits that the tool does not teach either.
func nested(s *set, of []choice) []outcome {
	var out []outcome
	for _, l := range s.lives {
		c := best(of, func(o outcome) bool { return o.tool != l.tool && !slices.Contains(o.taught, l) })
		for _, o := range c.of {
			if o.tool == l.tool {
				out = append(out, o)
			}
		}
	}
	return out
}

// sets are the data sets, in the order of the page; settings are chosen on drills.
var sets = []string{turning, phm, drill}

const (
	turning = "turning"
	phm     = "phm2010"
	drill   = "drill"
)

// life is the windows of a tool after its reference.
type life struct {
	tool    string
	rows    [][]float32 // features as they are
	center  []float32   // the tool's reference
	wear    []float64   // of each row
	healthy int         // rows before the limit
}

// worst is the greatest wear of the life, which never falls.
func (l *life) worst() float64 { return l.wear[len(l.wear)-1] }

// set is a data set as `unseen tables` wrote it.
type set struct {
	Name      string  `json:"name"`
	Reference int     `json:"reference"`
	Limit     float64 `json:"limit"`

	columns []string
	lives   []*life
	judge   *model.Judge // for the relations and origins of features
}

func load(folder, name string) (*set, error) {
	s := &set{}
	t, err := columns.Table(folder, name, s)
	if err != nil {
		return nil, err
	}
	s.columns = t.Columns
	var ref model.Reference
	spec := model.ReferenceSpec{Mode: model.ReferenceDifference, Windows: s.Reference}
	for i := range t.Rows() {
		r := t.Row(i)
		s.add(r.Tool, r.VBMaxUM, r.Features, &ref, spec)
	}
	return s, s.see()
}

// add appends a window; ref is of the tool that the last one was of.
func (s *set) add(tool string, wear float64, row []float32, ref *model.Reference, spec model.ReferenceSpec) {
	if len(s.lives) == 0 || s.lives[len(s.lives)-1].tool != tool {
		ref.ChangeTool(tool)
		s.lives = append(s.lives, &life{tool: tool})
	}
	l := s.lives[len(s.lives)-1]
	if !ref.Ready(spec) {
		ref.Learn(row, spec)
		l.center = ref.Center()
		return
	}
	l.rows, l.wear = append(l.rows, row), append(l.wear, wear)
	if wear < s.Limit {
		l.healthy = len(l.rows)
	}
}

// see makes the judge, which knows where features come from.
func (s *set) see() error {
	layout, err := columns.Layout(s.Name, s.columns)
	if err != nil {
		return err
	}
	m := &model.Model{Layout: layout, Window: window.Spec{Length: time.Second}, Reference: model.ReferenceSpec{Mode: model.ReferenceOff}}
	s.judge = m.NewJudge()
	if !slices.Equal(s.judge.FeatureNames(), s.columns) {
		return fmt.Errorf("%s.csv has other features than this release: delete the file and make it again with `unseen tables`", s.Name)
	}
	return nil
}

// split says which healthy lives teach, and which tools are judged.
type split struct {
	Taught []string `json:"taught"`
	Judged []string `json:"judged"`
}

// splitSeed draws the tools that teach of drills.
const splitSeed = 1

// splits returns splits in which n healthy lives teach: all choices of nine turning tools or three cutters, and twelve drawn of each
// seed's twenty drills.
func (s *set) splits(n int) []split {
	groups := [][]string{nil}
	for k, l := range s.lives {
		if s.Name == drill && k > 0 && seedOf(l.tool) != seedOf(s.lives[k-1].tool) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], l.tool)
	}
	rng := rand.New(rand.NewPCG(splitSeed, uint64(n)))
	var out []split
	for _, tools := range groups {
		var choices [][]int
		if s.Name == drill {
			for range 12 {
				choices = append(choices, rng.Perm(len(tools))[:n])
			}
		} else if n < len(tools) {
			choices = combin.Combinations(len(tools), n)
		}
		for _, c := range choices {
			taught, judged := columns.Deal(tools, func(k int) bool { return slices.Contains(c, k) })
			out = append(out, split{taught, judged})
		}
	}
	return out
}

// seedOf returns the seed that a drill was simulated with.
func seedOf(tool string) string { return tool[:strings.IndexByte(tool+"-", '-')] }

func (s *set) lifeOf(tool string) *life {
	return s.lives[slices.IndexFunc(s.lives, func(l *life) bool { return l.tool == tool })]
}

// taughtBy is how many healthy lives teach where methods are compared: PHM 2010 has three cutters.
func (s *set) taughtBy() int { return min(3, len(s.lives)-1) }

func writeSplits(folder string) error {
	all := make(map[string][]split)
	for _, name := range sets {
		s, err := load(folder, name)
		if err != nil {
			return err
		}
		all[name] = s.splits(s.taughtBy())
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "firstday.json"), text, 0o644)
}

type peerLine struct {
	Data   string                          `json:"data"`
	Taught []string                        `json:"taught"`
	Scores map[string]map[string][]float64 `json:"scores"` // by method and tool
}

// loadPeers reads the scores of the peers, by data set and the tools that taught.
func loadPeers(folder string) (map[string]peerLine, error) {
	lines, err := columns.Lines[peerLine](filepath.Join(folder, "firstday-peers.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("%w: make it with bench/peers/unseen/firstday.py", err)
	}
	out := make(map[string]peerLine)
	for _, p := range lines {
		out[splitKey(p.Data, p.Taught)] = p
	}
	return out, nil
}

func splitKey(data string, taught []string) string { return data + ":" + strings.Join(taught, ",") }
