package archive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/table"
)

// staging is the folder, in the archive, of days that are being merged or removed. Patterns of a topic do not find it.
const staging = ".staging"

// merge makes one file of the rows that a partition has of each machine and each day that is over. A day is over once the
// newest batch of each of its partitions is of later days, so it depends on no clock when.
func (r *run) merge(t topic) error {
	all, err := list(r.Dir, t.folder)
	if err != nil {
		return err
	}
	days := byDay(all)
	last := newest(all)
	for i, files := range days {
		if !isOver(files, last) || !slices.ContainsFunc(files, func(n name) bool { return n.files > 0 }) {
			continue
		}
		if err := r.mergeDay(files); errors.Is(err, errors.ErrUnsupported) {
			r.Log.Warn().Err(err).Msg("days are not merged: this system or disk cannot exchange two folders in one step; readers see small files")
			return nil
		} else if err != nil {
			return fmt.Errorf("merge %s: %w", files[0].folder(), err)
		}
		r.Merged++
		r.Progress("merging days of "+t.folder, i+1, len(days))
	}
	return nil
}

// byDay divides files by machine and day. They are sorted by these.
func byDay(all []name) (days [][]name) {
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].machine == all[from].machine && all[to].day == all[from].day {
			to++
		}
		days = append(days, all[from:to])
		from = to
	}
	return days
}

func isOver(files []name, last map[int]*batch) bool {
	return !slices.ContainsFunc(files, func(n name) bool {
		b := last[n.partition]
		return b == nil || n.isOf(b) || n.day >= b.day
	})
}

// mergeDay replaces the files of a machine's day by one for each partition and kind of columns, in one step.
func (r *run) mergeDay(files []name) error {
	groups := slices.Clone(files)
	slices.SortStableFunc(groups, func(a, b name) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.columns, b.columns), cmp.Compare(a.first, b.first))
	})
	stage := filepath.Join(r.Dir, staging)
	for len(groups) > 0 {
		n := 1
		for n < len(groups) && groups[n].partition == groups[0].partition && groups[n].columns == groups[0].columns {
			n++
		}
		if err := r.mergeFiles(groups[:n], stage); err != nil {
			return err
		}
		groups = groups[n:]
	}
	old, merged := filepath.Join(r.Dir, files[0].folder()), filepath.Join(stage, files[0].folder())
	if err := r.step(old); err != nil {
		return err
	}
	if err := exchange(merged, old); err != nil {
		return err
	}
	if err := r.step(merged); err != nil {
		return err
	}
	return os.RemoveAll(merged)
}

// mergeFiles writes the rows of files, in the order of their offsets, into one file in the staging folder.
func (r *run) mergeFiles(files []name, stage string) error {
	var k *kind
	to, m := files[0], meta{}
	for i, n := range files {
		one, columns, err := readMeta(filepath.Join(r.Dir, n.path()))
		if err != nil {
			return err
		}
		if i == 0 {
			k, m.First = &kind{fingerprint: n.columns, features: one.Features}, one.First
			for c, name := range columns {
				k.columns = append(k.columns, table.SheetColumn{Name: name, Kind: table.SheetKind(one.Kinds[c])})
			}
		} else if one.First <= m.Last {
			return fmt.Errorf("%s begins at offset %d, and the file before it ends at %d: two archives were mixed; move one of them away", n.path(), one.First, m.Last)
		}
		m.Last, m.Received, m.TopicID = one.Last, one.Received, one.TopicID
	}
	to.first, to.last, to.files = m.First, m.Last, 0
	return r.save(to, stage, k, m, func(write func([]table.Cell) error) error {
		for _, n := range files {
			if err := table.ReadSheet(filepath.Join(r.Dir, n.path()), metaKey, func(string, []string) error { return nil }, write); err != nil {
				return fmt.Errorf("%s: %w", n.path(), err)
			}
		}
		return nil
	})
}

// readMeta returns what a file says of itself, and its columns.
func readMeta(path string) (m meta, columns []string, err error) {
	err = table.ReadSheet(path, metaKey, func(text string, names []string) error {
		columns = names
		m, err = parseMeta(text, names)
		return err
	}, nil)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return m, columns, err
}

// parseMeta reads what a file with these columns says of itself.
func parseMeta(text string, columns []string) (m meta, err error) {
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Format != format || len(m.Kinds) != len(columns) {
		return m, fmt.Errorf("it is not a file that trainer archive of this release wrote (format %d): move it away", format)
	}
	return m, nil
}

// aged is a day of a machine that may be removed.
type aged struct {
	files    []name
	size     int64
	received time.Time // when Kafka got its newest message
}

// retain removes the oldest days beyond what is to be kept. The clock of a machine may be wrong, so the day's age is that
// of its newest message on Kafka. It keeps what this run archived, and the files of the newest batches, which say where to
// go on.
func (r *run) retain() error {
	if r.Keep == 0 && r.KeepBytes == 0 {
		return nil
	}
	old, size, err := r.aged()
	if err != nil {
		return err
	}
	slices.SortStableFunc(old, func(a, b aged) int { return a.received.Compare(b.received) })
	for _, d := range old {
		var why string
		switch {
		case r.Keep > 0 && r.Now().Sub(d.received) > r.Keep:
			why = "older than --keep"
		case r.KeepBytes > 0 && size > r.KeepBytes:
			why = "more bytes than --keep-bytes"
		default:
			continue
		}
		if err := r.remove(d.files[0].folder()); err != nil {
			return err
		}
		r.Removed, size = r.Removed+1, size-d.size
		line := r.Log.Info()
		if day, _ := time.Parse(dayForm, d.files[0].day); d.received.Sub(day).Abs() > oddClock { // it was parsed with the name
			line = r.Log.Warn().Str("hint", "its day is not the one when Kafka got it: check the clock of the machine")
		}
		line.Str("folder", d.files[0].folder()).Int("files", len(d.files)).Int64("bytes", d.size).Time("received", d.received).Str("because", why).Msg("removed a day of a machine")
	}
	return nil
}

// oddClock is how far a day may be from when Kafka got it.
const oddClock = 4 * 24 * time.Hour

// aged returns the days that may be removed, and how many bytes the archive has.
func (r *run) aged() (old []aged, size int64, err error) {
	for _, t := range topics {
		all, err := list(r.Dir, t.folder)
		if err != nil {
			return nil, 0, err
		}
		last := newest(all)
		for _, files := range byDay(all) {
			d := aged{files: files}
			for _, n := range files {
				d.size += n.size
			}
			size += d.size
			if r.fresh[files[0].folder()] || slices.ContainsFunc(files, func(n name) bool { return n.isOf(last[n.partition]) }) {
				continue
			}
			for _, n := range files {
				at, err := r.receivedBy(n)
				if err != nil {
					return nil, 0, err
				}
				if at.After(d.received) {
					d.received = at
				}
			}
			old = append(old, d)
		}
	}
	return old, size, nil
}

// receivedBy returns when Kafka got the newest message of a file. A file never changes, so a run that follows opens it once.
func (r *run) receivedBy(n name) (time.Time, error) {
	if at, known := r.receipts[n.path()]; known {
		return at, nil
	}
	m, _, err := readMeta(filepath.Join(r.Dir, n.path()))
	if err != nil {
		return time.Time{}, err
	}
	if m.Received.IsZero() { // of a build before files had it
		day, _ := time.Parse(dayForm, n.day)
		m.Received = day.Add(24 * time.Hour)
	}
	r.receipts[n.path()] = m.Received
	return m.Received, nil
}

// remove removes a folder, in one step for readers.
func (r *run) remove(folder string) error {
	path, gone := filepath.Join(r.Dir, folder), filepath.Join(r.Dir, staging, folder)
	if err := r.step(path); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(gone), 0o755); err != nil {
		return err
	}
	if err := os.Rename(path, gone); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(path)) // the machine's, if it is empty now
	return os.RemoveAll(gone)
}
