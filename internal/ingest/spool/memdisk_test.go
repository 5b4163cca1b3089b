package spool

import (
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"
)

// memDisk is a disk in memory that breaks by a seed. What was not synced may be
// lost in a crash, sector by sector and in any order. After a failed sync the
// program still sees what it wrote, but some of it will never be on the disk.
type memDisk struct {
	rng   *rand.Rand
	seen  map[string]*memFile // as the program sees the folder
	disk  map[string]*memFile // as it will be after a crash
	names []func()            // changes of names that are not durable, in order

	faults  float64 // probability that an operation fails
	noSpace bool
}

const sector = 32 // bytes that are written together; records are small here

type memFile struct {
	d       *memDisk
	data    []byte // as the program sees it
	disk    []byte // as it will be after a crash
	pending []memWrite
	bad     map[int]bool // sectors of SectorSize bytes that cannot be read or written in part
}

// memWrite is a write that is not durable, or a truncation to off if b is nil.
type memWrite struct {
	off int
	b   []byte
}

func newMemDisk(rng *rand.Rand) *memDisk {
	return &memDisk{rng: rng, seen: map[string]*memFile{}, disk: map[string]*memFile{}}
}

func (d *memDisk) fails() bool { return d.rng.Float64() < d.faults }

func (d *memDisk) List() (map[string]FileInfo, error) {
	files := map[string]FileInfo{}
	for name, f := range d.seen {
		files[name] = FileInfo{Size: int64(len(f.data))}
	}
	return files, nil
}

func (d *memDisk) Open(name string) (File, error) {
	f := d.seen[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	if d.fails() {
		return nil, syscall.EIO
	}
	return f, nil
}

func (d *memDisk) OpenWrite(name string) (File, error) { return d.Open(name) }

func (d *memDisk) Create(name string) (File, error) {
	if d.fails() {
		return nil, syscall.EIO
	}
	if f := d.seen[name]; f != nil {
		return f, f.Truncate(0)
	}
	if d.noSpace && d.rng.IntN(2) == 0 {
		return nil, syscall.ENOSPC
	}
	f := &memFile{d: d}
	d.seen[name] = f
	d.names = append(d.names, func() { d.disk[name] = f })
	return f, nil
}

func (d *memDisk) Rename(from, to string) error {
	f := d.seen[from]
	if f == nil {
		return fs.ErrNotExist
	}
	if d.fails() {
		return syscall.EIO
	}
	delete(d.seen, from)
	d.seen[to] = f
	d.names = append(d.names, func() { delete(d.disk, from); d.disk[to] = f })
	return nil
}

func (d *memDisk) Remove(name string) error {
	if d.seen[name] == nil {
		return fs.ErrNotExist
	}
	if d.fails() {
		return syscall.EIO
	}
	delete(d.seen, name)
	d.names = append(d.names, func() { delete(d.disk, name) })
	return nil
}

func (d *memDisk) Sync() error {
	if d.fails() {
		return syscall.EIO
	}
	d.keepNames(len(d.names))
	return nil
}

// keepNames makes the first n changes of names durable.
func (d *memDisk) keepNames(n int) {
	for _, change := range d.names[:n] {
		change()
	}
	d.names = d.names[n:]
}

// crash leaves what a power cut leaves.
func (d *memDisk) crash() {
	d.keepNames(d.rng.IntN(len(d.names) + 1))
	d.names, d.faults, d.noSpace = nil, 0, false
	d.seen = map[string]*memFile{}
	for _, name := range sortedKeys(d.disk) {
		f := d.disk[name]
		f.keepSome()
		// A handle of the old file must not reach the new one.
		d.disk[name] = &memFile{d: d, data: slices.Clone(f.disk), disk: f.disk, bad: f.bad}
		d.seen[name] = d.disk[name]
	}
}

func sortedKeys(m map[string]*memFile) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := bytesReader(f.data).ReadAt(b, off)
	if first := f.firstBad(int(off), int(off)+n); first >= 0 {
		return max(0, first*SectorSize-int(off)), syscall.EIO
	}
	return n, err
}

// firstBad returns the first bad sector of the bytes [from, to), or -1.
func (f *memFile) firstBad(from, to int) int {
	for sector := from / SectorSize; sector*SectorSize < to; sector++ {
		if f.bad[sector] {
			return sector
		}
	}
	return -1
}

// spoil makes a sector unreadable.
func (f *memFile) spoil(sector int) {
	if f.bad == nil {
		f.bad = map[int]bool{}
	}
	f.bad[sector] = true
}

func (f *memFile) WriteAt(b []byte, off int64) (n int, err error) {
	n = len(b)
	switch {
	case f.d.noSpace:
		n, err = f.d.rng.IntN(len(b)+1), syscall.ENOSPC
	case f.firstBad(int(off), int(off)+n) >= 0: // a page that is written in part is read first
		n, err = 0, syscall.EIO
	case f.d.fails():
		n, err = f.d.rng.IntN(len(b)+1), syscall.EIO
	}
	at := int(off)
	for i := 0; i < n; i += sector {
		f.pending = append(f.pending, memWrite{at + i, slices.Clone(b[i:min(i+sector, n)])})
	}
	f.data = put(f.data, at, b[:n])
	return n, err
}

// put returns data with b at off; what lies between is zero.
func put(data []byte, off int, b []byte) []byte {
	if grow := off + len(b) - len(data); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	copy(data[off:], b)
	return data
}

func (f *memFile) Truncate(size int64) error {
	if f.d.fails() {
		return syscall.EIO
	}
	if int(size) < len(f.data) {
		f.data = f.data[:size:size]
		f.pending = append(f.pending, memWrite{off: int(size)})
	}
	return nil
}

func (f *memFile) Sync() error {
	if f.d.fails() {
		f.keepSome()
		return syscall.EIO
	}
	for _, w := range f.pending {
		f.keep(w)
	}
	f.pending = nil
	return nil
}

// keepSome makes some of the pending writes durable and forgets the others.
func (f *memFile) keepSome() {
	f.d.rng.Shuffle(len(f.pending), func(i, j int) { f.pending[i], f.pending[j] = f.pending[j], f.pending[i] })
	for _, w := range f.pending[:f.d.rng.IntN(len(f.pending)+1)] {
		f.keep(w)
	}
	f.pending = nil
}

func (f *memFile) keep(w memWrite) {
	if w.b == nil {
		f.disk = f.disk[:min(w.off, len(f.disk)):min(w.off, len(f.disk))]
		return
	}
	f.disk = put(f.disk, w.off, w.b)
}

func (f *memFile) Close() error { return nil }

// flip damages one bit that is on the disk.
func (f *memFile) flip(at, bit int) {
	f.data[at] ^= 1 << bit
	if at < len(f.disk) {
		f.disk[at] ^= 1 << bit
	}
}
