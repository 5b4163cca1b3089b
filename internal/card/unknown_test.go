package card

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/score"
)

// Windows are counted by class and by tool, and every one of them once.
func TestUnknownAddUp(t *testing.T) {
	var posterior []float64
	var y []int
	var groups []string
	for i := range 80 { // P(faulty) from 0 to 0.5 of healthy, 0.5 to 1 of faulty windows
		p := float64(i) / 80
		posterior, y = append(posterior, 1-p, p), append(y, i/40)
		groups = append(groups, fmt.Sprint("T", i%4))
	}
	c, err := unknown.NewConformal(posterior, y, groups, 2, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	m := &model.Model{Conformal: c, Novelty: &unknown.Novelty{Rate: 0.01}}
	d := &UnknownReport{}
	d.SetPromises(m, []string{"healthy", "faulty"})
	b := NewUnknownCounter(d, []string{"healthy", "faulty"})
	for _, w := range []struct {
		tool            string
		class, decision int
		faulty, novelty float64
		want            model.UnknownReason
	}{
		{"A", 0, 0, 0.1, 0.5, ""},
		{"A", 0, 0, 0.1, 0.005, model.OutOfDistribution},
		{"A", 1, 1, 0.95, 0.005, ""}, // new, and faulty all the same
		{"B", 0, 1, 0.1, 0.5, model.Ambiguous},
		{"B", 1, 1, 0.5, 0.5, model.Implausible},
		{"B", 1, 1, 0.5, 0.5, model.Implausible},
	} {
		if got := b.Add(m, w.tool, w.class, w.decision, []float64{1 - w.faulty, w.faulty}, w.novelty); got != w.want {
			t.Errorf("%+v: %q", w, got)
		}
	}
	b.Finish()
	if h := d.Classes[0]; h != (unknownClass{Class: "healthy", Windows: 3, Coverage: 1, Tools: 2, CoverageByTool: 1, Interval: [2]score.Figure{1, 1}, OutOfDistribution: 1, Ambiguous: 1, New: 1}) || h.Unknown() != 2 {
		t.Errorf("healthy %+v", h)
	}
	if f := d.Classes[1]; f != (unknownClass{Class: "faulty", Windows: 3, Coverage: 1. / 3, Tools: 2, CoverageByTool: 0.5, Interval: [2]score.Figure{0, 1}, Implausible: 2, New: 1}) {
		t.Errorf("faulty %+v", f)
	}
	if d.Tools[0] != (unknownTool{"A", 2, 1, 1, 1, 0}) || d.Tools[1] != (unknownTool{"B", 1, 1, 0, 2, 2}) {
		t.Errorf("tools %+v", d.Tools)
	}
	if d.Judged.Rows != 2 || d.Decided.Rows != 6 || math.IsNaN(float64(d.Judged.GMean)) {
		t.Errorf("judged %+v, decided %+v", d.Judged, d.Decided)
	}
	if words := d.Words(); words != "unknown: healthy 66.7 % (coverage 1.000, by tool 1.000 [1.000, 1.000]), faulty 66.7 % (coverage 0.333, by tool 0.500 [0.000, 1.000]) of windows, "+
		"at an error rate of 0.1 for each class, out of distribution up to a p-value of 0.01; recall 0.333 and specificity 0.333 with unknown windows counted as wrong, 1.000 and 1.000 of the windows that are left, 1.000 and 0.667 had none been unknown" {
		t.Error(words)
	}
}

// What is certain of a new tool is reported for each class by the number of tools that
// have it, and that they are too few for the error rate.
func TestUnknownPromise(t *testing.T) {
	var posterior []float64
	var y []int
	var groups []string
	for i := range 60 { // 20 healthy tools, of which two become faulty
		posterior, y, groups = append(posterior, 1-float64(i)/100, float64(i)/100), append(y, 0), append(groups, fmt.Sprint("T", i%20))
	}
	for i := range 6 {
		posterior, y, groups = append(posterior, 0.1, 0.9), append(y, 1), append(groups, fmt.Sprint("T", i%2))
	}
	c, err := unknown.NewConformal(posterior, y, groups, 2, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	d := &UnknownReport{}
	d.SetPromises(&model.Model{Conformal: c}, []string{"healthy", "faulty"})
	for k, want := range []promise{{"healthy", 20, 0.95 * 20 / 21, 20. / 21}, {"faulty", 2, 0.95 * 2 / 3, 2. / 3}} {
		p := d.Promises[k]
		if p.Class != want.Class || p.Tools != want.Tools || math.Abs(float64(p.Share-want.Share))+math.Abs(float64(p.Most-want.Most)) > 1e-12 {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	const few = "with 2 tools that have faulty windows no conformal sets can promise 0.95 for faulty: 0.667 is the most, and these promise 0.633"
	if got := d.TooFew(); len(got) != 1 || got[0] != few { // 20 healthy ones are enough for 0.95 of 20/21
		t.Errorf("%q", got)
	}
	p := new(page)
	d.writeTo(p)
	card := wordsOf(p)
	for _, want := range []string{"healthy | 20 | 0.95 | 0.905 | 0.952\n", "faulty | 2 | 0.95 | 0.633 | 0.667\n", "Note: " + few + "."} {
		if !strings.Contains(card, want) {
			t.Errorf("the card does not say %q:\n%s", want, card)
		}
	}
}

// The interval over tools holds their mean and has no width where tools agree. One tool has
// none.
func TestIntervalOverTools(t *testing.T) {
	for name, tc := range map[string]struct {
		figures   []float64
		low, high float64
	}{
		"agreed":       {[]float64{0.9, 0.9, 0.9}, 0.9, 0.9},
		"nine of ten":  {[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, 0.7, 1}, // 0 is drawn 0 to 3 times of ten with 98 %
		"one and none": {[]float64{0, 1}, 0, 1},
	} {
		if got := overTools(tc.figures); math.Abs(float64(got[0])-tc.low)+math.Abs(float64(got[1])-tc.high) > 1e-12 {
			t.Errorf("%s: %v, want %v to %v", name, got, tc.low, tc.high)
		}
	}
	if got := overTools([]float64{0.9}); !math.IsNaN(float64(got[0])) || !math.IsNaN(float64(got[1])) {
		t.Errorf("one tool: %v", got)
	}
}
