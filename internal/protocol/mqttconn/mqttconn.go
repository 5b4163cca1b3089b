// Package mqttconn bounds what a broker of MQTT may send, and finds programs that share a client id.
//
// A packet begins with a byte of type and a length of one to four bytes. The client library
// reads a packet of up to 256 MiB into memory, even if the client has announced that it takes less.
package mqttconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/flank-tcm/flank/internal/config/credential"
)

// Dial connects to the broker at mqtt://host, or by TLS at mqtts://host, with the files as they are now. The port is the usual one unless u
// names another. The connection is as Limit returns it. Longer than within is an error: a server that does not speak TLS may never answer.
func Dial(ctx context.Context, within time.Duration, u *url.URL, files *credential.TLS, most int) (c net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if u.Scheme == "mqtt" {
		c, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "1883")))
	} else {
		cfg, failed := files.Client()
		if failed != nil {
			return nil, fmt.Errorf("TLS: %w", failed)
		}
		c, err = (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "8883")))
	}
	if err != nil {
		return nil, err
	}
	return Limit(c, most), nil
}

// LogIn puts a user and the password, as its file has it now, into the first packet of a connection. Without a user it puts nothing there.
func LogIn(c *paho.Connect, l credential.Login) error {
	if l.User == "" {
		return nil
	}
	password, err := l.Password()
	if err != nil {
		return err
	}
	c.UsernameFlag, c.Username = true, l.User
	c.PasswordFlag, c.Password = true, []byte(password)
	return nil
}

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
