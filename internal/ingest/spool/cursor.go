package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
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
// is damaged or cannot be read; the second also sets lost.
func readCursor(d Disk) (c cursor, found, lost bool, err error) {
	b, err := ReadFile(d, cursorName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cursor{}, false, false, nil
	case errors.Is(err, ErrUnreadable), err == nil && len(b) != cursorSize:
		return cursor{}, false, true, nil
	case err != nil:
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
func (c cursor) write(d Disk) error {
	b := append(make([]byte, 0, cursorSize), cursorMagic...)
	b = binary.LittleEndian.AppendUint32(b, c.ordinal)
	b = binary.LittleEndian.AppendUint64(b, c.epoch)
	b = binary.LittleEndian.AppendUint64(b, c.acked)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return WriteFile(d, cursorName, b)
}
