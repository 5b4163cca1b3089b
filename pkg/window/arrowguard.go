package window

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Slots of the footer in File.fbs, as flatbuffers count them.
const (
	slotFooterSchema       = 6
	slotFooterDictionaries = 8
	slotFooterRecords      = 10
)

// arrowTypes are the numbers in Schema.fbs of the types that a column may have:
// null, integer, floating point, text, truth value, timestamp, large text.
var arrowTypes = [...]bool{1: true, 2: true, 3: true, 5: true, 6: true, 10: true, 20: true}

const blockSize = 24 // bytes of a Block: offset int64, metadata int32, padding, body int64

// Bounds of a footer. Its tables may name one another many times, so a short footer can
// have any number of columns.
const (
	maxFileFooter   = 64 << 20 // bytes
	maxFileColumns  = 1 << 16  // with the columns inside of columns
	maxFileMetadata = 32 << 20 // bytes of all keys and values
	maxFileNested   = 16       // columns inside of columns
)

// isReadable reports a column whose cells no table can have.
func isReadable(field *flatbuffers.Table, name string) error {
	t := field.GetByteSlot(slotTypeType, 0)
	if nested(field) != 0 || int(t) >= len(arrowTypes) || !arrowTypes[t] {
		return fmt.Errorf("column %q is of a type that cannot be read: make it text, a number or a timestamp, or remove it", name)
	}
	return nil
}

// readFooter returns the bytes of the footer.
func readFooter(in io.ReaderAt, size int64) ([]byte, error) {
	const magic = "ARROW1"
	var head, tail [4 + len(magic)]byte
	end := size - int64(len(tail))
	if end < int64(len(magic)+2) {
		return nil, errors.New("it does not begin and end with ARROW1")
	}
	if _, err := in.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	if _, err := in.ReadAt(tail[:], end); err != nil && err != io.EOF {
		return nil, err
	}
	if string(head[:len(magic)]) != magic || string(tail[4:]) != magic {
		return nil, errors.New("it does not begin and end with ARROW1")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	switch {
	case n < 8 || n > end:
		return nil, fmt.Errorf("its footer has %d bytes, the file %d", n, size)
	case n > maxFileFooter:
		return nil, fmt.Errorf("its footer has %d bytes, and at most %d are read: write fewer columns or larger record batches", n, maxFileFooter)
	}
	raw := make([]byte, n)
	if _, err := in.ReadAt(raw, end-n); err != nil {
		return nil, err
	}
	return raw, nil
}

// checkArrow reports why a file of the given size is not an Arrow IPC file, or what column refuses. After it, no count or
// place in the footer lies beyond the file: the library allocates what a flipped
// length says, and running out of memory cannot be caught.
func checkArrow(in io.ReaderAt, size int64, column func(field *flatbuffers.Table, name string) error) (err error) {
	defer func() { // offsets inside the footer may be damaged too
		if r := recover(); r != nil {
			err = fmt.Errorf("its footer is damaged: %v", r)
		}
	}()
	raw, err := readFooter(in, size)
	if err != nil {
		return err
	}
	footer := flatbuffers.Table{Bytes: raw, Pos: flatbuffers.GetUOffsetT(raw)}
	for _, slot := range []flatbuffers.VOffsetT{slotFooterDictionaries, slotFooterRecords} {
		if err := checkBlocks(&footer, slot, size); err != nil {
			return err
		}
	}
	o := flatbuffers.UOffsetT(footer.Offset(slotFooterSchema))
	if o == 0 {
		return errors.New("it has no schema")
	}
	schema := flatbuffers.Table{Bytes: raw, Pos: footer.Indirect(o + footer.Pos)}
	if schema.Offset(slotFields) == 0 {
		return errors.New("it has no columns")
	}
	s := schemaCheck{column: column}
	if err := s.metadata(&schema, slotSchemaMetadata); err != nil {
		return err
	}
	return s.fields(&schema, slotFields, 0)
}

// nested returns how many columns are inside a column.
func nested(field *flatbuffers.Table) int {
	o := flatbuffers.UOffsetT(field.Offset(slotChildren))
	if o == 0 {
		return 0
	}
	return field.VectorLen(o)
}

// schemaCheck adds up what a schema holds, as often as it is named.
type schemaCheck struct {
	column  func(field *flatbuffers.Table, name string) error
	columns int
	bytes   int // of metadata
}

// fields checks the columns of a schema, or the columns inside a column.
func (s *schemaCheck) fields(t *flatbuffers.Table, slot flatbuffers.VOffsetT, depth int) error {
	if err := checkCount(t, slot, 4); err != nil {
		return err
	}
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	if s.columns += t.VectorLen(o); s.columns > maxFileColumns || depth > maxFileNested {
		return fmt.Errorf("it has more than %d columns, or columns %d deep: write fewer", maxFileColumns, maxFileNested)
	}
	for i := range t.VectorLen(o) {
		at := t.Vector(o) + flatbuffers.UOffsetT(4*i)
		field := &flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}
		name := text(field, slotName)
		if s.bytes += len(name); depth == 0 {
			if err := s.column(field, string(name[:min(len(name), 80)])); err != nil {
				return err
			}
		}
		if err := s.metadata(field, slotMetadata); err != nil {
			return err
		}
		if err := s.fields(field, slotChildren, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// metadata checks the keys and values of a schema or a column.
func (s *schemaCheck) metadata(t *flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	if err := checkCount(t, slot, 4); err != nil {
		return err
	}
	if o := flatbuffers.UOffsetT(t.Offset(slot)); o != 0 {
		for i := range t.VectorLen(o) {
			entry := &flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Vector(o) + flatbuffers.UOffsetT(4*i))}
			if s.bytes += 64 + len(text(entry, slotKey)) + len(text(entry, slotValue)); s.bytes > maxFileMetadata {
				break
			}
		}
	}
	if s.bytes > maxFileMetadata {
		return fmt.Errorf("its metadata and the names of its columns have more than %d MiB: write less of them", maxFileMetadata>>20)
	}
	return nil
}

// text returns a text of a table, nil if it has none.
func text(t *flatbuffers.Table, slot flatbuffers.VOffsetT) []byte {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	return t.ByteVector(o + t.Pos)
}

// checkCount reports a vector that does not lie within the bytes of t. Its
// elements have the given size.
func checkCount(t *flatbuffers.Table, slot flatbuffers.VOffsetT, size int) error {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	if n := t.VectorLen(o); n < 0 || n > (len(t.Bytes)-int(t.Vector(o)))/size {
		return fmt.Errorf("its footer announces %d entries and has %d bytes", n, len(t.Bytes))
	}
	return nil
}

// checkBlocks reports blocks that do not lie within a file of the given size.
func checkBlocks(footer *flatbuffers.Table, slot flatbuffers.VOffsetT, size int64) error {
	if err := checkCount(footer, slot, blockSize); err != nil {
		return err
	}
	o := flatbuffers.UOffsetT(footer.Offset(slot))
	if o == 0 {
		return nil
	}
	blocks := footer.Bytes[footer.Vector(o):]
	for i := range footer.VectorLen(o) {
		b := blocks[i*blockSize:]
		at := int64(binary.LittleEndian.Uint64(b))
		meta, body := int64(int32(binary.LittleEndian.Uint32(b[8:]))), int64(binary.LittleEndian.Uint64(b[16:]))
		if at < 0 || meta < 8 || body < 0 || at > size || meta > size-at || body > size-at-meta {
			return fmt.Errorf("its block %d lies beyond its end", i+1)
		}
	}
	return nil
}
