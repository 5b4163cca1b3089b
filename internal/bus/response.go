package bus

import (
	"fmt"
	"io"
	"sync"

	"github.com/segmentio/kafka-go"
)

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

// parseFetch parses the answer to a fetch, without its length. Any bytes are safe to try.
func parseFetch(version int16, body []byte) (map[place]fetched, error) {
	d := decoder{left: body}
	d.int32() // number of the request
	d.int32() // throttle time in ms
	if version >= 7 {
		if code := d.int16(); code != 0 {
			return nil, kafka.Error(code)
		}
		d.int32() // session
	}
	found := make(map[place]fetched)
	for n := d.count(); n > 0 && !d.failed; n-- {
		topic := string(d.bytes(int64(d.int16())))
		for n := d.count(); n > 0 && !d.failed; n-- {
			at := place{topic, int(d.int32())}
			found[at] = parsePartition(version, &d)
		}
	}
	return found, d.answer()
}

// parsePartition parses what follows the number of a partition.
func parsePartition(version int16, d *decoder) (f fetched) {
	f.code = kafka.Error(d.int16())
	f.high, f.stable = d.int64(), d.int64()
	if version >= 5 {
		d.int64() // first offset of the log
	}
	for n := d.count(); n > 0 && !d.failed; n-- {
		f.aborted = append(f.aborted, aborted{producer: d.int64(), first: d.int64()})
	}
	if version >= 11 {
		d.int32() // a replica that is nearer
	}
	if size := d.int32(); size > 0 {
		f.records = d.bytes(int64(size))
	}
	return f
}

// answer returns an error if a length in a broker's answer was wrong.
func (d *decoder) answer() error {
	if d.failed {
		return fmt.Errorf("bus: a length in the broker's answer is wrong: %w", io.ErrUnexpectedEOF)
	}
	return nil
}
