// Package spool keeps payloads on disk until they have been taken.
//
// A spool is a folder. Append puts a payload, which the spool never looks into,
// behind the others; Sync makes all of them durable; Next hands them to one
// reader in order; Ack says that everything up to a seq was delivered. A crash
// loses nothing that a Sync covered, and may deliver again what was delivered
// shortly before it: the receiver of records drops repeats by (epoch, seq).
//
// A record is a payload with its seq. Seqs count from 0 within an epoch, which is
// a random number minted with the spool, so that a spool that was lost never
// starts again at a seq that a receiver has seen. A segment is a file of records, named
// by the first of them. Segments are removed once all their records have been
// acknowledged for a while. Damage is never silent: what a crash tore off the end
// is cut, and a record elsewhere that is damaged, or that lies in a sector which the
// disk cannot read, is counted and lost alone. The segment it was in stays next to
// the others as a file ending in .bad, with zeros for what cannot be read.
//
// Memory does not grow with the backlog, and the disk's share can be limited: then
// delivered segments go first, and after them the spool refuses new records or
// gives up the oldest, as its Settings say.
package spool

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/flank-tcm/flank/internal/config"
)

// Errors that callers test for.
var (
	errLocked   = errors.New("in use by another process")
	ErrClosed   = errors.New("spool is closed")
	ErrTooLarge = errors.New("record too large")
	errPending  = errors.New("records are pending")
	ErrFull     = errors.New("full")
)

const (
	bufferSize = 1 << 20     // bytes appended before they are handed to the system
	mostKept   = 4           // records behind the delivered ones that Keep takes
	cursorAcks = 10_000      // the cursor is written after as many acknowledged records
	cursorAge  = time.Second // or after this time, whichever is first
)

// Settings of a spool. The zero value of each field is its documented default.
type Settings struct {
	SegmentBytes int64         // a segment that reached it is followed by a new one; 0 means 64 MiB. Less on a small disk, or one that was full
	Keep         time.Duration // how long acknowledged segments stay, the last one for ever; 0 means 10 minutes, negative not at all
	MaxRecord    int           // bytes of the largest payload Append takes; 0 means 16 MiB
	MaxBytes     int64         // of all segments together; 0 means what the disk holds
	DropOldest   bool          // when the spool is full, drop the oldest segment instead of refusing the new record

	// Ring keeps acknowledged segments for longer than Keep, until their newest record is
	// that old; 0 means not longer. When all acknowledged segments take more than
	// RingBytes, the oldest go, even young ones; 0 means no limit but MaxBytes.
	Ring      time.Duration
	RingBytes int64

	// Recut says that the caller can append the newest records once more, from
	// any seq on. Then Open cuts the newest segment at the first damage in it: of
	// what waited for a Sync when the power failed, later records may be on the disk
	// and earlier ones not.
	Recut bool

	// Owner says whose records these are. With one, Open refuses a spool of another
	// machine in which records wait, and reports one that another host had. The zero
	// value checks nothing.
	Owner Owner

	Now func() time.Time // clock for Keep and the cursor; nil means time.Now

	// Disk is where the files are, and MintEpoch draws epochs, which are not 0. nil
	// means the folder, which is locked then, and a random number; a simulation brings
	// its own.
	Disk      Disk
	MintEpoch func() uint64

	fsync  func(*os.File) error // tests replace it by one that is cheap or fails
	direct int                  // a piece of a payload from this length on is handed to the system without a copy; 0 means 64 KiB
}

func (s Settings) withDefaults() Settings {
	s.SegmentBytes = cmp.Or(s.SegmentBytes, 64<<20)
	if s.MaxBytes > 0 { // whole segments are dropped
		s.SegmentBytes = min(s.SegmentBytes, max(s.MaxBytes/8, 1))
	}
	if s.RingBytes > 0 {
		s.SegmentBytes = min(s.SegmentBytes, max(s.RingBytes/8, 1))
	}
	s.Keep = cmp.Or(s.Keep, 10*time.Minute)
	s.MaxRecord, s.direct = cmp.Or(s.MaxRecord, 16<<20), cmp.Or(s.direct, 64<<10)
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.MintEpoch == nil {
		s.MintEpoch = mintEpoch
	}
	if s.fsync == nil {
		s.fsync = (*os.File).Sync
	}
	return s
}

// check reports settings that cannot be used.
func (s Settings) check() error {
	return cmp.Or(
		config.Wrong(s.SegmentBytes < 0, "spool: segment size %d: must not be negative", s.SegmentBytes),
		config.Wrong(s.MaxBytes < 0, "spool: size %d: must not be negative", s.MaxBytes),
		config.Wrong(s.Ring < 0 || s.RingBytes < 0, "spool: ring of %v and %d bytes: must not be negative", s.Ring, s.RingBytes),
		config.Wrong(s.MaxRecord < 0 || s.MaxRecord > 1<<30, "spool: largest record %d: must be between 1 byte and 1 GiB", s.MaxRecord))
}

// Stats is the state of a spool at one moment.
type Stats struct {
	Epoch    uint64
	Next     uint64 // seq the next Append gets
	Acked    uint64 // everything below was delivered
	Pending  uint64 // durable records not yet acknowledged
	Bytes    int64  // of all segments, those that are only kept included
	Segments int
	Dropped  uint64 // records dropped since Open because there was no room

	// Of segments that were found damaged since Open:
	Quarantined  uint64 // records lost that were not delivered yet
	DamagedBytes int64  // bytes that were not part of a whole record any more
}

// Spool is an open spool. All methods may be called from several goroutines,
// except that Next belongs to one.
type Spool struct {
	dir  string // for messages
	disk Disk
	set  Settings
	lock *flock.Flock

	write  sync.Mutex // one writer at a time; taken before mu
	output            // needs write

	refused error // why records that waited for a Sync were withdrawn, for the next Append or Sync to say

	mu           sync.Mutex
	segs         segments // of the current epoch, in order; the last one is active unless file is nil
	old          segments // of earlier epochs, all delivered
	ordinal      uint32
	epoch        uint64
	next         uint64 // seq the next Append gets
	synced       uint64 // records below are durable and may be read
	acked        uint64 // records below were delivered
	holes        []span // lost records the reader came by, in order
	rewind       bool   // the reader starts again at acked
	kept         kept   // what Keep was given
	dropped      uint64
	quarantined  uint64
	damagedBytes int64
	closed       bool

	cursor   sync.Mutex // one writer of the cursor file at a time; taken before mu
	written  uint64     // acked, as the cursor file has it
	writtenT time.Time  // when it was written

	wake chan struct{} // holds a token when there may be something to read
	done chan struct{} // closed by Close

	reading sync.Mutex // guards r; taken before write
	r       reader
}

// span is a run of lost records.
type span struct{ from, to uint64 } // from ≤ seq < to

// Epoch returns the epoch of the records that are appended now. It is never 0.
func (s *Spool) Epoch() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// NextSeq returns the seq the next Append gets. It goes back only when a failed
// Sync or Append withdrew records.
func (s *Spool) NextSeq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Stats returns the state of the spool.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		Epoch: s.epoch, Next: s.next, Acked: s.acked, Pending: s.pending(),
		Segments: len(s.segs) + len(s.old), Dropped: s.dropped, Quarantined: s.quarantined, DamagedBytes: s.damagedBytes,
	}
	st.Bytes = s.old.bytes() + s.segs.bytes()
	return st
}

// pending needs mu.
func (s *Spool) pending() uint64 { return s.synced - min(s.acked, s.synced) }

// Append puts a payload, whose pieces follow one another, behind the other records and returns its seq. It keeps no
// part of payload. The record is durable, and seen by Next, after the next Sync. If the disk refuses,
// the error says so, and all records since the last Sync are withdrawn: NextSeq
// is the seq of the first of them again, and they may be appended once more. A
// payload larger than Settings.MaxRecord or MaxBytes gives ErrTooLarge and
// withdraws nothing.
//
// A full spool removes delivered segments, even young ones, and with DropOldest then
// the segments that were not delivered. What is left to refuse is
// ErrFull: it withdraws nothing if MaxBytes is the limit, and what any failure
// withdraws if the disk is. Append again once records were acknowledged, or once
// another program made room.
func (s *Spool) Append(payload ...[]byte) (seq uint64, err error) {
	length, sum := 0, uint32(0)
	for _, p := range payload {
		length, sum = length+len(p), crc32.Update(sum, castagnoli, p)
	}
	if length > s.set.MaxRecord {
		return 0, fmt.Errorf("spool: %d bytes, at most %d are taken: %w", length, s.set.MaxRecord, ErrTooLarge)
	}
	s.write.Lock()
	defer s.write.Unlock()
	size := headerSize + int64(length)
	if s.set.MaxBytes > 0 && size > s.set.MaxBytes {
		return 0, fmt.Errorf("spool: %d bytes, all of it may hold %d: %w", length, s.set.MaxBytes, ErrTooLarge)
	}
	if s.isClosed() {
		return 0, fmt.Errorf("spool: %w", ErrClosed)
	}
	if err := s.refusal(); err != nil {
		return 0, s.full(err)
	}
	if err := s.fit(size); err != nil {
		return 0, err
	}
	if err := s.makeRoom(size); err != nil {
		return 0, s.full(err)
	}
	s.mu.Lock()
	seq, epoch := s.next, s.epoch
	s.next++
	s.mu.Unlock()
	s.buf = header{seq: seq, length: uint32(length), sum: sum}.append(s.buf, epoch)
	if err := s.put(payload, s.set.direct); err != nil {
		return 0, s.full(s.withdraw(err))
	}
	return seq, nil
}

// Keep takes what a record is in memory, and Next hands it over as Record.Kept in place of the payload, without reading the
// disk, once the record is durable. Call it after Append and before Sync. It reports false where it does not take it: all but
// the first mostKept records behind the delivered ones are read from the disk, so that memory does not grow with the backlog.
func (s *Spool) Keep(seq uint64, as any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq < s.synced || seq >= s.next || seq >= s.acked+mostKept {
		return false
	}
	s.kept[seq%mostKept].seq, s.kept[seq%mostKept].as = seq, as
	return true
}

// kept is what the first records behind the delivered ones are in memory, each at the rest of its seq by mostKept.
type kept [mostKept]struct {
	seq uint64
	as  any // nil: it is read from the disk
}

// take returns what a record is in memory, once; nil is nothing.
func (k *kept) take(seq uint64) (as any) {
	if r := &k[seq%mostKept]; r.seq == seq {
		as, r.as = r.as, nil
	}
	return as
}

// forget forgets the records from a seq on.
func (k *kept) forget(from uint64) {
	for i := range k {
		if k[i].seq >= from {
			k[i].as = nil
		}
	}
}

// Sync makes everything appended so far durable, with one fsync, and shows it to
// Next. If it fails, the records are withdrawn as Append says. Without a record to
// sync it does nothing.
func (s *Spool) Sync() error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.isClosed() {
		return fmt.Errorf("spool: %w", ErrClosed)
	}
	return s.full(s.sync())
}

// NewEpoch starts the given epoch, or one that is minted if it is 0, whose first seq
// is 0, and returns it. An epoch that was before may be given: its records come
// again, under the same seqs. While records are pending NewEpoch returns errPending
// and changes nothing.
func (s *Spool) NewEpoch(epoch uint64) (uint64, error) {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.Lock()
	closed, pending, unsynced := s.closed, s.pending(), s.next-s.synced
	g := &segment{ordinal: s.ordinal + 1, epoch: epoch}
	s.mu.Unlock()
	if g.epoch == 0 {
		g.epoch = s.set.MintEpoch()
	}
	if closed {
		return 0, fmt.Errorf("spool: %w", ErrClosed)
	}
	if pending+unsynced > 0 {
		return 0, fmt.Errorf("spool: %d %w: deliver and acknowledge them before a new epoch", pending+unsynced, errPending)
	}
	f, err := createSegment(s.disk, g)
	if err != nil {
		_ = s.disk.Remove(g.name()) // it would be the current epoch at the next Open
		return 0, err
	}
	s.setActive(f, 0)
	s.mu.Lock()
	s.old = append(s.old, s.segs...)
	s.segs, s.holes = []*segment{g}, nil
	s.ordinal, s.epoch = g.ordinal, g.epoch
	s.next, s.synced, s.acked = 0, 0, 0
	s.kept.forget(0)
	s.rewind = true
	s.mu.Unlock()
	s.reap()
	return g.epoch, s.writeCursor()
}

// Close makes durable what was appended, writes the cursor and gives the folder
// free. A Next that waits returns ErrClosed. Close twice does nothing.
func (s *Spool) Close() error {
	s.write.Lock()
	if s.isClosed() {
		s.write.Unlock()
		return nil
	}
	err := errors.Join(s.sync(), s.writeCursor())
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.done)
	s.setActive(nil, 0)
	s.write.Unlock()

	s.reading.Lock() // a Next that is reading ends first
	s.r.close()
	s.reading.Unlock()
	return errors.Join(err, unlock(s.lock))
}

func (s *Spool) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// mintEpoch returns a random number that is not 0.
func mintEpoch() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return max(binary.LittleEndian.Uint64(b[:]), 1)
}
