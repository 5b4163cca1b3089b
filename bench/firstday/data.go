package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

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

// worst is the greatest wear of the life.
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

// load reads a set.
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

// lifeOf returns the life of a tool.
func (s *set) lifeOf(tool string) *life {
	return s.lives[slices.IndexFunc(s.lives, func(l *life) bool { return l.tool == tool })]
}

// taughtBy is how many healthy lives teach where methods are compared: PHM 2010 has three cutters.
func (s *set) taughtBy() int { return min(3, len(s.lives)-1) }

// writeSplits writes the splits for the peers.
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

// peerLine is what the peers say of a split.
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
