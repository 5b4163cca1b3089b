package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
)

func TestReadCSV(t *testing.T) {
	text := "\ufeffa, tool ,state,kind,time\n1,A,ok,x,10:00\n,A,worn,y,10:01\n3.5,B,ok,NaN,10:02\nnan,B,ok,x,10:03\n2,C,worn,z,10:04\n4,C,ok,y,10:05\n"
	c := CSV{Path: "t.csv", Label: "state", Group: "tool", Ignore: []string{"time"}}
	s, err := c.read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := "[1 1 0 0 NaN 0 1 0 3.5 0 0 0 NaN 1 0 0 2 0 0 1 4 0 1 0] [0 1 0 0 1 0] [A A B B C C] [{[2 3 4 5] [0 1]} {[0 1 4 5] [2 3]} {[0 1 2 3] [4 5]}]\n"
	if s.Rare != "state=worn" {
		t.Errorf("the rare class is %q", s.Rare)
	}
	if got := fmt.Sprintln(s.X.Data, s.Y, s.Groups, s.Folds); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// A limit turns wear into the class, and a pattern leaves columns out.
func TestReadCSVOfWear(t *testing.T) {
	c := CSV{Path: "t.csv", Label: "vb", Group: "Tool", LimitUM: 300, Ignore: []string{"t_*", "b"}}
	s, err := c.read(strings.NewReader("a,b,t_1,t_2,Tool,vb\n1,5,5,5,A,0\n2,5,5,5,A,300\n3,5,5,5,B,299.9\n4,5,5,5,B,1e3\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintln(s.X.Data, s.Y, s.Kind, s.Rare), "[1 2 3 4] [0 1 0 1] tool vb from 300 on\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A column is left out by its own name, with any characters in it, and * stands for a slash too.
func TestReadCSVIgnoresStrangeNames(t *testing.T) {
	c := CSV{Path: "t.csv", Label: "state", Ignore: []string{"force [N]", "note*"}}
	got, err := c.header(table.NewTextReader(strings.NewReader("a,force [N],note/1,state\n"), "t.csv"))
	if err != nil || !slices.Equal(got.features, []int{0}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReadCSVErrors(t *testing.T) {
	const head = "a,tool,state\n"
	for name, tc := range map[string]struct {
		c    CSV
		text string
		want string
	}{
		"nothing":            {CSV{Label: "state"}, "", "begins with a line of column names"},
		"no such label":      {CSV{Label: "class"}, head, `no column "class" for --label: there are a, tool, state`},
		"no such group":      {CSV{Label: "state", Group: "t"}, head, `for --group`},
		"no such to ignore":  {CSV{Label: "state", Ignore: []string{"t"}}, head, `for --ignore`},
		"an empty label":     {CSV{Label: "state"}, head + "1,A,ok\n2,B,\n", "t.csv:3: the label state is empty"},
		"an empty group":     {CSV{Label: "state", Group: "tool"}, head + "1,,ok\n", "t.csv:2: the group tool is empty"},
		"a short row":        {CSV{Label: "state"}, head + "1,A\n", "t.csv:2: cells in the row: 2, in the header: 3"},
		"three classes":      {CSV{Label: "state"}, head + "1,A,x\n1,A,y\n1,A,z\n", "has 3 different values, x, y, z among them"},
		"no rows":            {CSV{Label: "state"}, head, "no rows follow"},
		"one class":          {CSV{Label: "state"}, head + "1,A,x\n1,A,x\n", "the label state is x in every row"},
		"semicolons":         {CSV{Label: "state"}, "a;tool;state\n1;A;x\n", "save the table with commas"},
		"a name twice":       {CSV{Label: "state"}, "a,state,state\n1,A,x\n", `two columns are called "state"`},
		"label and group":    {CSV{Label: "state", Group: "state"}, head, "--label and --group are one column, state"},
		"one group":          {CSV{Label: "state", Group: "tool"}, head + "1,A,x\n1,A,y\n", "all rows are of one tool"},
		"few rows":           {CSV{Label: "state"}, head + "1,A,x\n1,A,y\n", "2 rows are too few"},
		"no features":        {CSV{Label: "state", Ignore: []string{"a", "tool"}}, head + "1,A,x\n1,B,y\n", "no column is left"},
		"nothing is worn":    {CSV{Label: "a", LimitUM: 300}, head + "100,A,x\n250,B,y\n", "a is 250 µm at most, below the limit of 300 µm: there must be worn rows"},
		"wear in mm":         {CSV{Label: "a", LimitUM: 300}, head + "0.1,A,x\n0.35,B,y\n", "a is 0.35 at most, below the limit of 300 µm: is the column in mm?"},
		"all is worn":        {CSV{Label: "a", LimitUM: 300}, head + "300,A,x\n350,B,y\n", "a is 300 µm or more in every row"},
		"wear in words":      {CSV{Label: "state", LimitUM: 300}, head + "300,A,x\n350,B,y\n", `t.csv:2: state "x" is not a wear in µm`},
		"negative wear":      {CSV{Label: "a", LimitUM: 300}, head + "300,A,x\n-1,B,y\n", `t.csv:3: a "-1" is not a wear in µm`},
		"no wear":            {CSV{Label: "a", LimitUM: 300}, head, "no rows follow"},
		"a bad pattern":      {CSV{Label: "state", Ignore: []string{"[a"}}, head, "--ignore [a: not a pattern"},
		"a pattern of none":  {CSV{Label: "state", Ignore: []string{"b*"}}, head, `no column "b*" for --ignore`},
		"words for a number": {CSV{Label: "state"}, head + strings.Repeat("1,A,x\n", 9) + many(40), "column a holds more than 30 different words"},
		"numbers and a word": {CSV{Label: "state"}, head + "none,A,x\n" + manyNumbers(40), `t.csv:2: column a holds "none" here, and many numbers`},
	} {
		tc.c.Path = "t.csv"
		if _, err := tc.c.read(strings.NewReader(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
		}
	}
}

// The rows of the rare class are all of one tool: held out, nothing is left of it.
func TestReadCSVOneFaultyTool(t *testing.T) {
	s, err := CSV{Path: "t.csv", Label: "state", Group: "tool"}.read(strings.NewReader("a,tool,state\n" + strings.Repeat("1,A,ok\n1,C,ok\n", 3) + "2,B,worn\n2,B,worn\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "which holds out B, leaves 6 rows of the frequent and 0 of the rare class") {
		t.Error(err)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d,A,y\n", i)
	}
	return b.String()
}

func manyNumbers(n int) string { return strings.ReplaceAll(many(n), "w", "") }

func FuzzReadCSV(f *testing.F) {
	f.Add("a,tool,state\n1,A,x\n2,B,y\n,A,y\nz,B,x\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := CSV{Path: "t.csv", Label: "state", Group: "tool"}.read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, v := range s.X.Data {
			if math.IsInf(float64(v), 0) {
				t.Fatal("infinity")
			}
		}
		if len(s.Y) != s.X.Rows || len(s.Groups) != s.X.Rows || len(s.Folds) < 2 {
			t.Fatalf("%d rows, %d labels, %d groups, %d folds", s.X.Rows, len(s.Y), len(s.Groups), len(s.Folds))
		}
	})
}

func TestSummarise(t *testing.T) {
	cell := func(method string, trial, fold, tp, fn, fp, tn int) Cell {
		return Cell{Method: method, Trial: trial, Fold: fold, AUC: math.NaN(), TP: tp, FN: fn, FP: fp, TN: tn}
	}
	all := Summarise([]Cell{
		cell("b", 1, 1, 7, 3, 3, 7), cell("b", 1, 2, 2, 8, 8, 2),
		cell("a", 1, 1, 8, 2, 2, 8), cell("a", 1, 2, 8, 2, 2, 8), cell("a", 2, 1, 6, 4, 4, 6), cell("a", 2, 2, 6, 4, 4, 6),
	}, false)
	a, b := all[0], all[1]
	if a.Method != "a" || math.Abs(a.GMean-0.7) > 1e-12 || math.Abs(a.SD-math.Sqrt(0.02)) > 1e-12 || math.Abs(b.GMean-0.45) > 1e-12 || b.SD != 0 {
		t.Errorf("%+v\n%+v", a, b)
	}
	pooled := Summarise([]Cell{cell("a", 1, 1, 4, 1, 0, 0), cell("a", 1, 2, 0, 0, 1, 4)}, true)
	if math.Abs(pooled[0].GMean-0.8) > 1e-12 {
		t.Errorf("pooled %v", pooled[0].GMean)
	}
	if text := Table(all); !strings.Contains(text, "a   0.700") || !strings.Contains(text, "–") {
		t.Error(text)
	}
}
