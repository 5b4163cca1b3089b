package wear

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/config"
)

// three are classes by wear and state.
var three = Rule{Classes: []Class{
	{Name: "healthy"},
	{Name: "worn", VBMaxUM: 150, States: []string{"worn"}},
	{Name: "faulty", VBMaxUM: 300, VBMeanUM: 200, States: []string{"chipped", "broken"}},
}}

func TestRuleOfSeveralClasses(t *testing.T) {
	if err := three.Check(); err != nil {
		t.Fatal(err)
	}
	if got := three.Names(); !slices.Equal(got, []string{"healthy", "worn", "faulty"}) {
		t.Errorf("names %q", got)
	}
	for name, tc := range map[string]struct {
		mean, max float64
		state     string
		class     int
		ok        bool
	}{
		"below all":                      {nan, 149, "", 0, true},
		"from the first limit on":        {nan, 150, "", 1, true},
		"below the second":               {nan, 299.9, "", 1, true},
		"from the second on":             {nan, 300, "", 2, true},
		"the worse of two conditions":    {250, 160, "", 2, true},
		"little wear, but broken":        {nan, 10, "Broken", 2, true},
		"a state of the middle":          {nan, nan, "WORN", 1, true},
		"much wear in a state of less":   {nan, 400, "worn", 2, true},
		"a state of no class":            {nan, nan, "new", 0, true},
		"only the mean known, and small": {10, nan, "", 0, true},
		"nothing known":                  {nan, nan, "", 0, false},
		"a state without a measurement":  {nan, 200, "", 1, true},
	} {
		if class, ok := three.Class(tc.mean, tc.max, tc.state); class != tc.class || ok != tc.ok {
			t.Errorf("%s: %d, %v; want %d, %v", name, class, ok, tc.class, tc.ok)
		}
	}
	if got, want := three.String(), "worn if maximum flank wear ≥ 150 µm, or the tool is worn; faulty if maximum flank wear ≥ 300 µm, or mean flank wear ≥ 200 µm, or the tool is chipped or broken"; got != want {
		t.Errorf("reads %q", got)
	}
	named := Rule{Classes: []Class{{Name: "healthy"}, {Name: "worn"}, {Name: "broken"}}}
	if err := named.Check(); err != nil || named.String() != "healthy, worn or broken, as the table says" {
		t.Errorf("%q, %v", named, err)
	}
	if _, ok := named.Class(100, 100, ""); ok {
		t.Error("classes without conditions are given by wear")
	}
}

// Two classes say what the rule that names none says.
func TestTwoNamedClassesAreTheTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		um := func(name string) float64 { return rapid.SampledFrom([]float64{0, 100, 300}).Draw(t, name) }
		old := Rule{VBMaxUM: um("max"), VBMeanUM: um("mean"), States: rapid.SampledFrom([][]string{nil, {"worn"}, {"chipped", "broken"}}).Draw(t, "states")}
		if old.Check() != nil {
			return
		}
		named := Rule{Classes: []Class{{Name: "healthy"}, {"faulty", old.VBMaxUM, old.VBMeanUM, old.States}}}
		if err := named.Check(); err != nil {
			t.Fatal(err)
		}
		measured := func(name string) float64 { return rapid.SampledFrom([]float64{nan, 50, 100, 299, 300}).Draw(t, name) }
		mean, vbMax := measured("vb mean"), measured("vb max")
		state := rapid.SampledFrom([]string{"", "new", "worn", "Broken", "n.i.O.", "purple"}).Draw(t, "state")
		a, aOK := old.Class(mean, vbMax, state)
		b, bOK := named.Class(mean, vbMax, state)
		if a != b || aOK != bOK || old.String() != named.String() || !slices.Equal(old.Names(), named.Names()) {
			t.Errorf("%v, %v, %q: %d %v by %q, %d %v by %q", mean, vbMax, state, a, aOK, old, b, bOK, named)
		}
	})
}

func TestRuleOfSeveralClassesIsChecked(t *testing.T) {
	class := func(name string) Class { return Class{Name: name} }
	healthy := class("healthy")
	for want, r := range map[string]Rule{
		"vb_max_um: cannot be set together with classes: move it":                   {VBMaxUM: 300, Classes: three.Classes},
		"states: cannot be set together with classes":                               {States: []string{"worn"}, Classes: three.Classes},
		`classes: there is only "healthy": name two or more`:                        {Classes: []Class{healthy}},
		`classes[0].name: "good": the first class is for good tools`:                {Classes: []Class{class("good"), class("bad")}},
		"classes[0]: a tool is healthy if no other class holds":                     {Classes: []Class{{Name: "healthy", VBMaxUM: 1}, class("bad")}},
		`classes[1].name: "": write a word`:                                         {Classes: []Class{healthy, class("")}},
		`classes[2].name: "WORN" is another class already`:                          {Classes: []Class{healthy, class("worn"), class("WORN")}},
		"classes[1].vb_max_um: -1: must be a positive":                              {Classes: []Class{healthy, {Name: "worn", VBMaxUM: -1}}},
		"classes[1].vb_mean_um: NaN: must be a positive":                            {Classes: []Class{healthy, {Name: "worn", VBMeanUM: math.NaN()}}},
		"classes[2].vb_max_um: 300: must be above 300, the limit of a class before": {Classes: []Class{healthy, {Name: "worn", VBMaxUM: 300}, {Name: "broken", VBMaxUM: 300}}},
		`classes[2].states: "Worn" is a state of class worn already`:                {Classes: []Class{healthy, {Name: "worn", States: []string{"worn"}}, {Name: "broken", States: []string{"Worn"}}}},
		`classes[1].states: entry 1 is ""`:                                          {Classes: []Class{healthy, {Name: "worn", States: []string{""}}}},
	} {
		err := r.Check()
		got, part := fmt.Sprint(err), (*config.KeyError)(nil)
		if errors.As(err, &part) {
			got = part.Key + ": " + part.Err.Error()
		}
		if err == nil || !strings.HasPrefix(got, want) {
			t.Errorf("%v, want %s…", err, want)
		}
	}
}

// A state that says another thing than the wear is noticed, but for what may be: a tool that broke while it was new, and one that is called worn a little early.
func TestContradiction(t *testing.T) {
	classes := Rule{Classes: []Class{{Name: "healthy"}, {Name: "worn", VBMeanUM: 100}, {Name: "broken", States: []string{"broken"}}}}
	for _, tc := range []struct {
		rule      Rule
		mean, max float64
		state     string
		want      string
	}{
		{DefaultRule(), math.NaN(), 350, "healthy", `the state is "healthy", but the wear is 350 µm, which the rule`},
		{DefaultRule(), math.NaN(), 300, "i.O.", "takes for faulty"},
		{DefaultRule(), math.NaN(), 299, "new", ""},
		{DefaultRule(), math.NaN(), 20, "worn", `the state is "worn", but the wear is 20 µm, not half of what the rule`},
		{DefaultRule(), math.NaN(), 150, "worn", ""},
		{DefaultRule(), math.NaN(), 20, "chipped", ""},
		{DefaultRule(), math.NaN(), 20, "nok", ""},
		{DefaultRule(), 20, math.NaN(), "worn", ""}, // mean wear does not count
		{DefaultRule(), math.NaN(), math.NaN(), "worn", ""},
		{DefaultRule(), math.NaN(), 350, "", ""},
		{DefaultRule(), math.NaN(), 350, "much", ""},
		{classes, 120, math.NaN(), "healthy", "takes for worn"},
		{classes, 20, math.NaN(), "worn", "not half of what"},
		{classes, 20, math.NaN(), "broken", ""},
	} {
		if got := tc.rule.Contradiction(tc.mean, tc.max, tc.state); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%v, %v, %q: %q, want %q", tc.mean, tc.max, tc.state, got, tc.want)
		}
	}
}
