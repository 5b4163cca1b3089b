package table

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of a Parquet file. Readers hold one page of every column at a time.
const (
	maxParquetFooter = 32 << 20  // bytes
	maxColumns       = 1 << 16   // with the columns inside of columns
	maxNested        = 16        // columns inside of columns
	footerMemory     = 64 << 20  // of a footer, and eight times its size
	maxPage          = 64 << 20  // bytes of a page, unpacked
	maxPageValues    = 16 << 20  // of a page
	pagesMemory      = 192 << 20 // of the largest pages of all columns, and six times their size in the file
)

// errPage is returned for pages beyond these bounds.
var errPage = errors.New("its pages take more memory than their size in the file explains; if it is sound, write it with smaller pages")

// checkSchema reports columns inside of columns that are too deep: the library notes the path of each.
func checkSchema(footer []byte) error {
	var meta struct {
		Schema thrift.Slice[format.SchemaElement] `thrift:"2,required"`
	}
	var compact thrift.CompactProtocol
	if err := thrift.NewDecoder(compact.NewReaderFromBytes(footer)).Decode(&meta); err != nil {
		return fmt.Errorf("its footer: %w", err)
	}
	if len(meta.Schema) > maxColumns {
		return fmt.Errorf("it has more than %d columns: write fewer", maxColumns)
	}
	var open []int32 // columns to come, of each that is open
	for _, e := range meta.Schema {
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			open[len(open)-1]--
		}
		if e.NumChildren.Valid && e.NumChildren.V > 0 {
			open = append(open, e.NumChildren.V)
		}
		if len(open) > maxNested {
			return fmt.Errorf("it has columns %d deep: write fewer", len(open))
		}
	}
	return nil
}

var errLevels = errors.New("the levels of a page cannot be read")

// CheckPages reports why the pages of a file cannot be read in bounded memory. The library
// allocates what lengths and counts inside of pages say, and unpacks pages whole. Columns
// with columns inside are passed over: do not read them. Its errors do not name the file.
func CheckPages(f *parquet.File) error {
	p := pageCheck{in: f, size: f.Size()}
	for _, g := range f.Metadata().RowGroups {
		var all pageSize
		for _, c := range f.Root().Columns() {
			if !c.Leaf() {
				continue
			}
			if c.Index() >= len(g.Columns) {
				return errors.New("a group of rows lacks columns")
			}
			n, err := p.column(c, &g.Columns[c.Index()].MetaData)
			if err != nil {
				return fmt.Errorf("column %.80q: %w", c.Name(), err)
			}
			all.memory, all.packed = all.memory+n.memory, all.packed+n.packed
			if all.memory > pagesMemory+6*all.packed {
				return errPage
			}
		}
	}
	return nil
}

// pageSize is what pages take.
type pageSize struct {
	memory int64
	packed int64 // bytes in the file
}

type pageCheck struct {
	in     io.ReaderAt
	size   int64
	head   []byte
	packed []byte
	plain  []byte
	zstd   *zstd.Decoder
}

// column returns what the largest page of a column takes together with its dictionary.
func (p *pageCheck) column(c *parquet.Column, md *format.ColumnMetaData) (largest pageSize, err error) {
	at := cmp.Or(md.DictionaryPageOffset, md.DataPageOffset)
	if min(at, md.TotalCompressedSize) < 0 || at > p.size || md.TotalCompressedSize > p.size-at {
		return largest, errors.New("its pages lie beyond the end of the file")
	}
	var dictionary pageSize
	for end := at + md.TotalCompressedSize; at < end; {
		header, n, err := p.header(at, end)
		if err != nil {
			return largest, err
		}
		at += n
		packed := int64(header.CompressedPageSize)
		if unpacked := int64(header.UncompressedPageSize); min(packed, unpacked) < 0 || packed > end-at || max(packed, unpacked) > maxPage {
			return largest, errPage
		}
		p.packed = grow(p.packed, packed)
		if _, err := p.in.ReadAt(p.packed, at); err != nil && err != io.EOF {
			return largest, err
		}
		at += packed
		memory, err := p.page(c, md.Codec, header)
		if err != nil {
			return largest, err
		}
		size := pageSize{memory + packed, packed}
		if header.Type == format.DictionaryPage {
			dictionary = size
		} else if size.memory > largest.memory {
			largest = size
		}
	}
	return pageSize{largest.memory + dictionary.memory, largest.packed + dictionary.packed}, nil
}

// header reads the head of the page at at. It returns its length.
func (p *pageCheck) header(at, end int64) (*format.PageHeader, int64, error) {
	for room := int64(4 << 10); ; room *= 16 { // statistics of long texts are long
		p.head = grow(p.head, min(room, end-at))
		if _, err := p.in.ReadAt(p.head, at); err != nil && err != io.EOF {
			return nil, 0, err
		}
		t := thriftCheck{b: p.head, memory: footerMemory}
		if err := t.structure(0); err != nil {
			if errors.Is(err, errThrift) && room < end-at && room < maxPage {
				continue
			}
			return nil, 0, fmt.Errorf("the head of a page: %w", err)
		}
		h := new(format.PageHeader)
		var compact thrift.CompactProtocol
		n := len(p.head) - len(t.b)
		if err := thrift.NewDecoder(compact.NewReaderFromBytes(p.head[:n])).Decode(h); err != nil {
			return nil, 0, fmt.Errorf("the head of a page: %w", err)
		}
		return h, int64(n), nil
	}
}

// page returns how much memory the page in p.packed takes when the library reads it.
func (p *pageCheck) page(c *parquet.Column, codec format.CompressionCodec, h *format.PageHeader) (int64, error) {
	size := int64(h.UncompressedPageSize)
	var values int64
	var encoding format.Encoding
	var levels [2][]byte // how values repeat, and which are there
	data := p.packed
	switch {
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		values = int64(h.DictionaryPageHeader.V.NumValues)
		data, err := p.unpack(codec, data, size)
		if err == nil && (values < 0 || values > 8*int64(len(data))) {
			err = errPage
		}
		return 2*size + 4*values, err
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		v := &h.DataPageHeader.V
		values, encoding = int64(v.NumValues), v.Encoding
		var err error
		if data, err = p.unpack(codec, data, size); err != nil {
			return 0, err
		}
		for i, has := range []bool{c.Repeated(), c.Repeated() || c.Optional()} {
			if !has {
				continue
			}
			encoding := []format.Encoding{v.RepetitionLevelEncoding, v.DefinitionLevelEncoding}[i]
			if encoding != format.RLE || len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
				return 0, errLevels
			}
			n := 4 + int(binary.LittleEndian.Uint32(data))
			levels[i], data = data[4:n], data[n:]
		}
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		v := &h.DataPageHeaderV2.V
		values, encoding = int64(v.NumValues), v.Encoding
		for i, n := range []int32{v.RepetitionLevelsByteLength, v.DefinitionLevelsByteLength} {
			if n < 0 || int(n) > len(data) {
				return 0, errLevels
			}
			levels[i], data = data[:n], data[n:]
		}
		if !v.IsCompressed.Valid || v.IsCompressed.V {
			var err error
			if data, err = p.unpack(codec, data, max(0, size-int64(len(levels[0])+len(levels[1])))); err != nil {
				return 0, err
			}
		}
	default:
		return 0, fmt.Errorf("a page is of type %d, which cannot be read", h.Type)
	}
	if values < 0 || values > maxPageValues {
		return 0, errPage
	}
	for _, l := range levels {
		if err := checkRuns(l, 1, values); err != nil {
			return 0, err
		}
	}
	return 2*size + 6*values, checkValues(encoding, data, values)
}

// plainDictionary is how files of Parquet 1.0 name format.RLEDictionary.
const plainDictionary = format.Encoding(2)

// checkDeltas reports more deltas than values.
func checkDeltas(data []byte, values int64) error {
	for range 2 { // size of a block, number of parts
		_, n := binary.Uvarint(data)
		if n <= 0 {
			return nil
		}
		data = data[n:]
	}
	if count, n := binary.Uvarint(data); n > 0 && count > uint64(values) {
		return errPage
	}
	return nil
}

// checkValues reports values of a page that would become more of them than its head says.
func checkValues(encoding format.Encoding, data []byte, values int64) error {
	switch encoding {
	case plainDictionary, format.RLEDictionary:
		if len(data) == 0 {
			return nil
		}
		return checkRuns(data[1:], int64(data[0]), values)
	case format.RLE:
		if len(data) < 4 {
			return nil
		}
		return checkRuns(data[4:], 1, values)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		return checkDeltas(data, values)
	case format.DeltaByteArray:
		return errors.New("its values are encoded as DELTA_BYTE_ARRAY, which is not supported: write them plain or with a dictionary")
	}
	return nil
}

// checkRuns reports runs of equal and of packed numbers of the given width that become more than values.
func checkRuns(data []byte, width, values int64) error {
	const padding = 512
	for count := int64(0); len(data) > 0; {
		head, n := binary.Uvarint(data)
		if n <= 0 || head>>1 > maxPageValues {
			return errPage
		}
		data = data[n:]
		skip := (width + 7) / 8
		if run := int64(head >> 1); head&1 == 0 {
			count += run
		} else {
			count += 8 * run
			skip = run * width
		}
		if count > values+padding {
			return errPage
		}
		data = data[min(skip, int64(len(data))):]
	}
	return nil
}

func (p *pageCheck) unzstd(packed []byte, most int64) (_ []byte, err error) {
	if p.zstd == nil {
		if p.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage)); err != nil {
			return nil, err
		}
	}
	p.plain, err = p.zstd.DecodeAll(packed, p.plain[:0])
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || err == nil && int64(len(p.plain)) > most {
		err = errPage
	}
	return p.plain, err
}

// unpack returns the bytes of a page, at most most of them. They are valid until the next call.
func (p *pageCheck) unpack(codec format.CompressionCodec, packed []byte, most int64) ([]byte, error) {
	switch codec {
	case format.Uncompressed:
		return packed, nil
	case format.Snappy:
		n, err := snappy.DecodedLen(packed)
		if err != nil {
			return nil, err
		}
		if int64(n) > most {
			return nil, errPage
		}
		p.plain, err = snappy.Decode(p.plain[:cap(p.plain)], packed)
		return p.plain, err
	case format.Zstd:
		return p.unzstd(packed, most)
	case format.Gzip:
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		return p.read(r, most)
	case format.Brotli:
		return p.read(brotli.NewReader(bytes.NewReader(packed)), most)
	}
	return nil, fmt.Errorf("it is compressed with %v, which is not supported: write it with Snappy, Zstandard or Gzip", codec)
}

func (p *pageCheck) read(r io.Reader, most int64) ([]byte, error) {
	b := bytes.NewBuffer(p.plain[:0])
	n, err := io.Copy(b, io.LimitReader(r, most+1))
	if p.plain = b.Bytes(); err == nil && n > most {
		err = errPage
	}
	return p.plain, err
}

// grow returns a slice of n bytes, b if it has room.
func grow(b []byte, n int64) []byte {
	if int64(cap(b)) < n {
		return make([]byte, n)
	}
	return b[:n]
}
