package mqttconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
)

// streamConn is a connection of which only Read and Close are used.
type streamConn struct {
	net.Conn
	io.Reader
	closed bool
}

func (c *streamConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }
func (c *streamConn) Close() error               { c.closed = true; return nil }

func packet(n int) []byte {
	return append(binary.AppendUvarint([]byte{0x30}, uint64(n)), make([]byte, n)...)
}

// Packets pass in pieces of any size. The first one that is too long ends the connection.
func TestLimit(t *testing.T) {
	const most = 20_000
	var good []byte
	for _, n := range []int{0, 1, 127, 128, 300, most} {
		good = append(good, packet(n)...)
	}
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "single bytes": iotest.OneByteReader,
	} {
		c := &streamConn{Reader: cut(bytes.NewReader(good))}
		if got, err := io.ReadAll(Limit(c, most)); err != nil || !bytes.Equal(got, good) || c.closed {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(good), err)
		}
		for why, bad := range map[string][]byte{
			"too long": packet(most + 1), "the longest of all": {0x30, 0xff, 0xff, 0xff, 0x7f}, "a length of five bytes": {0x30, 0x80, 0x80, 0x80, 0x80, 0x01},
		} {
			c := &streamConn{Reader: cut(bytes.NewReader(append(bytes.Clone(good), bad...)))}
			if _, err := io.ReadAll(Limit(c, most)); err == nil || !strings.Contains(err.Error(), "at most 20000 are read") || !c.closed {
				t.Errorf("%s, %s: %v, closed %v", name, why, err, c.closed)
			}
		}
	}
}

// A server that takes the connection and never speaks TLS is given up.
func TestDialGivesUp(t *testing.T) {
	addr := mqtttest.Hostile(t, func(net.Conn) { <-t.Context().Done() })
	_, err := Dial(t.Context(), 10*time.Millisecond, &url.URL{Scheme: "mqtts", Host: addr}, &credential.TLS{}, 1)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// No bytes of a broker make it panic, and none are lost as long as packets are short.
func FuzzRead(f *testing.F) {
	f.Add(packet(200))
	f.Add([]byte{0x20, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := io.ReadAll(Limit(&streamConn{Reader: iotest.OneByteReader(bytes.NewReader(b))}, 1000))
		if err == nil && !bytes.Equal(got, b) {
			t.Fatalf("%d of %d bytes came through", len(got), len(b))
		}
	})
}
