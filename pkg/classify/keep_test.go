package classify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// drawer keeps networks in memory and stops the work once it has saved so often.
type drawer struct {
	mu     sync.Mutex
	kept   map[string][]byte
	loaded int
	states bool // keeps the states of trainings too
	saved  int
	stop   func()
	after  int
}

func (d *drawer) Watch() func() bool { return func() bool { return d.states } }

func (d *drawer) Load(name string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.kept[name]
	if ok {
		d.loaded++
	}
	return b, ok
}

func (d *drawer) Save(name string, b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[name] = bytes.Clone(b)
	if d.saved++; d.saved == d.after {
		d.stop()
	}
	return nil
}

// separable returns rows of four groups, of which class 1 is the far ones.
func separable() (dbn.Matrix, []int, []string) {
	x := dbn.NewMatrix(80, 2)
	y, groups := make([]int, 80), make([]string, 80)
	for i := range y {
		groups[i] = fmt.Sprint("g", i/20)
		x.Row(i)[0], x.Row(i)[1] = float32(i%7), float32(i%5)
		if i%20 >= 14 {
			y[i] = 1
			x.Row(i)[0] += 6
		}
	}
	return x, y, groups
}

// Work that is cut off after each network in turn, or after each epoch of each,
// ends in the same bytes as work that is not, and trains no network, or epoch,
// twice.
func TestKeptNetworks(t *testing.T) {
	for name, states := range map[string]bool{"networks": false, "epochs": true} {
		t.Run(name, func(t *testing.T) { testKeptNetworks(t, states) })
	}
}

func testKeptNetworks(t *testing.T, states bool) {
	x, y, groups := separable()
	s := Settings{Seed: 3, Workers: 1, Network: dbn.Settings{Hidden: []int{3}, Pretrain: dbn.PretrainSettings{Epochs: 2}, FineTune: dbn.FineTuneSettings{Epochs: 3}}}
	whole, _, err := Fit(t.Context(), x, y, groups, s)
	if err != nil {
		t.Fatal(err)
	}
	want, err := whole.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &drawer{kept: make(map[string][]byte), states: states}
	s.Keep = d
	saves := 5 // networks
	if states {
		saves *= 5 // epochs of each, the network after the last
	}
	cuts := 0
	for d.after = 1; ; d.after++ {
		ctx, cancel := context.WithCancel(t.Context())
		d.stop = cancel
		c, r, err := Fit(ctx, x, y, groups, s)
		cancel()
		if err != nil {
			if cuts++; !errors.Is(err, context.Canceled) || cuts > saves {
				t.Fatal(err)
			}
			continue
		}
		if cuts < saves-1 || d.saved != saves {
			t.Errorf("%d cuts, saved %d times, want %d", cuts, d.saved, saves)
		}
		got, err := c.AppendBinary(nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("after %d interruptions the classifier differs: %v", d.after-1, err)
		}
		if len(r.History.Loss) != 3 || len(d.kept) != 5 {
			t.Errorf("history %+v, %d networks", r.History, len(d.kept))
		}
		break
	}
	// Damaged ones are trained again, and other settings find none.
	for _, kind := range []byte{keptNetwork, keptState, 'x'} {
		for name, b := range d.kept {
			d.kept[name] = append([]byte{kind}, b[1:len(b)-3]...)
		}
		if c, _, err := Fit(t.Context(), x, y, groups, s); err != nil {
			t.Error(err)
		} else if got, _ := c.AppendBinary(nil); !bytes.Equal(got, want) {
			t.Error("damaged networks were used")
		}
	}
	d.loaded = 0
	s.Seed++
	if _, _, err := Fit(t.Context(), x, y, groups, s); err != nil || d.loaded != 0 {
		t.Errorf("%d networks of another seed were used, %v", d.loaded, err)
	}
}
