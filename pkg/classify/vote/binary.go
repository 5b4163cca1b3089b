package vote

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/kernel"
)

// The binary form of a guard, all numbers little-endian:
//
//	bytes  content
//	4      "FVOT"
//	1      version, 4; those before were in no release
//	4      number of columns
//	8      cut, float64
//	8      bound, float64
//	4      number of sensors; then of each
//	         4+n   length of its name and the name, UTF-8
//	         4+4·n number of watched columns and their indices
//	         1     1 if it repeats itself by nature, otherwise 0
//	         4+4·n number of levels and their indices
//	         8     share of themselves that they move by if it is stuck, float64
//	         4+4·n number of columns in which steps of its gain are looked for, which may be 0, and their indices
//	         16    largest natural step, and least one of a gain, float64
//	4      number of experts; then of each
//	         1     1 for a pair, otherwise 0
//	         4+4·n number of sensors and their indices
//	         8     bias, float64
//	         8     threshold, float64
//	         4     number of inputs; then of each
//	           4   column
//	           4   column that is taken off it, 2³²−1 for none
//	           4   index of the column's sensor in the expert's list
//	           24  mean, standard deviation and weight, float64
const (
	binaryMagic   = "FVOT"
	binaryVersion = 4
	maxColumns    = 1 << 20
	noColumn      = math.MaxUint32
)

// AppendBinary appends the binary form of the guard to b. Equal guards have equal bytes. It
// implements encoding.BinaryAppender and fails only for the zero value.
func (g *Guard) AppendBinary(b []byte) ([]byte, error) {
	if len(g.experts) == 0 {
		return b, fmt.Errorf("vote: an empty guard has no binary form")
	}
	le := binary.LittleEndian
	indices := func(x []int) {
		b = le.AppendUint32(b, uint32(len(x)))
		for _, v := range x {
			b = le.AppendUint32(b, uint32(v))
		}
	}
	float := func(v float64) { b = le.AppendUint64(b, math.Float64bits(v)) }
	b = append(append(b, binaryMagic...), binaryVersion)
	b = le.AppendUint32(b, uint32(g.columns))
	float(g.cut)
	float(g.bound)
	b = le.AppendUint32(b, uint32(len(g.sensors)))
	for _, s := range g.sensors {
		b = append(le.AppendUint32(b, uint32(len(s.name))), s.name...)
		indices(s.watched)
		b = append(b, flag(s.repeats))
		indices(s.levels)
		float(s.still)
		indices(s.sizes)
		float(s.natural)
		float(s.least)
	}
	b = le.AppendUint32(b, uint32(len(g.experts)))
	for _, x := range g.experts {
		b = append(b, flag(x.pair))
		indices(x.sensors)
		float(x.bias)
		float(x.threshold)
		b = le.AppendUint32(b, uint32(len(x.inputs)))
		for _, in := range x.inputs {
			less := uint32(noColumn)
			if in.b >= 0 {
				less = uint32(in.b)
			}
			b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, uint32(in.a)), less), uint32(in.sensor))
			float(in.mean)
			float(in.sd)
			float(in.weight)
		}
	}
	return b, nil
}

// UnmarshalBinary replaces g by the guard whose binary form b is. It returns an error that
// wraps ErrCorrupt, and leaves g alone, if b is anything else. It allocates no more than a
// small multiple of len(b) and does not keep b.
func (g *Guard) UnmarshalBinary(b []byte) error {
	r := &reader{Reader: kernel.Reader{Rest: b}}
	if string(r.Bytes(4)) != binaryMagic {
		return fmt.Errorf("vote: %w: it does not start with %q", ErrCorrupt, binaryMagic)
	}
	if version := r.Uint8(); version != binaryVersion && !r.Short {
		return fmt.Errorf("vote: %w: its version is %d, this program reads %d", ErrCorrupt, version, binaryVersion)
	}
	read := Guard{columns: int(r.Uint32()), cut: r.finite(), bound: r.finite()}
	r.want(read.columns >= 1 && read.columns <= maxColumns && read.bound >= 0, "%d columns and a bound of %v", read.columns, read.bound)
	for range r.count(49) {
		of := sensor{name: string(r.Bytes(r.count(1))), watched: r.some(read.columns), repeats: r.flag(), levels: r.some(read.columns), still: r.finite(), sizes: r.indices(read.columns), natural: r.finite(), least: r.finite()}
		r.want(utf8.ValidString(of.name), "the name of sensor %d is not UTF-8", len(read.sensors))
		r.want(of.still >= 0, "sensor %d moves by %v if it is stuck", len(read.sensors), of.still)
		r.want(len(of.sizes) <= mostSizes && of.natural >= 0 && of.least >= 0, "steps of sensor %d, of %d sizes, from %v and %v on", len(read.sensors), len(of.sizes), of.natural, of.least)
		read.sensors = append(read.sensors, of)
	}
	for range r.count(29) {
		read.experts = append(read.experts, r.expert(&read))
	}
	r.want(len(read.experts) > 0, "it has no experts")
	r.want(len(r.Rest) == 0, "%d bytes are left over", len(r.Rest))
	if r.Short {
		return fmt.Errorf("vote: %w: it ends in the middle, after %d bytes", ErrCorrupt, len(b))
	}
	if r.err != nil {
		return r.err
	}
	*g = read
	return nil
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// reader reads a guard and keeps what is wrong with it first.
type reader struct {
	kernel.Reader
	err error
}

// want notes what is wrong unless ok.
func (r *reader) want(ok bool, format string, args ...any) {
	if !ok && r.err == nil {
		r.err = fmt.Errorf("vote: %w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
}

// count takes the number of things that follow, of the given number of bytes each at least, and
// gives 0 if there is no room for them.
func (r *reader) count(bytes int) int {
	n := int64(r.Uint32())
	if n*int64(bytes) > int64(len(r.Rest)) {
		r.Short = true
		return 0
	}
	return int(n)
}

// some takes a list of indices below limit, at least one.
func (r *reader) some(limit int) []int {
	out := r.indices(limit)
	r.want(len(out) > 0, "an empty list of indices")
	return out
}

// indices takes a list of indices below limit.
func (r *reader) indices(limit int) []int {
	var out []int
	for range r.count(4) {
		v := r.Uint32()
		r.want(int64(v) < int64(limit), "index %d of %d", v, limit)
		out = append(out, int(v))
	}
	return out
}

func (r *reader) flag() bool {
	v := r.Uint8()
	r.want(v <= 1, "a mark is %d", v)
	return v == 1
}

func (r *reader) finite() float64 {
	v := r.Float64()
	r.want(!math.IsNaN(v) && !math.IsInf(v, 0), "a number is %v", v)
	return v
}

// expert takes an expert of g.
func (r *reader) expert(g *Guard) expert {
	x := expert{pair: r.flag(), sensors: r.some(len(g.sensors)), bias: r.finite(), threshold: r.finite()}
	r.want(x.threshold >= 0, "an expert with the threshold %v", x.threshold)
	for range r.count(36) {
		a, less, of := r.Uint32(), r.Uint32(), r.Uint32()
		in := input{a: int(a), b: int(less), sensor: int(of), mean: r.finite(), sd: r.finite(), weight: r.finite()}
		if less == noColumn {
			in.b = -1
		}
		r.want(int64(a) < int64(g.columns) && (less == noColumn || int64(less) < int64(g.columns)) && int64(of) < int64(len(x.sensors)) && in.sd > 0,
			"an input of columns %d and %d, of sensor %d, standard deviation %v", a, less, of, in.sd)
		x.inputs = append(x.inputs, in)
	}
	r.want(len(x.inputs) > 0, "an expert without inputs")
	return x
}
