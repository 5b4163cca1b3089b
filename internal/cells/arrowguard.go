package cells

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Slots of the tables in File.fbs and Schema.fbs, as flatbuffers count them.
const (
	slotFooterSchema       = 6
	slotFooterDictionaries = 8
	slotFooterRecords      = 10
	slotFields             = 6 // of a schema
	slotSchemaMetadata     = 8
	slotFieldName          = 4
	slotFieldType          = 8
	slotFieldChildren      = 14
	slotFieldMetadata      = 16
)

// arrowTypes are the numbers in Schema.fbs of the types that a column may have:
// null, integer, floating point, text, truth value, timestamp, large text.
var arrowTypes = [...]bool{1: true, 2: true, 3: true, 5: true, 6: true, 10: true, 20: true}

const blockSize = 24 // bytes of a Block: offset int64, metadata int32, padding, body int64

// maxFooter is the longest footer that is read.
const maxFooter = 64 << 20

// CheckArrow reports why a file of the given size is not an Arrow IPC file, or
// which column has cells that this package cannot read. After it, no count or
// place in the footer lies beyond the file: the library allocates what a flipped
// length says, and running out of memory cannot be caught.
func CheckArrow(in io.ReaderAt, size int64) (err error) {
	const magic = "ARROW1"
	defer func() { // offsets inside the footer may be damaged too
		if r := recover(); r != nil {
			err = fmt.Errorf("its footer is damaged: %v", r)
		}
	}()
	var head, tail [4 + len(magic)]byte
	end := size - int64(len(tail))
	if end < int64(len(magic)+2) {
		return errors.New("it does not begin and end with ARROW1")
	}
	if _, err := in.ReadAt(head[:], 0); err != nil {
		return err
	}
	if _, err := in.ReadAt(tail[:], end); err != nil && err != io.EOF {
		return err
	}
	if string(head[:len(magic)]) != magic || string(tail[4:]) != magic {
		return errors.New("it does not begin and end with ARROW1")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n < 8 || n > min(end, maxFooter) {
		return fmt.Errorf("its footer has %d bytes, the file %d", n, size)
	}
	raw := make([]byte, n)
	if _, err := in.ReadAt(raw, end-n); err != nil {
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
	if err := checkCount(&schema, slotSchemaMetadata, 4); err != nil {
		return err
	}
	if err := checkCount(&schema, slotFields, 4); err != nil {
		return err
	}
	o = flatbuffers.UOffsetT(schema.Offset(slotFields))
	if o == 0 {
		return errors.New("it has no columns")
	}
	for i := range schema.VectorLen(o) {
		at := schema.Vector(o) + flatbuffers.UOffsetT(4*i)
		if err := checkField(&flatbuffers.Table{Bytes: raw, Pos: schema.Indirect(at)}); err != nil {
			return err
		}
	}
	return nil
}

func checkField(field *flatbuffers.Table) error {
	var name string
	if o := flatbuffers.UOffsetT(field.Offset(slotFieldName)); o != 0 {
		name = string(field.ByteVector(o + field.Pos))
	}
	children := 0
	if o := flatbuffers.UOffsetT(field.Offset(slotFieldChildren)); o != 0 {
		children = field.VectorLen(o)
	}
	if t := field.GetByteSlot(slotFieldType, 0); children != 0 || int(t) >= len(arrowTypes) || !arrowTypes[t] {
		return fmt.Errorf("column %q is of a type that cannot be read: make it text, a number or a timestamp, or remove it", name)
	}
	return checkCount(field, slotFieldMetadata, 4)
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
