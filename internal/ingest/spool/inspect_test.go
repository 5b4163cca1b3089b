package spool

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// List and Walk find what is there, also while the spool is open, and what is
// damaged.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, Settings{SegmentBytes: 400, fsync: noSync})
	mustAppend(t, s, numbered(0, 30)...) // 36 bytes each: 11 in a segment
	s.Ack(4)
	if err := s.writeCursor(); err != nil {
		t.Fatal(err)
	}
	l, err := List(Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Segments) != 3 || l.Acked != 5 || l.Epoch != s.Epoch() || len(l.Bad) != 0 {
		t.Fatalf("%+v", l)
	}
	var got []string
	walk := func() (all []Check) {
		got = nil
		for _, info := range l.Segments {
			c, err := Walk(Dir(dir), info, func(r Record) error { got = append(got, string(r.Payload)); return nil })
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		return all
	}
	for i, c := range walk() {
		if want := uint64([]int{11, 11, 8}[i]); c != (Check{Records: want, Damaged: -1}) {
			t.Errorf("segment %d: %+v, want %d whole records", i, c, want)
		}
	}
	sameStrings(t, "records", got, numbered(0, 30))

	size := l.Segments[0].Bytes / 11
	for i, damage := range []func(path string){
		func(path string) { flipByte(t, path, 3*size+30) },                  // a payload
		func(path string) { flipByte(t, path, 10*size+2) },                  // the header of the last record
		func(path string) { os.Truncate(path, l.Segments[2].Bytes-size/2) }, // torn
	} {
		damage(filepath.Join(dir, l.Segments[i].Name))
	}
	l, _ = List(Dir(dir))
	for i, want := range []Check{
		{Records: 10, Lost: 1, Damaged: 3 * size, DamagedBytes: size},
		{Records: 10, Lost: 1, Damaged: 10 * size, DamagedBytes: size},
		{Records: 7, Damaged: -1, Torn: size - size/2},
	} {
		if c := walk()[i]; c != want {
			t.Errorf("damaged segment %d: %+v, want %+v", i, c, want)
		}
	}
	enough := errors.New("enough")
	if _, err := Walk(Dir(dir), l.Segments[0], func(Record) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("Walk: %v", err)
	}
	if _, err := List(Dir(filepath.Join(dir, "none"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("List of no folder: %v", err)
	}
}

func flipByte(t *testing.T, path string, at int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Peek sees the beginning of every record, and says where a segment is damaged.
func TestPeek(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, Settings{fsync: noSync})
	mustAppend(t, s, append(numbered(0, 20), "", "x")...)
	l, err := List(Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	peek := func() (got []string, whole bool) {
		whole, err := Peek(Dir(dir), l.Segments[0], 9, func(seq uint64, head []byte) error {
			if seq != uint64(len(got)) {
				t.Errorf("seq %d, want %d", seq, len(got))
			}
			got = append(got, string(head))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got, whole
	}
	var want []string
	for _, p := range numbered(0, 20) {
		want = append(want, p[:9])
	}
	got, whole := peek()
	sameStrings(t, "heads", got, append(want, "", "x"))
	flipByte(t, filepath.Join(dir, l.Segments[0].Name), 5*36+2) // the header of the sixth
	some, still := peek()
	sameStrings(t, "heads before the damage", some, want[:5])
	if !whole || still {
		t.Errorf("whole %v before and %v after a header is damaged", whole, still)
	}
	stop := errors.New("stop")
	if _, err := Peek(Dir(dir), l.Segments[0], 9, func(uint64, []byte) error { return stop }); err != stop {
		t.Errorf("%v, want the error of the function", err)
	}
}

// An epoch that comes again, as when a recording is sent again, does not hide what the spool has of it from before.
func TestEpochThatComesAgain(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, Settings{SegmentBytes: 100, fsync: noSync})
	for _, n := range []int{9, 2} { // the second time it has only begun
		if _, err := s.NewEpoch(7); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, numbered(0, n)...)
		if n == 9 {
			sameStrings(t, "records", drain(t, s), numbered(0, n))
			s.Ack(8)
		}
	}
	for seq, delivered := range map[uint64]bool{0: false, 1: false, 2: true, 8: true} {
		if found, err := Find(dir, 7, seq); err != nil || found == nil || found.Delivered != delivered {
			t.Errorf("record %d: %+v, %v", seq, found, err)
		}
	}
	if found, err := Find(dir, 7, 9); found != nil || err != nil {
		t.Errorf("a record that never was: %+v, %v", found, err)
	}
	l, err := List(Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range l.Segments {
		if last := i == len(l.Segments)-1; g.Earlier == last {
			t.Errorf("%s of %d segments is of an earlier time: %t", g.Name, len(l.Segments), g.Earlier)
		}
	}
}
