package monitor

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/window"
)

// ofForce returns a model of a force and a torque by a list of features, without a classifier. Its
// windows have a length and perhaps a hop; a second without.
func ofForce(list signal.FeatureSpec, windows ...time.Duration) *model.Model {
	layout, err := signal.NewLayout("force", []signal.Channel{
		{Name: "force", Kind: signal.Force, Unit: "N", Rate: 100}, {Name: "torque", Kind: signal.Force, Unit: "Nm", Rate: 10},
	})
	if err != nil {
		panic(err)
	}
	m := &model.Model{Layout: layout, Window: window.DefaultSpec, Features: list, Usual: make([]signal.Quality, 2)}
	if len(windows) > 0 {
		m.Window.Length = windows[0]
	}
	if len(windows) > 1 {
		m.Window.Hop = windows[1]
	}
	return m
}

// Windows give what all models of their layout and length take together, in any order of the
// models, and nothing that a model takes keeps it from one before it.
func TestWindowsGiveWhatModelsTake(t *testing.T) {
	plain, min, shape := ofForce(signal.FeatureSpec{}), ofForce(signal.FeatureSpec{Set: []string{"min", "rms"}}), ofForce(signal.FeatureSpec{Set: []string{"shape", "max"}})
	hop, long := ofForce(signal.FeatureSpec{Set: []string{"impulse"}}, time.Second, 500*time.Millisecond), ofForce(signal.FeatureSpec{Set: []string{"max"}}, 2*time.Second)
	old, none := ofForce(signal.FeatureSpec{Version: 1}), ofForce(signal.FeatureSpec{Set: []string{"horsepower"}})
	fraction := ofForce(signal.FeatureSpec{}, 3*time.Millisecond) // not a whole number of samples
	for name, tc := range map[string]struct {
		models, former []*model.Model
		refused        []*model.Model
		judged         map[time.Duration]string // features beyond the default ones, by length
	}{
		"none":                       {},
		"the default":                {models: []*model.Model{plain}, judged: map[time.Duration]string{time.Second: ""}},
		"a shadow with a set":        {models: []*model.Model{plain, min}, judged: map[time.Duration]string{time.Second: "min"}},
		"a champion with a set":      {models: []*model.Model{min, plain}, judged: map[time.Duration]string{time.Second: "min"}},
		"two sets":                   {models: []*model.Model{shape, min}, judged: map[time.Duration]string{time.Second: "min max shape"}},
		"another hop":                {models: []*model.Model{plain, hop, min}, judged: map[time.Duration]string{time.Second: "min impulse"}},
		"two lengths":                {models: []*model.Model{plain, long, min}, judged: map[time.Duration]string{time.Second: "min", 2 * time.Second: "max"}},
		"an older one":               {models: []*model.Model{plain, old, min}, refused: []*model.Model{old}, judged: map[time.Duration]string{time.Second: "min"}},
		"one that no one can use":    {models: []*model.Model{none, plain, long}, refused: []*model.Model{none}, judged: map[time.Duration]string{time.Second: "", 2 * time.Second: "max"}},
		"a length that cannot be":    {models: []*model.Model{fraction, plain}, refused: []*model.Model{fraction}, judged: map[time.Duration]string{time.Second: ""}},
		"a former one":               {models: []*model.Model{plain}, former: []*model.Model{min}, judged: map[time.Duration]string{time.Second: "min"}},
		"a former one of any length": {models: []*model.Model{plain}, former: []*model.Model{long}, judged: map[time.Duration]string{time.Second: "", 2 * time.Second: "max"}},
		"a former one that is older": {models: []*model.Model{min}, former: []*model.Model{old, shape}, judged: map[time.Duration]string{time.Second: "min max shape"}},
	} {
		l := new(layouts)
		var refused []*model.Model
		for _, r := range l.set(tc.models, tc.former...) {
			if refused = append(refused, r.model); r.why == nil {
				t.Errorf("%s: a model is refused, and no one says why", name)
			}
		}
		if !slices.Equal(refused, tc.refused) || len(l.ours) != len(tc.judged) {
			t.Errorf("%s: %d formats, refused %v, want %v", name, len(l.ours), refused, tc.refused)
		}
		for key, f := range l.ours {
			byDefault, err := window.NewForm(plain.Layout, window.Spec{Length: key.length}, signal.FeatureSpec{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var more []string
			for _, feature := range f.judged.Names() {
				if feature, ok := strings.CutPrefix(feature, "force."); ok && !slices.Contains(byDefault.Names(), "force."+feature) {
					more = append(more, feature)
				}
			}
			if got := strings.Join(more, " "); got != tc.judged[key.length] || f.features.Fingerprint() != byDefault.Fingerprint() || (f.judged == f.features) != (got == "") {
				t.Errorf("%s: windows of %v are judged by the default features and %q, want %q; default ones are published: %t", name, key.length, got, tc.judged[key.length], f.features.Fingerprint() == byDefault.Fingerprint())
			}
			for _, m := range tc.models {
				if m.Window.Length == key.length && !slices.Contains(refused, m) && m.Covers(f.judged) != nil {
					t.Errorf("%s: %v", name, m.Covers(f.judged))
				}
			}
		}
		if known := l.known[plain.Layout.Fingerprint()]; known != (len(tc.models) > 0) {
			t.Errorf("%s: a model is deployed: %t", name, known)
		}
	}
	if l, err := newLayouts([]*model.Model{none, plain}); err != nil || len(l.ours) != 1 {
		t.Errorf("one of two can be used: %v", err)
	}
	if _, err := newLayouts([]*model.Model{none, fraction}); err == nil || !strings.Contains(err.Error(), "horsepower") {
		t.Errorf("none can be used: %v", err)
	}
}

// Formats are the same values as long as what is extracted stays, and again the default once the
// model that wants more has gone.
func TestFormatsStay(t *testing.T) {
	plain, again, min, long := ofForce(signal.FeatureSpec{}), ofForce(signal.FeatureSpec{}), ofForce(signal.FeatureSpec{Set: []string{"min", "rms"}}), ofForce(signal.FeatureSpec{}, 2*time.Second)
	l := new(layouts)
	step := func(models ...*model.Model) *format {
		t.Helper()
		if refused := l.set(models); len(refused) > 0 {
			t.Fatalf("%+v", refused)
		}
		return l.ours[formatKey{plain.Layout.Fingerprint(), time.Second}]
	}
	first := step(plain)
	if first.judged != first.features || step(plain, again) != first || step(again, long) != first {
		t.Error("the format is another one, and the features are the same")
	}
	more := step(plain, min)
	if more == first || more.features != first.features || more.codec != first.codec || more.part == nil {
		t.Errorf("%+v after %+v", more, first)
	}
	if step(min, again) != more || step(min) != more {
		t.Error("the format is another one, and the models that want more are the same")
	}
	if last := step(plain); last.judged != first.features || last.features != first.features || last.part != nil {
		t.Errorf("%+v, at first %+v", last, first)
	}
	if f := step(); f != nil || len(l.forms) != 0 {
		t.Errorf("without models %+v", f)
	}
}

// What is published of a window is the default features, bit for bit, with any models.
func TestPublishedFeatures(t *testing.T) {
	frames := ofForce(signal.FeatureSpec{})
	frames.Cycle = &cycle.Model{Frames: 5, Inputs: []cycle.Input{{Channel: "force", Measure: cycle.Mean}}}
	w := forceAt(drill, 7)
	w.Samples[0][5] = float32(math.NaN())
	for name, models := range map[string][]*model.Model{
		"default":      {ofForce(signal.FeatureSpec{})},
		"more":         {ofForce(signal.FeatureSpec{}), ofForce(signal.FeatureSpec{Set: []string{"min", "shape"}})},
		"other frames": {frames},
	} {
		l, err := newLayouts(models)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range l.ours {
			var judged, other, want window.Features
			own := make(extractors)
			own.of(f.judged).Extract(w, &judged)
			f.features.NewExtractor().Extract(w, &want)
			sealed, err := f.features.Seal(f.publishable(&judged, &other, w, own))
			if err != nil {
				t.Fatal(err)
			}
			if expected, err := f.features.Seal(&want); err != nil || string(sealed.Value) != string(expected.Value) || len(want.Values) == 0 {
				t.Errorf("%s: other features are published, %v", name, err)
			}
			if twice := own[f.features] != nil && f.features != f.judged; twice != (name == "other frames") {
				t.Errorf("%s: features are extracted twice: %t", name, twice)
			}
		}
	}
}

// However large the layouts are that someone invents, those that are remembered take a bounded
// memory, and so do their extractors. The newest is always there.
func TestLargeLayouts(t *testing.T) {
	l, own := new(layouts), make(extractors)
	for i := range 6 {
		layout, err := signal.NewLayout("large", []signal.Channel{{Name: fmt.Sprint("c", i), Kind: signal.Vibration, Unit: "g", Rate: 200_000}})
		if err != nil {
			t.Fatal(err)
		}
		codec, err := window.NewCodec(layout, window.DefaultSpec)
		if err != nil {
			t.Fatal(err)
		}
		w := at(uint64(i), "T1", false)
		w.Samples = [][]float32{make([]float32, 200_000)}
		e, err := codec.Seal(w)
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.of(e)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := l.of(e); err != nil || again != f {
			t.Errorf("layout %d is not remembered: %v", i, err)
		}
		own.of(f.features)
		bytes := 0
		for f := range own {
			bytes += weight(f)
		}
		if own[f.features] == nil || bytes > extractorBytes {
			t.Errorf("%d extractors take %d bytes", len(own), bytes)
		}
	}
	if len(l.strange) != 3 { // of 80 MB each
		t.Errorf("%d layouts are remembered", len(l.strange))
	}
}

// trained returns ofForce with a classifier that calls twice the force faulty, and its file.
func trained(t *testing.T, list signal.FeatureSpec, seed uint64, change ...func(*model.Model)) (*model.Model, []byte) {
	t.Helper()
	m := ofForce(list)
	for _, c := range change {
		c(m)
	}
	x := dbn.NewMatrix(60, len(m.NewJudge().FeatureNames()))
	y := make([]int, x.Rows)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range y {
		y[i] = i % 3 / 2
		for k := range x.Row(i) {
			x.Row(i)[k] = float32(y[i]) + 0.1*float32(rng.NormFloat64())
		}
	}
	var err error
	if m.Classifier, _, err = classify.Fit(t.Context(), x, y, nil, classify.Settings{
		Network: dbn.Settings{Hidden: []int{3}, Pretrain: dbn.PretrainSettings{Epochs: 2}, FineTune: dbn.FineTuneSettings{Epochs: 60}}, Seed: 1,
	}); err != nil {
		t.Fatal(err)
	}
	m.Reference = model.ReferenceSpec{Windows: 2, Mode: model.ReferenceRatio}
	return m, deploytest.Prove(t, m, seed)
}

// forceAt returns a window of ofForce's layout.
func forceAt(machine string, seq uint64) *window.Window {
	w := at(seq, "T1", false)
	w.Machine, w.Samples, w.Quality = machine, [][]float32{make([]float32, 100), make([]float32, 10)}, make([]signal.Quality, 2)
	rng := rand.New(rand.NewPCG(seq, 9))
	for _, x := range w.Samples {
		for i := range x {
			x[i] = 10 + float32(rng.NormFloat64())
		}
	}
	return w
}

// A shadow with a set of features of its own, of one machine, judges there. The champions of all
// machines go on, and what is published of windows stays the same; also once the shadow has gone.
func TestShadowWithFeaturesOfItsOwn(t *testing.T) {
	t.Parallel()
	const lathe = "acme/line2/lathe"
	p := newPlant(t, 2)
	champion, file := trained(t, signal.FeatureSpec{}, 1)
	shadow, own := trained(t, signal.FeatureSpec{Set: []string{"min", "rms"}}, 2)
	if len(champion.NewJudge().FeatureNames()) == len(shadow.NewJudge().FeatureNames()) {
		t.Fatal("both take as many features: the test has no teeth")
	}
	p.judgesBy(champion)
	w := p.publish(file, own)
	promote := func(change deploy.Promotion) {
		t.Helper()
		if _, err := w.Promote(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	promote(deploy.Promotion{Model: champion.ID(), For: "acme/**"})
	promote(deploy.Promotion{Model: champion.ID(), For: drill})
	p.monitor(byDeployments(t, deploy.NewKeys(false, w.Signer.Public())))
	seq := uint64(0)
	judged := func(n int) {
		t.Helper()
		for range n {
			p.send(p.messages(forceAt(drill, seq), forceAt(lathe, seq))...)
			seq++
		}
		p.untilResults(2 * int(seq))
	}
	judged(3)
	promote(deploy.Promotion{Model: shadow.ID(), For: drill, Shadow: time.Hour})
	p.untilLogged(`"shadows":1`, 1)
	shadows := 0
	for shadows == 0 {
		judged(1)
		shadows = len(p.read(bus.TopicShadow))
	}
	judged(5)
	if _, err := w.Retire(t.Context(), drill, "", shadow.ID()); err != nil {
		t.Fatal(err)
	}
	p.untilLogged(`"shadows":0`, 4)
	judged(2)
	for id, r := range p.results() {
		if r.Model != champion.ID() {
			t.Errorf("%s is by %s", id, r.Model)
		}
	}
	for _, m := range p.read(bus.TopicShadow) {
		if m.Key != drill {
			t.Errorf("the shadow judges %s", m.Key)
		}
	}
	form, err := champion.Form()
	if err != nil {
		t.Fatal(err)
	}
	published := p.read(bus.TopicFeatures)
	for _, m := range published {
		if e, err := envelope.Of(&m); err != nil || e.Features != form.Fingerprint() {
			t.Errorf("features of form %s are published, %v", e.Features, err)
		}
	}
	if dead, advised := p.read(bus.TopicDead), p.ofType(event.AdvisoryType); len(published) != 2*int(seq) || len(dead) > 0 || len(advised) > 0 {
		t.Errorf("%d features, %d dead letters, %d advisories", len(published), len(dead), len(advised))
	}
}

// A champion with features of its own goes on with the tool in the spindle after another one was
// promoted, also in a monitor that starts later. The next tool is the new champion's.
func TestFormerChampionWithFeaturesOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	former, own := trained(t, signal.FeatureSpec{Set: []string{"min", "rms"}}, 1)
	champion, file := trained(t, signal.FeatureSpec{}, 2)
	p.judgesBy(champion)
	w := p.publish(own, file)
	promote := func(id string) {
		t.Helper()
		if _, err := w.Promote(t.Context(), deploy.Promotion{Model: id, For: "acme/**"}); err != nil {
			t.Fatal(err)
		}
	}
	keys := deploy.NewKeys(false, w.Signer.Public())
	promote(former.ID())
	m := p.monitor(byDeployments(t, keys))
	seq := uint64(0)
	judged := func(tool string, n int, by *model.Model) {
		t.Helper()
		for range n {
			next := forceAt(drill, seq)
			next.Tool = tool
			p.send(p.messages(next)...)
			seq++
		}
		p.untilResults(int(seq))
		for id, r := range p.results() {
			if r.Seq >= seq-uint64(n) && r.Model != by.ID() {
				t.Errorf("%s of tool %s is by %s, want %s", id, tool, r.Model, by.ID())
			}
		}
	}
	judged("T1", 4, former)
	promote(champion.ID())
	p.untilLogged(`"event":"deployed"`, 2)
	judged("T1", 2, former)
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	p.monitor(byDeployments(t, keys))
	judged("T1", 2, former)
	judged("T2", 2, champion)
	if dead, advised := p.read(bus.TopicDead), p.ofType(event.AdvisoryType); len(dead) > 0 || len(advised) > 0 {
		t.Errorf("%d dead letters, %d advisories", len(dead), len(advised))
	}
}

// judgesBy makes a model the plant's.
func (p *plant) judgesBy(m *model.Model) {
	p.t.Helper()
	codec, err := window.NewCodec(m.Layout, m.Window)
	if err != nil {
		p.t.Fatal(err)
	}
	p.model, p.codec = m, codec
}

// publish publishes models, and returns the writer that did.
func (p *plant) publish(files ...[]byte) *deploy.Writer {
	p.t.Helper()
	w := &deploy.Writer{Bus: p.bus, Signer: deploy.NewSigner(deploytest.Key(1)), By: "kim", Now: time.Now}
	for _, f := range files {
		if _, _, err := w.Publish(p.t.Context(), f); err != nil {
			p.t.Fatal(err)
		}
	}
	return w
}

// untilLogged waits until the log has a text so often.
func (p *plant) untilLogged(text string, n int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for strings.Count(p.log.String(), text) < n {
		if ctx.Err() != nil {
			p.t.Fatalf("the log has %q less than %d times:\n%s", text, n, p.log.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A model that does not go with the others is named in the log. As a shadow it does not judge, as
// a champion the windows of its machines are refused. The champion before it goes on.
func TestModelThatDoesNotFit(t *testing.T) {
	t.Parallel()
	const lathe = "acme/line2/lathe"
	p := newPlant(t, 2)
	champion, file := trained(t, signal.FeatureSpec{}, 1, func(m *model.Model) { m.Gate = &model.Gate{Channel: "force"} })
	odd, own := trained(t, signal.FeatureSpec{}, 2, func(m *model.Model) { m.Gate = &model.Gate{Channel: "torque"} })
	p.judgesBy(champion)
	w := p.publish(file, own)
	promote := func(change deploy.Promotion) {
		t.Helper()
		if _, err := w.Promote(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	promote(deploy.Promotion{Model: champion.ID(), For: "acme/**"})
	promote(deploy.Promotion{Model: odd.ID(), For: "acme/**", Shadow: time.Hour})
	p.monitor(byDeployments(t, deploy.NewKeys(false, w.Signer.Public())))
	p.send(p.messages(forceAt(drill, 0))...)
	p.untilResults(1)
	promote(deploy.Promotion{Model: odd.ID(), For: lathe})
	p.untilLogged(`"event":"deployed"`, 3)
	p.send(p.messages(forceAt(drill, 1), forceAt(lathe, 0))...)
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		return strings.Contains(string(msgs[len(msgs)-1].Value), "do not have what it tells cutting by")
	})
	p.send(p.messages(forceAt(drill, 2))...)
	p.untilResults(3)
	for _, r := range p.results() {
		if r.Machine != drill || r.Model != champion.ID() {
			t.Errorf("%+v is by a model that does not fit", r)
		}
	}
	if n := len(p.read(bus.TopicShadow)); n > 0 {
		t.Errorf("%d messages of a shadow that does not fit", n)
	}
	log := p.log.String()
	if n := strings.Count(log, `"event":"deployment_refused","model":"`+odd.ID()); n != 2 || strings.Contains(log, `"shadows":1`) || strings.Contains(log, `"event":"deployment_refused","model":"`+champion.ID()) {
		t.Errorf("the model is named %d times in\n%s", n, log)
	}
}
