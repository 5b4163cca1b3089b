package spool

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// cursor is what the cursor file says: every record below acked of the epoch was
// delivered. The ordinal counts the epochs of a folder.
type cursor struct {
	ordinal uint32
	epoch   uint64
	acked   uint64
}

const (
	cursorName  = "cursor"
	cursorMagic = "FSC1"
	cursorSize  = 28 // magic, ordinal uint32, epoch uint64, acked uint64, CRC-32C
)

// readCursor returns the cursor of d. found is false if there is none or if it
// is damaged; the second also sets lost.
func readCursor(d disk) (c cursor, found, lost bool, err error) {
	sizes, err := d.list()
	if err != nil {
		return cursor{}, false, false, err
	}
	size, there := sizes[cursorName]
	if !there {
		return cursor{}, false, false, nil
	}
	if size != cursorSize {
		return cursor{}, false, true, nil
	}
	f, err := d.open(cursorName)
	if err != nil {
		return cursor{}, false, false, err
	}
	defer f.Close()
	b := make([]byte, cursorSize)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return cursor{}, false, false, err
	}
	if string(b[:4]) != cursorMagic || crc32.Checksum(b[:24], castagnoli) != binary.LittleEndian.Uint32(b[24:]) {
		return cursor{}, false, true, nil
	}
	c = cursor{
		ordinal: binary.LittleEndian.Uint32(b[4:]),
		epoch:   binary.LittleEndian.Uint64(b[8:]),
		acked:   binary.LittleEndian.Uint64(b[16:]),
	}
	return c, c.acked <= maxSeq, c.acked > maxSeq, nil
}

// write replaces the cursor of d. After a crash either the old or the new one is
// there.
func (c cursor) write(d disk) error {
	b := append(make([]byte, 0, cursorSize), cursorMagic...)
	b = binary.LittleEndian.AppendUint32(b, c.ordinal)
	b = binary.LittleEndian.AppendUint64(b, c.epoch)
	b = binary.LittleEndian.AppendUint64(b, c.acked)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return replaceFile(d, cursorName, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
