package gateway

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// twoClocks is a source of 8 and 2 Hz, 60 s in each of two sessions; a second of
// the slow rate takes 1.01 s by its own clock.
type twoClocks struct {
	layout *signal.Layout
	next   int
}

func (s *twoClocks) Layout() *signal.Layout { return s.layout }

func (s *twoClocks) Next(context.Context) (*source.Block, error) {
	const seconds = 60
	n, group := s.next/2, s.next%2
	if n == 2*seconds {
		return nil, io.EOF
	}
	s.next++
	second := n % seconds
	at := time.Duration(second) * time.Second
	if group == 1 {
		at += at / 100
	}
	rate := int(s.layout.Groups()[group].Rate)
	x := make([]float32, rate)
	for i := range x {
		x[i] = float32(i)
	}
	return &source.Block{Block: signal.Block{
		Context: signal.Context{Machine: lathe}, Session: int64(n / seconds), Group: group, First: int64(second * rate),
		Time: time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC).Add(at), Samples: [][]float32{x},
	}}, nil
}

// A rate that is wrong in both rates is logged once in an hour, by its flag and with the rates, and the windows are counted.
func TestWrongRatesAreReported(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	l, err := signal.NewLayout("half", []signal.Channel{
		{Name: "fast", Kind: signal.Force, Rate: 8}, {Name: "slow", Kind: signal.Torque, Rate: 2}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{
		Source: &halfRate{twoClocks{layout: l}}, Window: window.DefaultSpec, SpoolDir: filepath.Join(p.dir, "half"), Bus: p.bus, SyncEvery: 60, Log: zerolog.New(&p.log),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `"flag":"rate_error","rates":"4 samples a second come where the layout says 8, 1 samples a second come where the layout says 2"`
	if n := strings.Count(p.log.String(), "the sensors' rate is not the layout's"); n != 1 || !strings.Contains(p.log.String(), want) {
		t.Errorf("%d lines: %s", n, p.log.String())
	}
	by := map[string]uint64{}
	for i, n := range g.Stats().Flagged {
		by[signal.Flags[i]] = n
	}
	if by["rate_error"] < 90 || by["clock_step"] > 22 { // of 120 windows in two sessions
		t.Errorf("%v", by)
	}
}

// halfRate is a source whose samples take twice as long as its layout says.
type halfRate struct{ twoClocks }

func (s *halfRate) Next(ctx context.Context) (*source.Block, error) {
	b, err := s.twoClocks.Next(ctx)
	if err == nil {
		rate := s.layout.Groups()[b.Group].Rate
		b.Time = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC).Add(time.Duration(2 * float64(b.First) / rate * 1e9))
	}
	return b, err
}

// The log says once in a session that clocks have moved apart: by half a sample,
// 250 ms, after 26 s.
func TestClocksThatPartAreReported(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	l, err := signal.NewLayout("two clocks", []signal.Channel{
		{Name: "fast", Kind: signal.Force, Rate: 8}, {Name: "slow", Kind: signal.Torque, Rate: 2}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{
		Source: &twoClocks{layout: l}, Window: window.DefaultSpec, SpoolDir: filepath.Join(p.dir, "clocks"), Bus: p.bus, SyncEvery: 60, Log: zerolog.New(&p.log),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "half a sample") {
			found = append(found, line)
		}
	}
	if len(found) != 2 || !strings.Contains(found[0], `"start":"2026-11-02T06:00:26Z","drift_ms":260,"rate_hz":2`) {
		t.Errorf("the log has %d lines on clocks, want one a session, at 26 s: %q", len(found), found)
	}
}
