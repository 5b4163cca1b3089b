package dbn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Rows are rows to train on that need not fit in memory. A Matrix is Rows.
type Rows interface {
	// Shape returns the number of rows and the number of features in each.
	Shape() (rows, cols int)
	// ReadRows stores rows from, from+1, … in dst, which has room for a whole
	// number of them and no more than there are. Several goroutines may call it.
	ReadRows(dst []float32, from int) error
}

// Shape returns the number of rows and of columns.
func (m Matrix) Shape() (rows, cols int) { return m.Rows, m.Cols }

// ReadRows copies rows from, from+1, … to dst. Its error is always nil.
func (m Matrix) ReadRows(dst []float32, from int) error {
	copy(dst, m.Data[from*m.Cols:])
	return nil
}

// InMemory returns all rows of x: x itself if it is a Matrix, or else a copy.
func InMemory(x Rows) (Matrix, error) {
	if m, ok := x.(Matrix); ok {
		return m, nil
	}
	m := NewMatrix(x.Shape())
	return m, x.ReadRows(m.Data, 0)
}

// feed hands out rows to train on, epoch by epoch and in the random
// order of mix. Rows in memory are shuffled all together. Of others it reads a
// portion at a time, made up of blocks evenly spread over all, which are shuffled
// together; while one portion is trained on, the next is read. Rows come as they
// were recorded, tool by tool: were a portion made up of any blocks, chance would
// give it some tools and some wear, and the network would follow it there.
type feed struct {
	rows, cols int
	y          []int // classes; nil if they are not needed

	memory Matrix // all rows, or
	onDisk Rows   // where they are read from, and
	layers []*rbm // what they go through after that
	unit   Unit   // of onDisk's values
	depth  int    // how many RBMs the rows went through

	blockRows int // rows read at a time; the last block may have fewer
	portions  int // of an epoch

	// Of rows in memory, or of blocks, which are shuffled among as many neighbours as
	// there are portions: each portion takes one of them.
	order []int
	ready [2]portion
}

const (
	// Read at a time: the less, the better portions are mixed, and the more a disk
	// has to seek. Less than this gains nothing (docs/figures/README.md).
	blockBytes   = 1 << 17
	portionBytes = 1 << 26
	biasRows     = 10_000 // that visible biases are made of
)

// portion is a part of the rows of an epoch.
type portion struct {
	x     Matrix // as read
	y     []int
	order []int
	err   error
}

func newFeed(x Rows, y []int, unit Unit) *feed {
	f := &feed{y: y, unit: unit}
	f.rows, f.cols = x.Shape()
	if m, ok := x.(Matrix); ok {
		f.memory, f.order = m, ordered(m.Rows)
		return f
	}
	f.onDisk = x
	f.cut(max(1, blockBytes/4/max(1, f.cols)), portionBytes/blockBytes)
	return f
}

// cut sets how many rows a block has and how many blocks a portion has at most.
func (f *feed) cut(blockRows, perPortion int) {
	f.blockRows = blockRows
	f.order = ordered((f.rows + blockRows - 1) / blockRows)
	f.portions = (len(f.order) + perPortion - 1) / perPortion
	f.ready = [2]portion{}
}

func (f *feed) diskWidth() int {
	_, cols := f.onDisk.Shape()
	return cols
}

// check reports a setting or shape that cannot be trained on, and values in
// memory that cannot; others are checked as they are read.
func (f *feed) check(kind string) error {
	if f.onDisk == nil {
		return checkRows(kind, f.memory, f.unit)
	}
	return checkShape(kind, f.rows, f.cols)
}

// epoch calls visit with every row once: order are the rows of x to be trained
// on, in this order, and y the classes of x. They are only lent. A batch ends
// where a portion does.
func (f *feed) epoch(ctx context.Context, rng *rand.Rand, visit func(x Matrix, y, order []int) error) error {
	if f.onDisk == nil {
		mix(f.order, f.cols, rng)
		return visit(f.memory, f.y, f.order)
	}
	for neighbours := range slices.Chunk(f.order, f.portions) {
		shuffle(neighbours, rng)
	}
	portions := rng.Perm(f.portions) // the first may have a block more
	reading := make(chan *portion)
	read := func(i int) {
		p := &f.ready[i%2]
		p.err = f.read(p, portions[i])
		reading <- p
	}
	go read(0)
	for i := 0; ; i++ {
		p := <-reading
		more := i+1 < len(portions) && p.err == nil && ctx.Err() == nil
		if more {
			go read(i + 1)
		}
		err := p.err
		if err == nil {
			p.order = append(p.order[:0], ordered(p.x.Rows)...)
			mix(p.order, p.x.Cols, rng)
			err = visit(f.lift(p.x), p.y, p.order)
		}
		switch {
		case err != nil && more:
			<-reading // so that no goroutine reads when training is over
			return err
		case err != nil:
			return err
		case !more:
			return context.Cause(ctx)
		}
	}
}

const (
	mixedRows = 1 << 20 // from which on rows are shuffled by runs
	runBytes  = 1 << 10 // of a run: some cache lines
	mixBytes  = 1 << 20 // of the runs whose rows are shuffled together: they fit the second cache
)

// mix puts the rows of a matrix of the given width in random order. Up to
// mixedRows of them are shuffled all together. To swap the numbers of more and to
// fetch them one by one takes a good part of the time of training: runs of
// consecutive rows are shuffled, and then the rows of each thousand runs. A row
// thus keeps company with rows from all over and with few of its neighbours.
func mix(order []int, cols int, rng *rand.Rand) {
	if len(order) <= mixedRows {
		shuffle(order, rng)
		return
	}
	run := max(1, runBytes/4/cols)
	runs := ordered((len(order) + run - 1) / run)
	shuffle(runs, rng)
	mixed := order[:0]
	for _, i := range runs {
		for r := i * run; r < min((i+1)*run, len(order)); r++ {
			mixed = append(mixed, r)
		}
	}
	for together := range slices.Chunk(order, max(1, mixBytes/4/cols)) {
		shuffle(together, rng)
	}
}

// read reads the i-th portion.
func (f *feed) read(p *portion, i int) error {
	cols, n := f.diskWidth(), f.blockRows
	if p.x.Data == nil {
		most := (len(f.order) + f.portions - 1) / f.portions
		p.x.Data = make([]float32, 0, most*n*cols)
	}
	p.x, p.y = Matrix{0, cols, p.x.Data[:0]}, p.y[:0]
	for ; i < len(f.order); i += f.portions {
		from, to := f.order[i]*n, min((f.order[i]+1)*n, f.rows)
		at := len(p.x.Data)
		p.x.Data = p.x.Data[:at+(to-from)*cols]
		p.x.Rows += to - from
		if err := f.readChecked(p.x.Data[at:], from); err != nil {
			return err
		}
		if f.y != nil {
			p.y = append(p.y, f.y[from:to]...)
		}
	}
	return nil
}

func (f *feed) readChecked(dst []float32, from int) error {
	if err := f.onDisk.ReadRows(dst, from); err != nil {
		return fmt.Errorf("dbn: reading rows from %d: %w", from, err)
	}
	return checkValues("training", dst, f.diskWidth(), from, f.unit)
}

// lift returns the values of rows as read where this feed stands.
func (f *feed) lift(x Matrix) Matrix {
	for _, r := range f.layers {
		x = r.hidden(x)
	}
	return x
}

// through returns a feed of the hidden probabilities of r.
func (f *feed) through(r *rbm) *feed {
	if f.onDisk == nil {
		up := newFeed(r.hidden(f.memory), f.y, Bernoulli)
		up.depth = f.depth + 1
		return up
	}
	up := *f
	up.depth++
	up.layers = append(slices.Clone(f.layers), r)
	up.cols = r.Weights.Cols
	up.order, up.ready = ordered(len(f.order)), [2]portion{}
	return &up
}

// typical returns rows to make visible biases of: all of those in memory.
func (f *feed) typical() (Matrix, error) {
	if f.onDisk == nil {
		return f.memory, nil
	}
	return f.sample(biasRows)
}

// sample returns n rows, evenly spread, or all if there are fewer.
func (f *feed) sample(n int) (Matrix, error) {
	n = min(n, f.rows)
	if f.onDisk == nil {
		if n == f.rows {
			return f.memory, nil
		}
		x := NewMatrix(n, f.cols)
		for i := range n {
			copy(x.Row(i), f.memory.Row(i*f.rows/n))
		}
		return x, nil
	}
	x := NewMatrix(n, f.diskWidth())
	for i := range n {
		if err := f.readChecked(x.Row(i), i*f.rows/n); err != nil {
			return Matrix{}, err
		}
	}
	return f.lift(x), nil
}
