package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/source"
)

// runFolder sends the recordings of a folder, one after another, until it is told
// to stop. One that cannot be read is logged and left behind.
func (m *machine) runFolder(ctx context.Context) error {
	layout, columns, err := m.layout(m.all.file)
	if err != nil {
		return fmt.Errorf("%s: %w", m.all.file, err)
	}
	if err := os.MkdirAll(m.spool(), 0o755); err != nil {
		return fmt.Errorf("%s: spool: %w", m.all.file, err)
	}
	folder, err := source.OpenFolder(config.ResolvePath(m.all.file, m.Source.Folder), m.Source.Pattern, filepath.Join(m.spool(), "folder.json"), m.Source.Settle)
	if err != nil {
		return fmt.Errorf("%s: %w", m.all.file, err)
	}
	m.log.Info().Str("folder", m.Source.Folder).Str("pattern", m.Source.Pattern).Msg("waiting for recordings")
	var delivered uint64
	sent, bad := 0, 0
	defer func() {
		fmt.Fprintf(m.stdout, "%d recordings sent, %d could not be read, %d windows delivered\n", sent, bad, delivered)
	}()
	for ctx.Err() == nil {
		path, ok, err := folder.Next(time.Now())
		if err != nil {
			return fmt.Errorf("%s: %w", m.all.file, err)
		}
		if !ok {
			select {
			case <-ctx.Done():
			case <-time.After(min(m.Source.Settle, time.Second)):
			}
			continue
		}
		rec := source.Recording{Path: path, Layout: layout, Columns: columns, Machine: m.Machine}
		noted := false
		problem, stats, err := m.sendRecording(ctx, rec, func(problem error) error {
			noted = true
			return folder.Done(path, problem)
		})
		delivered += stats.Delivered
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", m.all.file, err)
		case !noted: // told to stop in its middle: the next start goes on there
		case problem != nil:
			bad++
			m.log.Error().Err(problem).Str("file", path).Msg("recording cannot be read to its end; what comes before is sent")
		default:
			sent++
			m.log.Info().Str("file", path).Uint64("windows", stats.Windows).Msg("recording sent")
		}
	}
	return nil
}

// sendRecording sends one recording, and calls done when it is sent. It returns
// what is wrong with the recording apart from what else went wrong.
func (m *machine) sendRecording(ctx context.Context, rec source.Recording, done func(problem error) error) (problem error, stats gateway.Stats, err error) {
	id, problem := gateway.RecordingID(rec, m.spec())
	if problem != nil {
		return problem, stats, done(problem)
	}
	src, problem := rec.Open()
	if problem != nil {
		return problem, stats, done(problem)
	}
	if closer, ok := src.(io.Closer); ok {
		defer closer.Close()
	}
	heard := &listener{Source: src}
	gw, err := m.gateway(heard, id)
	if err != nil {
		return nil, stats, err
	}
	defer m.close(gw)
	err = gw.Run(ctx)
	stats = gw.Stats()
	if ctx.Err() != nil || err != nil && heard.err == nil {
		return nil, stats, err
	}
	// Noted before it is finished: a crash between the two sends nothing twice.
	if err := done(heard.err); err != nil {
		return heard.err, stats, err
	}
	return heard.err, stats, gw.Finish()
}

// listener hears what is wrong with a recording.
type listener struct {
	source.Source
	err error
}

func (l *listener) Next(ctx context.Context) (*source.Block, error) {
	b, err := l.Source.Next(ctx)
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		l.err = err
	}
	return b, err
}
