package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/archive"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/rs/zerolog"
)

// A window of an archive takes about so many bytes in memory, in addition to four for each column. If all of them take largeWindows times
// largeTables or more, they are left on disk.
const windowBytes, largeWindows = 2000, 16

// archived returns files of an archive as something to learn from. It is false if the first is of something else.
func archived(paths []string, flag string, log zerolog.Logger) (in train.Input, ok bool, err error) {
	var size int64
	for i, path := range paths {
		has, windows, columns, err := archive.HasFeatures(path)
		if err != nil {
			return in, false, fmt.Errorf("--table %w", err)
		}
		if i == 0 {
			ok = has
		}
		if has != ok {
			for _, of := range []string{paths[0], path} {
				if _, err := table.Meta(of); err != nil {
					return in, false, fmt.Errorf("--table %s: it is damaged: %w; bring it back from a backup, or leave it out of the pattern", of, err)
				}
			}
			return in, false, fmt.Errorf("--table: one of %s and %s is of an archive, and the other is not: name files of one kind", paths[0], path)
		}
		in.Windows += windows
		size += int64(windows) * int64(windowBytes+4*columns)
	}
	if !ok {
		return in, false, nil
	}
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(archive.Day(a), archive.Day(b)) })
	r := &topicReader{flag: flag, topics: []string{bus.TopicFeatures}, files: paths, large: size >= largeWindows*largeTables, log: log}
	if in.Name, in.Cut, in.Large = bus.TopicFeatures, r.read, r.large; r.large && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbageOfLarge)
	}
	return in, true, nil
}

// readFiles visits the windows of the files of an archive. A window that is there twice lies in the folder of one day, so that windows of
// other days are forgotten.
func (r *topicReader) readFiles(ctx context.Context, progress func(done, total int), visit func(*window.Features) error) error {
	var w window.Features
	days := 0 // that ids has sums of
	for i, path := range r.files {
		progress(i, len(r.files))
		err := archive.ReadFeatures(path, func(msg bus.Message) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return r.take(msg.Partition, &msg, &w, visit)
		})
		if err != nil {
			return err
		}
		day := archive.Day(path)
		if archive.Day(r.files[0]) == "" || i+1 < len(r.files) && archive.Day(r.files[i+1]) == day {
			continue
		}
		clear(r.seen)
		if r.large && len(r.ids) > days {
			slices.Sort(r.ids[days:])
			sum := sha256.Sum256([]byte(strings.Join(r.ids[days:], "\n")))
			r.ids = append(r.ids[:days], day+" "+hex.EncodeToString(sum[:]))
			days++
		}
	}
	return nil
}

// numbers are the windows of a stream.
type numbers struct {
	began time.Time
	spans []span // in order, with gaps between them
	tools map[string]*first
}

// span is a number of windows that follow each other.
type span struct{ from, to uint64 }

// first is the least number of a tool's windows, and how many there are.
type first struct {
	seq     uint64
	windows int
}

// number remembers the number of a window that was not met before.
func (r *topicReader) number(w *window.Features) {
	n := r.streams[stream{w.Machine, w.Epoch}]
	if n == nil {
		n = &numbers{began: w.Start, tools: make(map[string]*first)}
		r.streams[stream{strings.Clone(w.Machine), w.Epoch}] = n
	}
	if w.Start.Before(n.began) {
		n.began = w.Start
	}
	n.add(w.Seq)
	t := n.tools[w.Tool]
	if t == nil {
		t = &first{seq: w.Seq}
		n.tools[strings.Clone(w.Tool)] = t
	}
	t.seq = min(t.seq, w.Seq)
	t.windows++
}

// add adds a number to the spans.
func (n *numbers) add(seq uint64) {
	i, _ := slices.BinarySearchFunc(n.spans, seq, func(s span, seq uint64) int { return cmp.Compare(s.to, seq) })
	if i < len(n.spans) && n.spans[i].from <= seq {
		return
	}
	before, after := i > 0 && n.spans[i-1].to+1 == seq, i < len(n.spans) && seq+1 == n.spans[i].from
	switch {
	case before && after:
		n.spans[i-1].to = n.spans[i].to
		n.spans = slices.Delete(n.spans, i, i+1)
	case before:
		n.spans[i-1].to = seq
	case after:
		n.spans[i].from = seq
	default:
		n.spans = slices.Insert(n.spans, i, span{seq, seq})
	}
}

// missing returns how many numbers in front of one that is there are not.
func (n *numbers) missing(seq uint64) int {
	i, _ := slices.BinarySearchFunc(n.spans, seq, func(s span, seq uint64) int { return cmp.Compare(s.to, seq) })
	from := uint64(0) // number behind the span before
	if i > 0 {
		from = n.spans[i-1].to + 1
	}
	if n.spans[i].from < seq {
		return 0
	}
	return int(seq - from)
}

// cutOffArchived is cutOff for the files of an archive.
func (r *topicReader) cutOffArchived() []model.CutTool {
	lives, from := make(map[tool]*life), make(map[tool]*numbers)
	epochs := make(map[*numbers]uint64)
	for s, n := range r.streams {
		epochs[n] = s.epoch
		for name, t := range n.tools {
			at := tool{s.machine, name}
			if lives[at] == nil {
				lives[at] = new(life)
			}
			lives[at].windows += t.windows
			if of := from[at]; of == nil || cmp.Or(n.began.Compare(of.began), cmp.Compare(s.epoch, epochs[of])) < 0 {
				from[at], lives[at].missing = n, n.missing(t.seq)
			}
		}
	}
	return cutTools(lives, nil)
}
