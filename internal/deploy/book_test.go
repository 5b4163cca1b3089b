package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

var (
	anna, bob = NewSigner(deploytest.Key(1)), NewSigner(deploytest.Key(2))
	ofAnna    = NewKeys(false, anna.Public())
	noon      = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
)

// trained are three models of one layout and one of another, with the bytes of their files.
var trained = sync.OnceValue(func() (all struct {
	a, b, c, lathe *model.Model
	file           map[string][]byte
}) {
	t := fatal{}
	all.file = make(map[string][]byte)
	for i, m := range []**model.Model{&all.a, &all.b, &all.c, &all.lathe} {
		*m = machinetest.OneValue(t)
		if m == &all.lathe {
			l, err := signal.NewLayout("lathe", []signal.Channel{{Name: "force", Kind: signal.Feature, Unit: "kN", Rate: 1}})
			if err != nil {
				t.Fatal(err)
			}
			(*m).Layout = l
		}
		file := deploytest.Prove(t, *m, uint64(i))
		all.file[(*m).ID()] = file
	}
	return all
})

// fatal is a TB before any test runs.
type fatal struct{}

func (fatal) Helper()           {}
func (fatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// loadTrained loads the trained models by id.
func loadTrained(id string) (*model.Model, error) {
	all := trained()
	for _, m := range []*model.Model{all.a, all.b, all.c, all.lathe} {
		if m.ID() == id {
			return m, nil
		}
	}
	return nil, errors.New("it is not there")
}

// promote returns a change that makes a model champion.
func promote(number uint64, glob string, m *model.Model) Change {
	return Change{Number: number, Action: promoted, For: glob, Layout: m.Layout.Fingerprint(), Champion: m.ID(), First: number, At: noon, By: "anna", Since: noon}
}

// sealed returns the message of a change.
func sealed(t deploytest.TB, s signer, c Change, offset int64) bus.Message {
	t.Helper()
	m, err := c.encode(s)
	if err != nil {
		t.Fatal(err)
	}
	m.Offset = offset
	return m
}

// forged returns the message of a change that is not checked, signed as it is.
func forged(s signer, c Change, offset int64) bus.Message {
	value, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	m := message(s, changePrefix+changeID(c.Number, value), changeType, "application/json", noon, value)
	m.Offset = offset
	return m
}

// said lists the deployments of a set: glob, layout, champion.
func said(s Set) (all []string) {
	for _, d := range s.Deployments() {
		all = append(all, fmt.Sprintf("%s %.4s %s", d.For, d.Layout, d.Change))
	}
	slices.Sort(all)
	return all
}

func TestResolve(t *testing.T) {
	all := trained()
	b := newBook(ofAnna)
	for i, c := range []Change{
		promote(1, "**", all.a), promote(2, "acme/spore/bay2/**", all.b), promote(3, "acme/spore/bay2/line1/usk25", all.c), promote(4, "acme/**", all.lathe),
	} {
		b.Put(sealed(t, anna, c, int64(i)))
	}
	s, refused := b.Set(loadTrained)
	if len(refused) != 0 {
		t.Fatal(refused)
	}
	drill, lathe := all.a.Layout.Fingerprint(), all.lathe.Layout.Fingerprint()
	for _, tc := range []struct {
		machine, layout string
		want            *model.Model
	}{
		{"acme/spore/bay2/line1/usk25", drill, all.c},
		{"acme/spore/bay2/line1/usk26", drill, all.b},
		{"acme/spore/bay3/line1/usk26", drill, all.a},
		{"acme/spore/bay2/line1/usk25", lathe, all.lathe},
		{"other/spore/bay2/line1/usk25", lathe, nil},
		{"acme/spore/bay2/line1/usk25", "0123456789abcdef", nil},
	} {
		d, ok := s.Resolve(tc.machine, tc.layout)
		if ok != (tc.want != nil) || d.Champion != tc.want {
			t.Errorf("%s: %v, %t", tc.machine, d.Champion, ok)
		}
	}
	if got := s.Models(); len(got) != 4 {
		t.Errorf("%d models", len(got))
	}
	if d, _ := s.Resolve("acme/spore/bay2/line1/usk26", drill); d.By != "anna" || !d.Since.Equal(noon) || !strings.HasPrefix(d.Change, "2-") || d.Unsigned || d.Alarm != nil {
		t.Errorf("%+v", d)
	}
}

func TestOfFile(t *testing.T) {
	m := trained().a
	a := alarm.Settings{K: 1, N: 2}
	s := OfFile(m, a)
	d, ok := s.Resolve("any/machine", m.Layout.Fingerprint())
	if !ok || d.Champion != m || *d.Alarm != a || d.Unsigned || d.Change != "" || len(shadowsAt(d, noon)) != 0 {
		t.Errorf("%+v, %t", d, ok)
	}
	if _, ok := s.Resolve("any/machine", "0123456789abcdef"); ok {
		t.Error("a machine of another layout has a deployment")
	}
	if len(s.Models()) != 1 || s.Equal(Set{}) || !s.Equal(OfFile(m, a)) {
		t.Error("the set is not equal to itself, or to one without deployments")
	}
}

// A story of changes by people who do not make mistakes, and the set that must follow.
type story struct {
	messages []bus.Message
	number   uint64
	now      map[target]Change // newest, with retired ones
}

func (s *story) step(t *rapid.T) {
	all := trained()
	m := rapid.SampledFrom([]*model.Model{all.a, all.b, all.c, all.lathe}).Draw(t, "model")
	c := promote(s.number+1, drawGlob(t, "for").String(), m)
	old, known := s.now[c.target()]
	switch known = known && old.Action != Retired; {
	case known && rapid.IntRange(0, 3).Draw(t, "retire") == 0:
		c = Change{Number: c.Number, Action: Retired, For: c.For, Layout: c.Layout, First: old.First, At: noon}
	case known:
		c.First = old.First
	default:
		for other, o := range s.now {
			if o.Action != Retired && other.layout == c.Layout && mustGlob(other.glob).Ties(mustGlob(c.For)) {
				return // refused when written
			}
		}
	}
	s.number++
	s.now[c.target()] = c
	s.messages = append(s.messages, sealed(t, anna, c, int64(s.number)*3))
}

// Any order of the records gives the same set, also when compaction has been at work. The
// deployment of a machine is one whose glob names it and that is the most specific such.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := story{now: make(map[target]Change)}
		for range rapid.IntRange(1, 15).Draw(t, "changes") {
			s.step(t)
		}
		var sets []Set
		for range 3 {
			b := newBook(ofAnna)
			for _, m := range s.messages {
				b.Put(m)
			}
			set, refused := b.Set(loadTrained)
			if len(refused) != 0 {
				t.Fatalf("refused: %v", refused)
			}
			sets = append(sets, set)
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
			rng.Shuffle(len(s.messages), func(i, j int) { s.messages[i], s.messages[j] = s.messages[j], s.messages[i] })
		}
		if !sets[0].Equal(sets[1]) || !sets[0].Equal(sets[2]) {
			t.Fatalf("%v\n%v\n%v", said(sets[0]), said(sets[1]), said(sets[2]))
		}
		s.resolves(t, sets[0])
	})
}

// resolves checks a set against a search through everything that is deployed.
func (s *story) resolves(t *rapid.T, set Set) {
	for _, machine := range fewMachines {
		for _, layout := range []string{trained().a.Layout.Fingerprint(), trained().lathe.Layout.Fingerprint()} {
			got, ok := set.Resolve(machine, layout)
			var want *Change
			for _, c := range s.now {
				if c.Action == Retired || c.Layout != layout || !mustGlob(c.For).Match(machine) {
					continue
				}
				if ok && mustGlob(c.For).Compare(got.For) > 0 {
					t.Fatalf("%s: %s judges, and %s is more specific", machine, got.For, c.For)
				}
				if ok && c.For == got.For.String() {
					want = &c
				}
				if !ok {
					t.Fatalf("%s: nothing judges, and %s names it", machine, c.For)
				}
			}
			if ok && (want == nil || want.Champion != got.Champion.ID()) {
				t.Fatalf("%s: %s by %s, want %+v", machine, got.For, got.Champion.ID(), want)
			}
		}
	}
}

// Of two changes with one number the first in the topic counts, in any order.
func TestOneNumberTwice(t *testing.T) {
	all := trained()
	first, second := sealed(t, anna, promote(1, "a/**", all.a), 10), sealed(t, anna, promote(1, "b/**", all.b), 11)
	for _, order := range [][]bus.Message{{first, second}, {second, first}} {
		b := newBook(ofAnna)
		for _, m := range order {
			b.Put(m)
		}
		s, refused := b.Set(loadTrained)
		if len(s.Deployments()) != 1 || s.Deployments()[0].For.String() != "a/**" || len(refused) != 1 || !strings.Contains(refused[0].String(), "had its number first") {
			t.Errorf("%v, %v", said(s), refused)
		}
	}
}

// Deployments that tie: the older one counts, also after it was changed.
func TestTieInTheTopic(t *testing.T) {
	all := trained()
	old := promote(9, "acme/us*", all.a)
	old.First = 1
	b := newBook(ofAnna)
	b.Put(sealed(t, anna, old, 9))
	b.Put(sealed(t, anna, promote(2, "acme/*25", all.b), 2)) // two letters each
	b.Put(sealed(t, anna, promote(3, "acme/*26", all.lathe), 3))
	s, refused := b.Set(loadTrained)
	if len(s.Deployments()) != 2 || len(refused) != 1 {
		t.Fatalf("%v, %v", said(s), refused)
	}
	for _, want := range []string{"acme/*25 and acme/us*", "change 9", "by anna", "neither is more specific"} {
		if !strings.Contains(refused[0].String(), want) {
			t.Errorf("%q does not say %q", refused[0], want)
		}
	}
}

// A champion that cannot be loaded: the one before goes on. A shadow that cannot be: the
// champion goes on without it.
func TestFallBack(t *testing.T) {
	all := trained()
	lost := promote(2, "**", all.a)
	lost.Champion, lost.First = "ecs-dbn-000000000000", 1
	trial := promote(3, "**", all.b)
	trial.First, trial.Shadows = 1, []Trial{{"ecs-dbn-000000000000", noon, noon.Add(time.Hour)}, {all.c.ID(), noon, noon.Add(time.Hour)}, {all.lathe.ID(), noon, noon.Add(time.Hour)}}
	b := newBook(ofAnna)
	b.Put(sealed(t, anna, promote(1, "**", all.a), 1))
	b.Put(sealed(t, anna, lost, 2))
	s, refused := b.Set(loadTrained)
	if d := s.Deployments(); len(d) != 1 || d[0].Champion != all.a || len(refused) != 1 || !strings.Contains(refused[0].Reason, "not there") {
		t.Fatalf("%v, %v", said(s), refused)
	}
	b.Put(sealed(t, anna, trial, 3))
	lathe, err := encodeModel(anna, all.file[all.lathe.ID()], manifestOf(all.lathe))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range lathe {
		m.Offset = int64(10 + i)
		b.Put(m)
	}
	s, refused = b.Set(loadTrained)
	d := s.Deployments()[0]
	if d.Champion != all.b || len(shadowsAt(d, noon)) != 1 || shadowsAt(d, noon)[0] != all.c || len(shadowsAt(d, noon.Add(time.Hour))) != 0 {
		t.Errorf("%+v", d)
	}
	if len(refused) != 2 || !strings.Contains(refused[0].String(), "its shadow ecs-dbn-000000000000 does not judge") || !strings.Contains(refused[1].String(), "the deployment is for") {
		t.Errorf("%v", refused)
	}
	b.Put(forged(anna, Change{Number: 4, Action: Retired, For: "**", Layout: trial.Layout, First: 1}, 4))
	if s, _ = b.Set(loadTrained); len(s.Deployments()) != 0 {
		t.Errorf("retired: %v", said(s))
	}
}

func TestSignatures(t *testing.T) {
	all := trained()
	c := promote(1, "**", all.a)
	moved := sealed(t, anna, c, 1)
	moved.Key = changePrefix + "2-" + moved.Key[len(moved.Key)-8:]
	unsigned, ofBob := sealed(t, signer{}, c, 1), sealed(t, bob, c, 1)
	stolen := sealed(t, anna, c, 1)
	stolen.Headers[7].Value = []byte(KeyID(bob.Public()))
	cut := sealed(t, anna, c, 1)
	cut.Headers = cut.Headers[:8]
	both := NewKeys(false, anna.Public(), bob.Public())
	for _, tc := range []struct {
		name     string
		keys     Keys
		m        bus.Message
		want     string // of the refusal
		unsigned bool
	}{
		{"signed", ofAnna, sealed(t, anna, c, 1), "", false},
		{"signed, with several keys", both, ofBob, "", false},
		{"not signed", ofAnna, unsigned, "it is not signed", false},
		{"not signed, and no keys", Keys{}, unsigned, "it is not signed", false},
		{"not signed, which is accepted", NewKeys(true, anna.Public()), unsigned, "", true},
		{"by a stranger", ofAnna, ofBob, "it is signed with the key " + KeyID(bob.Public()), false},
		{"by a stranger, which is accepted", NewKeys(true), ofBob, "", true},
		{"moved", ofAnna, moved, "it was changed or moved", false},
		{"with another's name", both, stolen, "does not fit", false},
		{"without the signature itself", ofAnna, cut, "does not fit", false},
		{"without the signature itself, insecure", NewKeys(true, anna.Public()), cut, "does not fit", false},
	} {
		b := newBook(tc.keys)
		b.Put(tc.m)
		s, refused := b.Set(loadTrained)
		switch {
		case tc.want == "" && (len(refused) != 0 || len(s.Deployments()) != 1 || s.Deployments()[0].Unsigned != tc.unsigned):
			t.Errorf("%s: %v, %v", tc.name, said(s), refused)
		case tc.want != "" && (len(refused) != 1 || len(s.Deployments()) != 0 || !strings.Contains(refused[0].Reason, tc.want)):
			t.Errorf("%s: %v, %v", tc.name, said(s), refused)
		}
	}
}

// What would replace or delete a record that counts, without a good signature, does not.
// Another key makes other records count.
func TestHostile(t *testing.T) {
	all := trained()
	good := sealed(t, anna, promote(1, "**", all.a), 1)
	b := newBook(ofAnna)
	b.Put(good)
	bad, gone := good, good
	bad.Offset, bad.Value, gone.Offset, gone.Value = 2, []byte("{}"), 3, nil
	for i, m := range []bus.Message{bad, gone} {
		if !b.Put(m) {
			t.Error("Put says that nothing has changed")
		}
		if s, refused := b.Set(loadTrained); len(s.Deployments()) != 1 || len(refused) != 1 || refused[0].Offset != int64(i+2) {
			t.Fatalf("%v, %v", said(s), refused)
		}
	}
	elsewhere := gone
	elsewhere.Offset, elsewhere.Headers = 4, anna.sign(changePrefix+"2-00000000", nil)
	if b.Put(elsewhere); len(b.changes) != 1 {
		t.Error("the deletion of another record deletes it")
	}
	b.Trust(NewKeys(false, bob.Public()))
	if s, refused := b.Set(loadTrained); len(s.Deployments()) != 0 || len(refused) == 0 {
		t.Fatalf("%v, %v", said(s), refused)
	}
	b.Trust(ofAnna)
	gone.Headers = anna.sign(gone.Key, nil)
	b.Put(gone)
	if s, _ := b.Set(loadTrained); len(s.Deployments()) != 0 {
		t.Errorf("%v", said(s))
	}
}

// What would have replaced a record is gone with it: it is refused no more, and does not come back when its key is known.
func TestRemovedIsGone(t *testing.T) {
	all := trained()
	change := sealed(t, anna, promote(1, "**", all.a), 1)
	mf := manifestOf(all.a)
	mf.At = noon
	parts, err := encodeModel(anna, all.file[mf.ID], mf)
	if err != nil {
		t.Fatal(err)
	}
	for _, good := range []bus.Message{change, parts[len(parts)-1]} {
		b := newBook(ofAnna)
		b.Put(good)
		again, gone := good, good
		again.Offset, again.Headers = 2, bob.sign(good.Key, good.Value)
		gone.Offset, gone.Value, gone.Headers = 3, nil, anna.sign(good.Key, nil)
		b.Put(again)
		if _, refused := b.Set(loadTrained); len(refused) != 1 {
			t.Fatalf("%s: before it is removed: %v", good.Key, refused)
		}
		b.Put(gone)
		if _, refused := b.Set(loadTrained); len(refused) != 0 {
			t.Errorf("%s: removed, and still refused: %v", good.Key, refused)
		}
		b.Trust(NewKeys(false, anna.Public(), bob.Public()))
		if s, _ := b.Set(loadTrained); len(s.Deployments()) != 0 || len(b.changes) != 0 || len(b.models) != 0 {
			t.Errorf("%s: removed, and back when another key is trusted: %v, %d changes, %d models", good.Key, said(s), len(b.changes), len(b.models))
		}
	}
}

// A model that someone published again with a key that is not known yet counts once it is, and
// still does when the first key goes.
func TestPublishedTwice(t *testing.T) {
	all := trained()
	b := newBook(ofAnna)
	for i, s := range []signer{anna, bob} {
		msgs, err := encodeModel(s, all.file[all.a.ID()], manifestOf(all.a))
		if err != nil {
			t.Fatal(err)
		}
		for j, m := range msgs {
			m.Offset = int64(10*i + j)
			b.Put(m)
		}
	}
	by := func() string { return b.Models()[0].SignedBy + b.Models()[0].Problem }
	if by() != KeyID(anna.Public()) {
		t.Error(by())
	}
	b.Trust(NewKeys(false, anna.Public(), bob.Public()))
	if _, refused := b.Set(loadTrained); by() != KeyID(bob.Public()) || len(refused) != 0 {
		t.Error(by(), refused)
	}
	b.Trust(NewKeys(false, bob.Public()))
	if by() != KeyID(bob.Public()) {
		t.Error(by())
	}
}

func TestCheckChange(t *testing.T) {
	m := trained().a
	until := noon.Add(time.Hour)
	for name, tc := range map[string]struct {
		change func(*Change)
		want   string
	}{
		"a glob":             {func(c *Change) { c.For = "a/**/b" }, "for: "},
		"no number":          {func(c *Change) { c.Number = 0 }, "number 0"},
		"a huge number":      {func(c *Change) { c.Number, c.First = 1<<53+1, 1 }, "number 9007199254740993"},
		"the first":          {func(c *Change) { c.First = 8 }, "first 8"},
		"no first":           {func(c *Change) { c.First = 0 }, "first 0"},
		"no layout":          {func(c *Change) { c.Layout = "" }, "layout"},
		"layout":             {func(c *Change) { c.Layout = "0123456789ABCDEF" }, "16 hexadecimal digits"},
		"no champion":        {func(c *Change) { c.Champion = "" }, "champion"},
		"champion":           {func(c *Change) { c.Champion = "../model" }, "must be the id of a model"},
		"a retired champion": {func(c *Change) { c.Action = Retired }, "retires the deployment"},
		"shadow":             {func(c *Change) { c.Shadows = []Trial{{Model: "b"}} }, "shadow"},
		"shadow of itself":   {func(c *Change) { c.Shadows = []Trial{{c.Champion, noon, until}} }, "it is the champion"},
		"shadow twice":       {func(c *Change) { c.Shadows = []Trial{{"b", noon, until}, {"b", noon, until}} }, "another shadow already"},
		"nine shadows":       {func(c *Change) { c.Shadows = make([]Trial, 9) }, "9 shadows"},
		"alarm":              {func(c *Change) { c.Alarm = &AlarmRecord{K: 5, N: 4} }, "k is 5"},
		"alarm before":       {func(c *Change) { c.Previous = []PastVersion{{Champion: "b", Alarm: &AlarmRecord{}}} }, "n is 0"},
		"champion before":    {func(c *Change) { c.Previous = []PastVersion{{Champion: "B"}} }, "champion before"},
		"champions before":   {func(c *Change) { c.Previous = make([]PastVersion, 11) }, "11 champions before"},
		"a long note":        {func(c *Change) { c.Note = strings.Repeat("n", 1001) }, "at most 1000 bytes"},
	} {
		c := promote(7, "**", m)
		tc.change(&c)
		if _, err := c.encode(anna); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		b := newBook(ofAnna)
		b.Put(forged(anna, c, 1))
		if s, refused := b.Set(loadTrained); len(refused) != 1 || len(s.Deployments()) != 0 {
			t.Errorf("%s: %v, %v", name, said(s), refused)
		}
	}
}

// Any bytes may be in the topic: reading it ends, and what counted before counts.
func FuzzBook(f *testing.F) {
	all := trained()
	good := sealed(f, anna, promote(1, "**", all.a), 1)
	msgs, err := encodeModel(anna, all.file[all.a.ID()], manifestOf(all.a))
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range append(msgs, sealed(f, anna, promote(2, "a/**", all.b), 1), good) {
		f.Add(m.Key, m.Value, string(m.Header(headerKeyID)), string(m.Header(headerSignature)))
	}
	f.Add("model/a/0000", []byte(nil), "", "")
	f.Fuzz(func(t *testing.T, key string, value []byte, id, signature string) {
		m := bus.Message{Key: key, Value: value, Offset: 9, Headers: []bus.Header{{Key: headerKeyID, Value: []byte(id)}, {Key: headerSignature, Value: []byte(signature)}}}
		for _, insecure := range []bool{false, true} {
			b := newBook(NewKeys(insecure, anna.Public()))
			b.Put(good)
			b.Put(m)
			s, refused := b.Set(loadTrained)
			if d, ok := s.Resolve("b", all.a.Layout.Fingerprint()); !insecure && (!ok || d.Champion != all.a) && key != good.Key {
				t.Errorf("%v, %v", said(s), refused)
			}
			b.Models()
			b.History()
			b.Trust(Keys{})
		}
	})
}

// shadowsAt returns the models whose trial is not over at a time.
func shadowsAt(d Deployment, now time.Time) []*model.Model {
	var models []*model.Model
	for _, s := range d.Shadows {
		if now.Before(s.Until) {
			models = append(models, s.Model)
		}
	}
	return models
}
