package bus

import (
	"encoding/binary"
	"errors"
	"net"
	"time"
)

// maxResponse is more than any answer to what this package asks.
const maxResponse = 64 << 20

// errNotKafka says that the other end does not speak Kafka's protocol.
var errNotKafka = errors.New("answer is not Kafka's protocol")

// guardedConn checks the length before every response and fails if it cannot come from
// Kafka. The client library would take the first bytes of a web server's answer for the
// length of an array and reserve gigabytes for it.
type guardedConn struct {
	net.Conn
	length [4]byte
	have   int // bytes of length read so far
	left   int // bytes of the response not read yet
}

// SetReadDeadline implements net.Conn. The client library logs in to groups without a deadline: a broker that hangs
// then would keep a member waiting for as long as the connection lasts.
func (c *guardedConn) SetReadDeadline(t time.Time) error { return c.Conn.SetReadDeadline(bounded(t)) }

// SetWriteDeadline implements net.Conn.
func (c *guardedConn) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(bounded(t))
}

// bounded returns the deadline, or dialTimeout from now if there is none.
func bounded(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now().Add(dialTimeout)
	}
	return t
}

func (c *guardedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for rest := b[:n]; len(rest) > 0; {
		if c.left > 0 {
			k := min(c.left, len(rest))
			c.left -= k
			rest = rest[k:]
			continue
		}
		k := copy(c.length[c.have:], rest)
		rest = rest[k:]
		if c.have += k; c.have == len(c.length) {
			c.have = 0
			size := binary.BigEndian.Uint32(c.length[:])
			if size > maxResponse {
				c.Close()
				return 0, errNotKafka
			}
			c.left = int(size)
		}
	}
	return n, err
}
