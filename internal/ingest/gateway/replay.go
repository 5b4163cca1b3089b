package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// replay is what a gateway remembers of the recording it is replaying, in the
// file replay.json of its spool.
type replay struct {
	Recording string `json:"recording"`
	Epoch     uint64 `json:"epoch"`
	Finished  bool   `json:"finished"`
}

const replayFile = "replay.json"

// RecordingID returns what identifies the windows that are cut from a
// recording: the same bytes read or cut otherwise, sent for another machine or with
// another start, are other windows.
func RecordingID(r source.Recording, spec window.Spec) (string, error) {
	sum, err := r.SHA256()
	if err != nil {
		return "", err
	}
	tool := r.Name()
	if r.Columns.Tool != "" {
		tool = "" // the file may be renamed
	}
	id := fmt.Sprintf("%s/%s/%+v/%v/%v/%s/%s", sum, r.Layout.Fingerprint(), columnsOf(r.Columns), spec.Length, spec.Step(), r.Machine, tool)
	if r.Columns.VBMeanMM+r.Columns.VBMaxMM != "" {
		id += fmt.Sprintf("/mm %q %q", r.Columns.VBMeanMM, r.Columns.VBMaxMM)
	}
	if r.Columns.Date+r.Columns.TimeFormat+r.Columns.TimeUnit != "" {
		id += fmt.Sprintf("/time %q %q %q", r.Columns.Date, r.Columns.TimeFormat, r.Columns.TimeUnit)
	}
	if len(r.Columns.Missing) > 0 {
		id += fmt.Sprintf("/missing %q", r.Columns.Missing)
	}
	if !r.Start.IsZero() {
		id += "/" + r.Start.String()
	}
	return id, nil
}

// columns are the fields of signal.Recording that release v0.1.0 had, in its order. Printed they are a
// part of RecordingID: with a field more, an upgrade would send recordings again as other windows.
type columns struct {
	Format                                                 string
	Skip                                                   int
	Header, Separator, Decimal                             string
	Time, Machine, Tool, Hole, Speed, VBMean, VBMax, State string
	Origins                                                map[string]signal.Origin
}

func columnsOf(r signal.Recording) columns {
	return columns{r.Format, r.Skip, r.Header, r.Separator, r.Decimal, r.Time, r.Machine, r.Tool, r.Hole, r.Speed, r.VBMean, r.VBMax, r.State, r.Origins}
}

// settleEpoch decides whether to continue a replay or to start it again. It returns how
// many windows of the recording are in the spool or were delivered.
func (g *Gateway) settleEpoch(ctx context.Context) (resume uint64, err error) {
	if g.cfg.Recording == "" {
		// The windows to come continue the epoch, which no longer belongs to a replay.
		if err := g.disk.Remove(replayFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("gateway: %w", err)
		}
		return 0, nil
	}
	last, err := g.lastReplay()
	if err != nil {
		return 0, err
	}
	if last.Recording == g.cfg.Recording && last.Epoch == g.spool.Epoch() && !last.Finished {
		resume = g.spool.NextSeq()
		g.cfg.Log.Info().Uint64("windows", resume).Msg("continuing an unfinished replay")
		return resume, nil
	}
	if err := g.drain(ctx); err != nil {
		return 0, err
	}
	epoch, err := g.spool.NewEpoch(g.epochOfRecording())
	if err != nil {
		return 0, err
	}
	return 0, g.remember(replay{Recording: g.cfg.Recording, Epoch: epoch})
}

// leaveEpoch begins a new epoch of a live source if another host had the spool, which may
// still send windows of the old one. Windows of a recording are the same on every host.
func (g *Gateway) leaveEpoch(ctx context.Context) error {
	if !g.moved || g.cfg.SpoolOnly && g.spool.Stats().Pending > 0 { // the next run does it
		return nil
	}
	if g.cfg.Recording == "" {
		if err := g.drain(ctx); err != nil {
			return err
		}
		if _, err := g.spool.NewEpoch(0); err != nil {
			return err
		}
	}
	g.moved = false
	return g.spool.Own()
}

// epochOfRecording returns the epoch of the recording's windows, or 0 where each
// replay has one of its own.
func (g *Gateway) epochOfRecording() uint64 {
	if !g.cfg.SameWindows {
		return 0
	}
	sum := sha256.Sum256([]byte(g.cfg.Recording))
	return max(binary.BigEndian.Uint64(sum[:8]), 1)
}

// lastReplay returns what is remembered, or the zero value. A file that cannot
// be read as one costs a replay from the start, under an epoch of its own; what
// the spool holds is not touched by it.
func (g *Gateway) lastReplay() (last replay, err error) {
	last, damage, err := spool.ReadJSON[replay](g.disk, replayFile)
	if err != nil {
		return last, fmt.Errorf("gateway: %w", err)
	}
	if damage != nil {
		g.cfg.Log.Error().Err(damage).Str("file", filepath.Join(g.cfg.SpoolDir, replayFile)).
			Msg("the file is damaged: the position of the last replay is lost, and this one begins at the start of the recording; check the disk")
	}
	return last, nil
}

// drain delivers what another recording left in the spool.
func (g *Gateway) drain(ctx context.Context) error {
	if g.spool.Stats().Pending == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- g.deliver(ctx) }()
	for g.spool.Stats().Pending > 0 {
		select {
		case err := <-done:
			return err
		case <-g.cfg.Clock.After(5 * time.Millisecond):
		}
	}
	cancel()
	_ = <-done // it ended with ctx
	g.spool.Rewind()
	return nil
}

func (g *Gateway) remember(r replay) error {
	if err := spool.WriteJSON(g.disk, replayFile, r); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// Finish records that the recording was replayed to its end: the next replay begins a
// new epoch.
func (g *Gateway) Finish() error {
	if g.cfg.Recording == "" || g.cfg.SpoolOnly && g.spool.Stats().Pending > 0 {
		return nil // the next run sends the rest
	}
	return g.remember(replay{Recording: g.cfg.Recording, Epoch: g.spool.Epoch(), Finished: true})
}
