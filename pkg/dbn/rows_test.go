package dbn

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// diskRows hides that rows are in memory.
type diskRows struct {
	m     Matrix
	reads atomic.Int64
	fail  func(read int64) error
}

func (f *diskRows) Shape() (rows, cols int) { return f.m.Shape() }

func (f *diskRows) ReadRows(dst []float32, from int) error {
	n := f.reads.Add(1)
	if f.fail != nil {
		if err := f.fail(n); err != nil {
			return err
		}
	}
	if len(dst)%f.m.Cols != 0 || from+len(dst)/f.m.Cols > f.m.Rows {
		panic("rows that do not exist are read")
	}
	return f.m.ReadRows(dst, from)
}

func diskFeed(m Matrix, y []int, unit Unit, blockRows, perPortion int) *feed {
	f := newFeed(&diskRows{m: m}, y, unit)
	f.cut(blockRows, perPortion)
	return f
}

// Every epoch hands out every row once, with its class, in another order.
func TestEpochHasEveryRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "rows")
		x, y := NewMatrix(n, 2), make([]int, n)
		for i := range n {
			x.Row(i)[0], x.Row(i)[1], y[i] = float32(i), 1, i%7
		}
		f := diskFeed(x, y, Gaussian, rapid.IntRange(1, 50).Draw(t, "block"), rapid.IntRange(1, 9).Draw(t, "portion"))
		rng := rand.New(rand.NewPCG(1, 2))
		var orders [3][]int
		for e := range orders {
			seen := make([]bool, n)
			err := f.epoch(context.Background(), rng, func(x Matrix, y, order []int) error {
				if len(order) != x.Rows || len(y) != x.Rows {
					t.Fatalf("%d rows, %d in order, %d classes", x.Rows, len(order), len(y))
				}
				for _, i := range order {
					row := int(x.Row(i)[0])
					if seen[row] || y[i] != row%7 {
						t.Fatalf("row %d: seen %v, class %d", row, seen[row], y[i])
					}
					seen[row] = true
					orders[e] = append(orders[e], row)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(orders[e]) != n {
				t.Fatalf("epoch %d has %d rows of %d", e, len(orders[e]), n)
			}
		}
		if n > 20 && slices.Equal(orders[0], orders[1]) && slices.Equal(orders[1], orders[2]) {
			t.Fatal("every epoch has the same order")
		}
	})
}

// Rows that are read come as they were recorded, worn tools together. Of any stretch
// of them a portion has as much as all rows have, to within the blocks at its ends.
func TestPortionIsFromAllOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 2000
		block, most := rapid.IntRange(1, 20).Draw(t, "block"), rapid.IntRange(1, 40).Draw(t, "blocks of a portion")
		from := rapid.IntRange(0, n-1).Draw(t, "from")
		to := rapid.IntRange(from+1, n).Draw(t, "to")
		x, y := NewMatrix(n, 1), make([]int, n)
		for i := from; i < to; i++ {
			y[i] = 1
		}
		f := diskFeed(x, y, Gaussian, block, most)
		share := float64(to-from) / n
		rng := rand.New(rand.NewPCG(1, 2))
		for range 2 {
			err := f.epoch(context.Background(), rng, func(x Matrix, y, _ []int) error {
				if x.Rows > block*most {
					t.Fatalf("%d rows of a portion", x.Rows)
				}
				worn := 0
				for _, c := range y {
					worn += c
				}
				if d := math.Abs(float64(worn) - share*float64(x.Rows)); d > float64(3*block) {
					t.Fatalf("%d of %d rows are of a stretch that %.3f of all are of", worn, x.Rows, share)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// However many rows there are, mix puts every one somewhere, takes another order
// each time, and makes batches of rows from all over.
func TestMix(t *testing.T) {
	for _, test := range []struct {
		rows, cols int
		runs       int // of 1 KiB that 1000 rows are from, at least
	}{
		{1000, 14, 56}, // all of them
		{mixedRows, 14, 960},
		{mixedRows + 1, 14, 600},       // 1000 rows of 1024 runs of 18 hit 1-1/e of them
		{2*mixedRows + 12345, 14, 500}, // the last are of fewer
		{mixedRows + 1, 196, 990},      // a run is a row
		{mixedRows + 1, 1 << 20, 990},
	} {
		run := max(1, 256/test.cols)
		rng := rand.New(rand.NewPCG(3, 4))
		order := ordered(test.rows)
		mix(order, test.cols, rng)
		first := slices.Clone(order)
		mix(order, test.cols, rng)
		if slices.Equal(first, order) {
			t.Errorf("%d×%d: the same order twice", test.rows, test.cols)
		}
		seen := make([]bool, test.rows)
		for _, r := range order {
			if seen[r] {
				t.Fatalf("%d×%d: row %d twice", test.rows, test.cols, r)
			}
			seen[r] = true
		}
		for from := 0; from+1000 <= test.rows; from += 100_000 {
			runs := map[int]bool{}
			var sum float64
			for _, r := range order[from : from+1000] {
				runs[r/run] = true
				sum += float64(r) / float64(test.rows)
			}
			if len(runs) < test.runs {
				t.Errorf("%d×%d: rows from %d on are from %d runs", test.rows, test.cols, from, len(runs))
			}
			if mean := sum / 1000; mean < 0.45 || mean > 0.55 {
				t.Errorf("%d×%d: rows from %d on are from around %.2f of all", test.rows, test.cols, from, mean)
			}
		}
	}
}

// What is learnt from rows that are read is as good as from rows in memory, and
// does not depend on the number of workers.
func TestTrainOnRowsThatAreRead(t *testing.T) {
	x, y := exclusiveOr(1500, rand.New(rand.NewPCG(1, 2)))
	check, want := exclusiveOr(500, rand.New(rand.NewPCG(3, 4)))
	s := Settings{Hidden: []int{16, 12}, Pretrain: PretrainSettings{Epochs: 20, Batch: 130}, FineTune: FineTuneSettings{Epochs: 80, Batch: 130, Rate: 0.05, Decay: -1}, Seed: 7}
	s.Pretrain.Validation = check
	var first []byte
	for _, workers := range []int{1, 3} {
		s.Workers = workers
		n, h, err := train(context.Background(), diskFeed(x, y, Bernoulli, 64, 5), 2, s.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		if a := accuracy(n, check, want); a < 0.99 {
			t.Errorf("accuracy %v", a)
		}
		if g := h.Pretrain[1].FreeEnergyGap; len(g) != 20 || !(math.Abs(g[19]) < 1) {
			t.Errorf("free-energy gaps %v of rows from one law", g)
		}
		b, err := n.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("%d workers make another network", workers)
		}
	}
}

func TestTrainOnRowsThatCannotBeRead(t *testing.T) {
	x, y := exclusiveOr(400, rand.New(rand.NewPCG(1, 2)))
	s := Settings{Hidden: []int{4}, Pretrain: PretrainSettings{Epochs: 2}, FineTune: FineTuneSettings{Epochs: 2}}.withDefaults()
	broken := errors.New("disk is gone")
	// 400 rows are read for the biases, then 20 blocks an epoch.
	for _, at := range []int64{1, 401, 410, 425, 440, 470} {
		f := diskFeed(x, y, Bernoulli, 20, 3)
		f.onDisk.(*diskRows).fail = func(read int64) error {
			if read >= at {
				return broken
			}
			return nil
		}
		if _, _, err := train(context.Background(), f, 2, s); !errors.Is(err, broken) {
			t.Errorf("read %d fails: %v", at, err)
		}
	}

	bad := NewMatrix(x.Rows, x.Cols)
	copy(bad.Data, x.Data)
	bad.Row(357)[1] = float32(math.NaN())
	_, _, err := train(context.Background(), diskFeed(bad, y, Bernoulli, 20, 3), 2, s)
	if !errors.Is(err, errNotFinite) || !strings.Contains(err.Error(), "row 357, feature 1") {
		t.Errorf("a NaN: %v", err)
	}
}

func TestTrainOnRowsThatAreReadStops(t *testing.T) {
	x, y := exclusiveOr(400, rand.New(rand.NewPCG(1, 2)))
	s := Settings{Hidden: []int{4}, Pretrain: PretrainSettings{Epochs: 50}, FineTune: FineTuneSettings{Epochs: 50}}.withDefaults()
	enough := errors.New("enough")
	for _, at := range []int64{1, 405, 430, 1425, 2000} {
		ctx, cancel := context.WithCancelCause(context.Background())
		f := diskFeed(x, y, Bernoulli, 20, 3)
		f.onDisk.(*diskRows).fail = func(read int64) error {
			if read == at {
				cancel(enough)
			}
			return nil
		}
		if _, _, err := train(ctx, f, 2, s); !errors.Is(err, enough) {
			t.Errorf("cancelled at read %d: %v", at, err)
		}
	}
}
