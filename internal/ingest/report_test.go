package ingest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/pkg/signal"
)

// A ledger is due 10 s after the start, each minute after that, and at once when samples begin or cease to be lost, or to
// come. It is of the last hour.
func TestDueLedger(t *testing.T) {
	const rate = 100
	m := &machine{Machine: Machine{Path: "acme/usk25", Source: sourceConfig{Kind: "tcp", MaxLost: 20 * time.Second}}, rate: rate, state: running}
	begun := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	now := begun
	l := ledger{Unused: map[string]uint64{}}
	var last event.SourceLedger
	step := func(good, counter uint64) bool {
		l.Received, l.InWindows = l.Received+good+counter, l.InWindows+good
		l.Unused = map[string]uint64{"counter": l.Unused["counter"] + counter, repeat: l.Unused[repeat]}
		m.losses = m.losses.note(now, l, lossWithin)
		m.came.note(l.Received, now)
		m.fresh.note(l.Received-l.Unused[repeat], now)
		said, due := m.dueLedger(now)
		if due {
			last = said
		}
		now = now.Add(time.Second)
		return due
	}
	until := func(seconds int, good, counter uint64, want ...int) {
		t.Helper()
		var got []int
		for range seconds {
			if step(good, counter) {
				got = append(got, int(now.Sub(begun).Seconds())-1)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("due at %v s, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("due at %v s, want %v", got, want)
			}
		}
	}
	until(80, rate, 0, 10, 70)
	if last.Machine != "acme/usk25" || last.Received != 70*rate || last.InWindows != 70*rate || last.Seconds != 70 || last.Lost != nil || last.Idle != 0 || len(last.Unused) != 0 {
		t.Errorf("%+v", last)
	}
	until(30, 0, rate, 100)
	if len(last.Lost) != 1 || last.Lost[0].Reason != "counter" || last.Lost[0].Seconds != 21 || last.Unused[0].Samples != 21*rate {
		t.Errorf("%+v", last)
	}
	until(70, rate, 0, 149) // 20 s of the last minute are not too much
	if last.Lost != nil {
		t.Errorf("%+v", last)
	}
	until(20, 0, 0, 189)
	if last.Idle != 10 {
		t.Errorf("%+v", last)
	}
	until(4, rate, 0, 200)
	if last.Idle != 0 {
		t.Errorf("%+v", last)
	}
	const again = 15
	for range again { // the same samples come again and again
		l.Received, l.Unused = l.Received+rate, map[string]uint64{"counter": l.Unused["counter"], repeat: l.Unused[repeat] + rate}
		m.losses = m.losses.note(now, l, lossWithin)
		m.came.note(l.Received, now)
		if said, due := m.dueLedger(now); due {
			last = said
		}
		now = now.Add(time.Second)
	}
	if last.Idle != 10 || !last.Repeating {
		t.Errorf("%+v", last)
	}
	for range 7300 {
		step(rate, 0)
	}
	if last.Seconds < 3600 || last.Seconds > 3720 || len(m.hour) > 62 || last.Received != uint64(last.Seconds)*rate || len(last.Unused) != 0 {
		t.Errorf("%+v, %d ledgers are kept", last, len(m.hour))
	}
	m.state = done
	until(100, 0, 0)
}

// A ledger is due at once when a rate falls silent, and names it.
func TestDueLedgerOfASilentRate(t *testing.T) {
	layout, err := signal.NewLayout("two rates", []signal.Channel{{Name: "a", Kind: signal.Vibration, Rate: 100}, {Name: "b", Kind: signal.Force, Rate: 10}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.ListenTCP(feed.Config{Machine: "acme/usk25", Layout: layout}, feed.TCP{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	opened := time.Now()
	conn, err := net.Dial("tcp", f.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	frame := fmt.Appendf(nil, `{"session": 1, "first": 0, "time_ns": %d, "tool": "T1", "channels": {"a": [%s1]}}`, opened.UnixNano(), strings.Repeat("1,", 9_999)) // of 100 s
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(frame)))
	if _, err := conn.Write(append(binary.LittleEndian.AppendUint32(head, crc32.ChecksumIEEE(frame)), frame...)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := &machine{Machine: Machine{Path: "acme/usk25", Source: sourceConfig{Kind: "tcp", MaxLost: time.Hour}}, rate: 110, state: running, feed: f}
	due := func(after time.Duration) (event.SourceLedger, bool) {
		now := opened.Add(after)
		m.fresh.at, m.came.at = now, now
		m.losses = m.losses.note(now, ledger{}, lossWithin)
		return m.dueLedger(now)
	}
	m.said.at = opened
	if l, now := due(time.Second); now || l.Silent != nil {
		t.Errorf("before its time is over: %+v", l)
	}
	if l, now := due(30 * time.Second); !now || len(l.Silent) != 1 || l.Silent[0] != 10 {
		t.Errorf("a rate that never came: %v, %+v", now, l)
	}
}
