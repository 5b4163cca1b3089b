package train

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// healthyLives are of tools that were taken out before they were worn.
var healthyLives = []life{{"A", 30, 120}, {"B", 30, 150}, {"C", 30, 90}}

// firstDayJob teaches by lives of the lathe.
func firstDayJob(t *testing.T, lives []life) Job {
	j := latheJob(t)
	j.Inputs = []Input{latheInput(t, j.Layout, "rec", "lathe", latheCSV(lives))}
	return j
}

// Without a worn tool the error says what can be had. Worn tools, and labels that look wrong, bring no such advice.
func TestFirstDayHint(t *testing.T) {
	for _, c := range []struct {
		why    string
		job    func(*Job)
		advice bool
	}{
		{"healthy tools", func(*Job) {}, true},
		{"only worn tools", func(j *Job) { j.Config.Label.VBMaxUM = 1 }, false},
		{"wear in millimetres", func(j *Job) {
			j.Wear = []wear.Measurement{{Tool: "A", VBMaxUM: 0, VBMeanUM: nan}, {Tool: "B", VBMaxUM: 0.35, VBMeanUM: nan}}
		}, false},
	} {
		j := firstDayJob(t, healthyLives)
		c.job(&j)
		_, _, err := Run(t.Context(), j)
		if err == nil || strings.Contains(err.Error(), "trainer fit --first-day") != c.advice {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

// A model of healthy tools goes by the sensor that follows their lives. The limit is a doubling, or a share of what healthy lives
// reached; lives that do not teach are judged.
func TestFirstDay(t *testing.T) {
	unlabelled := func(j *Job) { j.Wear = []wear.Measurement{{Tool: "A", VBMaxUM: 0, VBMeanUM: nan}} }
	for _, c := range []struct {
		why     string
		lives   []life
		job     func(*Job)
		sensor  string
		limit   float64 // times
		taught  []int
		alarms  []int
		presume int
	}{
		{"healthy tools", healthyLives, nil, "rms", 2, []int{25, 25, 25}, []int{0, 0, 0}, 0},
		{"another mode of the reference", healthyLives, func(j *Job) { j.Config.Reference.Mode = model.ReferenceAuto }, "rms", 2, []int{25, 25, 25}, []int{0, 0, 0}, 0},
		{"healthy tools that more than doubled it", []life{{"A", 30, 700}, {"B", 30, 900}}, func(j *Job) { j.Config.Label.VBMaxUM = 1000 }, "rms", 2.7, []int{25, 25}, []int{21, 17}, 0},
		{"a sensor that someone excluded", healthyLives, func(j *Job) { j.Config.Exclude = []string{"rms"} }, "power", 2, []int{25, 25, 25}, []int{0, 0, 0}, 0},
		{"no labels", healthyLives, unlabelled, "rms", 2, []int{25, 25, 25}, []int{0, 0, 0}, 50},
		{"the first two lives", append(healthyLives[:2:2], life{"W", 30, 600}), func(j *Job) { unlabelled(j); j.Config.FirstDay.Lives = 2 }, "rms", 2, []int{25, 25, 0}, []int{0, 0, 12}, 50},
		{"more hours than there can be", healthyLives, func(j *Job) { j.Config.FirstDay.Hours = 9e15 }, "rms", 2, []int{25, 25, 25}, []int{0, 0, 0}, 0},
		{"the first half minute", healthyLives, func(j *Job) { j.Config.FirstDay.Hours = 30. / 3600 }, "rms", 2, []int{25, 5, 0}, []int{0, 0, 0}, 0},
	} {
		j := firstDayJob(t, c.lives)
		if c.job != nil {
			c.job(&j)
		}
		m, r, err := FirstDay(t.Context(), j)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if m.FirstDay.Sensor != c.sensor || math.Abs(model.Times(m.FirstDay.Limit)-c.limit) > 0.05 || r.Model != m.ID() || r.Limit != model.Times(m.FirstDay.Limit) || r.Windows.Presumed != c.presume {
			t.Errorf("%s: sensor %s, limit %.3f times, presumed %d", c.why, m.FirstDay.Sensor, r.Limit, r.Windows.Presumed)
		}
		for k, l := range r.Lives {
			if l.Taught != c.taught[k] || (l.Alarm > 0) != (c.alarms[k] > 0) || math.Abs(float64(l.Alarm-c.alarms[k])) > 2 {
				t.Errorf("%s: %+v, want %d taught, alarm about window %d", c.why, l, c.taught[k], c.alarms[k])
			}
		}
		doubts := 0
		for k, taught := range c.taught {
			if taught > 0 && c.alarms[k] > 0 {
				doubts++
			}
		}
		if len(c.taught)-slices.Index(append(slices.Clone(c.taught), 0), 0) > 0 || len(c.taught) < 3 {
			doubts++ // fewer than three teach
		}
		if got := r.Doubts(); len(got) != doubts {
			t.Errorf("%s: %d doubts, want %d: %q", c.why, len(got), doubts, got)
		}
		again, _, err := FirstDay(t.Context(), j)
		if err != nil || again.ID() != m.ID() {
			t.Errorf("%s: another model the second time: %v", c.why, err)
		}
	}
}

func TestFirstDayRefuses(t *testing.T) {
	for _, c := range []struct {
		why   string
		lives []life
		job   func(*Job)
		want  string
	}{
		{"a worn tool", append(healthyLives[:2:2], life{"W", 30, 600}), nil, "worn by their labels are W: leave --first-day out"},
		{"no reference", healthyLives, func(j *Job) { j.Config.Reference.Mode = model.ReferenceOff }, "reference: mode: off: without a worn tool"},
		{"three classes", healthyLives, func(j *Job) {
			j.Config.Label.Classes = []wear.Class{{Name: "healthy"}, {Name: "worn", VBMaxUM: 100}, {Name: "broken", VBMaxUM: 300}}
			j.Config.Label.VBMaxUM, j.Config.Label.States = 0, nil
		}, "label: classes: without a worn tool"},
		{"nothing follows the lives", []life{{"A", 30, 0}, {"B", 30, 0}}, nil, "no sensor follows the lives of 2 tools"},
		{"lives that are too short for an alarm", []life{{"A", 9, 120}, {"B", 9, 150}}, nil, "no tool has 5 windows behind its reference of 5"},
		{"lives below 0", healthyLives, func(j *Job) { j.Config.FirstDay.Lives = -1 }, "first_day: lives: -1"},
		{"no hours", healthyLives, func(j *Job) { j.Config.FirstDay.Hours = nan }, "first_day: hours: NaN"},
	} {
		j := firstDayJob(t, c.lives)
		if c.job != nil {
			c.job(&j)
		}
		if _, _, err := FirstDay(t.Context(), j); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.why, err, c.want)
		}
	}
}

// Where one life alone changes the sensor that leads, a person looks at it. Where lives do not agree, or are few, no one does.
func TestFirstDayOddLife(t *testing.T) {
	tools := func(names ...string) (out []score.Life) {
		for _, n := range names {
			out = append(out, score.Life{Tool: n})
		}
		return out
	}
	for _, c := range []struct {
		name    string
		taught  []score.Life
		without map[string]string
		want    string
	}{
		{"all agree", tools("A", "B", "C"), map[string]string{"A": "rms", "B": "rms", "C": "rms"}, ""},
		{"one life", tools("A", "B", "C"), map[string]string{"A": "rms", "B": "power", "C": "rms"}, "without tool B the model would go by sensor power and not rms"},
		{"two lives", tools("A", "B", "C"), map[string]string{"A": "power", "B": "power", "C": "rms"}, ""},
		{"no sensor is left", tools("A", "B", "C"), map[string]string{"A": "", "B": "rms", "C": "rms"}, ""},
		{"few", tools("A", "B"), map[string]string{"A": "power", "B": "rms"}, ""},
	} {
		got := strings.Join(oddLife("rms", c.taught, func(tool string) string { return c.without[tool] }), "")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	// The sensor that follows lives most steadily is dead in one of them.
	text, lines := "", strings.Split(latheCSV(append(healthyLives, life{"D", 30, 200})), "\n")
	for _, l := range lines {
		if cells := strings.Split(l, ","); cells[0] == "B" {
			cells[1] = "0"
			l = strings.Join(cells, ",")
		}
		text += l + "\n"
	}
	j := latheJob(t)
	j.Inputs = []Input{latheInput(t, j.Layout, "rec", "lathe", text)}
	_, r, err := FirstDay(t.Context(), j)
	if err != nil || r.Sensor != "power" || !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "count in no tool: rms (tool B): look") }) {
		t.Errorf("%v, sensor %s, %q", err, r.Sensor, r.Warnings)
	}
}

// A table on disk teaches what it teaches in memory.
func TestFirstDayOfATable(t *testing.T) {
	var days []*model.FirstDay
	for _, scan := range []bool{false, true} {
		tb := labelledTable(false)
		for i := range tb.Rows() {
			tb.Class[i] = 0
		}
		j := tableJob(t, tb, scan)
		j.Config.Label = wear.DefaultRule()
		m, _, err := FirstDay(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		days = append(days, m.FirstDay)
	}
	if a, b := days[0], days[1]; a.Sensor != b.Sensor || a.Limit != b.Limit {
		t.Errorf("in memory %+v, on disk %+v", a, b)
	}
}

// The model can be examined on tools that get worn later, and says what a file of it has. What takes a classifier is refused.
func TestFirstDayLater(t *testing.T) {
	m, r, err := FirstDay(t.Context(), firstDayJob(t, healthyLives))
	if err != nil {
		t.Fatal(err)
	}
	file, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := model.Decode(file)
	if err != nil || read.ID() != m.ID() || !strings.HasPrefix(read.ID(), "first-day-") {
		t.Fatalf("%v: %s", err, read.ID())
	}
	if again, err := read.Encode(); err != nil || !bytes.Equal(again, file) {
		t.Errorf("other bytes: %v", err)
	}
	later := firstDayJob(t, lives)
	e, err := Exam{Model: read, Inputs: later.Inputs, Alarm: alarm.Default}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if g := float64(e.Pooled.GMean); !(g > 0.9) {
		t.Errorf("G-mean %v on tools that get worn", g)
	}
	if _, err := StudyCosts(t.Context(), read, nil); err == nil || !strings.Contains(err.Error(), "has seen no worn tool") {
		t.Errorf("costs: %v", err)
	}
	if _, _, err := (Relabelling{Model: read}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has seen no worn tool") {
		t.Errorf("relabel: %v", err)
	}
	if page, want := r.Summary(), []string{"a window is different from before where sensor rms differs 2-fold", "tool A: 25 windows, taught, reached 1.43-fold, no alarm"}; !containsAll(page, want) {
		t.Errorf("%s", page)
	}
	if said := card.FirstDayOf(read); !containsAll(said, []string{"sensor rms", "3 healthy lives taught it"}) {
		t.Errorf("%s", said)
	}
}

func containsAll(text string, want []string) bool {
	for _, w := range want {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
