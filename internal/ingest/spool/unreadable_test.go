package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
)

const long = 200 // bytes of a payload: less than a sector, so that a bad one takes two or three records

func longRecords(from, to int) (p []string) {
	for i := from; i < to; i++ {
		p = append(p, fmt.Sprintf("%0*d", long, i))
	}
	return p
}

// spoilSegment makes the sector unreadable that holds byte at of the segment with
// the index i, and returns the seqs of the records that lie in it.
func spoilSegment(t *testing.T, d *memDisk, i, at int) (lost []uint64) {
	t.Helper()
	segs, err := listSegments(d)
	if err != nil {
		t.Fatal(err)
	}
	g := segs[i]
	f := d.seen[g.name()]
	sector := at / SectorSize
	for b := sector * SectorSize; b < min(len(f.data), (sector+1)*SectorSize); b++ {
		if seq, ok := recordAt(g, f.data, int64(b)); ok && !slices.Contains(lost, seq) {
			lost = append(lost, seq)
		}
	}
	f.spoil(sector)
	return lost
}

func without(records []string, lost []uint64) (left []string) {
	for i, r := range records {
		if !slices.Contains(lost, uint64(i)) {
			left = append(left, r)
		}
	}
	return left
}

// Of a sector that the disk cannot read, the records in it are lost and counted,
// and no other, wherever it is and whether the spool is open or not.
func TestBadSector(t *testing.T) {
	const records = 68
	all := longRecords(0, records)
	for _, tc := range []struct {
		name        string
		segment, at int
		recut       bool
		open        bool // it goes bad while the spool is open
		torn        bool // the records that are lost are the newest
	}{
		{name: "an old segment, found by the reader", segment: 1, at: 700, open: true},
		{name: "an old segment, found after a restart", segment: 1, at: 700},
		{name: "the first record", segment: 0, at: 0},
		{name: "the last record of an old segment", segment: 1, at: 4000},
		{name: "the newest segment, found by the reader", segment: 3, at: 100, open: true},
		{name: "the newest segment, found after a restart", segment: 3, at: 100},
		{name: "the newest record", segment: 3, at: 2300, torn: true},
		{name: "the newest segment of a recording", segment: 3, at: 100, recut: true, torn: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newMemDisk(rand.New(rand.NewPCG(1, 1)))
			set := Settings{SegmentBytes: 4300, Disk: d, Recut: tc.recut}
			s, _ := mustOpen(t, "", set)
			mustAppend(t, s, all...)
			if n := s.Stats().Segments; n != 4 {
				t.Fatalf("%d segments, want 4", n)
			}
			var rec Recovery
			if !tc.open {
				s.Close()
			}
			lost := spoilSegment(t, d, tc.segment, tc.at)
			if len(lost) < 1 || len(lost) > 4 {
				t.Fatalf("the sector holds the records %v", lost)
			}
			if !tc.open {
				s, rec = mustOpen(t, "", set)
			}
			want := without(all, lost)
			if tc.recut { // what follows is appended again
				want = all[:lost[0]]
			}
			sameStrings(t, "records", drain(t, s), want)
			st := s.Stats()
			if st.DamagedBytes == 0 || !tc.torn && st.Quarantined != uint64(len(lost)) || tc.torn && !tc.recut && st.Quarantined == 0 {
				t.Errorf("records %v are lost; %+v, %+v", lost, st, rec)
			}
			if next := s.NextSeq(); !tc.recut && next < lost[0]+st.Quarantined {
				t.Errorf("next is %d: a seq that was given out is used again", next)
			}
			l, err := List(d)
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Bad) != 1 {
				t.Fatalf("set aside: %v", l.Bad)
			}
			if c, err := Walk(d, l.Bad[0], nil); err != nil || c.DamagedBytes != st.DamagedBytes && !tc.torn {
				t.Errorf("the file that was set aside: %+v, %v; %+v", c, err, st)
			}
			mustAppend(t, s, "after")
			sameStrings(t, "after", drain(t, s), []string{"after"})
			s.Close()
			again, rec := mustOpen(t, "", set)
			sameStrings(t, "opened again", drain(t, again), append(slices.Clone(want), "after"))
			if rec.Quarantined != 0 || again.Stats().Quarantined != 0 {
				t.Errorf("counted once more: %+v, %+v", rec, again.Stats())
			}
		})
	}
}

// Walk reads on behind a bad sector, and says what it takes.
func TestWalkBadSector(t *testing.T) {
	d := newMemDisk(rand.New(rand.NewPCG(1, 1)))
	s, _ := mustOpen(t, "", Settings{SegmentBytes: 4300, Disk: d})
	mustAppend(t, s, longRecords(0, 60)...)
	lost := spoilSegment(t, d, 1, 700)
	l, err := List(d)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Walk(d, l.Segments[1], nil)
	const record = headerSize + long
	want := Check{Records: 19 - uint64(len(lost)), Lost: uint64(len(lost)), Damaged: int64(lost[0]-19) * record, DamagedBytes: int64(len(lost)) * record}
	if err != nil || c != want {
		t.Errorf("%+v, %v; want %+v", c, err, want)
	}
}

// A cursor that cannot be read costs repeats.
func TestBadSectorOfTheCursor(t *testing.T) {
	d := newMemDisk(rand.New(rand.NewPCG(1, 1)))
	s, _ := mustOpen(t, "", Settings{Disk: d})
	mustAppend(t, s, "one", "two")
	drain(t, s)
	s.Ack(1)
	s.Close()
	d.seen[cursorName].spoil(0)
	s, rec := mustOpen(t, "", Settings{Disk: d})
	if !rec.CursorLost {
		t.Errorf("%+v", rec)
	}
	sameStrings(t, "records", drain(t, s), []string{"one", "two"})
	s.Close()
	if _, rec := mustOpen(t, "", Settings{Disk: d}); rec.CursorLost {
		t.Errorf("opened again: %+v", rec)
	}
}

// Append reports the records that were withdrawn because of a bad sector under the
// newest ones, which Next has found.
func TestRefusedByNext(t *testing.T) {
	d := newMemDisk(rand.New(rand.NewPCG(1, 1)))
	s, _ := mustOpen(t, "", Settings{Disk: d})
	mustAppend(t, s, longRecords(0, 5)...) // ends in sector 2
	if _, err := s.Append([]byte("waits for a Sync")); err != nil {
		t.Fatal(err)
	}
	lost := spoilSegment(t, d, 0, 5*(headerSize+long)-1)
	sameStrings(t, "records", drain(t, s), without(longRecords(0, 5), lost))
	if err := s.Sync(); !errors.Is(err, syscall.EIO) || s.NextSeq() != 5 {
		t.Fatalf("Sync: %v, next %d; want an error and 5", err, s.NextSeq())
	}
	mustAppend(t, s, "waits for a Sync")
	sameStrings(t, "after", drain(t, s), []string{"waits for a Sync"})
}

// faultyDisk fails reads of segments with an error.
type faultyDisk struct {
	*memDisk
	err   error // of reads; nil for none
	times int   // how often
	full  bool  // no file can be created
}

type faultyFile struct {
	File
	d *faultyDisk
}

func (d *faultyDisk) Open(name string) (File, error) {
	f, err := d.memDisk.Open(name)
	return faultyFile{f, d}, err
}

func (d *faultyDisk) OpenWrite(name string) (File, error) { return d.Open(name) }

func (d *faultyDisk) Create(name string) (File, error) {
	if d.full {
		return nil, syscall.ENOSPC
	}
	return d.memDisk.Create(name)
}

func (f faultyFile) ReadAt(b []byte, off int64) (int, error) {
	if f.d.err != nil && f.d.times > 0 {
		f.d.times--
		return 0, f.d.err
	}
	return f.File.ReadAt(b, off)
}

// Only what the disk cannot read is damage: other errors are returned, and lose
// nothing; nor does a place that can be read when it is tried again.
func TestWhatIsNotDamage(t *testing.T) {
	all := longRecords(0, 60)
	for _, fault := range []error{syscall.ENOSPC, syscall.EACCES, fs.ErrClosed, syscall.EIO} {
		d := &faultyDisk{memDisk: newMemDisk(rand.New(rand.NewPCG(1, 1)))}
		s, _ := mustOpen(t, "", Settings{SegmentBytes: 4300, Disk: d})
		mustAppend(t, s, all...)
		d.err, d.times = fault, 2
		if fault != syscall.EIO {
			if _, err := s.Next(t.Context()); !errors.Is(err, fault) {
				t.Errorf("%v: Next: %v", fault, err)
			}
			d.times = 1
			if _, _, err := Open("", Settings{SegmentBytes: 4300, Disk: d}); !errors.Is(err, fault) && !errors.Is(err, syscall.EACCES) {
				t.Errorf("%v: Open: %v", fault, err)
			}
		}
		sameStrings(t, fmt.Sprint(fault), drain(t, s), all)
		if st := s.Stats(); st.Quarantined != 0 {
			t.Errorf("%v: %+v", fault, st)
		}
	}
}

// While the disk has no room for what is good of a damaged segment, Next says
// ErrFull, and goes on once there is some.
func TestBadSectorOnAFullDisk(t *testing.T) {
	d := &faultyDisk{memDisk: newMemDisk(rand.New(rand.NewPCG(1, 1)))}
	s, _ := mustOpen(t, "", Settings{SegmentBytes: 4300, Disk: d, DropOldest: true})
	all := longRecords(0, 60)
	mustAppend(t, s, all...)
	lost := spoilSegment(t, d.memDisk, 0, 0)
	d.full = true
	if _, err := s.Next(context.Background()); !errors.Is(err, ErrFull) {
		t.Fatalf("Next: %v", err)
	}
	d.full = false
	sameStrings(t, "with room", drain(t, s), without(all, lost))
	if st := s.Stats(); st.Dropped != 0 {
		t.Errorf("%+v: nothing had to be given up", st)
	}
}

// A file that is shorter than it was lost what is missing, and no more.
func TestShortFile(t *testing.T) {
	d := newMemDisk(rand.New(rand.NewPCG(1, 1)))
	s, _ := mustOpen(t, "", Settings{SegmentBytes: 4300, Disk: d})
	all := longRecords(0, 60)
	mustAppend(t, s, all...)
	segs, _ := listSegments(d)
	if err := d.seen[segs[1].name()].Truncate(10*(headerSize+long) + 5); err != nil {
		t.Fatal(err)
	}
	var lost []uint64
	for seq := uint64(29); seq < 38; seq++ {
		lost = append(lost, seq)
	}
	sameStrings(t, "records", drain(t, s), without(all, lost))
	if st := s.Stats(); st.Quarantined != 9 {
		t.Errorf("%+v, want 9 records lost", st)
	}
}

// What the system says of a place that cannot be read is understood: Linux has one
// in every process.
func TestUnreadableOfTheSystem(t *testing.T) {
	f, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Skip("no file with an unreadable place: ", err)
	}
	defer f.Close()
	disk := &patched{file: f}
	b := bytes.Repeat([]byte{1}, 2*SectorSize)
	if n, err := disk.ReadAt(b, 0); n != len(b) || err != nil || !bytes.Equal(b, make([]byte, len(b))) || len(disk.bad) != 2 {
		t.Errorf("%d bytes, %v, bad sectors %v; want zeros for both", n, err, disk.bad)
	}
}

// slowDisk waits when a segment is opened for the second time, which is to set it
// aside.
type slowDisk struct {
	*memDisk
	name             string
	opened           int
	reached, release chan struct{}
}

func (d *slowDisk) Open(name string) (File, error) {
	if name == d.name {
		if d.opened++; d.opened == 2 {
			close(d.reached)
			<-d.release
		}
	}
	return d.memDisk.Open(name)
}

// Records are appended while a damaged segment is set aside, which can take long on
// a disk with bad sectors; and a segment that is given up meanwhile stays away.
func TestAppendWhileSettingAside(t *testing.T) {
	for _, drop := range []bool{false, true} {
		d := &slowDisk{memDisk: newMemDisk(rand.New(rand.NewPCG(1, 1))), reached: make(chan struct{}), release: make(chan struct{})}
		set := Settings{SegmentBytes: 4300, Disk: d}
		if drop {
			set.MaxBytes, set.DropOldest = 8*4300, true
		}
		s, _ := mustOpen(t, "", set)
		mustAppend(t, s, longRecords(0, 60)...)
		lost := spoilSegment(t, d.memDisk, 0, 0)
		d.name = s.segs[0].name()
		type read struct {
			rec Record
			err error
		}
		next := make(chan read, 1)
		go func() {
			rec, err := s.Next(context.Background())
			next <- read{rec, err}
		}()
		<-d.reached
		want := without(longRecords(0, 60), lost)
		if drop { // so many that the first segment is given up
			mustAppend(t, s, longRecords(60, 160)...)
			want = longRecords(int(s.Stats().Acked), 160)
		} else {
			mustAppend(t, s, longRecords(60, 61)...)
			want = append(want, longRecords(60, 61)...)
		}
		close(d.release)
		got := <-next
		if got.err != nil || string(got.rec.Payload) != want[0] {
			t.Fatalf("drop %v: Next: %.20q, %v; want %.20q", drop, got.rec.Payload, got.err, want[0])
		}
		sameStrings(t, "the others", drain(t, s), want[1:])
		if files, _ := d.List(); drop && files[d.name] != (FileInfo{}) {
			t.Errorf("the segment that was given up is back: %v", files)
		}
	}
}
