package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// arrowPlaces are where an Arrow file has its counts and lengths.
type arrowPlaces struct {
	footer  int // length of the footer, uint32
	records int // first block of a record batch: offset int64, metadata int32, padding, body int64
	count   int // of the blocks, uint32
	rows    int // of the first batch, int64
	nodes   int // of its columns: length int64, nulls int64
	buffers int // of its columns: offset int64, length int64
	columns int // how many nodes there are
	bytes   int // how many buffers there are
	body    int // of the first batch
}

// places finds them in a file that the library has written.
func places(b []byte) arrowPlaces {
	var p arrowPlaces
	p.footer = len(b) - 10
	n := int(binary.LittleEndian.Uint32(b[p.footer:]))
	start := p.footer - n
	raw := b[start:p.footer]
	footer := flatbuffers.Table{Bytes: raw, Pos: flatbuffers.GetUOffsetT(raw)}
	o := flatbuffers.UOffsetT(footer.Offset(10))
	p.records = start + int(footer.Vector(o))
	p.count = p.records - 4
	at := int(binary.LittleEndian.Uint64(b[p.records:]))
	meta := int(binary.LittleEndian.Uint32(b[p.records+8:]))
	p.body = at + meta
	msg := b[at+8 : at+meta]
	root := flatbuffers.Table{Bytes: msg, Pos: flatbuffers.GetUOffsetT(msg)}
	var batch flatbuffers.Table
	root.Union(&batch, flatbuffers.UOffsetT(root.Offset(8)))
	in := func(pos flatbuffers.UOffsetT) int { return at + 8 + int(pos) }
	p.rows = in(flatbuffers.UOffsetT(batch.Offset(4)) + batch.Pos)
	o = flatbuffers.UOffsetT(batch.Offset(6))
	p.nodes, p.columns = in(batch.Vector(o)), batch.VectorLen(o)
	o = flatbuffers.UOffsetT(batch.Offset(8))
	p.buffers, p.bytes = in(batch.Vector(o)), batch.VectorLen(o)
	return p
}

// arrowBombs are copies of a file in each of which a count, a place or a length is what it cannot be.
func arrowBombs(t *testing.T, good []byte) map[string][]byte {
	t.Helper()
	at := places(good)
	all := make(map[string][]byte)
	for name, change := range map[string]func(b []byte){
		"footer-length":   func(b []byte) { binary.LittleEndian.PutUint32(b[at.footer:], math.MaxUint32) },
		"block-count":     func(b []byte) { binary.LittleEndian.PutUint32(b[at.count:], math.MaxInt32) },
		"block-offset":    func(b []byte) { binary.LittleEndian.PutUint64(b[at.records:], 1<<62) },
		"block-negative":  func(b []byte) { binary.LittleEndian.PutUint64(b[at.records:], 1<<63) },
		"block-head":      func(b []byte) { binary.LittleEndian.PutUint32(b[at.records+8:], math.MaxInt32-7) },
		"block-body":      func(b []byte) { binary.LittleEndian.PutUint64(b[at.records+16:], 1<<40) },
		"rows":            func(b []byte) { binary.LittleEndian.PutUint64(b[at.rows:], 1<<62) },
		"rows-negative":   func(b []byte) { binary.LittleEndian.PutUint64(b[at.rows:], 1<<63) },
		"column-length":   func(b []byte) { binary.LittleEndian.PutUint64(b[at.nodes+16*(at.columns-1):], 1<<62) },
		"column-nulls":    func(b []byte) { binary.LittleEndian.PutUint64(b[at.nodes+16*(at.columns-1)+8:], 1<<40) },
		"buffer-length":   func(b []byte) { binary.LittleEndian.PutUint64(b[at.buffers+16*(at.bytes-1)+8:], 1<<40) },
		"buffer-half":     func(b []byte) { binary.LittleEndian.PutUint64(b[at.buffers+16*(at.bytes-1)+8:], 1<<30) },
		"buffer-negative": func(b []byte) { binary.LittleEndian.PutUint64(b[at.buffers+16*(at.bytes-1)+8:], 1<<63) },
		"buffer-offset":   func(b []byte) { binary.LittleEndian.PutUint64(b[at.buffers+16*(at.bytes-1):], 1<<62) },
		"all-buffers": func(b []byte) {
			for i := range at.bytes {
				binary.LittleEndian.PutUint64(b[at.buffers+16*i+8:], 200<<20)
			}
		},
	} {
		b := bytes.Clone(good)
		change(b)
		all[name] = b
	}
	all["same-column"] = footerOf(3<<20, 0, 0, 0)
	all["nested-columns"] = footerOf(100, 12, 0, 0)
	all["same-metadata"] = footerOf(1, 0, 2<<20, 16<<10)
	return all
}

// footerOf returns an Arrow file without rows whose footer names one column many times, in each of
// which it names one column many times, and so on, and one entry of metadata many times.
func footerOf(columns, depth, entries, value int) []byte {
	b := flatbuffers.NewBuilder(1 << 20)
	name := b.CreateString("x")
	vector := func(n int, of flatbuffers.UOffsetT) flatbuffers.UOffsetT {
		b.StartVector(4, n, 4)
		for range n {
			b.PrependUOffsetT(of)
		}
		return b.EndVector(n)
	}
	text := b.CreateString(strings.Repeat("v", value))
	b.StartObject(2)
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependUOffsetTSlot(1, text, 0)
	metadata := vector(entries, b.EndObject())
	children := vector(0, 0)
	var field flatbuffers.UOffsetT
	for d := range depth + 1 {
		kind := byte(3) // a number
		if d > 0 {
			kind = 13 // a structure
		}
		b.StartObject(1)
		if d == 0 {
			b.PrependInt16Slot(0, 2, 0)
		}
		typ := b.EndObject()
		b.StartObject(7)
		b.PrependUOffsetTSlot(0, name, 0)
		b.PrependByteSlot(2, kind, 0)
		b.PrependUOffsetTSlot(3, typ, 0)
		b.PrependUOffsetTSlot(5, children, 0)
		field = b.EndObject()
		children = vector(columns, field)
	}
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, children, 0)
	b.PrependUOffsetTSlot(2, metadata, 0)
	schema := b.EndObject()
	b.StartObject(5)
	b.PrependInt16Slot(0, 4, 0)
	b.PrependUOffsetTSlot(1, schema, 0)
	b.Finish(b.EndObject())
	out := append([]byte("ARROW1\x00\x00"), b.FinishedBytes()...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.FinishedBytes())))
	return append(out, "ARROW1"...)
}

// packedArrowBombs are files with compressed columns that announce, or hold, far more than their size.
func packedArrowBombs(t *testing.T) map[string][]byte {
	t.Helper()
	fields := []arrow.Field{{Name: "machine", Type: arrow.BinaryTypes.String}}
	for range 20 {
		fields = append(fields, arrow.Field{Name: string(rune('a' + len(fields))), Type: arrow.PrimitiveTypes.Float64})
	}
	schema := arrow.NewSchema(fields, nil)
	r := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer r.Release()
	const rows = 100_000
	for range rows {
		r.Field(0).(*array.StringBuilder).Append("m")
		for c := range fields[1:] {
			r.Field(1 + c).(*array.Float64Builder).Append(0)
		}
	}
	rec := r.NewRecord()
	defer rec.Release()
	all := make(map[string][]byte)
	for name, codec := range map[string]ipc.Option{"zstd": ipc.WithZstd(), "lz4": ipc.WithLZ4()} {
		path := filepath.Join(t.TempDir(), name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema), codec)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := w.Write(rec); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[name+"-zeros"] = good
		at := places(good)
		for what, size := range map[string]uint64{"200-MiB": 200 << 20, "1-TiB": 1 << 40, "negative": 1<<63 + 8, "rest": math.MaxUint64} {
			b := bytes.Clone(good)
			for i := range at.bytes {
				offset, n := binary.LittleEndian.Uint64(b[at.buffers+16*i:]), binary.LittleEndian.Uint64(b[at.buffers+16*i+8:])
				if n >= 8 {
					binary.LittleEndian.PutUint64(b[at.body+int(offset):], size)
				}
			}
			all[name+"-"+what] = b
		}
	}
	return all
}

// parquetFile returns a Parquet file of one group of rows. Each column has the given pages.
func parquetFile(t *testing.T, columns int, rows int64, codec format.CompressionCodec, typ format.Type, pages ...[]byte) []byte {
	t.Helper()
	b := []byte("PAR1")
	meta := format.FileMetaData{Version: 1, NumRows: rows, Schema: []format.SchemaElement{{Name: "table", NumChildren: thrift.New(int32(columns + 1))}}}
	group := format.RowGroup{NumRows: rows}
	for c := range columns + 1 {
		name, kind := "x"+string(rune('a'+c%26))+string(rune('a'+c/26)), typ
		if c == 0 {
			name = "tool"
		}
		meta.Schema = append(meta.Schema, format.SchemaElement{Name: name, Type: thrift.New(kind), RepetitionType: thrift.New(format.Required)})
		at := int64(len(b))
		for _, p := range pages {
			b = append(b, p...)
		}
		group.Columns = append(group.Columns, format.ColumnChunk{MetaData: format.ColumnMetaData{
			Type: kind, PathInSchema: []string{name}, Codec: codec, NumValues: rows, DataPageOffset: at,
			TotalCompressedSize: int64(len(b)) - at, TotalUncompressedSize: int64(len(b)) - at, Encoding: []format.Encoding{format.Plain},
		}})
	}
	meta.RowGroups = []format.RowGroup{group}
	return withFooter(t, b, &meta)
}

func withFooter(t *testing.T, b []byte, meta *format.FileMetaData) []byte {
	t.Helper()
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, footer...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), "PAR1"...)
}

// page returns a page of the first version. Its head says that it holds so many values and bytes.
func page(t *testing.T, values, size int32, encoding format.Encoding, data []byte) []byte {
	t.Helper()
	return pageOf(t, format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: size, CompressedPageSize: int32(len(data)),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: values, Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}),
	}, data)
}

func dictionary(t *testing.T, values int32, data []byte) []byte {
	t.Helper()
	return pageOf(t, format.PageHeader{
		Type: format.DictionaryPage, UncompressedPageSize: int32(len(data)), CompressedPageSize: int32(len(data)),
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: values}),
	}, data)
}

func pageOf(t *testing.T, h format.PageHeader, data []byte) []byte {
	t.Helper()
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &h)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, data...)
}

// parquetBombs are files whose counts, lengths and packed pages become far more than their size.
func parquetBombs(t *testing.T) map[string][]byte {
	t.Helper()
	const many = math.MaxInt32
	zeros := make([]byte, 32<<20)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	unit := enc.EncodeAll(zeros, nil)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	for range 8 { // 256 MiB
		if _, err := zip.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	long := func(n uint64, rest ...byte) []byte { return append(binary.AppendUvarint(nil, n), rest...) }
	run := append([]byte{1}, long(many<<1, 0)...)                                       // of one bit, all equal
	delta := append([]byte{0x80, 0x01, 0x04}, long(many, 0, 0, 0, 0, 0, 0)...)          // blocks of 128, 4 parts
	word := []byte{1, 0, 0, 0, 'm'}                                                     // plain text
	prefixes := append([]byte{0x80, 0x01, 0x04}, long(2, 0, 0, 0, 0, 0, 0, 0, 0, 0)...) // lengths
	all := map[string][]byte{
		"page-size":       parquetFile(t, 1, 10, format.Snappy, format.Double, page(t, 10, many, format.Plain, []byte{80, 0})),
		"page-beyond":     parquetFile(t, 1, 10, format.Uncompressed, format.Double, pageOf(t, format.PageHeader{Type: format.DataPage, UncompressedPageSize: many, CompressedPageSize: many, DataPageHeader: thrift.New(format.DataPageHeader{NumValues: 10})}, nil)),
		"values":          parquetFile(t, 1, many, format.Uncompressed, format.Double, page(t, many, 8, format.Plain, zeros[:8])),
		"texts":           parquetFile(t, 1, many, format.Uncompressed, format.ByteArray, page(t, many, 5, format.Plain, word)),
		"snappy":          parquetFile(t, 1, 10, format.Snappy, format.Double, page(t, 10, 80, format.Plain, long(many, 0))),
		"zstd":            parquetFile(t, 20, 10, format.Zstd, format.Double, page(t, 10, 80, format.Plain, bytes.Repeat(unit, 32))),
		"zstd-many":       parquetFile(t, 200, 4<<20, format.Zstd, format.Double, page(t, 4<<20, 32<<20, format.Plain, unit)),
		"gzip":            parquetFile(t, 5, 10, format.Gzip, format.Double, page(t, 10, 80, format.Plain, bytes.Repeat(zipped.Bytes(), 4))),
		"equal-indices":   parquetFile(t, 1, many, format.Uncompressed, format.Double, dictionary(t, 1, zeros[:8]), page(t, many, int32(len(run)), format.RLEDictionary, run)),
		"more-indices":    parquetFile(t, 1, 10, format.Uncompressed, format.Double, dictionary(t, 1, zeros[:8]), page(t, 10, int32(len(run)), format.RLEDictionary, run)),
		"dictionary":      parquetFile(t, 1, 10, format.Uncompressed, format.ByteArray, dictionary(t, many, word), page(t, 10, 2, format.RLEDictionary, []byte{1, 20})),
		"delta":           parquetFile(t, 1, 10, format.Uncompressed, format.Int64, page(t, 10, int32(len(delta)), format.DeltaBinaryPacked, delta)),
		"delta-lengths":   parquetFile(t, 1, 10, format.Uncompressed, format.ByteArray, page(t, 10, int32(len(delta)), format.DeltaLengthByteArray, delta)),
		"delta-prefixes":  parquetFile(t, 1, 10, format.Uncompressed, format.ByteArray, page(t, 2, int32(len(prefixes)), format.DeltaByteArray, prefixes)),
		"indices-of-none": parquetFile(t, 1, 10, format.Uncompressed, format.Double, page(t, 10, int32(len(run)), format.RLEDictionary, run)),
	}
	good := format.FileMetaData{Version: 1, Schema: []format.SchemaElement{{Name: "table", NumChildren: thrift.New(int32(many))}}}
	all["children"] = withFooter(t, []byte("PAR1"), &good)
	good.Schema = make([]format.SchemaElement, 100_000)
	for i := range good.Schema {
		good.Schema[i] = format.SchemaElement{Name: "g", NumChildren: thrift.New(int32(1)), RepetitionType: thrift.New(format.Required)}
	}
	all["nested"] = withFooter(t, []byte("PAR1"), &good)
	for name, footer := range map[string][]byte{
		"schema-count": append([]byte{0x15, 0x02, 0x19, 0xfc}, long(many)...), // version 1, then a list of so many structures
		"empty-groups": append(append([]byte{0x49, 0xfc}, long(8<<20)...), make([]byte, 8<<20)...),
		"text-length":  append([]byte{0x68}, long(many)...),
		"deep":         bytes.Repeat([]byte{0x1c}, 1<<20),
		"deep-lists":   append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 1<<20)...),
	} {
		b := append([]byte("PAR1"), footer...)
		all[name] = append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), "PAR1"...)
	}
	return all
}
