// Package archive keeps what Kafka forgets: features, results, alerts and labels as Parquet files in a folder,
// topic/machine=…/day=…, for as long as its owner wants.
//
// Messages of a partition become batches, whose bounds depend on the messages alone. A batch is one file for each machine
// and day; the name of each says how many files the batch has. So the names in the folder say where to go on: behind the
// newest batch of a partition, or at its beginning if files of it are missing. A run that is killed or repeated leaves the
// same bytes.
package archive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event/labels"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Config says what to archive, and where.
type Config struct {
	Bus         bus.Config
	Dir         string           // it is made if it is not there
	Layouts     []*signal.Layout // of machines whose features are archived
	SkipUnknown bool             // leave out features of other layouts; else Run ends with an error that names the layout
	Keep        time.Duration    // days whose newest message Kafka got longer ago are removed; 0: none
	KeepBytes   int64            // the oldest days are removed beyond it; 0: none
	Follow      time.Duration    // go on, and ask after each such time; 0: end when caught up
	Now         func() time.Time // for Keep
	Progress    func(phase string, done, total int)
	Log         zerolog.Logger

	cells int                // of a batch at most; 0: batchCells
	step  func(string) error // before each change of a file; tests stop there

	identify func(context.Context, bus.Config, string) (string, int, error) // nil: bus.Identify
}

// batchCells is how many cells a batch has at most, 24 bytes each in memory.
const batchCells = 4 << 20

// Report says what a run did.
type Report struct {
	Rows    map[string]int // by folder of the topic
	Files   int
	Bytes   int64
	LeftOut map[string]int   // messages, by reason
	Lost    map[string]int64 // offsets that Kafka removed before they were archived, by topic and partition
	Merged  int              // days of machines
	Removed int              // days of machines
}

type run struct {
	Config
	Report
	reader *reader
	lives  labels.Lives
	fresh  map[string]bool // folders of days that this look at Kafka wrote into

	receipts map[string]time.Time // of files, see receivedBy
}

// Run archives what is new, merges days that are over, and removes what is not to be kept. It returns the error of ctx if
// it follows.
func Run(ctx context.Context, cfg Config) (Report, error) {
	r := &run{Config: cfg, Report: Report{Rows: make(map[string]int), LeftOut: make(map[string]int), Lost: make(map[string]int64)}, receipts: make(map[string]time.Time)}
	r.cells = cmp.Or(r.cells, batchCells)
	if r.step == nil {
		r.step = func(string) error { return nil }
	}
	if r.identify == nil {
		r.identify = bus.Identify
	}
	lock, err := r.take()
	if err != nil {
		return r.Report, err
	}
	defer lock.Close()
	onDamage := r.Bus.OnDamage
	r.Bus.OnDamage = func(err error) {
		r.leaveOut("damaged", err)
		if onDamage != nil {
			onDamage(err)
		}
	}
	for {
		if err := r.once(ctx); err != nil || r.Follow == 0 {
			return r.Report, err
		}
		select {
		case <-ctx.Done():
			return r.Report, ctx.Err()
		case <-time.After(r.Follow):
		}
	}
}

// take takes the folder for this run.
func (r *run) take() (*flock.Flock, error) {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	path := filepath.Join(r.Dir, ".lock")
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("archive: %s: %w", path, err)
	}
	if !locked {
		who, _ := os.ReadFile(filepath.Join(r.Dir, ".owner"))
		return nil, fmt.Errorf("archive: folder %s: another run is at work there (%s): wait until it ends, or give this one a folder of its own", r.Dir, cmp.Or(string(who), "it does not say which"))
	}
	host, _ := os.Hostname()
	who := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	if err := os.WriteFile(filepath.Join(r.Dir, ".owner"), []byte(who), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("archive: %w", err), lock.Close())
	}
	return lock, os.RemoveAll(filepath.Join(r.Dir, staging)) // of a run that was killed
}

// once catches up with all topics, once all of them are those that the folder is of.
func (r *run) once(ctx context.Context) (err error) {
	cfg := r.Bus
	cfg.OnDamage = func(error) {} // the topic is read again below
	if r.lives, err = labels.ReadLives(ctx, cfg); err != nil {
		return fmt.Errorf("archive: %s: %w", bus.TopicAlerts, err)
	}
	var all []*state
	r.fresh = make(map[string]bool)
	for i, t := range topics {
		s, err := r.examine(ctx, t)
		if errors.Is(err, bus.ErrNoTopic) && (i < len(topics)-1 || len(all) > 0) { // one of them is there
			r.Log.Info().Str("topic", t.name).Msg("Kafka has no such topic: it is not archived")
			continue
		}
		if err != nil {
			return fmt.Errorf("archive: %s: %w", t.name, err)
		}
		all = append(all, s)
	}
	var failed error // of a topic; Kafka would remove what the others have
	for _, s := range all {
		if err := r.topic(ctx, s); err != nil {
			failed = errors.Join(failed, fmt.Errorf("archive: %s: %w", s.name, err))
		}
		if ctx.Err() != nil {
			return failed
		}
	}
	return errors.Join(failed, r.retain())
}

// state is what Kafka and the folder have of a topic before a run changes anything.
type state struct {
	topic
	id         string // that Kafka gave it; empty: none
	partitions []bus.Extent
	newest     map[int]*batch
}

// examine finds out where to go on, and that the topic is the one that the folder is of.
func (r *run) examine(ctx context.Context, t topic) (*state, error) {
	id, n, err := r.identify(ctx, r.Bus, t.name)
	if err != nil {
		return nil, err
	}
	files, err := list(r.Dir, t.folder)
	if err != nil {
		return nil, err
	}
	s := &state{topic: t, id: id, partitions: make([]bus.Extent, n), newest: newest(files)}
	for p := range n {
		if s.partitions[p].First, s.partitions[p].End, err = bus.Bounds(ctx, r.Bus, t.name, p); err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
	}
	for p, last := range s.newest {
		if err := r.same(ctx, s, p, last); err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
	}
	return s, nil
}

// remedy is what to do if a topic is not the one that the folder is of.
const remedy = "give the new topic a folder of its own with --out"

// same returns an error if a partition is not the one that a batch is of. A broker that gives topics no id is asked for
// the last message of the batch instead.
func (r *run) same(ctx context.Context, s *state, p int, last *batch) error {
	m, _, err := readMeta(filepath.Join(r.Dir, last.file))
	if err != nil {
		return err
	}
	another := fmt.Errorf("the topic was deleted and made again since %s was written: %s", last.file, remedy)
	switch {
	case p >= len(s.partitions), m.TopicID != s.id && m.TopicID != "" && s.id != "":
		return another
	case last.last >= s.partitions[p].End:
		return fmt.Errorf("the folder has offset %d, and Kafka only those below %d: the topic was made again, or lost its newest messages: %s", last.last, s.partitions[p].End, remedy)
	case m.TopicID != "" && s.id != "" || m.Last < s.partitions[p].First, m.Received.IsZero(): // a build before files had it
		return nil
	}
	return bus.ReadRange(ctx, r.Bus, s.name, p, bus.Range{From: m.Last, To: m.Last + 1}, func(msg bus.Message) error {
		if msg.Offset == m.Last && !msg.Time.Equal(m.Received) {
			return another
		}
		return nil
	})
}

func (r *run) topic(ctx context.Context, s *state) error {
	r.reader = newReader(s.topic, r.Layouts)
	r.reader.lives = r.lives
	var failed error
	for p := range s.partitions {
		err := r.partition(ctx, s, p)
		if _, unknown := errors.AsType[*unknownLayout](err); unknown {
			failed = errors.Join(failed, fmt.Errorf("partition %d: %w", p, err))
		} else if err != nil {
			return fmt.Errorf("partition %d: %w", p, err)
		}
		r.Progress("archiving "+s.folder, p+1, len(s.partitions))
	}
	return errors.Join(failed, r.merge(s.topic))
}

// partition archives what is new in a partition, after the newest batch is whole.
func (r *run) partition(ctx context.Context, s *state, p int) error {
	first, end, last := s.partitions[p].First, s.partitions[p].End, s.newest[p]
	next := first
	if last != nil {
		if next = last.last + 1; last.found < last.files {
			r.lost(s.topic, p, last.first, min(first, next))
			if err := r.batches(ctx, s, p, bus.Range{From: last.first, To: next}, last.files); err != nil {
				return err
			}
		}
	}
	r.lost(s.topic, p, next, first)
	if next == end {
		return nil
	}
	return r.batches(ctx, s, p, bus.Range{From: max(first, next)}, 0)
}

// lost says that Kafka has removed offsets before they were archived, all or some of them. What it removes of a compacted
// topic was corrected later, and is not lost.
func (r *run) lost(t topic, p int, from, to int64) {
	if from >= to || t.compacted {
		return
	}
	r.Lost[fmt.Sprintf("%s, partition %d", t.name, p)] += to - from
	r.Log.Warn().Str("topic", t.name).Int("partition", p).Int64("first", from).Int64("offsets", to-from).
		Msg("Kafka removed messages before they were archived: run the archive more often, or keep the topic for longer")
}

// batches writes the messages of a range. It is one batch of so many files, or, if there are none, any number of batches.
func (r *run) batches(ctx context.Context, s *state, p int, of bus.Range, files int) error {
	b := &rows{files: files, of: s, partition: p, first: of.From, last: -1, parts: make(map[string]*part)}
	err := bus.ReadRange(ctx, r.Bus, s.name, p, of, func(m bus.Message) error {
		if err := r.add(b, &m); err != nil {
			return err
		}
		if b.cells >= r.cells && files == 0 {
			next := m.Offset + 1
			if err := r.write(b); err != nil {
				return err
			}
			*b = rows{of: s, partition: p, first: next, last: -1, parts: make(map[string]*part)}
		}
		return nil
	})
	if files > 0 {
		b.last = of.To - 1 // the name that it had, also if Kafka has lost its end
	}
	if _, unknown := errors.AsType[*unknownLayout](err); err == nil || unknown { // what came before it is kept
		err = errors.Join(r.write(b), err)
	}
	return err
}

// add adds the row of a message to a batch, or counts the message if it is left out.
func (r *run) add(b *rows, m *bus.Message) error {
	w, err := r.reader.read(m)
	switch _, unknown := errors.AsType[*unknownLayout](err); {
	case err == nil:
		b.add(w)
	case unknown && !r.SkipUnknown:
		return fmt.Errorf("offset %d: %w", m.Offset, err)
	case unknown:
		r.leaveOut("unknown layout", err)
	case errors.Is(err, errAnswer):
		r.LeftOut["answers to commands"]++
	default:
		r.leaveOut("damaged", fmt.Errorf("offset %d of partition %d of %s: %w", m.Offset, m.Partition, m.Topic, err))
	}
	return nil
}

func (r *run) leaveOut(why string, err error) {
	if r.LeftOut[why]++; r.LeftOut[why] == 1 {
		r.Log.Warn().Err(err).Str("because", why).Msg("left out a message; the number of such messages comes at the end")
	}
}

// rows are a batch.
type rows struct {
	of          *state
	partition   int
	first, last int64
	files       int // 0: as many as there are parts
	cells       int
	parts       map[string]*part // by folder and columns
}

// part is a file of a batch.
type part struct {
	name
	kind        *kind
	rows        [][]table.Cell
	began, ends int64     // offsets of its rows
	received    time.Time // when Kafka got the last one
}

func (b *rows) add(w row) {
	key := w.machine + "\x00" + w.day + "\x00" + w.kind.fingerprint
	p := b.parts[key]
	if p == nil {
		p = &part{name: name{topic: b.of.folder, machine: w.machine, day: w.day, partition: b.partition, columns: w.kind.fingerprint}, kind: w.kind, began: w.offset}
		b.parts[key] = p
	}
	p.rows, p.ends, p.received = append(p.rows, w.cells), w.offset, w.received
	b.last = w.offset
	b.cells += len(w.cells)
}

// write writes the files of a batch that are not there.
func (r *run) write(b *rows) error {
	for _, key := range slices.Sorted(maps.Keys(b.parts)) {
		p := b.parts[key]
		p.first, p.last, p.files = b.first, b.last, cmp.Or(b.files, len(b.parts))
		if _, err := os.Stat(filepath.Join(r.Dir, p.path())); err == nil {
			continue // of a run that was cut off
		}
		if err := r.save(p.name, r.Dir, p.kind, meta{First: p.began, Last: p.ends, Received: p.received, TopicID: b.of.id}, func(write func([]table.Cell) error) error {
			for _, row := range p.rows {
				if err := write(row); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		r.Rows[b.of.folder] += len(p.rows)
		r.fresh[p.folder()] = true
	}
	return nil
}

// metaKey is the key of meta in a file.
const metaKey = "flank.archive"

// meta is what a file says of itself.
type meta struct {
	Format    int       `json:"format"`
	Topic     string    `json:"topic"`
	Machine   string    `json:"machine"`
	Partition int       `json:"partition"`
	First     int64     `json:"first_offset"` // of a row
	Last      int64     `json:"last_offset"`
	Received  time.Time `json:"last_kafka_time"`    // of the last row
	TopicID   string    `json:"topic_id,omitempty"` // that Kafka gave it
	Rows      int       `json:"rows"`
	SHA256    string    `json:"sha256"` // of the rows
	Columns   string    `json:"columns"`
	Kinds     []int     `json:"kinds"` // of the columns, see table.SheetKind
	Features  *form     `json:"features,omitempty"`
}

// form says what features are.
type form struct {
	Layout      string           `json:"layout"`
	Fingerprint string           `json:"layout_fingerprint"`
	Channels    []signal.Channel `json:"channels"`
	LengthNS    time.Duration    `json:"window_length_ns"`
	Version     int              `json:"version"`
}

// format is the version of meta.
const format = 1

// save writes a file below a folder, atomically.
func (r *run) save(n name, dir string, k *kind, m meta, each func(func([]table.Cell) error) error) error {
	path := filepath.Join(dir, n.path())
	if err := r.step(path); err != nil {
		return err
	}
	m.Format, m.Topic, m.Machine, m.Partition, m.Columns = format, n.topic, n.machine, n.partition, k.fingerprint
	m.Features, m.Kinds = k.features, nil
	for _, c := range k.columns {
		m.Kinds = append(m.Kinds, int(c.Kind))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return config.WriteFileTo(path, func(w io.Writer) error {
		count := &counter{Writer: w}
		out := table.NewSheetWriter(count, "sheet", k.columns)
		out.Sum = sha256.New()
		if err := each(func(row []table.Cell) error { m.Rows++; return out.Write(row) }); err != nil {
			return err
		}
		if err := r.step(path + ": written"); err != nil {
			return err
		}
		m.SHA256 = hex.EncodeToString(out.Sum.Sum(nil))
		b, _ := json.Marshal(m) // it has nothing that JSON cannot say
		err := out.Close(metaKey, string(b))
		r.Files, r.Bytes = r.Files+1, r.Bytes+count.n
		return err
	})
}

// counter counts bytes.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return c.Writer.Write(b)
}
