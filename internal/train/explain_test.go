package train

import (
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// A model that has learnt from the simulated drill that one channel rises when
// the tool fails, by half of torque or thrust or by twice of a vibration, names that
// channel in faulty windows that it has not seen. (What a model has not learnt it cannot
// name: an explanation is of the model.)
func TestExplanationNamesWhatRises(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("takes a minute with the race detector, and starts nothing of its own")
	}
	known, fresh, err := smallDrill()
	if err != nil {
		t.Fatal(err)
	}
	blocks := drilled(t, fresh, 1<<62, 64) // one hole, so that it drills to the end
	// each calls do for the windows that can be judged, where a channel has the gain
	// once the reference is there.
	each := func(m *model.Model, channel int, gain float32, do func(n int, j *model.Judge, row []float32, ref *model.Reference)) {
		s, err := window.NewSlicer(m.Layout, m.Window)
		if err != nil {
			t.Fatal(err)
		}
		j, n := m.NewJudge(), 0
		var ref model.Reference
		var memory model.Memory
		var o model.Observation
		for i := range blocks {
			s.Push(&blocks[i][0])
			s.Push(&blocks[i][1])
			for ev, ok := s.Next(); ok; ev, ok = s.Next() {
				w := ev.Window
				if ref.Ready(m.Reference) {
					w.Samples[channel] = slices.Clone(w.Samples[channel])
					for k := range w.Samples[channel] {
						w.Samples[channel][k] *= gain
					}
				}
				j.Observe(w, &o)
				if row, _ := j.Row(&o, &ref, &memory); row != nil {
					do(n, j, row, &ref)
					n++
				}
			}
		}
	}
	for name, gain := range map[string]float32{"torque": 1.5, "thrust": 1.5, "ch05": 2} {
		channel := known.Layout.Index(name)
		x := dbn.Matrix{Cols: known.Classifier.Columns()}
		var y []int
		for label, gain := range []float32{1, gain} {
			each(known, channel, gain, func(n int, _ *model.Judge, row []float32, _ *model.Reference) {
				if n%2 == 0 {
					x.Data, y = append(x.Data, row...), append(y, label)
					x.Rows++
				}
			})
		}
		m := *known
		m.Classifier, _, err = classify.Fit(t.Context(), x, y, nil, classify.Settings{
			Network: dbn.Settings{Hidden: []int{10}, Pretrain: dbn.PretrainSettings{Epochs: 5}, FineTune: dbn.FineTuneSettings{Epochs: 40}},
			Costs:   classify.CostSettings{Folds: 2}, Seed: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		named, windows := 0, 0
		each(&m, channel, gain, func(n int, j *model.Judge, _ []float32, ref *model.Reference) {
			if n%2 == 0 {
				return
			}
			e := j.Explain(ref)
			if e.Total <= 0 {
				return // not called faulty
			}
			windows++
			if slices.Max(e.Channels) == e.Channels[channel] {
				named++
			}
		})
		t.Logf("%s: named in %d of %d faulty windows", name, named, windows)
		if windows < 15 || named < windows*9/10 {
			t.Errorf("%s rose to %v times what it was, and is named in %d of %d faulty windows", name, gain, named, windows)
		}
	}
}
