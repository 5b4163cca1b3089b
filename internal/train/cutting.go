package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// cuttingOf returns what may tell when the machine is cutting, still to be learnt.
func cuttingOf(m *model.Model) (*model.Gate, *cycle.Model) {
	c := cycle.New(m.Layout, m.SamplesPerChannel())
	if name, ok := gateChannel(m.Layout); ok {
		return &model.Gate{Channel: name}, c
	}
	return nil, c
}

// settleCutting learns when the machine is cutting: the states of its cycle, or a
// level, or nothing.
func (j *Job) settleCutting(m *model.Model, found [][]observed) error {
	if m.Gate != nil {
		m.Gate = settleGate(m.Gate, m.Layout.Index(m.Gate.Channel), found)
	}
	if m.Cycle == nil {
		return nil
	}
	why, err := settleCycle(m, found)
	if err == nil && why != "" {
		j.Log.Info().Str("why", why).Str("cutting", m.Cutting()).Msg("the model cannot learn the states of the machine's cycle")
	}
	return err
}

// settleCycle lets the model learn the machine's cycle, or drops it; then a gate,
// if the model has one, decides what is cutting. It returns why, in words.
func settleCycle(m *model.Model, found [][]observed) (why string, err error) {
	tracks := tracksOf(m, found)
	var levels []float64
	for _, t := range tracks {
		for i := 0; i < len(t); i += len(m.Cycle.Inputs) {
			if v := t[i]; v == v {
				levels = append(levels, math.Abs(float64(v)))
			}
		}
	}
	blank := m.Cycle
	m.Cycle = nil
	threshold, ok := learnGate(levels)
	if !ok {
		return fmt.Sprintf("the level of %s does not fall into two kinds, so the recordings show no start and no end of a cut", blank.Inputs[0].Channel), nil
	}
	learnt, err := blank.Learn(tracks, threshold)
	if errors.Is(err, cycle.ErrNoCycle) {
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	m.Cycle = learnt
	return "", nil
}

// tracksOf returns the frames of consecutive windows, of one tool each. Channels
// with a sensor fault are missing in them.
func tracksOf(m *model.Model, found [][]observed) [][]float32 {
	var tracks [][]float32
	nan := float32(math.NaN())
	inputs := len(m.Cycle.Inputs)
	frames := m.Cycle.StepFrames(m.Window.Length, m.Window.Step())
	for _, os := range found {
		for i := range os {
			o := &os[i]
			if len(o.Frames) == 0 {
				continue // a row of a table
			}
			if i == 0 || !follows(m, &os[i-1], o) {
				tracks = append(tracks, nil)
			}
			t := &tracks[len(tracks)-1]
			*t = append(*t, o.Frames[:frames*inputs]...)
			for c, in := range m.Cycle.Inputs {
				k := m.Layout.Index(in.Channel)
				if o.Quality[k]&^m.Usual[k] == 0 {
					continue
				}
				for at := len(*t) - frames*inputs + c; at < len(*t); at += inputs {
					(*t)[at] = nan
				}
			}
		}
	}
	return tracks
}

// follows reports whether window b comes next after a.
func follows(m *model.Model, a, b *observed) bool {
	gap := b.Start.Sub(a.Start) - m.Window.Step()
	return len(a.Frames) > 0 && a.machine == b.machine && a.Tool == b.Tool && gap.Abs() < m.Window.Length/2
}
