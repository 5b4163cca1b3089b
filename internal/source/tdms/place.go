package tdms

import (
	"fmt"
	"slices"
)

// piece is where the values of a channel are within one segment.
type piece struct {
	base   int64 // byte of the first value of the first chunk
	chunk  int64 // bytes of a chunk
	chunks int64 // chunks, of which the last may be cut short
	count  int64 // values in a chunk
	last   int64 // values in the last chunk
	stride int64 // bytes from a value to the next
	lead   int64 // bytes from the beginning of a row to the value
	kind   kind
	bit    int // of a digital line, or -1
	big    bool
}

// placed is a piece with its channel.
type placed struct {
	*object
	piece
}

func (p piece) values() int64 { return (p.chunks-1)*p.count + p.last }

// place finds the values of the channels in the raw data of a segment.
func (f *file) place(s segment, list []member) error {
	var data []member
	for _, e := range list {
		if e.data {
			data = append(data, e)
		}
	}
	total := s.end - s.data
	if total == 0 {
		return nil
	}
	var pieces []placed
	var err error
	switch {
	case len(data) > 0 && data[0].index.daqmx != nil:
		pieces, err = f.placeDAQmx(s, data)
	case s.toc&tocInterleaved != 0:
		pieces, err = placeRows(s, data)
	default:
		pieces, err = placeColumns(s, data)
	}
	if err != nil {
		return f.errorf(s.at, "segment: %v: the file is damaged, or written in a way that is not defined; export it again", err)
	}
	if len(pieces) == 0 || pieces[0].chunk == 0 {
		return f.errorf(s.at, "the segment has %d bytes of raw data, but no channel has values in it: the file is damaged; copy it again", total)
	}
	for _, p := range pieces {
		if left := p.kind.left(); left != "" {
			p.object.left = left
		} else if n := p.piece.values(); p.chunks > 0 && n > 0 {
			p.pieces = append(p.pieces, p.piece)
			p.object.values += n
		}
	}
	if rest := total % pieces[0].chunk; s.cut || rest != 0 {
		why := "its last segment breaks off"
		if s.unwritten {
			why = "the length of its last segment was never written"
		}
		f.Remark("the file was not finished: %s at byte %d of %d; whole samples of it are read", why, s.at, f.size)
	}
	return nil
}

// chunksOf returns how many chunks there are in the bytes of a segment, and how
// many bytes a last one has that is cut short, 0 if none is.
func chunksOf(s segment, chunk int64) (chunks, rest int64) {
	total := s.end - s.data
	chunks, rest = total/chunk, total%chunk
	if rest != 0 {
		chunks++
	}
	return chunks, rest
}

// placeColumns places values that are stored channel after channel.
func placeColumns(s segment, data []member) (pieces []placed, err error) {
	var chunk int64
	sizes := make([]int64, len(data))
	for i, e := range data {
		if e.index.daqmx != nil {
			return nil, fmt.Errorf("DAQmx data and other data are mixed")
		}
		sizes[i] = e.index.count * e.index.kind.size()
		if e.index.kind == kindString {
			sizes[i] = e.index.bytes
		}
		if chunk += sizes[i]; chunk > 1<<60 {
			return nil, fmt.Errorf("a chunk has more than 2^60 bytes")
		}
	}
	if chunk == 0 {
		return nil, nil
	}
	chunks, rest := chunksOf(s, chunk)
	offset := int64(0)
	for i, e := range data {
		size := e.index.kind.size()
		p := piece{base: s.data + offset, chunk: chunk, chunks: chunks, count: e.index.count, last: e.index.count, stride: size, kind: e.index.kind, bit: -1, big: s.big()}
		if rest != 0 && size > 0 {
			p.last = max(0, min(rest-offset, sizes[i])) / size
		}
		pieces = append(pieces, placed{e.object, p})
		offset += sizes[i]
	}
	return pieces, nil
}

// placeRows places interleaved values.
func placeRows(s segment, data []member) (pieces []placed, err error) {
	var width int64
	for _, e := range data {
		if e.index.daqmx != nil || e.index.kind == kindString {
			return nil, fmt.Errorf("text or DAQmx data are interleaved with other data")
		}
		if e.index.count != data[0].index.count {
			return nil, fmt.Errorf("interleaved channels have %d and %d values", data[0].index.count, e.index.count)
		}
		width += e.index.kind.size()
	}
	if len(data) == 0 || data[0].index.count == 0 {
		return nil, nil
	}
	rows := data[0].index.count
	if rows > 1<<60/width {
		return nil, fmt.Errorf("a chunk has more than 2^60 bytes")
	}
	chunks, rest := chunksOf(s, rows*width)
	last := rows
	if rest != 0 {
		last = rest / width
	}
	lead := int64(0)
	for _, e := range data {
		pieces = append(pieces, placed{e.object, piece{base: s.data, lead: lead, chunk: rows * width, chunks: chunks, count: rows, last: last, stride: width, kind: e.index.kind, bit: -1, big: s.big()}})
		lead += e.index.kind.size()
	}
	return pieces, nil
}

// placeDAQmx places values in DAQmx buffers, which follow each other in a
// chunk.
func (f *file) placeDAQmx(s segment, data []member) (pieces []placed, err error) {
	widths := data[0].index.widths
	rows, err := daqmxRows(data, widths)
	if err != nil {
		return nil, err
	}
	bases := make([]int64, len(widths))
	var chunk int64
	for i, w := range widths {
		bases[i] = chunk
		if w > 0 && rows[i] > (1<<60-chunk)/w {
			return nil, fmt.Errorf("a chunk has more than 2^60 bytes")
		}
		chunk += rows[i] * w
	}
	if chunk == 0 {
		return nil, nil
	}
	chunks, rest := chunksOf(s, chunk)
	for _, e := range data {
		sc := f.scaler(e.object, e.index)
		w := widths[sc.buffer]
		p := piece{base: s.data + bases[sc.buffer], lead: sc.offset, chunk: chunk, chunks: chunks, count: e.index.count, last: e.index.count, stride: w, kind: sc.kind, bit: sc.bit, big: s.big()}
		if rest != 0 {
			p.last = min(e.index.count, max(0, rest-bases[sc.buffer])/w)
		}
		pieces = append(pieces, placed{e.object, p})
	}
	return pieces, nil
}

// daqmxRows returns the rows of each buffer, which all members share.
func daqmxRows(data []member, widths []int64) ([]int64, error) {
	rows := make([]int64, len(widths))
	for _, e := range data {
		if e.index.daqmx == nil {
			return nil, fmt.Errorf("DAQmx data and other data are mixed")
		}
		if !slices.Equal(e.index.widths, widths) {
			return nil, fmt.Errorf("channels disagree on the DAQmx buffers, which have %d and %d bytes a row", widths, e.index.widths)
		}
		for _, sc := range e.index.daqmx {
			rows[sc.buffer] = max(rows[sc.buffer], e.index.count)
		}
	}
	return rows, nil
}
