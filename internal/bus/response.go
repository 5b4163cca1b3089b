package bus

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// fetchRequest asks a leader for messages and returns the bytes of the answer. The client
// library would unpack the answer while it reads it, and trust the lengths in it.
type fetchRequest struct {
	*fetch.Request
	clientID string
	version  int16 // of request and answer; set by the connection
}

// fetchResponse is the answer, without the four bytes of its length.
type fetchResponse struct {
	version int16
	body    []byte
}

func (*fetchResponse) ApiKey() protocol.ApiKey { return protocol.Fetch }

// Required implements protocol.RawExchanger.
func (r *fetchRequest) Required(versions map[protocol.ApiKey]int16) bool {
	r.version = versions[protocol.Fetch]
	return true
}

// RawExchange implements protocol.RawExchanger.
func (r *fetchRequest) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if r.version < 4 {
		return nil, fmt.Errorf("bus: the broker is older than Kafka 0.11: %w", kafka.UnsupportedVersion)
	}
	if err := protocol.WriteRequest(rw, r.version, 1, r.clientID, r.Request); err != nil {
		return nil, err
	}
	body, err := readBody(rw, maxResponse)
	if err != nil {
		return nil, err
	}
	return &fetchResponse{version: r.version, body: body}, nil
}

// bodies holds the memory of decoded answers, for the next answers.
var bodies sync.Pool

func takeBody(n int) []byte {
	if b, ok := bodies.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n)
}

func giveBody(b []byte) { bodies.Put(&b) }

// fetched is the answer about one partition.
type fetched struct {
	code    kafka.Error // 0: none
	high    int64       // offset behind the newest message
	stable  int64       // every transaction before this offset has ended
	aborted []aborted
	records []byte // record batches; the last may be cut off
}

// end returns the offset behind the newest message that may be read.
func (f *fetched) end(topic string) int64 {
	if committedOnly(topic) {
		return f.stable
	}
	return f.high
}

// parse parses the answer. Any bytes are safe to try.
func (r *fetchResponse) parse() (map[place]fetched, error) {
	d := wire{left: r.body}
	d.int32() // number of the request
	d.int32() // throttle time in ms
	if r.version >= 7 {
		if code := d.int16(); code != 0 {
			return nil, kafka.Error(code)
		}
		d.int32() // session
	}
	found := make(map[place]fetched)
	for n := d.count(false); n > 0 && !d.failed; n-- {
		topic := string(d.bytes(int64(d.int16())))
		for n := d.count(false); n > 0 && !d.failed; n-- {
			at := place{topic, int(d.int32())}
			found[at] = r.partition(&d)
		}
	}
	return found, d.err()
}

// partition parses what follows the number of a partition.
func (r *fetchResponse) partition(d *wire) (f fetched) {
	f.code = kafka.Error(d.int16())
	f.high, f.stable = d.int64(), d.int64()
	if r.version >= 5 {
		d.int64() // first offset of the log
	}
	for n := d.count(false); n > 0 && !d.failed; n-- {
		f.aborted = append(f.aborted, aborted{producer: d.int64(), first: d.int64()})
	}
	if r.version >= 11 {
		d.int32() // a replica that is nearer
	}
	if size := d.int32(); size > 0 {
		f.records = d.bytes(int64(size))
	}
	return f
}

var errAnswer = fmt.Errorf("bus: a length in the broker's answer is wrong: %w", io.ErrUnexpectedEOF)

// wire takes values of Kafka's protocol off the front of left. After a failure all values
// are zero.
type wire struct {
	left   []byte
	failed bool
}

func (w *wire) err() error {
	if w.failed {
		return errAnswer
	}
	return nil
}

func (w *wire) bytes(n int64) []byte {
	if n < 0 || n > int64(len(w.left)) {
		w.left, w.failed = nil, true
		return nil
	}
	b := w.left[:n:n]
	w.left = w.left[n:]
	return b
}

func (w *wire) int16() int16 {
	if b := w.bytes(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (w *wire) int32() int32 {
	if b := w.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (w *wire) int64() int64 {
	if b := w.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}
