package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// badDisk is a folder with a sector that cannot be read, and may be full.
type badDisk struct {
	spool.Disk
	name   string // of the file with the sector; empty: none
	sector int64
	full   atomic.Bool
	refuse atomic.Int32 // so many writes of windows
}

type badFile struct {
	spool.File
	d   *badDisk
	bad bool
}

func (d *badDisk) Open(name string) (spool.File, error) {
	f, err := d.Disk.Open(name)
	return badFile{f, d, name == d.name}, err
}

func (d *badDisk) OpenWrite(name string) (spool.File, error) {
	f, err := d.Disk.OpenWrite(name)
	return badFile{f, d, name == d.name}, err
}

func (d *badDisk) Rename(from, to string) error {
	err := d.Disk.Rename(from, to)
	if to == d.name && err == nil {
		d.name = "" // another file has the name now
	}
	return err
}

func (d *badDisk) Create(name string) (spool.File, error) {
	if d.full.Load() && strings.HasSuffix(name, ".tmp") && strings.Contains(name, ".seg") {
		return nil, syscall.ENOSPC
	}
	f, err := d.Disk.Create(name)
	if strings.HasSuffix(name, ".seg") {
		return badFile{f, d, false}, err
	}
	return f, err
}

func (f badFile) WriteAt(b []byte, off int64) (int, error) {
	if f.d.refuse.Add(-1) >= 0 {
		return len(b) / 2, syscall.EIO
	}
	return f.File.WriteAt(b, off)
}

func (f badFile) ReadAt(b []byte, off int64) (int, error) {
	from := f.d.sector * spool.SectorSize
	if !f.bad || off >= from+spool.SectorSize || off+int64(len(b)) <= from {
		return f.File.ReadAt(b, off)
	}
	n, _ := f.File.ReadAt(b[:max(0, from-off)], off)
	return n, syscall.EIO
}

// A sector of the spool that cannot be read takes the window in it, and no other,
// and stops nothing; also where the disk has no room at first to set it aside.
func TestBadSectorOfTheSpool(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		p := newPlantOnDisk(t)
		if err := os.MkdirAll(p.spool, 0o755); err != nil {
			t.Fatal(err)
		}
		addr := p.broker.Addr()
		p.broker.Close()
		d := &badDisk{Disk: spool.Dir(p.spool)}
		s := &sender{layout: p.layout}
		for i := range int64(40) { // a window is two samples
			s.blocks = append(s.blocks, source.Block{Block: signal.Block{
				Context: signal.Context{Machine: lathe}, Session: 1, First: i, Time: time.Unix(1767592800+i/2, 0), Samples: [][]float32{{float32(i)}},
			}})
		}
		open := func(s *sender) *Gateway {
			g, err := New(Config{
				Source: s, Window: window.DefaultSpec, SpoolDir: p.spool, Disk: d, SpoolBytes: 100_000, Bus: p.bus, Log: zerolog.New(&p.log),
			})
			if err != nil {
				t.Fatal(err)
			}
			g.patience = 0
			return g
		}
		g := open(s)
		stopped, stop := context.WithCancel(t.Context())
		g.cfg.OnCut = func(c source.Cut) {
			if c.Gap != nil || c.Window.Seq == 19 {
				stop()
			}
		}
		if err := g.Run(stopped); err != nil {
			t.Fatal(err)
		}
		pending := g.Stats().Pending
		g.Close()
		l, err := spool.List(d)
		if err != nil || len(l.Segments) < 3 || pending < 19 {
			t.Fatalf("%d windows in %d segments, %v", pending, len(l.Segments), err)
		}
		d.name, d.sector = l.Segments[0].Name, 1
		d.full.Store(full)
		p.start(addr)
		g = open(&sender{layout: p.layout})
		if full {
			go func() {
				for !strings.Contains(p.log.String(), "cannot rescue the good windows of a damaged spool") && t.Context().Err() == nil {
					time.Sleep(time.Millisecond)
				}
				d.full.Store(false)
			}()
		}
		g.patience = patience
		if err := g.Run(t.Context()); err != nil {
			t.Fatalf("full %v: %v\n%s", full, err, p.log.String())
		}
		stats := g.Stats()
		g.Close()
		if stats.Damaged != 1 || stats.DamagedBytes < 1000 || stats.Pending != 0 {
			t.Errorf("full %v: %+v", full, stats)
		}
		if want := fmt.Sprintf(`"event":"windows_damaged","windows":1,"bytes":%d,`, stats.DamagedBytes); strings.Count(p.log.String(), want) != 1 {
			t.Errorf("full %v: no %s once in\n%s", full, want, p.log.String())
		}
		var seqs []string
		err = bus.ReadTopic(t.Context(), p.bus, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
			seqs = append(seqs, string(m.Header("seq")))
			return nil
		})
		if err != nil || len(seqs) != int(pending)-1 || slices.Contains(seqs, "0") {
			t.Errorf("full %v: windows %v of %d, %v", full, seqs, pending, err)
		}
	}
}

// A disk that refuses a window once or twice stops nothing and loses nothing; one that
// goes on refusing is said to be what it is.
func TestDiskRefuses(t *testing.T) {
	t.Parallel()
	for times, fails := range map[int32]bool{1: false, 2: false, 1000: true} {
		p := newPlant(t)
		if err := os.MkdirAll(p.spool, 0o755); err != nil {
			t.Fatal(err)
		}
		d := &badDisk{Disk: spool.Dir(p.spool)}
		s := &sender{layout: p.layout}
		for i := range int64(40) {
			s.blocks = append(s.blocks, source.Block{Block: signal.Block{
				Context: signal.Context{Machine: lathe}, Session: 1, First: i, Time: time.Unix(1767592800+i/2, 0), Samples: [][]float32{{float32(i)}},
			}})
		}
		g, err := New(Config{
			Source: s, Window: window.DefaultSpec, SpoolDir: p.spool, Disk: d, Bus: p.bus, Log: zerolog.New(&p.log),
			OnCut: func(c source.Cut) {
				if c.Window != nil && c.Window.Seq == 10 {
					d.refuse.Store(times)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = g.Run(t.Context())
		d.refuse.Store(0)
		if errors.Is(err, syscall.EIO) != fails || !fails && err != nil {
			t.Errorf("%d times: %v", times, err)
		}
		g.Close()
		seqs := p.sent()[g.spool.Epoch()]
		if want := map[bool]int{false: 20, true: 10}[fails]; len(seqs) != want {
			t.Errorf("%d times: %d windows delivered, want %d", times, len(seqs), want)
		}
	}
}
