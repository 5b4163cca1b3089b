package card

import (
	"fmt"
	"math"
	"strings"

	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// FirstDay says what a model that has seen no worn tool learnt from, and what it says of each life. Its JSON is part of the
// contract.
type FirstDay struct {
	Model     string           `json:"model"`
	Sensor    string           `json:"sensor"`
	Limit     float64          `json:"limit_times"` // by what factor a tool that is different differs from its first windows
	K         int              `json:"k"`
	N         int              `json:"n"`
	Lives     []FirstDayLife   `json:"lives"`             // in the order of their first windows
	Cutting   string           `json:"cutting"`           // when, in words
	Reference int              `json:"reference_windows"` // of a tool, that its reference is made of
	Windows   Tally            `json:"windows"`
	Warnings  []string         `json:"warnings"`
	Job       model.Provenance `json:"provenance"`
}

// FirstDayLife is a life behind its reference.
type FirstDayLife struct {
	Tool    string    `json:"tool"`
	Windows int       `json:"windows"`
	Taught  int       `json:"taught"`             // the first of them, that the limit comes from; 0: the life was judged only
	Reached *float64  `json:"reached_times"`      // what k of n windows reached together; null if the life is too short
	Alarm   int       `json:"alarm_at,omitempty"` // window, from 1, that would raise the alarm; 0: none
	Levels  []float64 `json:"-"`                  // neper, by window; NaN: the sensor has no value
}

// Judge fills in the limit, given in nepers, and what it says of the lives.
func (r *FirstDay) Judge(limit float64) {
	r.Limit = model.Times(limit)
	for i := range r.Lives {
		l := &r.Lives[i]
		if reached := score.ReachedLevel(l.Levels, r.K, r.N); !math.IsInf(reached, -1) {
			times := model.Times(reached)
			l.Reached = &times
		}
		l.Alarm = score.FirstAbove(l.Levels, r.K, r.N, limit) + 1
	}
}

// leastLives is how many healthy lives a model should be taught by: of fewer, one odd life decides.
const leastLives = 3

// Doubts says in words what speaks against the lives that taught.
func (r *FirstDay) Doubts() (all []string) {
	n := 0
	for _, l := range r.Lives {
		if l.Taught == 0 {
			continue
		}
		if n++; l.Alarm > 0 && l.Alarm <= l.Taught {
			all = append(all, fmt.Sprintf("tool %s taught the limit, and is above it from window %d on: was it worn? give its wear, or leave it out", l.Tool, l.Alarm))
		}
	}
	if n < leastLives {
		all = append(all, fmt.Sprintf("%d healthy lives taught the limit, %d or more should: one odd life decides", n, leastLives))
	}
	return all
}

// FirstDayOf says in words what a model that has seen no worn tool says of a tool; empty of other models.
func FirstDayOf(m *model.Model) string {
	if m.FirstDay == nil {
		return ""
	}
	return different(m.FirstDay.Sensor, model.Times(m.FirstDay.Limit), m.Reference.Windows) + fmt.Sprintf("; %d healthy lives taught it", len(m.FirstDay.Reached))
}

func different(sensor string, times float64, windows int) string {
	return fmt.Sprintf("different from before where sensor %s differs %.2g-fold from a tool's first %d windows; "+model.NoWornTool, sensor, times, windows)
}

func (r *FirstDay) meaning() string { return different(r.Sensor, r.Limit, r.Reference) }

// Summary says in lines what the model is and what it says of each life.
func (r *FirstDay) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "a window is %s\n%s", r.meaning(), r.Windows.Words())
	for _, l := range r.lines() {
		fmt.Fprintf(&b, "\ntool %s: %s windows, %s, reached %s-fold, %s", l[0], l[1], l[2], l[3], l[4])
	}
	return b.String()
}

// lines returns the cells of the table of lives.
func (r *FirstDay) lines() (rows [][]string) {
	for _, l := range r.Lives {
		taught, reached, said := "judged only", "–", "no alarm"
		switch {
		case l.Taught == l.Windows:
			taught = "taught"
		case l.Taught > 0:
			taught = fmt.Sprintf("the first %d taught", l.Taught)
		}
		if l.Reached != nil {
			reached = fmt.Sprintf("%.2f", *l.Reached)
		}
		if l.Alarm > 0 {
			said = fmt.Sprintf("different from window %d on", l.Alarm)
		}
		rows = append(rows, []string{l.Tool, fmt.Sprint(l.Windows), taught, reached, said})
	}
	return rows
}

// Save writes the card to base.html and the report for programs to base.json, each whole, as config.WriteFile does.
func (r *FirstDay) Save(base string, write func(path string, b []byte) error) error {
	return saveCard(base, write, r, cardHead{Model: r.Model, Label: r.meaning(), Job: r.Job}, r.page().Sections)
}

func (r *FirstDay) page() *page {
	p := &page{drawings: []drawing{{"levels", r.plot().SVG()}}}
	p.section("purpose", "What it is for")
	p.note("No worn tool was seen yet. The model says that a tool is different from before, not that it is worn: with another material, or a sensor that was mounted again, it is different too")
	p.text("It watches a machine until the first worn tool is measured. Then train again, with its label: `trainer fit`. It compares one sensor, %s, with the first %d windows of each tool. It looks at no other sensor.", r.Sensor, r.Reference)
	p.section("lives", "Lives")
	p.text("An alarm is raised where %d of %d windows are above the limit. What a life reached is what so many of its windows had together, as a factor of its first windows: above 1 as healthy tools changed, below 1 the other way. The limit is the greater of 2 and the geometric mean of what lives that taught reached, to the power of %.1f.", r.K, r.N, score.ShareDifferent)
	p.figures("levels")
	t := p.table("tool", "windows", "", "reached", "")
	for _, row := range r.lines() {
		t.row(row...)
	}
	p.section("data", "Data")
	p.text("%s. Windows count %s.", capital(r.Windows.Words()), r.Cutting)
	for _, d := range r.Job.Data {
		p.text("%s.", d.String())
	}
	for _, w := range r.Warnings {
		p.note(w)
	}
	p.section("configuration", "Configuration")
	p.add(block{Code: string(indent(r.Job.Config))})
	return p
}

// plot draws the levels of the first lives over their windows.
func (r *FirstDay) plot() report.Plot {
	out := report.Plot{
		Title:       r.Sensor + " as a factor of a tool's first windows" + theFirst(min(mostLives, len(r.Lives)), len(r.Lives), "lives"),
		Description: "By what factor the sensor of each tool differs from its first windows, window by window, and the limit from which on a tool is different.",
		X:           report.Axis{Label: "window of cutting behind the reference"}, Y: report.Axis{Label: "factor of its first windows"},
	}
	most := 1.0
	colors := []string{report.Blue, report.Green, report.Purple, report.Grey}
	for k, l := range r.Lives[:min(mostLives, len(r.Lives))] {
		s := report.Series{Color: colors[k%len(colors)], Width: 1}
		if k < len(colors) {
			s.Name = l.Tool
		}
		for i, v := range l.Levels {
			if v == v {
				s.X, s.Y = append(s.X, float64(i+1)), append(s.Y, model.Times(v))
			}
		}
		if len(s.X) > 0 {
			most, out.Series = max(most, s.X[len(s.X)-1]), append(out.Series, s)
		}
	}
	out.Series = append(out.Series, report.Series{Name: "limit", X: []float64{1, most}, Y: []float64{r.Limit, r.Limit}, Color: report.Orange, Dashed: true})
	return out
}
