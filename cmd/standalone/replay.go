package main

import (
	"fmt"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// openReplay loads the model and checks that it is for the recording.
func (p *plant) openReplay() (*source.Recording, error) {
	m, err := model.Load(p.Model)
	if err != nil {
		return nil, err
	}
	layout, columns := m.Layout, m.Recording
	if p.Layout != "" {
		if layout, columns, err = signal.LoadLayout(p.Layout); err != nil {
			return nil, err
		}
		if err := m.Fits(layout, m.Window); err != nil {
			return nil, fmt.Errorf("%s with %s: %w", p.Model, p.Layout, err)
		}
	}
	columns.Machine = "" // --machine names it, and results are looked for under that name
	p.use(m)
	return &source.Recording{Path: p.Replay, Layout: layout, Columns: columns, Machine: p.Machine, Start: p.Start, Warn: p.warn}, nil
}

// replay returns the job of replaying a recording.
func (p *plant) replay(r *source.Recording) (job, error) {
	id, err := gateway.RecordingID(*r, p.model.Window)
	if err != nil {
		return job{}, err
	}
	src, err := r.Open()
	if err != nil {
		return job{}, err
	}
	return job{source: src, recording: id, speed: p.Speed, classOf: card.RuleOf(p.model).Class}, nil
}

// warn prints what a person should know of the recording.
func (p *plant) warn(text string) { fmt.Fprintf(p.stderr, "warning: %s\n", plain.Text(text)) }
