package spool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A full spool refuses to the byte, gives delivered segments up first, and takes
// records again once there is room.
func TestFullRefuses(t *testing.T) {
	s, _ := mustOpen(t, t.TempDir(), Settings{MaxBytes: 800, fsync: noSync}) // segments of 100 bytes
	const record = headerSize + 12
	for i := range 800 / record {
		mustAppend(t, s, numbered(i, i+1)...)
	}
	if _, err := s.Append([]byte("payload 9999")); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "of 800 bytes") {
		t.Errorf("record %d: %v", 800/record, err)
	}
	sameStrings(t, "records", drain(t, s), numbered(0, 800/record))
	s.Ack(5)
	mustAppend(t, s, numbered(22, 25)...)
	if st := s.Stats(); st.Dropped != 0 || st.Bytes > 800 {
		t.Errorf("%+v", st)
	}
	s.Rewind()
	sameStrings(t, "after 6 were delivered", drain(t, s), numbered(6, 25))
	if _, err := s.Append(make([]byte, 800)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a record larger than the spool: %v", err)
	}
}

// With DropOldest the newest records stay, and what was dropped is counted.
func TestFullDropsOldest(t *testing.T) {
	s, _ := mustOpen(t, t.TempDir(), Settings{MaxBytes: 800, DropOldest: true, fsync: noSync})
	mustAppend(t, s, numbered(0, 100)...)
	st := s.Stats()
	if st.Dropped == 0 || st.Acked != st.Dropped || st.Bytes > 800 || st.Pending < 800/(headerSize+12)-3 {
		t.Errorf("%+v", st)
	}
	sameStrings(t, "records", drain(t, s), numbered(int(st.Dropped), 100))
}

// roomDisk is a folder on a disk that is full while a file is open that was
// removed, as on every Unix.
type roomDisk struct {
	osDisk
	mu      sync.Mutex
	left    int // bytes that may still be written
	handles map[string]int
	gone    map[string]int64 // sizes of removed files that are open
}

func (d *roomDisk) Open(name string) (File, error)      { return d.wrap(name, d.osDisk.Open) }
func (d *roomDisk) OpenWrite(name string) (File, error) { return d.wrap(name, d.osDisk.OpenWrite) }
func (d *roomDisk) Create(name string) (File, error)    { return d.wrap(name, d.osDisk.Create) }

func (d *roomDisk) wrap(name string, how func(string) (File, error)) (File, error) {
	f, err := how(name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handles[name]++
	return &roomFile{File: f, d: d, name: name}, nil
}

func (d *roomDisk) Remove(name string) error {
	sizes, _ := d.List()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handles[name] > 0 {
		d.gone[name] = sizes[name].Size
	} else {
		d.left += int(sizes[name].Size)
	}
	return d.osDisk.Remove(name)
}

type roomFile struct {
	File
	d    *roomDisk
	name string
}

func (f *roomFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if strings.HasSuffix(f.name, segmentSuffix) {
		if len(b) > f.d.left {
			return 0, syscall.ENOSPC
		}
		f.d.left -= len(b)
	}
	return f.File.WriteAt(b, off)
}

func (f *roomFile) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.handles[f.name]--; f.d.handles[f.name] == 0 {
		f.d.left += int(f.d.gone[f.name])
		delete(f.d.gone, f.name)
	}
	return f.File.Close()
}

// A disk that is full of delivered records has room again although the reader, who
// has nothing more to read, still had their file open.
func TestFullDiskOfDelivered(t *testing.T) {
	dir := t.TempDir()
	d := &roomDisk{osDisk: osDisk{dir, noSync}, left: 20 * (headerSize + 12), handles: map[string]int{}, gone: map[string]int64{}}
	s, _ := mustOpen(t, dir, Settings{Disk: d, fsync: noSync})
	ctx, cancel := context.WithCancel(context.Background())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			rec, err := s.Next(ctx)
			if err != nil {
				return
			}
			s.Ack(rec.Seq)
		}
	}()
	refused := 0
	for i, deadline := 0, time.Now().Add(30*time.Second); i < 100; {
		_, err := s.Append([]byte(fmt.Sprintf("payload %04d", i)))
		if err == nil {
			err = s.Sync()
		}
		switch {
		case err == nil:
			i++
		case !errors.Is(err, ErrFull):
			t.Fatal(err)
		case time.Now().After(deadline):
			t.Fatalf("record %d: %v, although all before it were delivered", i, err)
		default:
			refused++
			time.Sleep(time.Millisecond)
		}
	}
	cancel()
	<-read
	if refused == 0 {
		t.Error("the disk was never full: the test shows nothing")
	}
}

// room is not known, as on systems that do not say it.
func (d *roomDisk) room() int64 { return 0 }

// knownRoom is a disk that says how much room it has.
type knownRoom struct{ *roomDisk }

func (d knownRoom) room() int64 { return int64(d.left) }

// While the broker is away no one reads on, and the reader keeps the file of the segment
// that it is in open. A full disk has room again all the same, and what was dropped is
// counted and a small part of the spool.
func TestFullDiskWhileNoOneReads(t *testing.T) {
	const size, room = 64 << 10, 100
	for name, known := range map[string]bool{"room is known": true, "room is not known": false} {
		dir := t.TempDir()
		d := &roomDisk{osDisk: osDisk{dir, noSync}, left: room * (headerSize + size), handles: map[string]int{}, gone: map[string]int64{}}
		set := Settings{Disk: d, DropOldest: true, fsync: noSync}
		if known {
			set.Disk = knownRoom{d}
		}
		s, _ := mustOpen(t, dir, set)
		payload := make([]byte, size)
		refused, most := 0, uint64(0)
		for i := 0; i < 3*room; {
			before := s.Stats().Dropped
			_, err := s.Append(payload)
			if err == nil {
				err = s.Sync()
			}
			switch {
			case err == nil:
				if i++; i == 1 { // the broker goes away
					if _, err := s.Next(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			case !errors.Is(err, ErrFull):
				t.Fatal(err)
			default:
				if refused++; refused > 3*room {
					t.Fatalf("%s: record %d: %v", name, i, err)
				}
			}
			if known || before > 0 { // a disk that does not say it was of one segment
				most = max(most, s.Stats().Dropped-before)
			}
		}
		st := s.Stats()
		if st.Dropped == 0 || st.Acked != st.Dropped || st.Next != 3*room || most > 2*(1<<20)/size {
			t.Errorf("%s: %+v, at most %d at once", name, st, most)
		}
		s.Rewind()
		if got := len(drain(t, s)); uint64(got) != st.Next-st.Dropped || got < room/2 {
			t.Errorf("%s: %d records, %d were dropped of %d", name, got, st.Dropped, st.Next)
		}
		s.Close()
	}
}
