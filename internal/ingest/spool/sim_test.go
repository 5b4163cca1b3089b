package spool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// seeds returns how many lives TestSimulation lets a spool live. CI and
// `make chaos` ask for 10,000.
func seeds(t *testing.T) uint64 {
	text := os.Getenv("FLANK_SEEDS")
	if text == "" {
		return 300
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("FLANK_SEEDS: %v", err)
	}
	return n
}

// TestSimulation lets spools live on disks that break in every way memDisk knows,
// and holds them to this: what Sync had returned for is delivered, in order, until
// it is acknowledged. Only records whose own bytes were flipped, or lie in a sector
// that cannot be read, are lost, and those are counted; and, where that was asked for, the oldest, for want of room.
func TestSimulation(t *testing.T) {
	n := seeds(t)
	var wg sync.WaitGroup
	next := make(chan uint64)
	var mu sync.Mutex
	total := map[string]int{}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				l := newLife(seed)
				if err := l.live(); err != nil {
					t.Errorf("seed %d: %v\n%s", seed, err, strings.Join(l.story, "\n"))
				}
				mu.Lock()
				for k, v := range l.counts {
					total[k] += v
				}
				mu.Unlock()
			}
		})
	}
	for seed := range n {
		if t.Failed() {
			break
		}
		next <- seed
	}
	close(next)
	wg.Wait()
	t.Logf("%d seeds: %v", n, total)
	for _, what := range []string{"delivered", "crash", "flip", "lost to flips", "torn", "bad sector", "lost to bad sectors", "refused", "dropped", "open failed"} {
		if total[what] == 0 {
			t.Errorf("no %s in %d seeds: the simulation does not reach it", what, n)
		}
	}
}

// life is one spool with the model of what it owes.
type life struct {
	rng    *rand.Rand
	disk   *memDisk
	set    Settings
	s      *Spool
	story  []string
	counts map[string]int

	epoch    uint64
	synced   []string         // payloads by seq that Sync returned for; "" where it did not and the record is there all the same
	tried    map[int][]string // payloads ever appended, by seq
	unsynced []string
	broken   map[int]string // own bytes damaged, by what: flips or bad sectors
	spoiled  bool           // there were bad sectors
	acked    int            // everything below was acknowledged, or dropped for want of room
	ever     int            // everything below was acknowledged, and a crash may have forgotten it
	read     int            // seq that Next is to return at least
	made     int
	repaired uint64 // of s.Stats().Quarantined and Recovery.Quarantined, all incarnations
}

func newLife(seed uint64) *life {
	rng := rand.New(rand.NewPCG(seed, 7))
	disk := newMemDisk(rng)
	l := &life{
		rng: rng, disk: disk, counts: map[string]int{}, tried: map[int][]string{}, broken: map[int]string{},
		set: Settings{SegmentBytes: 100 + rng.Int64N([]int64{1500, 6000}[rng.IntN(2)]), Keep: -1, Disk: disk, direct: 200},
	}
	if rng.IntN(2) == 0 {
		l.set.Keep = 0
	}
	if rng.IntN(2) == 0 {
		l.set.MaxBytes = 2000 + rng.Int64N(8000)
	}
	l.set.DropOldest = rng.IntN(2) == 0
	return l
}

func (l *life) note(format string, args ...any) {
	l.story = append(l.story, fmt.Sprintf(format, args...))
	if len(l.story) > 60 {
		l.story = l.story[1:]
	}
}

func (l *life) live() error {
	l.note("%+v", l.set)
	if err := l.open(); err != nil {
		return err
	}
	l.epoch = l.s.Epoch()
	for range 40 + l.rng.IntN(120) {
		if err := l.step(); err != nil {
			return err
		}
	}
	// In the end the disk is well and everything is delivered.
	l.disk.faults, l.disk.noSpace = 0, false
	if err := l.reopen(true); err != nil {
		return err
	}
	if err := l.deliver(1 << 30); err != nil {
		return err
	}
	if l.read != len(l.synced) {
		return fmt.Errorf("%d of %d records delivered in the end", l.read, len(l.synced))
	}
	return l.s.Close()
}

func (l *life) step() error {
	switch p := l.rng.IntN(100); {
	case p < 35:
		return l.append()
	case p < 55:
		return l.sync()
	case p < 72:
		return l.deliver(1 + l.rng.IntN(20))
	case p < 82:
		return l.ack()
	case p < 86:
		return l.reopen(l.rng.IntN(2) == 0)
	case p < 90:
		l.flip()
		if l.rng.IntN(2) == 0 {
			l.spoil()
		}
	case p < 93:
		l.s.Rewind()
		l.read = l.acked
		l.note("rewind")
	case p < 97:
		l.disk.faults = []float64{0, 0, 0.05, 0.3}[l.rng.IntN(4)]
		l.note("faults %v", l.disk.faults)
	default:
		l.disk.noSpace = !l.disk.noSpace
		l.note("no space: %v", l.disk.noSpace)
	}
	return nil
}

func (l *life) append() error {
	l.made++
	p := fmt.Sprintf("%d:%0*d", l.made, []int{1, 30, 300}[l.rng.IntN(3)], l.made)
	at := len(l.synced) + len(l.unsynced)
	if l.s.NextSeq() != uint64(at) {
		return fmt.Errorf("next is %d, want %d", l.s.NextSeq(), at)
	}
	l.tried[at] = append(l.tried[at], p) // also where Append fails: it may have been written
	before, refused := l.s.Stats(), l.s.refused != nil
	cut := l.rng.IntN(len(p) + 1)
	seq, err := l.s.Append([]byte(p[:cut]), []byte(p[cut:]))
	l.note("append %d: %v", at, err)
	if err == nil {
		if l.rng.IntN(2) == 0 && l.s.Keep(seq, p) {
			l.counts["kept in memory"]++
		}
		if seq != uint64(at) {
			return fmt.Errorf("seq %d, want %d", seq, at)
		}
		l.unsynced = append(l.unsynced, p)
	}
	// A hole takes some bytes, and after a crash segments come back that were removed.
	if l.set.MaxBytes > 0 && err == nil && l.s.used() > l.set.MaxBytes && len(l.broken) == 0 && !l.spoiled {
		return fmt.Errorf("%d bytes, at most %d are allowed", l.s.used(), l.set.MaxBytes)
	}
	return l.settle(before, refused, err)
}

func (l *life) sync() error {
	before, refused := l.s.Stats(), l.s.refused != nil
	err := l.s.Sync()
	l.note("sync: %v", err)
	if err == nil && l.s.synced != uint64(len(l.synced)+len(l.unsynced)) {
		return fmt.Errorf("synced %d of %d", l.s.synced, len(l.synced)+len(l.unsynced))
	}
	return l.settle(before, refused, err)
}

// settle brings the model to what an Append or a Sync said.
func (l *life) settle(before Stats, refused bool, err error) error {
	if err != nil {
		l.counts["refused"]++
		full := errors.Is(err, ErrFull)
		if l.disk.faults == 0 && !l.disk.noSpace && !l.spoiled && !refused && !(full && l.set.MaxBytes > 0 && !l.set.DropOldest) {
			return fmt.Errorf("refused on a disk that is well: %w", err)
		}
	}
	synced := int(l.s.synced)
	if synced < len(l.synced) || synced > len(l.synced)+len(l.unsynced) {
		return fmt.Errorf("synced %d, want %d to %d", synced, len(l.synced), len(l.synced)+len(l.unsynced))
	}
	n := synced - len(l.synced)
	l.synced, l.unsynced = append(l.synced, l.unsynced[:n]...), l.unsynced[n:]
	left := int(l.s.NextSeq()) - synced
	if left > len(l.unsynced) || err == nil && left != len(l.unsynced) {
		return fmt.Errorf("%d records wait for Sync, want %d", left, len(l.unsynced))
	}
	l.unsynced = l.unsynced[:left]
	after := l.s.Stats()
	if given := int(after.Dropped - before.Dropped); given > 0 {
		if !l.set.DropOldest {
			return fmt.Errorf("%d records dropped, which was not asked for", given)
		}
		if want := int(after.Acked) - l.acked; given > want {
			return fmt.Errorf("%d records counted as dropped, acked moved by %d", given, want)
		}
		l.counts["dropped"] += given
		l.acked = int(after.Acked)
		l.read = max(l.read, l.acked)
	}
	return nil
}

// promote moves what is durable by now to synced. What Next has withdrawn, the next
// Append or Sync must say.
func (l *life) promote() error {
	n := int(l.s.synced) - len(l.synced)
	l.synced = append(l.synced, l.unsynced[:n]...)
	l.unsynced = l.unsynced[n:]
	if left := int(l.s.NextSeq()) - len(l.synced); left < len(l.unsynced) {
		if l.s.refused == nil {
			return fmt.Errorf("%d records are withdrawn, and nothing will say so", len(l.unsynced)-left)
		}
		l.unsynced = l.unsynced[:left]
		l.counts["withdrawn by Next"]++
	}
	return nil
}

// deliver reads up to n records and checks them.
func (l *life) deliver(n int) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range n {
		rec, err := l.s.Next(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			l.note("next: %v", err)
			if err := l.promote(); err != nil {
				return err
			}
			if l.disk.faults == 0 && !l.disk.noSpace {
				return fmt.Errorf("on a disk that is well: %w", err)
			}
			return nil
		}
		// A damaged active segment is sealed, with all that waits for Sync.
		if err := l.promote(); err != nil {
			return err
		}
		end := err != nil
		at := len(l.synced)
		if !end {
			at = int(rec.Seq)
		}
		if at < l.read || at > len(l.synced) || !end && at == len(l.synced) || rec.Epoch != l.epoch && !end {
			return fmt.Errorf("next is %d of epoch %x, want %d at least and %d at most of %x", at, rec.Epoch, l.read, len(l.synced), l.epoch)
		}
		for ; l.read < at; l.read++ { // skipped
			switch {
			case l.broken[l.read] != "" && l.read < l.ever:
				l.counts["lost after they were acknowledged"]++
			case l.broken[l.read] != "":
				l.counts["lost to "+l.broken[l.read]]++
			case l.synced[l.read] == "":
				// Of what waits for a Sync, later ones may reach the disk and earlier ones
				// not; and after one that failed, a program that is started again sees
				// records that are not on the disk.
				l.counts["lost without Sync"]++
			default:
				return fmt.Errorf("record %d is lost, although no fault touched it", l.read)
			}
		}
		if end {
			l.acked = max(l.acked, int(l.s.Stats().Acked)) // lost ones at the front are passed
			return l.counted()
		}
		got := payloadOf(rec)
		if want := l.synced[at]; want != got && (want != "" || !slices.Contains(l.tried[at], got)) {
			return fmt.Errorf("record %d is %.40q, want %.40q", at, got, want)
		}
		l.read = at + 1
		l.counts["delivered"]++
	}
	return nil
}

// counted checks that what is lost was counted.
func (l *life) counted() error {
	if n := l.repaired + l.s.Stats().Quarantined; l.counts["lost to flips"]+l.counts["lost to bad sectors"] > 0 && n == 0 {
		return errors.New("records are lost and none was counted")
	}
	return nil
}

func (l *life) ack() error {
	if l.read == 0 {
		return nil
	}
	seq := l.rng.IntN(l.read)
	err := l.s.Ack(uint64(seq))
	l.note("ack %d: %v", seq, err)
	if err != nil && l.disk.faults == 0 && !l.disk.noSpace {
		return fmt.Errorf("on a disk that is well: %w", err)
	}
	acked := int(l.s.Stats().Acked)
	l.acked = max(l.acked, seq+1)
	l.ever = max(l.ever, l.acked)
	for l.acked < acked {
		if l.broken[l.acked] == "" && l.synced[l.acked] != "" {
			return fmt.Errorf("record %d counts as delivered, only %d was acknowledged", l.acked, seq)
		}
		l.acked++
	}
	l.read = max(l.read, l.acked)
	return nil
}

// flip damages a bit of a segment.
func (l *life) flip() {
	name, f := l.someFile(segmentSuffix)
	if f == nil {
		return
	}
	g, _ := parseSegmentName(name)
	at := l.rng.IntN(len(f.data))
	if l.unfinished(g, f, at) {
		return
	}
	l.damage(g, f, at, "flips")
	f.flip(at, l.rng.IntN(8))
	l.counts["flip"]++
}

// spoil makes a sector of a segment or of the cursor unreadable.
func (l *life) spoil() {
	suffix := segmentSuffix
	if l.rng.IntN(10) == 0 {
		suffix = cursorName
	}
	name, f := l.someFile(suffix)
	if f == nil {
		return
	}
	sector := l.rng.IntN(len(f.data)) / SectorSize
	if g, ok := parseSegmentName(name); ok {
		if l.unfinished(g, f, min(len(f.data), (sector+1)*SectorSize)-1) {
			return
		}
		for at := sector * SectorSize; at < min(len(f.data), (sector+1)*SectorSize); at++ {
			l.damage(g, f, at, "bad sectors")
		}
	}
	f.spoil(sector)
	l.spoiled = true
	l.note("bad sector %d of %s", sector, name)
	l.counts["bad sector"]++
}

// someFile draws a file that is not empty; nil if there is none.
func (l *life) someFile(suffix string) (string, *memFile) {
	names := slices.DeleteFunc(sortedKeys(l.disk.seen), func(name string) bool {
		return !strings.HasSuffix(name, suffix) || len(l.disk.seen[name].data) == 0
	})
	if len(names) == 0 {
		return "", nil
	}
	name := names[l.rng.IntN(len(names))]
	return name, l.disk.seen[name]
}

// unfinished reports whether byte at may be of a record of which the spool has written a part so far: no one can say yet which
// record is broken.
func (l *life) unfinished(g *segment, f *memFile, at int) bool {
	_, ok := recordAt(g, f.data, int64(at))
	i := slices.IndexFunc(l.s.segs, func(s *segment) bool { return s.name() == g.name() })
	return !ok && i >= 0 && int64(at) >= l.s.segs[i].size
}

// damage notes that the record which holds byte at is broken.
func (l *life) damage(g *segment, f *memFile, at int, by string) {
	if seq, ok := recordAt(g, f.data, int64(at)); ok && l.broken[int(seq)] == "" {
		l.broken[int(seq)] = by
		l.note("%s in record %d", by, seq)
	}
}

// reopen ends the spool, in order or as a power cut does, and opens it again.
func (l *life) reopen(crash bool) error {
	if crash {
		l.repaired += l.s.Stats().Quarantined
		l.disk.crash()
		l.counts["crash"]++
		l.note("crash")
	} else {
		before, refused := l.s.Stats(), l.s.refused != nil
		err := l.s.Close()
		l.note("close: %v", err)
		if err := l.settle(before, refused, err); err != nil {
			return err
		}
		l.repaired += l.s.Stats().Quarantined
		l.disk.faults, l.disk.noSpace = 0, false // of one that is broken, Open may say so
		if l.rng.IntN(4) == 0 {
			l.disk.faults = 0.2
			if _, _, err := Open("", l.set); err != nil {
				l.counts["open failed"]++
			}
			l.repaired++ // it may have found damage without a report
			l.disk.crash()
			l.note("crash after open")
		}
	}
	if err := l.open(); err != nil {
		return err
	}
	next := int(l.s.NextSeq())
	if l.s.Epoch() != l.epoch {
		return fmt.Errorf("epoch %x, was %x", l.s.Epoch(), l.epoch)
	}
	for seq := next; seq < len(l.synced); seq++ { // looks like a torn tail
		if l.broken[seq] == "" && l.synced[seq] != "" {
			return fmt.Errorf("opened with next %d: record %d is lost, although no fault touched it", next, seq)
		}
		delete(l.broken, seq) // the seq is free again
		l.counts["torn"]++
	}
	l.synced = l.synced[:min(next, len(l.synced))]
	for i := len(l.synced); i < next; i++ { // survived without a Sync
		if len(l.tried[i]) == 0 {
			return fmt.Errorf("opened with next %d: record %d was never appended", next, i)
		}
		l.synced = append(l.synced, "")
	}
	l.unsynced = nil
	acked := int(l.s.Stats().Acked)
	if acked > l.acked {
		for seq := l.acked; seq < acked; seq++ {
			if l.broken[seq] == "" && l.synced[seq] != "" {
				return fmt.Errorf("opened with %d acknowledged, only %d were", acked, l.acked)
			}
		}
	}
	l.acked, l.read = acked, acked
	return nil
}

func (l *life) open() error {
	s, rec, err := Open("", l.set)
	l.note("open: %+v %v", rec, err)
	if err != nil {
		return fmt.Errorf("open on a disk that is well: %w", err)
	}
	l.s = s
	return nil
}
