package train

import (
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
)

// Without a worn tool the error says which sensor follows the lives of the healthy ones, how far it came, and where to look. A worn
// tool, labels that look wrong and sensors that follow nothing bring no such advice.
func TestFirstDay(t *testing.T) {
	healthy := []life{{"A", 30, 120}, {"B", 30, 150}, {"C", 30, 90}}
	const advice = "no worn tool seen yet"
	for _, c := range []struct {
		why   string
		lives []life
		job   func(*Job)
		want  []string // nil: no advice
	}{
		{"healthy tools", healthy, nil, []string{"all 75 windows with a label are healthy", advice, "sensor rms follows", "at most 1.6 times its reference in 3 of them", "look at a tool whose rms comes to 2 times its reference"}},
		{"several modes of the reference", healthy, func(j *Job) { j.Config.Reference.Mode = model.ReferenceAuto }, []string{advice, "sensor rms follows", "at most 1.6 times"}},
		{"healthy tools that more than doubled it", []life{{"A", 30, 700}, {"B", 30, 900}}, func(j *Job) { j.Config.Label.VBMaxUM = 1000 }, []string{advice, "sensor rms follows", "look at a tool whose rms comes to 2.7 times"}},
		{"a sensor that someone excluded", healthy, func(j *Job) { j.Config.Exclude = []string{"rms"} }, []string{advice, "sensor power follows"}},
		{"no reference", healthy, func(j *Job) { j.Config.Reference.Mode = model.ReferenceOff }, nil},
		{"nothing follows the lives", []life{{"A", 30, 0}, {"B", 30, 0}}, nil, nil},
		{"lives that are too short for an alarm", []life{{"A", 9, 120}, {"B", 9, 150}}, nil, nil},
		{"only worn tools", healthy, func(j *Job) { j.Config.Label.VBMaxUM = 1 }, nil},
		{"wear in millimetres", healthy, func(j *Job) {
			j.Wear = []wear.Measurement{{Tool: "A", VBMaxUM: 0, VBMeanUM: nan}, {Tool: "B", VBMaxUM: 0.35, VBMeanUM: nan}}
		}, nil},
	} {
		j := latheJob(t)
		j.Inputs = []Input{latheInput(t, j.Layout, "rec", "lathe", latheCSV(c.lives))}
		if c.job != nil {
			c.job(&j)
		}
		_, _, err := Run(t.Context(), j)
		if err == nil {
			t.Errorf("%s: a model without a worn tool", c.why)
			continue
		}
		if c.want == nil && strings.Contains(err.Error(), advice) {
			t.Errorf("%s: %v", c.why, err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v: want %q", c.why, err, want)
			}
		}
	}
}
