// Package dbn trains deep belief networks and scores rows with them.
//
// A row is one observation: a vector of features, its label the index of its
// class, from 0. A restricted Boltzmann machine ([rbm]) is a layer of visible
// units, a layer of hidden units that are on or off, and a weight between every
// two of them; it learns the distribution of rows without labels. Its visible
// units are Bernoulli, for values in [0, 1], or Gaussian with unit variance,
// for standardised values. A deep belief network ([Network]) is a stack of
// them, each trained on the hidden probabilities of the one below
// (pre-training), with a softmax layer on top; then all weights are trained
// together by back-propagation of the cross-entropy (fine-tuning). What it
// returns for a row is the posterior: P(y=j|x) for each of the K classes.
//
// Values are float32 in row-major matrices; sums that are reported are taken in
// float64. Training draws from its seed only and cuts batches by their size
// alone, so equal seeds give equal bytes for any number of workers and any
// GOMAXPROCS, on one kernel family (see internal/kernel). Families agree to about 1e-5.
//
// Sources: G. Hinton, S. Osindero and Y. Teh, "A Fast Learning Algorithm for
// Deep Belief Nets", Neural Computation 18, 2006; G. Hinton, "A Practical Guide
// to Training Restricted Boltzmann Machines", UTML TR 2010-003 ("the guide"
// below); C. Zhang, K. C. Tan, H. Li and G. S. Hong, "A Cost-Sensitive Deep
// Belief Network for Imbalanced Classification", IEEE TNNLS 30, 2019.
package dbn

import (
	"errors"
	"fmt"
	"math"
)

// Matrix is a dense row-major matrix. Data has Rows·Cols elements and is
// shared, not copied, by everything that is handed a Matrix.
type Matrix struct {
	Rows, Cols int
	Data       []float32
}

// NewMatrix returns a matrix of zeros. It panics if rows or cols is negative.
func NewMatrix(rows, cols int) Matrix {
	if rows < 0 || cols < 0 {
		panic(fmt.Sprintf("dbn: NewMatrix(%d, %d): negative shape", rows, cols))
	}
	return Matrix{rows, cols, make([]float32, rows*cols)}
}

// Row returns row i, which shares its elements with m.
func (m Matrix) Row(i int) []float32 {
	return m.Data[i*m.Cols : (i+1)*m.Cols : (i+1)*m.Cols]
}

// rows returns rows from up to but not including to.
func (m Matrix) rows(from, to int) Matrix {
	return Matrix{to - from, m.Cols, m.Data[from*m.Cols : to*m.Cols]}
}

// gather copies the given rows of m to dst, one after the other. Rows lie
// anywhere in memory: the ends of all are fetched first, one independent of the
// other, so that the processor waits for many at a time.
func (m Matrix) gather(dst []float32, rows []int) {
	if m.Cols == 0 {
		return
	}
	for i, r := range rows {
		dst[i*m.Cols] = m.Data[r*m.Cols]
		dst[(i+1)*m.Cols-1] = m.Data[(r+1)*m.Cols-1]
	}
	for i, r := range rows {
		copy(dst[i*m.Cols:(i+1)*m.Cols], m.Row(r))
	}
}

func mustMatch(ok bool, format string, args ...any) {
	if !ok {
		panic("dbn: " + fmt.Sprintf(format, args...))
	}
}

// Unit is the kind of the visible units of an RBM.
type Unit string

// Bernoulli units are on with a probability; their values lie in [0, 1].
// Gaussian units have unit variance; their values are best standardised.
const (
	Bernoulli Unit = "bernoulli"
	Gaussian  Unit = "gaussian"
)

// Errors that callers test for. Those returned wrap them and say where.
var (
	// errNotFinite: a row to train on holds a NaN or an infinity.
	errNotFinite = errors.New("value is not finite")
	// errOneClass: the rows to train on are all of one class.
	errOneClass = errors.New("only one class")
	// ErrDiverged: weights grew beyond all bounds while training.
	ErrDiverged = errors.New("training diverged")
	// errCorrupt: bytes are not a network that AppendBinary wrote.
	errCorrupt = errors.New("not a network")
)

// checkRows reports rows that cannot be trained on as unit; kind says which rows
// they are.
func checkRows(kind string, x Matrix, unit Unit) error {
	if err := checkShape(kind, x.Rows, x.Cols); err != nil {
		return err
	}
	if len(x.Data) != x.Rows*x.Cols {
		return fmt.Errorf("dbn: %d values for %d %s rows of %d features", len(x.Data), x.Rows, kind, x.Cols)
	}
	return checkValues(kind, x.Data, x.Cols, 0, unit)
}

func checkShape(kind string, rows, cols int) error {
	if rows < 1 || cols < 1 {
		return fmt.Errorf("dbn: %d %s rows of %d features: there is nothing to train on", rows, kind, cols)
	}
	if cols > maxWidth {
		return fmt.Errorf("dbn: %s rows of %d features: at most %d can be trained on", kind, cols, maxWidth)
	}
	return nil
}

// checkValues reports a value that cannot be trained on. The values are of rows from
// the given one on.
func checkValues(kind string, values []float32, cols, from int, unit Unit) error {
	for i, v := range values {
		if !(v >= -math.MaxFloat32 && v <= math.MaxFloat32) {
			return fmt.Errorf("dbn: %s row %d, feature %d: %v: %w: impute it or drop the row", kind, from+i/cols, i%cols, v, errNotFinite)
		}
		if unit == Bernoulli && !(v >= 0 && v <= 1) {
			return fmt.Errorf("dbn: %s row %d, feature %d: %v is outside [0, 1]: scale features for Bernoulli visible units, or use Gaussian ones", kind, from+i/cols, i%cols, v)
		}
	}
	return nil
}

// checkValidation reports validation rows, if there are any, that do not go
// with training rows of the given width.
func checkValidation(v Matrix, width int, unit Unit) error {
	if v.Rows == 0 {
		return nil
	}
	if v.Cols != width {
		return fmt.Errorf("dbn: validation rows of %d features for training rows of %d", v.Cols, width)
	}
	return checkRows("validation", v, unit)
}

func finite(x []float32) bool {
	for _, v := range x {
		if !(v >= -math.MaxFloat32 && v <= math.MaxFloat32) {
			return false
		}
	}
	return true
}
