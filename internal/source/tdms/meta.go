package tdms

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source/track"
)

// epoch is the start of LabVIEW's time.
var epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)

// kind is the type of a value, as files number it.
type kind uint32

const (
	kindInt8 kind = iota + 1
	kindInt16
	kindInt32
	kindInt64
	kindUint8
	kindUint16
	kindUint32
	kindUint64
	kindFloat32
	kindFloat64
	kindFloat32Unit kind = 0x19
	kindFloat64Unit kind = 0x1a
	kindString      kind = 0x20
	kindBool        kind = 0x21
	kindTime        kind = 0x44
	kindComplex64   kind = 0x08000c
	kindComplex128  kind = 0x10000d
	kindDAQmx       kind = 0xffffffff
)

// numeric says how the types of numbers are stored: class, see [track.Decoder], and bytes.
var numeric = map[kind]struct {
	class byte
	size  int
}{
	kindInt8: {'i', 1}, kindInt16: {'i', 2}, kindInt32: {'i', 4}, kindInt64: {'i', 8},
	kindUint8: {'u', 1}, kindUint16: {'u', 2}, kindUint32: {'u', 4}, kindUint64: {'u', 8}, kindBool: {'u', 1},
	kindFloat32: {'f', 4}, kindFloat64: {'f', 8}, kindFloat32Unit: {'f', 4}, kindFloat64Unit: {'f', 8},
}

// others are the types of values of channels that are left out, how long a value is, 0 if that is not known, and why they are left out.
var others = map[kind]struct {
	size int64
	why  string
}{
	kindString: {0, "it is text"}, kindTime: {16, "it holds timestamps"},
	kindComplex64: {8, "it holds complex numbers"}, kindComplex128: {16, "it holds complex numbers"},
}

// size returns the bytes of a value, 0 if that is not known.
func (k kind) size() int64 { return max(int64(numeric[k].size), others[k].size) }

// left returns why a channel of the kind is left out, empty if it is not.
func (k kind) left() string { return others[k].why }

// value is a property. Only one of its fields is set.
type value struct {
	number float64
	text   string
	time   time.Time
}

// limits of what metadata may announce. No recorder comes near them.
const (
	maxName   = 64 << 10 // bytes of a name
	maxValue  = 64 << 10 // bytes of a property that is kept
	maxNoted  = 80       // bytes of the name of a property that is only noted
	maxScaler = 1 << 10  // scalers of a channel, and buffers of a device
)

// meta reads the metadata of a segment.
type meta struct {
	r     *bufio.Reader
	order binary.ByteOrder
	big   bool
	at    int64 // byte of the file that comes next
	end   int64 // of the metadata
	b     [16]byte
	err   error // the first; from then on numbers are 0 and texts empty
}

var errMeta = errors.New("the metadata end in the middle of an entry")

// fail notes an error, unless there was one.
func (m *meta) fail(err error) { m.err = cmp.Or(m.err, err) }

// take reads n ≤ 16 bytes.
func (m *meta) take(n int) []byte {
	b := m.b[:n]
	if m.end-m.at < int64(n) {
		m.fail(errMeta)
	}
	if m.err == nil {
		_, m.err = io.ReadFull(m.r, b)
	}
	if m.err != nil {
		clear(b)
		return b
	}
	m.at += int64(n)
	return b
}

func (m *meta) uint32() uint32 { return m.order.Uint32(m.take(4)) }
func (m *meta) uint64() uint64 { return m.order.Uint64(m.take(8)) }

// text reads text of at most most bytes; longer text is passed over if skip is
// true, and an error otherwise.
func (m *meta) text(most uint32, skip bool) string {
	n := m.uint32()
	if int64(n) > m.end-m.at {
		m.fail(errMeta)
	} else if n > most && !skip {
		m.fail(fmt.Errorf("a name has %d bytes", n))
	}
	if m.err != nil {
		return ""
	}
	if n > most {
		d, err := m.r.Discard(int(n))
		m.at, m.err = m.at+int64(d), err
		return ""
	}
	b := make([]byte, n)
	if _, m.err = io.ReadFull(m.r, b); m.err != nil {
		return ""
	}
	m.at += int64(n)
	return string(b)
}

// properties reads the properties of an object and keeps those that matter.
func (m *meta) properties(o *object) {
	for range m.uint32() {
		name, v := m.text(maxName, false), m.property()
		if m.err != nil {
			return
		}
		if !isKept(name) && (len(name) > maxNoted || !calibrating.MatchString(name)) {
			continue
		}
		if o.properties == nil {
			o.properties = make(map[string]value)
		}
		if name == "wf_increment" {
			o.checkRate(o.properties[name].number, v.number)
		}
		o.properties[name] = v
		if name == "wf_start_time" && o.start.time.IsZero() {
			o.start = v // a later one belongs to data appended to the file
		}
	}
}

// checkRate leaves a channel out whose later values are so many seconds apart, and not as before.
func (o *object) checkRate(before, after float64) {
	if o.values > 0 && before > 0 && after > 0 && math.Abs(after/before-1) > 1e-3 {
		o.left = fmt.Sprintf("it has %.7g Hz up to value %d and %.7g Hz behind: export each rate as a file of its own", 1/before, o.values, 1/after)
	}
}

// isKept reports whether a property says what values are.
func isKept(name string) bool {
	return strings.HasPrefix(name, "NI_Scal") || strings.HasPrefix(name, "NI_Number_Of_Scales") || strings.HasPrefix(name, "wf_") || name == "unit_string"
}

func (m *meta) property() value {
	k := kind(m.uint32())
	switch k {
	case kindString:
		return value{text: m.text(maxValue, true)}
	case kindTime:
		return value{time: timestamp(m.take(16), m.big)}
	}
	size := int(k.size())
	if size == 0 {
		m.fail(fmt.Errorf("a property is of type 0x%x, which is not known", k))
		return value{}
	}
	b := m.take(size)
	if k.left() != "" {
		return value{}
	}
	var v [1]float64
	decode(v[:], b, size, k, m.big)
	return value{number: v[0]}
}

// timestamp returns the time in 16 bytes: seconds since 1904 and 2⁻⁶⁴ seconds.
func timestamp(b []byte, big bool) time.Time {
	fraction, s := binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))
	if big {
		s, fraction = int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:])
	}
	if s < 0 || s > 1<<38 { // about 8700 years
		return time.Time{}
	}
	return time.Unix(epoch.Unix()+s, int64(math.Round(float64(fraction)/(1<<32)/(1<<32)*1e9))).UTC()
}

// decode makes numbers of values that begin stride bytes apart in b.
func decode(dst []float64, b []byte, stride int, k kind, big bool) {
	number := littleEndian[k]
	if big {
		number = bigEndian[k]
	}
	for i := range dst {
		dst[i] = number(b[i*stride:])
	}
	if k == kindBool {
		for i, v := range dst {
			dst[i] = min(v, 1)
		}
	}
}

// littleEndian and bigEndian make numbers of the bytes of a value, of which the least or the most significant one comes first.
var littleEndian, bigEndian = decoders(binary.LittleEndian), decoders(binary.BigEndian)

func decoders(order binary.ByteOrder) map[kind]func([]byte) float64 {
	all := make(map[kind]func([]byte) float64)
	for k, n := range numeric {
		all[k] = track.Decoder(n.class, n.size, order)
	}
	return all
}
