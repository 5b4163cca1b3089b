// Package mqttconn bounds what a broker of MQTT may send, and finds programs that share a client id.
//
// A packet begins with a byte of type and a length of one to four bytes. The client library
// reads a packet of up to 256 MiB into memory, even if the client has announced that it takes less.
package mqttconn

import (
	"fmt"
	"net"

	"github.com/eclipse/paho.golang/packets"
)

// Limit returns c as a connection that several goroutines may write to. A packet from the broker
// that has more than most bytes behind its length is an error of Read, and ends the connection.
func Limit(c net.Conn, most int) net.Conn {
	return packets.NewThreadSafeConn(&conn{Conn: c, most: most})
}

type conn struct {
	net.Conn
	most int

	inLength bool
	length   int  // of the packet, as far as it has been read
	shift    uint // of the next byte of length
	left     int  // bytes of the packet not read yet
}

// Read reads as net.Conn does.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for rest := b[:n]; len(rest) > 0; {
		switch {
		case c.left > 0:
			k := min(c.left, len(rest))
			c.left -= k
			rest = rest[k:]
			continue
		case !c.inLength: // the byte of type
			c.inLength, c.length, c.shift = true, 0, 0
		default:
			c.length |= int(rest[0]&0x7f) << c.shift
			c.shift += 7
			if last := rest[0]&0x80 == 0; !last && c.shift == 28 || c.length > c.most {
				c.Close()
				return 0, fmt.Errorf("a packet of %d bytes or more, at most %d are read: is this a broker of MQTT, and who publishes on these topics?", c.length, c.most)
			} else if last {
				c.inLength, c.left = false, c.length
			}
		}
		rest = rest[1:]
	}
	return n, err
}
