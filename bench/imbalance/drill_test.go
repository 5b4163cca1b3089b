package imbalance

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// small is an experiment of some 3 s of cutting a tool; sessions go by whole seconds.
var small = Drill{Seed: 1, Cutting: 60 * time.Second, Rows: 2000}

func TestDrillSets(t *testing.T) {
	sets, err := small.Sets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	random, byTool, gains, referenced := sets[0], sets[1], sets[2], sets[3]
	if n := random.X.Rows; math.Abs(float64(n)-2000) > 500 || len(random.Y) != n || random.X.Cols != 14 || &random.X.Data[0] != &byTool.X.Data[0] {
		t.Fatalf("%d×%d rows, %d labels", n, random.X.Cols, len(random.Y))
	}
	faulty := 0
	for _, y := range random.Y {
		faulty += y
	}
	if 2*faulty > len(random.Y) || 50*faulty < len(random.Y) {
		t.Errorf("%d of %d rows are faulty", faulty, len(random.Y))
	}
	for _, s := range sets {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		test := float64(len(s.Folds[0].Test)) / float64(len(s.Y))
		if test < 0.2 || test > 0.4 || len(s.Folds[0].Train)+len(s.Folds[0].Test) != len(s.Y) {
			t.Errorf("%s holds out %.2f", s.Name, test)
		}
	}
	if len(random.Folds) != 1 || random.Groups != nil {
		t.Errorf("the random split has %d folds and %d groups", len(random.Folds), len(random.Groups))
	}
	if len(referenced.Folds) != 3 || !slices.EqualFunc(referenced.Folds, byTool.Folds, func(a, b classify.Fold) bool {
		return slices.Equal(a.Train, b.Train) && slices.Equal(a.Test, b.Test)
	}) || !slices.Equal(referenced.Groups, byTool.Groups) || slices.Equal(referenced.X.Data, byTool.X.Data) {
		t.Error("drill-tools-reference is not drill-tools with other values")
	}
	if gains.Name != drillToolsGains || gains.Copies != 4 || byTool.Copies != 0 || gains.Trials != byTool.Trials || gains.Every != byTool.Every || gains.AsMany != byTool.AsMany ||
		&gains.X.Data[0] != &byTool.X.Data[0] || !slices.Equal(gains.Folds[2].Test, byTool.Folds[2].Test) || gains.describe() == byTool.describe() {
		t.Errorf("%+v\nis not drill-tools with copies\n%+v", gains, byTool)
	}
	home := make(map[string]int) // of a tool: the fold that holds it out
	for f, fold := range byTool.Folds {
		tools := make(map[string]bool)
		for _, i := range fold.Test {
			tools[byTool.Groups[i]] = true
		}
		for _, i := range fold.Train {
			if tools[byTool.Groups[i]] {
				t.Fatalf("fold %d: tool %s is on both sides", f, byTool.Groups[i])
			}
		}
		for tool := range tools {
			if _, twice := home[tool]; twice {
				t.Errorf("tool %s is held out twice", tool)
			}
			home[tool] = f
		}
		if want := []int{6, 6, 8}[f]; len(tools) != want {
			t.Errorf("fold %d holds out %d tools, want %d", f, len(tools), want)
		}
	}
	if len(home) != 20 {
		t.Errorf("%d tools are held out", len(home))
	}
}

// A tool that reads another tool's values times a factor of each column has the
// other tool's relative rows. What it reads after its first rows does not change them.
func TestRelative(t *testing.T) {
	x := dbn.Matrix{Rows: 7, Cols: 3, Data: []float32{
		3, 0, 1,
		-4, 0, 1,
		10, 5, 2,
		6, 0, 0.5,
		-8, 0, 0.5,
		20, 5, 1,
		30, 7, 4,
	}}
	given := slices.Clone(x.Data)
	rms := float32(math.Sqrt(12.5)) // of 3 and -4
	want := []float32{
		3 / rms, 0, 1,
		-4 / rms, 0, 1,
		10 / rms, 5, 2, // a column of zeros at first stays as it is
		3 / rms, 0, 1,
		-4 / rms, 0, 1,
		10 / rms, 5, 2,
		15 / rms, 7, 8,
	}
	got := relative(x, []string{"a", "a", "a", "b", "b", "b", "b"}, 2)
	for i, v := range got.Data {
		if math.Abs(float64(v-want[i])) > 1e-6 {
			t.Errorf("value %d is %v, want %v", i, v, want[i])
		}
	}
	if !slices.Equal(x.Data, given) {
		t.Error("the rows given were changed")
	}
}

// Rows on disk give the cells of rows in memory. Cells that are there stay.
func TestDrillFull(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates drills")
	}
	d := small
	d.Rows = 150
	last := make(map[string]int) // percent
	d.Progress = func(phase string, done, total int) { last[phase] = 100 * done / total }
	dir := t.TempDir()
	cells, err := d.RunFull(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range cells {
		names = append(names, c.Dataset+" "+c.Method)
		if c.Seconds <= 0 {
			t.Errorf("%+v", c)
		}
	}
	slices.Sort(names)
	if got, want := strings.Join(names, ", "), "drill-random-full dbn, drill-random-full ecs-dbn, drill-tools-full dbn, drill-tools-full ecs-dbn"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	for _, phase := range []string{"drilling", "drill-random-full", "drill-tools-full"} {
		if last[phase] != 100 {
			t.Errorf("%s ended at %d %%: %v", phase, last[phase], last)
		}
	}
	before := lines(t, dir)
	again, err := d.RunFull(t.Context(), dir)
	if err != nil || len(again) != 4 || again[0].Seconds != math.Round(cells[0].Seconds*1e4)/1e4 || !slices.Equal(lines(t, dir), before) {
		t.Errorf("made again: %v", err)
	}

	// They are the rows that are in memory otherwise, and parted alike.
	sets, err := d.Sets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		s := sets[slices.Index([]string{"drill-random-full", "drill-tools-full"}, c.Dataset)]
		faulty := 0
		for _, i := range s.Folds[0].Test {
			faulty += s.Y[i]
		}
		if c.TP+c.FN != faulty || c.FP+c.TN != len(s.Folds[0].Test)-faulty {
			t.Errorf("%+v, but %d of %d rows are faulty", c, faulty, len(s.Folds[0].Test))
		}
	}
}

func TestDrillPage(t *testing.T) {
	cell := func(set, method string, g float64) Cell {
		return Cell{Key: Key{set, method, 1, 1}, Accuracy: 0.9, GMean: g, TP: 2, FN: 1, TN: 7, Micros: 2.25}
	}
	cells := []Cell{cell("drill-tools", "dbn", 0.75), cell("drill-random", "ecs-dbn", 0.8), cell("drill-tools", "ecs-dbn", 0.625), cell("drill-tools", "dbn-paper", 0.5)}
	cells[3].Micros = math.NaN()                    // not measured
	second := cell("drill-tools", "ecs-dbn", 0.675) // of other tools
	second.Fold, second.Micros = 2, 3.25
	cells = append(cells, second)
	page := DrillPage(cells)
	if cells[0].Method != "dbn" || cells[0].Dataset != "drill-tools" {
		t.Error("the cells were put in another order")
	}
	for _, want := range []string{
		"## drill-random\n\n10 test rows, 3 of them faulty. By G-mean ECS-DBN has place 1 of 1.\n",
		"## drill-tools\n\n10 test rows, 3 of them faulty. By G-mean ECS-DBN has place 2 of 3.\n",
		"| dbn | 1 | 0.9000 | 0.7500 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0 | 2.2 | 0.9954 | 0.9830 |\n| ecs-dbn | 1 | 0.9000 | 0.6500 (0.625–0.675) |",
		" (0.625–0.675) | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0000 | 0.0 | 2.8 | 0.9960 | 0.9946 |",
		"0.0 | – | – | – |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

// Sets whose cells count by tool have intervals over tools instead of places; the set with gains is
// compared with the one without, too.
func TestDrillPageOverTools(t *testing.T) {
	good, fair, bad := score.Confusion{{9, 1}, {1, 9}}, score.Confusion{{8, 2}, {2, 8}}, score.Confusion{{5, 5}, {5, 5}}
	var cells []Cell
	for trial := 1; trial <= 2; trial++ {
		for fold := 1; fold <= 2; fold++ {
			cells = append(cells, grouped(study.Control, trial, fold, fair, fair, fair), grouped("dbn", trial, fold, bad, bad, bad),
				grouped("welm-w1", trial, fold, fair, good, bad), grouped("welm-w2", trial, fold, good, good, good))
		}
	}
	for _, c := range slices.Clone(cells[:8]) { // of the first trial
		c.Dataset = drillToolsGains
		c.Groups = slices.Repeat([]score.Confusion{good}, 3)
		c.TP, c.FN, c.FP, c.TN, c.GMean = 27, 3, 3, 27, 0.9
		cells = append(cells, c)
	}
	page := DrillPage(cells)
	for _, want := range []string{
		"## drill-tools\n\n120 test rows, 60 of them faulty.\n\nAs far as 6 tools show, better than ECS-DBN: welm-w2. Worse: dbn. The other 1 do not separate.\n",
		"| method | trials | accuracy | G-mean | G-mean less ECS-DBN's | AUC by ranks |",
		"\n| welm-w2 | 2 | 0.0000 | 0.9000 (0.900–0.900) | +0.100 [+0.100, +0.100] | 0.0000 |",
		"\n| ecs-dbn | 2 | 0.0000 | 0.8000 (0.800–0.800) | – | 0.0000 |",
		"\n| dbn | 2 | 0.0000 | 0.5000 (0.500–0.500) | −0.300 [−0.300, −0.300] | 0.0000 |",
		"\n| welm-w1 | 2 | 0.0000 | 0.7333 (0.733–0.733) | −0.067 [",
		"As far as 6 tools show, better than ECS-DBN: none. Worse: none. The other 3 do not separate.\n\nAs far as 6 tools show, better with copies than without: dbn, ecs-dbn, welm-w1. Worse: none. The other 1 do not separate.\n",
		"| G-mean less ECS-DBN's | G-mean less drill-tools's | AUC by ranks |",
		"\n| dbn | 1 | 0.0000 | 0.9000 (0.900–0.900) | +0.000 [+0.000, +0.000] | +0.400 [+0.400, +0.400] | 0.0000 |",
		"\n| ecs-dbn | 1 | 0.0000 | 0.9000 (0.900–0.900) | – | +0.100 [+0.100, +0.100] | 0.0000 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "has place") {
		t.Errorf("a place in\n%s", page)
	}
}

func TestPaperDrillsAreOfMethods(t *testing.T) {
	known := make(map[string]bool)
	for _, m := range Methods() {
		known[m.Name] = true
	}
	for name := range paperDrills {
		if !known[name] {
			t.Errorf("%s is not a method", name)
		}
	}
}

func TestDefaultFor(t *testing.T) {
	few, many, vast := study.DefaultFor(1000, false).Network, study.DefaultFor(100_000, false).Network, study.DefaultFor(10_000_000, false).Network
	if few.FineTune.Epochs != study.Default().Network.FineTune.Epochs || many.FineTune.Epochs != 60 || vast.FineTune.Epochs != 2 || vast.Pretrain.Batch != 256 {
		t.Errorf("%+v\n%+v\n%+v", few, many, vast)
	}
	if grouped := study.DefaultFor(100_000, true).Network; many.FineTune.Decay != 1e-5 || !slices.Equal(many.Hidden, []int{60, 30}) ||
		grouped.FineTune.Decay != 0 || !slices.Equal(grouped.Hidden, []int{30}) || grouped.FineTune.Epochs != 60 {
		t.Errorf("%+v\n%+v, grouped", many, grouped)
	}
}
