package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// noSync makes the many small syncs of the tests cheap: they crash programs, not
// the machine.
func noSync(*os.File) error { return nil }

// small settings make segments roll often.
var small = Settings{SegmentBytes: 400, fsync: noSync}

func mustOpen(t testing.TB, dir string, set Settings) (*Spool, Recovery) {
	t.Helper()
	s, rec, err := Open(dir, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, rec
}

func mustAppend(t testing.TB, s *Spool, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		if _, err := s.Append([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
}

// drain returns the payloads of all records that can be read now.
func drain(t fataler, s *Spool) (payloads []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		rec, err := s.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return payloads
		}
		if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, payloadOf(rec))
	}
}

// payloadOf returns the payload of a record, which these tests give to Keep as a string.
func payloadOf(rec Record) string {
	if p, ok := rec.Kept.(string); ok {
		return p
	}
	return string(rec.Payload)
}

// fataler is what testing.T and rapid.T have in common.
type fataler interface {
	Helper()
	Fatal(...any)
}

func numbered(from, to int) (p []string) {
	for i := from; i < to; i++ {
		p = append(p, fmt.Sprintf("payload %04d", i))
	}
	return p
}

func sameStrings(t testing.TB, what string, got, want []string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestDeliverAndAck(t *testing.T) {
	dir := t.TempDir()
	s, rec := mustOpen(t, dir, small)
	if !rec.NewEpoch || s.Epoch() == 0 || s.NextSeq() != 0 {
		t.Fatalf("new spool: %+v, epoch %d, next %d", rec, s.Epoch(), s.NextSeq())
	}
	epoch := s.Epoch()
	s.Append([]byte("not synced, so not seen"))
	if got := drain(t, s); got != nil {
		t.Errorf("read %q before Sync", got)
	}
	s.Sync()
	mustAppend(t, s, numbered(1, 50)...)
	if got := drain(t, s); len(got) != 50 || got[49] != "payload 0049" {
		t.Errorf("read %d records: %q", len(got), got)
	}
	s.Rewind()
	if got := drain(t, s); len(got) != 50 {
		t.Errorf("after Rewind: %d records, want 50", len(got))
	}
	s.Ack(29)
	s.Ack(10) // an older one changes nothing
	s.Rewind()
	sameStrings(t, "Rewind after Ack", drain(t, s), numbered(30, 50))
	if st := s.Stats(); st.Pending != 20 || st.Acked != 30 || st.Next != 50 || st.Segments < 3 {
		t.Errorf("stats %+v", st)
	}
	s.Close()

	s, rec = mustOpen(t, dir, small)
	if rec.Pending != 20 || rec.NewEpoch || s.Epoch() != epoch || s.NextSeq() != 50 {
		t.Errorf("reopened: %+v, epoch %x (was %x), next %d", rec, s.Epoch(), epoch, s.NextSeq())
	}
	sameStrings(t, "reopened", drain(t, s), numbered(30, 50))
}

func TestNextWaits(t *testing.T) {
	s, _ := mustOpen(t, t.TempDir(), small)
	got := make(chan string)
	go func() {
		for {
			rec, err := s.Next(context.Background())
			if err != nil {
				got <- err.Error()
				return
			}
			got <- string(rec.Payload)
		}
	}()
	mustAppend(t, s, "a")
	if p := <-got; p != "a" {
		t.Errorf("read %q", p)
	}
	mustAppend(t, s, "b")
	if p := <-got; p != "b" {
		t.Errorf("read %q", p)
	}
	s.Close()
	if p := <-got; !strings.Contains(p, ErrClosed.Error()) {
		t.Errorf("Next of a closed spool: %s", p)
	}
	if _, err := s.Append(); !errors.Is(err, ErrClosed) {
		t.Errorf("Append to a closed spool: %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	s, _ := mustOpen(t, t.TempDir(), Settings{SegmentBytes: 4000, Keep: -1, fsync: noSync})
	const n = 3000
	go func() {
		for i := range n {
			s.Append(fmt.Appendf(nil, "%d", i))
			if i%7 == 0 || i == n-1 {
				s.Sync()
			}
		}
	}()
	for i := range n {
		rec, err := s.Next(context.Background())
		if err != nil || rec.Seq != uint64(i) || string(rec.Payload) != fmt.Sprint(i) {
			t.Fatalf("record %d: %d %q, %v", i, rec.Seq, rec.Payload, err)
		}
		if i%5 == 0 {
			s.Ack(rec.Seq)
			s.Stats()
		}
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, small)
	_, _, err := Open(dir, small)
	if !errors.Is(err, errLocked) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "folder of its own") {
		t.Errorf("second Open: %v", err)
	}
	s.Close()
	mustOpen(t, dir, small)
}

func TestTwoEpochs(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(0, 0)
	set := small
	set.Keep, set.Now = time.Minute, func() time.Time { return now }
	s, _ := mustOpen(t, dir, set)
	first := s.Epoch()
	mustAppend(t, s, numbered(0, 40)...)
	if _, err := s.NewEpoch(0); !errors.Is(err, errPending) {
		t.Errorf("NewEpoch while 40 records are pending: %v", err)
	}
	drain(t, s)
	s.Ack(39)
	s.Append([]byte("unsynced"))
	if _, err := s.NewEpoch(0); !errors.Is(err, errPending) {
		t.Errorf("NewEpoch with an unsynced record: %v", err)
	}
	s.Sync()
	s.Ack(40)
	second, err := s.NewEpoch(0)
	if err != nil || second == first || second != s.Epoch() || s.NextSeq() != 0 {
		t.Fatalf("NewEpoch: %x, %v; next %d", second, err, s.NextSeq())
	}
	mustAppend(t, s, "of the second")
	rec, err := s.Next(context.Background())
	if err != nil || rec.Epoch != second || rec.Seq != 0 || string(rec.Payload) != "of the second" {
		t.Errorf("first of the second epoch: %+v, %v", rec, err)
	}
	s.Close()
	os.Remove(filepath.Join(dir, cursorName)) // without it the segments still have their epochs
	s, r := mustOpen(t, dir, set)
	if s.Epoch() != second || s.NextSeq() != 1 || r.Pending != 1 {
		t.Errorf("reopened: epoch %x, want %x; next %d; %+v", s.Epoch(), second, s.NextSeq(), r)
	}
	if n := len(segmentFiles(t, dir)); n < 3 {
		t.Errorf("%d segments before Keep is over", n)
	}
	now = now.Add(time.Minute)
	mustAppend(t, s, "x")
	if n := len(segmentFiles(t, dir)); n != 1 {
		t.Errorf("%d segments after Keep, want the active one", n)
	}
}

// An epoch may come again: what was delivered of it before is not taken for what
// comes now, whenever the power fails.
func TestSameEpochAgain(t *testing.T) {
	d := newMemDisk(rand.New(rand.NewPCG(1, 1)))
	s, _ := mustOpen(t, "", Settings{Disk: d})
	for round := range 3 {
		if epoch, err := s.NewEpoch(77); err != nil || epoch != 77 {
			t.Fatalf("epoch %d, %v", epoch, err)
		}
		mustAppend(t, s, "a", "b", "c")
		if round > 0 { // the cursor of the round before is back
			if err := (cursor{ordinal: s.ordinal - 1, epoch: 77, acked: 3}).write(d); err != nil {
				t.Fatal(err)
			}
			d.keepNames(len(d.names))
			d.crash()
			var rec Recovery
			if s, rec = mustOpen(t, "", Settings{Disk: d}); rec.Pending != 3 || rec.NewEpoch || s.Epoch() != 77 {
				t.Errorf("round %d: %+v", round, rec)
			}
		}
		sameStrings(t, fmt.Sprint("round ", round), drain(t, s), []string{"a", "b", "c"})
		s.Ack(2)
	}
}

// Delivered segments stay for Keep, and the seq survives their removal.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1000, 0)
	set := small
	set.Now = func() time.Time { return now }
	s, _ := mustOpen(t, dir, set)
	epoch := s.Epoch()
	mustAppend(t, s, numbered(0, 100)...)
	all := len(segmentFiles(t, dir))
	s.Ack(99)
	now = now.Add(10*time.Minute - 1)
	s.Ack(99)
	if n := len(segmentFiles(t, dir)); n != all {
		t.Errorf("%d of %d segments just before 10 minutes", n, all)
	}
	now = now.Add(1)
	s.Ack(99)
	if n := len(segmentFiles(t, dir)); n != 1 {
		t.Errorf("%d segments after 10 minutes, want 1", n)
	}
	s.Close()
	for _, lost := range []string{"nothing", cursorName} {
		os.Remove(filepath.Join(dir, lost))
		s, _ = mustOpen(t, dir, set)
		if s.NextSeq() != 100 || s.Epoch() != epoch {
			t.Errorf("%s removed: next %d in epoch %x, want 100 in %x", lost, s.NextSeq(), s.Epoch(), epoch)
		}
		s.Close()
	}
	// No one may remove the active segment. If someone does, the spool gets a new epoch, never a
	// seq that was used.
	for _, f := range segmentFiles(t, dir) {
		os.Remove(f)
	}
	s, rec := mustOpen(t, dir, set)
	if s.Epoch() == epoch || !rec.NewEpoch {
		t.Errorf("all segments removed: still epoch %x, %+v", s.Epoch(), rec)
	}
}

// A ring keeps delivered segments until they are old enough, also over a restart, or until
// they take too many bytes. It takes nothing that was not delivered.
func TestRing(t *testing.T) {
	dir := t.TempDir()
	begun := time.Now()
	now := begun
	set := Settings{SegmentBytes: 400, Ring: 48 * time.Hour, RingBytes: 3600, Now: func() time.Time { return now }, fsync: noSync}
	s, _ := mustOpen(t, dir, set) // 11 records of 36 bytes in a segment
	mustAppend(t, s, numbered(0, 60)...)
	if st := s.Stats(); st.Segments != 6 || st.Bytes != 60*36 {
		t.Fatalf("%+v", st)
	}
	s.Ack(53)
	for _, wait := range []time.Duration{time.Hour, 46 * time.Hour} {
		now = now.Add(wait)
		s.Ack(53)
		if st := s.Stats(); st.Segments != 6 {
			t.Errorf("%d segments after %v, want 6", st.Segments, now.Sub(begun))
		}
	}
	s.Close()
	for _, path := range segmentFiles(t, dir) {
		if err := os.Chtimes(path, begun, begun); err != nil {
			t.Fatal(err)
		}
	}
	s, _ = mustOpen(t, dir, set) // 47 h
	now = begun.Add(48*time.Hour - 1)
	s.Ack(53)
	if st := s.Stats(); st.Segments != 6 {
		t.Errorf("%d segments after 48 h less a moment, want 6", st.Segments)
	}
	now = begun.Add(48 * time.Hour)
	s.Ack(53)
	if st := s.Stats(); st.Segments != 2 || st.Pending != 6 { // one is not delivered, with the last it is 54 to 59
		t.Errorf("after 48 h %+v, want 2 segments with 6 records pending", st)
	}
	sameStrings(t, "records", drain(t, s), numbered(54, 60))

	s.Ack(59)
	mustAppend(t, s, numbered(60, 400)...) // nothing of it is delivered, and it is more than the ring may take
	if st := s.Stats(); st.Pending != 340 || st.Dropped != 0 {
		t.Errorf("%+v, want 340 records pending", st)
	}
	sameStrings(t, "records", drain(t, s), numbered(60, 400))
	s.Ack(399)
	if st := s.Stats(); st.Bytes > 3600+400 || st.Bytes < 3600-400 {
		t.Errorf("the ring takes %d bytes, want about 3600", st.Bytes)
	}
}

func TestDamagedCursorRepeats(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, Settings{fsync: noSync})
	mustAppend(t, s, numbered(0, 9)...)
	s.Ack(5)
	s.Close()
	path := filepath.Join(dir, cursorName)
	b, _ := os.ReadFile(path)
	b[20] ^= 1
	os.WriteFile(path, b, 0o644)
	s, rec := mustOpen(t, dir, Settings{fsync: noSync})
	if !rec.CursorLost || rec.Pending != 9 {
		t.Errorf("%+v", rec)
	}
	sameStrings(t, "records", drain(t, s), numbered(0, 9))
}

// The cursor must not be needed to know which seqs are used up.
func TestTornBelowTheCursor(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, Settings{fsync: noSync})
	mustAppend(t, s, numbered(0, 9)...)
	s.Ack(8)
	s.Close()
	os.Truncate(segmentFiles(t, dir)[0], 100)
	s, rec := mustOpen(t, dir, Settings{fsync: noSync})
	if s.NextSeq() != 9 || rec.Pending != 0 {
		t.Errorf("next %d, want 9; %+v", s.NextSeq(), rec)
	}
	mustAppend(t, s, "nine")
	sameStrings(t, "records", drain(t, s), []string{"nine"})
	s.Close()
	s, _ = mustOpen(t, dir, Settings{fsync: noSync})
	sameStrings(t, "reopened", drain(t, s), []string{"nine"})
}

// A record that is damaged while the spool is open is lost alone, also in the
// active segment, and a second look does not count it again.
func TestDamageWhileOpen(t *testing.T) {
	for _, victim := range []int{0, 3, 24, 49} {
		dir := t.TempDir()
		s, _ := mustOpen(t, dir, small)
		mustAppend(t, s, numbered(0, 50)...)
		flipRecord(t, dir, victim)
		want := append(numbered(0, victim), numbered(victim+1, 50)...)
		sameStrings(t, fmt.Sprint("record ", victim), drain(t, s), want)
		s.Rewind()
		sameStrings(t, fmt.Sprint("again, record ", victim), drain(t, s), want)
		if st := s.Stats(); st.Quarantined != 1 {
			t.Errorf("record %d: %d counted", victim, st.Quarantined)
		}
		mustAppend(t, s, "after")
		sameStrings(t, "after", drain(t, s), []string{"after"})
		s.Ack(50)
		if st := s.Stats(); st.Pending != 0 {
			t.Errorf("record %d: %d pending at the end", victim, st.Pending)
		}
		if bad, _ := filepath.Glob(filepath.Join(dir, "*"+badSuffix)); len(bad) != 1 {
			t.Errorf("record %d: quarantine holds %q", victim, bad)
		}
		s.Close()
		s, rec := mustOpen(t, dir, small)
		if rec.Pending != 0 || rec.Quarantined != 0 || s.NextSeq() != 51 {
			t.Errorf("record %d: reopened: %+v, next %d", victim, rec, s.NextSeq())
		}
	}
}

// When nothing but lost records is left, the spool counts as delivered.
func TestLastRecordLost(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, small)
	mustAppend(t, s, numbered(0, 3)...)
	flipRecord(t, dir, 2)
	sameStrings(t, "records", drain(t, s), numbered(0, 2))
	s.Ack(1)
	if st := s.Stats(); st.Pending != 0 || st.Acked != 3 {
		t.Errorf("%+v", st)
	}
	if _, err := s.NewEpoch(0); err != nil {
		t.Error(err)
	}
}

// flipRecord flips one bit of the payload "payload NNNN".
func flipRecord(t testing.TB, dir string, n int) {
	t.Helper()
	for _, path := range segmentFiles(t, dir) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, fmt.Appendf(nil, "payload %04d", n)); i >= 0 {
			b[i+3] ^= 0x10
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no record %d", n)
}

// A disk that refuses gives the records back, and the next ones go on with the
// same seqs.
func TestFailingDisk(t *testing.T) {
	dir := t.TempDir()
	var broken error
	set := Settings{fsync: func(*os.File) error { return broken }}
	s, _ := mustOpen(t, dir, set)
	for _, already := range []int{0, 5} {
		mustAppend(t, s, numbered(int(s.NextSeq()), already)...)
		s.Append([]byte("withdrawn"))
		s.Append([]byte("withdrawn"))
		broken = errors.New("no space left on device")
		err := s.Sync()
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "2 records not stored") || !errors.Is(err, broken) {
			t.Errorf("Sync on a full disk: %v", err)
		}
		if s.NextSeq() != uint64(already) {
			t.Errorf("next %d after withdrawal, want %d", s.NextSeq(), already)
		}
		broken = nil
	}
	mustAppend(t, s, numbered(5, 8)...)
	sameStrings(t, "records", drain(t, s), numbered(0, 8))
	s.Close()
	s, _ = mustOpen(t, dir, set)
	sameStrings(t, "reopened", drain(t, s), numbered(0, 8))
}

func TestTooLarge(t *testing.T) {
	s, _ := mustOpen(t, t.TempDir(), Settings{MaxRecord: 10, fsync: noSync})
	if _, err := s.Append(make([]byte, 11)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("11 bytes: %v", err)
	}
	mustAppend(t, s, "", strings.Repeat("x", 10))
	sameStrings(t, "records", drain(t, s), []string{"", "xxxxxxxxxx"})
}

// The memory of an open spool does not depend on the backlog.
func TestMemoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, Settings{SegmentBytes: 8 << 20, fsync: noSync})
	payload := make([]byte, 100_000)
	for range 640 { // 64 MB
		if _, err := s.Append(payload); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s, rec := mustOpen(t, dir, Settings{fsync: noSync})
	for range rec.Pending {
		if _, err := s.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 2<<20 {
		t.Errorf("%d bytes more on the heap after reading 64 MB", grown)
	}
}

// The look ahead finds a record wherever it starts, also where its first bytes
// are in one chunk and the others in the next.
func TestResync(t *testing.T) {
	record := append(header{seq: 3, length: 2, sum: checksum("ab")}.append(nil, 1), "ab"...)
	for _, n := range []int{1, 2, 23, 24, chunkSize - 4, chunkSize - 3, chunkSize - 2, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize - 5} {
		b := append(bytes.Repeat([]byte("F"), n), record...)
		sc := &scanner{file: bytesReader(b), epoch: 1, end: int64(len(b))}
		if found, err := sc.resync(3, 4); !found || err != nil || sc.off != int64(n) {
			t.Errorf("record at %d: found %v at %d, %v", n, found, sc.off, err)
		}
		sc.off = 0
		if found, _ := sc.resync(4, 9); found || sc.off != 0 {
			t.Errorf("record at %d: a seq below the wanted ones was taken", n)
		}
	}
}

// FuzzOpen checks that no bytes in a segment make Open or Next panic or reserve
// memory they do not need, and that what is read is what was written.
func FuzzOpen(f *testing.F) {
	const epoch = 7
	var good []byte
	for i, p := range numbered(0, 6) {
		h := header{seq: uint64(i), length: uint32(len(p)), sum: checksum(p)}
		good = append(h.append(good, epoch), p...)
	}
	hole := header{seq: 9, length: holeLength}.append(nil, epoch)
	f.Add(good)
	f.Add(good[:len(good)-5])
	f.Add(append(bytes.Clone(good[:100]), good[101:]...))
	f.Add(append(bytes.Clone(good), hole...))
	f.Add(append(bytes.Clone(good), header{seq: 6, length: 1 << 31}.append(nil, epoch)...))
	f.Add(append(bytes.Clone(good), header{seq: 1<<64 - 1}.append(nil, epoch)...))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		b := bytes.Clone(good)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		g := &segment{ordinal: 1, epoch: epoch}
		os.WriteFile(filepath.Join(dir, g.name()), data, 0o644)
		s, _ := mustOpen(t, dir, Settings{fsync: noSync})
		if _, err := s.Append([]byte("new")); err != nil {
			t.Fatal(err)
		}
		s.Sync()
		all := drain(t, s)
		if len(all) == 0 || all[len(all)-1] != "new" {
			t.Fatalf("the appended record is not the last of %q", all)
		}
		s.Ack(s.NextSeq() - 1)
		if st := s.Stats(); st.Pending != 0 {
			t.Fatalf("%+v", st)
		}
	})
}

// What Keep was given comes out of Next once the record is durable, and once. All else is read from the disk, also after a
// restart, a Rewind and a failed Sync.
func TestKeepInMemory(t *testing.T) {
	var refuse error
	set := Settings{fsync: func(*os.File) error { return refuse }}
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, set)
	add := func(keep string, payloads ...string) (taken string) {
		t.Helper()
		for i, p := range payloads {
			seq, err := s.Append([]byte(p))
			if err != nil {
				t.Fatal(err)
			}
			if keep[i] == 'k' {
				taken += map[bool]string{true: "k", false: "-"}[s.Keep(seq, "kept "+p)]
			}
		}
		return taken
	}
	expect := func(what string, want ...string) {
		t.Helper()
		sameStrings(t, what, drain(t, s), want)
	}
	sync := func() {
		t.Helper()
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if add("k", "0") != "k" || s.Keep(1, "not there yet") {
		t.Error("the first record")
	}
	expect("before Sync")
	sync()
	if s.Keep(0, "too late") {
		t.Error("Keep after Sync")
	}
	expect("after Sync", "kept 0")
	s.Rewind()
	expect("after Rewind", "0")

	if got := add("k-kkk", "1", "2", "3", "4", "5"); got != "kk--" { // 0 is not acknowledged
		t.Errorf("taken %q", got)
	}
	sync()
	expect("a few", "kept 1", "2", "kept 3", "4", "5")
	if err := s.Ack(5); err != nil {
		t.Fatal(err)
	}
	if got := add("k", "withdrawn"); got != "k" {
		t.Errorf("taken %q", got)
	}
	refuse = errors.New("the disk is ill")
	if err := s.Sync(); err == nil {
		t.Error("Sync on a disk that is ill")
	}
	refuse = nil
	add("-", "6")
	sync()
	expect("after a failed Sync", "6")

	if err := s.Ack(6); err != nil {
		t.Fatal(err)
	}
	if got := add("kk", "7", "8"); got != "kk" {
		t.Errorf("taken %q", got)
	}
	sync()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = mustOpen(t, dir, set)
	expect("after a restart", "7", "8")
	if err := s.Ack(8); err != nil {
		t.Fatal(err)
	}
	add("k", "9")
	sync()
	if err := s.Ack(9); err != nil { // before it was read
		t.Fatal(err)
	}
	if _, err := s.NewEpoch(0); err != nil {
		t.Fatal(err)
	}
	add("-", "first of the new epoch")
	sync()
	expect("in a new epoch", "first of the new epoch")
}

// Pieces of a payload of any lengths are one record. Long ones are not copied.
func TestPieces(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir, Settings{fsync: noSync})
	var want []string
	for _, lengths := range [][]int{{}, {0}, {3, 0, 4}, {10, 64<<10 - 1, 10}, {10, 64 << 10, 10}, {1 << 20}, {64 << 10, 64 << 10, 1}, {1 << 20, 1 << 20}} {
		var pieces [][]byte
		all := ""
		for i, n := range lengths {
			p := strings.Repeat(string(rune('a'+i)), n)
			pieces, all = append(pieces, []byte(p)), all+p
		}
		if _, err := s.Append(pieces...); err != nil {
			t.Fatal(err)
		}
		want = append(want, all)
	}
	if n := cap(s.buf); n > 256<<10 {
		t.Errorf("%d bytes wait in memory", n)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := drain(t, s); !slices.Equal(got, want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
	if _, err := s.Append(make([]byte, 9<<20), make([]byte, 9<<20)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("together they are too large: %v", err)
	}
}
