package train

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

func TestWindowTime(t *testing.T) {
	features := func(rate float64) *signal.Layout {
		return layout(t, "table", []signal.Channel{{Name: "rms", Kind: signal.Feature, Rate: rate}})
	}
	waves := layout(t, "waves", []signal.Channel{{Name: "acc", Kind: signal.Vibration, Unit: "g", Rate: 400}})
	second, two := window.Spec{Length: time.Second}, window.Spec{Length: 2 * time.Second, Hop: time.Second}
	rows := []Input{{Table: table.New([]string{"rms"})}}
	for name, tc := range map[string]struct {
		e      Exam
		hop    time.Duration
		length time.Duration // 0: not known
		step   time.Duration
	}{
		"recordings":                          {Exam{Model: &model.Model{Window: two, Layout: waves}, Inputs: []Input{{}}}, time.Minute, 2 * time.Second, time.Second},
		"a table without a length":            {Exam{Model: &model.Model{Window: second, Layout: features(1)}, Inputs: rows}, 0, 0, 0},
		"the model was trained on recordings": {Exam{Model: &model.Model{Window: second, Layout: features(1), Provenance: model.Provenance{LengthKnown: true}}, Inputs: rows}, 0, time.Second, time.Second},
		"said":                                {Exam{Model: &model.Model{Window: second, Layout: features(1)}, Inputs: rows, Window: window.Spec{Length: 3 * time.Second}}, 0, 3 * time.Second, 3 * time.Second},
		"said, and rows overlap":              {Exam{Model: &model.Model{Window: second, Layout: features(1)}, Inputs: rows, Window: two}, time.Second, 2 * time.Second, time.Second},
		"said, and there are pauses":          {Exam{Model: &model.Model{Window: second, Layout: features(1)}, Inputs: rows, Window: two}, time.Hour, 2 * time.Second, 2 * time.Second},
		"by the column start":                 {Exam{Model: &model.Model{Window: second, Layout: features(1)}, Inputs: rows}, 5 * time.Second, 5 * time.Second, 5 * time.Second},
	} {
		got := tc.e.windowTime(tc.hop)
		if known := got.Unknown == ""; known != (tc.length > 0) || known && (got.Length != tc.length || got.Step() != tc.step) || got.Length <= 0 {
			t.Errorf("%s: %v every %v, %q", name, got.Length, got.Step(), got.Unknown)
		}
	}
}

func TestMedianHop(t *testing.T) {
	at := func(tool string, seconds ...int) (os []observed) {
		for _, s := range seconds {
			o := observed{machine: "m"}
			o.Tool = tool
			if s >= 0 {
				o.Start = time.Unix(int64(s), 0)
			}
			os = append(os, o)
		}
		return os
	}
	for name, tc := range map[string]struct {
		found [][]observed
		want  time.Duration
	}{
		"none":             {nil, 0},
		"one row":          {[][]observed{at("A", 5)}, 0},
		"no times":         {[][]observed{at("A", -1, -1, -1)}, 0},
		"with a pause":     {[][]observed{at("A", 0, 2, 4, 600, 602)}, 2 * time.Second},
		"tools are apart":  {[][]observed{append(at("A", 0, 3, 6), at("B", 1, 4)...)}, 3 * time.Second},
		"times go back":    {[][]observed{at("A", 0, 2, 1)}, 0},
		"the same time":    {[][]observed{at("A", 0, 0, 0)}, 0},
		"several inputs":   {[][]observed{at("A", 0, 1), at("A", 100, 101)}, time.Second},
		"one has no times": {[][]observed{at("A", 0, 1), at("A", -1, -1)}, 0},
	} {
		if got := medianHop(tc.found); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
