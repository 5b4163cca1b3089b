//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// jumps are the clock jumps of row 13, each followed by the jump back.
var jumps = []time.Duration{-365 * 24 * time.Hour, 365 * 24 * time.Hour, -time.Hour, time.Hour, 48 * time.Hour, -48 * time.Hour, time.Second, -time.Second}

// Row 13. The clocks of the sensors and of the spool jump.
func clockJumps(t *testing.T, r *record) {
	r.sensorClock(t)
	r.spoolClock(t)
}

// sensorClock cuts windows from a sensor whose clock jumps while its sample counter goes on,
// and lets a monitor judge them.
func (r *record) sensorClock(t *testing.T) {
	n := r.n(8000, 800)
	const between = 50 // windows from jump to jump
	p := newPlant(t, 2, 1, n, 0)
	layout, _, err := signal.LoadLayout(p.file("layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	slicer, err := window.NewSlicer(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	var msgs []bus.Message
	at, jumped, flagged := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), 0, 0
	for i, row := range p.rows {
		if i%between == between/2 {
			at = at.Add(jumps[jumped%len(jumps)])
			jumped++
		}
		b := &signal.Block{Session: 1, First: int64(i), Time: at, Samples: [][]float32{{row[0]}, {row[1]}, {row[2]}}}
		b.Machine, b.Tool = machine, "T1"
		at = at.Add(time.Second)
		slicer.Push(b)
		for ev, ok := slicer.Next(); ok; ev, ok = slicer.Next() {
			if ev.Window == nil {
				t.Errorf("a gap: %+v", ev.Gap)
				continue
			}
			w := ev.Window
			w.Epoch, w.Seq = mintEpoch, uint64(len(msgs))
			if w.Quality[0]&signal.ClockStep != 0 {
				flagged++
			}
			e, err := codec.Seal(w)
			if err != nil {
				t.Fatal(err)
			}
			msgs = append(msgs, envelope.Window(e))
		}
	}
	p.send(0, uint64(len(msgs)), func(seq uint64) bus.Message { return msgs[seq] })
	sent, v := p.windows(), p.verdicts()
	mon := p.monitor()
	v.reached(n, patience)
	mon.kill()
	where := fmt.Sprintf("%d jumps of -1 y to +1 y in %d windows", jumped, n)
	r.delivered("the sensors' clock jumps", where, sent, n)
	r.exact(figure{What: "the sensors' clock jumps: windows without a result", Count: where, Goal: "0", Measured: fmt.Sprint(n - v.count())}, v.count() == n)
	r.exact(figure{
		What: "the sensors' clock jumps: windows flagged `clock_step`", Count: where, Goal: fmt.Sprint(jumped), Measured: fmt.Sprint(flagged),
		Note: "Blocks whose sample counter goes on while their time jumps; a recording whose own time column goes back is refused with the line.",
	}, flagged == jumped)
}

// spoolClock lets the clock of a spool jump. The clock decides how long the spool keeps
// delivered windows.
func (r *record) spoolClock(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	set := spool.Settings{SegmentBytes: 4096, Now: func() time.Time { return now }}
	s, _, err := spool.Open(dir, set)
	if err != nil {
		t.Fatal(err)
	}
	const per = 100
	lost, got := 0, uint64(0)
	for i, jump := range append(jumps, jumps...) {
		for range per {
			if _, err := s.Append([]byte(strings.Repeat("x", 100))); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(jump)
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 { // half of the jumps happen while the program is down
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			now = now.Add(-jump)
			if s, _, err = spool.Open(dir, set); err != nil {
				t.Fatal(err)
			}
		}
		records := drainSpool(t, s)
		for seq := got; seq < got+per; seq++ {
			if _, ok := records[seq]; !ok {
				lost++
			}
		}
		got += per
		if err := s.Ack(got - 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close()); err != nil {
		t.Fatal(err)
	}
	r.exact(figure{What: "the ingester's clock jumps: records lost by the spool", Count: fmt.Sprintf("%d jumps", 2*len(jumps)), Goal: "0", Measured: fmt.Sprintf("%d of %d", lost, got)}, lost == 0)
}
