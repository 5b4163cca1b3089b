// Year follows a simulated fleet for a year, once with the model of the first month and once with
// a model that is trained again each month, and writes what each finds into docs/figures/year.md:
//
//	year -o ../docs/figures
//
// Twenty machines wear out tools (internal/source/sim). Gains of sensors drift, one sensor
// is mounted again, half of the machines get another material in summer, and a third of the tools is
// reground. One tool in five is measured, once, when it is taken out, and the trainer hears of it a month
// later. All of it is drawn from a seed: equal seeds, equal bytes. `make year` calls it. With -quick it is
// three machines and three months.
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/replay"
	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

func main() { command.Main("year", run) }

type size struct {
	machines, months, tools int // tools of a machine in a month
	first                   int // tools of the month before, which the first model learns from
}

var (
	full  = size{machines: 20, months: 12, tools: 2, first: 12}
	quick = size{machines: 3, months: 3, tools: 2, first: 6}
)

const (
	seed     = 1
	measured = 5 // one tool of so many is measured
	late     = 1 // months until the trainer hears of a measurement
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := command.Flags("year", stderr)
	folder := flags.String("o", "", "`folder` for year.md and year.svg, instead of printing the page")
	small := flags.Bool("quick", false, "three machines and three months")
	if err := flags.Parse(args); err != nil {
		return err
	}
	z := full
	if *small {
		z = quick
	}
	y := &year{size: z, log: stderr}
	if err := y.live(ctx); err != nil {
		return err
	}
	page, plot := y.page()
	if *folder == "" {
		_, err := io.WriteString(stdout, page)
		return err
	}
	if err := os.WriteFile(filepath.Join(*folder, "year.svg"), plot, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*folder, "year.md"), []byte(page), 0o644)
}

// life is a tool from its first window to its last, and what became of it.
type life struct {
	plan  *plan
	rows  *table.Table // of its windows, with the wear that the simulator knows
	seen  []wear.Measurement
	found [2]finding // by frozen, retrained
}

// The models that are compared.
const (
	frozen = iota
	retrained
)

// finding is what an alarm came to.
type finding struct {
	alarmUM float64 // flank wear at the first alarm; NaN: there was none
	unknown int     // windows with an unknown verdict
	windows int     // judged ones
}

// nearUM is from which flank wear on an alarm is not false.
const nearUM = 270

func (f finding) caught() bool  { return f.alarmUM >= nearUM }
func (f finding) falsely() bool { return f.alarmUM < nearUM }

type year struct {
	size
	log   io.Writer
	lives [][]*life // by month; the first are those before the year
	learn []int     // tools that the model of each month learnt from
}

// live drills month by month: the tools of a month are judged by the model of the first month and by
// the one of this month.
func (y *year) live(ctx context.Context) error {
	fleet := newFleet(y.size)
	var models [2]*model.Model
	for month := range y.months + 1 {
		began := time.Now()
		lives, err := drill(ctx, fleet.plans(month))
		if err != nil {
			return err
		}
		y.lives = append(y.lives, lives)
		if month == 0 {
			continue
		}
		known := slices.DeleteFunc(slices.Concat(y.lives[:max(1, month-late)]...), func(l *life) bool { return l.seen == nil })
		y.learn = append(y.learn, len(known))
		if month == 1 || len(known) > y.learn[month-2] {
			if models[retrained], err = fit(ctx, known); err != nil {
				return err
			}
		}
		if month == 1 {
			models[frozen] = models[retrained]
		}
		for of, m := range models {
			for _, l := range lives {
				if l.found[of], err = l.judge(m); err != nil {
					return err
				}
			}
		}
		fmt.Fprintf(y.log, "month %d: %d tools, learnt from %d: %v; %.0f s\n", month, len(lives), len(known), tallyOf(lives), time.Since(began).Seconds())
	}
	return nil
}

// drill returns the features of the tools of plans.
func drill(ctx context.Context, plans []*plan) ([]*life, error) {
	job := train.SimulatedHistory("", seed)
	job.Config.Reference.Mode = model.ReferenceOff
	job.Inputs = nil
	lives := make([]*life, len(plans))
	of := make(map[string]*life)
	for i, p := range plans {
		lives[i] = &life{plan: p}
		of[p.tool.Name] = lives[i]
		job.Inputs = append(job.Inputs, p.input())
	}
	all, _, _, err := train.Lessons(ctx, job)
	if err != nil {
		return nil, err
	}
	for i := range all.Rows() {
		r := all.Row(i)
		l := of[r.Tool]
		if l.rows == nil {
			l.rows = table.New(all.Columns)
		}
		r.Machine = l.plan.machine
		l.rows.Append(r)
	}
	for _, l := range lives {
		l.seen = l.plan.measurements()
	}
	return lives, nil
}

// fit trains a model on what was measured of tools, as `trainer fit` does.
func fit(ctx context.Context, lives []*life) (*model.Model, error) {
	job := train.SimulatedHistory("", seed)
	all := table.New(lives[0].rows.Columns)
	for _, l := range lives {
		for i := range l.rows.Rows() {
			r := l.rows.Row(i)
			r.Class, r.Label, r.VBMaxUM = table.NoClass, "", math.NaN()
			all.Append(r)
		}
		job.Wear = append(job.Wear, l.seen...)
	}
	job.Config.Gate = "off" // every row is of cutting
	job.Inputs = []train.Input{{Name: "year", Windows: all.Rows(), Table: all}}
	job.Layout, job.Program, job.Log = signal.GunDrill(), "year", zerolog.Nop()
	m, _, err := train.Run(ctx, job)
	return m, err
}

// judge follows a tool as the monitor does.
func (l *life) judge(m *model.Model) (f finding, err error) {
	first := replay.NewFirstAlarm()
	none := func(*model.Judge, table.Row) {}
	err = replay.Life(m, l.plan.tool.Name, l.rows, none, func(_ int, r table.Row, v model.Verdict) {
		f.windows++
		if v.Outcome == model.Unknown {
			f.unknown++
		}
		first.See(m, r, v)
	})
	f.alarmUM = first.UM
	return f, err
}

// tally is what the tools of some months came to, by frozen, retrained.
type tally struct {
	tools            int
	caught, falsely  [2]int
	unknown, windows [2]int
}

func tallyOf(lives []*life) (t tally) {
	for _, l := range lives {
		t.tools++
		for of, f := range l.found {
			if f.caught() {
				t.caught[of]++
			}
			if f.falsely() {
				t.falsely[of]++
			}
			t.unknown[of] += f.unknown
			t.windows[of] += f.windows
		}
	}
	return t
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }

func (y *year) page() (text string, plot []byte) {
	var b strings.Builder
	fmt.Fprintf(&b, `# A year of a fleet, with and without training again

Written by `+"`make year`"+`; do not edit. %d simulated machines wear out %d tools each in a month. The first model learnt from %d tools of the month before. One tool in %d is measured, once, when it is taken out, and said to be chipped or broken if it is;
the trainer hears of it a month later, and trains again on all that it knows. Gains of sensors drift by %.0f %% a month. In month %d an accelerometer of each third machine reads half as much.
From month %d on one tool in %d is reground, and from month %d on half of the machines drill another material at another speed and feed. A tool is found if its first alarm is at %d µm or later; an earlier one is false.
It is a simulation: it shows what training again is worth there, not what a plant will see.

![Tools found and false alarms by month](year.svg)

| month | tools | learnt from | found: first model | trained again | false alarms: first model | trained again | unknown windows: first model | trained again |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`, y.machines, y.tools, y.first, measured, 100*walk, remounted, regrindFrom, regrindEvery, otherSteel, nearUM)
	for month := 1; month <= y.months; month++ {
		row(&b, fmt.Sprint(month), fmt.Sprint(y.learn[month-1]), tallyOf(y.lives[month]))
	}
	row(&b, "all", "", tallyOf(slices.Concat(y.lives[1:]...)))
	fmt.Fprintf(&b, "\nTraining again changes the share of tools found by %s, and the share of tools with a false alarm by %s (95 of 100 draws of tools).\n", y.change(finding.caught), y.change(finding.falsely))
	return b.String(), y.draw()
}

func row(b *strings.Builder, month, learnt string, t tally) {
	fmt.Fprintf(b, "| %s | %d | %s |", month, t.tools, learnt)
	for _, n := range [][2]int{t.caught, t.falsely} {
		for of := range n {
			fmt.Fprintf(b, " %d |", n[of])
		}
	}
	for of := range t.unknown {
		fmt.Fprintf(b, " %.1f %% |", 100*share(t.unknown[of], t.windows[of]))
	}
	b.WriteString("\n")
}

// change returns by how much training again changes a share of the tools, with its interval.
func (y *year) change(is func(finding) bool) string {
	of, names := make(map[string]float64), []string(nil)
	sum := 0.0
	for _, l := range slices.Concat(y.lives[1:]...) {
		for which, sign := range [...]float64{frozen: -1, retrained: 1} {
			if is(l.found[which]) {
				of[l.plan.tool.Name] += sign
			}
		}
		sum += of[l.plan.tool.Name]
		names = append(names, l.plan.tool.Name)
	}
	interval := bootstrap.Tools(names, 1, func(times map[string]float64) []float64 {
		s, n := 0.0, 0.0
		for _, name := range names { // in order, so that equal draws give equal sums
			s, n = s+times[name]*of[name], n+times[name]
		}
		return []float64{s / n}
	})[0]
	return fmt.Sprintf("%s (%s)", bootstrap.Signed(sum/float64(len(names))), interval.Signed())
}

func (y *year) draw() []byte {
	plots := []report.Plot{{Title: "Tools found", Y: report.Axis{Label: "share of tools", Low: 0, High: 1}}, {Title: "Tools with a false alarm", Y: report.Axis{Label: "share of tools", Low: 0, High: 1}}}
	series := [2][2]report.Series{}
	for month := 1; month <= y.months; month++ {
		t := tallyOf(y.lives[month])
		for panel, n := range [...][2]int{t.caught, t.falsely} {
			for of := range n {
				s := &series[panel][of]
				s.X, s.Y = append(s.X, float64(month)), append(s.Y, share(n[of], t.tools))
			}
		}
	}
	for panel := range plots {
		p := &plots[panel]
		p.X = report.Axis{Label: "month", Low: 0, High: float64(y.months + 1)}
		p.Description = p.Title + " by month, with the first model and with one that is trained again each month."
		for of, style := range [...]report.Series{frozen: {Name: "first model", Color: report.Orange, Dashed: true}, retrained: {Name: "trained again", Color: report.Blue}} {
			style.X, style.Y, style.Dots = series[panel][of].X, series[panel][of].Y, true
			p.Series = append(p.Series, style)
		}
	}
	return report.Panels("A year of a simulated fleet", "Tools found and false alarms by month, with and without training again.", 2, 420, 260, plots)
}
