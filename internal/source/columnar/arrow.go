package columnar

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/window"
)

// ArrowFormat is Arrow IPC. A file with columns that cannot be read is refused.
var ArrowFormat = track.Format{Name: "arrow", Endings: []string{".arrow", ".feather", ".ipc"}, Magic: "ARROW1", New: newArrow}

// arrowReader is an open Arrow IPC file, which Feather (version 2) is: a [track.Contents]
// of its columns. The metadata of a column may state its unit and its rate in
// Hz, under these names.
type arrowReader struct {
	name string
	in   io.ReaderAt
	size int64
	track.Listing
}

// newArrow reads the schema of a file of the given size; name names it in
// errors. The caller keeps in and closes it.
func newArrow(in io.ReaderAt, size int64, name string) (track.Contents, error) {
	a := &arrowReader{name: name, in: in, size: size}
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	if r.NumRecords() == 0 {
		return nil, fmt.Errorf("columnar: %s: holds no rows: record again", name)
	}
	for _, f := range r.Schema().Fields() {
		info := track.Info{Name: f.Name, Len: -1}
		kind := f.Type.ID()
		if d, ok := f.Type.(*arrow.DictionaryType); ok {
			kind = d.ValueType.ID()
		}
		info.Text = kind == arrow.STRING || kind == arrow.LARGE_STRING
		info.Unit, _ = f.Metadata.GetValue("unit")
		text, _ := f.Metadata.GetValue("rate")
		if rate, err := strconv.ParseFloat(text, 64); err == nil && rate > 0 && !math.IsInf(rate, 0) {
			info.Rate = rate
		}
		a.Infos = append(a.Infos, info)
	}
	return a, nil
}

// reader returns a reader of the record batches. The caller may drop it: it
// only holds memory.
func (a *arrowReader) reader() (*ipc.FileReader, error) {
	r, err := window.OpenArrow(a.in, a.size)
	if err != nil {
		return nil, fmt.Errorf("columnar: %s: is not an Arrow IPC file of numbers, text and timestamps, was not finished, or is damaged: %w: record or copy it again", a.name, err)
	}
	return r, nil
}

// Open returns a Reader of columns.
func (a *arrowReader) Open(tracks []int) (track.Reader, error) {
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	b := &batches{file: a, in: r, tracks: tracks, out: make([]track.Values, len(tracks))}
	for _, i := range tracks {
		b.values = append(b.values, a.Infos[i].Values(maxRows))
	}
	return b, nil
}

// inflation is by how much a file may grow when it is read: rows without a value take no bytes.
const inflation = 1 << 10

// maxRows is the most rows that are read at once.
const maxRows = 4096

// batches reads columns of one record batch after another.
type batches struct {
	file    *arrowReader
	in      *ipc.FileReader
	tracks  []int
	next    int // record batch
	rec     arrow.Record
	row     int   // of the record batch
	read    int64 // rows
	columns []table.CellReader[int]
	values  []track.Values // room for maxRows of each track
	out     []track.Values // what was read of them
	err     error
}

// Read returns the next rows of one record batch.
func (b *batches) Read(most int) (values []track.Values, n int, err error) {
	if b.err != nil {
		return nil, 0, b.err
	}
	defer func() {
		if p := recover(); p != nil {
			values, n, err = nil, 0, fmt.Errorf("columnar: %s: after row %d: the file is damaged: %v: copy it again", b.file.name, b.read, p)
		}
		b.err = err
	}()
	for b.rec == nil || b.row == int(b.rec.NumRows()) {
		if b.next == b.in.NumRecords() {
			return nil, 0, io.EOF
		}
		if err := b.load(); err != nil {
			return nil, 0, fmt.Errorf("columnar: %s: after row %d: %w: the file is damaged; copy it again", b.file.name, b.read, err)
		}
	}
	n = min(most, maxRows, int(b.rec.NumRows())-b.row)
	for k := range b.values {
		for i := range n {
			put(&b.columns[k], b.values[k], i, b.row+i)
		}
		b.out[k] = b.values[k].Slice(0, n)
	}
	b.row += n
	b.read += int64(n)
	return b.out, n, nil
}

// load reads the next record batch.
func (b *batches) load() error {
	if b.rec != nil {
		b.rec.Release()
		b.rec = nil
	}
	rec, err := b.in.RecordAt(b.next)
	if err != nil {
		return err
	}
	b.rec, b.row = rec, 0
	if rows := rec.NumRows(); rows < 0 || rows > inflation*b.file.size {
		return fmt.Errorf("%d rows in a file of %d bytes", rows, b.file.size)
	}
	b.next++
	b.columns = b.columns[:0]
	for _, i := range b.tracks {
		a, info := rec.Column(i), b.file.Infos[i]
		if int64(a.Len()) != rec.NumRows() {
			return fmt.Errorf("column %s has %d of %d rows", info.Name, a.Len(), rec.NumRows())
		}
		c, ok := table.CellsOfArrow(a)
		if !ok || (c.Kind == table.KindText) != info.Text {
			return fmt.Errorf("column %s: its type is %v", info.Name, a.DataType())
		}
		b.columns = append(b.columns, c)
	}
	return nil
}
