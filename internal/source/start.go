package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Timeline gives the recordings of a machine their times, one after another. A machine
// records one thing at a time, so none begins before the one before it ended: windows
// of a tool that is in several of them never overlap.
type Timeline struct {
	End    time.Time     // of the recording that was placed last; zero if none was
	Length time.Duration // of that recording
}

// Place sets when r begins by its Start, unless r says it itself. It reads the
// recording if that takes it to know how long it is. The result is by how much later
// it begins than its file says, since it would overlap the one before it.
func (l *Timeline) Place(ctx context.Context, r *Recording) (late time.Duration, err error) {
	if r.Start.IsZero() {
		return 0, nil
	}
	first, end, err := r.span(ctx)
	if err != nil || signal.HasClock(first) {
		r.begin = noOrigin
		return 0, err
	}
	begin := r.Start.At
	if r.Start.FileTime {
		info, err := os.Stat(r.Path)
		if err != nil {
			return 0, fmt.Errorf("source: %w", err)
		}
		begin = info.ModTime().Add(first.Sub(end)).UTC()
	} else if !l.End.IsZero() {
		begin = l.End
	}
	if begin.Before(l.End) {
		begin, late = l.End, l.End.Sub(begin)
	}
	if !signal.HasClock(begin) {
		return 0, fmt.Errorf("source: %s: the file was last changed on %s, which cannot be the end of a recording of %v: write its start as a date and time, not as %s",
			r.Path, begin.Add(end.Sub(first)).Format(time.DateOnly), end.Sub(first).Round(time.Second), r.Start)
	}
	if r.Start.FileTime && begin.Add(end.Sub(first)).After(time.Now().Add(aheadMost)) { // it would push all that follow
		return 0, fmt.Errorf("source: %s: it would end on %s, in the future: correct the time of the file, or the clock of this computer, or write its start as a date and time",
			r.Path, begin.Add(end.Sub(first)).Format(time.DateOnly))
	}
	l.Length = end.Sub(first)
	l.End = begin.Add(l.Length)
	// Numbers in a column of times need not begin at 0: r begins when its first sample does.
	r.begin = begin.Add(time.Unix(0, 0).Sub(first))
	return late, nil
}

// Overlap is from where on recordings overlap by more than the time that a recorder
// takes to write a file.
const Overlap = 10 * time.Second

// aheadMost is how far the clock of the computer that writes recordings may be ahead of ours.
const aheadMost = 24 * time.Hour

// noOrigin stands for the origin of a recording that needs none.
var noOrigin = time.Unix(0, 0).UTC()

// span returns the times of the first sample of r and of the end of the last, as they
// are without a start. What is wrong within the recording ends it.
func (r Recording) span(ctx context.Context) (first, end time.Time, err error) {
	r.Warn = nil
	src, err := r.openAt(time.Time{})
	if err != nil {
		return first, end, err
	}
	defer func() { _ = Close(src) }()
	if w, ok := src.(*waves); ok {
		if first, end, ok := w.span(); ok {
			return first, end, nil
		}
	}
	for n := 0; ; n++ {
		b, err := src.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return first, end, ctx.Err()
		case errors.Is(err, io.EOF) || err != nil && n > 0:
			return first, end, nil
		case err != nil:
			return first, end, err
		case n == 0 || b.Time.Before(first):
			first = b.Time
		}
		if n == 0 && signal.HasClock(first) {
			return first, first, nil
		}
		rate := src.Layout().Groups()[b.Group].Rate
		if at := b.Time.Add(seconds(float64(b.Len()) / rate)); at.After(end) {
			end = at
		}
	}
}
