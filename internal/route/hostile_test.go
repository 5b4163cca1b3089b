package route

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
)

// endless sends text again and again until the client has gone.
func endless(text string) func(net.Conn) {
	return func(c net.Conn) {
		b := []byte(strings.Repeat(text, 1+64<<10/len(text)))
		for {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}
}

// drip sends a byte now and then until the client has gone.
func drip(text string) func(net.Conn) {
	return func(c net.Conn) {
		for i := 0; ; i++ {
			if _, err := c.Write([]byte{text[i%len(text)]}); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// A receiver that never ends its answer holds a route up for one time-out, takes little memory
// and gets no more than the event. Receivers of each kind are asked at once, and have the memory of one.
func TestHostileReceivers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	for name, say := range map[string]func(net.Conn){
		"endless header":   func(c net.Conn) { _, _ = io.WriteString(c, head); endless("X-A: b\r\n")(c) },
		"endless line":     func(c net.Conn) { _, _ = io.WriteString(c, head+"X-A: "); endless("a")(c) },
		"endless status":   endless("HTTP/1.1 200 "),
		"endless body":     func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 500 no\r\n\r\n"); endless("a")(c) },
		"dripping header":  func(c net.Conn) { _, _ = io.WriteString(c, head); drip("X-A: b\r\n")(c) },
		"dripping body":    func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 500 no\r\n\r\n"); drip("a")(c) },
		"endless go-on":    endless("HTTP/1.1 100 Continue\r\n\r\n"),
		"silence":          func(c net.Conn) { time.Sleep(time.Minute) },
		"endless greeting": func(c net.Conn) { _, _ = io.WriteString(c, "220-"); endless("a")(c) },
		"greeting lines":   endless("220-a\r\n"),
		"dripping lines":   drip("220-a\r\n"),
		"long packet":      endless("\x20\xff\xff\xff\x7f"),
		"zeros":            endless("\x00"),
	} {
		addr := mqtttest.Hostile(t, say)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var all sync.WaitGroup
		for kind, to := range map[string]Receivers{
			"webhook":      {Webhook: &Webhook{URL: "http://" + addr}},
			"alertmanager": {Alertmanager: &alertmanagerConfig{URL: "http://" + addr}},
			"mqtt":         {MQTT: &mqttConfig{Broker: "mqtt://" + addr}},
			"smtp":         {SMTP: &smtpConfig{Server: addr, TLSMode: noTLS, From: "flank@plant.example", To: []string{"shift@plant.example"}}},
		} {
			b, e := newBench(t, Config{Receivers: to}, nil), opened(t, alert(drill, 1, event.Raised))
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				begun := time.Now()
				if err := b.to.deliver(ctx, e); err == nil {
					t.Errorf("%s, %s: taken for an answer", kind, name)
				}
				if took := time.Since(begun); took > await.Patience { // the time-out is 0.3 s
					t.Errorf("%s, %s: %v", kind, name, took)
				}
			})
		}
		all.Wait()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d MiB of memory", name, n>>20)
		}
	}
}

// A signed request and its token go to the receiver that the configuration names, and to no
// other one.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var stolen atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer thief.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.RedirectHandler(thief.URL, code))
		b := newBench(t, Config{Receivers: Receivers{Webhook: &Webhook{URL: s.URL, Token: credential.Secret{File: secretFile(t, "a token of twenty characters")}}}}, nil)
		err := b.to.deliver(t.Context(), opened(t, alert(drill, 1, event.Raised)))
		if err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
			t.Errorf("%d: %v", code, err)
		}
		s.Close()
	}
	if n := stolen.Load(); n > 0 {
		t.Errorf("%d requests went to another server", n)
	}
}
