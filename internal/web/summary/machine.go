package summary

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

// Bounds of what the store remembers of a machine.
const (
	maxRanges  = 200 // of the numbers of an epoch's windows; where more gaps are open, a window that lies in the oldest counts as a repeat
	maxEpochs  = 256 // whose windows are known; the one that was used longest ago goes
	maxRenewed = 256 // declarations of new tools
	maxWindow  = time.Hour
	maxAhead   = 24 * time.Hour // that the clock of a sensor may be ahead of Kafka's
)

// head is what the store remembers of a machine in addition to its rows.
type head struct {
	Epochs   map[string]*epoch  `json:"epochs"`
	Shadows  map[string]*epoch  `json:"shadows,omitempty"` // by epoch and model, of the results of shadows
	Strip    []stripe           `json:"strip"`
	Last     *event.Result      `json:"last,omitempty"`
	LastAt   int64              `json:"last_at"`         // when Kafka got it, Unix milliseconds
	Newest   int64              `json:"newest"`          // end of the newest window, Unix seconds
	NextLife uint32             `json:"next_life"`       // id of the last life
	New      map[string][]int64 `json:"new,omitempty"`   // tools that were declared new, and when Kafka got that
	Holes    []holeRef          `json:"holes,omitempty"` // open ones, the one that was used last at the end
	Alarms   ToolAlarms         `json:"alarms,omitempty"`
}

// epoch is what the store knows of the windows of an epoch.
type epoch struct {
	Seqs event.Seqs `json:"seqs"`
	Used int64      `json:"used"` // when Kafka got the last result, Unix milliseconds
}

// stripe is one verdict of the strip.
type stripe struct {
	At     int64  `json:"at"` // when Kafka got it, Unix milliseconds
	Letter string `json:"v"`
}

// machine is what of a machine is in memory: its head, and what is not written.
type machine struct {
	id      uint64
	head    head
	minutes map[int64]*row
	hours   map[int64]*row
	holes   map[string]*hole // by key
	usual   map[uint32]*keptUsual
	lives   map[uint32]*life
	tools   map[string]uint32 // ids of the last lives
	tallies map[tallyKey]*tally
	dirty   bool
}

// machine returns a machine, which may be new.
func (s *Store) machine(id uint64) (*machine, error) {
	if m := s.machines[id]; m != nil {
		return m, nil
	}
	m := &machine{id: id, head: head{Epochs: make(map[string]*epoch), New: make(map[string][]int64)}}
	m.written()
	err := s.file.get(id, nil, keyHead, func(v []byte) error {
		if err := json.Unmarshal(v, &m.head); err != nil {
			return fmt.Errorf("%s: %w: head of a machine: %w", s.file.path, ErrDamaged, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.head.Epochs == nil {
		m.head.Epochs = make(map[string]*epoch)
	}
	if m.head.Shadows == nil {
		m.head.Shadows = make(map[string]*epoch)
	}
	if m.head.New == nil {
		m.head.New = make(map[string][]int64)
	}
	s.machines[id] = m
	return m, nil
}

// written says that nothing is left to write.
func (m *machine) written() {
	m.minutes, m.hours = make(map[int64]*row), make(map[int64]*row)
	m.holes, m.usual = make(map[string]*hole), make(map[uint32]*keptUsual)
	m.lives, m.tools = make(map[uint32]*life), make(map[string]uint32)
	m.tallies = make(map[tallyKey]*tally)
	m.dirty = false
}

func idKey(id uint64) []byte     { return binary.BigEndian.AppendUint64(nil, id) }
func lifeKey(id uint32) []byte   { return binary.BigEndian.AppendUint32(nil, id) }
func toolKey(tool string) []byte { return append([]byte{'t'}, tool[:min(len(tool), maxToolName)]...) }

// bucketOf returns a bucket of a machine, or the machine's own if name is nil; nil if it
// is not there.
func bucketOf(tx *bbolt.Tx, id uint64, name []byte) *bbolt.Bucket {
	b := tx.Bucket(inMachines).Bucket(idKey(id))
	if b == nil || name == nil {
		return b
	}
	return b.Bucket(name)
}

// get calls fn with a value of a bucket of a machine, unless it is not there.
func (x *file) get(id uint64, bucket, key []byte, fn func(v []byte) error) error {
	return x.safely(func() error {
		return x.db.View(func(tx *bbolt.Tx) error {
			b := bucketOf(tx, id, bucket)
			if b == nil {
				return nil
			}
			if v := b.Get(key); v != nil {
				return fn(v)
			}
			return nil
		})
	})
}

// foldResult folds a result that Kafka got at a time.
func (s *Store) foldResult(r *event.Result, at time.Time) error {
	id, ok := s.names.resolve(r.Machine, at)
	if !ok {
		return nil // the machine was retired after that
	}
	m, err := s.machine(id)
	if err != nil {
		return err
	}
	if !m.first(m.head.Epochs, r.Epoch, r.Seq, at) {
		return nil // it is here already
	}
	m.head.Alarms.Result(r, at)
	if last := m.head.Last; last != nil && r.Between() { // the tool stays in
		named := *r
		named.Tool, named.ToolLife = last.Tool, last.ToolLife
		r = &named
	}
	start, end := spanOf(r, at)
	life, l, err := s.file.lifeOf(m, r, at)
	if err != nil {
		return err
	}
	one := rowOf(r, end, life)
	for _, in := range [...]struct {
		rows   map[int64]*row
		bucket []byte
		step   int64
	}{{m.minutes, inMinutes, 60}, {m.hours, inHours, 3600}} {
		t := floor(end.Unix(), in.step)
		into := in.rows[t]
		if into == nil {
			into = new(row)
			// A row that cannot be read counts from zero again: the file is not worth less for it.
			if err := s.file.get(id, in.bucket, timeKey(t), func(v []byte) error { _ = into.parse(v); return nil }); err != nil {
				return err
			}
			in.rows[t] = into
			s.rows++
		}
		into.add(&one)
	}
	if err := s.foldHole(m, r, start, end, &one); err != nil {
		return err
	}
	if err := s.file.foldUsual(m, life, r); err != nil {
		return err
	}
	l.fold(r, start, end)
	m.show(r, at, end)
	return s.count(m, r, end)
}

// spanOf returns when a window began and ended. A sensor without a clock, or with one that is
// more than a day ahead, gets Kafka's time.
func spanOf(r *event.Result, at time.Time) (start, end time.Time) {
	length := min(max(r.End.Sub(r.Start), 0), maxWindow)
	if y := r.End.UTC().Year(); y < 2 || y > 9998 || r.End.Sub(at) > maxAhead {
		return at.Add(-length), at
	}
	return r.End.Add(-length), r.End
}

// first remembers a window of an epoch among others. It reports false if it was folded before.
func (m *machine) first(in map[string]*epoch, name string, seq uint64, at time.Time) bool {
	e := in[name]
	if e == nil {
		e = new(epoch)
		in[name] = e
		if len(in) > maxEpochs {
			dropEpoch(in, name)
		}
	}
	if !e.Seqs.Add(seq, maxRanges) {
		return false
	}
	e.Used = max(e.Used, at.UnixMilli())
	m.dirty = true
	return true
}

// dropEpoch forgets the epoch that was used longest ago, but not the one to keep.
func dropEpoch(in map[string]*epoch, keep string) {
	oldest := ""
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if name != keep && (oldest == "" || in[name].Used < in[oldest].Used) {
			oldest = name
		}
	}
	delete(in, oldest)
}

// show notes the verdict for the strip, and the result as the last one.
func (m *machine) show(r *event.Result, at, end time.Time) {
	m.head.Newest = max(m.head.Newest, end.Unix())
	if r.Late {
		return
	}
	ms := at.UnixMilli()
	i := len(m.head.Strip)
	for i > 0 && m.head.Strip[i-1].At > ms {
		i--
	}
	m.head.Strip = slices.Insert(m.head.Strip, i, stripe{ms, string(StripLetter(r.Verdict))})
	if n := len(m.head.Strip) - MaxStrip; n > 0 {
		m.head.Strip = slices.Delete(m.head.Strip, 0, n)
	}
	if ms < m.head.LastAt {
		return
	}
	last := *r
	last.Posterior, last.Sensors, last.Ranges = nil, nil, nil
	m.head.Last, m.head.LastAt = &last, ms
}

// lifeOf returns the life of the tool of a result that Kafka got at a time, and the life's id. A
// tool without one gets one, and so does one that was declared new in between: an alert says so,
// or the result names another life than those before.
func (x *file) lifeOf(m *machine, r *event.Result, at time.Time) (id uint32, l *life, err error) {
	tool := r.Tool[:min(len(r.Tool), maxToolName)]
	id, ok := m.tools[tool]
	if !ok {
		err = x.get(m.id, inTools, toolKey(tool), func(v []byte) error {
			if len(v) == 4 {
				id = binary.BigEndian.Uint32(v)
			}
			return nil
		})
		if err != nil {
			return 0, nil, err
		}
	}
	if id != 0 {
		l, err = x.life(m, id)
		if err != nil {
			return 0, nil, err
		}
		for _, declared := range m.head.New[tool] {
			if l.begun < declared && declared < at.UnixMilli() {
				id = 0
			}
		}
		switch {
		case id == 0 || r.ToolLife == "" || at.UnixMilli() < l.begun:
		case !l.named: // late windows began it, which did not say
			l.called, l.named = r.ToolLife, true
		case l.called != r.ToolLife:
			id = 0
		}
	}
	if id == 0 {
		m.head.NextLife++
		m.dirty = true
		id, l = m.head.NextLife, newLife(tool, at.UnixMilli())
		l.called, l.named = r.ToolLife, r.ToolLife != "" || !r.Late // a late one is perhaps not of the tool that is known
		m.lives[id] = l
	}
	m.tools[tool] = id
	return id, l, nil
}

// life returns a life that is known.
func (x *file) life(m *machine, id uint32) (*life, error) {
	if l := m.lives[id]; l != nil {
		return l, nil
	}
	l := new(life)
	found := false
	err := x.get(m.id, inLives, lifeKey(id), func(v []byte) error {
		found = l.parse(v) == nil
		return nil
	})
	if !found {
		l = newLife("", 0)
	}
	m.lives[id] = l
	if err != nil {
		return l, err
	}
	return l, x.get(m.id, inCalled, lifeKey(id), func(v []byte) error { l.call(v); return nil })
}

// renew notes that a tool was declared new.
func (m *machine) renew(tool string, at time.Time) {
	tool = tool[:min(len(tool), maxToolName)]
	if slices.Contains(m.head.New[tool], at.UnixMilli()) {
		return
	}
	m.head.New[tool] = append(m.head.New[tool], at.UnixMilli())
	slices.Sort(m.head.New[tool])
	m.dirty = true
	for all := m.renewals(); len(all) > maxRenewed; all = all[1:] {
		times := m.head.New[all[0].tool]
		if m.head.New[all[0].tool] = times[1:]; len(times) == 1 {
			delete(m.head.New, all[0].tool)
		}
	}
}

type renewal struct {
	tool string
	at   int64
}

// renewals returns the declarations of new tools, the oldest first.
func (m *machine) renewals() (all []renewal) {
	for _, tool := range slices.Sorted(maps.Keys(m.head.New)) {
		for _, at := range m.head.New[tool] {
			all = append(all, renewal{tool, at})
		}
	}
	slices.SortStableFunc(all, func(a, b renewal) int { return cmp.Compare(a.at, b.at) })
	return all
}

// write writes what changed.
func (m *machine) write(tx *bbolt.Tx) error {
	if !m.dirty {
		return nil
	}
	b, err := tx.Bucket(inMachines).CreateBucketIfNotExists(idKey(m.id))
	if err != nil {
		return err
	}
	called := make(map[uint32]string)
	for id, l := range m.lives {
		if l.named {
			called[id] = l.called
		}
	}
	ofRow := func(r *row) []byte { return r.appendTo(nil) }
	return cmp.Or(
		b.Put(keyHead, event.JSON(m.head)),
		putAll(b, inMinutes, m.minutes, timeKey, ofRow),
		putAll(b, inHours, m.hours, timeKey, ofRow),
		putAll(b, inHoles, m.holes, func(key string) []byte { return []byte(key) }, func(h *hole) []byte { return h.appendTo(nil) }),
		putAll(b, inUsual, m.usual, lifeKey, func(u *keptUsual) []byte { return event.JSON(u) }),
		putAll(b, inTallies, m.tallies, tallyKey.bytes, func(t *tally) []byte { return t.appendTo(nil) }),
		putAll(b, inLives, m.lives, lifeKey, func(l *life) []byte { return l.appendTo(nil) }),
		putAll(b, inCalled, called, lifeKey, func(name string) []byte { return append([]byte{calledVersion}, name...) }),
		putAll(b, inTools, m.tools, toolKey, lifeKey))
}
