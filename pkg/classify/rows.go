package classify

import (
	"fmt"
	"math"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// Rows that are not a dbn.Matrix are somewhere else, on disk for example. Nothing
// here holds them: parts of them are views, and what needs all rows reads them in
// chunks.

const chunkRows = 4096

// eachChunk calls visit with all rows of x in order, some at a time, and the
// index of the first of them. The chunk is only lent.
func eachChunk(x dbn.Rows, visit func(from int, chunk dbn.Matrix) error) error {
	rows, cols := x.Shape()
	m, inMemory := x.(dbn.Matrix)
	var data []float32
	if !inMemory {
		data = make([]float32, min(rows, chunkRows)*cols)
	}
	for from := 0; from < rows; from += chunkRows {
		n := min(rows-from, chunkRows)
		if inMemory {
			data = m.Data[from*cols : (from+n)*cols]
		} else if err := x.ReadRows(data[:n*cols], from); err != nil {
			return err
		}
		if err := visit(from, dbn.Matrix{Rows: n, Cols: cols, Data: data[:n*cols]}); err != nil {
			return err
		}
	}
	return nil
}

// checkValues reports an infinite value.
func checkValues(x dbn.Rows) error {
	return eachChunk(x, func(from int, c dbn.Matrix) error {
		for i, v := range c.Data {
			if math.IsInf(float64(v), 0) {
				return fmt.Errorf("classify: row %d, feature %d: %v: %w: correct it, or leave it out as NaN", from+i/c.Cols, i%c.Cols, v, ErrNotFinite)
			}
		}
		return nil
	})
}

// missing counts the NaNs of x.
func missing(x dbn.Rows) (n int, err error) {
	err = eachChunk(x, func(_ int, c dbn.Matrix) error {
		for _, v := range c.Data {
			if v != v {
				n++
			}
		}
		return nil
	})
	return n, err
}

// sample is rows to fit an encoder to.
type sample struct {
	x  dbn.Matrix
	of int // rows that it was taken from
}

// at returns the index that the i-th row of the sample has in the rows it is of.
func (s sample) at(i int) int {
	if s.x.Rows == s.of {
		return i
	}
	return int(int64(i/encoderRun*encoderRun)*int64(s.of-encoderRun)/(encoderRows-encoderRun)) + i%encoderRun
}

// typical returns all rows of x if they are in memory or few, or some from all over.
// It returns none if x is nil.
func typical(x dbn.Rows) (sample, error) {
	if x == nil {
		return sample{}, nil
	}
	rows, cols := x.Shape()
	if m, ok := x.(dbn.Matrix); ok || rows <= encoderRows {
		if !ok {
			var err error
			if m, err = dbn.InMemory(x); err != nil {
				return sample{}, err
			}
		}
		return sample{m, rows}, nil
	}
	s := sample{dbn.NewMatrix(encoderRows, cols), rows}
	for i := 0; i < encoderRows; i += encoderRun {
		if err := x.ReadRows(s.x.Data[i*cols:(i+encoderRun)*cols], s.at(i)); err != nil {
			return sample{}, err
		}
	}
	return s, nil
}

// Part returns the given rows of x, which ascend: a copy of those in memory, a
// view of others, x itself if it is all of them.
func Part(x dbn.Rows, rows []int) dbn.Rows { return part(x, setOf(rows)) }

// Pick returns what some rows have in x, nil of nil.
func Pick[E any](x []E, rows []int) []E {
	if x == nil {
		return nil
	}
	out := make([]E, len(rows))
	for n, i := range rows {
		out[n] = x[i]
	}
	return out
}

// part returns some rows of x: a copy of those in memory, a view of others, and x
// itself if it is all of them.
func part(x dbn.Rows, s rowSet) dbn.Rows {
	if rows, _ := x.Shape(); s.rows == rows {
		return x
	}
	m, ok := x.(dbn.Matrix)
	if !ok {
		return partial{x, s}
	}
	p := dbn.NewMatrix(s.rows, m.Cols)
	for _, r := range s.runs {
		copy(p.Data[r.before*m.Cols:], m.Data[r.from*m.Cols:r.to*m.Cols])
	}
	return p
}

// partial is a part of other rows.
type partial struct {
	of   dbn.Rows
	some rowSet
}

func (p partial) Shape() (rows, cols int) {
	_, cols = p.of.Shape()
	return p.some.rows, cols
}

func (p partial) ReadRows(dst []float32, from int) error {
	_, cols := p.of.Shape()
	for at := p.some.find(from); len(dst) > 0; at++ {
		r := p.some.runs[at]
		first := r.from + from - r.before
		n := min(r.to-first, len(dst)/cols)
		if err := p.of.ReadRows(dst[:n*cols], first); err != nil {
			return err
		}
		dst, from = dst[n*cols:], from+n
	}
	return nil
}

func (e *Encoder) encodeAll(x dbn.Matrix) dbn.Matrix {
	in := dbn.NewMatrix(x.Rows, e.inputs)
	for i := range x.Rows {
		e.EncodeTo(in.Row(i), x.Row(i))
	}
	return in
}

// eachPosterior calls visit with the posterior of every row of x, by its index;
// it is only lent.
func eachPosterior(x dbn.Rows, encoder *Encoder, network *dbn.Network, visit func(i int, p []float64)) error {
	return (&Classifier{encoder: encoder, network: network}).eachPosterior(x, visit)
}

// eachPosterior calls visit with the posterior of every row of x, by its index, which the guard has bounded;
// it is only lent.
func (c *Classifier) eachPosterior(x dbn.Rows, visit func(i int, p []float64)) error {
	s := c.NewScorer()
	return eachChunk(x, func(from int, chunk dbn.Matrix) error {
		p := dbn.NewMatrix(chunk.Rows, len(s.posterior))
		c.network.PosteriorTo(p, c.encoder.encodeAll(chunk))
		for i := range chunk.Rows {
			visit(from+i, s.bounded(p.Row(i), chunk.Row(i)))
		}
		return nil
	})
}
