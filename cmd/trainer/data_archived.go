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

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/archive"
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
