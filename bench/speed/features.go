//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// drillWindow returns a window of the simulated gun drill while it cuts.
func drillWindow(ctx context.Context) (*window.Window, *signal.Layout, error) {
	src, err := sim.New(sim.Settings{
		Machine: "acme/spore/bay2/line1/usk25", Start: time.Unix(1767592800, 0).UTC(), Seed: 1, Tools: sim.Tools(1, time.Minute), Count: 1,
		Hole: 10 * time.Second, Pause: 3 * time.Second,
	})
	if err != nil {
		return nil, nil, err
	}
	cut, err := source.NewCutter(src, window.DefaultSpec)
	for n := 0; err == nil; {
		var c source.Cut
		if c, err = cut.Next(ctx); err == nil && c.Window != nil {
			if n++; n == 5 {
				return c.Window, src.Layout(), nil
			}
		}
	}
	return nil, nil, err
}

// opener opens windows of the gun drill, and extracts their features.
type opener struct {
	codec     *window.Codec
	extractor *window.FeatureExtractor
	form      *window.Form
	sealed    window.Envelope
	window    window.Window
	features  window.Features
}

func newOpener(w *window.Window, l *signal.Layout) (*opener, error) {
	codec, err := window.NewCodec(l, window.DefaultSpec)
	if err != nil {
		return nil, err
	}
	form, err := window.NewForm(l, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		return nil, err
	}
	o := &opener{codec: codec, form: form, extractor: form.NewExtractor()}
	o.sealed, err = codec.Seal(w)
	return o, err
}

// open takes a window from the value of its message to its features.
func (o *opener) open() error {
	if err := o.codec.Open(o.sealed, &o.window); err != nil {
		return err
	}
	o.extractor.Extract(&o.window, &o.features)
	return nil
}

// newFeatures makes a task of "features FILE windows trials", where the file is for peers.
func newFeatures(words []string) (task, error) {
	var file string
	var windows, trials int
	if _, err := fmt.Sscan(strings.Join(words, " "), &file, &windows, &trials); err != nil {
		return nil, err
	}
	w, l, err := drillWindow(context.Background())
	if err != nil {
		return nil, err
	}
	o, err := newOpener(w, l)
	if err != nil {
		return nil, err
	}
	return func() (seconds, error) {
		var failed error
		t := best(trials, func() {
			for range windows {
				if err := o.open(); err != nil {
					failed = err
				}
			}
		})
		return t, failed
	}, nil
}

// featureTolerance is by how much of its size, and at least of 1, a value of the peer may differ: both count in float32.
const featureTolerance = 1e-3

// sameFeatures reports values of the peer that are not ours.
func (o *opener) sameFeatures(line string) error {
	if err := o.open(); err != nil {
		return err
	}
	theirs := make(map[string]float64)
	fields := strings.Fields(line)
	for i := 0; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i+1], 64)
		if err != nil {
			return err
		}
		theirs[fields[i]] = v
	}
	if len(theirs) != len(o.form.Names()) {
		return fmt.Errorf("%d features, ours are %d", len(theirs), len(o.form.Names()))
	}
	for i, name := range o.form.Names() {
		ours := float64(o.features.Values[i])
		v, there := theirs[name]
		if !there || math.IsNaN(v) != math.IsNaN(ours) || math.Abs(v-ours) > featureTolerance*max(1, math.Abs(ours)) {
			return fmt.Errorf("feature %s is %v, ours is %v", name, v, ours)
		}
	}
	return nil
}

// features: from the message of a window to its features, on one thread.
func (b *bench) features() error {
	w, l, err := drillWindow(b.ctx)
	if err != nil {
		return err
	}
	o, err := newOpener(w, l)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "speed")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "window.arrow")
	if err := os.WriteFile(file, o.sealed.Value, 0o600); err != nil {
		return err
	}
	line, err := b.signal.ask("values " + file)
	if err == nil {
		err = o.sameFeatures(line)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", b.signal.name, err)
	}
	request := "features " + file + " 10 5"
	t, err := b.race(cpu, contender{b.best, request}, contender{b.signal, request})
	if err != nil {
		return err
	}
	version, err := b.signal.ask("version")
	if err != nil {
		return err
	}
	b.printf("## Features\n\nFrom the value of a window's message, an Arrow stream of %d bytes, to its %d features, on one thread: milliseconds of the processor, the best of 5 trials of 10 windows in each of %d rounds. "+
		"The peer is `bench/peers/signal/fast.py`: Arrow without a copy, float32, one Fourier transform for power, envelope and lines, wavelets of all channels at once. Its values are ours, to a thousandth of their size.\n\n%s.\n\n| | |\n|---|---:|\n",
		len(o.sealed.Value), len(o.form.Names()), b.rounds, machine())
	b.printf("| ours | %.2f |\n| %s | %.2f |\n| its time by ours | %.1f× |\n\n", 100*t.median(0), version, 100*t.median(1), t.ratio(1, 0))
	return nil
}
