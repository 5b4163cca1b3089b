package spool

import (
	"errors"
	"io"
	"slices"
)

// SectorSize is the number of bytes that a disk fails to read together, at a multiple
// of it from the start of a file.
const SectorSize = 512

// ErrUnreadable is returned where the disk cannot read a part of a file any more.
var ErrUnreadable = errors.New("the disk cannot read it (bad sectors)")

// isUnreadable reports whether err says that the disk cannot read a place. A disk
// that is full, a file that may not be read and one that is closed are other errors.
func isUnreadable(err error) bool {
	return slices.ContainsFunc(unreadable, func(bad error) bool { return errors.Is(err, bad) })
}

// patched reads a file around the sectors that the disk cannot read. Their bytes
// are zero; where they were not, the checksum of the record fails.
type patched struct {
	file io.ReaderAt
	bad  map[int64]bool // sectors that cannot be read, by their number; they are not tried again
}

// ReadAt reads len(p) bytes at off, unreadable ones as zeros. It returns io.EOF
// where the file ends before, and errors other than an unreadable place.
func (f *patched) ReadAt(p []byte, off int64) (n int, err error) {
	if !f.anyBad(off, off+int64(len(p))) {
		if n, err = f.file.ReadAt(p, off); !isUnreadable(err) {
			return n, err
		}
	}
	for n < len(p) {
		at := off + int64(n)
		sector := at / SectorSize
		piece := p[n:min(int64(len(p)), (sector+1)*SectorSize-off)]
		if !f.bad[sector] {
			got, err := f.file.ReadAt(piece, at)
			if err != nil && !isUnreadable(err) {
				return n + got, err
			}
			if err != nil {
				f.mark(sector)
			}
		}
		if f.bad[sector] {
			clear(piece)
		}
		n += len(piece)
	}
	return n, nil
}

func (f *patched) mark(sector int64) {
	if f.bad == nil {
		f.bad = make(map[int64]bool)
	}
	f.bad[sector] = true
}

// anyBad reports whether a sector of the bytes [from, to) is known to be bad.
func (f *patched) anyBad(from, to int64) bool {
	for sector := range f.bad {
		if sector < (to+SectorSize-1)/SectorSize && sector >= from/SectorSize {
			return true
		}
	}
	return false
}
