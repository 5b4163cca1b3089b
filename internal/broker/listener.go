package broker

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
)

const (
	maxProduce  = 4 * bus.MaxMessage // bytes of a request that writes: four messages of the largest size
	maxRequest  = 1 << 20            // bytes of any other request
	requestHead = 8                  // bytes of a request's key, version and number
)

var errRequest = errors.New("request that the embedded broker does not take")

// listener stands between clients and the broker.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &requestConn{Conn: c, answered: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// requestConn passes the requests of a client on to the broker. It closes the connection at
// the first request that is too long or of an unknown kind, such as one of a browser: the broker
// trusts every length.
//
// The broker does not see that a client is gone before it has answered the client's
// request to join a group: kfake would give partitions to such a member and never notice
// that it sends no heartbeats.
type requestConn struct {
	net.Conn
	head     []byte        // checked, not yet passed on
	left     int           // bytes of the request behind the head
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
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *requestConn) Read(b []byte) (int, error) {
	if len(c.head) == 0 && c.left == 0 {
		if err := c.next(); err != nil {
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
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// next reads the head of a request.
func (c *requestConn) next() error {
	head := make([]byte, 4+requestHead)
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	size, key := int64(binary.BigEndian.Uint32(head)), int16(binary.BigEndian.Uint16(head[4:]))
	limit := int64(maxRequest)
	if key == int16(kmsg.Produce) {
		limit = maxProduce
	}
	if size < requestHead || size > limit || kmsg.RequestForKey(key) == nil {
		return errRequest
	}
	if c.joining = key == int16(kmsg.JoinGroup); c.joining {
		select {
		case <-c.answered: // of a request before
		default:
		}
	}
	c.head, c.left = head, int(size-requestHead)
	return nil
}
