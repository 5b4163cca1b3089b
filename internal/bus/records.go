package bus

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
)

// Bounds on the records that a reader takes from a broker. The client library trusts every
// length it reads: a message of 75 bytes may claim two billion headers, and one of 14 kB
// may unpack to a hundred megabytes. A message beyond these bounds is Damage.
const (
	maxUnpacked    = 4 * MaxMessage            // bytes of a batch after unpacking
	maxRead        = MaxMessage + deadOverhead // bytes of a message
	maxHeaders     = 1000                      // headers of a message
	maxDecoded     = 4 * MaxMessage            // bytes of memory for the messages of one fetch
	messageMemory  = 192                       // bytes of memory of a message, in addition to its own bytes
	headMemory     = 48                        // the same for each header
	damageMemory   = 1024                      // the same for the text of a Damage
	checksumsTried = 3                         // fetches of a batch with a wrong checksum before it is Damage
)

// errDamage is in the Damage of every message that could not be read.
var errDamage = errors.New("cannot be read")

// errChecksum says that a batch did not arrive as it was sent.
var errChecksum = errors.New("checksum of a record batch is wrong: the network or the broker's disk changed it")

// recordBatch is a batch of version 2 as it lies in a log:
//
//	offset       int64   0   of its first record
//	length       int32   8   of the rest
//	leader epoch int32  12
//	version      int8   16   2
//	checksum     uint32 17   CRC-32C of the rest
//	attributes   int16  21   compression, transactional, control
//	last         int32  23   offset of the last record minus the offset of the first
//	first time   int64  27   in ms since 1970
//	newest time  int64  35
//	producer     int64  43
//	epoch        int16  51
//	sequence     int32  53
//	records      int32  57   how many follow
type recordBatch struct {
	first, last int64
	attributes  protocol.Attributes
	time        int64 // of the first record; of all records if appended
	appended    bool  // time is the broker's: when it took the batch
	producer    int64
	count       int32
	payload     []byte // the records, perhaps compressed
	sums        [4]uint32
	summed      int // how many of its long values, from the first on, have their checksum in sums
}

const (
	batchPrefix = 12 // offset and length
	batchHead   = 61
)

// nextBatch takes a batch off the front of b. After an error only this batch is lost,
// unless rest is nil.
func nextBatch(b []byte) (batch recordBatch, rest []byte, err error) {
	if len(b) < batchPrefix+5 {
		return batch, nil, io.ErrUnexpectedEOF
	}
	batch.first = int64(binary.BigEndian.Uint64(b))
	batch.last = batch.first
	length := int64(int32(binary.BigEndian.Uint32(b[8:])))
	if length < 5 || length > int64(len(b)-batchPrefix) {
		return batch, nil, io.ErrUnexpectedEOF
	}
	b, rest = b[:batchPrefix+length], b[batchPrefix+length:]
	if version := b[16]; version != 2 {
		return batch, rest, fmt.Errorf("%w: record format %d, want 2: it was written before Kafka 0.11", errDamage, version)
	}
	if len(b) < batchHead {
		return batch, nil, io.ErrUnexpectedEOF
	}
	batch.attributes = protocol.Attributes(binary.BigEndian.Uint16(b[21:]))
	batch.last += int64(max(int32(binary.BigEndian.Uint32(b[23:])), 0))
	batch.time = int64(binary.BigEndian.Uint64(b[27:]))
	if batch.appended = batch.attributes&logAppendTime != 0; batch.appended {
		batch.time = int64(binary.BigEndian.Uint64(b[35:])) // the broker overwrites only the newest time
	}
	batch.producer = int64(binary.BigEndian.Uint64(b[43:]))
	batch.count = int32(binary.BigEndian.Uint32(b[57:]))
	batch.payload = b[batchHead:]
	if sum := batch.checksum(b[21:]); sum != binary.BigEndian.Uint32(b[17:]) {
		return batch, rest, errChecksum
	}
	return batch, rest, nil
}

// logAppendTime is the attribute of a batch whose times are the broker's.
const logAppendTime = 1 << 3

// Times in ms since 1970 at which years have four digits, as RFC 3339 can write them.
const (
	leastTime = -62135596800000
	mostTime  = 253402300799999
)

// timeOf returns the time of a record that its batch puts so many ms after its first one. A time
// that no clock shows becomes the nearest of four digits.
func (b *recordBatch) timeOf(delta int64) time.Time {
	ms := b.time
	if !b.appended {
		ms += delta
	}
	return time.UnixMilli(min(max(ms, leastTime), mostTime)).UTC()
}

// unpacking allows one decompression at a time: several hostile batches together could take
// more memory than the machine has.
var unpacking sync.Mutex

// unpack returns the records of the batch. The result may be a part of the batch.
func (b *recordBatch) unpack() ([]byte, error) {
	codec := b.attributes.Compression()
	if codec == compress.None {
		return b.payload, nil
	}
	unpacking.Lock()
	defer unpacking.Unlock()
	records, err := decompress(codec, b.payload)
	if err != nil {
		return nil, fmt.Errorf("%w: batch of %d bytes compressed with %v: %w", errDamage, len(b.payload), codec, err)
	}
	return records, nil
}

var errUnpacked = fmt.Errorf("it has more than %d bytes unpacked", maxUnpacked)

func decompress(codec compress.Compression, packed []byte) ([]byte, error) {
	var r io.ReadCloser
	switch codec {
	case compress.Snappy:
		return unsnappy(packed)
	case compress.Zstd:
		d, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(MaxMessage))
		if err != nil {
			return nil, err
		}
		r = d.IOReadCloser()
	case compress.Gzip, compress.Lz4:
		r = codec.Codec().NewReader(bytes.NewReader(packed))
	default:
		return nil, fmt.Errorf("unknown kind %d of compression", codec)
	}
	defer r.Close()
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err == nil && len(out) > maxUnpacked {
		err = errUnpacked
	}
	return out, err
}

// xerial begins the data that Java's clients compress with Snappy: blocks, each after its
// length.
var xerial = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

func unsnappy(packed []byte) (out []byte, err error) {
	blocks := [][]byte{packed}
	if bytes.HasPrefix(packed, xerial) {
		blocks = nil
		for rest := packed[min(16, len(packed)):]; len(rest) > 0; {
			if len(rest) < 4 || uint64(binary.BigEndian.Uint32(rest)) > uint64(len(rest)-4) {
				return nil, io.ErrUnexpectedEOF
			}
			n := binary.BigEndian.Uint32(rest)
			blocks, rest = append(blocks, rest[4:4+n]), rest[4+n:]
		}
	}
	for _, block := range blocks {
		n, err := snappy.DecodedLen(block)
		if err != nil {
			return nil, err
		}
		if n > maxUnpacked-len(out) {
			return nil, errUnpacked
		}
		part, err := snappy.Decode(nil, block)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = part
		} else {
			out = append(out, part...)
		}
	}
	return out, nil
}

// rawRecord is a record in its encoded form. Its slices are parts of the batch.
type rawRecord struct {
	offset, time int64 // relative to the batch
	key, value   []byte
	headers      []byte // in encoded form
	headerCount  int64
	size         int
	behind       int // bytes behind the value
}

var errRecord = fmt.Errorf("%w: a length in it is wrong", errDamage)

// record takes a record off the front of the decoder.
func (d *decoder) record() (r rawRecord, err error) {
	size := d.varint()
	if size < 0 || size > int64(len(d.left)) {
		return r, errRecord
	}
	body := decoder{left: d.bytes(size)}
	body.bytes(1) // attributes; none are in use
	r.time, r.offset = body.varint(), body.varint()
	r.key, r.value = body.nullable(), body.nullable()
	r.behind = len(body.left)
	r.headerCount = body.varint()
	r.headers, r.size = body.left, int(size)
	if d.failed || body.failed || r.headerCount < 0 || r.headerCount > int64(len(r.headers))/2 { // a header takes at least two bytes
		return r, errRecord
	}
	return r, nil
}

// check returns an error if the record cannot be a message.
func (r *rawRecord) check() error {
	switch {
	case r.size > maxRead:
		return fmt.Errorf("%w: %d bytes are more than the %d that a message may have", errDamage, r.size, maxRead)
	case r.headerCount > maxHeaders:
		return fmt.Errorf("%w: %d headers are more than the %d that a message may have", errDamage, r.headerCount, maxHeaders)
	}
	d := decoder{left: r.headers}
	for range r.headerCount {
		d.nullable()
		d.nullable()
	}
	if d.failed || len(d.left) > 0 {
		return errRecord
	}
	return nil
}

// message copies the record into m, but for a long value of which m has a loan. It takes texts from the message before, if they
// are the same.
func (r *rawRecord) message(m *Message, before *texts) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.headerCount > 0 {
		m.Headers = make([]Header, r.headerCount)
	}
	d := decoder{left: bytes.Clone(r.headers)}
	for i := range m.Headers {
		key, same := d.nullable(), ""
		if i < len(before.headers) {
			same = before.headers[i].Key
		}
		m.Headers[i] = Header{Key: textOf(key, same), Value: d.nullable()}
	}
	m.Key = textOf(r.key, before.key)
	if m.Value = r.value; m.loan == nil || len(r.value) < lentFrom {
		m.loan, m.Value = nil, bytes.Clone(r.value)
	}
	return nil
}

// textOf returns b as a text: same, if that is it.
func textOf(b []byte, same string) string {
	if string(b) == same {
		return same
	}
	return string(b)
}

// aborted is an aborted transaction in a broker's answer.
type aborted struct{ producer, first int64 }

// decoded is the result of a fetch.
type decoded struct {
	msgs   []Message
	next   int64      // offset to read next
	gaps   [][2]int64 // first missing offset, and first offset after the gap
	memory int        // bytes that the messages take
}

// texts are the key and headers of the last message. The next message mostly has the same texts.
type texts struct {
	key     string
	headers []Header
}

// recordReader turns record batches into messages.
type recordReader struct {
	topic     string
	partition int
	committed bool      // leave out messages of aborted transactions
	aborted   []aborted // the aborted transactions in the broker's answer
	tolerant  bool      // a batch with a wrong checksum is Damage, not an error
	before    texts
	loan      *Loan // that the batches are a part of, and long values may be; nil: they are copied
}

// read decodes record batches from offset next on. A message with Damage stands for each
// stretch of offsets that cannot be read. Read stops early when the messages take too much
// memory; the caller fetches the rest again. The result shares no memory with b but for values
// with a loan. The error is errChecksum.
func (r *recordReader) read(b []byte, next int64) (out decoded, err error) {
	out.next = next
	pending := slices.SortedFunc(slices.Values(r.aborted), func(x, y aborted) int { return cmp.Compare(x.first, y.first) })
	// Producers of aborted transactions that have begun before this point. The value reports
	// whether the transaction certainly has not ended.
	dropped := make(map[int64]bool)
	for len(b) > 0 && out.memory < maxDecoded {
		batch, rest, err := nextBatch(b)
		if err == io.ErrUnexpectedEOF {
			if out.next == next { // otherwise the broker cut the batch off, and sends it whole next time
				r.damage(&out, out.next, out.next, fmt.Errorf("%w: the length of a record batch is wrong", errDamage))
			}
			return out, nil
		}
		if err == errChecksum && !r.tolerant {
			if out.next > next {
				return out, nil // it is the first batch of the next fetch
			}
			return out, err
		}
		if err == errChecksum {
			err = fmt.Errorf("%w: %w", errDamage, err)
		}
		b = rest
		if batch.last < out.next {
			continue
		}
		out.gap(batch.first)
		for len(pending) > 0 && pending[0].first <= batch.last {
			p := pending[0]
			dropped[p.producer] = dropped[p.producer] || p.producer == batch.producer && p.first == batch.first
			pending = pending[1:]
		}
		certain, drop := dropped[batch.producer]
		full := false
		switch {
		case batch.attributes.Control():
			if err == nil && batch.aborts() {
				delete(dropped, batch.producer)
			}
		case r.committed && batch.attributes.Transactional() && drop:
			if !certain && batch.first > next {
				// Compaction may have removed the transaction and its end marker: the
				// embedded broker does that. In the next answer, from this offset on, the
				// broker names only transactions that end behind it.
				return out, nil
			}
			dropped[batch.producer] = true
		case err != nil:
			r.damage(&out, max(out.next, batch.first), batch.last, err)
		default:
			full = r.batch(&out, &batch)
		}
		if full {
			return out, nil
		}
		out.next = max(out.next, batch.last+1)
	}
	return out, nil
}

// aborts reports whether the control record of the batch aborts a transaction.
func (b *recordBatch) aborts() bool {
	records, err := b.unpack()
	if err != nil {
		return false
	}
	d := decoder{left: records}
	r, err := d.record()
	return err == nil && len(r.key) >= 4 && binary.BigEndian.Uint16(r.key[2:]) == 0
}

// recordOf decodes the next record of a batch.
func (d *decoder) recordOf(batch *recordBatch) (rawRecord, error) {
	raw, err := d.record()
	if err == nil && (raw.offset < 0 || batch.first+raw.offset > batch.last) {
		err = fmt.Errorf("%w: its offset is not one of its batch", errDamage)
	}
	return raw, err
}

// batch decodes a batch of messages. Full reports that it stopped early.
func (r *recordReader) batch(out *decoded, batch *recordBatch) (full bool) {
	records, err := batch.unpack()
	if err != nil {
		r.damage(out, max(out.next, batch.first), batch.last, err)
		return false
	}
	d, long := decoder{left: records}, 0
	for range batch.count {
		if len(d.left) == 0 {
			return false
		}
		raw, err := d.recordOf(batch)
		offset := batch.first + raw.offset
		if err != nil {
			r.damage(out, max(out.next, batch.first), batch.last, err)
			return false
		}
		sum, summed := batch.sumOf(raw.value, &long)
		if offset < out.next {
			continue // a batch may begin before the offset of the request
		}
		memory := raw.size + messageMemory + headMemory*int(min(raw.headerCount, maxHeaders))
		if out.memory+memory > maxDecoded && len(out.msgs) > 0 {
			return true
		}
		out.gap(offset)
		m := Message{Topic: r.topic, Partition: r.partition, Offset: offset, Time: batch.timeOf(raw.time)}
		m.sum, m.summed = sum, summed
		if batch.attributes.Compression() == compress.None {
			m.loan = r.loan
		}
		if err := raw.message(&m, &r.before); err != nil {
			r.damage(out, offset, offset, err)
			continue
		}
		out.msgs, r.before = append(out.msgs, m), texts{m.Key, m.Headers}
		out.memory += memory
		out.next = offset + 1
	}
	return false
}

// memory returns about how many bytes a message takes.
func (m *Message) memory() int { return m.bytes(messageMemory, headMemory) }

// gap notes that offsets are missing before this one.
func (out *decoded) gap(offset int64) {
	if offset > out.next {
		out.gaps = append(out.gaps, [2]int64{out.next, offset})
		out.next = offset
	}
}

// damage adds a message that stands for the offsets from first to last, which cannot be read.
func (r *recordReader) damage(out *decoded, first, last int64, err error) {
	if last < first {
		return // the damage is behind the last record
	}
	where := fmt.Sprintf("bus: topic %s partition %d offset %d", r.topic, r.partition, first)
	if last > first {
		where += fmt.Sprintf(" to %d", last)
	}
	out.msgs = append(out.msgs, Message{Topic: r.topic, Partition: r.partition, Offset: first, Damage: fmt.Errorf("%s %w", where, err)})
	out.memory += messageMemory + damageMemory
	out.next = last + 1
}
