package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/state"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// moment is one window of a machine, with what is true of it.
type moment struct {
	end     time.Time
	tool    int // stay
	faulty  bool
	wear    float64 // maximum flank wear in µm
	phase   string
	verdict event.Verdict
	score   float64
	alarm   string
}

// record is all that one machine did and the monitor reported about it.
type record struct {
	plan       *plan
	moments    []moment
	alerts     []event.Alert
	advisories []event.Advisory
}

// follow lets a model watch a machine from its first to its last tool.
func follow(ctx context.Context, p *plan, m *model.Model) (*record, error) {
	src, err := p.open()
	if err != nil {
		return nil, err
	}
	cutter, err := source.NewCutter(src, m.Window)
	if err != nil {
		return nil, err
	}
	form, err := m.Form()
	if err != nil {
		return nil, err
	}
	watched, err := machine.New(p.name, &machine.Settings{Group: "replay", Alarm: alarm.Default}, machine.NewModel(m), time.Time{})
	if err != nil {
		return nil, err
	}
	extractor, features := form.NewExtractor(), new(window.Features)
	rule := card.RuleOf(m)
	r := &record{plan: p}
	stayOf := make(map[string]int)
	for i, s := range p.stays {
		stayOf[s.tool.Name] = i
	}
	for seq := uint64(0); ; seq++ {
		c, err := cutter.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", p.name, err)
		case c.Gap != nil:
			continue
		}
		w := c.Window
		w.Epoch, w.Seq = 1, seq
		extractor.Extract(w, features)
		d := watched.Apply(machine.Window{Features: features, Offset: state.Offset{At: int64(seq)}, At: w.End(), Now: w.End()})
		class, known := rule.Class(c.Truth.VBMeanUM, c.Truth.VBMaxUM, c.Truth.State)
		r.moments = append(r.moments, moment{
			end: w.End(), tool: stayOf[w.Tool], faulty: known && class > 0, wear: c.Truth.VBMaxUM, phase: c.Truth.Phase,
			verdict: d.Result.Verdict, score: d.Result.Score, alarm: d.Result.Alarm,
		})
		r.alerts = append(r.alerts, d.Alerts...)
		r.advisories = append(r.advisories, d.Advisories...)
	}
}
