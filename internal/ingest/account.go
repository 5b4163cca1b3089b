package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/feed"
)

// account reads recordings until ctx ends, and says what of their samples would be in windows and why the others would
// not. It names recordings that cannot be read to their end, and reports an error if none has a sample that can be read.
func (m Machine) account(ctx context.Context, paths []string) (text string, err error) {
	var s gateway.Stats
	var unreadable, notes []string
	rec, err := m.recording(func(note string) { notes = append(notes, note) })
	if err != nil {
		return "", err
	}
	read := 0
	for _, rec.Path = range paths {
		one, clock, err := m.accountOne(ctx, rec)
		if clock != "" {
			notes = append(notes, filepath.Base(rec.Path)+": "+clock)
		}
		s = s.Add(one)
		if ctx.Err() != nil {
			break
		}
		if read++; err != nil {
			unreadable = append(unreadable, fmt.Sprintf("%s: %v", filepath.Base(rec.Path), err))
		}
	}
	l := newLedger(s, feed.Stats{}, false, 0)
	text = fmt.Sprintf("of %d samples %.2f %% would be in windows", l.Received, percent(l.InWindows, l.Received))
	if read < len(paths) { // samples that wait for more are not lost
		text = fmt.Sprintf("of the first %d samples, which is as far as a check reads, %.2f %% would be in windows", l.Received, percent(l.InWindows, l.Received-l.Open))
	}
	for _, reason := range slices.Sorted(maps.Keys(l.Unused)) {
		text += fmt.Sprintf(", %.2f %% %s", percent(l.Unused[reason], l.Received), reason)
	}
	if n := len(notes); n > 0 {
		text += fmt.Sprintf("; %d notes, the first is: %s", n, notes[0])
	}
	if n := len(unreadable); n > 0 {
		broken := fmt.Sprintf("%d of %d recordings cannot be read to their end, the first is %s", n, read, unreadable[0])
		if l.Received == 0 {
			return "", errors.New(broken)
		}
		text += "; " + broken
	}
	return text, nil
}

// accountOne cuts a recording and counts what became of its samples. It says what is wrong with the clock in the last window.
func (m Machine) accountOne(ctx context.Context, rec source.Recording) (s gateway.Stats, clock string, err error) {
	src, err := rec.Open()
	if err != nil {
		return s, "", err
	}
	defer source.Close(src)
	cut, err := source.NewCutter(src, m.Spec())
	for err == nil {
		var c source.Cut
		if c, err = cut.Next(ctx); err == nil && c.Window != nil {
			clock = cmp.Or(clockOf(c.Window, src.Layout()), clock)
		}
	}
	if cut != nil {
		s.Samples = cut.Tally()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return s, clock, err
}

func percent(part, all uint64) float64 { return 100 * float64(part) / float64(max(1, all)) }

// ReadRecording reads the recording of a machine of kind file and says what of it would be in windows.
func (m Machine) ReadRecording(ctx context.Context) (string, error) {
	text, err := m.account(ctx, []string{config.ResolvePath(m.file, m.Source.File)})
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.file, err)
	}
	return m.Source.File + ": " + text, nil
}
