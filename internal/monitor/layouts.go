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
	judged   *window.Form // that the models of the layout judge by; nearly always features
}

// formatKey is what a format is of.
type formatKey struct {
	layout string // its fingerprint
	length time.Duration
}

// mostStrange is how many formats are remembered that no model is of. Anyone who may write to
// the topic can invent layouts.
const mostStrange = 64

// layouts knows the formats of windows: those that models are trained on, and those that were
// met. It is safe for concurrent use, also while the models are replaced.
type layouts struct {
	mu      sync.Mutex
	ours    map[formatKey]*format
	strange []*format               // that no model is of, the one that was used last at the end
	forms   map[string]*window.Form // of features, by fingerprint
	known   map[string]bool         // fingerprints of the models' layouts
}

// newLayouts returns the layouts of models.
func newLayouts(models []*model.Model) (*layouts, error) {
	l := new(layouts)
	return l, l.set(models)
}

// set replaces the models. Formats that stay are the same values. After an error nothing has
// changed.
func (l *layouts) set(models []*model.Model) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ours, forms, known := make(map[formatKey]*format), make(map[string]*window.Form), make(map[string]bool)
	of := make(map[formatKey][]*model.Model)
	for _, m := range models {
		key := formatKey{m.Layout.Fingerprint(), m.Window.Length}
		of[key] = append(of[key], m)
		known[key.layout] = true
	}
	for key, all := range of {
		f, err := l.formatOf(key, all)
		if err != nil {
			return err
		}
		ours[key] = f
		for version := 1; version <= signal.FeatureVersion; version++ { // gateways may be of another release
			if version == f.features.List().Version {
				continue
			}
			form, err := window.NewForm(all[0].Layout, all[0].Window, signal.FeatureSpec{Version: version}, nil)
			if err != nil {
				return err
			}
			forms[form.Fingerprint()] = form
		}
		forms[f.judged.Fingerprint()] = f.judged
		forms[f.features.Fingerprint()] = f.features
	}
	l.ours, l.forms, l.known = ours, forms, known
	return nil
}

// formatOf returns the format for the models of a layout and length. Models that do not do
// with the layout's own features, such as older ones, judge by others: if models want
// different ones, by the first model's.
func (l *layouts) formatOf(key formatKey, models []*model.Model) (*format, error) {
	f, err := newFormat(models[0].Layout, models[0].Window)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		if m.Covers(f.features) == nil {
			continue
		}
		if f.judged, err = m.Form(); err != nil {
			return nil, err
		}
		break
	}
	if was := l.ours[key]; was != nil && was.judged.Fingerprint() == f.judged.Fingerprint() {
		return was, nil
	}
	return f, nil
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
	return &format{codec, form, form}, nil
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
	if len(l.strange) == mostStrange {
		l.strange = slices.Delete(l.strange, 0, 1)
	}
	l.strange = append(l.strange, f)
	return f, nil
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

// mostExtractors is how many extractors a partition keeps: they take memory for each layout.
const mostExtractors = 16

// extractors are extractors of forms, for one goroutine.
type extractors map[*window.Form]*window.FeatureExtractor

// of returns the extractor of a form.
func (x extractors) of(f *window.Form) *window.FeatureExtractor {
	if x[f] == nil {
		if len(x) == mostExtractors {
			clear(x)
		}
		x[f] = f.NewExtractor()
	}
	return x[f]
}
