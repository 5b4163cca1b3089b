package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/window"
)

// view returns the topic as a reader with anna's key finds it.
func view(t testing.TB, cfg bus.Config) (*Topic, Set, []Refusal) {
	t.Helper()
	topic := NewTopic(cfg, ofAnna)
	if _, err := topic.CatchUp(testContext(t)); err != nil {
		t.Fatal(err)
	}
	s, refused, err := topic.Set(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return topic, s, refused
}

func TestRefusedWhenWritten(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w := writer(cfg, anna)
	publish(t, w, all.a)
	publish(t, w, all.b)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "acme/us*"})
	ctx := testContext(t)
	for _, tc := range []struct {
		name string
		try  func() error
		want []string
	}{
		{"a tie", func() error { _, err := w.Promote(ctx, Promotion{Model: all.a.ID(), For: "acme/*25"}); return err },
			[]string{"acme/*25 and acme/us*", "change 1", "by anna", "neither is more specific"}},
		{"a glob", func() error { _, err := w.Promote(ctx, Promotion{Model: all.a.ID(), For: "acme/**/b"}); return err }, []string{"only be the last level"}},
		{"an unknown model", func() error { _, err := w.Promote(ctx, Promotion{Model: "m", For: "b"}); return err }, []string{"model m: it is not on tcm.models.v1"}},
		{"another layout", func() error {
			_, err := w.Promote(ctx, Promotion{Model: all.a.ID(), For: "b", Layout: "0123456789abcdef"})
			return err
		}, []string{"judges layout " + all.a.Layout.Fingerprint()}},
		{"a shadow of nothing", func() error {
			_, err := w.Promote(ctx, Promotion{Model: all.a.ID(), For: "b", Shadow: time.Hour})
			return err
		}, []string{"has no champion"}},
		{"a shadow of itself", func() error {
			_, err := w.Promote(ctx, Promotion{Model: all.a.ID(), For: "acme/us*", Shadow: time.Hour})
			return err
		}, []string{"is the champion"}},
		{"a shadow now", func() error {
			_, err := w.Promote(ctx, Promotion{Model: all.b.ID(), For: "acme/us*", Shadow: time.Hour, Now: true})
			return err
		}, []string{"--now"}},
		{"an alarm", func() error {
			_, err := w.Promote(ctx, Promotion{Model: all.b.ID(), For: "acme/us*", Alarm: func(*alarm.Settings) (*alarm.Settings, error) { return &alarm.Settings{K: 3, N: 2}, nil }})
			return err
		}, []string{"k is 3"}},
		{"a rollback of nothing", func() error { _, err := w.Rollback(ctx, "b", "", false); return err }, []string{"no deployment for exactly b"}},
		{"a shadow that is none", func() error { _, err := w.Retire(ctx, "acme/us*", "", all.b.ID()); return err }, []string{"is not a shadow"}},
		{"a damaged file", func() error { _, _, err := w.Publish(ctx, []byte("FLANKMDL")); return err }, []string{"damaged model"}},
		{"removing what is needed", func() error { return w.RemoveModel(ctx, all.a.ID()) }, []string{"needed by the deployment for acme/us*"}},
		{"removing what is not there", func() error { return w.RemoveModel(ctx, "m") }, []string{"model m is not on"}},
	} {
		err := tc.try()
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", tc.name, err, want)
			}
		}
	}
	if topic, s, refused := view(t, cfg); len(s.Deployments()) != 1 || len(refused) != 0 || len(topic.Book().History()) != 1 {
		t.Errorf("%v, %v", said(s), refused)
	}
}

// A model of the champion's layout that is trained on windows of another length or hop is refused,
// as a champion and as a shadow, for the machines that the champion judges, also by a less specific
// glob. With Anyway it is not.
func TestOtherWindowsAreRefused(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w := writer(cfg, anna)
	publish(t, w, all.a)
	publish(t, w, all.b)
	of := func(seed uint64, spec window.Spec) string {
		t.Helper()
		m := machinetest.OneValue(t)
		m.Window = spec
		if _, _, err := w.Publish(testContext(t), deploytest.Prove(t, m, seed)); err != nil {
			t.Fatal(err)
		}
		return m.ID()
	}
	long, hop := of(8, window.Spec{Length: 2 * time.Second}), of(9, window.Spec{Length: 2 * time.Second, Hop: time.Second})
	same := of(10, window.Spec{Length: time.Second, Hop: time.Second})
	promotion(t, w, Promotion{Model: all.a.ID(), For: "acme/**"})
	promotion(t, w, Promotion{Model: all.a.ID(), For: "acme/us*"})
	const (
		lengths = " is trained on windows of 2s, and "
		hops    = " is trained on windows of 2s, one every 1s, and "
		remedy  = "Train it on windows of 1s, or set window in their ingest.yaml to what it is trained on and then promote it with --anyway"
	)
	for _, tc := range []struct {
		p    Promotion
		want []string // empty: it is not refused
	}{
		{Promotion{Model: long, For: "acme/us*"}, []string{long + lengths + all.a.ID() + ", the champion of acme/us*, judges windows of 1s: ", remedy}},
		{Promotion{Model: long, For: "acme/us*", Now: true}, []string{long + lengths}},
		{Promotion{Model: long, For: "acme/us*", Shadow: time.Hour}, []string{long + lengths, "the champion of acme/us*"}},
		{Promotion{Model: long, For: "acme/us*", Shadow: time.Hour, Anyway: true}, nil},
		{Promotion{Model: hop, For: "acme/us*"}, []string{hop + hops}},
		{Promotion{Model: long, For: "acme/**"}, []string{"the champion of acme/**, judges"}},
		{Promotion{Model: long, For: "acme/usk25"}, []string{"the champion of acme/us*, judges"}},
		{Promotion{Model: long, For: "acme/spore/bay2/**"}, []string{"the champion of acme/**, judges"}},
		{Promotion{Model: long, For: "*/spore"}, nil}, // none is less specific: those that it meets go on with their own
		{Promotion{Model: long, For: "other/**"}, nil},
		{Promotion{Model: same, For: "acme/us*"}, nil},
		{Promotion{Model: all.b.ID(), For: "acme/us*"}, nil},
		{Promotion{Model: long, For: "acme/us*", Anyway: true}, nil},
		{Promotion{Model: long, For: "acme/us*", Now: true}, nil}, // it is the champion
		{Promotion{Model: all.b.ID(), For: "acme/us*"}, []string{all.b.ID() + " is trained on windows of 1s, and " + long, "Train it on windows of 2s"}},
		{Promotion{Model: hop, For: "acme/us*"}, []string{"is trained on windows of 2s, one every 1s, and " + long + ", the champion of acme/us*, judges windows of 2s: "}},
	} {
		_, err := w.Promote(testContext(t), tc.p)
		if len(tc.want) == 0 && err != nil {
			t.Errorf("%+v: %v", tc.p, err)
		}
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", tc.p, err, want)
			}
		}
	}
	if _, err := w.Rollback(testContext(t), "acme/us*", "", true); err != nil {
		t.Errorf("going back is never refused: %v", err)
	}
}

// The glob of two layouts has two deployments, and a change says which.
func TestTwoLayouts(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w := writer(cfg, anna)
	publish(t, w, all.a)
	publish(t, w, all.lathe)
	for _, id := range []string{all.a.ID(), all.lathe.ID()} {
		promotion(t, w, Promotion{Model: id, For: "**"})
	}
	if _, err := w.Retire(testContext(t), "**", "", ""); err == nil || !strings.Contains(err.Error(), "--layout") {
		t.Error(err)
	}
	if _, err := w.Retire(testContext(t), "**", all.lathe.Layout.Fingerprint(), ""); err != nil {
		t.Error(err)
	}
	if _, s, _ := view(t, cfg); len(s.Deployments()) != 1 || s.Deployments()[0].Champion.ID() != all.a.ID() {
		t.Errorf("%v", said(s))
	}
}

// Someone else writes between reading and writing: the second change follows the first one,
// or is refused because of it, and nothing is lost.
func TestRace(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w := writer(cfg, anna)
	publish(t, w, all.a)
	publish(t, w, all.b)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "acme/us*"})
	other := writer(cfg, anna)
	asked := 0
	change := func(forOther, forMe string) error {
		asked = 0
		_, err := w.change(testContext(t), func(topic *Topic) (*Change, error) {
			if asked++; asked == 1 {
				promotion(t, other, Promotion{Model: all.b.ID(), For: forOther})
			}
			c := topic.book.current(target{forMe, all.a.Layout.Fingerprint()})
			return c, w.setChampion(c, Promotion{Model: all.a.ID()})
		})
		return err
	}
	if err := change("b/**", "c/**"); err != nil || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if err := change("e*e/x", "*ee/x"); err == nil || !strings.Contains(err.Error(), "neither is more specific") {
		t.Errorf("a tie that came first: %v", err)
	}
	if err := change("acme/us*", "acme/us*"); err != nil {
		t.Error(err)
	}
	topic, s, refused := view(t, cfg)
	if len(refused) != 0 || len(s.Deployments()) != 4 {
		t.Errorf("%v, %v", said(s), refused)
	}
	for i, c := range topic.Book().History() {
		if i == 0 && (len(c.Previous) != 2 || c.Previous[0].Champion != all.b.ID() || c.Champion != all.a.ID()) {
			t.Errorf("it does not follow the other's: %+v", c)
		}
	}
	asked = -1000
	if _, err := w.change(testContext(t), func(topic *Topic) (*Change, error) {
		promotion(t, other, Promotion{Model: all.b.ID(), For: fmt.Sprintf("again/%d", -asked)})
		asked++
		c := topic.book.current(target{"c/**", all.a.Layout.Fingerprint()})
		return c, w.setChampion(c, Promotion{Model: all.b.ID()})
	}); err == nil || !strings.Contains(err.Error(), "others change deployments") || asked != writeTries-1000 {
		t.Errorf("%v, asked %d times", err, asked+1000)
	}
}

// Many people at once: every change has a number of its own, and each counts.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	publish(t, writer(cfg, anna), all.a)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			w := writer(cfg, anna)
			if _, err := w.Promote(testContext(t), Promotion{Model: all.a.ID(), For: fmt.Sprintf("site/%d", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	topic, s, refused := view(t, cfg)
	if len(s.Deployments()) != 4 || len(refused) != 0 {
		t.Errorf("%v, %v", said(s), refused)
	}
	for i, c := range topic.Book().History() {
		if c.Number != uint64(4-i) {
			t.Errorf("change %d has number %d", 4-i, c.Number)
		}
	}
}

// The topic keeps the newest changes of a deployment, and a model until it is removed.
func TestTidy(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w := writer(cfg, anna)
	publish(t, w, all.a)
	publish(t, w, all.b)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "other/**"})
	for i := range keptChanges + 5 {
		promotion(t, w, Promotion{Model: []string{all.a.ID(), all.b.ID()}[i%2], For: "acme/**"})
	}
	topic, s, refused := view(t, cfg)
	history := topic.Book().History()
	if len(history) != keptChanges+1 || len(refused) != 0 || len(s.Deployments()) != 2 || history[0].Number != keptChanges+6 || history[keptChanges].For != "other/**" {
		t.Errorf("%d changes, %v, %v", len(history), said(s), refused)
	}
	if len(history[0].Previous) != maxPast {
		t.Errorf("%d champions before", len(history[0].Previous))
	}
	ctx := testContext(t)
	for _, glob := range []string{"acme/**", "other/**"} {
		if _, err := w.Retire(ctx, glob, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.RemoveModel(ctx, all.b.ID()); err != nil {
		t.Fatal(err)
	}
	topic, s, refused = view(t, cfg)
	if ms := topic.Book().Models(); len(ms) != 1 || ms[0].ID != all.a.ID() || ms[0].SignedBy != KeyID(anna.Public()) || len(s.Deployments()) != 0 || len(refused) != 0 {
		t.Errorf("%+v, %v, %v", ms, said(s), refused)
	}
}

// Without signatures everything works that a monitor accepts which was asked to.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w := writer(cfg, signer{})
	w.Keys = NewKeys(true)
	publish(t, w, all.a)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "**"})
	insecure := follow(t, cfg, trusting(NewKeys(true, anna.Public()))).until("insecure", func(v View) bool { return len(v.Set.Deployments()) == 1 })
	if !insecure.Set.Deployments()[0].Unsigned {
		t.Error("it does not say that it is not signed")
	}
	secure := follow(t, cfg, trusting(ofAnna)).until("secure", func(View) bool { return true })
	if len(secure.Set.Deployments()) != 0 || len(secure.Refused) != 2 {
		t.Errorf("%v, %v", said(secure.Set), secure.Refused)
	}
	// A signature for the same model replaces the manifest without one.
	w = writer(cfg, anna)
	for _, r := range secure.Refused {
		if strings.HasPrefix(r.Key, changePrefix) {
			if err := w.Remove(testContext(t), r.Key); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(t, w, all.a)
	promotion(t, w, Promotion{Model: all.a.ID(), For: "**"})
	if _, s, refused := view(t, cfg); len(s.Deployments()) != 1 || s.Deployments()[0].Unsigned || len(refused) != 0 {
		t.Errorf("%v, %v", said(s), refused)
	}
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	wrong := errors.New("no key file")
	if err := Follow(testContext(t), bus.Config{}, func() (Keys, error) { return Keys{}, wrong }, nil); !errors.Is(err, wrong) {
		t.Error(err)
	}
	b := brokertest.Start(t)
	if err := Follow(testContext(t), b.Config("test"), trusting(ofAnna), nil); !errors.Is(err, bus.ErrNoTopic) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := writer(b.Config("test"), anna).Promote(ctx, Promotion{Model: "m", For: "**"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if deploytest.Key(1).Equal(deploytest.Key(2)) {
		t.Error("two keys are equal")
	}
}

// The curve of a model is there for readers that trust who signed it, the last one counts, and it goes with
// the model. A stranger's changes nothing, and neither does one that is too large.
func TestPublishCurve(t *testing.T) {
	t.Parallel()
	cfg, all := startBroker(t), trained()
	w, ctx := writer(cfg, anna), testContext(t)
	id := all.a.ID()
	if _, err := w.PublishCurve(ctx, id, []byte("{}")); err == nil || !strings.Contains(err.Error(), "publish it with `trainer publish`") {
		t.Errorf("before the model: %v", err)
	}
	publish(t, w, all.a)
	for _, step := range []struct {
		curve   string
		already bool
	}{{`{"one": 1}`, false}, {`{"one": 1}`, true}, {`{"two": 2}`, false}} {
		already, err := w.PublishCurve(ctx, id, []byte(step.curve))
		if err != nil || already != step.already {
			t.Errorf("%s: already there: %t, %v", step.curve, already, err)
		}
	}
	if _, err := writer(cfg, signer{}).PublishCurve(ctx, id, []byte("{}")); err == nil {
		t.Error("someone without keys sees the model")
	}
	stranger := message(signer{}, curvePrefix+id, curveType, "application/json", noon, []byte(`{"three": 3}`))
	gone := bus.Message{Topic: bus.TopicModels, Key: curvePrefix + id}
	large := message(anna, curvePrefix+id, curveType, "application/json", noon, make([]byte, MaxCurve+1))
	send(t, cfg, stranger, gone, large)
	if _, err := w.PublishCurve(ctx, id, make([]byte, MaxCurve+1)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too large: %v", err)
	}
	topic, _, refused := view(t, cfg)
	if got := topic.Book().Models(); len(got) != 1 || string(got[0].Curve) != `{"two": 2}` || len(refused) != 0 {
		t.Errorf("%d models, refused %v, curve %s", len(got), refused, got[0].Curve)
	}
	topic.Book().Trust(Keys{})
	if topic.Book().Curve(id) != nil {
		t.Error("the curve counts without its key")
	}
	if err := w.RemoveModel(ctx, id); err != nil {
		t.Fatal(err)
	}
	if topic, _, _ := view(t, cfg); topic.Book().Curve(id) != nil {
		t.Error("the curve outlives its model")
	}
}
