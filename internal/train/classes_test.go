package train

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// threeClasses follow from the wear of the lathe's tools; C is never broken.
var threeClasses = wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn", VBMaxUM: 120}, {Name: "broken", VBMaxUM: 280}}}

func threeJob(t testing.TB) Job {
	j := latheJob(t)
	j.Config.Label, j.Config.Network.FineTune.Epochs = threeClasses, 120
	return j
}

// classifierOf returns the bytes of the classifier that a job trains.
func classifierOf(t *testing.T, j Job) []byte {
	t.Helper()
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	m, _, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Classifier.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A model of three classes tells them apart on tools that it never saw, and model
// and report say so of each.
func TestThreeClasses(t *testing.T) {
	t.Parallel()
	m, r := threeModel(t)
	names := []string{"healthy", "worn", "broken"}
	if !slices.Equal(m.ClassNames(), names) || !slices.Equal(r.Classes, names) || m.Classifier.Classes() != 3 || len(m.Classifier.Costs()) != 3 {
		t.Errorf("model of %q, report of %q", m.ClassNames(), r.Classes)
	}
	p := r.Pooled
	product := 1.
	for k := range names {
		if !(p.Recalls[k] > 0.5) || !(p.AUCs[k] > 0.7) {
			t.Errorf("%s: recall %v, AUC %v", names[k], p.Recalls[k], p.AUCs[k])
		}
		product *= float64(p.Recalls[k])
	}
	if g := math.Cbrt(product); math.Abs(g-float64(p.GMean)) > 1e-12 {
		t.Errorf("G-mean %v, the geometric mean of recalls is %v", p.GMean, g)
	}
	c := p.Confusion
	if found := c[1][1] + c[1][2] + c[2][1] + c[2][2]; float64(r.Faulty.Recall) != float64(found)/float64(r.Faulty.Positive) || r.Faulty.Rows != p.Rows || r.Faulty.Specificity != p.Recalls[0] {
		t.Errorf("healthy or not: %+v of %v", r.Faulty, c)
	}
	if r.Landscape != nil || !math.IsNaN(float64(r.Fit.Costs.Kept)) {
		t.Error("three classes have a threshold")
	}
	if g := r.Groups["C"]; !math.IsNaN(float64(g.GMean)) || !math.IsNaN(float64(g.Recalls[2])) || math.IsNaN(float64(g.Recalls[1])) {
		t.Errorf("a tool that never breaks: %+v", g)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"classes":["healthy","worn","broken"]`, `"recalls":[`, `"auc_one_vs_rest":[`, `"faulty":{"rows":199`, `"kept_threshold":null`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the report for programs", want)
		}
	}
	scores, of := card.Scores(m)
	if !strings.Contains(scores, " of healthy, ") || !strings.Contains(scores, " of worn and ") || of != "199 windows; split: leave-one-out by tool, 5 folds" {
		t.Errorf("headline %q of %q", scores, of)
	}
	drawn := regexp.MustCompile(`<svg [^>]*>\n<title>([^<]*)`).FindAllStringSubmatch(cardOf(t, r), -1)
	want := []string{
		"ROC curve of each class, and its area", "Precision and recall, and their average", "Calibration of each class, and its error", "Score of each window, by networks", "Each tool while it was held out",
		"What follows wear in every tool", "Flank wear, off by ", "Pre-training", "Fine-tuning",
	}
	if !slices.EqualFunc(drawn, want, func(m []string, want string) bool { return strings.HasPrefix(m[1], want) }) {
		t.Errorf("drawings %q", drawn)
	}

	e, err := Exam{Model: m, Inputs: threeJob(t).Inputs, Alarm: alarm.Settings{K: 3, N: 5, Latch: true}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Every tool gets worn at least, which is what alarms are about.
	if a := e.Alarms; a.Worn != 5 || a.Caught < 4 || !(e.Pooled.GMean > 0.8) || e.Faulty == nil || len(e.Posterior) != 3*e.Unknown.Decided.Rows || e.Pooled.Rows != e.Unknown.Judged.Rows {
		t.Errorf("alarms %+v, G-mean %v", a, e.Pooled.GMean)
	}
	for _, want := range []string{"\ndecided          healthy    worn  broken unknown\n  healthy", "faulty   any class but healthy: recall ", " of broken against the rest\n", "G-mean healthy    worn  broken  accuracy", "alarms   at 3 of 5 windows: "} {
		if !strings.Contains(e.Text(), want) {
			t.Errorf("no %q in\n%s", want, e.Text())
		}
	}
	for name, e := range map[string]*card.Evaluation{"of training": nil, "of these windows": e} {
		choices, held := 4, false
		if e == nil { // tools are at hand that costs were not chosen on
			choices, held = 5, true
		}
		s, err := StudyCosts(t.Context(), m, e)
		if err != nil {
			t.Fatal(err)
		}
		if s.Landscape != nil || !math.IsNaN(float64(s.Threshold)) || len(s.Report.Choices) != choices || strings.Contains(s.Text(), "\nheld out   On rows held out from the choice of costs: half way ") != held || !strings.Contains(s.Text(), "rule               healthy      worn    broken   G-mean  accuracy\nargmax ") {
			t.Errorf("costs %s:\n%s", name, s.Text())
		}
	}
}

// Tools that lack a class are examined all the same; an error says that costs cannot be
// studied on them.
func TestExamWithoutAClass(t *testing.T) {
	j := threeJob(t)
	j.Config.Evaluate = Evaluate{ByTool: "off"}
	m, _, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	in := latheInput(t, j.Layout, "young", "lathe", latheCSV([]life{{"Y", 40, 200}}))
	e, err := Exam{Model: m, Inputs: []Input{in}, Alarm: alarm.Default}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Warnings) != 1 || e.Warnings[0] != "no window is broken by its label: its recall and the G-mean are not defined" || !math.IsNaN(float64(e.Pooled.GMean)) {
		t.Errorf("warnings %q, G-mean %v", e.Warnings, e.Pooled.GMean)
	}
	if _, err := StudyCosts(t.Context(), m, e); err == nil || !strings.Contains(err.Error(), "choosing costs of 3 classes") {
		t.Error(err)
	}
}

// What classes are called changes nothing of what is learnt; that the first is
// healthy is what a monitor goes by.
func TestNamesOfClassesDoNotCount(t *testing.T) {
	want := classifierOf(t, threeJob(t))
	j := threeJob(t)
	j.Config.Label.Classes = slices.Clone(j.Config.Label.Classes)
	j.Config.Label.Classes[1].Name, j.Config.Label.Classes[2].Name = "blunt", "gone"
	if !bytes.Equal(classifierOf(t, j), want) {
		t.Error("other names, another classifier")
	}
}

// Two classes that are named are the two that a rule without names has, bit for
// bit, in model and report.
func TestTwoNamedClassesAreTheTwo(t *testing.T) {
	t.Parallel()
	result := func(rule wear.Rule) ([]byte, []byte, string, string) {
		j := latheJob(t)
		j.Config.Label, j.Config.Network.FineTune.Epochs, j.Config.Costs.JADE.Generations = rule, 10, 5
		var log bytes.Buffer
		j.Log = zerolog.New(&log)
		m, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.Classifier.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Job.Config, r.Model = nil, "" // where the rule itself is
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		golden, err := json.Marshal(m.Golden)
		if err != nil {
			t.Fatal(err)
		}
		return b, append(append(text, m.Scores...), golden...), cardText(t, r) + r.Summary(), log.String()
	}
	old := wear.DefaultRule()
	b, text, people, log := result(old)
	b2, text2, people2, log2 := result(wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "faulty", VBMaxUM: old.VBMaxUM, States: old.States}}})
	if !bytes.Equal(b, b2) || !bytes.Equal(text, text2) || people != people2 || log != log2 {
		t.Errorf("classifier, report, card or log differ:\n%s\n%s", text, text2)
	}
}

// labelledTable has three tools that go through all classes, by name or number.
func labelledTable(named bool) *table.Table {
	rng := rand.New(rand.NewPCG(3, 1))
	t := table.New([]string{"rms", "power"})
	for _, tool := range []string{"A", "B", "C"} {
		for s := range 60 {
			class := s / 20
			r := table.Row{
				Tool: tool, Class: class, VBMaxUM: math.NaN(),
				Features: []float32{float32(1 + float64(class) + 0.2*rng.NormFloat64()), float32(5 + 2*float64(class) + 0.5*rng.NormFloat64())},
			}
			if named {
				r.Class, r.Label = table.NoClass, []string{"healthy", "Worn", "broken"}[class] // upper or lower case
			}
			t.Append(r)
		}
	}
	return t
}

// tableJob learns from a table in memory, or from one that is scanned.
func tableJob(t *testing.T, tb *table.Table, scan bool) Job {
	j := threeJob(t)
	j.Config.Label = wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn"}, {Name: "broken"}}}
	var err error
	if j.Layout, err = TableLayout("t", tb.Columns, j.Config.Window.Length); err != nil {
		t.Fatal(err)
	}
	in := Input{Name: "t", Table: tb}
	if scan {
		in = Input{Name: "t", Scan: func(begin func([]string) error, each func(table.Row) error) error {
			if err := begin(tb.Columns); err != nil {
				return err
			}
			for i := range tb.Rows() {
				if err := each(tb.Row(i)); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	j.Inputs, j.Scratch = []Input{in}, t.TempDir()
	return j
}

// A mistake in exclude has one text in memory and on disk, where no file stays open.
func TestExcludeNothing(t *testing.T) {
	for _, scan := range []bool{false, true} {
		j := tableJob(t, labelledTable(false), scan)
		j.Config.Exclude = []string{"none"}
		j.prepare()
		rows, _, _, err := j.rows(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "train: exclude: ") {
			t.Errorf("scanned %v: %v", scan, err)
		}
		if rows.onDisk != nil {
			t.Errorf("scanned %v: no one closes the file of the rows", scan)
		}
	}
}

// Names in a table mean what numbers mean, in memory and on disk.
func TestClassesOfATable(t *testing.T) {
	for _, scan := range []bool{false, true} {
		byNumber := classifierOf(t, tableJob(t, labelledTable(false), scan))
		if !bytes.Equal(byNumber, classifierOf(t, tableJob(t, labelledTable(true), scan))) {
			t.Errorf("scanned %v: classes by name give another classifier than by number", scan)
		}
	}
	for want, change := range map[string]func(*Job, *table.Table){
		`row 3: class "dull" is none of healthy, worn, broken: name the classes of the table in train.yaml, the best first, as`: func(_ *Job, tb *table.Table) { tb.Class[2], tb.Label[2] = table.NoClass, "dull" },
		"row 4: class 3: there are 3, 0 healthy, 1 worn and 2 broken: number them from 0":                                       func(_ *Job, tb *table.Table) { tb.Class[3] = 3 },
		`row 1: class "healthy" is none of`: func(j *Job, tb *table.Table) {
			tb.Class[0], tb.Label[0] = table.NoClass, "healthy"
			j.Config.Label = wear.Rule{Classes: []wear.Class{{Name: "healthy "}, {Name: "worn"}}}
		},
		"none of 165 windows with a label is broken (healthy, worn or broken, as the table says): add recordings of worn tools": func(_ *Job, tb *table.Table) {
			for i, k := range tb.Class {
				tb.Class[i] = min(k, 1)
			}
		},
		"a row of class 1 (worn) has a wear of 10 µm, which the rule (worn if maximum flank wear ≥ 120 µm; broken if maximum flank wear ≥ 280 µm) takes for class 0 (healthy)": func(j *Job, tb *table.Table) {
			j.Config.Label = threeClasses
			tb.VBMaxUM[25] = 10
		},
	} {
		for _, scan := range []bool{false, true} {
			tb := labelledTable(false)
			j := tableJob(t, tb, scan)
			change(&j, tb)
			_, _, err := Run(t.Context(), j)
			if j.Config.Label.Check() != nil {
				want = "label: classes[0]: name: "
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("scanned %v: %v, want %s", scan, err, want)
			}
		}
	}
}

// A search goes by the G-mean of all classes, in memory and on disk.
func TestSearchOfThreeClasses(t *testing.T) {
	t.Parallel()
	for _, scan := range []bool{false, true} {
		j := tableJob(t, labelledTable(true), scan)
		j.Config.Network.Pretrain.Epochs = -1
		r, err := Search{Job: j, Trials: 2}.Run(t.Context())
		if err != nil {
			t.Fatalf("scanned %v: %v", scan, err)
		}
		if len(r.Nested.Recalls) != 3 || r.Nested.Rows != 165 || !(r.Nested.GMean > 0.6) || !strings.Contains(r.Text(), " of worn and ") {
			t.Errorf("scanned %v: %s", scan, r.Text())
		}
	}
}

// A warning about data of three classes names the class that it is about.
func TestWarningsOfThreeClasses(t *testing.T) {
	j := threeJob(t)
	j.Inputs = []Input{latheInput(t, j.Layout, "few", "lathe", latheCSV([]life{{"A", 48, 420}, {"B", 40, 200}, {"C", 40, 230}}))}
	quick(&j.Config)
	_, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"only 1 of the tools ever get broken (A)", "only 16 windows are broken", "no score on tools held out: tool A alone has broken windows",
	} {
		if len(r.Warnings) != 3 || !strings.Contains(r.Warnings[i], want) {
			t.Fatalf("warnings %q", r.Warnings)
		}
	}
	if !strings.Contains(r.Balance, " healthy of 3, ") || !strings.Contains(r.Balance, "16 broken of 1") {
		t.Errorf("balance %q", r.Balance)
	}
}

// The turning tools in three classes: as recorded, those between 150 and 300 µm
// are hard to tell on tools never seen, worn out ones are not.
func TestRecordedTurningInThreeClasses(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on every turning tool")
	}
	j := exampleJob(t, "turning", "vicomtech-turning/turning_wear_dev.csv")
	j.Config.Label = wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn", VBMaxUM: 150}, {Name: "faulty", VBMaxUM: 300}}}
	j.Config.Network = networkConfig{Hidden: []int{20}, Pretrain: dbn.PretrainSettings{Epochs: 10}}
	j.Config.Network.FineTune.Epochs = 40
	j.Config.Costs.Folds, j.Config.Evaluate = 3, Evaluate{ByTool: "5-fold"}
	_, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Summary())
	if !strings.HasSuffix(r.Balance, ": 873 healthy of 9, 396 worn of 8, 115 faulty of 5") {
		t.Errorf("balance %q", r.Balance)
	}
	if p := r.Pooled; p.Recalls[2] < 0.85 || p.AUCs[2] < 0.95 || p.Rows != 1384 {
		t.Errorf("of tools held out: recalls %v, AUC %v", p.Recalls, p.AUCs)
	}
}
