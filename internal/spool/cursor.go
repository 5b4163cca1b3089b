package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
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

// readCursor returns the cursor of dir. found is false if there is none or if it
// is damaged; the second also sets lost.
func readCursor(dir string) (c cursor, found, lost bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, cursorName))
	if errors.Is(err, fs.ErrNotExist) {
		return cursor{}, false, false, nil
	}
	if err != nil {
		return cursor{}, false, false, err
	}
	if len(b) != cursorSize || string(b[:4]) != cursorMagic ||
		crc32.Checksum(b[:24], castagnoli) != binary.LittleEndian.Uint32(b[24:]) {
		return cursor{}, false, true, nil
	}
	c = cursor{
		ordinal: binary.LittleEndian.Uint32(b[4:]),
		epoch:   binary.LittleEndian.Uint64(b[8:]),
		acked:   binary.LittleEndian.Uint64(b[16:]),
	}
	return c, c.acked <= maxSeq, c.acked > maxSeq, nil
}

// write replaces the cursor of dir. After a crash either the old or the new one
// is there.
func (c cursor) write(dir string, fsync func(*os.File) error) error {
	b := append(make([]byte, 0, cursorSize), cursorMagic...)
	b = binary.LittleEndian.AppendUint32(b, c.ordinal)
	b = binary.LittleEndian.AppendUint64(b, c.epoch)
	b = binary.LittleEndian.AppendUint64(b, c.acked)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	path := filepath.Join(dir, cursorName)
	err := writeFile(path+tempSuffix, fsync, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Rename(path+tempSuffix, path); err != nil {
		return err
	}
	return syncDir(dir, fsync)
}

// writeFile creates path, or empties it, and makes what fill writes durable.
func writeFile(path string, fsync func(*os.File) error, fill func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = fsync(f)
	}
	return errors.Join(err, f.Close())
}
