package study

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// small is an experiment of some 3 s of cutting a tool; sessions go by whole seconds.
var small = Drill{Seed: 1, Cutting: 60 * time.Second, Rows: 2000}

func TestDrillSets(t *testing.T) {
	sets, err := small.Sets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	random, byTool := sets[0], sets[1]
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
		if err := s.check(); err != nil {
			t.Error(err)
		}
		test := float64(len(s.Folds[0].Test)) / float64(len(s.Y))
		if len(s.Folds) != 1 || test < 0.2 || test > 0.4 || len(s.Folds[0].Train)+len(s.Folds[0].Test) != len(s.Y) {
			t.Errorf("%s holds out %.2f", s.Name, test)
		}
	}
	if random.Groups != nil {
		t.Error("the random split knows the tools")
	}
	tools := make(map[string]bool)
	for _, i := range byTool.Folds[0].Test {
		tools[byTool.Groups[i]] = true
	}
	for _, i := range byTool.Folds[0].Train {
		if tools[byTool.Groups[i]] {
			t.Fatalf("tool %s is on both sides", byTool.Groups[i])
		}
	}
	if len(tools) != 6 {
		t.Errorf("%d tools are held out", len(tools))
	}
}

// Rows on disk give the cells of rows in memory. Cells that are there stay.
func TestDrillFull(t *testing.T) {
	d := small
	d.Rows = 150
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

func TestDefaultFor(t *testing.T) {
	few, many, vast := defaultFor(1000).Network, defaultFor(100_000).Network, defaultFor(10_000_000).Network
	if few.FineTune.Epochs != Default().Network.FineTune.Epochs || many.FineTune.Epochs != 20 || vast.FineTune.Epochs != 2 || vast.Pretrain.Batch != 256 {
		t.Errorf("%+v\n%+v\n%+v", few, many, vast)
	}
}
