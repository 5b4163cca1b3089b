package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// The trainer tries several modes, and the model says which was kept. Rows are then as
// that mode alone makes them.
func TestAutoTriesModes(t *testing.T) {
	t.Parallel()
	sizes, values := []signal.Relation{signal.LogRatio, signal.Difference}, []signal.Relation{signal.Ratio, signal.Ratio}
	for _, tc := range []struct {
		relations []signal.Relation
		mode      model.Mode
		want      []model.Mode
	}{
		{values, model.ReferenceAuto, []model.Mode{model.ReferenceLog, model.ReferenceRatio, model.ReferenceDifference, model.ReferenceOff}},
		{sizes, model.ReferenceAuto, []model.Mode{model.ReferenceKind, model.ReferenceLog, model.ReferenceOff}},
		{values, model.ReferenceRatio, []model.Mode{model.ReferenceRatio}},
	} {
		if got := modesOf(tc.relations, tc.mode); !slices.Equal(got, tc.want) {
			t.Errorf("%s of %v: %v, want %v", tc.mode, tc.relations, got, tc.want)
		}
	}
	j := latheJob(t)
	j.Config.Reference.Mode = model.ReferenceAuto
	m, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Reference.Mode) != r.Fit.View || len(r.Fit.Views) < 3 || m.Reference.Windows != j.Config.Reference.Windows {
		t.Errorf("the model has %+v, the fit kept %q of %v", m.Reference, r.Fit.View, r.Fit.Views)
	}
	j.Config.Reference.Mode = m.Reference.Mode
	alone, _, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range m.Golden {
		if !sameBits(g.Features, alone.Golden[i].Features) || !slices.Equal(g.Posterior, alone.Golden[i].Posterior) {
			t.Errorf("golden row %d differs from the row of a model of mode %s alone", i, m.Reference.Mode)
		}
	}
}

// settled returns rows relative to the reference, whose mode is not to be chosen.
func settled(rows rowTable, m *model.Model) rowTable {
	if rows.rel != nil {
		m.Reference = rows.settle(m.Reference.Mode, m.Reference.Windows)
	}
	return rows
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b })
}

// signedTable has three tools of 30 windows with features that are positive, that are
// positive but for one window of a reference, that are zero once, that are negative, and
// that are never there.
func signedTable() *table.Table {
	rng := rand.New(rand.NewPCG(4, 4))
	t := table.New([]string{"rms", "power", "torque", "drift", "lost"})
	for _, tool := range []string{"A", "B", "C"} {
		for s := range 30 {
			class := s / 20
			row := []float32{1 + float32(class) + rng.Float32(), 2 + rng.Float32(), 3 + rng.Float32(), -1 - rng.Float32(), float32(math.NaN())}
			if tool == "B" && s == 1 {
				row[1] = -0.5
			}
			if tool == "C" && s == 25 {
				row[2] = 0
			}
			if s%7 == 3 {
				row[0] = float32(math.NaN())
			}
			t.Append(table.Row{Tool: tool, Class: class, VBMaxUM: math.NaN(), Features: row})
		}
	}
	return t
}

// In mode log the trainer finds out which features are positive, also in the windows of
// references, in memory and on disk alike, and rows are by Relate.
func TestPositiveFeatures(t *testing.T) {
	tb := signedTable()
	var want []float32
	for _, scan := range []bool{false, true} {
		j := tableJob(t, tb, scan)
		j.Config.Label = wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn"}}}
		j.Config.Reference = model.ReferenceSpec{Windows: 4, Mode: model.ReferenceLog}
		j.prepare()
		rows, m, _ := mustRows(t, j)
		rows = settled(rows, m)
		defer rows.close()
		if m.Reference.Positive != "10000" {
			t.Errorf("scanned %v: positive features %s, want 10000", scan, m.Reference.Positive)
		}
		got := make([]float32, 5*rows.Rows())
		for i := range rows.Rows() {
			if err := rows.x().ReadRows(got[5*i:5*i+5], i); err != nil {
				t.Fatal(err)
			}
		}
		if want == nil {
			want = got
			var ref model.Reference
			for i := range 4 {
				ref.Learn(tb.Row(i).Features, m.Reference)
			}
			first := make([]float32, 5)
			m.Reference.Relate(first, tb.Row(4).Features, ref.Center(), nil)
			if !sameBits(got[:5], first) {
				t.Errorf("the first row is %v, by Relate %v", got[:5], first)
			}
		} else if !sameBits(got, want) {
			t.Error("rows on disk differ from rows in memory")
		}
	}
}

// Only windows of cutting count, and of those only channels that can be trusted.
func TestPositiveWhileCutting(t *testing.T) {
	m := &model.Model{
		Layout: latheLayout(t), Window: window.DefaultSpec, Usual: make([]signal.Quality, 4), Gate: &model.Gate{Channel: "rms", Threshold: 5},
		Reference: model.ReferenceSpec{Windows: 3, Mode: model.ReferenceLog},
	}
	for name, tc := range map[string]struct {
		level   float64
		quality signal.Quality // of the last channel
		last    float32
		want    string
	}{
		"cutting":                {9, 0, -1, "1110"},
		"idle":                   {1, 0, -1, "1111"},
		"a channel that clipped": {9, signal.Clipped, -1, "1111"},
		"zero is not positive":   {9, 0, 0, "1110"},
		"missing":                {9, signal.Dropout, nan32, "1111"},
	} {
		c := newCuttingWindows(m)
		for i, last := range []float32{2, tc.last} {
			o := observed{machine: "m"}
			o.Tool, o.Start, o.Level = "T1", drillStart.Add(time.Duration(i)*time.Second), 9
			o.Features, o.Quality = []float32{1, 2, 3, last}, make([]signal.Quality, 4)
			if i == 1 {
				o.Level, o.Quality[3] = tc.level, tc.quality
			}
			c.observe(&o)
		}
		if got := c.positive(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if got := newCuttingWindows(m).positive(); got != "0000" {
		t.Errorf("of no window %s, want 0000", got)
	}
}

// A model of logarithms is trained, kept and judges as it was trained.
func TestRunWithLogarithms(t *testing.T) {
	t.Parallel()
	j := latheJob(t)
	j.Config.Reference.Mode = model.ReferenceLog
	m, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if m.Reference.Positive != "1110" { // hum is noise about zero
		t.Errorf("positive features %s, want 1110", m.Reference.Positive)
	}
	if want := "Features are relative (log, 1 of 4 features by difference) to the tool's own first 5"; !strings.Contains(cardText(t, r), want) {
		t.Errorf("the card does not say %q", want)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := model.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if right, all := judgeRecording(t, read, j.Inputs[0], j.Config.Label); right < all*9/10 {
		t.Errorf("the model judges %d of %d windows right, want 90 %%", right, all)
	}
	c, err := configOf(read)
	if err != nil {
		t.Fatal(err)
	}
	if c.Reference != (model.ReferenceSpec{Windows: 5, Mode: model.ReferenceLog}) {
		t.Errorf("trained again it would be with %+v", c.Reference)
	}
}

// warningOf trains on the tools of a lathe and returns what the console and the card say of
// used tools.
func warningOf(t *testing.T, change func(*Job), tools ...life) string {
	t.Helper()
	j := latheJob(t)
	j.Inputs = []Input{latheInput(t, j.Layout, "lives", "lathe", latheCSV(tools))}
	quick(&j.Config)
	change(&j)
	var console bytes.Buffer
	j.Log = zerolog.New(&console)
	_, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, w := range r.Warnings {
		if strings.Contains(w, "A reference stands for the new tool") {
			found = append(found, w)
			if !strings.Contains(console.String(), w) || !strings.Contains(cardText(t, r), w) {
				t.Errorf("console or card lack %q", w)
			}
		}
	}
	if len(found) > 1 {
		t.Errorf("%d warnings, want one: %q", len(found), found)
	}
	return strings.Join(found, "")
}

// worn is latheCSV of tools whose recording begins at a wear.
func worn(t *testing.T, text string, tool string, fromUM float64) string {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		at := strings.LastIndexByte(line, ',')
		var um float64
		if !strings.HasPrefix(line, tool+",") {
			continue
		}
		if _, err := fmt.Sscan(line[at+1:], &um); err != nil {
			t.Fatal(err)
		}
		lines[i] = fmt.Sprintf("%s,%.1f", line[:at], um+fromUM)
	}
	return strings.Join(lines, "\n")
}

func TestReferencesOfUsedTools(t *testing.T) {
	if testing.Short() {
		t.Skip("trains several times")
	}
	t.Parallel()
	none := func(*Job) {}
	begins := func(tool string, um float64) func(*Job) {
		return func(j *Job) {
			j.Inputs = []Input{latheInput(t, j.Layout, "lives", "lathe", worn(t, latheCSV(lives), tool, um))}
		}
	}
	if got := warningOf(t, none, lives...); got != "" {
		t.Errorf("new tools: %q", got)
	}
	if got := warningOf(t, begins("B", 100), lives...); got != "" {
		t.Errorf("a third of the limit is not above it: %q", got)
	}
	got := warningOf(t, begins("B", 132), lives...)
	for _, want := range []string{"more than a third of the wear limit, 300 µm, when their reference was taken: B (132 µm at its first window).", "record tools from their first cut on, or leave these out"} {
		if !strings.Contains(got, want) || strings.Contains(got, "A (") {
			t.Errorf("a used tool: %q, want %q and no other tool", got, want)
		}
	}
	// One that is faulty after three windows.
	if got, want := warningOf(t, none, life{"A", 48, 420}, life{"B", 40, 390}, life{"C", 8, 900}, life{"D", 44, 400}), "2 of the 20 windows that make references are labelled faulty: C (2 of 5)."; !strings.Contains(got, want) {
		t.Errorf("a tool that fails at once: %q, want %q", got, want)
	}
	both := func(j *Job) {
		begins("B", 301)(j)
		j.Config.Reference.Mode = model.ReferenceRatio
	}
	got = warningOf(t, both, lives...)
	for _, want := range []string{"5 of the 25 windows that make references are labelled faulty: B (5 of 5);", ": B (301 µm at its first window).", "if each tool was recorded in one state only, set `reference.mode` to off"} {
		if !strings.Contains(got, want) {
			t.Errorf("used and faulty: %q, want %q", got, want)
		}
	}
	without := func(j *Job) {
		begins("B", 132)(j)
		j.Config.Reference.Mode = model.ReferenceOff
	}
	if got := warningOf(t, without, lives...); got != "" {
		t.Errorf("without references: %q", got)
	}
}

// Labels of a table count too, and tools that are on disk.
func TestReferencesOfUsedToolsInATable(t *testing.T) {
	for _, scan := range []bool{false, true} {
		tb := signedTable()
		for i := range 2 {
			tb.Class[60+i] = 1 // the first windows of C
		}
		j := tableJob(t, tb, scan)
		j.Config.Label = wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn"}}}
		j.Config.Reference.Windows = 4
		j.prepare()
		rows, _, counts := mustRows(t, j)
		rows.close()
		if ws := counts.Warnings(); len(ws) != 1 || !strings.Contains(ws[0], "2 of the 12 windows that make references are labelled faulty: C (2 of 4).") || strings.Contains(ws[0], "B (") {
			t.Errorf("scanned %v: warnings %q", scan, ws)
		}
	}
}

// A wear file is asked, and windows of references are not counted in its card.Tally.
func TestReferencesOfUsedToolsByWearFile(t *testing.T) {
	l := drillLayout(t)
	ms := []wear.Measurement{atEnd("T1", drillStart, 1, 150, ""), atEnd("T1", drillStart, 2, 400, "")}
	early := slices.Clone(ms) // measured when its reference was half done: it was worn before
	early[0].Time = drillStart.Add((idleSeconds + 2) * time.Second)
	for name, tc := range map[string]struct {
		mode wear.Mode
		ms   []wear.Measurement
		want string
	}{
		"as measured after the hole":             {wear.HoleEnd, ms, ": T1 (150 µm at its first window)."},
		"new at its first window":                {wear.Interpolate, ms, ""},
		"said to be new, and worn windows later": {wear.Interpolate, early, "µm by the end of its reference)."},
	} {
		_, _, counts := mustRows(t, drillJob(t, tc.mode, tc.ms, drillInput(newDrill(l, "m", "T1", drillStart, 2))))
		if got := counts.UsedTools; !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if want := fmt.Sprintf("%d labelled, 0 not", counts.Used); counts.Join != want {
			t.Errorf("%s: the join says %q, want %q", name, counts.Join, want)
		}
	}
}

// Tools that are faulty from the first label to the last are named, also if the windows of
// their reference have none: a state is not carried back in time.
func TestReferencesOfToolsInOneState(t *testing.T) {
	l := drillLayout(t)
	for name, tc := range map[string]struct {
		mode wear.Mode
		ms   []wear.Measurement
		want string
	}{
		"by hole":                     {wear.HoleEnd, []wear.Measurement{atEnd("T1", drillStart, 1, nan, "broken"), atEnd("T1", drillStart, 2, nan, "broken")}, "4 of the 4 windows that make references are labelled faulty: T1 (4 of 4)."},
		"found after the first hole":  {wear.Interpolate, []wear.Measurement{atEnd("T1", drillStart, 1, nan, "broken")}, "have no label, and none of their other windows is labelled healthy: T1."},
		"healthy after the reference": {wear.Interpolate, []wear.Measurement{atEnd("T1", drillStart, 1, nan, "good"), atEnd("T1", drillStart, 2, nan, "good")}, ""},
	} {
		j := drillJob(t, tc.mode, tc.ms, drillInput(newDrill(l, "m", "T1", drillStart, 2)))
		_, _, counts := mustRows(t, j)
		if got := counts.UsedTools; !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		} else if tc.want != "" && !strings.Contains(got, "set `reference.mode` to off") {
			t.Errorf("%s: %q does not say how to do without references", name, got)
		}
	}
}

// Every tool is named once, and of very many the first.
func TestUsedToolsInWords(t *testing.T) {
	nan := math.NaN()
	taken := func(tool string, startUM float64, faulty int) takenReference {
		return takenReference{tool, startUM, nan, 10, faulty, 10}
	}
	words := func(limitUM float64, taken ...takenReference) string {
		return references{taken: taken, limitUM: limitUM, faulty: "faulty"}.usedTools()
	}
	if got := words(0, taken("A", 100, 0), taken("B", nan, 0), taken("C", 900, 0)); got != "" {
		t.Errorf("without a limit: %q", got)
	}
	got := words(300, taken("A", 90, 0), taken("A", 250, 0), taken("A", 280, 3), taken("B", nan, 4))
	if want := "7 of the 40 windows that make references are labelled faulty: A (3 of 10) and B (4 of 10); these tools had more than a third of the wear limit, 300 µm, when their reference was taken: A (250 µm at its first window). A reference"; !strings.HasPrefix(got, want) {
		t.Errorf("tools that come back: %q, want %q", got, want)
	}
	var many []takenReference
	for i := range 100 {
		many = append(many, taken(fmt.Sprint("T", i), 200, 0))
	}
	if got := words(300, many...); !strings.Contains(got, "T19 (") || strings.Contains(got, "T20 (") || !strings.Contains(got, " and 80 more. A reference") {
		t.Errorf("100 tools: %q", got)
	}
	var some []takenReference
	for i := range 20 {
		some = append(some, taken(fmt.Sprint("T", i), nan, 10*max(0, i-12)/max(1, i-12)))
	}
	if got := words(0, some...); !strings.HasPrefix(got, "70 of the 200 windows that make references are labelled faulty: T13 (10 of 10), ") {
		t.Errorf("20 tools, of which seven are faulty: %q", got)
	}
}

// The report has what each mode gives on tools held out, also if the configuration names
// one or takes none, and the score of that one is the score by tool; a committee is scored
// where there are few rows.
func TestModesAreScored(t *testing.T) {
	t.Parallel()
	for mode, want := range map[model.Mode][]model.Mode{
		model.ReferenceKind: {model.ReferenceKind, model.ReferenceLog, model.ReferenceRatio, model.ReferenceDifference, model.ReferenceOff},
		model.ReferenceOff:  {model.ReferenceOff, model.ReferenceLog, model.ReferenceRatio, model.ReferenceDifference},
	} {
		j := latheJob(t)
		j.Config.Network.FineTune.Epochs, j.Config.Evaluate.RandomSplit = 10, false
		j.Config.Reference.Mode = mode
		_, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		var got []model.Mode
		for i, m := range r.Modes {
			got = append(got, m.Mode)
			if m.Kept != (i == 0) || (m.Encoding == classify.Committee) != (i >= len(want)) {
				t.Errorf("%s: %+v", mode, m)
			}
		}
		if !slices.Equal(got, slices.Concat(want, want)) {
			t.Errorf("%s: scored are %v, want %v twice", mode, got, want)
		}
		if mode != model.ReferenceOff && r.Modes[0].GMean != r.Pooled.GMean { // off is scored on the rows of the others
			t.Errorf("%s: G-mean %v, by tool %v", mode, r.Modes[0].GMean, r.Pooled.GMean)
		}
		page, err := r.HTML()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), ">"+string(mode)+", kept<") || !strings.Contains(r.Summary(), "\nreference mode, held out ") {
			t.Errorf("%s: the card or the summary lacks the modes:\n%s", mode, r.Summary())
		}
	}
}

// Modes are not scored where the score by tool is off, or where rows are many.
func TestModesAreNotScored(t *testing.T) {
	j := latheJob(t)
	j.prepare()
	rows, m, _ := mustRows(t, j)
	if rows.modes != nil {
		t.Error("rows for modes are made unasked")
	}
	rows = settled(rows, m)
	if got, err := j.scoreModes(t.Context(), &rows); err != nil || got.modes != nil {
		t.Errorf("scored %v, %v", got, err)
	}
	j.scoresModes = true
	rows, _, _ = mustRows(t, j)
	if rows.modes == nil || rows.modes.work() != rows.work() || rows.work() != 5*len(rows.group) {
		t.Errorf("tools × windows are %d, want five tools by %d", rows.work(), len(rows.group))
	}
	for len(rows.group) <= mostModeWork/5 {
		rows.group = append(rows.group, rows.group...)
	}
	rows.modes = nil
	if err := j.rowsOfModes(&rows, m, nil, nil); err != nil || rows.modes != nil {
		t.Errorf("rows for modes of a table of %d windows are made: %v", len(rows.group), err)
	}
}

// Raw rows, references and relations make the rows of every mode without the judge.
func TestRelateMakesTheRowsOfEveryMode(t *testing.T) {
	j := latheJob(t)
	j.Config.Reference.Mode = model.ReferenceOff
	j.prepare()
	raw, m, _ := mustRows(t, j)
	relations := m.NewJudge().Relations()
	for _, mode := range []model.Mode{model.ReferenceKind, model.ReferenceRatio, model.ReferenceLog, model.ReferenceDifference} {
		j.Config.Reference.Mode = mode
		j.prepare()
		rows, m, _ := mustRows(t, j)
		rows = settled(rows, m)
		n, at := len(rows.Columns), 0
		row := make([]float32, n)
		refs := make(map[string]*model.Reference)
		for i, tool := range raw.Tool {
			ref := refs[tool]
			if ref == nil {
				ref = new(model.Reference)
				refs[tool] = ref
			}
			x := raw.Data[i*n : (i+1)*n]
			if !ref.Ready(m.Reference) {
				ref.Learn(x, m.Reference)
				continue
			}
			if m.Reference.Relate(row, x, ref.Center(), relations); !sameBits(row, rows.Data[at*n:(at+1)*n]) {
				t.Fatalf("%s: row %d is %v, by Relate %v", mode, at, rows.Data[at*n:(at+1)*n], row)
			}
			at++
		}
		if at != rows.Rows() {
			t.Errorf("%s: %d rows, want %d", mode, at, rows.Rows())
		}
		if n := testing.AllocsPerRun(10, func() { m.Reference.Relate(row, raw.Data[:n], row, relations) }); n > 0 {
			t.Errorf("%s: %v allocations for a row", mode, n)
		}
	}
}

// Of tools that are too short for a reference of ten windows the trainer makes shorter ones and says so. A number in the
// configuration stays, and the trainer names the cause and the number that would fit.
func TestReferenceFitsTheTools(t *testing.T) {
	t.Parallel()
	lengths := func(n int, long int) []life {
		tools := make([]life, n)
		for i := range tools {
			tools[i] = life{fmt.Sprintf("T%d", i+1), 5, 420}
			if i < long {
				tools[i].seconds = 40
			}
		}
		return tools
	}
	for name, tc := range map[string]struct {
		tools   []life
		windows int // by the configuration, 0: none
		takes   int // of the model, 0: an error
		said    []string
	}{
		"short":            {lengths(18, 2), 0, 2, []string{"a reference takes 10 windows of cutting, and 16 of 18 tools have no more (5 to 5): instead, references are of 2; to choose otherwise, set `reference.windows`"}},
		"long":             {lengths(6, 6), 0, 10, nil},
		"one short":        {lengths(6, 5), 0, 10, []string{"none of theirs is judged: T6 (5): record tools for longer, or leave these out"}},
		"said and fits":    {lengths(18, 2), 3, 3, nil},
		"said, most short": {lengths(18, 2), 6, 0, []string{"a reference takes 6 windows of cutting, and 16 of 18 tools have no more (5 to 5)", "record tools for longer, set `reference.windows` to 2, or leave it out"}},
		"said, some short": {lengths(18, 10), 6, 6, []string{"a reference takes 6 windows of cutting, and these tools have no more", "T11 (5), T12 (5)", "set `reference.windows` to 2"}},
		"one window":       {[]life{{"A", 1, 0}, {"B", 1, 400}, {"C", 1, 400}}, 0, 0, []string{"no reference fits", "`reference: {mode: \"off\"}`"}},
	} {
		j := latheJob(t)
		quick(&j.Config)
		j.Config.Reference = model.ReferenceSpec{Windows: 10, Mode: model.ReferenceLog}
		if j.Config.ReferenceSaid = tc.windows > 0; j.Config.ReferenceSaid {
			j.Config.Reference.Windows = tc.windows
		}
		j.Config.Evaluate = Evaluate{ByTool: "off"}
		j.Inputs = []Input{latheInput(t, j.Layout, "lives", "lathe", latheCSV(tc.tools))}
		m, r, err := Run(t.Context(), j)
		if tc.takes == 0 {
			for _, want := range tc.said {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", name, err, want)
				}
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		said := strings.Join(r.Warnings, "\n")
		for _, want := range tc.said {
			if !strings.Contains(said, want) || !strings.Contains(cardText(t, r), want) {
				t.Errorf("%s: %q, want %q", name, said, want)
			}
		}
		if m.Reference.Windows != tc.takes || strings.Contains(said, "a reference takes") != (tc.said != nil) || strings.Contains(said, "fit for judging") {
			t.Errorf("%s: %d windows, %q", name, m.Reference.Windows, said)
		}
		var c Config
		if err := json.Unmarshal(m.Provenance.Config, &struct{ Reference *model.ReferenceSpec }{&c.Reference}); err != nil || c.Reference.Windows != tc.takes {
			t.Errorf("%s: its configuration says %d, %v", name, c.Reference.Windows, err)
		}
	}
}
