package signal

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Features of several lists that are computed together are, bit for bit, those that each list
// gives alone, each once and in the order that a list has.
func TestListsTogether(t *testing.T) {
	layouts := map[string]*Layout{"the gun drill": GunDrill(), "a slow force": oneChannel(t, Force, 100), "values": oneChannel(t, Feature, 1)}
	rapid.Check(t, func(t *rapid.T) {
		l := layouts[rapid.SampledFrom([]string{"the gun drill", "a slow force", "values"}).Draw(t, "layout")]
		list := rapid.Custom(func(t *rapid.T) FeatureSpec {
			return FeatureSpec{Set: rapid.SliceOfNDistinct(rapid.SampledFrom(registryNames()), 0, 5, rapid.ID[string]).Draw(t, "set")}
		})
		lists := rapid.SliceOfN(list, 1, 4).Draw(t, "lists")
		counts, samples := noise(l, rapid.Uint64().Draw(t, "seed"))
		c := Context{SpindleSpeed: 1500}
		whole, err := NewExtractor(l, counts, lists[0], lists[1:]...)
		if err != nil {
			if !slices.ContainsFunc(lists, func(s FeatureSpec) bool { _, err := NewExtractor(l, counts, s); return err == nil }) {
				return // none of them gives a feature
			}
			t.Fatal(err)
		}
		values := whole.Extract(nil, samples, c)
		if again := whole.Extract(nil, samples, c); !slices.EqualFunc(values, again, sameBits) {
			t.Fatal("the second time the features are others")
		}
		theirs := make(map[string]bool)
		for _, s := range lists {
			alone, err := NewExtractor(l, counts, s)
			if err != nil {
				continue
			}
			last := -1
			for i, v := range alone.Extract(nil, samples, c) {
				name := alone.Names()[i]
				at := slices.Index(whole.Names(), name)
				if at <= last || !sameBits(values[at], v) || whole.Relations()[at] != alone.Relations()[i] || !slices.Equal(whole.Channels(at), alone.Channels(i)) {
					t.Fatalf("%s is feature %d after %d of all, %v, and alone %v", name, at, last, values[max(at, 0)], v)
				}
				last, theirs[name] = at, true
			}
		}
		if len(theirs) != len(values) || whole.Spec().Version != FeatureVersion || !slices.Equal(whole.Spec().Set, lists[0].Set) {
			t.Fatalf("%d features, the lists name %d; first list %+v", len(values), len(theirs), whole.Spec())
		}
	})
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// noise returns a second of noise for each channel of a layout.
func noise(l *Layout, seed uint64) (counts []int, samples [][]float32) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for _, c := range l.Channels() {
		x := make([]float32, int(c.Rate))
		for i := range x {
			x[i] = 3 + float32(rng.NormFloat64())
		}
		counts, samples = append(counts, len(x)), append(samples, x)
	}
	return counts, samples
}

func TestListsThatDoNotGoTogether(t *testing.T) {
	for text, also := range map[string]FeatureSpec{
		"version 1: this program":    {Version: 1},
		"version 99":                 {Version: 99},
		`"horsepower" is not one of`: {Set: []string{"horsepower"}},
		`set: "rms" is listed twice`: {Set: []string{"rms", "rms"}},
	} {
		if _, err := NewExtractor(oneChannel(t, Force, 100), []int{100}, FeatureSpec{}, also); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}
