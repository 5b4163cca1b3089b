package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Recovery is what Open found.
type Recovery struct {
	Pending    uint64 // durable records not yet acknowledged
	TornBytes  int64  // cut from the end, where a crash had interrupted a write
	CursorLost bool   // the cursor file was damaged: records may be delivered again
	NewEpoch   bool   // the epoch was minted now

	// Of a spool that Settings.Owner did not have before:
	OtherHost    string // that had it, such as where it was copied from; call NewEpoch, then Own
	OtherMachine string // that had it; a new epoch has begun
	NoOwner      bool   // records wait in it, and it does not say whose they are: they are taken for this owner's

	Quarantined  uint64   // records lost to damage, or to sectors that the disk cannot read
	DamagedBytes int64    // bytes that were not part of a whole record any more
	BadFiles     []string // where they are kept, in the spool's folder
}

// Open opens the spool in folder dir and creates it if it is not there. Another
// process, or another Spool of this one, that has it open gives errLocked.
//
// Only the last segment is looked through, so opening takes no longer with a long
// backlog; damage in the others is found when they are read.
func Open(dir string, set Settings) (*Spool, Recovery, error) {
	if err := set.check(); err != nil {
		return nil, Recovery{}, err
	}
	s := &Spool{
		dir: dir, set: set.withDefaults(), disk: set.Disk,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if s.disk == nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, Recovery{}, fmt.Errorf("spool: %w", err)
		}
		lock, err := lockFolder(dir)
		if err != nil {
			return nil, Recovery{}, err
		}
		s.lock, s.disk = lock, osDisk{dir, s.set.fsync}
	}
	rec, err := s.load()
	if err == nil {
		err = s.checkOwner(&rec)
	}
	if d, ok := s.disk.(interface{ room() int64 }); ok {
		if left := d.room(); left > 0 {
			s.set.fitSegments(s.used() + left)
		}
	}
	if err != nil {
		s.setActive(nil, 0)
		return nil, Recovery{}, fmt.Errorf("spool: folder %s: %w", dir, errors.Join(err, unlock(s.lock)))
	}
	return s, rec, nil
}

// lockFolder takes the folder for this process.
func lockFolder(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, "lock")
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("spool: %s is not a file of its own but %v: remove it", path, info.Mode().Type())
	}
	lock := flock.New(path)
	if locked, err := lock.TryLock(); err != nil {
		return nil, fmt.Errorf("spool: folder %s: %w", dir, err)
	} else if !locked {
		return nil, fmt.Errorf("spool: folder %s is %w: stop that one, or give this one a folder of its own", dir, errLocked)
	}
	return lock, nil
}

func unlock(l *flock.Flock) error {
	if l == nil {
		return nil
	}
	return l.Close()
}

// sweep removes what a crash left half-written.
func sweep(d Disk) error {
	files, err := d.List()
	if err != nil {
		return err
	}
	for name := range files {
		if strings.HasSuffix(name, tempSuffix) {
			if err := d.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// load brings s to the state of its folder.
func (s *Spool) load() (rec Recovery, err error) {
	if err := sweep(s.disk); err != nil {
		return rec, err
	}
	c, found, lost, err := readCursor(s.disk)
	if err != nil {
		return rec, err
	}
	rec.CursorLost = lost
	segs, err := listSegments(s.disk)
	if err != nil {
		return rec, err
	}
	if n := len(segs); n > 0 {
		s.ordinal, s.epoch = segs[n-1].ordinal, segs[n-1].epoch
	}
	// The active segment is never removed. Where it is missing, another program took
	// it away: which seqs were given out is not known any more.
	if len(segs) == 0 || found && c.ordinal > s.ordinal {
		s.ordinal, s.epoch, rec.NewEpoch = max(s.ordinal, c.ordinal)+1, s.set.MintEpoch(), true
		segs = append(segs, &segment{ordinal: s.ordinal, epoch: s.epoch})
	}
	for _, g := range segs {
		if g.epoch == s.epoch && g.ordinal == s.ordinal {
			s.segs = append(s.segs, g)
		} else {
			s.old = append(s.old, g)
		}
	}
	s.acked = s.segs[0].first
	if found && c.epoch == s.epoch && c.ordinal == s.ordinal {
		s.acked = max(s.acked, c.acked)
	}
	if err := s.loadLast(&rec); err != nil {
		return rec, err
	}
	rec.Pending = s.pending()
	s.r.seq = s.acked
	s.quarantined, s.damagedBytes = rec.Quarantined, rec.DamagedBytes
	if err := s.writeCursor(); err != nil && rec.NewEpoch {
		return rec, err
	} // else it costs repeats after a crash, and the next Ack tries again
	s.reap()
	return rec, nil
}

// loadLast looks through the last segment and makes it, or a new one behind
// it, the active one.
func (s *Spool) loadLast(rec *Recovery) error {
	g := s.segs[len(s.segs)-1]
	if rec.NewEpoch {
		f, err := createSegment(s.disk, g)
		if err == nil {
			s.setActive(f, 0)
		}
		return err
	}
	f, err := s.disk.OpenWrite(g.name())
	if err != nil {
		return err
	}
	s.setActive(f, g.size)
	disk := &patched{file: f}
	sc := &scanner{file: disk, epoch: g.epoch, end: g.size}
	next, err := scan(sc, g.first)
	damaged := false
	if err == errDamaged {
		at := sc.off
		damaged, err = sc.resync(next, maxSeq)
		sc.off = at
	}
	if err != nil {
		return err
	}
	if damaged && !s.set.Recut || disk.anyBad(sc.off, g.size) {
		if next, err = s.mendLast(g, next, rec); err != nil {
			return err
		}
	} else {
		if sc.off < g.size {
			rec.TornBytes = g.size - sc.off
			if err := f.Truncate(sc.off); err != nil {
				return err
			}
			g.size = sc.off
		}
		// What a killed program wrote may not be on the disk yet. It must be, before a
		// reader sees it.
		if err := f.Sync(); err != nil {
			return err
		}
		s.wrote = g.size
	}
	g.end = next
	s.next, s.synced = max(next, s.acked), max(next, s.acked)
	if s.next > next { // acknowledged records were torn off: their seqs are used up
		s.setActive(nil, 0)
	}
	if s.file == nil {
		return s.roll()
	}
	return nil
}

// mendLast keeps what is good of the last segment, whose records are whole up to
// next, and returns the seq behind its last record. Nothing can be appended to a
// file with bad sectors either.
func (s *Spool) mendLast(g *segment, next uint64, rec *Recovery) (end uint64, err error) {
	s.setActive(nil, 0)
	end = unknownEnd
	if s.set.Recut {
		end = next
	}
	found, err := salvage(s.disk, g, end, s.acked)
	if err != nil {
		return 0, err
	}
	g.size = found.size
	rec.Quarantined += found.lost
	rec.DamagedBytes += found.bytes
	if found.bad != "" {
		rec.BadFiles = append(rec.BadFiles, found.bad)
	}
	return found.end, nil
}

// scan reads records and holes without a gap from seq first, up to the end or to
// damage, and returns the seq behind them. The error is nil, errDamaged or that
// of the disk; the scanner stands behind the last good record.
func scan(sc *scanner, first uint64) (next uint64, err error) {
	for next = first; ; {
		h, _, err := sc.take(next, maxSeq, false)
		if err == io.EOF {
			return next, nil
		}
		if err != nil {
			return next, err
		}
		next = h.seq + 1
	}
}
