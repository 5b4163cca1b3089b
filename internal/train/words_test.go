package train

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source"
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
