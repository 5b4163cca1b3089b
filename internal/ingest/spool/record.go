package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
)

// A segment is a run of records and nothing else. All numbers are little-endian:
//
//	magic     uint32  "FSP1"
//	length    uint32  bytes of payload; 2³²−1 marks a hole
//	seq       uint64
//	payload   uint32  CRC-32C of the payload
//	header    uint32  CRC-32C of the epoch (8 bytes) and the 20 bytes above
//	payload   length bytes
//
// Seqs rise by one from the seq in the segment's name. A hole has no payload and
// says that the records before it, up to and including its seq, are lost. Since
// the epoch is in the checksum, bytes of another segment are never taken for a
// record of this one.
const (
	magic      = "FSP1"
	headerSize = 24
	holeLength = math.MaxUint32
	maxSeq     = 1 << 62 // above it a header is damaged, however well its checksum fits
	chunkSize  = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged says that the bytes at the scanner's offset are not a whole record.
var errDamaged = errors.New("damaged record")

// header is what precedes a payload.
type header struct {
	seq    uint64
	length uint32
	sum    uint32 // CRC-32C of the payload
}

func (h header) hole() bool { return h.length == holeLength }

// payloadSize returns how many bytes follow the header.
func (h header) payloadSize() int64 {
	if h.hole() {
		return 0
	}
	return int64(h.length)
}

func headerSum(epoch uint64, fields []byte) uint32 {
	var e [8]byte
	binary.LittleEndian.PutUint64(e[:], epoch)
	return crc32.Update(crc32.Checksum(e[:], castagnoli), castagnoli, fields)
}

// append appends the encoded header to dst.
func (h header) append(dst []byte, epoch uint64) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, h.length)
	dst = binary.LittleEndian.AppendUint64(dst, h.seq)
	dst = binary.LittleEndian.AppendUint32(dst, h.sum)
	return binary.LittleEndian.AppendUint32(dst, headerSum(epoch, dst[start:]))
}

// parseHeader reads the header in the first headerSize bytes of b.
func parseHeader(b []byte, epoch uint64) (h header, ok bool) {
	if string(b[:4]) != magic || headerSum(epoch, b[:20]) != binary.LittleEndian.Uint32(b[20:]) {
		return header{}, false
	}
	h = header{
		length: binary.LittleEndian.Uint32(b[4:]),
		seq:    binary.LittleEndian.Uint64(b[8:]),
		sum:    binary.LittleEndian.Uint32(b[16:]),
	}
	return h, h.seq < maxSeq
}

// scanner reads the records between off and end of a segment file. Its memory is
// the largest record it met or chunkSize, never more than the file holds.
type scanner struct {
	file     io.ReaderAt
	epoch    uint64
	off, end int64
	buf      []byte // bytes of the file from bufOff
	bufOff   int64
}

// peek returns n bytes at off; n must not reach beyond end. The bytes are valid
// until the next call.
func (s *scanner) peek(n int64) ([]byte, error) {
	at := s.off - s.bufOff
	if at < 0 || at+n > int64(len(s.buf)) {
		want := min(max(n, chunkSize), s.end-s.off)
		if int64(cap(s.buf)) < want {
			s.buf = make([]byte, want)
		}
		s.buf = s.buf[:want]
		got, err := s.file.ReadAt(s.buf, s.off)
		s.buf, s.bufOff, at = s.buf[:got], s.off, 0
		if int64(got) < n {
			if err == io.EOF { // the file is shorter than it was
				s.end, err = s.off+int64(got), errDamaged
			}
			return nil, err
		}
	}
	return s.buf[at : at+n], nil
}

// next returns the record at off and moves behind it. It returns io.EOF at end
// and errDamaged, without moving, where no whole record is. The payload is valid
// until the next call.
func (s *scanner) next() (header, []byte, error) {
	left := s.end - s.off
	if left == 0 {
		return header{}, nil, io.EOF
	}
	if left < headerSize {
		return header{}, nil, errDamaged
	}
	b, err := s.peek(headerSize)
	if err != nil {
		return header{}, nil, err
	}
	h, ok := parseHeader(b, s.epoch)
	if !ok || h.payloadSize() > left-headerSize {
		return header{}, nil, errDamaged
	}
	size := headerSize + h.payloadSize()
	if b, err = s.peek(size); err != nil {
		return header{}, nil, err
	}
	payload := b[headerSize:]
	if !h.hole() && crc32.Checksum(payload, castagnoli) != h.sum {
		return header{}, nil, errDamaged
	}
	s.off += size
	return h, payload, nil
}

// take is next for a record whose seq is at least low and below high. Unless gaps may be before it, it is the one of low or a hole.
// Any other record is damage.
func (s *scanner) take(low, high uint64, gaps bool) (header, []byte, error) {
	at := s.off
	h, payload, err := s.next()
	if err == nil && (h.seq < low || h.seq >= high || h.seq > low && !gaps && !h.hole()) {
		s.off, err = at, errDamaged
	}
	return h, payload, err
}

// resync moves to the next whole record behind off whose seq is at least low and
// below high. It reports whether there is one; if not, off is not moved.
func (s *scanner) resync(low, high uint64) (bool, error) {
	damaged := s.off
	for s.off++; s.end-s.off >= headerSize; s.off++ {
		b, err := s.peek(min(chunkSize, s.end-s.off))
		if err == errDamaged {
			s.off-- // the file is shorter than it was: look through what is there
			continue
		}
		if err != nil {
			return false, err
		}
		i := bytes.Index(b, []byte(magic))
		if i < 0 {
			s.off += int64(len(b) - len(magic)) // the magic may lie across the border
			continue
		}
		s.off += int64(i)
		at := s.off
		h, _, err := s.next()
		s.off = at
		switch {
		case err == nil && low <= h.seq && h.seq < high:
			return true, nil
		case err != nil && err != errDamaged && err != io.EOF:
			return false, err
		}
	}
	s.off = damaged
	return false, nil
}

// begun returns how many records begin at off or behind it, the first of them with
// the given seq, as far as their headers say: what follows a header that is
// damaged counts as one record.
func (s *scanner) begun(first uint64) (n uint64, err error) {
	defer func(at int64) { s.off = at }(s.off)
	for ; s.end-s.off >= headerSize; n++ {
		b, err := s.peek(headerSize)
		if err != nil && err != errDamaged {
			return 0, err
		}
		h, ok := header{}, false
		if err == nil {
			h, ok = parseHeader(b, s.epoch)
		}
		if !ok || h.seq != first+n {
			return n + 1, nil
		}
		s.off += headerSize + h.payloadSize()
	}
	return max(n, 1), nil
}
