package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// relations has one of each.
var relations = []signal.Relation{signal.Difference, signal.LogRatio, signal.Ratio}

// By hand, in every mode: x, its reference r, and what becomes of it.
func TestRelate(t *testing.T) {
	const huge = math.MaxFloat32
	nan := math.NaN()
	difference, logRatio, plain := relations[:1], relations[1:2], relations[2:]
	kind := ReferenceSpec{Mode: ReferenceKind}
	positive, mixed := ReferenceSpec{Mode: ReferenceLog, Positive: "1"}, ReferenceSpec{Mode: ReferenceLog, Positive: "0"}
	for name, tc := range map[string]struct {
		spec       ReferenceSpec
		relation   []signal.Relation
		x, r, want float64
	}{
		"off leaves it":                                {ReferenceSpec{Mode: ReferenceOff}, nil, 7, 3, 7},
		"difference":                                   {ReferenceSpec{Mode: ReferenceDifference}, nil, 7, 3, 4},
		"ratio":                                        {ReferenceSpec{Mode: ReferenceRatio}, nil, 6, 3, 1},
		"ratio to something negative":                  {ReferenceSpec{Mode: ReferenceRatio}, nil, -6, -3, -1},
		"ratio at its limit":                           {ReferenceSpec{Mode: ReferenceRatio}, nil, 1000, 3, RatioLimit},
		"ratio to zero has no scale":                   {ReferenceSpec{Mode: ReferenceRatio}, nil, -1, 0, -RatioLimit},
		"kind: a difference":                           {kind, difference, 7, 3, 4},
		"kind: a log ratio":                            {kind, logRatio, 6, 3, math.Ln2},
		"kind: both zero are equal":                    {kind, logRatio, 0, 0, 0},
		"kind: its limit is the limit of ratios":       {kind, logRatio, 3, 0, RatioLimit},
		"kind: a negative size is missing":             {kind, logRatio, -1, 1, nan},
		"kind: a ratio":                                {kind, plain, 6, 3, 1},
		"log":                                          {positive, nil, 6, 3, math.Ln2},
		"log of less":                                  {positive, nil, 3, 6, -math.Ln2},
		"log of no change":                             {positive, nil, 0.1, 0.1, 0},
		"log, just inside its limit":                   {positive, nil, 148, 1, math.Log(148)},
		"log, just beyond its limit":                   {positive, nil, 149, 1, LogLimit},
		"log, just beyond its lower limit":             {positive, nil, 1, 149, -LogLimit},
		"log of the largest to the smallest":           {positive, nil, huge, math.SmallestNonzeroFloat32, LogLimit},
		"log: zero is floored":                         {positive, nil, 0, 3, -LogLimit},
		"log: a negative is floored":                   {positive, nil, -huge, 3, -LogLimit},
		"log: zero relative to zero":                   {positive, nil, 0, 0, 0},
		"log: a negative relative to a negative":       {positive, nil, -1, -100, 0},
		"log: a reference of zero is floored":          {positive, nil, 1e-10, 0, math.Log(100)},
		"log: below the floor all are alike":           {positive, nil, 1e-20, 1e-30, 0},
		"log: a missing one stays missing":             {positive, nil, nan, 3, nan},
		"log: so does one that the tool never had":     {positive, nil, 3, nan, nan},
		"log: not positive in training":                {mixed, nil, 7, 3, 4},
		"log: nothing bounds a difference":             {mixed, nil, 7000, -3, 7003},
		"log: a missing difference":                    {mixed, nil, nan, 3, nan},
		"log looks at signs and not at the given kind": {mixed, logRatio, 6, 3, 3},
	} {
		got := []float32{99}
		tc.spec.Relate(got, []float32{float32(tc.x)}, []float32{float32(tc.r)}, tc.relation)
		if d := math.Abs(float64(got[0]) - tc.want); !(d <= 1e-6*(1+math.Abs(tc.want))) && (got[0] == got[0] || tc.want == tc.want) {
			t.Errorf("%s: %v relative to %v is %v, want %v", name, tc.x, tc.r, got[0], tc.want)
		}
	}
}

// modes are specs that relate n features, one of each.
func modes(n int) []ReferenceSpec {
	mixed := strings.Repeat("10", n)[:n]
	return []ReferenceSpec{
		{Windows: 1, Mode: ReferenceOff}, {Windows: 1, Mode: ReferenceKind}, {Windows: 1, Mode: ReferenceRatio},
		{Windows: 1, Mode: ReferenceDifference}, {Windows: 1, Mode: ReferenceLog, Positive: mixed},
	}
}

func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b })
}

// A row may take the place of its features, nothing else is written to, and
// nothing but a feature itself and its reference counts.
func TestRelateLaws(t *testing.T) {
	value := rapid.OneOf(rapid.Float32Range(-100, 100), rapid.SampledFrom([]float32{0, 1e-20, 1e30, float32(math.NaN())}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "features")
		x, center := rapid.SliceOfN(value, n, n).Draw(t, "x"), rapid.SliceOfN(value, n, n).Draw(t, "center")
		kinds := rapid.SliceOfN(rapid.SampledFrom(relations), n, n).Draw(t, "relations")
		for _, s := range modes(n) {
			was, wasCenter := slices.Clone(x), slices.Clone(center)
			dst := make([]float32, n)
			s.Relate(dst, x, center, kinds)
			if !same(x, was) || !same(center, wasCenter) {
				t.Fatalf("%s changed %v to %v, %v to %v", s.Mode, was, x, wasCenter, center)
			}
			place := slices.Clone(x)
			s.Relate(place, place, center, kinds)
			if !same(place, dst) {
				t.Fatalf("%s in place %v, else %v", s.Mode, place, dst)
			}
			for i := range x {
				one := s
				if s.Positive != "" {
					one.Positive = s.Positive[i : i+1]
				}
				alone := []float32{0}
				one.Relate(alone, x[i:i+1], center[i:i+1], kinds[i:i+1])
				if !same(alone, dst[i:i+1]) {
					t.Fatalf("%s: %v relative to %v is %v alone and %v in a row", s.Mode, x[i], center[i], alone[0], dst[i])
				}
				if s.Mode == ReferenceLog && s.Positive[i] == '1' && !(math.Abs(float64(dst[i])) <= LogLimit) && x[i] == x[i] && center[i] == center[i] {
					t.Fatalf("log of %v to %v is %v", x[i], center[i], dst[i])
				}
			}
		}
	})
}

// The logarithm agrees with package math, to half the distance of two float32.
func TestFlooredLogIsTheLogarithm(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, x, r float64) {
		want := max(-LogLimit, min(LogLimit, math.Log(max(LogFloor, x)/max(LogFloor, r))))
		if got := float64(flooredLog(x, r)); math.Abs(got-want) > 6.1e-8*math.Abs(want) {
			t.Fatalf("ln(%v/%v) is %v, want %v", x, r, got, want)
		}
	}
	for _, q := range []float64{1, math.Sqrt2, math.Sqrt2 / 2, 2, 0.5, math.E, 1 - 1e-7, 1 + 1e-7, math.Nextafter(1, 0), math.Inf(1), 0} {
		for _, near := range []float64{math.Nextafter(q, 0), q, math.Nextafter(q, 2)} {
			check(t, near, 1)
			check(t, 1, near)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.Float64Range(1e-13, 1e30).Draw(t, "r")
		check(t, rapid.OneOf(rapid.Float64Range(-1, math.MaxFloat32), rapid.Map(rapid.Float64Range(0.5, 2), func(f float64) float64 { return f * r })).Draw(t, "x"), r)
	})
}

// The scale of a positive feature, such as the gain of one tool's sensor, drops out
// of its logarithm.
func TestLogDropsScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float32Range(1e-3, 1e3)
		n := rapid.IntRange(1, 5).Draw(t, "features")
		spec := ReferenceSpec{Windows: rapid.IntRange(1, 5).Draw(t, "windows"), Mode: ReferenceLog, Positive: strings.Repeat("1", n)}
		gain := rapid.Float32Range(1e-3, 1e3).Draw(t, "gain")
		louder := func(x []float32) []float32 {
			y := make([]float32, len(x))
			for i := range x {
				y[i] = gain * x[i]
			}
			return y
		}
		var soft, loud Reference
		for range spec.Windows {
			row := rapid.SliceOfN(value, n, n).Draw(t, "learnt")
			soft.Learn(row, spec)
			loud.Learn(louder(row), spec)
		}
		x := rapid.SliceOfN(value, n, n).Draw(t, "x")
		y := louder(x)
		spec.Relate(x, x, soft.Center(), nil)
		spec.Relate(y, y, loud.Center(), nil)
		for i := range x {
			if math.Abs(float64(x[i]-y[i])) > 1e-5 {
				t.Fatalf("feature %d is %v, with %v times the gain %v", i, x[i], gain, y[i])
			}
		}
	})
}

// Undo takes back what Relate does, in every mode.
func TestReferenceUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float32Range(0.1, 10)
		x, center := rapid.SliceOfN(value, 3, 3).Draw(t, "x"), rapid.SliceOfN(value, 3, 3).Draw(t, "center")
		for _, s := range modes(3) {
			row := make([]float32, 3)
			s.Relate(row, x, center, relations)
			for i, z := range row {
				limit := map[Mode]float64{ReferenceLog: LogLimit, ReferenceRatio: RatioLimit, ReferenceKind: RatioLimit}[s.Mode]
				if limit > 0 && math.Abs(float64(z)) >= limit {
					continue
				}
				if got, want := s.undo(float64(z), i, center, relations), float64(x[i]); math.Abs(got-want) > 1e-4 {
					t.Fatalf("%s, feature %d, reference %v: %v, was %v", s.Mode, i, center[i], got, want)
				}
			}
		}
	})
	// Negative references, and what cannot be taken back: a floor, or a tool that
	// never had the feature.
	spec := ReferenceSpec{Mode: ReferenceLog, Positive: "1110"}
	center := []float32{0, -3, float32(math.NaN()), -3}
	for i, want := range []float64{LogFloor * math.E, LogFloor * math.E, math.NaN(), -2} {
		if got := spec.undo(1, i, center, nil); math.Abs(got-want) > 1e-20 || (got == got) != (want == want) {
			t.Errorf("log 1, reference %v: %v, want %v", center[i], got, want)
		}
	}
	if got := (ReferenceSpec{Mode: ReferenceRatio}).undo(-0.4, 0, []float32{-5}, nil); math.Abs(got+7) > 1e-12 {
		t.Errorf("ratio −0.4 to −5: %v, want −7", got)
	}
}

func TestReferenceSpecCheck(t *testing.T) {
	for _, s := range modes(2) {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		if err := s.checkFor(2); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for want, s := range map[string]ReferenceSpec{
		`mode "logarithm" is not one of "auto", "kind", "log", "ratio", "difference", "off"`: {Windows: 1, Mode: "logarithm"},
		"as models of builds before the first release: train it again":                       DefaultReference,
		"0 windows": {Mode: ReferenceLog, Positive: "11"},
		"201":       {Windows: 201, Mode: ReferenceKind},
		"it says of 0 features whether they are positive, the list has 2": {Windows: 1, Mode: ReferenceLog},
		"it says of 3 features":             {Windows: 1, Mode: ReferenceLog, Positive: "110"},
		`'2' at 1 of the positive features`: {Windows: 1, Mode: ReferenceLog, Positive: "12"},
		`only mode "log" has, not "ratio"`:  {Windows: 1, Mode: ReferenceRatio, Positive: "11"},
		`only mode "log" has, not "off"`:    {Mode: ReferenceOff, Positive: "11"},
	} {
		if err := s.checkFor(2); err == nil || !strings.HasPrefix(err.Error(), "reference: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
}

func TestReferenceDescribe(t *testing.T) {
	for want, s := range map[string]ReferenceSpec{
		"ratio": {Mode: ReferenceRatio}, "log": {Mode: ReferenceLog, Positive: "111"},
		"log, 1 of 3 features by difference": {Mode: ReferenceLog, Positive: "101"},
	} {
		if got := s.Describe(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// inMode returns a model that takes features in a mode, which need not be a good one. For
// logarithms all but the last feature are positive.
func inMode(t testing.TB, mode Mode) *Model {
	m := *trained(t)
	m.Reference.Mode = mode
	if mode == ReferenceLog {
		m.Reference.Positive = strings.Repeat("1", m.Classifier.Columns()-1) + "0"
	}
	return &m
}

// In every mode a model is read as it was written and judges the same bits before and
// after: by Relate.
func TestFileInEveryMode(t *testing.T) {
	for _, mode := range []Mode{ReferenceOff, ReferenceKind, ReferenceLog, ReferenceRatio, ReferenceDifference} {
		m := inMode(t, mode)
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if got.Reference != m.Reference || !strings.Contains(got.String(), string(mode)) && mode != ReferenceOff {
			t.Errorf("%s: read as %+v, %s", mode, got.Reference, got)
		}
		if again, err := got.Encode(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: written again it differs: %v", mode, err)
		}
		j, k := m.NewJudge(), got.NewJudge()
		var ref, ofRead Reference
		for i := range 6 {
			w := cutting(1 + float32(i)/4)
			v, u := j.Judge(w, &ref, nil), k.Judge(w, &ofRead, nil)
			if v.Outcome != u.Outcome || !reflect.DeepEqual(v.Posterior, u.Posterior) {
				t.Fatalf("%s: window %d is %s %v, read again %s %v", mode, i, v.Outcome, v.Posterior, u.Outcome, u.Posterior)
			}
			if v.Outcome == Learning {
				continue
			}
			want := make([]float32, len(k.Cutting()))
			got.Reference.Relate(want, k.Cutting(), ofRead.Center(), k.Relations())
			if !same(k.row, want) {
				t.Errorf("%s: row %v, by Relate %v", mode, k.row, want)
			}
			e := k.Explain(&ofRead)
			for f, z := range want {
				fill, _, _ := got.Classifier.Encoder().Parts()[0].Column(f)
				usual := got.Reference.undo(fill, f, ofRead.Center(), k.Relations())
				if !(math.Abs(e.Usual[f]-usual) <= 1e-9) || float32(e.Values[f]) != k.Cutting()[f] {
					t.Errorf("%s: feature %d, %v relative to its reference: usual %v, want %v", mode, f, z, e.Usual[f], usual)
				}
			}
		}
	}
}

func observe(j *Judge, w *window.Window) *Observation {
	o := new(Observation)
	j.Observe(w, o)
	return o
}

// A file that does not say which features are positive, or says it of others, is damaged.
func TestPositiveFeaturesOfAFile(t *testing.T) {
	m := inMode(t, ReferenceLog)
	good, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	key := fmt.Sprintf(",\n  \"positive\": %q", m.Reference.Positive)
	for name, tc := range map[string]struct{ becomes, want string }{
		"missing":       {"", "of 0 features"},
		"too short":     {strings.Replace(key, "1", "", 1), fmt.Sprintf("of %d features", m.Classifier.Columns()-1)},
		"too long":      {strings.Replace(key, "1", "11", 1), fmt.Sprintf("of %d features", m.Classifier.Columns()+1)},
		"another digit": {strings.Replace(key, "1", "x", 1), "must be 0 or 1"},
		"a number":      {",\n  \"positive\": 11", "manifest"},
	} {
		if _, err := Decode(rewritten(t, good, key, tc.becomes)); !errors.Is(err, errFileDamaged) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := Decode(rewritten(t, good, `"mode": "log"`, `"mode": "kind"`)); !errors.Is(err, errFileDamaged) {
		t.Errorf("of another mode: %v", err)
	}
	m.Reference.Positive = ""
	if _, err := m.Encode(); err == nil {
		t.Error("a model that does not know which features are positive was written")
	}
}

// rewritten returns a model's file with a part of its manifest changed, of any
// length, and all that depends on it put right.
func rewritten(t *testing.T, file []byte, from, to string) []byte {
	t.Helper()
	const head = 16 + 1 + len(sectionManifest) // to the length of the manifest
	text := sectionsOf(t, file)[sectionManifest]
	changed := bytes.Replace(text, []byte(from), []byte(to), 1)
	if bytes.Equal(changed, text) || !json.Valid(changed) {
		t.Fatalf("cannot replace %q by %q", from, to)
	}
	w := sectionWriter{b: slices.Clone(file[:16])}
	w.add(sectionManifest, changed)
	return resum(append(w.b, file[head+8+len(text):]...))
}

func sectionsOf(t *testing.T, file []byte) map[string][]byte {
	t.Helper()
	sections, err := readSections(file[16:len(file)-32], 1)
	if err != nil {
		t.Fatal(err)
	}
	return sections
}

// BenchmarkRow is what a window of 152 features costs before it is classified, by the
// mode of the reference.
func BenchmarkRow(b *testing.B) {
	const n = 152
	var channels []signal.Channel
	for i := range n {
		channels = append(channels, signal.Channel{Name: fmt.Sprint("f", i), Kind: signal.Feature, Rate: 1})
	}
	l, err := signal.NewLayout("turning", channels)
	if err != nil {
		b.Fatal(err)
	}
	for _, mode := range []Mode{ReferenceOff, ReferenceDifference, ReferenceRatio, ReferenceKind, ReferenceLog} {
		m := &Model{Layout: l, Window: window.DefaultSpec, Reference: ReferenceSpec{Windows: 1, Mode: mode}, Usual: make([]signal.Quality, n)}
		if mode == ReferenceLog {
			m.Reference.Positive = strings.Repeat("1", n)
		}
		j := m.NewJudge()
		o := Observation{Tool: "T1", Features: make([]float32, n), Quality: make([]signal.Quality, n)}
		for i := range o.Features {
			o.Features[i] = float32(i + 1)
		}
		var ref Reference
		j.Row(&o, &ref, nil)
		for i := range o.Features {
			o.Features[i] *= 1 + float32(i)/n
		}
		b.Run(string(mode), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				j.Row(&o, &ref, nil)
			}
		})
	}
}

// Logs names the features that Relate makes a logarithm: there twice the reference is ln 2, and is it nowhere else.
func TestLogs(t *testing.T) {
	for _, mode := range []ReferenceSpec{
		{Mode: ReferenceLog, Positive: "101"}, {Mode: ReferenceLog, Positive: "000"}, {Mode: ReferenceKind}, {Mode: ReferenceRatio}, {Mode: ReferenceDifference}, {Mode: ReferenceOff},
	} {
		dst := make([]float32, 3)
		mode.Relate(dst, []float32{10, 10, 10}, []float32{5, 5, 5}, relations)
		logs := mode.Logs(relations)
		for i, v := range dst {
			if is := math.Abs(float64(v)-math.Ln2) < 1e-5; is != (logs != nil && logs[i]) {
				t.Errorf("%+v: feature %d is %v, logarithms %v", mode, i, v, logs)
			}
		}
		if logs != nil && !slices.Contains(logs, true) {
			t.Errorf("%+v: %v, want nil", mode, logs)
		}
	}
}

// What a doubling of a sensor's amplitude makes of each feature is ln 2 nepers, in each mode that takes it in logarithms or decades.
func TestNepers(t *testing.T) {
	level, variance, decades := signal.Gain{Power: 1}, signal.Gain{Power: 2}, signal.Gain{Power: 2, Decades: true}
	origins := []signal.FeatureOrigin{{Gain: level}, {Gain: variance}, {Gain: decades}, {}, {Sensor: "a", Other: "b", Gain: level}}
	relations := []signal.Relation{signal.LogRatio, signal.LogRatio, signal.Difference, signal.Ratio, signal.LogRatio}
	for _, c := range []struct {
		spec ReferenceSpec
		want []bool // which features are amplitudes
	}{
		{ReferenceSpec{Mode: ReferenceKind}, []bool{true, true, true, false, false}},
		{ReferenceSpec{Mode: ReferenceLog, Positive: "11011"}, []bool{true, true, true, false, false}},
		{ReferenceSpec{Mode: ReferenceLog, Positive: "01111"}, []bool{false, true, false, false, false}},
		{ReferenceSpec{Mode: ReferenceDifference}, []bool{false, false, true, false, false}},
		{ReferenceSpec{Mode: ReferenceRatio}, make([]bool, 5)},
		{ReferenceSpec{Mode: ReferenceOff}, make([]bool, 5)},
	} {
		before := []float32{3, 5, -1, 7, 9}
		after := make([]float32, len(before))
		for i, o := range origins {
			after[i] = float32(o.Gain.Scale(float64(before[i]), 2))
		}
		relative := make([]float32, len(before))
		c.spec.Relate(relative, after, before, relations)
		for i, nepers := range c.spec.Nepers(relations, origins) {
			if got := nepers * float64(relative[i]); nepers != 0 != c.want[i] || c.want[i] && math.Abs(got-math.Ln2) > 1e-5 {
				t.Errorf("%+v: feature %d: %v nepers a unit, a doubling is %v", c.spec, i, nepers, got)
			}
		}
	}
}
