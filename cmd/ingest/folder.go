package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/window"
)

// ingestFolder sends the recordings of a folder, one after another, until it is
// told to stop. One that cannot be read is logged and left behind.
func ingestFolder(ctx context.Context, file string, c settings, live *live, log zerolog.Logger, stdout io.Writer) error {
	layout, columns, err := c.layout(file)
	if err != nil {
		return err
	}
	spool := config.Beside(file, c.Spool)
	if err := os.MkdirAll(spool, 0o755); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	folder, err := source.OpenFolder(config.Beside(file, c.Source.Folder), c.Source.Pattern, filepath.Join(spool, "folder.json"), c.Source.Settle)
	if err != nil {
		return err
	}
	log.Info().Str("folder", c.Source.Folder).Str("pattern", c.Source.Pattern).Msg("waiting for recordings")
	var total gateway.Stats
	sent, bad := 0, 0
	defer func() {
		fmt.Fprintf(stdout, "%d recordings sent, %d could not be read, %d windows delivered\n", sent, bad, total.Delivered)
	}()
	for ctx.Err() == nil {
		path, ok, err := folder.Next(time.Now())
		if err != nil {
			return err
		}
		if !ok {
			select {
			case <-ctx.Done():
			case <-time.After(min(c.Source.Settle, time.Second)):
			}
			continue
		}
		rec := source.Recording{Path: path, Layout: layout, Columns: columns, Machine: c.Machine}
		noted := false
		problem, stats, err := sendRecording(ctx, file, c, rec, live, log, func(problem error) error {
			noted = true
			return folder.Done(path, problem)
		})
		total.Delivered += stats.Delivered
		switch {
		case err != nil:
			return err
		case !noted: // told to stop in its middle: the next start goes on there
		case problem != nil:
			bad++
			log.Error().Err(problem).Str("file", path).Msg("recording cannot be read to its end; what comes before is sent")
		default:
			sent++
			log.Info().Str("file", path).Uint64("windows", stats.Windows).Msg("recording sent")
		}
	}
	return nil
}

// sendRecording sends one recording, and calls done when it is sent. It returns
// what is wrong with the recording apart from what else went wrong.
func sendRecording(ctx context.Context, file string, c settings, rec source.Recording, live *live, log zerolog.Logger, done func(problem error) error) (problem error, stats gateway.Stats, err error) {
	id, problem := gateway.RecordingID(rec, window.Spec{Length: c.Window.Length, Hop: c.Window.Hop})
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
	gw, err := c.gateway(file, heard, id, live.bus, log)
	if err != nil {
		return nil, stats, err
	}
	defer gw.Close()
	defer live.show(gw)()
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
