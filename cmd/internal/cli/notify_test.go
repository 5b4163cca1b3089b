package cli

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/testkit/await"
)

// systemd makes the socket that systemd would, and returns what reads the next message of the program there.
func systemd(t *testing.T) (next func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skipf("no datagram sockets here: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		b := make([]byte, 1000)
		if err := l.SetReadDeadline(time.Now().Add(await.Patience)); err != nil {
			t.Fatal(err)
		}
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

// A program is ready once, says what it waits for, and gives signs of life also while it waits.
func TestNotify(t *testing.T) {
	next := systemd(t)
	t.Setenv("WATCHDOG_USEC", "3000000")
	var waits atomic.Bool
	waits.Store(true)
	s := startService(t.Context(), zerolog.Nop(), time.Millisecond)
	s.watch(func() error {
		if waits.Load() {
			return errors.New("waiting for Kafka\nREADY=1")
		}
		return nil
	})
	var got string
	for _, want := range []string{"STATUS=starting", "STATUS=waiting for Kafka READY=1"} {
		for got = next(); got == "WATCHDOG=1"; got = next() {
		}
		if got != want {
			t.Fatalf("the program says %q, want %q", got, want)
		}
	}
	for range 2 {
		if got := next(); got != "WATCHDOG=1" {
			t.Fatalf("while it waits, the program says %q", got)
		}
	}
	waits.Store(false)
	for got = next(); got == "WATCHDOG=1"; got = next() {
	}
	if got != "READY=1" || next() != "STATUS=ready" {
		t.Fatalf("when it is ready, the program says %q", got)
	}
	waits.Store(true)
	for got = next(); got == "WATCHDOG=1"; got = next() {
	}
	if got != "STATUS=waiting for Kafka READY=1" {
		t.Fatalf("when it waits again, the program says %q", got)
	}
	waits.Store(false)
	for got = next(); got != "STATUS=ready"; got = next() {
		if got != "WATCHDOG=1" {
			t.Fatalf("ready a second time, the program says %q", got)
		}
	}
	s.stop()
	s.stop()
	for got = next(); got == "WATCHDOG=1"; got = next() {
	}
	if got != "STOPPING=1" {
		t.Fatalf("at its end the program says %q", got)
	}
}

// A program that hangs gives no sign of life.
func TestNotifyHangs(t *testing.T) {
	next := systemd(t)
	t.Setenv("WATCHDOG_USEC", "3000000")
	hang := make(chan struct{})
	hangs := make(chan struct{})
	s := startService(t.Context(), zerolog.Nop(), time.Millisecond)
	s.watch(func() error { close(hangs); <-hang; return nil })
	<-hangs
	s.stop()
	var all []string
	for got := next(); got != "STOPPING=1"; got = next() {
		if all = append(all, got); got != "STATUS=starting" && got != "WATCHDOG=1" {
			t.Fatalf("a program that hangs says %q", all)
		}
	}
	close(hang)
}

// Without systemd too the program knows whether what runs has been ready.
func TestNotifyWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	synctest.Test(t, func(t *testing.T) {
		s := startService(t.Context(), zerolog.Nop(), time.Second)
		s.watch(func() error { return errors.New("waiting for Kafka") })
		time.Sleep(time.Minute)
		if s.reload() {
			t.Error("it was ready while it waited")
		}
		var waits atomic.Bool
		s.watch(func() error {
			if waits.Load() {
				return errors.New("waiting for Kafka again")
			}
			return nil
		})
		time.Sleep(time.Minute)
		waits.Store(true)
		time.Sleep(time.Minute)
		if !s.reload() {
			t.Error("it was ready once")
		}
		if s.watch(nil) {
			t.Error("nothing ran, and it was ready")
		}
		s.stop()
	})
}

// A socket that is gone is logged, and the program goes on.
func TestNotifySocketGone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "absent"))
	var log strings.Builder
	startService(t.Context(), zerolog.New(&log), time.Millisecond).stop()
	if strings.Count(log.String(), "NOTIFY_SOCKET") != 1 {
		t.Errorf("log %q", log.String())
	}
}

// A program that is ready may say how it is doing.
func TestReadyNote(t *testing.T) {
	next := systemd(t)
	s := startService(t.Context(), zerolog.Nop(), time.Millisecond)
	defer s.stop()
	s.watch(func() error { return ReadyNote("spool only") })
	for _, want := range []string{"STATUS=starting", "READY=1", "STATUS=spool only"} {
		if got := next(); got != want {
			t.Fatalf("the program says %q, want %q", got, want)
		}
	}
	if err := ReadyNote(""); err != nil {
		t.Errorf("without a text: %v", err)
	}
}
