package ingest

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/pkg/window"
)

// Each sample that was received is in one entry of the ledger.
func TestNewLedger(t *testing.T) {
	g := gateway.Stats{Samples: window.Tally{Pushed: 80, Windowed: 40, Repeated: 3, Late: 4, Gaps: 5, Tails: 6, Open: 22}}
	f := feed.Stats{Samples: 100, Unused: [feed.Reasons]uint64{feed.Repeat: 1, feed.Counter: 2}}
	for _, live := range []bool{true, false} {
		l := newLedger(g, f, live, 7)
		all := l.InWindows + l.Open
		for _, n := range l.Unused {
			all += n
		}
		if l.Received != all || l.Unused["repeat"] != 4 || l.Unused["stopped"] != 7 {
			t.Errorf("live %v: %+v", live, l)
		}
	}
}

// A source that loses more than 10 s of samples in a minute is not ready, until that minute is over; repeats
// do not count as lost.
func TestLosses(t *testing.T) {
	const rate = 100
	now := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	var ls losses
	step := func(l ledger) string {
		now = now.Add(time.Second)
		ls = ls.note(now, l, lossWithin)
		return lossText(ls.over(rate, 10*time.Second))
	}
	unused := func(counter, repeats uint64) ledger {
		return ledger{Unused: map[string]uint64{"counter": counter, "repeat": repeats}}
	}
	for name, tc := range map[string]struct {
		l    ledger
		want bool
	}{"nothing": {ledger{}, false}, "ten seconds": {unused(10*rate, 0), false}, "repeats": {unused(0, 99*rate), false}, "more": {unused(10*rate+1, 0), true}} {
		ls = nil
		step(ledger{})
		if got := step(tc.l); (got != "") != tc.want || tc.want && !strings.Contains(got, "counter 10 s") {
			t.Errorf("%s: %q", name, got)
		}
	}
	ls = nil
	step(ledger{})
	for i := range 120 {
		if got := step(unused(10*rate+1, 0)); (got != "") != (i < 60) {
			t.Fatalf("after %d s: %q", i+1, got)
		}
	}
	if len(ls) > 62 {
		t.Errorf("%d ledgers are kept", len(ls))
	}
}

// The log has the first refused frame of each reason in a minute, and every other notice.
func TestRefusalsAreLoggedSeldom(t *testing.T) {
	var log bytes.Buffer
	m := &machine{log: zerolog.New(&log)}
	for range 5 {
		m.notice(feed.Notice{Text: "not taken", Reason: feed.Counter, Err: errors.New("a counter that jumps")})
	}
	m.notice(feed.Notice{Text: "not taken", Reason: feed.OtherSender, Err: errors.New("another sender")})
	for range 2 {
		m.notice(feed.Notice{Text: "a sender is connected"})
	}
	if n := strings.Count(log.String(), "\n"); n != 4 || strings.Count(log.String(), `"frames":1`) != 2 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}
