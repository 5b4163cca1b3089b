package bus

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bounds on requests to the embedded broker.
const (
	maxProduce   = 4 * MaxMessage // bytes of a request that writes: four messages of the largest size
	maxRequest   = 1 << 20        // bytes of any other request
	maxProduceTo = 10_000         // partitions that one request writes to
	requestHead  = 8              // bytes of a request's key, version and number

	// What all connections together may take. Bytes count as they come, not as they are announced.
	maxConnections = 512
	smallRequest   = 256 << 10 // bytes of a request that are not counted
	requestBudget  = 256 << 20 // bytes of the parts beyond that, of requests that have not come whole
	budgetStep     = 1 << 20

	idleConnection = 10 * time.Minute // between requests, as Apache Kafka's connections.max.idle.ms
	requestTime    = 30 * time.Second // from the first byte of a request to its last
)

// embeddedRebalance is how long an embedded broker waits for members that do not join again.
// Clients ask for longer. But in kfake the session of a member runs on while the member
// waits for the others to join, and each new member restarts the wait. With a wait longer
// than a session kfake would drop live members, and kafka-go notices that only after 36 s.
const embeddedRebalance = session - time.Second

var errRequest = errors.New("request that the embedded broker does not take")

// brokerListener stands between clients and the embedded broker, which trusts every length
// that a client sends. Until it is opened, only dial reaches the broker.
type brokerListener struct {
	net.Listener
	private chan net.Conn
	opened  chan struct{}
	closed  chan struct{}
	once    sync.Once
	places  chan struct{} // one value for each connection
	budget  *budget
	idle    time.Duration // idleConnection; tests are impatient
	patient time.Duration // requestTime
}

func newBrokerListener(l net.Listener) *brokerListener {
	return &brokerListener{
		Listener: l, private: make(chan net.Conn), opened: make(chan struct{}), closed: make(chan struct{}),
		places: make(chan struct{}, maxConnections), budget: newBudget(requestBudget), idle: idleConnection, patient: requestTime,
	}
}

// open lets clients in. It is called once.
func (l *brokerListener) open() { close(l.opened) }

// dial connects to the broker without the network.
func (l *brokerListener) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.private <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *brokerListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.private:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-l.opened:
	}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &requestConn{Conn: c, from: l, answered: make(chan struct{}, 1), closed: make(chan struct{})}, nil
		default:
			c.Close() // the client tries again
		}
	}
}

func (l *brokerListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// requestConn passes the requests of a client on to the broker. It closes the connection at
// the first request that is too long or of an unknown kind. It refuses messages that no
// reader could read, as Apache Kafka does.
//
// The broker does not see that a client is gone before it has answered the client's
// request to join a group: kfake would give partitions to such a member and never notice
// that it sends no heartbeats.
type requestConn struct {
	net.Conn
	from     *brokerListener
	ready    []byte        // checked, not yet passed on
	counted  int           // bytes of the budget that the request takes
	left     int           // bytes of the request that are passed on as they come
	joining  bool          // the last request was to join a group
	answered chan struct{} // every answer puts a value in it, if it is empty
	closed   chan struct{}
	once     sync.Once // closes closed
}

func (c *requestConn) Write(b []byte) (int, error) {
	select {
	case c.answered <- struct{}{}:
	default:
	}
	return c.Conn.Write(b)
}

func (c *requestConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		<-c.from.places
	})
	return c.Conn.Close()
}

func (c *requestConn) Read(b []byte) (int, error) {
	if len(c.ready) == 0 && c.left == 0 {
		if err := c.next(); err != nil {
			c.uncount()
			if c.joining {
				select {
				case <-c.answered:
				case <-c.closed:
				}
			}
			_ = c.Close() // the first error says more
			return 0, err
		}
	}
	if len(c.ready) > 0 {
		n := copy(b, c.ready)
		if c.ready = c.ready[n:]; len(c.ready) == 0 {
			c.ready = nil
			c.uncount()
		}
		return n, nil
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// next reads the head of a request, and all of one that writes or joins a group.
func (c *requestConn) next() error {
	for {
		head, err := c.head()
		if err != nil {
			return err
		}
		size := int64(binary.BigEndian.Uint32(head))
		key := int16(binary.BigEndian.Uint16(head[4:]))
		limit, produce := int64(maxRequest), key == int16(kmsg.Produce)
		if produce {
			limit = maxProduce
		}
		if size < requestHead || size > limit || kmsg.RequestForKey(key) == nil {
			return errRequest
		}
		c.joining = key == int16(kmsg.JoinGroup)
		if !produce && !c.joining && size <= smallRequest {
			c.ready, c.left = head, int(size-requestHead)
			return nil
		}
		request, err := c.whole(head, size-requestHead)
		if err != nil {
			return err
		}
		if produce {
			bad, err := checkProduce(request.Bytes()[4:])
			if err != nil {
				return err
			}
			if bad != nil {
				c.uncount()
				if _, err := c.Conn.Write(bad); err != nil {
					return err
				}
				continue
			}
		}
		if c.joining {
			shortenRebalance(request.Bytes()[4:])
			select {
			case <-c.answered: // of a request before
			default:
			}
		}
		c.ready = request.Bytes()
		return nil
	}
}

// head reads the first bytes of a request. A client may be silent before them for long, and
// has requestTime for the request once it has begun.
func (c *requestConn) head() ([]byte, error) {
	head := make([]byte, 4+requestHead)
	if err := c.SetReadDeadline(time.Now().Add(c.from.idle)); err != nil {
		return nil, err
	}
	n, err := c.Conn.Read(head)
	if err != nil {
		return nil, err
	}
	if err := c.SetReadDeadline(time.Now().Add(c.from.patient)); err != nil {
		return nil, err
	}
	_, err = io.ReadFull(c.Conn, head[n:])
	return head, err
}

// whole reads the rest of a request. It takes memory for the bytes that come, not for the length
// that the client claims, and waits while other requests take too much.
func (c *requestConn) whole(head []byte, rest int64) (*bytes.Buffer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.from.patient)
	defer cancel()
	request := bytes.NewBuffer(head)
	for step := int64(smallRequest); rest > 0; step = budgetStep {
		if step == budgetStep {
			if err := c.from.budget.take(ctx, budgetStep); err != nil {
				return nil, err
			}
			c.counted += budgetStep
		}
		n, err := io.CopyN(request, c.Conn, min(step, rest))
		if rest -= n; err != nil {
			return nil, err
		}
	}
	return request, nil
}

// uncount gives back what the request took of the budget.
func (c *requestConn) uncount() {
	if c.counted > 0 {
		c.from.budget.give(c.counted)
		c.counted = 0
	}
}

// shortenRebalance changes a request to join a group, without the four bytes of its length:
// the broker waits no longer than embeddedRebalance. Any bytes are safe to try.
func shortenRebalance(b []byte) {
	d := decoder{left: b}
	d.int16() // key
	version := d.int16()
	d.int32()     // number
	d.text(false) // client, in the old form in every version
	flexible := version >= 6
	d.tags(flexible)
	d.text(flexible) // group
	d.int32()        // session
	if version < 1 || d.failed || len(d.left) < 4 {
		return // version 0 has no such field
	}
	if ms := uint32(embeddedRebalance.Milliseconds()); binary.BigEndian.Uint32(d.left) > ms {
		binary.BigEndian.PutUint32(d.left, ms)
	}
}

// produceRequest holds the parts of a request that the broker checks before it writes.
type produceRequest struct {
	number  int32
	acks    int16
	refusal kmsg.ProduceResponse // of all its partitions
}

// checkProduce checks a request that writes, without the four bytes of its length. It
// returns an answer that refuses the request, or nil if the request is good.
func checkProduce(b []byte) (refusal []byte, err error) {
	req, damage, err := parseProduce(b)
	if err != nil || damage == nil {
		return nil, err
	}
	if req.acks == 0 {
		return nil, damage // the client waits for no answer
	}
	return req.refuse(damage), nil
}

// parseProduce parses a request that writes. Any bytes are safe to try. Damage says what is
// wrong with the first bad message.
func parseProduce(b []byte) (req produceRequest, damage, err error) {
	d := decoder{left: b}
	d.int16() // key
	version := d.int16()
	req.number, req.refusal.Version = d.int32(), version
	if version < 3 || version > 13 {
		return req, nil, errRequest
	}
	flexible := version >= 9
	d.text(false) // client, in the old form in every version
	d.tags(flexible)
	d.text(flexible) // transactional id
	req.acks = d.int16()
	d.int32() // timeout
	all := 0
	for range d.count(flexible) {
		t := kmsg.NewProduceResponseTopic()
		if version >= 13 {
			copy(t.TopicID[:], d.bytes(16))
		} else {
			t.Topic = string(d.text(flexible))
		}
		for range d.count(flexible) {
			if all++; d.failed || all > maxProduceTo {
				return req, nil, errRequest
			}
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.ErrorCode, p.BaseOffset = d.int32(), int16(kafka.InvalidRecord), -1
			t.Partitions = append(t.Partitions, p)
			if bad := checkBatch(d.blob(flexible)); damage == nil {
				damage = bad
			}
			d.tags(flexible)
		}
		d.tags(flexible)
		if req.refusal.Topics = append(req.refusal.Topics, t); d.failed || len(req.refusal.Topics) > maxProduceTo {
			return req, nil, errRequest
		}
	}
	d.tags(flexible)
	if d.failed || len(d.left) > 0 {
		return req, nil, errRequest
	}
	return req, damage, nil
}

// refuse returns an answer that says that nothing was written.
func (r *produceRequest) refuse(damage error) []byte {
	text := damage.Error()
	for _, t := range r.refusal.Topics {
		for i := range t.Partitions {
			t.Partitions[i].ErrorMessage = &text
		}
	}
	out := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(r.number))
	if r.refusal.IsFlexible() {
		out = append(out, 0)
	}
	out = r.refusal.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

// checkBatch says why no reader could read a batch, or nil. It leaves to the broker what the
// broker checks itself.
func checkBatch(b []byte) error {
	batch, rest, err := nextBatch(b)
	if err != nil || len(rest) > 0 {
		return nil
	}
	if batch.count <= 0 {
		return fmt.Errorf("%w: it says that it holds %d records", errDamage, batch.count)
	}
	records, err := batch.unpack()
	if err != nil {
		return err
	}
	d := decoder{left: records}
	for i := range batch.count {
		r, err := d.record()
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return fmt.Errorf("record %d of %d: %w", i+1, batch.count, err)
		}
	}
	if len(d.left) > 0 {
		return fmt.Errorf("%w: %d bytes follow the last of %d records", errDamage, len(d.left), batch.count)
	}
	return nil
}
