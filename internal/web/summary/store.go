package summary

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// File is the name of the store's file in its folder.
const File = "history.db"

// fileVersion is the version of the file. A program reads files of its own version only.
const fileVersion = "1"

// When what was folded is written.
const (
	flushEvery   = 30 * time.Second
	flushResults = 20_000
	flushEvents  = 1000
	flushRows    = 8192
	maxCached    = 4096 // machines in memory
	lockPatience = 500 * time.Millisecond
)

// Errors of a store.
var (
	// ErrNoMachine is returned for a machine that the store does not hold.
	ErrNoMachine = errors.New("summary: no history of this machine")
	// ErrNoAlarm is returned for an incident that the store does not hold.
	ErrNoAlarm = errors.New("summary: no alarm of this name, or it is older than the history")
	// ErrDamaged is returned when the file cannot be read. SetAside begins a new one.
	ErrDamaged = errors.New("the file is damaged")
	// errInUse is returned by Open if another program has the file open.
	errInUse = errors.New("another program has it open")
)

// Buckets of the file. The bucket machines has a bucket for each machine under its id, with the
// other buckets below. Names have ids, so that a machine can get another name.
var (
	inMeta     = []byte("meta")     // version, group
	inOffsets  = []byte("offsets")  // topic, 0, partition → offset, id of the topic
	inNames    = []byte("names")    // machine → id
	inGone     = []byte("gone")     // machine that was retired or renamed → goneName
	inMachines = []byte("machines") //
	inByTime   = []byte("alarms")   // time, incident → id of the machine
	inByName   = []byte("incidents")

	keyHead    = []byte("head")    // head
	keyAlert   = []byte("alert")   // event.Alert: the last one that says in which state the alarm is
	inMinutes  = []byte("minutes") // time → row
	inHours    = []byte("hours")   // time → row
	inHoles    = []byte("holes")   // time, id of a life → hole
	inLives    = []byte("lives")   // id → life
	inCalled   = []byte("called")  // id of a life → calledVersion, event.Result.ToolLife; not of lives of which only late windows without one came
	inUsual    = []byte("usual")   // id of a life → Usual
	inTools    = []byte("tools")   // name → id of its last life
	inAlarms   = []byte("alarms")  // time, incident → Alarm
	inEvents   = []byte("events")  // incident, 0, id of the event → storedEvent
	inAdvice   = []byte("advice")  // time, kind, 0, subject → AdvisorySpan
	inOpenNow  = []byte("open")    // kind, 0, subject → event.Advisory
	keyVersion = []byte("version")
	keyGroup   = []byte("group")

	topBuckets = [][]byte{inMeta, inOffsets, inNames, inGone, inMachines, inByTime, inByName}
)

// Store is the history of the machines of a group, in one file. What is folded is kept in
// memory for at most half a minute and then written in one transaction with the offsets up to
// which the topics were folded: a program that is killed folds the rest again. The methods are
// safe for concurrent use.
type Store struct {
	file   file
	group  string
	minute time.Duration // how long minutes are kept
	hour   time.Duration
	now    func() time.Time // replaced by tests
	remove func()           // what is left of a file in memory; nil: nothing

	mu       sync.Mutex
	names    nameTable
	offsets  map[partitionKey]offset
	machines map[uint64]*machine // those that were used since the cache was last emptied

	moved   map[partitionKey]bool // offsets that are not written
	events  []heldEvent           // alerts, advisories and evidence that are not written, in order
	results int                   // that are not written
	rows    int
	since   time.Time // when the oldest of what is not written was folded
	pruned  time.Time
	viewed  time.Time // when a query last made the store write
}

// file is where a store writes.
type file struct {
	path string // empty: in memory
	db   *bbolt.DB
}

type partitionKey struct {
	topic     string
	partition int
}

// offset is how far a partition was folded.
type offset struct {
	next int64
	id   [16]byte // of the topic
}

// Open opens the history of a group in a folder, which it makes if needed. A file that is
// damaged or of another release is moved aside, and notice says so in words: the history is then
// filled again from the topics. Open fails with errInUse if another program has the file open.
//
// Without a folder the store is in memory and holds one day.
func Open(dir, group string) (s *Store, notice string, err error) {
	s = &Store{group: group, minute: keepMinutes, hour: keepHours, now: time.Now}
	if dir == "" {
		s.minute, s.hour = 24*time.Hour, 24*time.Hour
		return s, "", s.open()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("folder for the history: %w", err)
	}
	s.file.path = filepath.Join(dir, File)
	err = s.open()
	if errors.Is(err, ErrDamaged) {
		notice, err = s.aside(err)
	}
	if err != nil {
		return nil, notice, err
	}
	return s, notice, nil
}

// InMemory reports whether the store has no folder.
func (s *Store) InMemory() bool { return s.file.path == "" }

// open opens the file and reads what is kept in memory.
func (s *Store) open() (err error) {
	opts := &bbolt.Options{Timeout: lockPatience, FreelistType: bbolt.FreelistMapType}
	name := s.file.path
	var file *os.File
	if name == "" {
		if file, s.remove, err = memoryFile(); err != nil {
			return fmt.Errorf("history in memory: %w: name a folder in history.dir", err)
		}
		name = file.Name()
		opts.OpenFile = func(string, int, os.FileMode) (*os.File, error) { return file, nil }
	} else {
		opts.OpenFile = func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		}
	}
	err = s.file.safely(func() (err error) {
		s.file.db, err = bbolt.Open(name, 0o600, opts)
		return err
	})
	if err == nil {
		s.file.db.AllocSize = 4 << 20
		if err = s.file.safely(s.load); err != nil {
			err = errors.Join(err, s.file.db.Close())
		}
		return err
	}
	s.file.db = nil
	if file != nil {
		file.Close() // also after a panic, so that its lock ends
	}
	switch _, isPath := errors.AsType[*fs.PathError](err); {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s: %w: stop that program, or give this one a folder of its own in history.dir", s.file.path, errInUse)
	case errors.Is(err, fs.ErrPermission) || isPath:
		return fmt.Errorf("history: %w: name a folder in history.dir that this program may write to", err)
	case errors.Is(err, ErrDamaged):
		return err
	}
	return fmt.Errorf("%s: %w: %w", s.file.path, ErrDamaged, err)
}

// load reads what is kept in memory, after it made what a new file needs.
func (s *Store) load() error {
	s.machines = make(map[uint64]*machine)
	s.written()
	s.names.of, s.names.gone, s.offsets = make(map[string]uint64), make(map[string]goneName), make(map[partitionKey]offset)
	if err := s.file.cutShort(); err != nil {
		return err
	}
	err := s.file.db.Update(func(tx *bbolt.Tx) error { return s.file.prepare(tx, s.group) })
	if err != nil {
		return err
	}
	return s.file.db.View(s.loadNames)
}

// cutShort reports a file that ends before its pages do. Reading them would end the program.
func (x *file) cutShort() error {
	if x.path == "" {
		return nil
	}
	info, err := os.Stat(x.path)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return x.db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("%s: %w: it has %d bytes and should have %d", x.path, ErrDamaged, info.Size(), tx.Size())
		}
		return nil
	})
}

// prepare makes the buckets of a new file, and checks version and group of others.
func (x *file) prepare(tx *bbolt.Tx, group string) error {
	meta := tx.Bucket(inMeta)
	if meta == nil && tx.Cursor().Bucket().Stats().BucketN > 1 {
		return fmt.Errorf("%s: %w: another program made it", x.path, ErrDamaged)
	}
	if meta != nil {
		if v := string(meta.Get(keyVersion)); v != fileVersion {
			return fmt.Errorf("%s: %w for this release: it is in version %.20q, and this release reads version %s", x.path, ErrDamaged, v, fileVersion)
		}
		if g := string(meta.Get(keyGroup)); g != group {
			return fmt.Errorf("%s: it holds the history of group %s, and this monitor is of group %s: give each group a folder of its own in history.dir", x.path, g, group)
		}
	}
	for _, name := range topBuckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if meta != nil {
		return nil
	}
	meta = tx.Bucket(inMeta)
	return errors.Join(meta.Put(keyVersion, []byte(fileVersion)), meta.Put(keyGroup, []byte(group)))
}

// loadNames reads names and offsets.
func (s *Store) loadNames(tx *bbolt.Tx) error {
	s.names.last = tx.Bucket(inMachines).Sequence()
	err := tx.Bucket(inNames).ForEach(func(k, v []byte) error {
		if len(v) != 8 {
			return fmt.Errorf("%s: %w: the name of a machine", s.file.path, ErrDamaged)
		}
		s.names.of[string(k)] = binary.BigEndian.Uint64(v)
		return nil
	})
	if err != nil {
		return err
	}
	err = tx.Bucket(inGone).ForEach(func(k, v []byte) error {
		var g goneName
		if err := json.Unmarshal(v, &g); err != nil {
			return fmt.Errorf("%s: %w: a machine that is gone: %w", s.file.path, ErrDamaged, err)
		}
		s.names.gone[string(k)] = g
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Bucket(inOffsets).ForEach(func(k, v []byte) error {
		i := len(k) - 5
		if i < 0 || len(v) != 24 {
			return fmt.Errorf("%s: %w: an offset", s.file.path, ErrDamaged)
		}
		s.offsets[partitionKey{string(k[:i]), int(binary.BigEndian.Uint32(k[i+1:]))}] = offset{int64(binary.BigEndian.Uint64(v)), [16]byte(v[8:])}
		return nil
	})
}

func (k partitionKey) bytes() []byte {
	return binary.BigEndian.AppendUint32(append([]byte(k.topic), 0), uint32(k.partition))
}

// aside moves a damaged file away and opens a new one.
func (s *Store) aside(why error) (notice string, err error) {
	to := s.file.path + ".damaged-" + s.now().UTC().Format("20060102T150405Z")
	old, err := filepath.Glob(s.file.path + ".damaged-*")
	if err == nil {
		for _, name := range old { // one is enough to look for the cause
			os.Remove(name)
		}
		err = os.Rename(s.file.path, to)
	}
	if err != nil {
		return "", fmt.Errorf("%w; it cannot be moved aside: %w: remove it, and the history is filled again from the topics", why, err)
	}
	return fmt.Sprintf("%v: moved to %s, filling the history again from the topics, which hold 30 days of results", why, to), s.open()
}

// SetAside moves the file away after an error that is ErrDamaged, and begins a new one. The
// notice says so in words. Fold then expects messages from where Begin says.
func (s *Store) SetAside(why error) (notice string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.safely(func() error { return s.file.db.Close() })
	if s.file.path == "" {
		return fmt.Sprintf("%v: filling the history again from the topics", why), s.open()
	}
	return s.aside(why)
}

// Close writes what is not written, and closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.flush()
	if s.file.db != nil {
		err = errors.Join(err, s.file.db.Close())
	}
	if s.remove != nil {
		s.remove()
	}
	return err
}

// Begin returns the offset from which a partition of a topic has to be folded, or false if
// nothing of it was folded. A topic that was made again, which its id shows, or that lost what
// was folded, is folded from its beginning: what comes again does not count again.
func (s *Store) Begin(topic string, partition int, id [16]byte, lost bool) (next int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.offsets[partitionKey{topic, partition}]
	if !ok || lost || at.id != id && at.id != ([16]byte{}) && id != ([16]byte{}) {
		return 0, false
	}
	return at.next, true
}

// Forget drops what was folded and not written, after an error of Fold or Flush. Begin then
// says where to go on.
func (s *Store) Forget() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.safely(func() error { return s.load() })
}

// written says that nothing is left to write.
func (s *Store) written() {
	s.moved = make(map[partitionKey]bool)
	s.events, s.names.drops, s.results, s.rows, s.names.changed, s.since = nil, nil, 0, 0, false, time.Time{}
}

// Flush writes what was folded.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush()
}

// Tick writes what has waited for half a minute, and every hour removes what is too old. Call
// it every few seconds.
func (s *Store) Tick() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() && s.now().Sub(s.since) >= flushEvery {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if s.now().Sub(s.pruned) < pruneEvery {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.pruned = s.now()
	return s.prune()
}

// flush writes what was folded, in one transaction. s.mu must be held.
func (s *Store) flush() error {
	if s.since.IsZero() {
		return nil
	}
	if err := s.file.safely(func() error { return s.file.db.Update(s.write) }); err != nil {
		return fmt.Errorf("history: %s: %w", s.file.path, err)
	}
	for _, id := range s.names.drops {
		delete(s.machines, id)
	}
	for _, m := range s.machines {
		m.written()
	}
	if len(s.machines) > maxCached {
		s.machines = make(map[uint64]*machine)
	}
	s.written()
	return nil
}

// write writes everything that changed.
func (s *Store) write(tx *bbolt.Tx) error {
	for _, id := range s.names.drops {
		if err := drop(tx, id); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.machines)) {
		if slices.Contains(s.names.drops, id) {
			continue
		}
		if err := s.machines[id].write(tx); err != nil {
			return err
		}
	}
	if err := tx.Bucket(inMachines).SetSequence(s.names.last); err != nil {
		return err
	}
	for _, e := range s.events {
		if slices.Contains(s.names.drops, e.id) {
			continue
		}
		if err := e.write(tx); err != nil {
			return err
		}
	}
	if err := s.names.write(tx); err != nil {
		return err
	}
	for k := range s.moved {
		at := s.offsets[k]
		v := append(binary.BigEndian.AppendUint64(nil, uint64(at.next)), at.id[:]...)
		if err := tx.Bucket(inOffsets).Put(k.bytes(), v); err != nil {
			return err
		}
	}
	return nil
}

// safely calls fn and returns ErrDamaged if a page of the file cannot be read.
func (x *file) safely(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer x.caught(&err)
	return fn()
}

// caught turns the panic of a damaged file into an error.
func (x *file) caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: %w: %v", x.path, ErrDamaged, r)
	}
}

// viewEvery bounds how often queries make the store write results that wait. Alerts are
// written for each query.
const viewEvery = time.Second

// view calls fn with what is written, after it wrote what waits. If that fails, as on a full
// disk, fn sees what was written before.
func (s *Store) view(fn func(tx *bbolt.Tx) error) error {
	s.mu.Lock()
	var err error
	if now := s.now(); len(s.events) > 0 || s.names.changed || now.Sub(s.viewed) >= viewEvery {
		err = s.flush()
		s.viewed = now
	}
	db := s.file.db
	s.mu.Unlock()
	if errors.Is(err, ErrDamaged) {
		return err
	}
	return s.file.safely(func() error { return db.View(fn) })
}
