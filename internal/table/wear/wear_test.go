package wear

import (
	"math"
	"strings"
	"testing"
)

var nan = math.NaN()

func TestRuleClass(t *testing.T) {
	both := Rule{VBMaxUM: 600, VBMeanUM: 300}
	states := Rule{States: []string{"worn"}}
	for name, tc := range map[string]struct {
		rule      Rule
		mean, max float64
		state     string
		class     int
		ok        bool
	}{
		"below the limit":                        {DefaultRule(), nan, 299.9, "", healthy, true},
		"at the limit":                           {DefaultRule(), nan, 300, "", Faulty, true},
		"the mean does not count by default":     {DefaultRule(), 400, nan, "", healthy, false},
		"little wear, but chipped":               {DefaultRule(), nan, 10, "chipped", Faulty, true},
		"any case":                               {DefaultRule(), nan, nan, "Broken", Faulty, true},
		"a common word that is not named":        {DefaultRule(), nan, nan, "worn", Faulty, true},
		"the name of the class":                  {DefaultRule(), nan, 10, "Faulty", Faulty, true},
		"a common word for healthy":              {DefaultRule(), nan, nan, "i.O.", healthy, true},
		"an unknown word, wear unknown":          {DefaultRule(), nan, nan, "purple", healthy, false},
		"an unknown word, wear known":            {DefaultRule(), nan, 400, "purple", Faulty, true},
		"nothing known":                          {DefaultRule(), nan, nan, "", healthy, false},
		"one of two limits":                      {both, 300, 400, "", Faulty, true},
		"neither of two limits":                  {both, 299, 599, "", healthy, true},
		"one known, below":                       {both, nan, 599, "", healthy, true},
		"a rule of states does not look at wear": {states, 900, 900, "", healthy, false},
		"a rule of states, faulty":               {states, nan, nan, "worn", Faulty, true},
		"a rule of states, healthy":              {states, nan, nan, "unworn", healthy, true},
	} {
		class, ok := tc.rule.Class(tc.mean, tc.max, tc.state)
		if class != tc.class || ok != tc.ok {
			t.Errorf("%s: Class(%v, %v, %q) = %d, %v; want %d, %v", name, tc.mean, tc.max, tc.state, class, ok, tc.class, tc.ok)
		}
	}
}

func TestRuleString(t *testing.T) {
	for want, r := range map[string]Rule{
		"faulty if maximum flank wear ≥ 300 µm, or the tool is chipped or broken": DefaultRule(),
		"faulty if mean flank wear ≥ 250.5 µm":                                    {VBMeanUM: 250.5},
		"faulty if maximum flank wear ≥ 600 µm, or mean flank wear ≥ 300 µm":      {VBMaxUM: 600, VBMeanUM: 300},
		"faulty if the tool is worn":                                              {States: []string{"worn"}},
		"never faulty":                                                            {},
	} {
		if got := r.String(); got != want {
			t.Errorf("%+v reads %q, want %q", r, got, want)
		}
	}
}

func TestRuleCheck(t *testing.T) {
	if err := DefaultRule().Check(); err != nil {
		t.Errorf("default rule: %v", err)
	}
	for field, r := range map[string]Rule{
		"vb_max_um":  {VBMaxUM: -1},
		"vb_mean_um": {VBMeanUM: math.Inf(1)},
		"vb_max_um ": {VBMaxUM: nan},
		"entry 2":    {States: []string{"broken", ""}},
		"entry 1":    {States: []string{" broken"}},
		"nothing":    {},
	} {
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(field)) {
			t.Errorf("%+v: %v, want an error that names %q", r, err, field)
		}
	}
}
