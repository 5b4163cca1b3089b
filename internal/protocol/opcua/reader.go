package opcua

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gopcua/opcua/ua"
)

// reader decodes an answer. (Part 6, 5.2.) After an error everything it returns is empty. It
// never takes more memory than the answer has bytes.
type reader struct {
	b   []byte
	at  int
	err error
}

var errShort = errors.New("not an answer of OPC UA: it ends too early")

// skip returns the next n bytes.
func (r *reader) skip(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b)-r.at {
		if r.err == nil {
			r.err = errShort
		}
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

// number returns the number in the next n bytes.
func (r *reader) number(n int) (v uint64) {
	for i, b := range r.skip(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

func (r *reader) u8() byte    { return byte(r.number(1)) }
func (r *reader) u16() uint16 { return uint16(r.number(2)) }
func (r *reader) u32() uint32 { return uint32(r.number(4)) }
func (r *reader) u64() uint64 { return r.number(8) }

// bytes returns a text or a string of bytes, nil for a null one.
func (r *reader) bytes() []byte {
	n := r.u32()
	if n == math.MaxUint32 || r.err != nil {
		return nil
	}
	if n > maxMessage {
		r.err = errShort
		return nil
	}
	return r.skip(int(n))
}

func (r *reader) text() string { return string(r.bytes()) }

// count returns the length of an array whose elements have at least least bytes each.
func (r *reader) count(least int) int {
	n := int32(r.u32())
	if n == -1 || r.err != nil {
		return 0
	}
	if n < 0 || int64(n)*int64(least) > int64(len(r.b)-r.at) {
		r.err = errShort
		return 0
	}
	return int(n)
}

// nodeID returns a node's id.
func (r *reader) nodeID() *ua.NodeID {
	from := r.at
	switch r.u8() {
	case 0:
		r.skip(1)
	case 1:
		r.skip(3)
	case 2:
		r.skip(6)
	case 3, 5:
		r.skip(2)
		r.bytes()
	case 4:
		r.skip(18)
	default:
		r.err = errors.New("not an answer of OPC UA: a node id of unknown kind")
	}
	if r.err != nil {
		return nil
	}
	id := new(ua.NodeID)
	if _, err := id.Decode(r.b[from:r.at]); err != nil {
		r.err = err
	}
	return id
}

// typeID returns the id of an encoding, which for services is a number of namespace 0.
func (r *reader) typeID() uint32 {
	id := r.nodeID()
	if id == nil || id.Namespace() != 0 {
		return 0
	}
	return id.IntID()
}

func (r *reader) localizedText() {
	mask := r.u8()
	if mask&1 != 0 {
		r.text()
	}
	if mask&2 != 0 {
		r.text()
	}
}

func (r *reader) extension() {
	r.nodeID()
	if r.u8() != 0 {
		r.bytes()
	}
}

// diagnostics skips what a server says beyond a status. (Part 6, 5.2.2.12.)
func (r *reader) diagnostics(depth int) {
	mask := r.u8()
	for bit := range 4 {
		if mask&(1<<bit) != 0 {
			r.skip(4)
		}
	}
	if mask&0x10 != 0 {
		r.text()
	}
	if mask&0x20 != 0 {
		r.skip(4)
	}
	if mask&0x40 != 0 {
		if depth++; depth > 8 {
			r.err = errors.New("not an answer of OPC UA: diagnostics in diagnostics")
			return
		}
		r.diagnostics(depth)
	}
}

// dataValue returns a value. (Part 6, 5.2.2.17.)
func (r *reader) dataValue() (v Value) {
	mask := r.u8()
	if mask&1 != 0 {
		v.Type, v.V = r.variant()
	}
	if mask&2 != 0 {
		v.Status = ua.StatusCode(r.u32())
	}
	for _, part := range []struct {
		bit  byte
		size int
	}{{4, 8}, {0x10, 2}, {8, 8}, {0x20, 2}} {
		if mask&part.bit != 0 {
			r.skip(part.size)
		}
	}
	if bad(v.Status) {
		v.Type, v.V = ua.TypeIDNull, nil
	}
	return v
}

// variant returns a single value, and no type for an array. (Part 6, 5.2.2.16.)
func (r *reader) variant() (ua.TypeID, any) {
	mask := r.u8()
	t := ua.TypeID(mask & 0x3F)
	if mask&0x80 == 0 {
		return r.scalar(t)
	}
	for range r.count(1) {
		if r.scalar(t); r.err != nil {
			break
		}
	}
	if mask&0x40 != 0 {
		for range r.count(4) {
			r.skip(4)
		}
	}
	return ua.TypeIDNull, nil
}

func (r *reader) scalar(t ua.TypeID) (ua.TypeID, any) {
	read, ok := scalars[t]
	if !ok {
		r.err = errors.New("not an answer of OPC UA: a value of unknown type")
		return t, nil
	}
	return t, read(r)
}

// scalars are how values of each type are read; nil is returned for those that are passed over.
var scalars = map[ua.TypeID]func(*reader) any{
	ua.TypeIDNull:            func(*reader) any { return nil },
	ua.TypeIDBoolean:         func(r *reader) any { return r.u8() != 0 },
	ua.TypeIDSByte:           func(r *reader) any { return int8(r.u8()) },
	ua.TypeIDByte:            func(r *reader) any { return r.u8() },
	ua.TypeIDInt16:           func(r *reader) any { return int16(r.u16()) },
	ua.TypeIDUint16:          func(r *reader) any { return r.u16() },
	ua.TypeIDInt32:           func(r *reader) any { return int32(r.u32()) },
	ua.TypeIDUint32:          func(r *reader) any { return r.u32() },
	ua.TypeIDStatusCode:      func(r *reader) any { return r.u32() },
	ua.TypeIDInt64:           func(r *reader) any { return int64(r.u64()) },
	ua.TypeIDUint64:          func(r *reader) any { return r.u64() },
	ua.TypeIDFloat:           func(r *reader) any { return math.Float32frombits(r.u32()) },
	ua.TypeIDDouble:          func(r *reader) any { return math.Float64frombits(r.u64()) },
	ua.TypeIDString:          func(r *reader) any { return r.text() },
	ua.TypeIDDateTime:        func(r *reader) any { return clock(r.u64()) },
	ua.TypeIDGUID:            func(r *reader) any { r.skip(16); return nil },
	ua.TypeIDByteString:      func(r *reader) any { r.bytes(); return nil },
	ua.TypeIDXMLElement:      func(r *reader) any { r.bytes(); return nil },
	ua.TypeIDNodeID:          func(r *reader) any { return r.nodeID() },
	ua.TypeIDQualifiedName:   func(r *reader) any { r.skip(2); r.text(); return nil },
	ua.TypeIDLocalizedText:   func(r *reader) any { r.localizedText(); return nil },
	ua.TypeIDExtensionObject: func(r *reader) any { r.extension(); return nil },
}

// clock returns the time of a count of 100 ns since 1601, zero for a null time.
func clock(n uint64) time.Time {
	const unix = 116444736000000000
	if n == 0 || n > math.MaxInt64 {
		return time.Time{}
	}
	t := int64(n) - unix
	return time.Unix(t/1e7, t%1e7*100).UTC()
}

// list reads an array that answers so many questions. Each has at least least bytes.
func list[T any](r *reader, asked, least int, what string, one func() T) (all []T) {
	n := r.count(least)
	for range min(n, asked) {
		all = append(all, one())
	}
	if r.err == nil && n != asked {
		r.err = fmt.Errorf("the server answers %d %s, asked for %d", n, what, asked)
	}
	return all
}

// endpoint is a way to talk to a server, as the server describes it.
type endpoint struct {
	certificate []byte
	mode        uint32
	policy      string
	tokens      []userToken
}

// userToken is a way to log in.
type userToken struct {
	id     string
	kind   uint32
	policy string
}

func readEndpoints(r *reader) (all []endpoint) {
	for range r.count(40) {
		var e endpoint
		r.text()
		r.text() // the server's description
		r.text()
		r.localizedText()
		r.skip(4)
		r.text()
		r.text()
		for range r.count(4) {
			r.text()
		}
		e.certificate, e.mode, e.policy = r.bytes(), r.u32(), r.text()
		for range r.count(20) {
			t := userToken{id: r.text(), kind: r.u32()}
			r.text()
			r.text()
			t.policy = r.text()
			e.tokens = append(e.tokens, t)
		}
		r.text()
		r.skip(1)
		all = append(all, e)
	}
	return all
}
