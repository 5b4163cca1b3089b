package feed

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/await"
)

// A client that sends only signs of life cannot keep the sensor out for ever.
func TestIdleClientGivesUpItsPlace(t *testing.T) {
	t.Parallel()
	f := listen(t, Config{Timeout: 200 * time.Millisecond}, TCP{})
	idle, _ := dial(t, f.Addr())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, err := idle.Write(make([]byte, headerSize)); err != nil { // a sign of life
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	over := func() bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}
	await.Until(t, "the first client", func() bool { return f.Stats().Senders == 1 || over() })
	await.Until(t, "the client that sends nothing gives up its place", func() bool {
		c, in := dial(t, f.Addr())
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // the feed says nothing to a client that has got the place
		line, err := in.ReadString('\n')
		if err == nil && !strings.Contains(line, "has a client already") && !strings.Contains(line, "no whole frame for 200ms") { // it has the place, and this machine is slow
			t.Fatalf("%q", line)
		}
		c.Close()
		return over()
	})
}

// Connections that do not even begin TLS are bounded, and their places are given back.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	own := certificate(t)
	f := listen(t, Config{Timeout: patience}, TCP{TLS: own})
	var all []net.Conn
	for range maxClients {
		c, err := net.Dial("tcp", f.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		all = append(all, c)
	}
	extra := func() error {
		c, err := net.Dial("tcp", f.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err = c.Read(make([]byte, 1))
		return err
	}
	await.Until(t, "a connection too many is closed", func() bool { return !errors.Is(extra(), os.ErrDeadlineExceeded) })
	for _, c := range all {
		c.Close()
	}
	await.Until(t, "there is room again", func() bool { return errors.Is(extra(), os.ErrDeadlineExceeded) })
}
