package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/export"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/vote"
)

// Features belong to the sensor that their names or the layout name, and their kinds follow from their names.
func TestSensorsOf(t *testing.T) {
	names := []string{"F_c_RMS", "F_c_KURT", "F_c_MEAN", "acc.max", "power", "x.coh"}
	level := signal.Gain{Power: 1}
	got := sensorsOf(names, []signal.FeatureOrigin{
		{Sensor: "F_c", Group: "F", Gain: level}, {Sensor: "F_c", Group: "F"}, {Sensor: "F_c", Group: "F", Gain: level},
		{Sensor: "acc", Group: "g", Gain: level}, {Sensor: "power", Gain: level}, {Sensor: "x", Other: "y"},
	})
	want := []vote.Sensor{
		{Name: "F_c", Unit: "F", Columns: []int{0, 1, 2}, Kinds: []vote.Kind{vote.RMS, vote.Other, vote.Mean}},
		{Name: "acc", Unit: "g", Columns: []int{3}, Kinds: []vote.Kind{vote.Max}},
		{Name: "power", Columns: []int{4}, Kinds: []vote.Kind{vote.Other}},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A model that was trained with a guard has it in its file and judges by it, the report says so, and exports, which lack it, refuse
// the model. Where there cannot be one the report says why.
func TestGuardedModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	sensors := []string{"F_c_RMS", "F_f_RMS", "F_p_RMS", "AE_RMS", "TV_RMS"}
	var csv strings.Builder
	fmt.Fprintf(&csv, "tool,%s,vb\n", strings.Join(sensors, ","))
	for tool := range 6 {
		for s := range 50 {
			um := 400 * float64(s) / 49
			fmt.Fprintf(&csv, "T%d", tool)
			for k := range sensors {
				fmt.Fprintf(&csv, ",%.4f", float64(tool+1)*math.Exp(um/float64(300+100*k)+0.03*rng.NormFloat64()))
			}
			fmt.Fprintf(&csv, ",%.1f\n", um)
		}
	}
	var channels []signal.Channel
	for _, name := range sensors {
		channels = append(channels, signal.Channel{Name: name, Kind: signal.Feature, Rate: 1})
	}
	for _, mode := range []model.Mode{model.ReferenceLog, model.ReferenceAuto} {
		j := latheJob(t)
		j.Layout = layout(t, "five sensors", channels)
		j.Inputs = []Input{latheInput(t, j.Layout, "guarded", "lathe", csv.String())}
		j.Config.Guard, j.Config.Reference.Mode = classify.GuardVote, mode
		m, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if m.Classifier.Guard() == nil || r.Fit.Guard.Off != "" {
			t.Fatalf("%s: %+v", mode, r.Fit.Guard)
		}
		ratios, want := 0, 0 // of two forces to the third one, where features are logarithms
		if mode == model.ReferenceLog || r.Fit.View == string(model.ReferenceLog) {
			want = 2
		}
		for _, x := range r.Fit.Guard.Experts {
			if x.Ratio {
				ratios++
			}
		}
		if ratios != want {
			t.Errorf("%s: %d ratios of the three forces, want %d", mode, ratios, want)
		}
		if r.Pooled.GMean < 0.9 || r.Robustness.Worst < 0.8 || !r.Robustness.Guarded {
			t.Errorf("%s: G-mean %v on tools held out, %v with the worst sensor", mode, r.Pooled.GMean, r.Robustness.Worst)
		}
		if want := "experts bounds the network, of the sensors "; !strings.Contains(r.Summary(), want) || !strings.Contains(cardText(t, r), want) {
			t.Errorf("%s: the report does not name the guard", mode)
		}
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := model.Decode(b)
		if err != nil || read.Classifier.Guard() == nil {
			t.Fatalf("%s: read again: %v", mode, err)
		}
		e, err := Exam{Model: read, Inputs: j.Inputs, Alarm: alarm.Default}.Run(t.Context())
		if err != nil || e.Pooled.GMean < 0.9 {
			t.Errorf("%s: G-mean %v on its own data, %v", mode, e.Pooled.GMean, err)
		}
		for name, form := range map[string]func(*model.Model) ([]byte, error){"ONNX": export.ONNX, "safetensors": export.Safetensors} {
			if _, err := form(read); err == nil || !strings.Contains(err.Error(), "has a guard") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	j := latheJob(t)
	j.prepare()
	j.Config.Reference.Mode = model.ReferenceLog
	rows, _, _, err := j.rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	relations := rows.rel.relations
	if s := rows.settle(model.ReferenceLog, 5); !slices.Equal(rows.logs, s.Logs(relations)) || !slices.Contains(rows.logs, true) {
		t.Errorf("rows that are relative for good: logarithms %v, want %v", rows.logs, s.Logs(relations))
	}

	j = latheJob(t)
	quick(&j.Config)
	j.Config.Guard = classify.GuardVote
	if _, r, err := Run(t.Context(), j); err != nil || r.Fit.Guard == nil || !strings.Contains(r.Summary(), "no guard: "+r.Fit.Guard.Off) || r.Fit.Guard.Off == "" {
		t.Errorf("on the lathe: %v", err)
	}
}
