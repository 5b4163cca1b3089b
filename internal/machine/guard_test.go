package machine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const guardSensors = 4

// guarded returns a model of four sensors, each a channel, with a guard. A tool is faulty when they read twice what they did.
func guarded(t *testing.T) *model.Model {
	t.Helper()
	var channels []signal.Channel
	x := dbn.NewMatrix(6*40, guardSensors)
	tb := &classify.Table{X: x, Ordered: true}
	for s := range guardSensors {
		name := fmt.Sprint("s", s)
		channels = append(channels, signal.Channel{Name: name, Kind: signal.Feature, Rate: 1})
		tb.Sensors = append(tb.Sensors, vote.Sensor{Name: name, Columns: []int{s}, Kinds: []vote.Kind{vote.RMS}})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x.Rows {
		age := float64(i%40) / 40
		for s := range guardSensors {
			x.Row(i)[s] = float32(age*(1+0.2*float64(s)) + 0.05*rng.NormFloat64())
		}
		class := 0
		if age >= 0.7 {
			class = 1
		}
		tb.Y, tb.Groups = append(tb.Y, class), append(tb.Groups, fmt.Sprint("T", i/40))
	}
	c, r, err := classify.FitTable(t.Context(), tb, classify.Settings{
		Network: dbn.Settings{Hidden: []int{3}, Pretrain: dbn.PretrainSettings{Epochs: 2}, FineTune: dbn.FineTuneSettings{Epochs: 60}}, Seed: 1, Guard: classify.GuardVote,
	})
	if err != nil || c.Guard() == nil {
		t.Fatal(err, r)
	}
	layout, err := signal.NewLayout("four sensors", channels)
	if err != nil {
		t.Fatal(err)
	}
	m := &model.Model{
		Layout: layout, Window: window.DefaultSpec, Reference: model.ReferenceSpec{Windows: 2, Mode: model.ReferenceRatio},
		Usual: make([]signal.Quality, guardSensors), Classifier: c,
	}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// A sensor that is stuck is known in the third window, whether or not the monitor starts again in between; the result names its
// channel, and an advisory the sensor once five of eight windows are so. The alarm of the worn tool comes all the same.
func TestStuckSensorOfAGuard(t *testing.T) {
	m := guarded(t)
	for _, tc := range []struct {
		restarts bool
		stuck    uint64 // from this window on
		want     []string
	}{
		{false, 8, []string{"14 drill: SENSOR s2 Failure: flatline; tool verdict on 3 channels", "21 raised [s2] true"}},
		{true, 8, []string{"14 drill: SENSOR s2 Failure: flatline; tool verdict on 3 channels", "21 raised [s2] true"}},
		{false, 18, []string{"21 raised [] false", "24 drill: SENSOR s2 Failure: flatline; tool verdict on 3 channels"}}, // the alarm comes before the sensor is named
	} {
		b := newBench(t, m)
		rng := rand.New(rand.NewPCG(3, 4))
		var flagged []uint64
		var said []string
		for seq := range uint64(30) {
			w := at(seq, "T1", false)
			w.Samples, w.Quality = nil, make([]signal.Quality, guardSensors)
			for s := range guardSensors {
				v := 10 + 0.2*rng.NormFloat64()
				if seq >= 20 {
					v *= 2.2
				}
				if s == 2 && seq >= tc.stuck {
					v = 10.125
				}
				w.Samples = append(w.Samples, []float32{float32(v)})
			}
			if tc.restarts && seq > 0 {
				b.restart()
			}
			d := b.window(w)
			if slices.ContainsFunc(d.Result.Sensors, func(s event.Sensor) bool { return s.Channel == "s2" && slices.Equal(s.Flags, []string{"flatline"}) }) {
				flagged = append(flagged, seq)
			} else if len(d.Result.Sensors) > 0 {
				t.Fatalf("window %d: %+v", seq, d.Result.Sensors)
			}
			for _, a := range d.Advisories {
				said = append(said, fmt.Sprint(seq, " ", a.Text))
			}
			for _, a := range d.Alerts {
				said = append(said, fmt.Sprint(seq, " ", a.State, " ", a.Reasons.Doubted, " ", strings.Contains(a.Text, " In doubt: s2.")))
			}
		}
		if first := tc.stuck + 2; uint64(len(flagged)) != 30-first || flagged[0] != first {
			t.Errorf("restarts %t: flagged in windows %v, want %d to 29", tc.restarts, flagged, first)
		}
		if !slices.Equal(said, tc.want) {
			t.Errorf("restarts %t: said %q, want %q", tc.restarts, said, tc.want)
		}
	}
}
