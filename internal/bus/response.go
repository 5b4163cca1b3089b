package bus

import (
	"bytes"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/segmentio/kafka-go"
)

// bodies holds the memory of answers that no one reads any more, for the next answers, by its size: in a pool of all sizes
// one would find memory that is too small.
var bodies [256]sync.Pool

// sizeOf returns a size from n on, of four between a power of two and the next, and where bodies has memory of that size.
func sizeOf(n int) (size, at int) {
	n = max(n, 4<<10)
	step := bits.Len(uint(n-1)) - 3
	quarters := (n + 1<<step - 1) >> step
	return quarters << step, step<<3 + quarters - 1
}

// takeBody returns memory for an answer. It holds what was in it before.
func takeBody(n int) *Loan {
	size, at := sizeOf(n)
	l, ok := bodies[at].Get().(*Loan)
	if !ok {
		l = &Loan{bytes: make([]byte, size)}
	}
	l.bytes = l.bytes[:n]
	l.users.Store(1)
	return l
}

// Loan is the memory of an answer, which several users read. The last one that returns it lets the next answer have the
// memory. If one never does, the garbage collector takes it.
type Loan struct {
	bytes []byte
	users atomic.Int32
}

// Return says that a user reads the memory no more. A nil Loan has no memory.
func (l *Loan) Return() {
	if l != nil && l.users.Add(-1) == 0 {
		_, at := sizeOf(cap(l.bytes))
		overwrite(l.bytes)
		bodies[at].Put(l)
	}
}

// lentFrom is the length in bytes from which on a value is lent, and not copied out of an answer.
const lentFrom = 64 << 10

// lend makes the values of messages that are parts of the answer loans of it. If they are less than half of it they are
// copied, so that a message holds no more than twice the memory that is counted for it.
func (l *Loan) lend(msgs []Message) {
	size := 0
	for i := range msgs {
		if msgs[i].loan != nil {
			size += len(msgs[i].Value)
		}
	}
	for i := range msgs {
		m := &msgs[i]
		switch {
		case m.loan == nil:
		case 2*size < cap(l.bytes):
			m.loan, m.Value = nil, bytes.Clone(m.Value)
		default:
			l.users.Add(1)
		}
	}
}

// TakeLoan returns what the value of m is a part of; nil if the value is the message's own. It returns it once. Return it when
// neither m nor a copy of it is read any more, or not at all.
func (m *Message) TakeLoan() *Loan {
	l := m.loan
	m.loan = nil
	return l
}

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
