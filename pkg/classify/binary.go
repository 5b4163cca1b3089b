package classify

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// The binary form of a classifier, all numbers little-endian:
//
//	bytes  content
//	4      "FCLS"
//	4      version: 1, or 2 of a classifier with a guard
//	4      number K of classes
//	8·K    costs, float64
//	1      encoding: 0 standard, 1 minmax, 2 normalscore, 3 bins, 4 committee;
//	       of a committee the number of its members, 1 byte, then of each:
//	1        its encoding, and what follows
//	4      number of columns; then of each column
//	         8     the value that stands for a missing one, float64
//	         4+8·n number of knots and the knots, float64
//	         4+8·n number of values and the values, float64
//	       with a guard
//	4+n    length of the guard and the guard, in the form of pkg/classify/vote
//	rest   the network, in the form of pkg/dbn
const (
	binaryMagic    = "FCLS"
	binaryVersion  = 1
	guardedVersion = 2
	maxColumns     = 1 << 20
)

// AppendBinary appends the binary form of the classifier to b. Equal
// classifiers have equal bytes. It implements encoding.BinaryAppender and fails
// only for a classifier that was neither fitted nor unmarshaled.
func (c *Classifier) AppendBinary(b []byte) ([]byte, error) {
	if c.network == nil {
		return b, fmt.Errorf("classify: an empty classifier has no binary form")
	}
	le := binary.LittleEndian
	b = append(b, binaryMagic...)
	if c.guard == nil {
		b = kernel.AppendFloats(le.AppendUint32(b, binaryVersion), c.costs)
		return c.network.AppendBinary(appendEncoder(b, c.encoder))
	}
	guard, err := c.guard.AppendBinary(nil)
	if err != nil {
		return b, fmt.Errorf("classify: %w", err)
	}
	b = appendEncoder(kernel.AppendFloats(le.AppendUint32(b, guardedVersion), c.costs), c.encoder)
	return c.network.AppendBinary(append(le.AppendUint32(b, uint32(len(guard))), guard...))
}

func appendEncoder(b []byte, e *Encoder) []byte {
	b = append(b, e.encoding.number())
	if e.encoding == Committee {
		b = append(b, byte(len(e.parts)))
		for _, p := range e.parts {
			b = appendEncoder(b, p)
		}
		return b
	}
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(len(e.columns)))
	for _, col := range e.columns {
		b = le.AppendUint64(b, math.Float64bits(col.fill))
		b = kernel.AppendFloats(b, col.knots)
		b = kernel.AppendFloats(b, col.values)
	}
	return b
}

func (e Encoding) number() byte {
	if i := slices.Index(encodings, e); i >= 0 {
		return byte(i)
	}
	panic(fmt.Sprintf("classify: encoding %q has no number", string(e)))
}

// UnmarshalBinary replaces c by the classifier whose binary form b is. It
// returns an error that wraps ErrCorrupt, and leaves c alone, if b is anything
// else. It allocates no more than a small multiple of len(b) and does not keep b.
func (c *Classifier) UnmarshalBinary(b []byte) error {
	r := &kernel.Reader{Rest: b}
	if string(r.Bytes(4)) != binaryMagic {
		return fmt.Errorf("classify: %w: it does not start with %q", ErrCorrupt, binaryMagic)
	}
	version := r.Uint32()
	if version != binaryVersion && version != guardedVersion && !r.Short {
		return fmt.Errorf("classify: %w: its version is %d, this program reads %d and %d", ErrCorrupt, version, binaryVersion, guardedVersion)
	}
	read := Classifier{costs: CostVector(r.Floats())}
	encoder, err := readEncoder(r)
	if err != nil {
		return err
	}
	if version == guardedVersion {
		if read.guard, err = readGuard(r, encoder.Columns(), len(read.costs)); err != nil {
			return err
		}
	}
	if r.Short {
		return fmt.Errorf("classify: %w: it ends in the middle, after %d bytes", ErrCorrupt, len(b))
	}
	read.encoder, read.network = encoder, &dbn.Network{}
	if err := read.network.UnmarshalBinary(r.Rest); err != nil {
		return fmt.Errorf("classify: %w: %w", ErrCorrupt, err)
	}
	if k, in := read.network.Classes(), read.network.Inputs(); k != len(read.costs) || in != encoder.inputs {
		return fmt.Errorf("classify: %w: a network of %d inputs and %d classes with %d encoded features and %d costs", ErrCorrupt, in, k, encoder.inputs, len(read.costs))
	}
	for j, cost := range read.costs {
		if !(cost >= 0 && cost <= 1) {
			return fmt.Errorf("classify: %w: the cost of class %d is %v: must be in [0, 1]", ErrCorrupt, j, cost)
		}
	}
	*c = read
	return nil
}

// readGuard reads the guard of a classifier of so many columns and classes.
func readGuard(r *kernel.Reader, columns, classes int) (*vote.Guard, error) {
	n := r.Uint32()
	if int64(n) > int64(len(r.Rest)) {
		return nil, fmt.Errorf("classify: %w: a guard of %d bytes, %d are left", ErrCorrupt, n, len(r.Rest))
	}
	g := new(vote.Guard)
	if err := g.UnmarshalBinary(r.Bytes(int(n))); err != nil {
		return nil, fmt.Errorf("classify: %w: %w", ErrCorrupt, err)
	}
	if g.Columns() != columns || classes != 2 {
		return nil, fmt.Errorf("classify: %w: a guard of %d features and two classes with %d features and %d classes", ErrCorrupt, g.Columns(), columns, classes)
	}
	return g, nil
}

func readEncoder(r *kernel.Reader) (*Encoder, error) {
	number := r.Uint8()
	if !r.Short && int(number) < len(encodings) && encodings[number] == Committee {
		return readCommittee(r)
	}
	return readColumns(r, number)
}

// readCommittee reads the encoders of a committee, which has at least two members.
func readCommittee(r *kernel.Reader) (*Encoder, error) {
	n := int(r.Uint8())
	if r.Short || n < 2 || n > len(members) {
		return nil, fmt.Errorf("classify: %w: a committee of %d", ErrCorrupt, n)
	}
	var parts []*Encoder
	for range n {
		number := r.Uint8()
		if int(number) < len(encodings) && encodings[number] == Committee {
			return nil, fmt.Errorf("classify: %w: a committee within a committee", ErrCorrupt)
		}
		p, err := readColumns(r, number)
		if err != nil {
			return nil, err
		}
		if len(parts) > 0 && len(p.columns) != parts[0].Columns() {
			return nil, fmt.Errorf("classify: %w: encodings of %d and %d features in one committee", ErrCorrupt, parts[0].Columns(), len(p.columns))
		}
		parts = append(parts, p)
	}
	return committeeOf(parts), nil
}

func readColumns(r *kernel.Reader, number byte) (*Encoder, error) {
	columns := r.Uint32()
	if r.Short || int(number) >= len(encodings) || columns < 1 || columns > maxColumns {
		return nil, fmt.Errorf("classify: %w: encoding number %d of %d features", ErrCorrupt, number, columns)
	}
	e := &Encoder{encoding: encodings[number]}
	for j := range columns {
		c := column{fill: r.Float64(), knots: r.Floats(), values: r.Floats()}
		if r.Short {
			break
		}
		if !c.sound(e.encoding) {
			return nil, fmt.Errorf("classify: %w: the %s encoding of feature %d makes no sense", ErrCorrupt, e.encoding, j)
		}
		e.columns = append(e.columns, c)
		e.inputs += c.inputs(e.encoding)
	}
	return e, nil
}

// sound reports whether FitEncoder could have made the column.
func (c column) sound(e Encoding) bool {
	if !finite(c.fill) {
		return false
	}
	for i, v := range c.knots {
		if !finite(v) || i > 0 && v <= c.knots[i-1] {
			return false
		}
	}
	for i, v := range c.values {
		if !finite(v) || i > 0 && v < c.values[i-1] {
			return false
		}
	}
	return c.fits(e)
}

// fits reports whether the column has as many knots and values as e makes.
func (c column) fits(e Encoding) bool {
	k, v := len(c.knots), len(c.values)
	if k == 0 {
		return v == 0
	}
	switch e {
	case Standard:
		return k == 1 && v == 1 && c.values[0] > 0
	case MinMax:
		return k == 2 && v == 0
	case NormalScore:
		return k >= 2 && k <= maxKnots && v == k
	}
	return k >= 2 && k <= maxBins+1 && v == 0
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
