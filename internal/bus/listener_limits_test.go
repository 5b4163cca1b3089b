package bus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/flank-tcm/flank/internal/testkit/await"
)

// listen serves connections as the broker does and throws their requests away. It reports
// each whole request of size bytes by the length of what was read.
func listen(t *testing.T, change func(*brokerListener)) (*brokerListener, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newBrokerListener(ln)
	change(l)
	l.open()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}()
		}
	}()
	return l, ln.Addr().String()
}

func dialBroker(t *testing.T, addr string, sent []byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write(sent); err != nil && len(sent) > 0 {
		t.Fatal(err)
	}
	return c
}

// ended reports whether the broker closes the connection.
func ended(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// requestOf returns the beginning of a request that announces size bytes.
func requestOf(size uint32, key uint16) []byte {
	r := binary.BigEndian.AppendUint32(nil, size)
	r = binary.BigEndian.AppendUint16(r, key)
	return append(r, 0, 9, 0, 0, 0, 1)
}

// A client that is silent, or that sends its request byte by byte, loses its place to others.
func TestBrokerDropsIdleAndTricklingClients(t *testing.T) {
	l, addr := listen(t, func(l *brokerListener) { l.idle, l.patient = 30*time.Millisecond, 30*time.Millisecond })
	for name, sent := range map[string][]byte{
		"silent": nil, "half a head": requestOf(100, 3)[:5], "half a question": append(requestOf(100, 3), 1, 2, 3), "half a write": append(requestOf(maxProduce, 0), 1, 2, 3),
		"half a large question": append(requestOf(maxRequest, 19), 1, 2, 3),
	} {
		if !ended(t, dialBroker(t, addr, sent)) {
			t.Errorf("%s: it is still connected", name)
		}
	}
	trickle := dialBroker(t, addr, requestOf(100_000, 0))
	await.Until(t, "a client that sends a byte now and then is dropped", func() bool {
		_, err := trickle.Write([]byte{0})
		return err != nil
	})
	await.Until(t, "all places are free again", func() bool { return len(l.places) == 0 })
}

// There is a bound on connections, and a place that is free is used again.
func TestBrokerBoundsConnections(t *testing.T) {
	_, addr := listen(t, func(l *brokerListener) { l.places = make(chan struct{}, 3) })
	var open []net.Conn
	for range 3 {
		open = append(open, dialBroker(t, addr, nil))
	}
	await.Until(t, "a fourth connection is refused", func() bool { return ended(t, dialBroker(t, addr, nil)) }) // the three are counted when they are accepted
	open[0].Close()
	await.Until(t, "the free place is used again", func() bool {
		c := dialBroker(t, addr, nil)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		return errors.Is(err, os.ErrDeadlineExceeded) // it is connected
	})
}

// Many large requests that never end take no more memory together than the budget, and a small
// request goes through next to them.
func TestBrokerBoundsRequestsTogether(t *testing.T) {
	const budgetSize = 4 * budgetStep
	l, addr := listen(t, func(l *brokerListener) { l.budget = newBudget(budgetSize) })
	part := make([]byte, 2*budgetStep)
	for range 6 {
		c := dialBroker(t, addr, requestOf(maxProduce, 0))
		go func() { _, _ = c.Write(part) }()
	}
	taken := func() int {
		l.budget.mu.Lock()
		defer l.budget.mu.Unlock()
		return l.budget.size - l.budget.free
	}
	await.Until(t, "the budget is taken", func() bool { return taken() >= budgetSize })
	if n := taken(); n > budgetSize {
		t.Errorf("%d bytes are taken, the budget is %d", n, budgetSize)
	}
	small := dialBroker(t, addr, append(requestOf(requestHead+4, 0), 0, 0, 0, 0)) // it is damaged, and is answered by a closed connection at once
	if !ended(t, small) {
		t.Error("a small request waits for the large ones")
	}
	l.Close()
}

// Batches are checked when they are written: readers find none that they cannot read.
func TestBrokerRefusesCounts(t *testing.T) {
	_, cfg := startBroker(t)
	apply(t, cfg, 1)
	good := craftRecords("v")
	for name, batch := range map[string][]byte{
		"no records": func() []byte {
			b := craftBatch(0, 0, 0, noProducer, nil)
			binary.BigEndian.PutUint32(b[23:], 1<<32-1) // the last is one before the first
			binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
			return b
		}(),
		"a negative number of them": craftBatch(0, -5, 0, noProducer, good),
		"two billion":               craftBatch(0, 1<<31-1, 0, noProducer, good),
		"more than are there":       craftBatch(0, 2, 0, noProducer, good),
		"fewer than are there":      craftBatch(0, 1, 0, noProducer, append(bytes.Clone(good), good...)),
		"two batches":               append(craftBatch(0, 1, 0, noProducer, good), craftBatch(0, 1, 0, noProducer, good)...),
		"a wrong checksum": func() []byte {
			b := craftBatch(0, 1, 0, noProducer, good)
			b[17]++
			return b
		}(),
		"an old format": func() []byte {
			b := craftBatch(0, 1, 0, noProducer, good)
			b[16] = 1
			return b
		}(),
		"a control batch": craftBatch(0, 1, 1<<5, noProducer, good),
	} {
		if err := produceRaw(t, cfg, TopicState, batch); !errors.Is(err, kerr.InvalidRecord) && !errors.Is(err, kerr.CorruptMessage) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
	if got := readAll(t, cfg, TopicState); len(got) != 0 {
		t.Errorf("the topic has %q", got)
	}
}
