package deploy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/pkg/model"
)

// keptChanges is how many changes of each deployment stay in the topic, with the current
// one. A Writer removes older ones.
const keptChanges = 50

// Bounds of a book: someone may write anything to the topic. Beyond them the book forgets
// records that do not count.
const (
	mostChanges  = 5000
	mostModels   = 100_000
	mostRepelled = 1000
	mostCurves   = 500
)

// Refusal is a record that does not count, and why.
type Refusal struct {
	Key    string // of the record
	Offset int64
	What   string // the record in words
	Reason string
	Shadow string // not empty: only this shadow of the change is refused, and the rest counts
}

// String says it in a line.
func (r Refusal) String() string {
	if r.Shadow != "" {
		return fmt.Sprintf("%s: its shadow %s does not judge: %s", r.What, r.Shadow, r.Reason)
	}
	return r.What + " is refused: " + r.Reason
}

// Book is what the topic holds: the last record of every key. A record that does not count
// does not replace one that does, and neither does a deletion without a signature. What
// counts depends on the records and their offsets, not on the order in which they come.
// A Book is pure and not safe for concurrent use.
type Book struct {
	keys    Keys
	changes map[string]*changeRecord // by key
	models  map[string]*modelRecord  // by id
	curves  map[string]bus.Message   // by id of the model: those that count
	hostile map[string]repelled      // by key: what would have replaced a record that counts
}

// repelled is a message that is refused, because it would have replaced a record that counts.
type repelled struct {
	m       bus.Message // without its value, unless another key may make it count
	refusal Refusal
}

// changeRecord is a record of a change.
type changeRecord struct {
	m         bus.Message
	change    *Change // nil if it cannot be read
	signature signature
	err       error // why it does not count
}

// modelRecord is what is known of a published model.
type modelRecord struct {
	m         *bus.Message // of the manifest; nil: it has not come
	manifest  *Manifest    // nil if it cannot be read
	signature signature
	err       error         // why the manifest does not count
	parts     map[int]int64 // offsets of the parts
}

// newBook returns a book that accepts records under the keys.
func newBook(keys Keys) *Book {
	return &Book{keys: keys, changes: make(map[string]*changeRecord), models: make(map[string]*modelRecord), curves: make(map[string]bus.Message), hostile: make(map[string]repelled)}
}

// Put takes the next message of the topic. It keeps the message, except the value of a
// part of a model. It reports whether the message may change what counts or is refused.
// It ignores records of other kinds.
func (b *Book) Put(m bus.Message) bool {
	if strings.HasPrefix(m.Key, changePrefix) {
		return b.putChange(m)
	}
	if id, ok := strings.CutPrefix(m.Key, curvePrefix); ok {
		b.putCurve(id, m)
		return false // it has no effect on what judges
	}
	rest, ok := strings.CutPrefix(m.Key, modelPrefix)
	if !ok {
		return false
	}
	id, part, isPart := strings.Cut(rest, "/")
	if !modelIDs.MatchString(id) || isPart && !partNames.MatchString(part) {
		return false // no change can name it
	}
	return b.putModel(id, part, m)
}

// putModel takes a message of a part of a model, or of its manifest.
func (b *Book) putModel(id, part string, m bus.Message) bool {
	r := b.models[id]
	if r == nil {
		if m.Value == nil || len(b.models) >= mostModels {
			return false
		}
		r = &modelRecord{parts: make(map[int]int64)}
		b.models[id] = r
	}
	if part != "" {
		n, _ := strconv.Atoi(part) // four digits
		if r.parts[n] = m.Offset; m.Value == nil {
			delete(r.parts, n)
		}
	} else {
		b.putManifest(r, m)
	}
	if r.m == nil && len(r.parts) == 0 {
		delete(b.models, id)
	}
	return true
}

// putCurve takes a message of the curve of a model. One that does not count is ignored: pages alone show it.
func (b *Book) putCurve(id string, m bus.Message) {
	before, known := b.curves[id]
	if known && m.Offset < before.Offset || !modelIDs.MatchString(id) || len(m.Value) > MaxCurve {
		return
	}
	if _, err := b.keys.check(m); err != nil {
		return
	}
	switch {
	case m.Value == nil:
		delete(b.curves, id)
	case known || len(b.curves) < mostCurves:
		b.curves[id] = m
	}
}

// Curve returns the trade-off of alarm settings that was published for a model, as `trainer tune` wrote it;
// nil if there is none. It was signed as models are, and nothing else of it was checked. The caller must
// not change it.
func (b *Book) Curve(id string) []byte { return b.curves[id].Value }

// putManifest takes a message of a manifest.
func (b *Book) putManifest(r *modelRecord, m bus.Message) {
	if r.m != nil && m.Offset < r.m.Offset {
		return
	}
	counts := r.m != nil && r.err == nil
	if m.Value == nil {
		if !counts || b.mayDelete(m) {
			r.m, r.manifest, r.err = nil, nil, nil
			delete(b.hostile, m.Key)
		}
		return
	}
	next := modelRecord{m: &m, parts: r.parts}
	next.read(b.keys)
	if counts && next.err != nil {
		b.repel(m, "model "+strings.TrimPrefix(m.Key, modelPrefix), next.err)
		return
	}
	*r = next
	delete(b.hostile, m.Key)
}

// dropChange takes a message that deletes a change.
func (b *Book) dropChange(m bus.Message, old *changeRecord) bool {
	if old == nil || m.Offset < old.m.Offset {
		return false
	}
	if old.err != nil || b.mayDelete(m) {
		delete(b.changes, m.Key)
		delete(b.hostile, m.Key)
	}
	return true
}

// putChange takes a message of a change.
func (b *Book) putChange(m bus.Message) bool {
	old := b.changes[m.Key]
	counts := old != nil && old.err == nil
	if m.Value == nil {
		return b.dropChange(m, old)
	}
	r := &changeRecord{m: m}
	r.read(b.keys)
	if r.change == nil {
		r.m.Value = nil // it is not needed to refuse the record
	}
	switch {
	case counts && r.err != nil:
		b.repel(m, old.what(), r.err)
	case counts: // the value is the same, since its checksum is in the key
		old.m.Offset = min(old.m.Offset, m.Offset)
		delete(b.hostile, m.Key)
	case r.err != nil && old == nil && len(b.changes) >= mostChanges:
	default:
		b.changes[m.Key] = r
	}
	return true
}

// mayDelete reports whether a message without a value deletes a record that counts. If
// not, it is refused.
func (b *Book) mayDelete(m bus.Message) bool {
	_, err := b.keys.check(m)
	if err != nil {
		b.repel(m, "the deletion of "+printable(m.Key), err)
	}
	return err == nil
}

// repel refuses a message that would have replaced a record that counts.
func (b *Book) repel(m bus.Message, what string, err error) {
	r := repelled{m, Refusal{Key: m.Key, Offset: m.Offset, What: what, Reason: err.Error()}}
	if !errors.Is(err, errStranger) {
		r.m = bus.Message{}
	}
	if _, ok := b.hostile[m.Key]; ok || len(b.hostile) < mostRepelled {
		b.hostile[m.Key] = r
	}
}

// read decodes the change and checks its signature.
func (r *changeRecord) read(keys Keys) {
	r.change, r.err = nil, nil
	if !changeIDs.MatchString(strings.TrimPrefix(r.m.Key, changePrefix)) {
		r.err = errors.New("its key is not the id of a change")
		return
	}
	c, err := decodeChange(r.m)
	if err != nil {
		r.err = err
		return
	}
	r.change = c
	r.signature, r.err = keys.check(r.m)
}

// read decodes the manifest and checks its signature.
func (r *modelRecord) read(keys Keys) {
	r.manifest, r.err = nil, nil
	mf, err := decodeManifest(*r.m)
	if err == nil {
		r.signature, err = keys.check(*r.m)
	}
	if err != nil {
		r.err = err
		return
	}
	r.manifest = mf
}

// Trust checks all records again under other keys.
func (b *Book) Trust(keys Keys) {
	b.keys = keys
	for _, r := range b.changes {
		if r.change != nil {
			r.read(keys)
		}
	}
	for _, r := range b.models {
		if r.m != nil {
			r.read(keys)
		}
	}
	for id, m := range b.curves {
		if _, err := keys.check(m); err != nil {
			delete(b.curves, id)
		}
	}
	for key, r := range b.hostile {
		if r.m.Key != "" { // it may count now
			delete(b.hostile, key)
			b.Put(r.m)
		}
	}
}

// what names the change in words.
func (r *changeRecord) what() string {
	id := printable(strings.TrimPrefix(r.m.Key, changePrefix))
	if r.change == nil {
		return "change " + id
	}
	return fmt.Sprintf("change %s (%s for %s)", id, r.change.Action, r.change.For)
}

func (r *changeRecord) refusal(reason string) Refusal {
	return Refusal{Key: r.m.Key, Offset: r.m.Offset, What: r.what(), Reason: reason}
}

// accepted returns the changes that may count, in the order of their numbers, and those
// that do not.
func (b *Book) accepted() (good []*changeRecord, refused []Refusal) {
	var all []*changeRecord
	for _, r := range b.changes {
		if r.err != nil {
			refused = append(refused, r.refusal(r.err.Error()))
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y *changeRecord) int {
		return cmp.Or(cmp.Compare(x.change.Number, y.change.Number), cmp.Compare(x.m.Offset, y.m.Offset), cmp.Compare(x.m.Key, y.m.Key))
	})
	for i, r := range all {
		if i > 0 && good[len(good)-1].change.Number == r.change.Number {
			refused = append(refused, r.refusal("another change had its number first: "+good[len(good)-1].what()))
			continue
		}
		good = append(good, r)
	}
	return good, refused
}

// byTarget returns changes by their deployment, the newest first.
func byTarget(good []*changeRecord) map[target][]*changeRecord {
	targets := make(map[target][]*changeRecord)
	for _, r := range slices.Backward(good) {
		targets[r.change.target()] = append(targets[r.change.target()], r)
	}
	return targets
}

// byTarget returns the accepted changes of every deployment, the newest first.
func (b *Book) byTarget() map[target][]*changeRecord {
	good, _ := b.accepted()
	return byTarget(good)
}

// standing returns the newest change of every deployment that is not retired and ties with
// no older one, and refuses the others. A deployment is as old as the number of its first
// change.
func standing(targets map[target][]*changeRecord) (stand []*changeRecord, refused []Refusal) {
	var newest []*changeRecord
	for _, rs := range targets {
		if rs[0].change.Action != Retired {
			newest = append(newest, rs[0])
		}
	}
	slices.SortFunc(newest, func(x, y *changeRecord) int {
		return cmp.Or(cmp.Compare(x.change.First, y.change.First), cmp.Compare(x.change.Number, y.change.Number))
	})
	for _, r := range newest {
		if other := tied(stand, r.change); other != nil {
			refused = append(refused, r.refusal(tieText(r.change, other)))
			continue
		}
		stand = append(stand, r)
	}
	return stand, refused
}

// tied returns a change among others, of another deployment, that ties with c; nil if
// there is none.
func tied(others []*changeRecord, c *Change) *Change {
	for _, o := range others {
		if o.change.target() != c.target() && o.change.Layout == c.Layout && mustGlob(o.change.For).Ties(mustGlob(c.For)) {
			return o.change
		}
	}
	return nil
}

// tieText says that two deployments tie.
func tieText(c, other *Change) string {
	return fmt.Sprintf("%s and %s, of change %d by %s, may name the same machine with layout %s, and neither is more specific: write one of the two so that it names fewer machines",
		c.For, other.For, other.Number, printable(other.By), c.Layout)
}

// mustGlob parses a glob of a change that was checked.
func mustGlob(text string) Glob {
	g, err := ParseGlob(text)
	if err != nil {
		panic("deploy: " + err.Error())
	}
	return g
}

// Set returns the set that counts, and the refused records in the order of their offsets.
// It calls load for the published models that deployments need, perhaps more than once for
// one. A change whose champion cannot be loaded is refused, and the change before it counts.
func (b *Book) Set(load func(id string) (*model.Model, error)) (Set, []Refusal) {
	good, refused := b.accepted()
	targets := byTarget(good)
	stand, more := standing(targets)
	refused = append(refused, more...)
	var ds []Deployment
	for _, newest := range stand {
		for _, r := range targets[newest.change.target()] {
			if r.change.Action == Retired {
				break
			}
			d, more, err := b.deployment(r, load)
			if err != nil {
				refused = append(refused, r.refusal(err.Error()))
				continue // the one before goes on
			}
			ds, refused = append(ds, d), append(refused, more...)
			break
		}
	}
	for _, r := range b.hostile {
		refused = append(refused, r.refusal)
	}
	for id, r := range b.models {
		if r.m != nil && r.err != nil {
			refused = append(refused, Refusal{Key: r.m.Key, Offset: r.m.Offset, What: "model " + id, Reason: r.err.Error()})
		}
	}
	slices.SortFunc(refused, func(x, y Refusal) int {
		return cmp.Or(cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Shadow, y.Shadow))
	})
	return newSet(ds), refused
}

// layout returns the layout of a model, nil if it is not known.
func (r *modelRecord) layout() *ManifestLayout {
	if r == nil || r.err != nil || r.manifest == nil {
		return nil
	}
	return &r.manifest.Layout
}

// deployment returns what a change says, with the models. It refuses shadows that cannot
// judge, one by one: they must not disturb the champion.
func (b *Book) deployment(r *changeRecord, load func(id string) (*model.Model, error)) (Deployment, []Refusal, error) {
	c := r.change
	d := Deployment{
		For: mustGlob(c.For), Layout: c.Layout, Alarm: c.Alarm.Settings(), Now: c.Now, Since: c.Since,
		Change: strings.TrimPrefix(r.m.Key, changePrefix), By: c.By, Note: c.Note, Unsigned: r.signature.unproved,
	}
	get := func(id string) (*model.Model, error) {
		published := b.models[id]
		if other := published.layout(); other != nil && other.Fingerprint != c.Layout {
			return nil, fmt.Errorf("model %s: its layout is %s (%q), and the deployment is for %s", id, other.Fingerprint, printable(other.Name), c.Layout)
		}
		m, err := load(id)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", id, err)
		}
		d.Unsigned = d.Unsigned || published != nil && published.signature.unproved
		return m, nil
	}
	var err error
	if d.Champion, err = get(c.Champion); err != nil {
		return Deployment{}, nil, err
	}
	var refused []Refusal
	for _, s := range c.Shadows {
		m, err := get(s.Model)
		if err != nil {
			no := r.refusal(err.Error())
			no.Shadow = s.Model
			refused = append(refused, no)
			continue
		}
		d.Shadows = append(d.Shadows, Shadow{m, s.Until})
	}
	return d, refused, nil
}

// file says where the parts of a model lie, or why there is none.
func (b *Book) file(id string) (*Manifest, []int64, error) {
	r := b.models[id]
	switch {
	case r == nil, r.m == nil && len(r.parts) == 0:
		return nil, nil, fmt.Errorf("it is not on %s: publish it with `trainer publish`", bus.TopicModels)
	case r.m == nil:
		return nil, nil, errors.New("only parts of it are there: `trainer publish` was cut off; run it again")
	case r.err != nil:
		return nil, nil, r.err
	}
	offsets := make([]int64, r.manifest.Parts)
	for i := range offsets {
		at, ok := r.parts[i]
		if !ok {
			return nil, nil, fmt.Errorf("part %d of %d is not there: publish it again with `trainer publish`", i+1, len(offsets))
		}
		offsets[i] = at
	}
	return r.manifest, offsets, nil
}

// decodeModel reads a model that may be rolled out from its file, as the manifest describes it.
func decodeModel(mf *Manifest, file []byte) (*model.Model, error) {
	if sum := sha256.Sum256(file); int64(len(file)) != mf.Size || hex.EncodeToString(sum[:]) != mf.SHA256 {
		return nil, errors.New("its parts are not the file that its manifest describes: publish it again with `trainer publish`")
	}
	m, err := model.Decode(file)
	if err != nil {
		return nil, err
	}
	if m.ID() != mf.ID || m.Layout.Fingerprint() != mf.Layout.Fingerprint {
		return nil, fmt.Errorf("its manifest describes %s of layout %s, and its file is %s of layout %s", mf.ID, mf.Layout.Fingerprint, m.ID(), m.Layout.Fingerprint())
	}
	return m, Check(m)
}

// RecordedChange is a change as the book has it.
type RecordedChange struct {
	Change
	ID       string
	SignedBy string // id of the key; empty: not signed
	Unproved bool   // accepted although its signature could not be checked
}

// History returns the accepted changes, the newest first.
func (b *Book) History() []RecordedChange {
	good, _ := b.accepted()
	var all []RecordedChange
	for _, r := range slices.Backward(good) {
		all = append(all, RecordedChange{*r.change, strings.TrimPrefix(r.m.Key, changePrefix), r.signature.by, r.signature.unproved})
	}
	return all
}

// PublishedModel is a model as the book has it.
type PublishedModel struct {
	Manifest
	SignedBy string
	Unproved bool
	Problem  string // not empty: why it cannot be used; then the Manifest has only an ID
	Curve    []byte // see Book.Curve
}

// Models returns the models in the topic, the newest first.
func (b *Book) Models() []PublishedModel {
	var all []PublishedModel
	for _, id := range slices.Sorted(maps.Keys(b.models)) {
		mf, _, err := b.file(id)
		if err != nil {
			all = append(all, PublishedModel{Manifest: Manifest{ID: id}, Problem: err.Error()})
			continue
		}
		sig := b.models[id].signature
		all = append(all, PublishedModel{Manifest: *mf, SignedBy: sig.by, Unproved: sig.unproved, Curve: b.Curve(id)})
	}
	slices.SortStableFunc(all, func(x, y PublishedModel) int { return y.At.Compare(x.At) })
	return all
}
