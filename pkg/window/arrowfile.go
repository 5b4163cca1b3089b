package window

import (
	"fmt"
	"io"
	"runtime"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

// Bounds on the memory of a file's dictionaries, its record batches in use, and what these
// unpack to. A large file has more, for those who write all of a recording as one batch.
const (
	arrowMemory     = 160 << 20
	mostArrowMemory = 3 << 30
)

// OpenArrow returns a reader of the record batches of an Arrow IPC file of the given size, if its columns can be read. The
// reader panics when the file asks for more memory than its size explains: a flipped length makes the
// library ask for terabytes, and a few bytes unpack to gigabytes. Release each record batch before
// the next one is read.
func OpenArrow(in io.ReaderAt, size int64) (*ipc.FileReader, error) {
	if err := checkArrow(in, size, isReadable); err != nil {
		return nil, err
	}
	return openArrow(in, size)
}

// OpenWindows is OpenArrow for a file of windows, whose columns may be of any type.
func OpenWindows(in io.ReaderAt, size int64) (*ipc.FileReader, error) {
	if err := checkArrow(in, size, func(*flatbuffers.Table, string) error { return nil }); err != nil {
		return nil, err
	}
	return openArrow(in, size)
}

// openArrow opens a file that was checked. A panic of the library is an error.
func openArrow(in io.ReaderAt, size int64) (r *ipc.FileReader, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("%v", p)
		}
	}()
	limit := max(arrowMemory, min(3*size, mostArrowMemory))
	return ipc.NewFileReader(io.NewSectionReader(in, 0, size), ipc.WithAllocator(&bounded{Allocator: memory.NewGoAllocator(), limit: int(limit)}))
}

// bounded is an allocator that panics when more than limit bytes would be in use. One
// goroutine uses it.
type bounded struct {
	memory.Allocator
	limit int
	used  int
	freed int // since the last collection
}

// collectEvery is how many freed bytes the collector may leave. By itself it waits until the heap has doubled.
const collectEvery = 64 << 20

func (a *bounded) take(size int) {
	if size < 0 || size > a.limit-a.used {
		panic("it asks for " + strconv.Itoa(size) + " bytes and has " + strconv.Itoa(a.used) + ", more than a file of its size needs; if it is sound, write it with smaller record batches")
	}
	a.used += size
}

func (a *bounded) Allocate(size int) []byte {
	a.take(size)
	return a.Allocator.Allocate(size)
}

func (a *bounded) Reallocate(size int, b []byte) []byte {
	a.take(size)
	a.used -= len(b)
	return a.Allocator.Reallocate(size, b)
}

func (a *bounded) Free(b []byte) {
	a.used -= len(b)
	a.freed += len(b)
	a.Allocator.Free(b)
	if a.freed >= collectEvery {
		a.freed = 0
		runtime.GC()
	}
}
