package tdms

import (
	"fmt"
	"io"

	"github.com/flank-tcm/flank/internal/source/track"
)

// buffer is the bytes that are read at once.
const buffer = 64 << 10

// column reads the values of one channel.
type column struct {
	file   *file
	object *object
	rows   *rowCache
	piece  int
	chunk  int64
	next   int64 // value within the chunk
	buf    []byte
}

// Read reads the values that one read of the file gives.
func (c *column) Read(dst track.Values) (int, error) {
	for c.piece < len(c.object.pieces) {
		p := &c.object.pieces[c.piece]
		count := p.count
		if c.chunk == p.chunks-1 {
			count = p.last
		}
		if c.next == count {
			c.next = 0
			if c.chunk++; c.chunk == p.chunks {
				c.chunk = 0
				c.piece++
			}
			continue
		}
		n, err := c.values(p, dst.Numbers, count)
		if err != nil {
			return 0, fmt.Errorf("tdms: %s: channel %s: %w", c.file.name, c.object.path, err)
		}
		c.next += int64(n)
		c.object.scale.apply(dst.Numbers[:n])
		return n, nil
	}
	return 0, io.EOF
}

// values reads values of a piece, up to count in the chunk.
func (c *column) values(p *piece, dst []float64, count int64) (int, error) {
	size := p.kind.size()
	at := p.base + c.chunk*p.chunk + c.next*p.stride
	n := int(min(int64(len(dst)), count-c.next, max(1, buffer/p.stride)))
	var b []byte
	var err error
	if p.stride > buffer || p.stride == size {
		if c.buf == nil {
			c.buf = make([]byte, buffer)
		}
		b = c.buf[:int64(n)*size]
		err = readFull(c.file.in, b, at+p.lead)
	} else if b, err = c.rows.read(at, n*int(p.stride)); err == nil {
		b = b[p.lead:]
	}
	if err != nil {
		return 0, err
	}
	decode(dst[:n], b, int(p.stride), p.kind, p.big)
	if p.bit >= 0 {
		for i, v := range dst[:n] {
			dst[i] = float64(int64(v) >> p.bit & 1)
		}
	}
	return n, nil
}

// rowCache holds the rows that were read last, since columns that are read side
// by side want the same.
type rowCache struct {
	in  io.ReaderAt
	at  int64
	buf []byte
}

// read returns n ≤ buffer bytes of the file, valid until the next call.
func (r *rowCache) read(at int64, n int) ([]byte, error) {
	if at == r.at && n == len(r.buf) {
		return r.buf, nil
	}
	if cap(r.buf) < n {
		r.buf = make([]byte, buffer)
	}
	r.buf, r.at = r.buf[:n], at
	if err := readFull(r.in, r.buf, at); err != nil {
		r.buf = r.buf[:0]
		return nil, err
	}
	return r.buf, nil
}

// readFull fills b. What the metadata placed lies within the file, so an end is
// one that came later.
func readFull(in io.ReaderAt, b []byte, at int64) error {
	n, err := in.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("byte %d: the file has become shorter while it was read: copy it again", at+int64(n))
	}
	return err
}
