package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/loopback"
)

func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := StartBroker(dir, loopback.Host(1)+":0")
	if err != nil {
		t.Fatal(err)
	}
	addr := b.Addr()
	var mu sync.Mutex
	down := ""
	cfg := b.Config("test")
	cfg.OnRetry = func(err error, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			down = err.Error()
		}
	}
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	c := newCollector()
	defer runGroup(t, cfg, c.handle)()
	send(t, p, windows("k", 0, 20))
	c.wait(t, 20)
	b.Close()

	sent := make(chan error, 1)
	go func() { sent <- p.Send(testContext(t), windows("k", 20, 40)) }()
	await.Right(t, func() string {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(down, "no Kafka broker answers at "+addr) {
			return ""
		}
		return fmt.Sprintf("OnRetry heard only %q", down)
	})
	b, err = StartBroker(dir, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	c.wait(t, 40)
	if got := readAll(t, cfg, TopicWindows)["k"]; len(got) < 40 || got[0] != "k/0" {
		t.Errorf("%d messages after the restart", len(got))
	}
}

// If a call within a call gave up with an explained error, the outer call returns it as it
// is: it does not explain it again, and the text is the same each time.
func TestExplainOnce(t *testing.T) {
	cfg := Config{Brokers: []string{"127.0.0.1:1"}}
	refused := &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: errors.New("connection refused")}
	once := explain(refused, cfg)
	o := outage{failures: 12, last: once}
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	if got := explain(o.ended(ctx), cfg); got.Error() != once.Error() || !errors.Is(got, refused) {
		t.Errorf("explained again: %v, want %v", got, once)
	}
}

func TestProbe(t *testing.T) {
	cfg := anyBroker(t)
	if err := Probe(testContext(t), cfg); err != nil {
		t.Errorf("a running broker: %v", err)
	}
	ln, err := net.Listen("tcp", loopback.Host(1)+":0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	ln.Close()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for name, tc := range map[string]struct{ broker, want string }{
		"no broker there":  {closed, "no Kafka broker answers at " + closed + " (connection refused): start one or correct `brokers`"},
		"not Kafka":        {web.Listener.Addr().String(), "is not Kafka"},
		"no port":          {"localhost", "want host:port"},
		"unknown host":     {"no-such-host.invalid:9092", "no Kafka broker answers at"},
		"no broker at all": {"", "want host:port"},
	} {
		err := Probe(testContext(t), Config{Brokers: []string{tc.broker}})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if err := Probe(testContext(t), Config{}); err == nil || !strings.Contains(err.Error(), "`brokers`") {
		t.Errorf("no broker: %v", err)
	}
}
