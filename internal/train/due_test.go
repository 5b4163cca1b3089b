package train

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// A figure at its limit makes training due. What could not be read is never taken for "not due".
func TestAskWhetherDue(t *testing.T) {
	quiet := Figures{Judged: 1000, Unknown: 249, Answered: 10, FalseAlarms: 2, NewTools: 4}
	with := func(change func(*Figures)) Figures {
		f := quiet
		change(&f)
		return f
	}
	gap := func(f *Figures, why Why) { f.Gaps = map[Why]string{why: "gone"} }
	for name, tc := range map[string]struct {
		f    Figures
		want Due
		says string // by the reasons that are due, or have a gap
	}{
		"nothing reaches its limit":      {quiet, DueNot, ""},
		"tools":                          {with(func(f *Figures) { f.NewTools = 5 }), DueNow, "tools labelled since 5 (limit 5)"},
		"the first worn tool":            {with(func(f *Figures) { f.NewTools, f.FirstWorn = 2, 1 }), DueNow, "tools labelled since 2 (limit 1), the first worn one"},
		"drift":                          {with(func(f *Figures) { f.Drifting = 1 }), DueNow, "machines that drift 1 (limit 1)"},
		"unknown":                        {with(func(f *Figures) { f.Unknown = 250 }), DueNow, "windows unknown 25.0 % of 1000 (limit 25 %)"},
		"false alarms":                   {with(func(f *Figures) { f.FalseAlarms = 3 }), DueNow, "alarms answered as false 30.0 % of 10 (limit 30 %)"},
		"two reasons":                    {with(func(f *Figures) { f.NewTools, f.FalseAlarms = 7, 10 }), DueNow, "tools labelled since 7 (limit 5); alarms answered as false 100.0 % of 10 (limit 30 %)"},
		"all of few alarms are false":    {with(func(f *Figures) { f.Answered, f.FalseAlarms = 4, 4 }), DueNot, ""},
		"all of few windows are unknown": {with(func(f *Figures) { f.Judged, f.Unknown = 99, 99 }), DueNot, ""},
		"no window":                      {with(func(f *Figures) { f.Judged, f.Unknown = 0, 0 }), DueUnsure, "machines that drift 0 (limit 1), not known: the model judged no window within 336h; windows unknown 0 of 0, too few for a share: 100 are needed, not known: the model judged no window within 336h; alarms answered as false 20.0 % of 10 (limit 30 %), not known: the model judged no window within 336h"},
		"alerts are gone":                {with(func(f *Figures) { gap(f, FalseAlarms) }), DueUnsure, "alarms answered as false 20.0 % of 10 (limit 30 %), not known: gone"},
		"few of what is left, with gap":  {with(func(f *Figures) { f.Answered = 3; gap(f, FalseAlarms) }), DueUnsure, "alarms answered as false 2 of 3, too few for a share: 5 are needed, not known: gone"},
		"due in spite of a gap":          {with(func(f *Figures) { f.NewTools = 5; gap(f, Drifting) }), DueNow, "tools labelled since 5 (limit 5); machines that drift 0 (limit 1), not known: gone"},
		"due, and the figure is a bound": {with(func(f *Figures) { f.NewTools = 5; gap(f, NewTools) }), DueNow, "tools labelled since 5 (limit 5), not known: gone"},
	} {
		got, reasons := defaultWatch.Ask(tc.f)
		var says []string
		for _, r := range reasons {
			if r.Due || r.Gap != "" {
				says = append(says, r.String())
			}
		}
		if text := strings.Join(says, "; "); got != tc.want || text != tc.says || len(reasons) != 4 {
			t.Errorf("%s: %s by %q, want %s by %q", name, got, text, tc.want, tc.says)
		}
	}
	drift := WatchConfig{Within: time.Hour, Drifting: 1}
	if got, reasons := drift.Ask(Figures{}); got != DueUnsure || len(reasons) != 1 {
		t.Errorf("no window, and drift alone counts: %s by %v", got, reasons)
	}
	off := WatchConfig{Within: time.Hour, Shadow: time.Hour}
	if got, reasons := off.Ask(Figures{NewTools: 100, Gaps: map[Why]string{NewTools: "gone"}}); got != DueNot || len(reasons) != 0 {
		t.Errorf("without a limit: %s by %v", got, reasons)
	}
}

// A limit that cannot be is named with its line.
func TestWatchLimits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "train.yaml")
	for text, want := range map[string]string{
		"{new_tools: 3, drifting: 0, unknown: 1, false_alarms: 0, within: 1h, shadow: 24h}": "",
		"{new_tools: -1}":      "train.yaml:1: watch: new_tools: -1: choose 1 or more",
		"{drifting: -1}":       "watch: drifting: -1",
		"{unknown: 25}":        "watch: unknown: 25: choose a share from 0 to 1",
		"{false_alarms: -0.1}": "watch: false_alarms: -0.1",
		"{within: 0s}":         "watch: within: 0s: must be positive",
		"{shadow: -1h}":        "watch: shadow: -1h0m0s",
	} {
		if err := os.WriteFile(file, []byte("watch: "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadConfig(file); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Fresh tools are those that the lineage does not name, and those that had no label when the model was published.
func TestFreshTools(t *testing.T) {
	published := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	before, after := published.Add(-time.Hour), published.Add(time.Hour)
	names := func(more int) *model.Provenance {
		return &model.Provenance{Data: []model.DataSet{{MoreTools: more, Machines: []model.MachineTools{{Machine: "acme/a", Tools: []string{"T1", wear.ToolOf("T2", "7")}}}}}}
	}
	life := func(l string) string { return wear.ToolOf("T2", l) }
	for name, tc := range map[string]struct {
		p     *model.Provenance
		tool  LabelledTool
		fresh bool
		gap   string
	}{
		"named":                              {names(0), LabelledTool{"acme/a", "T1", before, false}, false, ""},
		"named, the label came later":        {names(0), LabelledTool{"acme/a", "T1", after, false}, true, ""},
		"named, of a file":                   {names(0), LabelledTool{"acme/a", "T1", time.Time{}, false}, false, ""},
		"another tool":                       {names(0), LabelledTool{"acme/a", "T3", before, false}, true, ""},
		"a longer name":                      {names(0), LabelledTool{"acme/a", "T", before, false}, true, ""},
		"another machine":                    {names(0), LabelledTool{"acme/b", "T1", before, false}, true, ""},
		"any machine":                        {names(0), LabelledTool{"", "T1", time.Time{}, false}, false, ""},
		"the life that is named":             {names(0), LabelledTool{"acme/a", life("7"), before, false}, false, ""},
		"another life":                       {names(0), LabelledTool{"acme/a", life("8"), before, false}, true, ""},
		"all lives":                          {names(0), LabelledTool{"acme/a", "T2", before, false}, false, ""},
		"lineage without tools":              {new(model.Provenance), LabelledTool{"acme/a", "T1", before, false}, false, "does not say which tools"},
		"lineage without tools, later":       {new(model.Provenance), LabelledTool{"acme/a", "T1", after, false}, true, "does not say which tools"},
		"more than it names":                 {names(3), LabelledTool{"acme/a", "T3", before, false}, false, "names 2 of the 5 tools"},
		"more than it names, labelled later": {names(3), LabelledTool{"acme/a", "T3", after, false}, true, "names 2 of the 5 tools"},
	} {
		fresh, gap := FreshTools(tc.p, published, []LabelledTool{tc.tool})
		if (len(fresh) == 1) != tc.fresh || (gap == "") != (tc.gap == "") || !strings.Contains(gap, tc.gap) {
			t.Errorf("%s: %v, %q", name, fresh, gap)
		}
	}
}

// Figures of both sides are of the same windows: unknown ones count as wrong, and of one class alone its recall counts.
func TestContestFigures(t *testing.T) {
	d := newDuel(2)
	for i := range 10 {
		class := i / 8 // eight healthy, two worn
		d.champion.add(class, 0, i == 0)
		d.candidate.add(class, class, i < 2)
	}
	s := d.standing()
	if s.Windows != 10 || s.Champion.GMean != 0 || s.Candidate.GMean != score.Figure(math.Sqrt(6./8)) || s.Champion.Unknown != 0.1 || s.Candidate.Unknown != 0.2 {
		t.Errorf("%+v", s)
	}
	one := newDuel(2)
	one.champion.add(0, 0, false)
	one.champion.add(0, 1, false)
	if s := one.standing(); s.Champion.GMean != 0.5 || !math.IsNaN(float64(s.Candidate.GMean)) {
		t.Errorf("%+v", s)
	}
}

// A champion and the networks of a candidate are compared on windows that both judged, and tools that are new to both decide.
func TestContest(t *testing.T) {
	t.Parallel()
	j := latheJob(t)
	m, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	tool := r.Held.Tool[len(r.Held.Tool)-1]
	e := Exam{Model: m, Inputs: latheJob(t).Inputs, Wear: j.Wear, Join: j.Config.Join}
	c, err := e.Compare(t.Context(), r, Fresh{{Tool: tool}})
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, name := range r.Held.Tool {
		if name == tool {
			own++
		}
	}
	if c.Reason != "" || c.All.Windows != len(r.Held.Class) || c.Fresh.Windows != own || c.Fresh.Tools != 1 || c.LeftOut != 0 || c.All.Candidate.GMean > c.All.Champion.GMean {
		t.Errorf("%+v", c)
	}
	if c, err = e.Compare(t.Context(), r, Fresh{{Tool: "none"}}); err != nil || !c.Worse() || !strings.Contains(c.Reason, "no window of a tool that is new to both") {
		t.Errorf("%+v, %v", c, err)
	}
	nothing, seen, other := *r, *r, *r
	nothing.Held, seen.Pooled = card.HeldOut{}, nil // of a report without a score by tool, Held is of networks that may have learnt from the tools
	for name, report := range map[string]*card.Report{"no rows": &nothing, "no score": &seen} {
		if c, err = e.Compare(t.Context(), report, Fresh{{Tool: tool}}); err != nil || !c.Worse() || !strings.Contains(c.String(), "no tools were held out") {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	other.Held.Class = slices.Clone(other.Held.Class)
	other.Held.Class[0] = 1 - other.Held.Class[0]
	if c, err = e.Compare(t.Context(), &other, nil); err != nil || c.LeftOut != 1 || c.All.Windows != len(other.Held.Class)-1 {
		t.Errorf("%+v, %v", c, err)
	}
}
