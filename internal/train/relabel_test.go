package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// guardedEnds is how worn the tools of guardedJob are when they are taken out; each is in for 50 s.
var guardedEnds = map[string]float64{"T0": 420, "T1": 390, "T2": 140, "T3": 400, "T4": 450, "T5": 180}

// measured returns measurements of some tools of guardedJob at their ends, with so many times the wear.
func measured(times float64, tools ...string) (ms []wear.Measurement) {
	for _, tool := range tools {
		n := int64(tool[1] - '0')
		ms = append(ms, wear.Measurement{Tool: tool, Time: time.Unix(50*n+49, 0).UTC(), VBMaxUM: times * guardedEnds[tool], VBMeanUM: nan})
	}
	return ms
}

var allGuarded = []string{"T0", "T1", "T2", "T3", "T4", "T5"}

// measuredJob is guardedJob with labels of some tools in a wear file.
func measuredJob(t *testing.T, tools ...string) Job {
	j := guardedJob(t)
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	j.Wear = measured(1, tools...)
	return j
}

func mustRun(t *testing.T, j Job) *model.Model {
	t.Helper()
	m, _, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func relabel(t *testing.T, e Relabelling) (*model.Model, *card.Report) {
	t.Helper()
	e.Join = wear.Auto
	m, r, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

// partsOf returns what labels may change of a model, in bytes.
func partsOf(t *testing.T, m *model.Model) map[string][]byte {
	t.Helper()
	c, err := m.Classifier.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]byte{"classifier": c, "held out": m.HeldOut, "golden": fmt.Append(nil, m.Golden), "labels": []byte(m.Provenance.Labels)}
	if m.Conformal != nil {
		if parts["conformal"], err = m.Conformal.AppendBinary(nil); err != nil {
			t.Fatal(err)
		}
	}
	return parts
}

// With the labels of the fit costs, temperature, guard and conformal sets are the ones of the fit, byte by byte, and the model
// names its parent.
func TestRelabelSameLabels(t *testing.T) {
	committee := func(t *testing.T) Job {
		j := latheJob(t)
		j.Config.Network.Encoding, j.Config.Network.Hidden = classify.Committee, nil
		return j
	}
	two := func(t *testing.T) Job {
		j := latheJob(t)
		j.Inputs = append(j.Inputs, latheInput(t, j.Layout, "more", "other lathe", latheCSV(lives)))
		return j
	}
	broken := func(t *testing.T) Job { // its wear was not on a line before
		j := measuredJob(t, allGuarded...)
		j.Wear[0].State, j.Wear[4].VBMaxUM = wear.Chipped, 900
		return j
	}
	for name, job := range map[string]func(*testing.T) Job{
		"broken tools": broken, "two classes": func(t *testing.T) Job { return latheJob(t) }, "three classes": func(t *testing.T) Job { return threeJob(t) }, "committee": committee, "two machines": two,
		"guard": func(t *testing.T) Job { return measuredJob(t, allGuarded...) }, "guard, tools without labels": func(t *testing.T) Job { return measuredJob(t, "T0", "T1", "T2", "T3") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := job(t)
			j.Config.Evaluate = Evaluate{ByTool: "off"}
			j.Config.Costs.JADE.Generations = 0 // as many as relabel has
			m := mustRun(t, j)
			want := partsOf(t, m)
			e := Relabelling{Model: m, Wear: j.Wear}
			if j.Wear == nil {
				e.Inputs = j.Inputs
			}
			for _, workers := range []int{1, 3} {
				e.Workers = workers
				got, r := relabel(t, e)
				for part, b := range partsOf(t, got) {
					if !bytes.Equal(b, want[part]) {
						t.Errorf("%d workers: %s differs", workers, part)
					}
				}
				n := r.Relabelled.Rows
				if got.Provenance.Parent != m.ID() || got.ID() == m.ID() || n.Changed+n.Late+n.Judged+n.Skipped != 0 || n.Same == 0 || len(r.Relabelled.Fit) > 0 || r.Relabelled.Before.Score.GMean != r.Relabelled.After.Score.GMean {
					t.Errorf("parent %q of %s, %+v", got.Provenance.Parent, got.ID(), r.Relabelled)
				}
				b, err := got.Encode()
				if err != nil {
					t.Fatal(err)
				}
				if back, err := model.Decode(b); err != nil || back.ID() != got.ID() || back.Provenance.Parent != m.ID() || card.HeadlineOf(back).Relabelled == nil {
					t.Errorf("read again: %v", err)
				}
				if _, err := r.HTML(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Where tools were worn earlier than the labels of the fit had it, the threshold falls and more windows are faulty; where later, it rises. So does the cut
// of the guard.
func TestRelabelMovesTheThreshold(t *testing.T) {
	m := mustRun(t, measuredJob(t, allGuarded...))
	if m.Classifier.Guard() == nil {
		t.Fatal("no guard")
	}
	faulty := func(c card.Costing) int { return c.Score.Confusion[0][1] + c.Score.Confusion[1][1] }
	sooner, early := relabel(t, Relabelling{Model: m, Wear: measured(1.15, allGuarded...)})
	later, late := relabel(t, Relabelling{Model: m, Wear: measured(0.87, allGuarded...)})
	was := m.Classifier.Costs().Threshold()
	if a, b := sooner.Classifier.Costs().Threshold(), later.Classifier.Costs().Threshold(); !(a < was && was < b) {
		t.Errorf("thresholds %.3f, %.3f, %.3f", a, was, b)
	}
	if a, is, b := sooner.Classifier.Guard().Cut(), m.Classifier.Guard().Cut(), later.Classifier.Guard().Cut(); !(a < is && is < b) {
		t.Errorf("cuts %.3f, %.3f, %.3f", a, is, b)
	}
	for _, r := range []*card.Relabelled{early.Relabelled, late.Relabelled} {
		if r.After.Score.GMean <= r.Before.Score.GMean || r.Rows.Changed == 0 || r.Rows.ChangedTools == 0 {
			t.Errorf("G-mean %.3f after %.3f; %+v", r.After.Score.GMean, r.Before.Score.GMean, r.Rows)
		}
	}
	if a, b := early.Relabelled, late.Relabelled; faulty(a.After) <= faulty(a.Before) || faulty(b.After) >= faulty(b.Before) {
		t.Errorf("faulty: %d after %d, %d after %d", faulty(a.After), faulty(a.Before), faulty(b.After), faulty(b.Before))
	}
	if !reflect.DeepEqual(sooner.Classifier.Network().Layers(), m.Classifier.Network().Layers()) || sooner.Classifier.Encoder() != m.Classifier.Encoder() {
		t.Error("the network is another one")
	}
	back, r := relabel(t, Relabelling{Model: sooner, Wear: measured(1, allGuarded...)})
	if d := back.Classifier.Guard().Cut() - m.Classifier.Guard().Cut(); math.Abs(d) > 1e-9 || !slices.Equal(back.Classifier.Costs(), m.Classifier.Costs()) || back.Provenance.Parent != sooner.ID() {
		t.Errorf("there and back: cut off by %g, costs %v for %v, parent %s", d, back.Classifier.Costs(), m.Classifier.Costs(), back.Provenance.Parent)
	}
	if r.Relabelled.Rows.Changed != 0 {
		t.Errorf("labels of the fit contradict it: %+v", r.Relabelled.Rows)
	}
}

// A tool that no one had measured is judged by what the model keeps, but for its beginning, which the network was taught as healthy.
func TestRelabelLateTool(t *testing.T) {
	m := mustRun(t, measuredJob(t, "T0", "T1", "T2", "T3"))
	got, r := relabel(t, Relabelling{Model: m, Wear: measured(1, "T4")})
	n := r.Relabelled.Rows
	if n.Late == 0 || n.LateTools != 1 || n.Taught == 0 || n.Changed != 0 || n.Same == 0 || n.Judged != 0 {
		t.Errorf("%+v", n)
	}
	if !strings.Contains(strings.Join(r.Relabelled.Fit, "; "), "whose labels the network never learnt") {
		t.Errorf("%q", r.Relabelled.Fit)
	}
	for _, want := range []string{fmt.Sprintf("%d late ones without a label at the fit (1 tools)", n.Late), "before: threshold", "relabelled from " + m.ID(), "the guard's cut"} {
		if !strings.Contains(r.Summary(), want) {
			t.Errorf("%q lacks %q", r.Summary(), want)
		}
	}
	if r.Pooled == nil || r.Interval == nil || !strings.HasPrefix(r.Split, "costs chosen without the tool") {
		t.Errorf("split %q", r.Split)
	}
	_, again := relabel(t, Relabelling{Model: got, Wear: measured(1, "T4")})
	if again.Relabelled.Rows != n || again.Relabelled.Before.Score.GMean != again.Relabelled.After.Score.GMean {
		t.Errorf("the second time %+v", again.Relabelled)
	}
}

// Tools that came after the fit are judged by the model where their features are at hand; other windows of training tools are not.
func TestRelabelNewTool(t *testing.T) {
	j := latheJob(t)
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	m := mustRun(t, j)
	text := latheCSV(lives)
	text = strings.ReplaceAll(text, "\nA,", "\nNew,")
	e := Relabelling{Model: m, Inputs: []Input{latheInput(t, j.Layout, "later", "lathe", text)}}
	got, r := relabel(t, e)
	if n := r.Relabelled.Rows; n.Judged == 0 || n.JudgedTools != 1 || n.Late != 0 {
		t.Errorf("%+v of %s", n, text[:200])
	}
	if n := len(got.Provenance.Data); n != len(m.Provenance.Data)+1 {
		t.Errorf("%d data sets", n)
	}
	h, err := model.DecodeHeldOut(got.HeldOut)
	if err != nil {
		t.Fatal(err)
	}
	if last := h.Rows[len(h.Rows)-1]; h.Tools[last.Tool].Group != "New" || last.Fold != model.Judged || last.Was != -1 {
		t.Errorf("%+v of %+v", last, h.Tools[last.Tool])
	}
}

func TestRelabelRefuses(t *testing.T) {
	m := mustRun(t, measuredJob(t, allGuarded...))
	without, byWear := *m, *m
	without.HeldOut, byWear.ByWear = nil, &model.WearVerdict{LimitUM: 300}
	damaged := *m
	damaged.HeldOut = m.HeldOut[:len(m.HeldOut)-1]
	state := measured(1, "T0")
	state[0].VBMaxUM, state[0].Class = nan, "nonsense"
	for name, c := range map[string]struct {
		e    Relabelling
		is   error
		says string
	}{
		"an earlier release": {Relabelling{Model: &without, Wear: measured(1, "T0")}, errNotKept, "train again with `trainer fit`"},
		"by wear":            {Relabelling{Model: &byWear, Wear: measured(1, "T0")}, errNotKept, "decides by the estimated wear"},
		"damaged":            {Relabelling{Model: &damaged, Wear: measured(1, "T0")}, nil, "section held-out cannot be read"},
		"no labels":          {Relabelling{Model: m}, errData, "--wear"},
		"no worn tool":       {Relabelling{Model: m, Wear: measured(0.1, allGuarded...)}, errData, "with these labels no window is faulty"},
		"no such class":      {Relabelling{Model: m, Wear: state}, nil, "nonsense"},
	} {
		c.e.Join = wear.Auto
		_, _, err := c.e.Run(t.Context())
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := (Relabelling{Model: m, Wear: measured(1, "T0"), Join: wear.Auto}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// Costs of training posteriors, and verdicts by wear, keep nothing.
func TestKeepsNothing(t *testing.T) {
	j := latheJob(t)
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	j.Config.Costs.Posteriors = classify.Training
	if m := mustRun(t, j); len(m.HeldOut) > 0 {
		t.Error("posteriors of training are kept")
	}
}

// halves returns the first and the second half of each tool of a recording, as recordings.
func halves(t *testing.T, j Job, text string, tools ...string) []Input {
	t.Helper()
	head, rows, _ := strings.Cut(text, "\n")
	var of [2]string
	for _, tool := range tools {
		lines := slices.DeleteFunc(strings.SplitAfter(rows, "\n"), func(line string) bool { return !strings.HasPrefix(line, tool+",") })
		of[0] += strings.Join(lines[:len(lines)/2], "")
		of[1] += strings.Join(lines[len(lines)/2:], "")
	}
	return []Input{latheInput(t, j.Layout, "first", "lathe", head+"\n"+of[0]), latheInput(t, j.Layout, "second", "lathe", head+"\n"+of[1])}
}

// A tool that came after the fit is one tool, of however many recordings.
func TestRelabelNewToolOfTwoRecordings(t *testing.T) {
	j := latheJob(t)
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	m := mustRun(t, j)
	_, r := relabel(t, Relabelling{Model: m, Inputs: halves(t, j, strings.ReplaceAll(latheCSV(lives), "\nA,", "\nNew,"), "New")})
	if n := r.Relabelled.Rows; n.Judged == 0 || n.JudgedTools != 1 || n.LateTools != 0 {
		t.Errorf("%+v", n)
	}
}

// Recordings without a clock all begin at second 0: the labels of one are not given to another one.
func TestRelabelOneOfTwoRecordings(t *testing.T) {
	j := latheJob(t)
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	var tools []string
	for _, l := range lives {
		tools = append(tools, l.tool)
	}
	j.Inputs = halves(t, j, latheCSV(lives), tools...)
	m := mustRun(t, j)
	_, r := relabel(t, Relabelling{Model: m, Inputs: j.Inputs[1:]})
	if n := r.Relabelled.Rows; n.Changed != 0 || n.Same == 0 || n.Skipped != 0 {
		t.Errorf("%+v", n)
	}
}

// More windows than a model keeps are refused: those behind them were passed over.
func TestRelabelTooManyWindows(t *testing.T) {
	j := latheJob(t)
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	m := mustRun(t, j)
	was := mostHeldRows
	defer func() { mostHeldRows = was }()
	mostHeldRows = 50
	e := Relabelling{Model: m, Inputs: j.Inputs, Join: wear.Auto}
	if _, _, err := e.Run(t.Context()); !errors.Is(err, errData) || !strings.Contains(err.Error(), "more than 50 windows: name fewer tools or days") {
		t.Errorf("%v", err)
	}
}
