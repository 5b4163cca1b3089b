package feed

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
)

// A hostile broker of MQTT costs a feed little memory, is reported, and does not keep it from closing.
func TestMQTTHostile(t *testing.T) {
	connack := []byte{0x20, 0x03, 0x00, 0x00, 0x00}
	endless := func(head ...byte) func(net.Conn) {
		return func(c net.Conn) {
			_, err := c.Write(head)
			for b := make([]byte, 64<<10); err == nil; {
				_, err = c.Write(b)
			}
		}
	}
	for name, c := range map[string]struct {
		say   func(net.Conn)
		heard string
	}{
		"a web server":        {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, "the MQTT broker cannot be reached"},
		"the longest packet":  {endless(0x20, 0xff, 0xff, 0xff, 0x7f), "the MQTT broker cannot be reached"},
		"a length of 5 bytes": {endless(0x20, 0xff, 0xff, 0xff, 0xff, 0x7f), "the MQTT broker cannot be reached"},
		"silence":             {func(c net.Conn) { time.Sleep(time.Minute) }, "the MQTT broker cannot be reached"},
		"a message of 256 MiB": {func(c net.Conn) {
			_, _ = c.Write(connack)
			endless(0x30, 0xff, 0xff, 0xff, 0x7f)(c)
		}, "the connection to the MQTT broker is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, heard := subscribe(t, "mqtt://"+mqtttest.Hostile(t, c.say), nil, func(cfg *Config, _ *MQTT) { cfg.Timeout = 200 * time.Millisecond })
			await.Until(t, "the feed reports it", func() bool { return heard.has(c.heard) })
			f.Close()
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%d MiB of memory", n>>20)
			}
		})
	}
}
