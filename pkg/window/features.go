package window

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// Features is a window without its samples, and all that it is judged by. They do not
// depend on a model.
type Features struct {
	Window           // Samples is nil
	Form   *Form     // what the numbers below are
	Level  float64   // mean absolute value of the form's gate channel, in its unit; 0 without one
	Frames []float32 // measures of the frames that the machine's cycle is followed by, see cycle.Follower.Measure; empty without
	Values []float32 // in the order of Form.Names; NaN is missing
}

// Form says what features are: of which layout and window length, by which list. It must not
// be changed; then it is safe for concurrent use.
type Form struct {
	layout      *signal.Layout
	spec        Spec
	list        signal.FeatureSpec
	also        []signal.FeatureSpec // lists of the same version whose features are there too
	names       []string
	cutting     Cutting
	gate        int // channel in the layout, or -1
	samples     []int
	fingerprint string
	frames      int // numbers that frames have
	wire
}

// Cutting says what features hold to tell when a machine is cutting.
type Cutting struct {
	Gate  string       // channel whose level is measured; empty: none
	Cycle *cycle.Model // of which only the frames and inputs count; nil: no frames
}

// CuttingOf returns what features of a layout hold unless a model wants something else: the
// level of the first channel of force, and the frames of cycle.New. Samples says how many
// samples of each channel a window has.
func CuttingOf(layout *signal.Layout, samples []int) Cutting {
	c := Cutting{Cycle: cycle.New(layout, samples)}
	cs := layout.Channels()
	if i := slices.IndexFunc(cs, func(c signal.Channel) bool { return c.Kind == signal.Force }); i >= 0 {
		c.Gate = cs[i].Name
	}
	return c
}

// measures returns the frames and inputs of c in a form that can be compared.
func (c Cutting) measures() (frames int, inputs []string) {
	if c.Cycle == nil {
		return 0, nil
	}
	for _, in := range c.Cycle.Inputs {
		inputs = append(inputs, in.Channel+" "+string(in.Measure))
	}
	return c.Cycle.Frames, inputs
}

// NewForm returns the form of features of windows of a layout and length: all that list or one
// of also names, which are of the same version. A nil cutting means CuttingOf. It reports a spec
// or a list that cannot be used.
func NewForm(layout *signal.Layout, spec Spec, list signal.FeatureSpec, cutting *Cutting, also ...signal.FeatureSpec) (*Form, error) {
	if err := spec.Check(layout); err != nil {
		return nil, err
	}
	f := &Form{layout: layout, spec: Spec{Length: spec.Length}, gate: -1}
	for _, c := range layout.Channels() {
		f.samples = append(f.samples, spec.Samples(c.Rate))
	}
	x, err := signal.NewExtractor(layout, f.samples, list, also...)
	if err != nil {
		return nil, err
	}
	f.list, f.also, f.names = x.Spec(), slices.Clone(also), slices.Clone(x.Names())
	if cutting == nil {
		f.cutting = CuttingOf(layout, f.samples)
	} else {
		f.cutting = *cutting
	}
	if f.cutting.Gate != "" {
		if f.gate = layout.Index(f.cutting.Gate); f.gate < 0 {
			return nil, fmt.Errorf("window: features: channel %q is not in the layout", f.cutting.Gate)
		}
	}
	frames, inputs := f.cutting.measures()
	text, err := json.Marshal(struct {
		Layout       string
		Length       int64
		Version      int
		Names        []string
		Gate         string
		Frames       int
		FrameColumns []string
	}{layout.Fingerprint(), int64(spec.Length), f.list.Version, f.names, f.cutting.Gate, frames, inputs})
	if err != nil {
		return nil, fmt.Errorf("window: features: %w", err)
	}
	sum := sha256.Sum256(text)
	f.fingerprint = fmt.Sprintf("%x", sum[:8])
	return f, f.makeSchema(frames * len(inputs))
}

// makeSchema sets the schema and what values are checked against. (schemas/features.arrow.md)
func (f *Form) makeSchema(frames int) (err error) {
	n := len(f.layout.Channels())
	fields := append(factFields(n),
		arrow.Field{Name: "tool_life", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "level", Type: arrow.PrimitiveTypes.Float64},
		arrow.Field{
			Name: "features", Type: arrow.FixedSizeListOfNonNullable(int32(len(f.names)), arrow.PrimitiveTypes.Float32),
			Metadata: arrow.NewMetadata([]string{"version", "layout", "fingerprint"}, []string{strconv.Itoa(f.list.Version), f.layout.Fingerprint(), f.fingerprint}),
		})
	if frames > 0 {
		fields = append(fields, arrow.Field{Name: "frames", Type: arrow.FixedSizeListOfNonNullable(int32(frames), arrow.PrimitiveTypes.Float32)})
	}
	f.frames = frames
	f.wire, err = newWire(fields, maxText+signal.MaxToolLife)
	return err
}

// Fingerprint identifies the form: 16 hexadecimal digits of a checksum over layout, window
// length, version and names of the features, and what frames measure.
func (f *Form) Fingerprint() string { return f.fingerprint }

// Layout returns the layout of the windows.
func (f *Form) Layout() *signal.Layout { return f.layout }

// Length returns the spec of the windows, without their hop, which features do not depend on.
func (f *Form) Length() Spec { return f.spec }

// List returns the list of the features, its version filled in: the first one of a form that
// was made of several.
func (f *Form) List() signal.FeatureSpec { return f.list }

// Names returns the names of the values, in order. The caller must not change them.
func (f *Form) Names() []string { return f.names }

// Measures reports whether features of the form tell all that a model which tells cutting by
// c looks at.
func (f *Form) Measures(c Cutting) bool {
	if c.Gate != "" && c.Gate != f.cutting.Gate {
		return false
	}
	if c.Cycle == nil {
		return true
	}
	frames, inputs := f.cutting.measures()
	want, names := c.measures()
	return frames == want && slices.Equal(inputs, names)
}

// Part takes features of one form out of features of another one that has more.
type Part struct {
	form *Form
	at   []int // by feature of form: where it is among the others
}

// PartOf returns how to take features of f out of features of whole. It reports false if
// features of whole do not have all of them, bit for bit.
func (f *Form) PartOf(whole *Form) (Part, bool) {
	frames, inputs := f.cutting.measures()
	more, columns := whole.cutting.measures()
	if f.layout.Fingerprint() != whole.layout.Fingerprint() || f.spec != whole.spec || f.list.Version != whole.list.Version ||
		f.cutting.Gate != whole.cutting.Gate || frames != more || !slices.Equal(inputs, columns) {
		return Part{}, false
	}
	at := make(map[string]int, len(whole.names))
	for i, name := range whole.names {
		at[name] = i
	}
	p := Part{form: f}
	for _, name := range f.names {
		i, ok := at[name]
		if !ok {
			return Part{}, false
		}
		p.at = append(p.at, i)
	}
	return p, true
}

// Take stores in into what it takes out of the features of the whole, reusing into's memory.
func (p Part) Take(whole, into *Features) {
	quality, frames, values := append(into.Quality[:0], whole.Quality...), append(into.Frames[:0], whole.Frames...), into.Values[:0]
	for _, i := range p.at {
		values = append(values, whole.Values[i])
	}
	*into = *whole
	into.Form, into.Quality, into.Frames, into.Values = p.form, quality, frames, values
}

// FeatureExtractor computes features of windows. One goroutine at a time may use it.
type FeatureExtractor struct {
	form     *Form
	features *signal.Extractor
	follower *cycle.Follower // nil: no frames
}

// Frames returns how many numbers the frames of features have.
func (f *Form) Frames() int { return f.frames }

// NewExtractor returns an extractor of features of the form.
func (f *Form) NewExtractor() *FeatureExtractor {
	x, err := signal.NewExtractor(f.layout, f.samples, f.list, f.also...)
	if err != nil {
		panic("window: NewExtractor: " + err.Error()) // NewForm did the same
	}
	e := &FeatureExtractor{form: f, features: x}
	if f.cutting.Cycle != nil {
		e.follower = cycle.NewFollower(f.cutting.Cycle, f.layout, f.spec.Length, f.spec.Step())
	}
	return e
}

// Extract stores the features of w in f, reusing f's memory. It panics if w does not have the
// shape of the form. Nothing of w is kept.
func (x *FeatureExtractor) Extract(w *Window, f *Features) {
	quality := append(f.Quality[:0], w.Quality...)
	f.Window = *w
	f.Samples, f.Quality, f.Drift, f.Form = nil, quality, 0, x.form
	f.SpindleSpeed, f.FeedRate = finiteSpeed(f.SpindleSpeed), knownFeedRate(f.FeedRate) // as Codec.Open has it, so that gateways and monitors extract the same
	f.Level, f.Frames = 0, f.Frames[:0]
	if x.follower != nil {
		f.Frames = x.follower.Measure(f.Frames, w.Samples)
	}
	if x.form.gate >= 0 {
		f.Level = Level(w.Samples[x.form.gate])
	}
	f.Values = x.features.Extract(f.Values[:0], w.Samples, f.Context)
}

// Level returns the mean absolute value of the samples that are there, which a
// gate compares with its threshold; 0 without samples.
func Level(x []float32) float64 {
	var sum float64
	n := 0
	for _, v := range x {
		if v == v && !math.IsInf(float64(v), 0) {
			sum += math.Abs(float64(v))
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// Seal returns x in an envelope of its own memory. It panics if x is not of the form, and
// reports texts that are too long.
func (f *Form) Seal(x *Features) (Envelope, error) {
	cells, err := f.cells(x)
	if err != nil {
		return Envelope{}, err
	}
	value, err := f.seal(nil, cells, &x.Window)
	if err != nil {
		return Envelope{}, fmt.Errorf("window: seal features of seq %d: %w", x.Seq, err)
	}
	return Envelope{
		Machine: x.Machine, ToolLife: x.ToolLife, Epoch: x.Epoch, Seq: x.Seq, Time: x.End(),
		Layout: f.layout.Fingerprint(), Features: f.fingerprint, CRC: crc32.Checksum(value, castagnoli), Value: value,
	}, nil
}

// cells returns the row of x, which shares its numbers.
func (f *Form) cells(x *Features) ([]cell, error) {
	if len(x.Quality) != len(f.samples) || len(x.Values) != len(f.names) || len(x.Frames) != f.frames {
		panic(fmt.Sprintf("window: Seal: %d channels, %d features and %d measures of frames, expected %d, %d and %d",
			len(x.Quality), len(x.Values), len(x.Frames), len(f.samples), len(f.names), f.frames))
	}
	cells, err := factCells(&x.Window, 4)
	if err != nil {
		return nil, err
	}
	cells = append(cells, cell{text: x.ToolLife}, cell{numbers: arrow.Float64Traits.CastToBytes([]float64{x.Level})}, cell{numbers: arrow.Float32Traits.CastToBytes(x.Values)})
	if f.frames > 0 {
		cells = append(cells, cell{numbers: arrow.Float32Traits.CastToBytes(x.Frames)})
	}
	return cells, nil
}

// otherForm names what differs between the form of e and f, as far as a message says it.
func (f *Form) otherForm(e Envelope) error {
	if ours := f.layout.Fingerprint(); e.Layout != ours {
		return &Mismatch{OtherLayout, fmt.Sprintf("features of layout %.32q, expected layout %s", e.Layout, ours)}
	}
	if w, err := FactsOf(e); err == nil && w.Length != f.spec.Length {
		return &Mismatch{OtherLength, fmt.Sprintf("features of windows of %v, expected windows of %v", w.Length, f.spec.Length)}
	}
	return &Mismatch{OtherFeatures, fmt.Sprintf("features of form %.32q, expected %s: other features, or of another version than %d", e.Features, f.fingerprint, f.list.Version)}
}

// Open checks e and stores the features in x, reusing x's memory, as Codec.Open does with
// windows. Errors wrap ErrCorrupt, or are a *Mismatch; x is then undefined.
func (f *Form) Open(e Envelope, x *Features) (err error) {
	if e.Features != f.fingerprint {
		return f.otherForm(e)
	}
	if got := e.sum(); got != e.CRC || len(e.Value) > f.limit {
		return fmt.Errorf("window: features: %d bytes with checksum %08x, header says %08x, and at most %d are sent: %w", len(e.Value), got, e.CRC, f.limit, ErrCorrupt)
	}
	if !bytes.HasPrefix(e.Value, f.prefix) {
		return &Mismatch{OtherSchema, "the Arrow schema does not belong to the features: another release may have sent it"}
	}
	cols, err := f.open(e, f.spec, &x.Window)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("window: features: a text: %v: %w", r, ErrCorrupt)
		}
	}()
	x.Samples, x.Form = nil, f
	if cols.text(bufToolLife, &x.ToolLife); x.ToolLife != e.ToolLife || len(x.ToolLife) > signal.MaxToolLife {
		return fmt.Errorf("window: headers name life %.64q of the tool, the value %.64q: %w", e.ToolLife, x.ToolLife, ErrCorrupt)
	}
	x.Level = math.Float64frombits(cols.number(bufLevel))
	if !(x.Level >= 0) || math.IsInf(x.Level, 0) {
		return fmt.Errorf("window: features: a level of %v: %w", x.Level, ErrCorrupt)
	}
	x.Values, x.Frames = cols.floats(x.Values, bufValues, len(f.names)), x.Frames[:0]
	if f.frames > 0 {
		x.Frames = cols.floats(x.Frames, bufFrames, f.frames)
	}
	for _, numbers := range [][]float32{x.Values, x.Frames} {
		for _, v := range numbers {
			if math.IsInf(float64(v), 0) { // an extractor says NaN
				return fmt.Errorf("window: features: a value of %v: %w", v, ErrCorrupt)
			}
		}
	}
	return nil
}
