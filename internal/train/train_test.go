package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
)

// cardOf returns the model card.
func cardOf(t *testing.T, r *card.Report) string {
	t.Helper()
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

var tag = regexp.MustCompile(`<[^>]*>`)

// cardText returns the words of the model card.
func cardText(t *testing.T, r *card.Report) string {
	t.Helper()
	return html.UnescapeString(tag.ReplaceAllString(cardOf(t, r), ""))
}

// Run makes a model that judges the recording as its labels say, and a report
// of the agreed form.
func TestRun(t *testing.T) {
	t.Parallel()
	j := latheJob(t)
	m, r := latheModel(t)
	dir := t.TempDir()
	if err := m.Save(filepath.Join(dir, "m.flank")); err != nil {
		t.Fatal(err)
	}
	if err := r.Save(filepath.Join(dir, "m.report"), config.WriteFile); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(filepath.Join(dir, "m.flank"))
	if err != nil {
		t.Fatal(err)
	}
	if m.ID() == "" || m.ID() != r.Model {
		t.Errorf("model %q, report of %q", m.ID(), r.Model)
	}
	text, err := os.ReadFile(filepath.Join(dir, "m.report.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkReport(t, text)
	page, err := os.ReadFile(filepath.Join(dir, "m.report.html"))
	if err != nil || string(page) != cardOf(t, r) {
		t.Errorf("report for people: %v\n%s", err, page)
	}
	if right, all := judgeRecording(t, m, j.Inputs[0], j.Config.Label); all != 224-5*5 || right < all*9/10 {
		t.Errorf("the model judges %d of %d windows right, want 90%% of 199", right, all)
	}
	if r.Pooled.GMean < 0.9 {
		t.Errorf("G-mean %v on tools held out, want 0.9", r.Pooled.GMean)
	}
	scores, of := card.Scores(m)
	in := r.Interval
	if want := fmt.Sprintf("G-mean %.3f [%.2f, %.2f], recall %.3f [", float64(r.Pooled.GMean), float64(in.GMean[0]), float64(in.GMean[1]), float64(r.Pooled.Recall)); in.Tools != 5 || !strings.HasPrefix(scores, want) || of != "199 windows, 49 faulty; split: leave-one-out by tool, 5 folds" {
		t.Errorf("headline %q of %q", scores, of)
	}
}

// checkReport holds the JSON of a report on the five lives to the contract.
func checkReport(t *testing.T, text []byte) {
	t.Helper()
	type scores map[string]any
	var got struct {
		Pooled  scores            `json:"pooled"`
		Groups  map[string]scores `json:"groups"`
		Random  scores            `json:"random_split"`
		Note    string            `json:"random_split_note"`
		Windows card.Tally        `json:"windows"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(got.Groups)); !slices.Equal(names, []string{"A", "B", "C", "D", "E"}) {
		t.Errorf("groups %v", names)
	}
	all := maps.Clone(got.Groups)
	all["pooled"], all["random_split"] = got.Pooled, got.Random
	for name, s := range all {
		for _, key := range []string{"accuracy", "recall", "specificity", "precision", "f1", "gmean"} {
			v, there := s[key]
			if !there {
				t.Errorf("%s: no %s", name, key)
			}
			// C never wears out, so what asks about faulty windows is undefined.
			undefined := name == "C" && key != "accuracy" && key != "specificity"
			if f, ok := v.(float64); ok == undefined || ok && (f < 0.6 || f > 1) {
				t.Errorf("%s: %s is %v", name, key, v)
			}
		}
	}
	if !strings.Contains(got.Note, "leaky") {
		t.Errorf("random split is noted as %q", got.Note)
	}
	// 224 rows of 4 features, one of 40 cells empty, of which 20 are left when
	// the references are made.
	if w := got.Windows; w.Windows != 224 || w.Learning != 25 || w.Used != 199 || w.Missing < 15 || w.Missing > 22 {
		t.Errorf("windows %+v", w)
	}
}

// judgeRecording returns how many judged windows of a recording a model gets
// right.
func judgeRecording(t *testing.T, m *model.Model, in Input, rule wear.Rule) (right, all int) {
	t.Helper()
	src, err := in.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.(io.Closer).Close()
	cut, err := source.NewCutter(src, m.Window)
	if err != nil {
		t.Fatal(err)
	}
	judge := m.NewJudge()
	var ref model.Reference
	for {
		c, err := cut.Next(t.Context())
		if err == io.EOF {
			return right, all
		}
		if err != nil {
			t.Fatal(err)
		}
		v := judge.Judge(c.Window, &ref, nil)
		if v.Outcome == model.Learning {
			continue
		}
		class, _ := rule.Class(c.Truth.VBMeanUM, c.Truth.VBMaxUM, c.Truth.State)
		all++
		if (v.Outcome == model.Faulty) == (class == wear.Faulty) {
			right++
		}
	}
}

// Equal jobs give equal models and reports, byte for byte, for any number
// of workers.
func TestEqualJobsGiveEqualBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("trains several times")
	}
	t.Parallel()
	result := func(j Job, workers int, seed uint64) []byte {
		j.Workers, j.Config.Seed = workers, seed
		m, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Concat(b, text, []byte(cardOf(t, r)), []byte(r.Summary()))
	}
	j := latheJob(t)
	j.Config.Network.FineTune.Epochs, j.Config.Costs.JADE.Generations = 5, 5
	for i, l := range lives { // more recordings, so that workers can overtake each other
		if i > 0 {
			l.tool += "2"
		}
		j.Inputs = append(j.Inputs, latheInput(t, j.Layout, l.tool, "lathe", latheCSV([]life{l})))
	}
	one := result(j, 1, 1)
	if !bytes.Equal(one, result(j, 4, 1)) {
		t.Error("other bytes with 4 workers")
	}
	if bytes.Equal(one, result(j, 1, 2)) {
		t.Error("the seed changes nothing")
	}
}

// Data that the scores cannot rest on make a model nevertheless, with words.
func TestScoresThatDataCannotGive(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why   string
		tools []life
		warn  []string
	}{
		{
			"one tool wears out", []life{{"A", 48, 420}, {"B", 30, 90}, {"C", 30, 100}},
			[]string{"only 1 of the tools ever get faulty (A)", "only 14 windows are faulty", "no score on tools held out: tool A alone has faulty windows", "the verdict comes from the estimated wear"},
		},
		{
			"one tool is ever healthy", []life{{"A", 48, 420}, {"B", 6, 1e6}},
			[]string{"only 2 of the tools ever get faulty (A, B)", "only 15 windows are faulty", "4 of the 10 windows that make references are labelled faulty: B (4 of 5)", "no score on tools held out: tool A alone has healthy windows", "the verdict comes from the estimated wear"},
		},
		{
			"a fold cannot choose costs", []life{{"A", 48, 420}, {"B", 6, 310}, {"C", 30, 100}},
			[]string{"only 2 of the tools", "only 15 windows", "no score on tools held out, of which too few are faulty (class 1) or healthy (class 0): classify: fold 1 of 3: class 1 has a single row", "the verdict comes from the estimated wear"},
		},
		{
			"a class has too few windows to deal", []life{{"A", 14, 340}, {"B", 14, 330}},
			[]string{"only 2 of the tools", "only 4 windows", "no score on a random split: 14 healthy and 4 faulty", "the verdict comes from the estimated wear"},
		},
	} {
		j := latheJob(t)
		j.Inputs = []Input{latheInput(t, j.Layout, "few", "lathe", latheCSV(tc.tools))}
		quick(&j.Config)
		var log bytes.Buffer
		j.Log = zerolog.New(&log)
		m, r, err := Run(t.Context(), j)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if len(r.Warnings) != len(tc.warn) {
			t.Errorf("%s: warnings %q, want %q", tc.why, r.Warnings, tc.warn)
			continue
		}
		for i, want := range tc.warn {
			if !strings.Contains(r.Warnings[i], want) {
				t.Errorf("%s: warning %q, want %q", tc.why, r.Warnings[i], want)
			}
			if !strings.Contains(cardText(t, r), want) {
				t.Errorf("%s: the card lacks %q", tc.why, want)
			}
			if strings.Contains(r.Summary(), want) {
				t.Errorf("%s: the summary has %q, which is logged", tc.why, want)
			}
		}
		if n := strings.Count(log.String(), `"level":"warn"`); n != len(tc.warn) {
			t.Errorf("%s: %d lines are logged, want %d:\n%s", tc.why, n, len(tc.warn), &log)
		}
		if scores, of := card.Scores(m); r.Pooled == nil && (scores == "" || !strings.Contains(of, "flatters")) {
			t.Errorf("%s: headline %q of %q", tc.why, scores, of)
		}
	}
}

// Every complaint names the thing and the remedy.
func TestRunComplains(t *testing.T) {
	recording := func(t *testing.T, text string) func(*Job) {
		return func(j *Job) { j.Inputs = []Input{latheInput(t, j.Layout, "rec", "lathe", text)} }
	}
	replace := func(old, new string) string { return strings.Replace(latheCSV(lives), old, new, 1) }
	for _, tc := range []struct {
		why  string
		job  func(*Job)
		kind error
		want []string
	}{
		{"no recordings", func(j *Job) { j.Inputs = nil }, errData, []string{"no recordings", "--data"}},
		{
			"no labels", recording(t, strings.ReplaceAll(latheCSV([]life{{"A", 30, 0}}), ",0.0\n", ",\n")), errData,
			[]string{"30 windows cut, 0 used, 5 make the references of their tools, 25 without label", "`recording` in the layout", "wear file"},
		},
		{
			"healthy only", recording(t, latheCSV([]life{{"A", 30, 120}, {"B", 30, 150}})), errData,
			[]string{"all 50 windows with a label are healthy (faulty if maximum flank wear ≥ 300 µm", "they have 20.7 to 150 µm", "recordings of worn tools", "`label`"},
		},
		{
			"faulty only", func(j *Job) { j.Config.Label.VBMaxUM = 1 }, errData,
			[]string{"all 199 windows with a label are faulty", "while they are new", "`label`"},
		},
		{
			"shorter than a window", func(j *Job) { j.Config.Window.Length = time.Hour }, errData,
			[]string{"no whole window of 1h0m0s", "record for longer", "`window: length`"},
		},
		{
			"a reference longer than the tools live", func(j *Job) { j.Config.Reference.Windows = 100 }, errData,
			[]string{"a reference takes 100 windows of cutting, and 5 of 5 tools have no more (40 to 52)", "record tools for longer", "`reference.windows` to 10"},
		},
		{"missing file", func(j *Job) {
			j.Inputs = append(j.Inputs, Input{Name: "lost", Open: source.Recording{Path: "lost.csv", Layout: j.Layout}.Open})
		}, os.ErrNotExist, []string{"lost: ", "lost.csv"}},
		{"text in a number", recording(t, replace("A,", "A,n/a")), nil, []string{"rec.csv:2", `column "rms"`, `"n/a`, "not a number"}},
		{"a column of the layout is missing", recording(t, replace("power", "Power")), nil, []string{`no column "power"`, `"Power"`}},
		{
			"a recording of another layout", func(j *Job) { j.Layout = drillLayout(t) }, nil,
			[]string{"lives: ", "layouts differ", `channel 1 is rms`, "expected acc"},
		},
		{
			"window that is not a whole number of samples", func(j *Job) { j.Config.Window.Length = 1500 * time.Millisecond }, nil,
			[]string{"1.5 samples at 1 Hz", "whole numbers"},
		},
		{"unknown feature", func(j *Job) { j.Config.Features.Set = []string{"energy"} }, nil, []string{`"energy"`, "is not one of"}},
		{
			"wear file without times", func(j *Job) {
				j.Wear, j.Config.Join = []wear.Measurement{{Tool: "A", VBMaxUM: 1, VBMeanUM: nan}}, wear.Interpolate
			}, nil,
			[]string{`tool "A" has no time`, "fill column time, or remove `join`"},
		},
		{
			"wear in millimetres", func(j *Job) {
				j.Wear = []wear.Measurement{{Tool: "A", VBMaxUM: 0, VBMeanUM: nan}, {Tool: "B", VBMaxUM: 0.35, VBMeanUM: nan}}
			}, errData,
			[]string{"they have 0 to 0.35 µm", "no wear is above 0.35 µm: is it in mm? Write 350 for 0.35 mm, or name the column vb_mm, or vb_max_mm in a layout"},
		},
		{
			"states that are all healthy", func(j *Job) {
				j.Wear = []wear.Measurement{{Tool: "A", VBMaxUM: nan, VBMeanUM: nan, State: "new"}, {Tool: "B", VBMaxUM: nan, VBMeanUM: nan, State: "OK"}}
			}, errData,
			[]string{`their states are "new", "ok"`, "`label: {states: [worn, chipped, broken]}`"},
		},
		{
			"a state that means no class", func(j *Job) {
				j.Wear = []wear.Measurement{{Tool: "A", VBMaxUM: nan, VBMeanUM: nan, State: "purple", Where: "wear.csv:2"}}
			}, nil,
			[]string{`wear.csv:2: tool "A": state "purple" means none of the classes: healthy are healthy, new, `, "`healthy_states: [purple]`"},
		},
		{
			"a class that there is not", func(j *Job) {
				j.Wear = []wear.Measurement{{Tool: "A", VBMaxUM: nan, VBMeanUM: nan, Class: "bad", Where: "wear.csv:2"}}
			}, nil,
			[]string{`wear.csv:2: class "bad" of tool "A" is none of healthy, faulty`},
		},
		{
			"wear file of other tools", func(j *Job) { j.Wear = []wear.Measurement{atEnd("Z", drillStart, 1, 1, "")} }, errData,
			[]string{"199 without label (0 labelled, 199 not: 199 tool not measured)", `no window is of tool "Z"; no row is of tool "A", tool "B" and 3 more`},
		},
		{"gate", func(j *Job) { j.Config.Gate = "on" }, nil, []string{`gate: "on"`, "auto or off"}},
		{"unknown encoding", func(j *Job) { j.Config.Network.Encoding = "onehot" }, nil, []string{`network: encoding: "onehot"`, "must be one of"}},
		{"one fold", func(j *Job) { j.Config.Costs.Folds = 1 }, nil, []string{"costs: folds: 1", "must be 2 or more"}},
	} {
		j := latheJob(t)
		quick(&j.Config)
		tc.job(&j)
		m, _, err := Run(t.Context(), j)
		if m != nil || err == nil {
			t.Errorf("%s: no complaint", tc.why)
			continue
		}
		if tc.kind != nil && !errors.Is(err, tc.kind) {
			t.Errorf("%s: %v is not %v", tc.why, err, tc.kind)
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", tc.why, err, want)
			}
		}
	}
}

func TestRunStops(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"reading recordings", "scoring on tools held out", "scoring on a random split", "training the model"} {
		ctx, cancel := context.WithCancel(t.Context())
		j := latheJob(t)
		j.Config.Network.FineTune.Epochs, j.Config.Costs.JADE.Generations = 10, 5
		j.Progress = func(p string, _, _ int) {
			if p == phase {
				cancel()
			}
		}
		if _, _, err := Run(ctx, j); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped while %s: %v", phase, err)
		}
	}
}

// Each phase of a training comes once, goes up, and ends at its total, so that no work is without progress.
func TestProgress(t *testing.T) {
	t.Parallel()
	latheModel(t)
	var phases []string
	at, end := 0.0, 0.0
	for _, p := range latheOnce.progress {
		phase, done, total := p.phase, p.done, p.total
		if len(phases) == 0 || phases[len(phases)-1] != phase {
			if at < end {
				t.Errorf("%s ends at %v", phases[len(phases)-1], at)
			}
			phases, at, end = append(phases, phase), 0, 1
		}
		if now := float64(done) / float64(max(total, 1)); now < at {
			t.Errorf("%s goes back from %v to %v", phase, at, now)
		} else {
			at = now
		}
	}
	t.Log(phases)
	if slices.Sort(phases); len(slices.Compact(phases)) != len(phases) {
		t.Errorf("phases come again: %v", phases)
	}
}
