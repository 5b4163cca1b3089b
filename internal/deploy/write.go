package deploy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// writeTries is how often a change is tried while others take its number.
const writeTries = 8

// Writer changes the topic. It is not safe for concurrent use; several writers, in other
// programs too, may write at the same time.
type Writer struct {
	Bus    bus.Config
	Keys   Keys   // whose records are built on; the signer's own key is added
	Signer signer // zero: what is written is not signed
	By     string // who writes
	Note   string // why
	Now    func() time.Time

	topic *Topic
	at    time.Time // when the change under way is tried
}

// Topic returns the topic as it is now.
func (w *Writer) Topic(ctx context.Context) (*Topic, error) {
	if w.topic == nil {
		w.topic = NewTopic(w.Bus, w.Keys.with(w.Signer))
	}
	_, err := w.topic.CatchUp(ctx)
	return w.topic, endedBy(ctx, err)
}

// publishable returns the model of a file that can be published.
func publishable(file []byte) (*model.Model, error) {
	m, err := model.Decode(file)
	if err != nil {
		return nil, err
	}
	return m, cmp.Or(Check(m), config.Wrong(len(file) > maxModel, "the model has %s, and at most %s can be published", bus.FormatBytes(int64(len(file))), bus.FormatBytes(maxModel)))
}

// proved returns the manifest of a model that is there whole, signed by a key that is known; else nil.
func (t *Topic) proved(ctx context.Context, id string) *Manifest {
	have, _, err := t.book.file(id)
	if err != nil {
		return nil
	}
	if m, err := t.Model(ctx, id); err != nil || m.ID() != id || t.book.models[id].signature.unproved {
		return nil
	}
	return have
}

// Publish writes a model that may be rolled out, from the bytes of its file. If it is there
// already, signed by a key that is known, Publish writes nothing and reports that.
func (w *Writer) Publish(ctx context.Context, file []byte) (mf Manifest, already bool, err error) {
	m, err := publishable(file)
	if err != nil {
		return mf, false, err
	}
	t, err := w.Topic(ctx)
	if err != nil {
		return mf, false, err
	}
	if have := t.proved(ctx, m.ID()); have != nil {
		return *have, true, nil
	}
	mf = manifestOf(m)
	mf.At, mf.By, mf.Note = w.Now().UTC(), w.By, w.Note
	msgs, err := encodeModel(w.Signer, file, mf)
	if err != nil {
		return mf, false, err
	}
	if err := w.send(ctx, msgs...); err != nil {
		return mf, false, err
	}
	if t, err = w.Topic(ctx); err != nil {
		return mf, false, err
	}
	have, offsets, err := t.book.file(m.ID())
	if err != nil {
		return mf, false, fmt.Errorf("%s was written, and cannot be read back: %w", m.ID(), err)
	}
	back, err := t.read(ctx, have, offsets)
	if err != nil {
		return mf, false, err
	}
	if !bytes.Equal(back, file) {
		return mf, false, fmt.Errorf("%s was written, and what is read back differs: someone else publishes at the same time; publish it again", m.ID())
	}
	return *have, false, nil
}

// PublishCurve writes the trade-off of alarm settings of a published model, JSON of at most MaxCurve bytes, and
// replaces the one before. If it is there already, PublishCurve writes nothing and reports that. Older
// monitors ignore it.
func (w *Writer) PublishCurve(ctx context.Context, id string, curve []byte) (already bool, err error) {
	if len(curve) > MaxCurve {
		return false, fmt.Errorf("the curve has %s, and at most %s can be published", bus.FormatBytes(int64(len(curve))), bus.FormatBytes(MaxCurve))
	}
	t, err := w.Topic(ctx)
	if err != nil {
		return false, err
	}
	if _, _, err := t.book.file(id); err != nil {
		return false, fmt.Errorf("model %s: %w", printable(id), err)
	}
	if have, ok := t.book.curves[id]; ok && bytes.Equal(have.Value, curve) {
		if by, err := t.book.keys.check(have); err == nil && !by.unproved || w.Signer.private == nil {
			return true, nil
		}
	}
	return false, w.send(ctx, message(w.Signer, curvePrefix+id, curveType, "application/json", w.Now(), curve))
}

func (w *Writer) send(ctx context.Context, msgs ...bus.Message) error {
	p, err := bus.NewProducer(w.Bus)
	if err != nil {
		return err
	}
	defer p.Close()
	return endedBy(ctx, p.Send(ctx, msgs))
}

// Promotion asks for a champion or a shadow.
type Promotion struct {
	Model  string
	For    string
	Layout string        // fingerprint; empty: the model's
	Shadow time.Duration // above 0: judge as a shadow for so long, and leave the champion
	Now    bool          // swap at once
	Anyway bool          // also a model that is trained on other windows than the champion that judges these machines

	// Alarm returns the alarm settings of the deployment, from those that it has; nil keeps
	// them. Nil settings are the monitor's own.
	Alarm func(now *alarm.Settings) (*alarm.Settings, error)
}

// Promote makes a model the champion of machines, or a shadow.
func (w *Writer) Promote(ctx context.Context, p Promotion) (RecordedChange, error) {
	glob, err := ParseGlob(p.For)
	if err != nil {
		return RecordedChange{}, err
	}
	return w.change(ctx, func(t *Topic) (*Change, error) {
		m, err := t.Model(ctx, p.Model)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", printable(p.Model), err)
		}
		layout := m.Layout.Fingerprint()
		if p.Layout != "" && p.Layout != layout {
			return nil, fmt.Errorf("model %s judges layout %s (%q), not %s: choose a model of that layout (`trainer models ls`)", p.Model, layout, m.Layout.Name(), printable(p.Layout))
		}
		if !p.Anyway {
			if err := t.checkWindows(ctx, m, glob); err != nil {
				return nil, err
			}
		}
		c := t.book.current(target{glob.String(), layout})
		if p.Shadow > 0 {
			err = w.addShadow(c, p)
		} else {
			err = w.setChampion(c, p)
		}
		return c, err
	})
}

// checkWindows reports a model that is trained on windows of another length or hop than the
// champion that judges the machines of a glob now: its machines send windows that the model
// cannot judge. A champion that cannot be read says nothing.
func (t *Topic) checkWindows(ctx context.Context, m *model.Model, glob Glob) error {
	now := t.book.judges(glob, m.Layout.Fingerprint())
	if now == nil || now.Champion == m.ID() {
		return nil
	}
	champion, err := t.Model(ctx, now.Champion)
	if err != nil {
		return endedBy(ctx, nil)
	}
	theirs, ours := champion.Window, m.Window
	if theirs.Length == ours.Length && theirs.Step() == ours.Step() {
		return nil
	}
	return fmt.Errorf("%s is trained on windows of %s, and %s, the champion of %s, judges windows of %s: it cannot judge what these machines send. Train it on windows of %s, "+
		"or set window in their ingest.yaml to what it is trained on and then promote it with --anyway", m.ID(), windowText(ours), champion.ID(), now.For, windowText(theirs), windowText(theirs))
}

// windowText says how windows are cut.
func windowText(s window.Spec) string {
	if s.Step() == s.Length {
		return s.Length.String()
	}
	return fmt.Sprintf("%v, one every %v", s.Length, s.Step())
}

// judges returns the change that says what judges the machines of a glob now, nil if nothing does:
// the deployment with this glob, or among less specific ones the most specific.
func (b *Book) judges(glob Glob, layout string) (now *Change) {
	stand, _ := standing(b.byTarget())
	for _, r := range stand {
		c := r.change
		g := mustGlob(c.For)
		if c.Layout == layout && g.Compare(glob) <= 0 && g.Meets(glob) && (now == nil || g.Compare(mustGlob(now.For)) > 0) {
			now = c
		}
	}
	return now
}

// current returns what follows the newest change of a deployment, or a new one.
func (b *Book) current(at target) *Change {
	c := Change{For: at.glob, Layout: at.layout}
	if rs := b.byTarget()[at]; len(rs) > 0 && rs[0].change.Action != Retired {
		c = *rs[0].change
		c.Shadows, c.Previous = slices.Clone(c.Shadows), slices.Clone(c.Previous)
	}
	return &c
}

// dropOver removes the shadows whose trial is over.
func (c *Change) dropOver(now time.Time) {
	c.Shadows = slices.DeleteFunc(c.Shadows, func(s Trial) bool { return !now.Before(s.Until) })
}

// setChampion makes the model the champion. It is not a shadow any more; other shadows stay.
func (w *Writer) setChampion(c *Change, p Promotion) error {
	past := PastVersion{c.Champion, c.Alarm, c.Since}
	if p.Alarm != nil {
		s, err := p.Alarm(c.Alarm.Settings())
		if err != nil {
			return err
		}
		c.Alarm = nil
		if s != nil {
			c.Alarm = RecordOf(*s)
		}
	}
	if past.Champion != "" && past.Champion != p.Model {
		c.Previous = append([]PastVersion{past}, c.Previous...)
		c.Previous = c.Previous[:min(len(c.Previous), maxPast)]
	}
	if past.Champion != p.Model {
		c.Since, c.Now = w.at, false
	}
	c.Action, c.Champion, c.Now = promoted, p.Model, c.Now || p.Now
	c.dropOver(w.at)
	c.Shadows = slices.DeleteFunc(c.Shadows, func(s Trial) bool { return s.Model == p.Model })
	return nil
}

// addShadow makes the model a shadow, or lets it be one for longer.
func (w *Writer) addShadow(c *Change, p Promotion) error {
	switch {
	case c.Champion == "":
		return fmt.Errorf("%s with layout %s has no champion, so there is nothing to compare a shadow with: promote a champion for exactly this glob first (`trainer models ls` lists the globs)", c.For, c.Layout)
	case c.Champion == p.Model:
		return fmt.Errorf("%s is the champion of %s already", p.Model, c.For)
	case p.Now:
		return errors.New("--now is for champions: a shadow begins at once in any case")
	}
	c.Action = shadowed
	c.dropOver(w.at)
	until := w.at.Add(p.Shadow).Round(time.Second)
	if i := slices.IndexFunc(c.Shadows, func(s Trial) bool { return s.Model == p.Model }); i >= 0 {
		c.Shadows[i].Until = until
	} else {
		c.Shadows = append(c.Shadows, Trial{p.Model, w.at, until})
	}
	return nil
}

// Rollback makes the champion before the present one champion again, with the alarm
// settings of then. Shadows stay. An empty layout is the only one that the glob has.
func (w *Writer) Rollback(ctx context.Context, glob, layout string, now bool) (RecordedChange, error) {
	return w.change(ctx, func(t *Topic) (*Change, error) {
		c, err := t.book.find(glob, layout)
		if err != nil {
			return nil, err
		}
		if len(c.Previous) == 0 {
			return nil, fmt.Errorf("%s has had no champion before %s: promote the model that you want, or retire the deployment", c.For, c.Champion)
		}
		past := c.Previous[0]
		if _, err := t.Model(ctx, past.Champion); err != nil {
			return nil, fmt.Errorf("model %s, the champion before: %w", past.Champion, err)
		}
		c.Action, c.Champion, c.Alarm, c.Since, c.Now = rolledBack, past.Champion, past.Alarm, w.at, now
		c.Previous = c.Previous[1:]
		c.dropOver(w.at)
		c.Shadows = slices.DeleteFunc(c.Shadows, func(s Trial) bool { return s.Model == c.Champion })
		return c, nil
	})
}

// Retire ends a deployment, or with the id of a model only its trial as a shadow.
func (w *Writer) Retire(ctx context.Context, glob, layout, shadow string) (RecordedChange, error) {
	return w.change(ctx, func(t *Topic) (*Change, error) {
		c, err := t.book.find(glob, layout)
		if err != nil {
			return nil, err
		}
		if shadow == "" {
			return &Change{Action: Retired, For: c.For, Layout: c.Layout, First: c.First}, nil
		}
		n := len(c.Shadows)
		if c.Shadows = slices.DeleteFunc(c.Shadows, func(s Trial) bool { return s.Model == shadow }); len(c.Shadows) == n {
			return nil, fmt.Errorf("%s is not a shadow of %s: see `trainer models ls`", printable(shadow), c.For)
		}
		c.Action = unshadowed
		return c, nil
	})
}

// find returns what follows the newest change of the deployment with that glob.
func (b *Book) find(glob, layout string) (*Change, error) {
	var found []*Change
	for _, rs := range b.byTarget() {
		c := rs[0].change
		if c.For == glob && (layout == "" || c.Layout == layout) && c.Action != Retired {
			found = append(found, b.current(c.target()))
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("the topic has no deployment for exactly %s: `trainer models ls` lists them", printable(glob))
	case 1:
		return found[0], nil
	}
	var layouts []string
	for _, c := range found {
		layouts = append(layouts, c.Layout)
	}
	slices.Sort(layouts)
	return nil, fmt.Errorf("%s has deployments for several layouts: name one of them with --layout: %s", glob, strings.Join(layouts, ", "))
}

// change writes the change that next makes of the topic as it is. If someone else takes its
// number first, it begins again with the topic as it is then.
func (w *Writer) change(ctx context.Context, next func(*Topic) (*Change, error)) (RecordedChange, error) {
	var winner string
	for range writeTries {
		t, err := w.Topic(ctx)
		if err != nil {
			return RecordedChange{}, err
		}
		c, err := w.prepare(t, next)
		if err != nil {
			return RecordedChange{}, err
		}
		m, err := c.encode(w.Signer)
		if err != nil {
			return RecordedChange{}, err
		}
		if err := w.send(ctx, m); err != nil {
			return RecordedChange{}, err
		}
		if t, err = w.Topic(ctx); err != nil {
			return RecordedChange{}, fmt.Errorf("change %s was written, and cannot be read back: %w: look at `trainer models ls`", strings.TrimPrefix(m.Key, changePrefix), err)
		}
		all := t.book.History()
		i := slices.IndexFunc(all, func(r RecordedChange) bool { return r.Number == c.Number })
		if i >= 0 && changePrefix+all[i].ID == m.Key {
			return all[i], w.tidy(ctx, t, c.target())
		}
		if i < 0 {
			return RecordedChange{}, fmt.Errorf("change %s was written, and does not count when it is read back: %s", strings.TrimPrefix(m.Key, changePrefix), t.book.reason(m.Key))
		}
		winner = fmt.Sprintf("change %s by %s", all[i].ID, printable(all[i].By))
		if err := w.Remove(ctx, m.Key); err != nil {
			return RecordedChange{}, err
		}
	}
	return RecordedChange{}, fmt.Errorf("others change deployments at the same time, the last was %s: look at `trainer models ls`, and try again if it is still what you want", winner)
}

// reason returns why a record does not count.
func (b *Book) reason(key string) string {
	r := b.changes[key]
	switch {
	case r == nil:
		return "it is gone: someone removed it"
	case r.err != nil:
		return r.err.Error()
	}
	return "another one counts"
}

// prepare returns the next change, with its number, if it may be written.
func (w *Writer) prepare(t *Topic, next func(*Topic) (*Change, error)) (*Change, error) {
	for _, r := range t.book.changes {
		if errors.Is(r.err, errStranger) {
			return nil, fmt.Errorf("%s cannot be built on: %w; name the public key with --public-key, or remove the record: trainer models rm %s", r.what(), r.err, printable(r.m.Key))
		}
	}
	w.at = w.Now().UTC()
	c, err := next(t)
	if err != nil {
		return nil, err
	}
	good, _ := t.book.accepted()
	c.Number = 1
	if n := len(good); n > 0 {
		c.Number = good[n-1].change.Number + 1
	}
	if c.First == 0 {
		c.First = c.Number
	}
	c.At, c.By, c.Note = w.at, w.By, w.Note
	if c.Action == Retired {
		return c, nil
	}
	stand, _ := standing(byTarget(good))
	if other := tied(stand, c); other != nil {
		return nil, errors.New(tieText(c, other))
	}
	return c, nil
}

// tidy removes changes that are not needed any more: of the deployment those beyond the
// newest keptChanges, and those that lost their number to another one.
func (w *Writer) tidy(ctx context.Context, t *Topic, at target) error {
	good, _ := t.book.accepted()
	taken := make(map[uint64]string)
	for _, r := range good {
		taken[r.change.Number] = r.m.Key
	}
	var over []string
	for key, r := range t.book.changes {
		if r.err == nil && taken[r.change.Number] != key {
			over = append(over, key)
		}
	}
	if of := byTarget(good)[at]; len(of) > keptChanges {
		for _, r := range of[keptChanges:] {
			over = append(over, r.m.Key)
		}
	}
	if len(over) == 0 {
		return nil
	}
	slices.Sort(over)
	return w.Remove(ctx, over...)
}

// Remove deletes records by their keys. It does not ask whether they are needed.
func (w *Writer) Remove(ctx context.Context, keys ...string) error {
	var msgs []bus.Message
	for _, key := range keys {
		msgs = append(msgs, bus.Message{Topic: bus.TopicModels, Key: key, Headers: w.Signer.sign(key, nil)})
	}
	return w.send(ctx, msgs...)
}

// RemoveAny deletes a model by its id, see RemoveModel, or a record that does not count by its
// key.
func (w *Writer) RemoveAny(ctx context.Context, id string) error {
	if !strings.Contains(id, "/") {
		return w.RemoveModel(ctx, id)
	}
	t, err := w.Topic(ctx)
	if err != nil {
		return err
	}
	_, refused, err := t.Set(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(refused, func(r Refusal) bool { return r.Key == id && r.Shadow == "" }) {
		return fmt.Errorf("%s is not a record that is refused: see `trainer models ls`", printable(id))
	}
	if t.book.counts(id) {
		return fmt.Errorf("%s cannot be removed: what is refused would have replaced a record that counts, and removing the key would remove that one; write that one again (publish the model, or promote it)", printable(id))
	}
	return w.Remove(ctx, id)
}

// counts reports whether the record with that key counts.
func (b *Book) counts(key string) bool {
	if r := b.changes[key]; r != nil {
		_, repelled := b.hostile[key]
		return r.err == nil && repelled
	}
	r := b.models[strings.TrimPrefix(key, modelPrefix)]
	return r != nil && r.m != nil && r.err == nil
}

// RemoveModel deletes a model that no deployment needs: as champion, as shadow or to roll
// back to.
func (w *Writer) RemoveModel(ctx context.Context, id string) error {
	t, err := w.Topic(ctx)
	if err != nil {
		return err
	}
	r := t.book.models[id]
	if r == nil {
		return fmt.Errorf("model %s is not on %s: see `trainer models ls`", printable(id), bus.TopicModels)
	}
	for _, rs := range t.book.byTarget() {
		if c := rs[0].change; c.names(id) {
			return fmt.Errorf("model %s is needed by the deployment for %s, now or for a rollback: promote others first, or retire the deployment", id, c.For)
		}
	}
	keys := []string{modelPrefix + id} // first, so that what is left is not a model
	for part := range r.parts {
		keys = append(keys, partKey(id, part))
	}
	if t.book.Curve(id) != nil {
		keys = append(keys, curvePrefix+id)
	}
	slices.Sort(keys[1:])
	return w.Remove(ctx, keys...)
}

// names reports whether a change needs a model.
func (c *Change) names(id string) bool {
	return c.Champion == id || slices.ContainsFunc(c.Shadows, func(s Trial) bool { return s.Model == id }) ||
		slices.ContainsFunc(c.Previous, func(p PastVersion) bool { return p.Champion == id })
}
