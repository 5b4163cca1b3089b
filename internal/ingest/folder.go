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
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
)

// runFolder sends the recordings of a folder, one after another, until ctx ends. One
// that cannot be read is logged, and the next one follows.
func (m *machine) runFolder(ctx context.Context) error {
	rec, err := m.recording(warnOnce(m.log))
	if err != nil {
		return m.inFile(err)
	}
	if err := os.MkdirAll(m.SpoolDir(), 0o700); err != nil {
		return m.inFile(fmt.Errorf("spool: %w", err))
	}
	folder, err := source.OpenFolder(config.ResolvePath(m.file, m.Source.Folder), m.Source.Pattern, filepath.Join(m.SpoolDir(), "folder.json"), m.Source.Settle)
	if err != nil {
		return m.inFile(err)
	}
	m.enter(running, nil)
	m.log.Info().Str("folder", m.Source.Folder).Str("pattern", m.Source.Pattern).Msg("waiting for recordings")
	var sum folderSummary
	defer func() {
		m.summarize("%d recordings sent, %d could not be read, %d windows delivered", sum.sent, sum.unreadable, sum.delivered)
	}()
	var ignored source.Ignored
	for ctx.Err() == nil {
		found, ok, err := folder.Next(time.Now())
		if err != nil {
			return m.inFile(err)
		}
		if now := folder.Ignored(); now.Files > 2*ignored.Files || now.Folders > 2*ignored.Folders {
			ignored = now
			m.log.Warn().Int("files", now.Files).Int("subfolders", now.Folders).Msg(now.String())
		}
		if !ok {
			_ = source.SystemClock.Wait(ctx, min(m.Source.Settle, time.Second))
			continue
		}
		rec.Path = found.Path
		if err := m.sendFile(ctx, rec, found, folder, &sum); err != nil {
			return m.inFile(err)
		}
	}
	return nil
}

// ReadFolder looks at the folder of recordings and says how many it holds, what is ignored, and what of the recordings
// would be in windows, as far as it can read them until ctx ends.
func (m Machine) ReadFolder(ctx context.Context) (string, error) {
	folder, err := source.OpenFolder(config.ResolvePath(m.file, m.Source.Folder), m.Source.Pattern, "", m.Source.Settle)
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.file, err)
	}
	if _, _, err := folder.Next(time.Now()); err != nil {
		return "", fmt.Errorf("%s: %w", m.file, err)
	}
	found := folder.Ignored()
	text := fmt.Sprintf("%s: %d recordings match %q", m.Source.Folder, found.Recordings, m.Source.Pattern)
	if ignored := found.String(); ignored != "" {
		text += "; " + ignored
	}
	if all := folder.Unread(); len(all) > 0 {
		account, err := m.account(ctx, all)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.file, err)
		}
		text += "; " + account
	}
	return text, nil
}

// folderSummary counts what became of the recordings of a folder.
type folderSummary struct {
	sent, unreadable int
	delivered        uint64 // windows
	overlapped       bool   // a warning says so
	late             bool   // a warning says that a recording came late
}

// sendFile sends one recording of a folder and logs what became of it.
func (m *machine) sendFile(ctx context.Context, rec source.Recording, found source.Found, folder *source.Folder, sum *folderSummary) error {
	recorded := false
	done := func(windows uint64, problem error) error {
		recorded = true
		return folder.Done(rec.Path, found.Sent+windows, problem)
	}
	m.logFound(found, sum)
	var stats gateway.Stats
	late, problem := folder.Place(ctx, &rec)
	var err error
	switch {
	case ctx.Err() != nil:
		return nil
	case problem != nil:
		err = done(0, problem)
	default:
		if !found.Late || found.Grown { // else the log says already that it is out of order
			m.checkOverlap(rec, late, sum)
		}
		problem, stats, err = m.sendRecording(ctx, rec, found.Sent, done)
	}
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
		what := "recording sent"
		if m.all.SpoolOnly {
			what = "recording kept in the spool, not sent; the next one waits until it is"
		}
		m.log.Info().Str("file", rec.Path).Uint64("windows", stats.Windows).Msg(what)
	}
	return nil
}

// logFound logs what is special about a recording.
func (m *machine) logFound(found source.Found, sum *folderSummary) {
	switch {
	case found.Grown:
		m.log.Info().Str("file", found.Path).Uint64("windows_sent", found.Sent).Msg("the recording has grown since it was sent: going on where it ended")
	case found.Replaced:
		m.log.Info().Str("file", found.Path).Msg("the file has other bytes than the recording of this name that was sent: it is another recording")
	}
	if found.Late && !found.Grown && !sum.late {
		sum.late = true
		m.log.Warn().Str("file", found.Path).
			Msg("the file was changed before another one that was sent already: recordings arrive out of order, and are judged in the order in which they are sent; copy the older ones first")
	}
}

// checkOverlap logs that a recording begins later than its time of change says, once for
// all recordings.
func (m *machine) checkOverlap(rec source.Recording, late time.Duration, sum *folderSummary) {
	if late < source.Overlap || sum.overlapped {
		return
	}
	sum.overlapped = true
	m.log.Warn().Str("file", rec.Path).Dur("late_ms", late).
		Msg("by its time of change the recording would begin before the one before it ended: it follows that one, and so will others; keep times of change when copying recordings, or set `start` to the time at which the first began")
}

// sendRecording sends one recording but for the windows that were sent before it grew, and
// calls done when it is sent. It returns
// what is wrong with the recording apart from what else went wrong.
func (m *machine) sendRecording(ctx context.Context, rec source.Recording, sent uint64, done func(windows uint64, problem error) error) (problem error, stats gateway.Stats, err error) {
	id, problem := gateway.RecordingID(rec, m.Spec())
	if problem != nil {
		return problem, stats, done(0, problem)
	}
	src, problem := rec.Open()
	if problem != nil {
		return problem, stats, done(0, problem)
	}
	defer source.Close(src)
	watched := &watchedSource{Source: src}
	if sent > 0 { // windows of an epoch count from 0
		id += fmt.Sprintf("/from %d", sent)
	}
	gw, err := m.gateway(watched, id, sent)
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
	if err := done(stats.Windows, watched.err); err != nil {
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
