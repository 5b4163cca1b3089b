package table

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"unsafe"
)

// RowFile holds the features of rows on disk, for tables that do not fit in
// memory. Rows are appended, then read by any number of goroutines. The file is
// this program's alone, in the byte order of this machine, and goes with Close.
type RowFile struct {
	f    *os.File
	out  *bufio.Writer
	rows int
	cols int
}

// NewRowFile returns an empty RowFile in the folder dir, or in the folder for
// temporary files if dir is empty.
func NewRowFile(dir string, cols int) (*RowFile, error) {
	f, err := os.CreateTemp(dir, ".flank-rows.*")
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	if runtime.GOOS != "windows" {
		_ = os.Remove(f.Name()) // it lives until it is closed, however the program ends
	}
	return &RowFile{f: f, out: bufio.NewWriterSize(f, 1<<20), cols: cols}, nil
}

// Append adds a row. It panics if it does not have one value for each column.
func (r *RowFile) Append(row []float32) error {
	if len(row) != r.cols {
		panic(fmt.Sprintf("table: Append: %d features for %d columns", len(row), r.cols))
	}
	if _, err := r.out.Write(bytesOf(row)); err != nil {
		return r.full(err)
	}
	r.rows++
	return nil
}

// Flush writes what was appended, which can be read from then on.
func (r *RowFile) Flush() error {
	if err := r.out.Flush(); err != nil {
		return r.full(err)
	}
	return nil
}

func (r *RowFile) full(err error) error {
	return fmt.Errorf("table: row %d to disk: %w: the rows take 4 bytes a value; make room in that folder", r.rows+1, err)
}

// Shape returns the number of rows and of columns.
func (r *RowFile) Shape() (rows, cols int) { return r.rows, r.cols }

// ReadRows stores rows from, from+1, … in dst, which has room for a whole number
// of them. Rows must have been flushed.
func (r *RowFile) ReadRows(dst []float32, from int) error {
	if _, err := r.f.ReadAt(bytesOf(dst), int64(from)*int64(r.cols)*4); err != nil {
		return fmt.Errorf("table: row %d from disk: %w", from+1, err)
	}
	return nil
}

// Close removes the file.
func (r *RowFile) Close() error {
	err := r.f.Close()
	if gone := os.Remove(r.f.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// bytesOf returns the memory of x.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
