package classify

import (
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Encoding is a way to turn feature values into inputs of a network. All are
// fitted column by column on the training rows.
type Encoding string

// The encodings. Values beyond the range of the training rows are clipped.
const (
	// Standard subtracts the mean, divides by the standard deviation and clips
	// to ±5. For Gaussian visible units.
	Standard Encoding = "standard"
	// MinMax maps the training range to [0, 1]. For Bernoulli visible units.
	MinMax Encoding = "minmax"
	// NormalScore maps a value to the normal quantile of its mid-rank among the
	// training rows, interpolated between their values. For Gaussian visible
	// units.
	NormalScore Encoding = "normalscore"
	// Bins cuts the training values of a column at their quantiles e_0 < e_1 <
	// … into bins and gives each bin an input, clip((x − e_b)/(e_{b+1} − e_b),
	// 0, 1): piecewise linear, for Bernoulli visible units. (Y. Gorishniy, I.
	// Rubachev and A. Babenko, "On Embeddings for Numerical Features in Tabular
	// Deep Learning", NeurIPS 2022, eq. 1.)
	Bins Encoding = "bins"
	// Committee is Standard, Bins and NormalScore together, with a network for
	// each: [Fit] trains them apart, gives each a share by what it
	// says of rows held out, and joins them to one.
	Committee Encoding = "committee"
)

// encodings in the order of their numbers in the binary form.
var encodings = []Encoding{Standard, MinMax, NormalScore, Bins, Committee}

// members are the encodings of a Committee.
var members = []Encoding{Standard, Bins, NormalScore}

func (e Encoding) known() bool { return slices.Contains(encodings, e) }

// visible returns the kind of visible units whose values the encoding makes.
func (e Encoding) visible() dbn.Unit {
	if e == Standard || e == NormalScore {
		return dbn.Gaussian
	}
	return dbn.Bernoulli
}

const (
	clipStandard = 5
	maxBins      = 256
	maxKnots     = 1024 // of a column of NormalScore; more training values are thinned evenly
)

// Encoder turns rows of feature values into rows of network inputs. It never
// changes once fitted and is safe for concurrent use.
//
// A missing value counts as the mean of its column's training values. A column
// with one training value or none says nothing, so its input is always 0.
type Encoder struct {
	encoding Encoding
	columns  []column // none for Committee
	inputs   int
	parts    []*Encoder // for Committee only
}

// column is the encoding of one feature. What knots and values hold depends on
// the encoding; a constant column has neither.
//
//	Standard     knots {mean}              values {standard deviation}
//	MinMax       knots {minimum, maximum}  values nil
//	NormalScore  knots ascending values    values their scores
//	Bins         knots the edges           values nil
type column struct {
	fill   float64 // instead of a missing value
	empty  bool    // no training row had a value; not in the binary form
	knots  []float64
	values []float64
}

// FitEncoder returns the encoder fitted to all rows of x, in which NaN is a
// missing value. It does not keep x; the order of rows does not matter. It
// reports an infinity, an unknown encoding and, for Bins, a number of bins that
// cannot be used.
func FitEncoder(x dbn.Matrix, encoding Encoding, bins int) (*Encoder, error) {
	return fitEncoder(x, encoding, bins, nil)
}

// fitEncoder is FitEncoder where the inputs of columns of weight 0 do not matter: it takes these for constant. Nil: all weigh 1.
func fitEncoder(x dbn.Matrix, encoding Encoding, bins int, weights []float64) (*Encoder, error) {
	if !encoding.known() {
		return nil, fmt.Errorf("classify: encoding %q: %w: must be one of %v", encoding, ErrSettings, encodings)
	}
	if (encoding == Bins || encoding == Committee) && (bins < 1 || bins > maxBins) {
		return nil, fmt.Errorf("classify: %d bins: %w: must be from 1 to %d", bins, ErrSettings, maxBins)
	}
	if encoding == Committee {
		var parts []*Encoder
		for _, member := range members {
			part, err := fitEncoder(x, member, bins, weights)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		return committeeOf(parts), nil
	}
	e := &Encoder{encoding: encoding, columns: make([]column, x.Cols)}
	sorted := make([]float64, 0, x.Rows)
	for j := range e.columns {
		if weights != nil && weights[j] == 0 {
			e.inputs += e.columns[j].inputs(encoding)
			continue
		}
		sorted = sorted[:0]
		for i := range x.Rows {

			switch v := float64(x.Data[i*x.Cols+j]); {
			case math.IsInf(v, 0):
				return nil, fmt.Errorf("classify: row %d, feature %d: %v: %w: correct it, or leave it out as NaN", i, j, v, ErrNotFinite)
			case math.IsNaN(v): // missing
			default:
				sorted = append(sorted, v)
			}
		}
		slices.Sort(sorted) // also makes sums independent of the order of rows
		e.columns[j] = fitColumn(sorted, encoding, bins)
		e.inputs += e.columns[j].inputs(encoding)
	}
	return e, nil
}

// committeeOf returns the encoder of a Committee of the given parts, whose inputs
// follow each other.
func committeeOf(parts []*Encoder) *Encoder {
	e := &Encoder{encoding: Committee, parts: parts}
	for _, p := range parts {
		e.inputs += p.inputs
	}
	return e
}

func fitColumn(sorted []float64, encoding Encoding, bins int) column {
	if len(sorted) == 0 {
		return column{empty: true}
	}
	mean, sd := kernel.MeanSD(sorted)
	first, last := sorted[0], sorted[len(sorted)-1]
	c := column{fill: min(max(mean, first), last)}
	if first == last {
		return c
	}
	switch encoding {
	case Standard:
		c.knots, c.values = []float64{mean}, []float64{sd}
	case MinMax:
		c.knots = []float64{first, last}
	case NormalScore:
		c.knots, c.values = normalScores(sorted)
	case Bins:
		for b := range bins + 1 {
			edge := kernel.Quantile(sorted, float64(b)/float64(bins))
			if n := len(c.knots); n == 0 || edge > c.knots[n-1] {
				c.knots = append(c.knots, edge)
			}
		}
	}
	return c
}

// normalScores returns the distinct values of sorted x, thinned to maxKnots,
// and of each the normal quantile of (mid-rank − ½)/n, ranks counted from 1.
func normalScores(x []float64) (knots, scores []float64) {
	n := float64(len(x))
	for i := 0; i < len(x); {
		j := i
		for ; j < len(x) && x[j] == x[i]; j++ {
		}
		midRank := float64(i+1+j) / 2
		knots = append(knots, x[i])
		scores = append(scores, math.Sqrt2*math.Erfinv(2*(midRank-0.5)/n-1))
		i = j
	}
	if len(knots) <= maxKnots {
		return knots, scores
	}
	for i := range maxKnots { // in place: the index read is never below the one written
		from := i * (len(knots) - 1) / (maxKnots - 1)
		knots[i], scores[i] = knots[from], scores[from]
	}
	return slices.Clone(knots[:maxKnots]), slices.Clone(scores[:maxKnots])
}

func (c column) constant() bool { return len(c.knots) == 0 }

// inputs returns how many inputs of the network the column makes.
func (c column) inputs(e Encoding) int {
	if e == Bins && !c.constant() {
		return len(c.knots) - 1
	}
	return 1
}

// Encoding returns the kind of encoding.
func (e *Encoder) Encoding() Encoding { return e.encoding }

// Parts returns the encoders whose inputs, one after the other, are the inputs
// of e: the members of a Committee, or e alone. The caller must not change
// the slice.
func (e *Encoder) Parts() []*Encoder {
	if e.encoding == Committee {
		return e.parts
	}
	return []*Encoder{e}
}

// Column returns how feature j is encoded: the value that stands for a missing
// one and
//
//   - for Standard the mean as the one knot and the standard deviation as the
//     one value,
//   - for MinMax and Bins the edges as knots and no values,
//   - for NormalScore knots and the scores at them.
//
// A column that is constant, and so always 0, has no knots. The slices are the
// encoder's and must not be changed. A Committee has columns in its Parts only.
func (e *Encoder) Column(j int) (fill float64, knots, values []float64) {
	c := &e.columns[j]
	return c.fill, c.knots, c.values
}

// Columns returns the number of features of a row.
func (e *Encoder) Columns() int {
	if e.encoding == Committee {
		return e.parts[0].Columns()
	}
	return len(e.columns)
}

// Inputs returns the number of network inputs that a row becomes.
func (e *Encoder) Inputs() int { return e.inputs }

// EncodeTo stores in dst the inputs of row, which may hold NaN and infinities.
// It panics if dst is not Inputs long or row not Columns.
func (e *Encoder) EncodeTo(dst, row []float32) {
	if len(row) != e.Columns() || len(dst) != e.inputs {
		panic(fmt.Sprintf("classify: EncodeTo: %d inputs of %d features by an encoder of %d of %d", len(dst), len(row), e.inputs, e.Columns()))
	}
	for _, p := range e.parts {
		p.EncodeTo(dst[:p.inputs:p.inputs], row)
		dst = dst[p.inputs:]
	}
	for j := range e.columns {
		c := &e.columns[j]
		n := c.inputs(e.encoding)
		c.encodeTo(dst[:n:n], row[j], e.encoding)
		dst = dst[n:]
	}
}

func (c *column) encodeTo(dst []float32, value float32, encoding Encoding) {
	if c.constant() {
		dst[0] = 0
		return
	}
	x := float64(value)
	if math.IsNaN(x) {
		x = c.fill
	}
	switch encoding {
	case Standard:
		v := (x - c.knots[0]) / c.values[0]
		if !(v >= -clipStandard && v <= clipStandard) { // hardly ever: min and max take longer
			v = min(max(v, -clipStandard), clipStandard)
		}
		dst[0] = float32(v)
	case NormalScore:
		dst[0] = float32(interpolate(c.knots, c.values, x))
	default: // MinMax is Bins with one bin
		for b := range dst {
			low, high := c.knots[b], c.knots[b+1]
			dst[b] = float32(min(max((x-low)/(high-low), 0), 1))
		}
	}
}

// interpolate returns the value at x of the line through the points (knots,
// values), constant beyond its ends.
func interpolate(knots, values []float64, x float64) float64 {
	i, found := slices.BinarySearch(knots, x)
	switch {
	case found:
		return values[i]
	case i == 0:
		return values[0]
	case i == len(knots):
		return values[i-1]
	}
	share := (x - knots[i-1]) / (knots[i] - knots[i-1])
	return values[i-1] + share*(values[i]-values[i-1])
}
