package train

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// What must not be learnt from is left out, is counted with its reason, and is named with a remedy.
func TestWindowsThatAreLeftOut(t *testing.T) {
	all := cutFeatures(t, newDrill(drillLayout(t), "m", "T1", drillStart, 2))
	const n = 8
	type sent struct {
		epoch, seq uint64
		of         int // whose features it has
		start      time.Duration
		tool       string
	}
	run := func(epoch uint64, tool string, hop time.Duration) (all []sent) {
		for i := range n {
			all = append(all, sent{epoch, uint64(i), i, time.Duration(i) * hop, tool})
		}
		return all
	}
	other := run(2, "T1", time.Second)
	other[3].of = 0
	isolated := []sent{{1, 0, 0, 0, "T1"}, {1, 5, 1, 500 * time.Millisecond, "T1"}}
	for name, tc := range map[string]struct {
		sent     []sent
		mode     model.Mode
		cut      []model.CutTool
		kept     int
		checked  int // by labels check
		cutOff   int
		because  string
		warnings string
	}{
		"all is well":          {run(1, "T1", time.Second), model.ReferenceKind, nil, n, n, 0, "", ""},
		"sent twice":           {append(run(1, "T1", time.Second), run(2, "T1", time.Second)...), model.ReferenceKind, nil, n, n, 0, "8 sent twice", "m/T1"},
		"sent twice but one":   {append(run(1, "T1", time.Second), other...), model.ReferenceKind, nil, n + 1, n, 0, "7 sent twice", "m/T1"},
		"of two tools":         {append(run(1, "T1", time.Second), run(2, "T2", time.Second)...), model.ReferenceKind, nil, 2 * n, 2 * n, 0, "", ""},
		"another hop":          {append(run(1, "T1", 500*time.Millisecond), sent{2, 0, 0, time.Hour, "T1"}), model.ReferenceKind, nil, 1, 1, 0, "8 of another hop", "m (every 500ms): set window.hop to 1s"},
		"a clock a little off": {run(1, "T1", 1009*time.Millisecond), model.ReferenceKind, nil, n, n, 0, "", ""},
		"no neighbours":        {isolated, model.ReferenceKind, nil, 2, 2, 0, "", ""},
		"cut off":              {append(run(1, "T1", time.Second), run(2, "T2", time.Second)...), model.ReferenceAuto, []model.CutTool{{Machine: "m", Tool: "T1", Missing: 40}}, n, 2 * n, n, "8 of tools without their beginning", "m/T1 (up to 40 missing)"},
		"cut off, mode off":    {append(run(1, "T1", time.Second), run(2, "T2", time.Second)...), model.ReferenceOff, []model.CutTool{{Machine: "m", Tool: "T1", Missing: 40}}, 2 * n, 2 * n, n, "", "before their first measurement their wear is not known"},
		"cut off elsewhere":    {run(1, "T1", time.Second), model.ReferenceKind, []model.CutTool{{Machine: "other", Tool: "T1", Missing: 40}}, n, n, 0, "", ""},
	} {
		j := drillJob(t, "", nil)
		j.Config.Reference.Mode = tc.mode
		m, err := j.blank()
		if err != nil {
			t.Fatal(err)
		}
		j.Inputs = []Input{{Name: "cut", Cut: func(_ context.Context, _ *model.Model, _ func(int, int), visit func(*window.Features) error) (model.DataSet, error) {
			for _, s := range tc.sent {
				w := all[s.of]
				w.Machine, w.Tool, w.Epoch, w.Seq, w.Start = "m", s.tool, s.epoch, s.seq, drillStart.Add(s.start)
				if err := visit(&w); err != nil {
					return model.DataSet{}, err
				}
			}
			return model.DataSet{CutOff: tc.cut}, nil
		}}}
		j.prepare()
		places, err := j.places(t.Context(), m)
		if err != nil || len(places[0]) != tc.checked {
			t.Errorf("%s: to check %d windows, want %d; %v", name, len(places[0]), tc.checked, err)
		}
		found, _, err := collect(t.Context(), m, j.Inputs, 1, keepAll, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		if len(found[0]) != tc.kept {
			t.Errorf("%s: %d windows, want %d", name, len(found[0]), tc.kept)
		}
		cut := 0
		for _, o := range places[0] {
			if o.cutOff {
				cut++
			}
		}
		var because, warnings string
		for _, l := range j.Inputs[0].LeftOut {
			warnings += l.Warning
			if l.Windows > 0 {
				because += fmt.Sprintf("%d %s", l.Windows, l.Because)
			}
		}
		if cut != tc.cutOff || because != tc.because || !strings.Contains(warnings, tc.warnings) || (warnings == "") != (tc.warnings == "") {
			t.Errorf("%s: %d cut off, left out %q, warnings %q", name, cut, because, warnings)
		}
		if got := dataSetOf(&j.Inputs[0], found[0], time.Second); len(got.CutOff) != len(tc.cut) {
			t.Errorf("%s: lineage %+v", name, got)
		}
	}
}

// A tool without its beginning was not new at its first window: its wear is known between measurements alone.
func TestWearOfToolsWithoutTheirBeginning(t *testing.T) {
	at := func(s int) time.Time { return drillStart.Add(time.Duration(s) * time.Second) }
	ms := []wear.Measurement{{Tool: "T1", Time: at(10), VBMaxUM: 225}, {Tool: "T1", Time: at(20), VBMaxUM: 325}}
	for name, tc := range map[string]struct {
		cutOff bool
		want   string
	}{
		"from its beginning":    {false, "112 225 275"},
		"without its beginning": {true, "NaN 225 275"},
	} {
		join, err := wear.NewJoin(ms, wear.Auto)
		if err != nil {
			t.Fatal(err)
		}
		var windows []wear.Window
		for _, s := range []int{0, 5, 10, 15} {
			o := observed{cutOff: tc.cutOff}
			o.Tool, o.Start = "T1", at(s)
			windows = append(windows, o.window(time.Second))
			join.See(windows[len(windows)-1])
		}
		var got []string
		for _, w := range windows[1:] {
			m, _ := join.At(w)
			got = append(got, fmt.Sprintf("%.0f", m.VBMaxUM))
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: %s, want %s", name, s, tc.want)
		}
	}
}

// The reading of windows on Kafka reports how far it is, and the run reports its end.
func TestProgressOfWindowsThatAreCut(t *testing.T) {
	j := drillJob(t, "", nil)
	m, err := j.blank()
	if err != nil {
		t.Fatal(err)
	}
	var far []string
	in := Input{Cut: func(_ context.Context, _ *model.Model, progress func(done, total int), _ func(*window.Features) error) (model.DataSet, error) {
		for done := range 3 {
			progress(done+1, 3)
		}
		return model.DataSet{}, nil
	}}
	if _, _, err := collect(t.Context(), m, []Input{in}, 1, keepAll, func(done, total int) { far = append(far, fmt.Sprintf("%d/%d", done, total)) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(far, " "); got != "0/1 1/3 2/3 2/3 1/1" {
		t.Errorf("progress %s", got)
	}
}
