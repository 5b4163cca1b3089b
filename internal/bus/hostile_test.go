package bus

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"
)

// A hostile broker does not hold a program up for longer than it waits, and costs it at most the
// memory of one answer at a time.
func TestHostileBroker(t *testing.T) {
	answer := func(size uint32, rest func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = c.Write(binary.BigEndian.AppendUint32(nil, size))
			rest(c)
		}
	}
	endless := func(c net.Conn) {
		for b := make([]byte, 64<<10); ; {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}
	drip := func(c net.Conn) {
		for {
			if _, err := c.Write([]byte{0}); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	var all sync.WaitGroup
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, say := range map[string]func(net.Conn){
		"silence": func(net.Conn) { time.Sleep(time.Minute) }, "endless zeros": endless, "dripping zeros": drip,
		"a huge answer": answer(1<<32-1, endless), "a negative answer": answer(1<<31, endless), "a long answer that never comes": answer(maxResponse, drip), "a long answer of zeros": answer(maxResponse, endless),
		"a web server": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); endless(c) },
		"hanging up":   func(net.Conn) {},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					if _, err := c.Read(make([]byte, 4)); err == nil { // a request has come
						go func() { _, _ = io.Copy(io.Discard, c) }()
						say(c)
					}
				}()
			}
		}()
		p, err := NewProducer(Config{Brokers: []string{l.Addr().String()}, ClientID: "hostile"})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if err := p.Send(ctx, []Message{{Topic: TopicWindows, Key: "m", Value: []byte("v")}}); err == nil {
				t.Errorf("%s: a message was sent", name)
			}
			p.Close()
			if took := time.Since(begun); took > patience { // the time-out is half a second
				t.Errorf("%s: %v", name, took)
			}
		})
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	if after.Sys > before.Sys+512<<20 {
		t.Errorf("the process has taken %d MiB", (after.Sys-before.Sys)>>20)
	}
}
