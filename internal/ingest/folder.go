package ingest

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

// runFolder sends the recordings of a folder, one after another, until ctx ends. One
// that cannot be read is logged, and the next one follows.
func (m *machine) runFolder(ctx context.Context) error {
	layout, columns, err := m.LoadLayout()
	if err != nil {
		return m.inFile(err)
	}
	if err := os.MkdirAll(m.SpoolDir(), 0o755); err != nil {
		return m.inFile(fmt.Errorf("spool: %w", err))
	}
	folder, err := source.OpenFolder(config.ResolvePath(m.file, m.Source.Folder), m.Source.Pattern, filepath.Join(m.SpoolDir(), "folder.json"), m.Source.Settle)
	if err != nil {
		return m.inFile(err)
	}
	m.log.Info().Str("folder", m.Source.Folder).Str("pattern", m.Source.Pattern).Msg("waiting for recordings")
	var sum folderSummary
	defer func() {
		fmt.Fprintf(m.stdout, "%d recordings sent, %d could not be read, %d windows delivered\n", sum.sent, sum.unreadable, sum.delivered)
	}()
	for ctx.Err() == nil {
		path, ok, err := folder.Next(time.Now())
		if err != nil {
			return m.inFile(err)
		}
		if !ok {
			select {
			case <-ctx.Done():
			case <-time.After(min(m.Source.Settle, time.Second)):
			}
			continue
		}
		rec := source.Recording{Path: path, Layout: layout, Columns: columns, Machine: m.Path}
		if err := m.sendFile(ctx, rec, folder, &sum); err != nil {
			return m.inFile(err)
		}
	}
	return nil
}

// folderSummary counts what became of the recordings of a folder.
type folderSummary struct {
	sent, unreadable int
	delivered        uint64 // windows
}

// sendFile sends one recording of a folder and logs what became of it.
func (m *machine) sendFile(ctx context.Context, rec source.Recording, folder *source.Folder, sum *folderSummary) error {
	recorded := false
	problem, stats, err := m.sendRecording(ctx, rec, func(problem error) error {
		recorded = true
		return folder.Done(rec.Path, problem)
	})
	sum.delivered += stats.Delivered
	switch {
	case err != nil:
		return err
	case !recorded: // ctx has ended in the middle of it: the next start goes on there
	case problem != nil:
		sum.unreadable++
		m.log.Error().Err(problem).Str("file", rec.Path).Msg("the recording cannot be read to its end; the windows before the damage are sent")
	default:
		sum.sent++
		m.log.Info().Str("file", rec.Path).Uint64("windows", stats.Windows).Msg("recording sent")
	}
	return nil
}

// sendRecording sends one recording, and calls done when it is sent. It returns
// what is wrong with the recording apart from what else went wrong.
func (m *machine) sendRecording(ctx context.Context, rec source.Recording, done func(problem error) error) (problem error, stats gateway.Stats, err error) {
	id, problem := gateway.RecordingID(rec, m.Spec())
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
	watched := &watchedSource{Source: src}
	gw, err := m.gateway(watched, id)
	if err != nil {
		return nil, stats, err
	}
	defer m.close(gw)
	err = gw.Run(ctx)
	stats = gw.Stats()
	if ctx.Err() != nil || err != nil && watched.err == nil {
		return nil, stats, err
	}
	// The journal comes before Finish: a crash between the two sends nothing twice.
	if err := done(watched.err); err != nil {
		return watched.err, stats, err
	}
	return watched.err, stats, gw.Finish()
}

// watchedSource remembers what is wrong with a recording.
type watchedSource struct {
	source.Source
	err error
}

func (w *watchedSource) Next(ctx context.Context) (*source.Block, error) {
	b, err := w.Source.Next(ctx)
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		w.err = err
	}
	return b, err
}
