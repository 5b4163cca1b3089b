package dbn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// curricula are trainings that differ in what has to be kept of them.
func curricula() map[string]Settings {
	v, labels := exclusiveOr(90, rand.New(rand.NewPCG(3, 4)))
	more, _ := exclusiveOr(410, rand.New(rand.NewPCG(5, 6)))
	return map[string]Settings{
		"more rows to pre-train on": {
			Hidden: []int{7, 5}, Pretrain: PretrainSettings{Epochs: 3, Batch: 70, Rows: more}, FineTune: FineTuneSettings{Epochs: 3, Batch: 80},
		},
		"three layers, Adam": {
			Hidden: []int{7, 5, 3}, Pretrain: PretrainSettings{Epochs: 3, Batch: 70}, FineTune: FineTuneSettings{Epochs: 4, Batch: 80},
		},
		"Gaussian, persistent chains, momentum": {
			Hidden: []int{6, 4}, Visible: Gaussian,
			Pretrain: PretrainSettings{Epochs: 2, Batch: 130, Persistent: true, Rate: 0.01, Momentum: -1}, FineTune: FineTuneSettings{Epochs: 3, Method: sgd},
		},
		"persistent chains, sparse, three steps": {
			Hidden: []int{6}, Pretrain: PretrainSettings{Epochs: 7, Persistent: true, Steps: 3, Sparsity: 0.2}, FineTune: FineTuneSettings{Epochs: 1},
		},
		"no pre-training, weights of classes": {
			Hidden: []int{6, 4}, Pretrain: PretrainSettings{Epochs: -1}, FineTune: FineTuneSettings{Epochs: 5}, ClassWeights: []float64{1, 3},
		},
		"early stopping": {
			Hidden: []int{8, 8}, Pretrain: PretrainSettings{Epochs: 2, Validation: v},
			FineTune: FineTuneSettings{Epochs: 60, Rate: 0.2, Validation: v, Labels: labels, Patience: 5},
		},
	}
}

// A training that is cut off after any epoch and goes on from there, with
// another number of workers, ends in the bytes and the history of one that is
// not.
func TestResume(t *testing.T) {
	x, y := exclusiveOr(300, rand.New(rand.NewPCG(1, 2)))
	for name, s := range curricula() {
		for _, of := range []string{"memory", "disk"} {
			t.Run(name+", rows in "+of, func(t *testing.T) {
				train := func(s Settings) ([]byte, *History) {
					t.Helper()
					s = s.withDefaults()
					f := newFeed(x, y, s.Visible)
					if of == "disk" {
						f = diskFeed(x, y, s.Visible, 30, 4)
					}
					n, h, err := train(context.Background(), f, 2, s)
					if err != nil {
						t.Fatal(err)
					}
					b, err := n.AppendBinary(nil)
					if err != nil {
						t.Fatal(err)
					}
					return b, h
				}
				s := s
				s.Workers = 1
				var states [][]byte
				var progress [][2]any
				s.Progress = func(phase string, done, _ int) { progress = append(progress, [2]any{phase, done}) }
				want, history := train(s)
				epochs := slices.Clone(progress)
				s.Checkpoint = func(state func() []byte) error {
					states = append(states, state())
					return nil
				}
				if got, _ := train(s); !bytes.Equal(got, want) {
					t.Fatal("a training whose states are kept ends otherwise")
				}
				if len(states) != len(epochs)-1 {
					t.Fatalf("%d states of %d epochs", len(states), len(epochs))
				}
				s.Workers = 3
				whole := states
				for i, state := range whole {
					s.Resume, states, progress = state, nil, nil
					got, h := train(s)
					if !bytes.Equal(got, want) {
						t.Fatalf("cut off after epoch %d: another network", i+1)
					}
					if !reflect.DeepEqual(h, history) {
						t.Fatalf("cut off after epoch %d: history\n%v, want\n%v", i+1, h, history)
					}
					if !slices.Equal(progress, epochs[i+1:]) {
						t.Fatalf("cut off after epoch %d: progress %v, want %v", i+1, progress, epochs[i+1:])
					}
					for k, again := range states {
						if !bytes.Equal(again, whole[i+1+k]) {
							t.Fatalf("cut off after epoch %d: another state after epoch %d", i+1, i+2+k)
						}
					}
				}
			})
		}
	}
}

func TestResumeRefuses(t *testing.T) {
	x, y := exclusiveOr(60, rand.New(rand.NewPCG(1, 2)))
	s := Settings{Hidden: []int{4}, Pretrain: PretrainSettings{Epochs: 2}, FineTune: FineTuneSettings{Epochs: 3}}
	var states [][]byte
	s.Checkpoint = func(state func() []byte) error {
		states = append(states, state())
		return nil
	}
	if _, _, err := Train(t.Context(), x, y, 2, s); err != nil {
		t.Fatal(err)
	}
	other, _ := exclusiveOr(60, rand.New(rand.NewPCG(1, 3)))
	flipped := slices.Clone(y)
	flipped[17] = 1 - flipped[17]
	sealed := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)) }
	body := func(b []byte) []byte { return slices.Clone(b[:len(b)-4]) }
	for _, state := range states {
		for name, tc := range map[string]struct {
			x     Matrix
			y     []int
			set   func(*Settings)
			state []byte
			want  string
		}{
			"nothing":           {x, y, nil, []byte{}, "does not begin"},
			"a network":         {x, y, nil, append([]byte("FDBN"), state[4:]...), "does not begin"},
			"a bit":             {x, y, nil, append(slices.Clone(state[:99]), append([]byte{state[99] ^ 1}, state[100:]...)...), "damaged"},
			"another version":   {x, y, nil, append([]byte("FDBT\x01"), state[5:]...), "version is 1"},
			"other rows":        {other, y, nil, state, "other rows or labels"},
			"fewer rows":        {x.rows(0, 50), y[:50], nil, state, "other rows or labels"},
			"other labels":      {x, flipped, nil, state, "other rows or labels"},
			"another seed":      {x, y, func(s *Settings) { s.Seed++ }, state, "other settings"},
			"more epochs":       {x, y, func(s *Settings) { s.FineTune.Epochs++ }, state, "other settings"},
			"wider":             {x, y, func(s *Settings) { s.Hidden = []int{5} }, state, "other settings"},
			"other validation":  {x, y, func(s *Settings) { s.Pretrain.Validation = other }, state, "other settings"},
			"shorter but whole": {x, y, nil, sealed(body(state)[:len(state)-12]), "missing"},
			"longer":            {x, y, nil, sealed(append(body(state), 0)), "left over"},
			"layers":            {x, y, nil, sealed(append(append(body(state)[:stateHeader], 9), body(state)[stateHeader+1:]...)), "more layers"},
			"rows twice":        {x, y, nil, sealed(append(append(body(state)[:stateHeader+16], 0, 0, 0, 0, 0, 0, 0, 0), body(state)[stateHeader+24:]...)), "twice"},
		} {
			s := s
			s.Checkpoint, s.Resume = nil, tc.state
			if tc.set != nil {
				tc.set(&s)
			}
			if _, _, err := Train(t.Context(), tc.x, tc.y, 2, s); !errors.Is(err, ErrResume) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want %q", name, err, tc.want)
			}
		}
		for n := range state {
			s := s
			s.Checkpoint, s.Resume = nil, state[:n]
			if _, _, err := Train(t.Context(), x, y, 2, s); !errors.Is(err, ErrResume) {
				t.Fatalf("%d of %d bytes: error %v", n, len(state), err)
			}
		}
	}
	broken := errors.New("disk full")
	s.Checkpoint = func(func() []byte) error { return broken }
	if _, _, err := Train(t.Context(), x, y, 2, s); !errors.Is(err, broken) {
		t.Errorf("a checkpoint that fails: error %v", err)
	}
}

// With any bytes behind a right header and a right checksum, training goes on or says
// why not.
func FuzzResume(f *testing.F) {
	x, y := exclusiveOr(40, rand.New(rand.NewPCG(1, 2)))
	v, labels := exclusiveOr(10, rand.New(rand.NewPCG(3, 4)))
	s := Settings{Hidden: []int{3, 2}, Pretrain: PretrainSettings{Epochs: 2, Persistent: true}, FineTune: FineTuneSettings{Epochs: 3, Validation: v, Labels: labels}}
	s.Checkpoint = func(state func() []byte) error {
		f.Add(state()[stateHeader:])
		return nil
	}
	if _, _, err := Train(f.Context(), x, y, 2, s); err != nil {
		f.Fatal(err)
	}
	s.Checkpoint = nil
	header, err := stateHeaderOf(newFeed(x, y, Bernoulli), 2, s.withDefaults())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 4 {
			return
		}
		b = append(slices.Clone(header), b[:len(b)-4]...)
		s := s
		s.Resume = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		if _, _, err := Train(t.Context(), x, y, 2, s); err != nil && !errors.Is(err, ErrResume) && !errors.Is(err, ErrDiverged) {
			t.Fatal(err)
		}
	})
}
