package spool

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func checksum(p string) uint32 { return crc32.Checksum([]byte(p), castagnoli) }

// model is what a spool should hold.
type model struct {
	epoch    uint64
	synced   []string // payloads by seq; lost ones are in lost
	lost     map[int]bool
	unsynced []string
	acked    int // as the caller said
	cursor   int // as Close wrote it
	read     int
	count    int // payloads ever made
}

func (m *model) next() int { return len(m.synced) + len(m.unsynced) }

// TestAgainstModel lets a spool live: appended to, synced, read, acknowledged,
// closed, crashed with any part of its unsynced tail, and damaged. In
// every case the reader gets exactly the synced records whose own bytes are whole,
// in order, from the first unacknowledged one on.
func TestAgainstModel(t *testing.T) {
	root := t.TempDir()
	dirs := 0
	newDir := func() string {
		dirs++
		return filepath.Join(root, fmt.Sprint(dirs))
	}
	rapid.Check(t, func(t *rapid.T) {
		set := Settings{SegmentBytes: int64(rapid.IntRange(100, 2000).Draw(t, "segment")), fsync: noSync, direct: 200}
		if rapid.Bool().Draw(t, "ring") { // it takes nothing that was not delivered
			set.Ring, set.RingBytes = time.Hour, int64(rapid.IntRange(0, 4000).Draw(t, "ring bytes"))
		}
		dir := newDir()
		defer func() { os.RemoveAll(dir) }()
		var s *Spool
		open := func() Recovery {
			var rec Recovery
			var err error
			if s, rec, err = Open(dir, set); err != nil {
				t.Fatal(err)
			}
			return rec
		}
		open()
		defer func() { s.Close() }()
		m := &model{epoch: s.Epoch(), lost: map[int]bool{}}
		reopened := func(rec Recovery) {
			m.read = m.acked
			if s.Epoch() != m.epoch || s.NextSeq() != uint64(len(m.synced)) {
				t.Fatalf("epoch %x next %d, want %x %d", s.Epoch(), s.NextSeq(), m.epoch, len(m.synced))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{0, 1, 30, 300, 3000}).Draw(t, "size")
				m.count++
				p := fmt.Sprintf("%d:%0*d", m.count, n, m.count)
				cut := rapid.IntRange(0, min(len(p), 40)).Draw(t, "cut")
				seq, err := s.Append([]byte(p[:cut]), []byte(p[cut:]))
				if err != nil || seq != uint64(m.next()) {
					t.Fatalf("Append: %d, %v; want %d", seq, err, m.next())
				}
				if near := m.next() < m.acked+mostKept; rapid.Bool().Draw(t, "keep") && s.Keep(seq, p) != near {
					t.Fatalf("Keep of %d with %d acknowledged: %v", seq, m.acked, !near)
				}
				m.unsynced = append(m.unsynced, p)
				if got := int(s.Stats().Pending) + m.acked; got > len(m.synced) { // a full segment was synced
					n := got - len(m.synced)
					m.synced, m.unsynced = append(m.synced, m.unsynced[:n]...), m.unsynced[n:]
				}
			},
			"sync": func(t *rapid.T) {
				if err := s.Sync(); err != nil {
					t.Fatal(err)
				}
				m.synced, m.unsynced = append(m.synced, m.unsynced...), nil
			},
			"next": func(t *rapid.T) {
				got := drain(t, s)
				var want []string
				for ; m.read < len(m.synced); m.read++ {
					if !m.lost[m.read] {
						want = append(want, m.synced[m.read])
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("read %.40q, want %.40q", got, want)
				}
				if acked := int(s.Stats().Acked); acked > m.acked { // lost records are passed
					m.acked = acked
				}
			},
			"ack": func(t *rapid.T) {
				if m.read == 0 {
					t.Skip("nothing read")
				}
				seq := rapid.IntRange(0, m.read-1).Draw(t, "seq")
				if err := s.Ack(uint64(seq)); err != nil {
					t.Fatal(err)
				}
				m.acked = max(m.acked, seq+1)
				for m.lost[m.acked] && m.acked < m.read {
					m.acked++
				}
				if got := int(s.Stats().Acked); got != m.acked {
					t.Fatalf("acked %d, want %d", got, m.acked)
				}
			},
			"rewind": func(*rapid.T) {
				s.Rewind()
				m.read = m.acked
			},
			"close": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				m.synced, m.unsynced, m.cursor = append(m.synced, m.unsynced...), nil, m.acked
				rec := open()
				if rec.TornBytes != 0 || rec.Quarantined != 0 {
					t.Fatalf("after Close: %+v", rec)
				}
				reopened(rec)
			},
			"new epoch": func(t *rapid.T) {
				epoch, err := s.NewEpoch(0)
				if pending := m.next() - m.acked; pending > 0 {
					if err == nil {
						t.Fatalf("new epoch with %d pending", pending)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				*m = model{epoch: epoch, lost: map[int]bool{}, count: m.count}
			},
			"crash": func(t *rapid.T) {
				s.write.Lock()
				if s.file != nil {
					if err := s.flush(); err != nil {
						t.Fatal(err)
					}
				}
				s.write.Unlock()
				g := s.segs[len(s.segs)-1]
				from, durable, before := dir, g.size, len(m.unsynced)
				dir = newDir()
				copyDir(t, from, dir)
				path := filepath.Join(dir, g.name())
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				keep := rapid.Int64Range(durable, info.Size()).Draw(t, "keep")
				b, _ := os.ReadFile(path)
				b = b[:keep]
				b = append(b, rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "garbage")...)
				os.WriteFile(path, b, 0o644)
				cur, found, _, _ := readCursor(osDisk{dir, noSync})
				s.Close()
				os.RemoveAll(from)

				rec := open()
				if found && cur.epoch == m.epoch {
					m.cursor = int(cur.acked)
				}
				m.acked = max(m.cursor, int(s.segs[0].first))
				survived := int(s.NextSeq()) - len(m.synced)
				if survived < 0 || survived > before || rec.Quarantined != 0 {
					t.Fatalf("%d of %d unsynced records survived: %+v", survived, before, rec)
				}
				m.synced, m.unsynced = append(m.synced, m.unsynced[:survived]...), nil
				reopened(rec)
			},
			"flip": func(t *rapid.T) {
				s.Close()
				m.synced, m.unsynced, m.cursor = append(m.synced, m.unsynced...), nil, m.acked
				defer func() { reopened(open()) }()
				segs, err := listSegments(osDisk{dir, noSync})
				if err != nil {
					t.Fatal(err)
				}
				segs = slices.DeleteFunc(segs, func(g *segment) bool { return g.epoch != m.epoch })
				i := rapid.IntRange(0, len(segs)-1).Draw(t, "file")
				g := segs[i]
				path := filepath.Join(dir, g.name())
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if len(b) == 0 {
					return
				}
				at := rapid.IntRange(0, len(b)-1).Draw(t, "byte")
				seq, ok := recordAt(g, b, int64(at))
				last := i == len(segs)-1 && int(seq) == len(m.synced)-1
				if !ok || int(seq) < m.acked {
					return // nothing more to lose there
				}
				b[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				os.WriteFile(path, b, 0o644)
				if last { // looks like a torn tail
					m.synced = m.synced[:seq]
					return
				}
				m.lost[int(seq)] = true
			},
		})
	})
}

// recordAt returns the seq of the good record that holds byte at of the segment.
// ok is false in a hole and in bytes that are damaged already.
func recordAt(g *segment, b []byte, at int64) (seq uint64, ok bool) {
	sc := &scanner{file: bytesReader(b), epoch: g.epoch, end: int64(len(b))}
	for {
		from := sc.off
		h, _, err := sc.next()
		if err == errDamaged {
			var found bool
			if found, err = sc.resync(0, maxSeq); found {
				continue
			}
		}
		if err != nil || at < from || sc.off == from {
			return 0, false
		}
		if at < sc.off {
			return h.seq, !h.hole()
		}
	}
}

type bytesReader []byte

func (b bytesReader) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(b).ReadAt(p, off)
}

func copyDir(t *rapid.T, from, to string) {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
