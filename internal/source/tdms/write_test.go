package tdms

import (
	"bytes"
	"encoding/binary"
	"math"
)

// build writes segments as recorders do, for tests.
type build struct {
	out bytes.Buffer
	big bool
}

type prop struct {
	name  string
	value any // string, float64, uint32, int32, stamp
}

type stamp struct {
	seconds  int64
	fraction uint64
}

// obj is an object of a segment; its index is nil for no raw data.
type obj struct {
	path  string
	index []byte
	props []prop
}

func (b *build) order() binary.AppendByteOrder {
	if b.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (b *build) text(to []byte, s string) []byte {
	return append(b.order().AppendUint32(to, uint32(len(s))), s...)
}

// values is an index of n values of a type.
func (b *build) values(k kind, n int) []byte {
	ix := b.order().AppendUint32(nil, 20)
	ix = b.order().AppendUint32(ix, uint32(k))
	ix = b.order().AppendUint32(ix, 1)
	return b.order().AppendUint64(ix, uint64(n))
}

// texts is an index of n strings of so many bytes with their offsets.
func (b *build) texts(n, bytes int) []byte {
	ix := b.values(kindString, n)
	b.order().(binary.ByteOrder).PutUint32(ix, 28)
	return b.order().AppendUint64(ix, uint64(bytes))
}

// same is the index that says: as before.
func (b *build) same() []byte { return b.order().AppendUint32(nil, sameAsBefore) }

// daqmx is an index of n rows of DAQmx data.
func (b *build) daqmx(header uint32, n int, scalers []scaler, widths ...uint32) []byte {
	o := b.order()
	ix := o.AppendUint32(nil, header)
	k := uint32(kindDAQmx)
	ix = o.AppendUint32(ix, k)
	ix = o.AppendUint32(ix, 1)
	ix = o.AppendUint64(ix, uint64(n))
	ix = o.AppendUint32(ix, uint32(len(scalers)))
	for _, s := range scalers {
		for i, k := range daqmxKinds {
			if k == s.kind {
				ix = o.AppendUint32(ix, uint32(i))
			}
		}
		ix = o.AppendUint32(ix, uint32(s.buffer))
		if header == digitalLine {
			ix = o.AppendUint32(ix, uint32(8*s.offset)+uint32(s.bit))
			ix = append(ix, 0)
		} else {
			ix = o.AppendUint32(ix, uint32(s.offset))
			ix = o.AppendUint32(ix, 0)
		}
		ix = o.AppendUint32(ix, s.id)
	}
	ix = o.AppendUint32(ix, uint32(len(widths)))
	for _, w := range widths {
		ix = o.AppendUint32(ix, w)
	}
	return ix
}

func (b *build) prop(to []byte, p prop) []byte {
	o := b.order()
	to = b.text(to, p.name)
	switch v := p.value.(type) {
	case string:
		return b.text(o.AppendUint32(to, uint32(kindString)), v)
	case float64:
		return o.AppendUint64(o.AppendUint32(to, uint32(kindFloat64)), math.Float64bits(v))
	case uint32:
		return o.AppendUint32(o.AppendUint32(to, uint32(kindUint32)), v)
	case int32:
		return o.AppendUint32(o.AppendUint32(to, uint32(kindInt32)), uint32(v))
	case stamp:
		to = o.AppendUint32(to, uint32(kindTime))
		if b.big {
			return o.AppendUint64(o.AppendUint64(to, uint64(v.seconds)), v.fraction)
		}
		return o.AppendUint64(o.AppendUint64(to, v.fraction), uint64(v.seconds))
	}
	panic("tdms: build: type of a property")
}

// segment writes a segment. The flags for metadata, raw data and byte order are
// set by what there is.
func (b *build) segment(toc uint32, objs []obj, raw []byte) *build {
	o := b.order()
	var m []byte
	if objs != nil {
		toc |= tocMeta
		m = o.AppendUint32(m, uint32(len(objs)))
		for _, e := range objs {
			m = b.text(m, e.path)
			if e.index == nil {
				m = o.AppendUint32(m, noRawData)
			}
			m = append(m, e.index...)
			m = o.AppendUint32(m, uint32(len(e.props)))
			for _, p := range e.props {
				m = b.prop(m, p)
			}
		}
	}
	if raw != nil {
		toc |= tocRaw
	}
	if b.big {
		toc |= tocBigEndian
	}
	lead := binary.LittleEndian.AppendUint32([]byte("TDSm"), toc)
	lead = o.AppendUint32(lead, 4713)
	lead = o.AppendUint64(lead, uint64(len(m)+len(raw)))
	lead = o.AppendUint64(lead, uint64(len(m)))
	b.out.Write(lead)
	b.out.Write(m)
	b.out.Write(raw)
	return b
}

// raw is the bytes of values, one after another.
func (b *build) raw(values ...any) []byte {
	var out bytes.Buffer
	var o binary.ByteOrder = binary.LittleEndian
	if b.big {
		o = binary.BigEndian
	}
	for _, v := range values {
		if err := binary.Write(&out, o, v); err != nil {
			panic("tdms: build: " + err.Error())
		}
	}
	return out.Bytes()
}

// unfinished is what is left when the writer of the last segment, which begins
// at byte at, was stopped: its length was not written, and the end is missing.
func unfinished(file []byte, at, missing int) []byte {
	file = bytes.Clone(file)
	for i := range 8 {
		file[at+12+i] = 0xff
	}
	return file[:len(file)-missing]
}
