package train

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
)

// A state in a column is refused with its place, if it means no class.
func TestStatesOfColumns(t *testing.T) {
	began := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	for want, o := range map[string]observed{
		"":                               {truth: source.Truth{VBMaxUM: math.NaN(), VBMeanUM: math.NaN(), State: "N.i.O."}},
		"day1, tool T1, row 7: ":         {recording: "day1", row: 7, truth: source.Truth{State: "purple"}},
		"day1, tool T1, the window 3s a": {recording: "day1", began: began, Observation: model.Observation{Start: began.Add(3 * time.Second)}, truth: source.Truth{State: "purple"}},
	} {
		o.Tool = "T1"
		_, err := (&labeller{rule: wear.DefaultRule()}).known(&o)
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, errUnknownState) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A model knows the words of the labels that are another thing than wear: learnt in memory and from a table on disk.
func TestModelKnowsTheStatesWord(t *testing.T) {
	for _, scan := range []bool{false, true} {
		for state, want := range map[string]string{"chatter": "chatter", "chipped": ""} {
			tb := labelledTable(false)
			for i := range tb.Rows() {
				tb.Class[i] = table.NoClass
			}
			j := tableJob(t, tb, scan)
			for tool, s := range map[string]string{"A": "good", "B": state, "C": state} {
				j.Wear = append(j.Wear, wear.Measurement{Tool: tool, State: s, VBMeanUM: math.NaN(), VBMaxUM: math.NaN()})
			}
			j.Config.Label = wear.Rule{VBMaxUM: 300, States: []string{"chatter", "chipped"}}
			quick(&j.Config)
			j.Config.Reference.Mode, j.Config.Evaluate.ByTool = model.ReferenceOff, "off"
			m, _, err := Run(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := m.Against(model.Verdict{Decided: 1}); got != want {
				t.Errorf("%s, scanned %v: %q, want %q", state, scan, got, want)
			}
		}
	}
}
