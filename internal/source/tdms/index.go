package tdms

import "fmt"

// rawIndex says what a channel has in a chunk of raw data.
type rawIndex struct {
	kind   kind
	count  int64 // values
	bytes  int64 // of text, with its offsets
	daqmx  []scaler
	widths []int64 // bytes of a row of each DAQmx buffer
}

// scaler says where a number is within a row of a DAQmx buffer.
type scaler struct {
	kind   kind
	buffer int
	offset int64 // of its first byte
	bit    int   // of a digital line, -1 for other data
	id     uint32
}

// daqmxKinds are the types of scalers, which have numbers of their own.
var daqmxKinds = []kind{kindUint8, kindInt8, kindUint16, kindInt16, kindUint32, kindInt32, kindUint64, kindInt64, kindFloat32, kindFloat64}

// Values of the length of a raw data index that are not a length.
const (
	noRawData      = 0xffffffff
	sameAsBefore   = 0x00000000
	formatChanging = 0x00001269
	digitalLine    = 0x0000126a
)

// rawIndex reads an index whose length field is header.
func (m *meta) rawIndex(header uint32) (ix rawIndex) {
	ix.kind = kind(m.uint32())
	if dimension := m.uint32(); dimension != 1 {
		m.fail(fmt.Errorf("values have %d dimensions, but only 1 is defined", dimension))
	}
	ix.count = m.length("values")
	switch {
	case header == formatChanging || header == digitalLine:
		m.scalers(&ix, header == digitalLine)
	case ix.kind == kindString:
		ix.bytes = m.length("bytes of text")
	case ix.kind.size() == 0:
		m.fail(fmt.Errorf("values are of type 0x%x, which is not known", ix.kind))
	}
	return ix
}

// some reads a number from 1 to maxScaler. Wrong is the error for another one.
func (m *meta) some(wrong string) uint32 {
	n := m.uint32()
	if n == 0 || n > maxScaler {
		m.fail(fmt.Errorf(wrong, n))
		return 0
	}
	return n
}

// length reads how many of what a chunk holds.
func (m *meta) length(what string) int64 {
	n := m.uint64()
	if n > 1<<48 {
		m.fail(fmt.Errorf("a chunk holds %d %s", n, what))
	}
	return int64(n)
}

// scaler reads one scaler: its type, buffer, offset, sample format bitmap and id.
func (m *meta) scaler(digital bool) (s scaler) {
	var words [4]uint32
	for i := range words {
		if i == 3 && digital { // the sample format bitmap has one byte
			m.take(1)
		} else {
			words[i] = m.uint32()
		}
	}
	s.id = m.uint32()
	if int64(words[0]) >= int64(len(daqmxKinds)) {
		m.fail(fmt.Errorf("a scaler is of type %d, which is not known", words[0]))
		return s
	}
	if words[1] >= maxScaler {
		m.fail(fmt.Errorf("a scaler is in buffer %d", words[1]))
	}
	s.kind, s.buffer, s.offset, s.bit = daqmxKinds[words[0]], int(words[1]), int64(words[2]), -1
	if digital {
		s.offset, s.bit = int64(words[2]/8), int(words[2]%8)
	}
	return s
}

// scalers reads what follows the count in an index of DAQmx data.
func (m *meta) scalers(ix *rawIndex, digital bool) {
	for range m.some("a channel has %d scalers") {
		ix.daqmx = append(ix.daqmx, m.scaler(digital))
	}
	for range m.some("a device has %d buffers") {
		ix.widths = append(ix.widths, int64(m.uint32()))
	}
	for _, s := range ix.daqmx {
		if s.buffer >= len(ix.widths) || s.offset+s.kind.size() > ix.widths[s.buffer] {
			m.fail(fmt.Errorf("a scaler points at byte %d of buffer %d, which lies outside", s.offset, s.buffer))
		}
	}
}
