package monitor

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// format is how windows of one layout and length are opened, and what features are made of
// them. It is not changed once it is made.
type format struct {
	codec    *window.Codec
	features *window.Form // that are published, with any models
	judged   *window.Form // that the models of the layout judge by: features, and what models take beyond them
	part     *window.Part // takes features out of those that are judged; nil: they are the same, or it cannot
}

// formatKey is what a format is of.
type formatKey struct {
	layout string // its fingerprint
	length time.Duration
}

// mostStrange is how many formats are remembered that no model is of, and strangeBytes about how
// much memory they may take, unless one alone takes more. Anyone who may write to the topic can
// invent layouts.
const (
	mostStrange  = 64
	strangeBytes = 256 << 20
)

// weight returns about how many bytes a form and its extractor take.
func weight(f *window.Form) int {
	longest := 0
	cs := f.Layout().Channels()
	for _, c := range cs {
		longest = max(longest, f.Length().Samples(c.Rate))
	}
	return 4000*len(cs) + 500*len(f.Names()) + 400*longest // measured: 2 MB to 140 MB
}

// layouts knows the formats of windows: those that models are trained on, and those that were
// met. It is safe for concurrent use, also while the models are replaced.
type layouts struct {
	setting sync.Mutex // held while the models are replaced
	mu      sync.Mutex
	ours    map[formatKey]*format
	strange []*format               // that no model is of, the one that was used last at the end
	forms   map[string]*window.Form // of features, by fingerprint
	known   map[string]bool         // fingerprints of the models' layouts
}

// unfit is a model that cannot judge what is extracted, and why.
type unfit struct {
	model *model.Model
	why   error
}

// newLayouts returns the layouts of models. It reports models none of which can be used.
func newLayouts(models []*model.Model) (*layouts, error) {
	l := new(layouts)
	refused := l.set(models)
	if len(refused) == 0 || len(refused) < len(models) {
		return l, nil
	}
	return nil, fmt.Errorf("monitor: model %s: %w", refused[0].model.ID(), refused[0].why)
}

// set replaces the models, which come in the order of their importance. Former ones are not
// deployed any more, and may judge all the same until a tool is changed. Formats that stay are
// the same values. It returns the models, without former ones, that do not fit those before
// them: what they take is not extracted.
func (l *layouts) set(models []*model.Model, former ...*model.Model) (refused []unfit) {
	l.setting.Lock()
	defer l.setting.Unlock()
	ours, forms, known := make(map[formatKey]*format), make(map[string]*window.Form), make(map[string]bool)
	var keys []formatKey
	of := make(map[formatKey][]*model.Model)
	for i, m := range slices.Concat(models, former) {
		key := formatKey{m.Layout.Fingerprint(), m.Window.Length}
		if of[key] == nil {
			keys = append(keys, key)
		}
		of[key] = append(of[key], m)
		known[key.layout] = known[key.layout] || i < len(models)
	}
	for _, key := range keys {
		f, unable := formatOf(of[key], l.ours[key]) // only set writes l.ours
		for _, u := range unable {
			if slices.Contains(models, u.model) {
				refused = append(refused, u)
			}
		}
		if f == nil {
			continue
		}
		ours[key] = f
		for _, form := range []*window.Form{f.judged, f.features} {
			forms[form.Fingerprint()] = form
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ours, l.forms, l.known = ours, forms, known
	return refused
}

// formatOf returns the format for the models of a layout and length, and the models that do not
// fit. The format is the one that there was if nothing has changed, and nil if no model fits.
func formatOf(models []*model.Model, was *format) (f *format, refused []unfit) {
	if was == nil {
		var err error
		if was, err = newFormat(models[0].Layout, models[0].Window); err != nil {
			for _, m := range models {
				refused = append(refused, unfit{m, err})
			}
			return nil, refused
		}
	}
	judged, why := model.JointForm(models)
	for i, m := range models {
		if why[i] != nil {
			refused = append(refused, unfit{m, why[i]})
		}
	}
	switch {
	case judged == nil:
		return nil, refused
	case judged.Fingerprint() == was.judged.Fingerprint():
		return was, refused
	}
	f = &format{codec: was.codec, features: was.features, judged: judged}
	if judged.Fingerprint() == was.features.Fingerprint() {
		f.judged = was.features
	} else if p, ok := f.features.PartOf(judged); ok {
		f.part = &p
	}
	return f, refused
}

// newFormat returns the format of a layout and length that no model is of.
func newFormat(layout *signal.Layout, spec window.Spec) (*format, error) {
	codec, err := window.NewCodec(layout, window.Spec{Length: spec.Length})
	if err != nil {
		return nil, err
	}
	form, err := window.NewForm(layout, spec, signal.FeatureSpec{}, nil)
	if err != nil {
		return nil, err
	}
	return &format{codec: codec, features: form, judged: form}, nil
}

// publishes reports whether the features that are published of the windows of a model are enough for it.
func (l *layouts) publishes(m *model.Model) bool {
	l.mu.Lock()
	f := l.ours[formatKey{m.Layout.Fingerprint(), m.Window.Length}]
	l.mu.Unlock()
	return f == nil || m.Covers(f.features) == nil
}

// publishable returns the features of x that are published, in x's memory or in
// other's. The window must have its samples unless x has all of them.
func (f *format) publishable(x, other *window.Features, w *window.Window, own extractors) *window.Features {
	switch {
	case x.Form == f.features:
		return x
	case f.part != nil && x.Form == f.judged:
		f.part.Take(x, other)
	default:
		own.of(f.features).Extract(w, other)
	}
	return other
}

// of returns the format of a sealed window. One that no model is of is derived from the
// window itself.
func (l *layouts) of(e window.Envelope) (*format, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, f := range l.ours {
		if key.layout == e.Layout && f.codec.Sealed(e) {
			return f, nil
		}
	}
	for i, f := range l.strange {
		if f.codec.Layout().Fingerprint() == e.Layout && f.codec.Sealed(e) {
			l.strange = append(slices.Delete(l.strange, i, i+1), f)
			return f, nil
		}
	}
	layout, spec, err := window.LayoutOf(e)
	if err != nil {
		return nil, err
	}
	f, err := newFormat(layout, spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, window.ErrCorrupt)
	}
	if !f.codec.Sealed(e) {
		return nil, &window.Mismatch{What: window.OtherSchema, Text: "the Arrow schema does not belong to the layout: another release of ingest may have sent it"}
	}
	l.keep(f)
	return f, nil
}

// keep keeps a format that no model is of, in place of those that were used least recently.
func (l *layouts) keep(f *format) {
	l.strange = append(l.strange, f)
	bytes := 0
	for i, s := range slices.Backward(l.strange) {
		if bytes += weight(s.features); s != f && (bytes > strangeBytes || len(l.strange)-i > mostStrange) {
			l.strange = slices.Delete(l.strange, 0, i+1)
			return
		}
	}
}

// form returns the form that features in an envelope are of, or why no model can judge them.
func (l *layouts) form(e window.Envelope) (*window.Form, *window.Mismatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.forms[e.Features]; f != nil {
		return f, nil
	}
	if !l.known[e.Layout] {
		return nil, &window.Mismatch{What: machine.NoModel, Text: fmt.Sprintf("no model is deployed for it with layout %.32q", e.Layout)}
	}
	return nil, &window.Mismatch{What: window.OtherFeatures, Text: fmt.Sprintf("features of form %.32q, which no model of layout %.32q judges by: windows of another length, or another release extracted them", e.Features, e.Layout)}
}

// mostExtractors is how many extractors a partition keeps, and extractorBytes about how much memory
// they may take, unless one alone takes more.
const (
	mostExtractors = 16
	extractorBytes = 128 << 20
)

// extractors are extractors of forms, for one goroutine.
type extractors map[*window.Form]*window.FeatureExtractor

// of returns the extractor of a form.
func (x extractors) of(f *window.Form) *window.FeatureExtractor {
	if x[f] == nil {
		bytes := weight(f)
		for other := range x {
			bytes += weight(other)
		}
		if len(x) == mostExtractors || bytes > extractorBytes {
			clear(x)
		}
		x[f] = f.NewExtractor()
	}
	return x[f]
}
