package gateway

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// sender is a live source of the plant's layout that notes what is kept of it.
type sender struct {
	layout *signal.Layout
	blocks []source.Block
	kept   []string
	onDisk func() uint64
}

func (s *sender) Layout() *signal.Layout { return s.layout }

func (s *sender) Next(context.Context) (*source.Block, error) {
	if len(s.blocks) == 0 {
		return nil, io.EOF
	}
	b := &s.blocks[0]
	s.blocks = s.blocks[1:]
	return b, nil
}

func (s *sender) Acked(session, next int64) {
	disk := uint64(0)
	if s.onDisk != nil {
		disk = s.onDisk()
	}
	s.kept = append(s.kept, fmt.Sprintf("%d<%d:%d", session, next, disk))
}

// A live source hears of every window once it is on disk, and of the last when
// it is started again, also when all is delivered.
func TestKept(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	s := &sender{layout: p.layout}
	for session := range int64(2) {
		for i := range int64(5) { // a window is two samples
			s.blocks = append(s.blocks, source.Block{Block: signal.Block{
				Context: signal.Context{Machine: lathe}, Session: 40 + session, First: i, Time: time.Unix(1767592800, 0), Samples: [][]float32{{float32(i)}},
			}})
		}
	}
	run := func(s *sender) {
		t.Helper()
		g, err := New(Config{Source: s, Window: window.DefaultSpec, SpoolDir: p.spool, Bus: p.bus, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		s.onDisk = g.spool.NextSeq
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	run(s)
	if want := []string{"40<2:1", "40<4:2", "41<2:3", "41<4:4"}; !slices.Equal(s.kept, want) {
		t.Errorf("kept %v, want %v", s.kept, want)
	}
	again := &sender{layout: p.layout}
	run(again)
	if want := []string{"41<4:4"}; !slices.Equal(again.kept, want) {
		t.Errorf("started again: %v, want %v", again.kept, want)
	}
}
