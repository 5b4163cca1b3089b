package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Frame returns a frame of samples. The first one has the number first and was taken at the
// time at. There is one column for each name, all of the same length.
func Frame(session, first int64, at time.Time, tool string, names []string, columns [][]float32) ([]byte, error) {
	facts := map[string]string{
		"session": strconv.FormatInt(session, 10), "first": strconv.FormatInt(first, 10), "time_ns": strconv.FormatInt(at.UnixNano(), 10),
	}
	if tool != "" {
		facts["tool"] = tool
	}
	var fields []arrow.Field
	for _, n := range names {
		fields = append(fields, arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Float32})
	}
	metadata := arrow.MetadataFrom(facts)
	schema := arrow.NewSchema(fields, &metadata)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i, x := range columns {
		b.Field(i).(*array.Float32Builder).AppendValues(x, nil)
	}
	batch := b.NewRecord()
	defer batch.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Write(batch); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Client sends frames. It keeps frames that are not acknowledged and sends them again on the
// next connection.
type Client struct {
	addr string

	mu      sync.Mutex
	conn    net.Conn // nil: not connected
	kept    [][]byte // not acknowledged
	sent    int      // of kept, on this connection
	acked   int      // on this connection
	refused error    // why a frame was refused
}

// NewClient returns a client of the feed at an address. It connects with the first frame.
func NewClient(addr string) *Client { return &Client{addr: addr} }

// Send sends a frame. It waits until a server takes it, and returns an error only if
// a frame was refused.
func (c *Client) Send(frame []byte) error {
	c.mu.Lock()
	c.kept = append(c.kept, frame)
	c.mu.Unlock()
	return c.flush(true)
}

// Close waits until all frames are acknowledged, or none was for so long: the last samples of
// a session are in no window. It returns how many frames are not acknowledged.
func (c *Client) Close(patience time.Duration) int {
	left, since := -1, time.Now()
	for time.Since(since) < patience && c.flush(false) == nil {
		c.mu.Lock()
		n := len(c.kept)
		c.mu.Unlock()
		if n == 0 {
			break
		}
		if n != left {
			left, since = n, time.Now()
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
	}
	return len(c.kept)
}

// flush sends the kept frames that were not sent on this connection. A patient flush waits for
// a connection.
func (c *Client) flush(patient bool) error {
	for {
		c.mu.Lock()
		if c.refused != nil {
			defer c.mu.Unlock()
			return c.refused
		}
		conn := c.conn
		var frame []byte
		if conn != nil {
			if c.sent == len(c.kept) {
				c.mu.Unlock()
				return nil
			}
			frame = c.kept[c.sent]
			c.sent++
		}
		c.mu.Unlock()
		if conn == nil {
			if !c.connect() && !patient {
				return nil
			}
			continue
		}
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(frame)))
		head = binary.LittleEndian.AppendUint32(head, crc32.ChecksumIEEE(frame))
		if _, err := (&net.Buffers{head, frame}).WriteTo(conn); err != nil {
			c.lost(conn)
		}
	}
}

func (c *Client) connect() bool {
	conn, err := net.DialTimeout("tcp", c.addr, 10*time.Second)
	if err != nil {
		time.Sleep(200 * time.Millisecond)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.sent, c.acked = conn, 0, 0
	go c.listen(conn)
	return true
}

func (c *Client) lost(conn net.Conn) {
	conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn {
		c.conn = nil
	}
}

// listen reads the answers to the frames of a connection.
func (c *Client) listen(conn net.Conn) {
	defer c.lost(conn)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		word, text, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(text)
		c.mu.Lock()
		switch {
		case c.conn != conn:
			c.mu.Unlock()
			return
		case word == "ok":
			c.kept = c.kept[n-c.acked:]
			c.sent -= n - c.acked
			c.acked = n
		case strings.HasPrefix(text, "frame "):
			c.refused = fmt.Errorf("%s", text) // it would be refused again
		default:
			fmt.Fprintln(os.Stderr, "feed:", text)
		}
		c.mu.Unlock()
		if word == "error" {
			time.Sleep(500 * time.Millisecond) // before the next connection
		}
	}
}
