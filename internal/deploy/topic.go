package deploy

import (
	"context"
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/pkg/model"
)

// Topic is a book of the topic as it was read last, with the models that were loaded. It
// is not safe for concurrent use.
type Topic struct {
	cfg  bus.Config
	book *Book
	next int64 // offset to read next

	loaded map[string]loadedModel // by id
	failed map[string]failedLoad  // by id
}

// loadedModel is a model with the checksum of its file.
type loadedModel struct {
	sum   string
	model *model.Model
}

// failedLoad is why a model could not be loaded from parts at those offsets.
type failedLoad struct {
	sum     string
	offsets []int64
	err     error
}

// NewTopic returns a Topic that has read nothing yet.
func NewTopic(cfg bus.Config, keys Keys) *Topic {
	return &Topic{cfg: cfg, book: newBook(keys), next: bus.FirstOffset, loaded: make(map[string]loadedModel), failed: make(map[string]failedLoad)}
}

// Book returns the book. It must not be changed.
func (t *Topic) Book() *Book { return t.book }

// CatchUp reads all messages that are in the topic when it begins. It reports whether one
// of them may have changed what counts.
func (t *Topic) CatchUp(ctx context.Context) (changed bool, err error) {
	err = bus.ReadFrom(ctx, t.cfg, bus.TopicModels, 0, t.next, false, func(m bus.Message) error {
		changed = t.put(m) || changed
		return nil
	})
	return changed, err
}

// put takes the next message. A topic that was removed and made again begins again.
func (t *Topic) put(m bus.Message) bool {
	if m.Offset < t.next {
		t.book = newBook(t.book.keys)
	}
	t.next = m.Offset + 1
	return t.book.Put(m)
}

// Set returns the set that counts, and what is refused. It loads the models that
// deployments name, and forgets the others.
func (t *Topic) Set(ctx context.Context) (Set, []Refusal, error) {
	var broken error // of the bus
	s, refused := t.book.Set(func(id string) (*model.Model, error) {
		m, err := t.Model(ctx, id)
		if err != nil && ctx.Err() != nil {
			broken = ctx.Err()
		}
		return m, err
	})
	if broken != nil {
		return Set{}, nil, broken
	}
	used := make(map[string]bool)
	for _, m := range s.Models() {
		used[m.ID()] = true
	}
	for id := range t.loaded {
		if !used[id] {
			delete(t.loaded, id)
		}
	}
	for id := range t.failed {
		if t.book.models[id] == nil {
			delete(t.failed, id)
		}
	}
	return s, refused, nil
}

// Model loads a model from the topic.
func (t *Topic) Model(ctx context.Context, id string) (*model.Model, error) {
	mf, offsets, err := t.book.file(id)
	if err != nil {
		return nil, err
	}
	if l, ok := t.loaded[id]; ok && l.sum == mf.SHA256 {
		return l.model, nil
	}
	if f, ok := t.failed[id]; ok && f.sum == mf.SHA256 && slices.Equal(f.offsets, offsets) {
		return nil, f.err
	}
	file, err := t.read(ctx, mf, offsets)
	if err != nil {
		return nil, endedBy(ctx, err)
	}
	m, err := decodeModel(mf, file)
	if err != nil {
		t.failed[id] = failedLoad{mf.SHA256, offsets, err}
		return nil, err
	}
	delete(t.failed, id)
	t.loaded[id] = loadedModel{mf.SHA256, m}
	return m, nil
}

// read returns the file of a model, from its parts.
func (t *Topic) read(ctx context.Context, mf *Manifest, offsets []int64) ([]byte, error) {
	parts := make([][]byte, len(offsets))
	within := bus.Range{From: slices.Min(offsets), To: slices.Max(offsets) + 1}
	err := bus.ReadRange(ctx, t.cfg, bus.TopicModels, 0, within, func(m bus.Message) error {
		if i := slices.Index(offsets, m.Offset); i >= 0 && m.Key == partKey(mf.ID, i) && len(m.Value) <= partSize {
			parts[i] = m.Value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		if p == nil {
			return nil, fmt.Errorf("part %d of %d is gone from the topic: publish it again with `trainer publish`", i+1, len(parts))
		}
	}
	return slices.Concat(parts...), nil
}

// View is what a follower sees: the set that counts, and the records that do not.
type View struct {
	Set     Set
	Refused []Refusal
}

// Follow reads the topic from its beginning, and then goes on until ctx ends, whose error it
// returns. It calls fn for the first time when it has read all that was there, and then
// whenever the set or the refusals have changed. A record that is bad is refused, and what
// counted before goes on. Other errors do not pass: the topic is missing, or a right.
//
// Follow calls keys at the beginning and before it looks at new messages, so that a new
// public key needs no restart. A failure at the beginning ends Follow. Later the keys
// known last go on.
func Follow(ctx context.Context, cfg bus.Config, keys func() (Keys, error), fn func(View)) error {
	trusted, err := keys()
	if err != nil {
		return err
	}
	t := NewTopic(cfg, trusted)
	if _, err := t.CatchUp(ctx); err != nil {
		return endedBy(ctx, err)
	}
	var last View
	first := true
	look := func() error {
		s, refused, err := t.Set(ctx)
		if err != nil {
			return err
		}
		if first || !s.Equal(last.Set) || !slices.Equal(refused, last.Refused) {
			first, last = false, View{s, refused}
			fn(View{s, slices.Clone(refused)})
		}
		return nil
	}
	if err := look(); err != nil {
		return err
	}
	err = bus.ReadFrom(ctx, cfg, bus.TopicModels, 0, max(t.next, 0), true, func(m bus.Message) error {
		again := t.trustAgain(keys)
		if t.put(m) || again {
			return look()
		}
		return nil
	})
	return endedBy(ctx, err)
}

// trustAgain reports whether the keys have changed. Those that cannot be read have not.
func (t *Topic) trustAgain(keys func() (Keys, error)) bool {
	now, err := keys()
	if err != nil || now.equal(t.book.keys) {
		return false
	}
	t.book.Trust(now)
	return true
}

// endedBy returns the error of ctx if it has ended, else err.
func endedBy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
