package cells

import (
	"fmt"
	"io"
	"runtime"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
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

// OfArrow returns what reads the cells of an array by their rows. It is false for
// types that are not numbers, text or timestamps.
func OfArrow(a arrow.Array) (Column[int], bool) {
	cells := Column[int]{Null: a.IsNull}
	switch a := a.(type) {
	case *array.String:
		cells.Kind, cells.Text = Text, a.Value
	case *array.LargeString:
		cells.Kind, cells.Text = Text, a.Value
	case *array.Timestamp:
		cells.Kind, cells.Unit = Time, a.DataType().(*arrow.TimestampType).Unit.Multiplier()
		cells.Ticks = func(row int) int64 { return int64(a.Value(row)) }
	case *array.Dictionary:
		return ofDictionary(a)
	case *array.Null:
		cells.Null, cells.Number = func(int) bool { return true }, func(int) float64 { return 0 }
	default:
		of := arrowNumbers[a.DataType().ID()]
		if of == nil {
			return cells, false
		}
		cells.Number = of(a)
	}
	return cells, true
}

// ofDictionary returns what reads cells that are words of a dictionary.
func ofDictionary(a *array.Dictionary) (Column[int], bool) {
	words, ok := OfArrow(a.Dictionary())
	if !ok {
		return words, false
	}
	cells := Column[int]{Kind: words.Kind, Unit: words.Unit}
	cells.Null = func(row int) bool { return a.IsNull(row) || words.Null(a.GetValueIndex(row)) }
	switch words.Kind {
	case Number:
		cells.Number = func(row int) float64 { return words.Number(a.GetValueIndex(row)) }
	case Text:
		cells.Text = func(row int) string { return words.Text(a.GetValueIndex(row)) }
	case Time:
		cells.Ticks = func(row int) int64 { return words.Ticks(a.GetValueIndex(row)) }
	}
	return cells, true
}

// arrowNumbers are what reads numbers by their rows, by the type of their array.
var arrowNumbers = map[arrow.Type]func(arrow.Array) func(row int) float64{
	arrow.BOOL: func(a arrow.Array) func(row int) float64 {
		return func(row int) float64 { return truth(a.(*array.Boolean).Value(row)) }
	},
	arrow.FLOAT32: numbers((*array.Float32).Float32Values), arrow.FLOAT64: numbers((*array.Float64).Float64Values),
	arrow.INT8: numbers((*array.Int8).Int8Values), arrow.INT16: numbers((*array.Int16).Int16Values),
	arrow.INT32: numbers((*array.Int32).Int32Values), arrow.INT64: numbers((*array.Int64).Int64Values),
	arrow.UINT8: numbers((*array.Uint8).Uint8Values), arrow.UINT16: numbers((*array.Uint16).Uint16Values),
	arrow.UINT32: numbers((*array.Uint32).Uint32Values), arrow.UINT64: numbers((*array.Uint64).Uint64Values),
}

func numbers[A arrow.Array, T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](values func(A) []T) func(arrow.Array) func(row int) float64 {
	return func(a arrow.Array) func(row int) float64 {
		x := values(a.(A))
		return func(row int) float64 { return float64(x[row]) }
	}
}
