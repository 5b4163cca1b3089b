package gateway

import (
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// A tool that was declared new names its life in the header of its windows, and no
// window holds samples of two lives; windows of other tools have no such header.
func TestToolLifeHeader(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	s := &sender{layout: p.layout}
	for session, life := range []string{"", "first", "second", ""} {
		for i := range int64(5) { // a window is two samples
			s.blocks = append(s.blocks, source.Block{Block: signal.Block{
				Context: signal.Context{Machine: lathe, Tool: "T1", ToolLife: life},
				Session: int64(session), First: i, Time: time.Unix(1767592800+10*int64(session), 0), Samples: [][]float32{{float32(i)}},
			}})
		}
	}
	g, err := New(Config{Source: s, Window: window.DefaultSpec, SpoolDir: p.spool, Bus: p.bus, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lives []string
	err = bus.ReadTopic(t.Context(), p.bus, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		has := slices.ContainsFunc(m.Headers, func(h bus.Header) bool { return h.Key == "tool_life" })
		if life := string(m.Header("tool_life")); has != (life != "") {
			t.Errorf("an empty header: %v", m.Headers)
		}
		lives = append(lives, string(m.Header("tool_life")))
		var w window.Window
		if err := openMessage(g.codec, &m, &w); err != nil || w.ToolLife != lives[len(lives)-1] {
			t.Errorf("read back: %+v, %v", w.Context, err)
		}
		return nil
	})
	if want := []string{"", "", "first", "first", "second", "second", "", ""}; err != nil || !slices.Equal(lives, want) {
		t.Errorf("lives %q, %v; want %q", lives, err, want)
	}
}
