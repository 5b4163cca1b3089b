package opcua

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gopcua/opcua/ua"

	"github.com/flank-tcm/flank/internal/testkit/opcuatest"
)

const patience = 2 * time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// What is written is read again, in each type.
func TestReadWrite(t *testing.T) {
	values := map[string]any{
		"ns=2;s=bool": true, "ns=2;s=byte": uint8(200), "ns=2;s=int16": int16(-5), "ns=2;s=uint16": uint16(65000), "ns=2;s=int32": int32(-70000), "ns=2;s=uint32": uint32(4e9),
		"ns=2;i=7": int64(-5e12), "ns=2;i=8": uint64(5e12), "ns=2;s=float": float32(1.5), "ns=2;s=double": math.Pi, "ns=2;s=text": "wear µm", "ns=2;s=time": time.Date(2026, 11, 2, 2, 13, 41, 500, time.UTC),
		"ns=2;s=sbyte": int8(-7), "g=72962B91-FA75-4AE6-8D28-B404DC7DAF63": "by GUID",
	}
	variables := make(map[string]any)
	for node, v := range values {
		switch v.(type) {
		case string:
			variables[node] = ""
		case time.Time:
			variables[node] = time.Time{}
		default:
			variables[node] = v
		}
	}
	variables["ns=2;s=array"] = []string{"a", "b"}
	s, err := Dial(within(t), Config{Endpoint: opcuatest.Start(t, "", variables).URL, User: "kim", Password: "pass"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for node, v := range values {
		id, err := ua.ParseNodeID(node)
		if err != nil {
			t.Fatal(err)
		}
		status, err := s.Write(within(t), []Write{{id, ua.MustVariant(v)}, {ua.NewNumericNodeID(2, 99), ua.MustVariant(true)}})
		if err != nil || status[0] != ua.StatusOK || status[1] != ua.StatusBadNodeIDUnknown {
			t.Errorf("%s: %v, %v", node, status, err)
		}
		got, err := s.Read(within(t), []Attribute{{id, ua.AttributeIDValue}, {id, ua.AttributeIDDataType}, {ua.NewNumericNodeID(2, 99), ua.AttributeIDValue}})
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := v.(time.Time); ok {
			v = at.Truncate(100 * time.Nanosecond)
		}
		typ, _ := got[1].V.(*ua.NodeID)
		if got[0].V != v || typ == nil || typ.IntID() != uint32(got[0].Type) || got[2].Status != ua.StatusBadNodeIDUnknown || got[2].V != nil {
			t.Errorf("%s: %+v, want %v", node, got, v)
		}
	}
	if got, err := s.Read(within(t), []Attribute{{ua.NewStringNodeID(2, "array"), ua.AttributeIDValue}, {ua.NewStringNodeID(2, "bool"), ua.AttributeIDValue}}); err != nil || got[0].Type != ua.TypeIDNull || got[1].V != true {
		t.Errorf("an array: %+v, %v", got, err)
	}
	if now := time.Now(); !s.Usable(now) || s.Usable(now.Add(time.Hour)) {
		t.Error("a session is usable for 45 minutes")
	}
}

// hostile starts a server that answers as a good one does up to a message, and then with what
// say writes. Messages are counted from 0, of the connection that opens the session.
func hostile(t *testing.T, from int, say func(c net.Conn, sequence, request uint32)) string {
	t.Helper()
	good := opcuatest.Start(t, "", map[string]any{"ns=2;s=v": true})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				to, err := net.Dial("tcp", good.Addr)
				if err != nil {
					return
				}
				defer to.Close()
				for i := 0; ; i++ {
					b := message(c)
					if b == nil {
						return
					}
					if n > 0 && i >= from {
						go func() { _, _ = io.Copy(io.Discard, c) }()
						request := uint32(1)
						if len(b) >= 24 {
							request = binary.LittleEndian.Uint32(b[20:])
						}
						say(c, uint32(i), request)
						return
					}
					if _, err := to.Write(b); err != nil {
						return
					}
					answer := message(to)
					if _, err := c.Write(answer); answer == nil || err != nil {
						return
					}
				}
			}()
		}
	}()
	return "opc.tcp://" + l.Addr().String()
}

// message reads one message, nil at the end.
func message(c net.Conn) []byte {
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil
	}
	b := append(head, make([]byte, binary.LittleEndian.Uint32(head[4:])-8)...)
	if _, err := io.ReadFull(c, b[8:]); err != nil {
		return nil
	}
	return b
}

// read is the number of the message that reads: hello, open, create, activate, read.
const read = 4

// For any answer of a server, a call ends in time with an error and takes little memory.
func TestHostileServer(t *testing.T) {
	header := make([]byte, 24) // time, handle, status, no diagnostics, no texts, no extension
	body := func(id uint16, more ...byte) []byte {
		return append(append([]byte{1, 0, byte(id), byte(id >> 8)}, header...), more...)
	}
	value := func(more ...byte) []byte { return body(634, append([]byte{1, 0, 0, 0, 1}, more...)...) }
	write := func(b []byte) func(net.Conn, uint32, uint32) {
		return func(c net.Conn, sequence, request uint32) {
			_, _ = c.Write(opcuatest.Chunk("MSGF", sequence, request, b))
			time.Sleep(time.Hour)
		}
	}
	for name, tc := range map[string]struct {
		from int
		say  func(net.Conn, uint32, uint32)
	}{
		"silence at first":        {0, func(net.Conn, uint32, uint32) { time.Sleep(time.Hour) }},
		"silence later":           {read, func(net.Conn, uint32, uint32) { time.Sleep(time.Hour) }},
		"gone":                    {read, func(net.Conn, uint32, uint32) {}},
		"tiny chunks of requests": {0, func(c net.Conn, _, _ uint32) { _, _ = c.Write(opcuatest.Acknowledge(1)) }},
		"a chunk of 4 GiB":        {read, func(c net.Conn, _, _ uint32) { _, _ = c.Write([]byte("MSGF\xff\xff\xff\xff")) }},
		"a chunk of nothing":      {read, func(c net.Conn, _, _ uint32) { _, _ = c.Write([]byte("MSGF\x08\x00\x00\x00")) }},
		"a chunk of less":         {read, func(c net.Conn, _, _ uint32) { _, _ = c.Write([]byte("MSGF\x00\x00\x00\x00")) }},
		"HTTP":                    {0, func(c net.Conn, _, _ uint32) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n") }},
		"an error of the transport": {read, func(c net.Conn, _, _ uint32) {
			_, _ = c.Write([]byte("ERRF\x18\x00\x00\x00\x00\x00\x01\x80\x08\x00\x00\x00go \x1b[away"))
		}},
		"another request's answer":    {read, func(c net.Conn, sequence, request uint32) { write(value(1, 1))(c, sequence, request+1) }},
		"a chunk again":               {read, func(c net.Conn, sequence, request uint32) { write(value(1, 1))(c, sequence-1, request) }},
		"an abort":                    {read, func(c net.Conn, s, r uint32) { _, _ = c.Write(opcuatest.Chunk("MSGA", s, r, make([]byte, 8))) }},
		"a chunk of a kind":           {read, func(c net.Conn, s, r uint32) { _, _ = c.Write(opcuatest.Chunk("MSGX", s, r, make([]byte, 8))) }},
		"an answer to something else": {read, write(body(676, 0, 0, 0, 0))},
		"an array of negative length": {read, write(value(0x80|1, 0xfb, 0xff, 0xff, 0xff))},
		"2 thousand million values":   {read, write(body(634, 0xff, 0xff, 0xff, 0x7f))},
		"no value":                    {read, write(body(634, 0, 0, 0, 0))},
		"a text of 2 GiB":             {read, write(value(12, 0xff, 0xff, 0xff, 0x7f))},
		"a type that is none":         {read, write(value(63))},
		"diagnostics in diagnostics":  {read, write(append(append([]byte{1, 0, 0x7a, 2}, header[:16]...), bytes.Repeat([]byte{0x40}, 60000)...))},
		"nothing behind the type":     {read, write([]byte{1, 0, 0x7a, 2})},
		"endless chunks": {read, func(c net.Conn, s, r uint32) {
			for ; ; s++ {
				if _, err := c.Write(opcuatest.Chunk("MSGC", s, r, make([]byte, 60000))); err != nil {
					return
				}
			}
		}},
		"endless small chunks": {read, func(c net.Conn, s, r uint32) {
			for ; ; s++ {
				if _, err := c.Write(opcuatest.Chunk("MSGC", s, r, nil)); err != nil {
					return
				}
			}
		}},
		"a drip": {read, func(c net.Conn, s, r uint32) {
			for _, b := range opcuatest.Chunk("MSGF", s, r, make([]byte, 60000)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}},
	} {
		url := hostile(t, tc.from, tc.say)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		patience := 3 * time.Second
		if tc.from == 0 { // the server does not let it get further
			patience /= 10
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		s, err := Dial(ctx, Config{Endpoint: url})
		if err == nil {
			short, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, err = s.Read(short, []Attribute{{ua.NewStringNodeID(2, "v"), ua.AttributeIDValue}})
			stop()
			if s.Usable(time.Now()) {
				t.Errorf("%s: the session goes on", name)
			}
			s.Close()
		}
		cancel()
		runtime.ReadMemStats(&after)
		if err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 { // with what the server takes
			t.Errorf("%s: %d MiB of memory", name, n>>20)
		}
	}
}

// FuzzAnswer decodes any bytes: damage is an error, never a panic.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 1, 1, 1})
	f.Add([]byte{1, 0, 0, 0, 3, 12, 2, 0, 0, 0, 'a', 'b', 0, 0, 1, 128})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []func(*reader){
			func(r *reader) { r.typeID(); r.skip(16); r.diagnostics(0); r.extension() },
			func(r *reader) {
				for range r.count(1) {
					r.dataValue()
				}
			},
			func(r *reader) { readEndpoints(r) },
		} {
			r := &reader{b: b}
			decode(r)
			if r.at > len(b) {
				t.Fatal("read past the end")
			}
		}
	})
}
