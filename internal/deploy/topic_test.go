package deploy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

func TestMain(m *testing.M) { os.Exit(kafkatest.Main(m)) }

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), await.Patience)
	t.Cleanup(cancel)
	return ctx
}

// startBroker returns how to reach a broker with the topics and nothing in them: the Apache Kafka
// that FLANK_KAFKA names, or an embedded one.
func startBroker(t testing.TB) bus.Config {
	t.Helper()
	var cfg bus.Config
	if kafkatest.Version() != "" {
		cfg = bus.Config{Brokers: []string{kafkatest.Shared(t).Addr}, ClientID: "test"}
	} else {
		b := brokertest.Start(t)
		cfg = b.Config("test")
	}
	if _, err := bus.Apply(testContext(t), cfg, 1, 1); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// writer returns a writer with a clock that stands still.
func writer(cfg bus.Config, s signer, more ...signer) *Writer {
	w := &Writer{Bus: cfg, Signer: s, By: "anna", Now: func() time.Time { return noon }}
	for _, m := range more {
		w.Keys = w.Keys.with(m)
	}
	return w
}

func send(t testing.TB, cfg bus.Config, msgs ...bus.Message) {
	t.Helper()
	if err := (&Writer{Bus: cfg}).send(testContext(t), msgs...); err != nil {
		t.Fatal(err)
	}
}

func publish(t testing.TB, w *Writer, m *model.Model) {
	t.Helper()
	if _, already, err := w.Publish(testContext(t), trained().file[m.ID()]); err != nil || already {
		t.Fatalf("already there: %t, %v", already, err)
	}
}

func promotion(t testing.TB, w *Writer, p Promotion) RecordedChange {
	t.Helper()
	c, err := w.Promote(testContext(t), p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// following is a Follow under way.
type following struct {
	t     testing.TB
	views chan View
	stop  func()
}

func follow(t testing.TB, cfg bus.Config, keys func() (Keys, error)) *following {
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{t: t, views: make(chan View, 1000)}
	done := make(chan error, 1)
	go func() { done <- Follow(ctx, cfg, keys, func(v View) { f.views <- v }) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(f.stop)
	return f
}

// until returns the first view for which ok holds.
func (f *following) until(what string, ok func(View) bool) View {
	f.t.Helper()
	late := time.After(await.Patience)
	var last View
	for {
		select {
		case last = <-f.views:
			if ok(last) {
				return last
			}
		case <-late:
			f.t.Fatalf("%s: never; last %v, %v", what, said(last.Set), last.Refused)
		}
	}
}

func trusting(keys Keys) func() (Keys, error) { return func() (Keys, error) { return keys, nil } }

// From the first champion to a rollback, as a follower sees it.
func TestFollow(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	f := follow(t, cfg, trusting(ofAnna))
	f.until("nothing", func(v View) bool { return len(v.Set.Deployments()) == 0 && len(v.Refused) == 0 })
	w := writer(cfg, anna)
	publish(t, w, all.a)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "acme/**"})
	champion := func(m *model.Model) func(View) bool {
		return func(v View) bool {
			d, ok := v.Set.Resolve("acme/b", m.Layout.Fingerprint())
			return ok && d.Champion.ID() == m.ID() && len(v.Refused) == 0
		}
	}
	f.until("a", champion(all.a))
	publish(t, w, all.b)
	promotion(t, w, Promotion{Model: all.b.ID(), For: "acme/**", Shadow: time.Hour})
	v := f.until("shadow", func(v View) bool { return champion(all.a)(v) && len(v.Set.Deployments()[0].Shadows) == 1 })
	if d := v.Set.Deployments()[0]; !d.Shadows[0].Until.Equal(noon.Add(time.Hour)) || d.Shadows[0].Model.ID() != all.b.ID() {
		t.Errorf("%+v", d)
	}
	c := promotion(t, w, Promotion{Model: all.b.ID(), For: "acme/**", Now: true, Alarm: func(now *alarm.Settings) (*alarm.Settings, error) {
		return &alarm.Settings{K: 2, N: 3}, nil
	}})
	if len(c.Shadows) != 0 || len(c.Previous) != 1 || c.Number != 3 || c.First != 1 {
		t.Errorf("%+v", c)
	}
	v = f.until("b", champion(all.b))
	if d := v.Set.Deployments()[0]; !d.Now || d.Alarm == nil || d.Alarm.N != 3 || len(d.Shadows) != 0 {
		t.Errorf("%+v", d)
	}
	if _, err := w.Rollback(testContext(t), "acme/**", "", true); err != nil {
		t.Fatal(err)
	}
	v = f.until("a again", champion(all.a))
	if d := v.Set.Deployments()[0]; d.Alarm != nil || len(v.Set.Models()) != 1 {
		t.Errorf("%+v, %d models", d, len(v.Set.Models()))
	}
	if _, err := w.Rollback(testContext(t), "acme/**", "", true); err == nil || !strings.Contains(err.Error(), "no champion before") {
		t.Error(err)
	}
	if _, err := w.Retire(testContext(t), "acme/**", "", ""); err != nil {
		t.Fatal(err)
	}
	f.until("retired", func(v View) bool { return len(v.Set.Deployments()) == 0 })
	f.stop()
	late := follow(t, cfg, trusting(ofAnna))
	late.until("the same after a restart", func(v View) bool { return len(v.Set.Deployments()) == 0 && len(v.Refused) == 0 })
}

// spoiling collects records that must not count, where acme/** has the champion of change 1,
// and acm*/*x has a deployment too. Of several messages the last one is a change.
type spoiling struct {
	t      testing.TB
	names  []string
	sets   [][]bus.Message
	number uint64
}

func (s *spoiling) add(name string, msgs ...bus.Message) {
	s.names, s.sets = append(s.names, name), append(s.sets, msgs)
}

// next returns a change of acme/** to another champion.
func (s *spoiling) next() Change {
	s.number++
	c := promote(s.number, "acme/**", trained().b)
	c.First = 1
	return c
}

// changes adds changes that contradict themselves or the others.
func (s *spoiling) changes() {
	lathe := trained().lathe
	for _, tc := range []struct {
		name   string
		change func(*Change)
	}{
		{"unknown model", func(c *Change) { c.Champion = "ecs-dbn-000000000000" }},
		{"another layout", func(c *Change) { c.Layout = "0123456789abcdef" }},
		{"a model of another layout", func(c *Change) { c.Champion = lathe.ID() }},
		{"alarm", func(c *Change) { c.Alarm = &AlarmRecord{K: 9, N: 8} }},
		{"tie", func(c *Change) { c.For, c.First = "acm*/x*", c.Number }},
		{"glob", func(c *Change) { c.For = "acme/**/x" }},
		{"no champion", func(c *Change) { c.Champion = "" }},
		{"first", func(c *Change) { c.First = c.Number + 1 }},
		{"number taken", func(c *Change) { c.Number = 1 }},
	} {
		c := s.next()
		tc.change(&c)
		s.add(tc.name, forged(anna, c, 0))
	}
	s.add("not signed", forged(signer{}, s.next(), 0))
	s.add("stranger", forged(bob, s.next(), 0))
	moved := forged(anna, s.next(), 0)
	moved.Key = strings.Replace(moved.Key, changePrefix, changePrefix+"9", 1)
	s.add("moved", moved)
	s.add("no JSON", message(anna, changePrefix+"70-00000000", changeType, "", noon, []byte("champion")))
	s.add("a long value", message(anna, changePrefix+"71-00000000", changeType, "", noon, bytes.Repeat([]byte("x"), maxRecord+1)))
	s.add("a strange key", message(anna, changePrefix+"seven", changeType, "", noon, []byte("{}")))
	for i := range 33 { // one bit of a signed change
		m := forged(anna, s.next(), 0)
		m.Value[i*len(m.Value)/33] ^= 1 << (i % 8)
		if c := new(Change); json.Unmarshal(m.Value, c) == nil { // only the signature shows it
			m.Key = changePrefix + changeID(c.Number, m.Value)
		}
		s.add(fmt.Sprintf("bit %d of a change", i), m)
	}
}

// ship adds a model, which damage may change, and a change that makes it champion.
func (s *spoiling) ship(name string, mf Manifest, file []byte, sign signer, damage func(msgs []bus.Message) []bus.Message) {
	c := s.next()
	c.Champion = mf.ID
	msgs, err := encodeModel(sign, file, mf)
	if err != nil {
		s.t.Fatal(name, err)
	}
	if damage != nil {
		msgs = damage(msgs)
	}
	s.add(name, append(msgs, forged(anna, c, 0))...)
}

// models adds models that must not judge.
func (s *spoiling) models() {
	b := trained().file[trained().b.ID()]
	id := func(i int) Manifest {
		mf := manifestOf(trained().b)
		mf.ID = fmt.Sprintf("ecs-dbn-%012x", i)
		return mf
	}
	s.ship("manifest of a stranger", id(1), b, bob, nil)
	s.ship("manifest without a signature", id(2), b, signer{}, nil)
	s.ship("another id", id(3), b, anna, nil)
	s.ship("without a part", id(4), b, anna, func(msgs []bus.Message) []bus.Message { return msgs[1:] })
	s.ship("without a manifest", id(5), b, anna, func(msgs []bus.Message) []bus.Message { return msgs[:1] })
	s.ship("moved manifest", id(6), b, anna, func(msgs []bus.Message) []bus.Message {
		msgs[1].Key = modelPrefix + "ecs-dbn-000000000077"
		return msgs
	})
	for i := range 33 { // one bit of a model, which its manifest signs
		file := slices.Clone(b)
		file[i*len(file)/33] ^= 1 << (i % 8)
		s.ship(fmt.Sprintf("bit %d of a model", i), id(100+i), file, anna, nil)
	}
	for i := range 5 { // the file is not the one that the manifest describes
		s.ship(fmt.Sprintf("cut by %d", i+1), id(200+i), b, anna, func(msgs []bus.Message) []bus.Message {
			msgs[0].Value = msgs[0].Value[:len(msgs[0].Value)-i-1]
			return msgs
		})
	}
	bad := spoiledModels(s.t)
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		file := bad[name](machinetest.OneValue(s.t))
		s.ship(name, idOf(file), file, anna, nil)
	}
}

// idOf returns a manifest for the bytes of a file, which may be damaged.
func idOf(file []byte) Manifest {
	mf := manifestOf(trained().b)
	mf.ID = "ecs-dbn-" + hex.EncodeToString(file[len(file)-sha256.Size:][:6])
	return mf
}

// spoiledModels returns models that are whole files and must not be rolled out.
func spoiledModels(t testing.TB) map[string]func(*model.Model) []byte {
	encode := func(m *model.Model) []byte {
		file, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	// edit changes bytes of a proved model and mends the checksum of the file.
	edit := func(find, put []byte, seed uint64) func(m *model.Model) []byte {
		return func(m *model.Model) []byte {
			file := deploytest.Prove(t, m, seed)
			i := bytes.Index(file, find)
			if i < 0 {
				t.Fatalf("%q is not in the file", find)
			}
			copy(file[i+len(find):], put)
			sum := sha256.Sum256(file[:len(file)-sha256.Size])
			copy(file[len(file)-sha256.Size:], sum[:])
			return file
		}
	}
	weights := func(v float64) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))) }
	network := append([]byte("FDBN"), 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0)
	golden := append([]byte("\x06golden"), make([]byte, 8)...)
	return map[string]func(*model.Model) []byte{
		"no golden vectors":   encode,
		"NaN weight":          edit(network, weights(math.NaN()), 11),
		"infinite weight":     edit(network, weights(math.Inf(1)), 12),
		"negative infinity":   edit(network, weights(math.Inf(-1)), 13),
		"wrong golden vector": edit(goldenValues(t, golden), weights(7), 14),
		"old features":        edit([]byte("\"features\": {\n  \"version\": "), []byte("1"), 15),
		"windows larger than a message": func(m *model.Model) []byte {
			deploytest.Prove(t, m, 16)
			m.Window.Length = 3 << 20 * time.Second
			return encode(m)
		},
		"another layout": func(m *model.Model) []byte {
			l, err := signal.NewLayout("other", []signal.Channel{{Name: "torque", Kind: signal.Feature, Unit: "Nm", Rate: 1}})
			if err != nil {
				t.Fatal(err)
			}
			m.Layout = l
			return deploytest.Prove(t, m, 17)
		},
	}
}

// goldenValues returns the beginning of the golden section in a proved model, up to its first
// value.
func goldenValues(t testing.TB, section []byte) []byte {
	file := deploytest.Prove(t, machinetest.OneValue(t), 14)
	i := bytes.Index(file, []byte("\x06golden"))
	return file[i : i+len(section)+12]
}

// A hundred bad records: each is refused, with a reason, and the champion is what it was, for
// a follower that is there and for one that starts later.
func TestHundredBad(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w := writer(cfg, anna)
	publish(t, w, all.a)
	publish(t, w, all.b)
	publish(t, w, all.lathe)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "acme/**"})
	promotion(t, w, Promotion{Model: all.a.ID(), For: "acm*/*x"}) // to tie with
	f := follow(t, cfg, trusting(ofAnna))
	before := f.until("champion", func(v View) bool { return len(v.Set.Deployments()) == 2 })
	bad := spoiling{t: t, number: 10}
	bad.changes()
	bad.models()
	names, sets := bad.names, bad.sets
	if len(sets) < 100 {
		t.Fatalf("only %d bad records", len(sets))
	}
	var last View
	for i := 0; i < len(sets); i += 10 {
		some := sets[i:min(i+10, len(sets))]
		send(t, cfg, slices.Concat(some...)...)
		last = f.until(names[i], func(v View) bool {
			if !v.Set.Equal(before.Set) {
				t.Fatalf("after %s and some more: %v judges: %v", names[i], said(v.Set), v.Refused)
			}
			return !slices.ContainsFunc(some, func(msgs []bus.Message) bool { return !isRefused(v, msgs[len(msgs)-1].Key) })
		})
	}
	for i, msgs := range sets {
		if !isRefused(last, msgs[len(msgs)-1].Key) {
			t.Errorf("%s is not refused any more", names[i])
		}
	}
	for _, r := range last.Refused {
		if r.Reason == "" || r.What == "" {
			t.Errorf("%+v has no reason", r)
		}
	}
	f.stop()
	later := follow(t, cfg, trusting(ofAnna)).until("restart", func(View) bool { return true })
	if !later.Set.Equal(last.Set) || !slices.Equal(later.Refused, last.Refused) {
		t.Errorf("after a restart %v and %d refused, before %v and %d", said(later.Set), len(later.Refused), said(last.Set), len(last.Refused))
	}
}

func isRefused(v View, key string) bool {
	return slices.ContainsFunc(v.Refused, func(r Refusal) bool { return r.Key == key })
}

// A new public key counts without a restart.
func TestRotation(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	var mu sync.Mutex
	keys := ofAnna
	f := follow(t, cfg, func() (Keys, error) {
		mu.Lock()
		defer mu.Unlock()
		return keys, nil
	})
	w := writer(cfg, bob)
	publish(t, w, all.a)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "**"})
	f.until("refused", func(v View) bool { return len(v.Refused) == 2 && len(v.Set.Deployments()) == 0 })
	mu.Lock()
	keys = NewKeys(false, anna.Public(), bob.Public())
	mu.Unlock()
	w = writer(cfg, anna, bob)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "acme/**"})
	f.until("both", func(v View) bool { return len(v.Refused) == 0 && len(v.Set.Deployments()) == 2 })
	// Who cannot check what is there cannot write.
	if _, err := writer(cfg, anna).Promote(testContext(t), Promotion{Model: all.a.ID(), For: "b/**"}); err == nil ||
		!strings.Contains(err.Error(), KeyID(bob.Public())) || !strings.Contains(err.Error(), "--public-key") {
		t.Error(err)
	}
}

// A model larger than a message comes in parts, and counts when the last one is there.
func TestLargeModel(t *testing.T) {
	t.Parallel()
	cfg := startBroker(t)
	m := machinetest.OneValue(t)
	text, err := json.Marshal(strings.Repeat("long ", 400_000))
	if err != nil {
		t.Fatal(err)
	}
	m.Scores = text
	file := deploytest.Prove(t, m, 20)
	msgs, err := encodeModel(anna, file, manifestOf(m))
	if err != nil || len(msgs) < 4 {
		t.Fatalf("%d messages, %v", len(msgs), err)
	}
	for _, part := range msgs {
		if part.Size() > 900_000 {
			t.Errorf("a message of %d bytes", part.Size())
		}
	}
	send(t, cfg, msgs[:2]...) // and cut off
	topic := NewTopic(cfg, ofAnna)
	if _, err := topic.CatchUp(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Model(testContext(t), m.ID()); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a half: %v", err)
	}
	w := writer(cfg, anna)
	if mf, already, err := w.Publish(testContext(t), file); err != nil || already || mf.Parts != len(msgs)-1 {
		t.Fatalf("%+v, %t, %v", mf, already, err)
	}
	if _, already, err := w.Publish(testContext(t), file); err != nil || !already {
		t.Errorf("again: %t, %v", already, err)
	}
	promotion(t, w, Promotion{Model: m.ID(), For: "**"})
	follow(t, cfg, trusting(ofAnna)).until("champion", func(v View) bool { return len(v.Set.Models()) == 1 && v.Set.Models()[0].ID() == m.ID() })
}

// Only models that a deployment names are kept.
func TestMemory(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w := writer(cfg, anna)
	for _, m := range []*model.Model{all.a, all.b, all.c} {
		publish(t, w, m)
		promotion(t, w, Promotion{Model: m.ID(), For: "**"})
	}
	topic := NewTopic(cfg, ofAnna)
	if _, err := topic.CatchUp(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Model(testContext(t), all.a.ID()); err != nil {
		t.Error(err)
	}
	if _, _, err := topic.Set(testContext(t)); err != nil || len(topic.loaded) != 1 {
		t.Errorf("%d models loaded, %v", len(topic.loaded), err)
	}
	for _, r := range topic.book.models {
		if len(r.parts) != 1 || len(r.m.Value) > maxRecord {
			t.Errorf("%+v", r)
		}
	}
}

// A topic that was removed and made again begins again.
func TestMadeAgain(t *testing.T) {
	all := trained()
	topic := NewTopic(bus.Config{}, ofAnna)
	topic.put(sealed(t, anna, promote(7, "a/**", all.a), 7))
	topic.put(sealed(t, anna, promote(8, "b/**", all.a), 8))
	topic.put(sealed(t, anna, promote(1, "c/**", all.b), 0))
	if s, refused := topic.book.Set(loadTrained); len(s.Deployments()) != 1 || s.Deployments()[0].For.String() != "c/**" || len(refused) != 0 {
		t.Errorf("%v, %v", said(s), refused)
	}
}
