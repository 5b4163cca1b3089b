package classify

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// Of four tools that are left out one after the other, networks learn from each three, from each two, and from all four: 4, 6 and 1,
// and not 4 of three folds each with 3 more, and 5. No result changes by it, with any number of workers.
func TestSharedNetworks(t *testing.T) {
	tb := wearing(3, 40, []string{"A", "B", "C", "D"}, []string{"E"})
	s := quick()
	s.Costs.Folds = 10
	fits := func(shared *Shared, workers int) (*Validation, []byte) {
		s.Shared, s.Workers = shared, workers
		v, err := CrossValidateTable(t.Context(), tb, s, LeaveOneGroupOut(tb.Groups))
		if err != nil {
			t.Fatal(err)
		}
		c, _ := tableFitted(t, tb, s)
		return v, bytesOf(t, c)
	}
	want, classifier := fits(nil, 1)
	shared := NewShared()
	for _, workers := range []int{1, 4, 4} { // the third time all are known
		v, b := fits(shared, workers)
		if !slices.Equal(v.Posterior, want.Posterior) || !slices.Equal(v.Score, want.Score) || !bytes.Equal(b, classifier) {
			t.Errorf("%d workers: what is shared changes a result", workers)
		}
		if n := len(shared.networks); n != 11 {
			t.Errorf("%d workers: %d networks, want 11", workers, n)
		}
	}
	for _, bins := range []int{3, 5} { // encoders of the same rows
		e, err := shared.encoder(tb.X.(dbn.Matrix), Bins, bins, nil)
		if err != nil {
			t.Fatal(err)
		}
		if alone := encoderOf(t, tb.X.(dbn.Matrix), Bins, bins); e.inputs != alone.inputs {
			t.Errorf("%d bins: %d inputs, want %d", bins, e.inputs, alone.inputs)
		}
	}
	s.Network.FineTune.Rate /= 2
	if _, b := fits(shared, 2); len(shared.networks) != 22 || bytes.Equal(b, classifier) {
		t.Errorf("networks of other settings are shared: %d", len(shared.networks))
	}
}

// A training that was cut off is not remembered.
func TestSharedAfterAnError(t *testing.T) {
	x, y := clusters(3, 2, 1, 30, 20)
	s, shared := quick(), NewShared()
	s.Shared = shared
	cause := errors.New("someone pressed Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	s.Progress = func(string, int, int) { cancel(cause) }
	if _, _, err := Fit(ctx, x, y, nil, s); !errors.Is(err, cause) {
		t.Fatal(err)
	}
	s.Progress = nil
	want, _ := fitted(t, x, y, nil, quick())
	if got, _ := fitted(t, x, y, nil, s); !bytes.Equal(bytesOf(t, got), bytesOf(t, want)) {
		t.Error("the fit after it is another one")
	}
}

// Rows that are not in memory are read as often as ever: what they are is not known.
func TestRowsOnDiskAreNotShared(t *testing.T) {
	x, y := clusters(3, 2, 1, 30, 20)
	s := quick()
	s.Shared = NewShared()
	if _, _, err := Fit(t.Context(), onDiskRows(x), y, nil, s); err != nil || len(s.Shared.networks) != 0 {
		t.Errorf("%d networks, %v", len(s.Shared.networks), err)
	}
	if _, _, err := Fit(t.Context(), x, y, nil, s); err != nil || len(s.Shared.networks) == 0 {
		t.Errorf("%d networks, %v", len(s.Shared.networks), err)
	}
}

// The seed of a network follows from the rows that it learns from, in whichever order others were left out.
func TestSeedOfRows(t *testing.T) {
	one := Settings{root: 1, Seed: 5}
	tb := wearing(3, 10, []string{"A", "B", "C"}, []string{"D", "E"})
	d := tb.whole()
	leave := func(d subset, groups ...string) subset {
		for _, g := range groups {
			var train, test rowSet
			d.rows.each(func(i int) {
				if tb.Groups[i] == g {
					test.add(i)
				} else {
					train.add(i)
				}
			})
			d = d.learnFrom(train, test, false)
		}
		return d
	}
	if a, b := leave(d, "A", "B").seed(one, 0), leave(d, "B", "A").seed(one, 7); a != b {
		t.Errorf("seeds %d and %d of the same rows", a, b)
	}
	fewer := d
	fewer.more = runOf(10)
	seen := map[uint64]bool{d.seed(one, 0): true}
	for _, s := range []uint64{d.seed(Settings{root: 2}, 0), leave(d, "A").seed(one, 0), leave(d, "B").seed(one, 0), leave(d, "C").seed(one, 0), fewer.seed(one, 0), (subset{of: tb, more: d.rows, rows: d.more}).seed(one, 0)} {
		if seen[s] {
			t.Errorf("seed %d of other rows", s)
		}
		seen[s] = true
	}
	tb.Groups = nil
	if d.seed(one, 3) != DeriveSeed(5, 3) {
		t.Error("without groups the seed is not the stream's")
	}
}
