package bus

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
)

// streamConn is a connection of which only Read and Close are used.
type streamConn struct {
	net.Conn
	io.Reader
	closed bool
}

func (c *streamConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }
func (c *streamConn) Close() error               { c.closed = true; return nil }

// Responses pass in pieces of any size. The first length that is not possible ends the
// connection.
func TestGuardedConn(t *testing.T) {
	var good []byte
	for _, n := range []int{0, 1, 5, 70_000} {
		good = binary.BigEndian.AppendUint32(good, uint32(n))
		good = append(good, bytes.Repeat([]byte{0xff}, n)...)
	}
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "single bytes": iotest.OneByteReader,
	} {
		c := &streamConn{Reader: cut(bytes.NewReader(good))}
		if got, err := io.ReadAll(&guardedConn{Conn: c}); err != nil || !bytes.Equal(got, good) || c.closed {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(good), err)
		}
		c = &streamConn{Reader: cut(bytes.NewReader(append(bytes.Clone(good), "HTTP/1.1 400 Bad Request"...)))}
		if _, err := io.ReadAll(&guardedConn{Conn: c}); !errors.Is(err, errNotKafka) || !c.closed {
			t.Errorf("%s: a web server's answer: %v, closed %v", name, err, c.closed)
		}
	}
}

// A broker that takes connections and hangs while this program logs in does not hold up a member of a
// group: the client library's own login has no deadline.
func TestLoginEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Network: &Network{Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours, nil
		}}}
		began := time.Now()
		dialer := kafka.Dialer{Timeout: dialTimeout, DialFunc: cfg.dial, SASLMechanism: plain.Mechanism{Username: "monitor"}}
		if c, err := dialer.Dial("tcp", "broker:9092"); err == nil {
			c.Close()
			t.Error("the broker let it in")
		} else if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took > 2*dialTimeout {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
