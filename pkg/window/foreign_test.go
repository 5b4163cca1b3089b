package window

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// A window that does not fit is refused by the right name, with what it is and what was
// expected.
func TestOpenNamesTheDifference(t *testing.T) {
	base := twoRates(t)
	c := newCodec(t, base, DefaultSpec)
	layoutOf := func(change func([]signal.Channel) []signal.Channel) *signal.Layout {
		l, err := signal.NewLayout("other", change(slices.Clone(base.Channels())))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	set := func(f func(*signal.Channel)) func([]signal.Channel) []signal.Channel {
		return func(cs []signal.Channel) []signal.Channel { f(&cs[0]); return cs }
	}
	long := strings.Repeat("x", 500)
	for name, tc := range map[string]struct {
		layout *signal.Layout
		length time.Duration
		what   string
		text   string // %s is the fingerprint of the layout
	}{
		"longer windows":  {base, 2 * time.Second, OtherLength, "windows of 2s, expected windows of 1s"},
		"shorter windows": {base, 250 * time.Millisecond, OtherLength, "windows of 250ms, expected windows of 1s"},
		"another rate":    {layoutOf(set(func(c *signal.Channel) { c.Rate = 8 })), time.Second, OtherLayout, `channel "slow" at "8" Hz, expected 4 Hz`},
		"another unit":    {layoutOf(set(func(c *signal.Channel) { c.Unit = "lbf" })), time.Second, OtherLayout, `channel "slow" in "lbf", expected "N"`},
		"another kind":    {layoutOf(set(func(c *signal.Channel) { c.Kind = signal.Torque })), time.Second, OtherLayout, `channel "slow" of kind "torque", expected force`},
		"another name": {layoutOf(set(func(c *signal.Channel) { c.Name = "fast" })), time.Second, OtherLayout,
			`no channel "slow"; a channel "fast" that is not expected`},
		"another sensor": {layoutOf(set(func(c *signal.Channel) { c.Sensor = "dyno" })), time.Second, OtherLayout, "the order, a range or a sensor of the channels differs"},
		"a channel more": {layoutOf(func(cs []signal.Channel) []signal.Channel {
			return append(cs, signal.Channel{Name: long, Kind: signal.Force, Unit: "N", Rate: 4})
		}), time.Second, OtherLayout, `a channel "` + long[:40] + `" that is not expected`},
		"all others": {layoutOf(func(cs []signal.Channel) []signal.Channel {
			for i := range cs {
				cs[i].Name = fmt.Sprint(i)
			}
			return cs
		}), time.Second, OtherLayout, `no channel "slow"; no channel "a"; no channel "b"; and 3 more differences`},
	} {
		spec := Spec{Length: tc.length}
		e, err := newCodec(t, tc.layout, spec).Seal(example(tc.layout, spec))
		if err != nil {
			t.Fatal(err)
		}
		var w Window
		var mismatch *Mismatch
		if err := c.Open(e, &w); !errors.As(err, &mismatch) || !errors.Is(err, ErrForeign) || errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if mismatch.What != tc.what || !strings.HasSuffix(mismatch.Text, tc.text) {
			t.Errorf("%s: %s: %s, want %s: … %s", name, mismatch.What, mismatch.Text, tc.what, tc.text)
		}
		if both := []string{tc.layout.Fingerprint(), base.Fingerprint()}; tc.what == OtherLayout && (!strings.Contains(mismatch.Text, both[0]) || !strings.Contains(mismatch.Text, both[1])) {
			t.Errorf("%s: %s does not name the layouts %q", name, mismatch.Text, both)
		}
	}
}

// A window tells its layout and length. What its headers contradict is refused.
func TestLayoutOf(t *testing.T) {
	values, err := signal.NewLayout("values", []signal.Channel{{Name: "F_c", Kind: signal.Feature, Rate: 0.1}, {Name: "v", Kind: signal.Feature, Rate: 0.3}})
	if err != nil {
		t.Fatal(err)
	}
	long, err := signal.NewLayout("long", []signal.Channel{{Name: strings.Repeat("x", 200), Kind: signal.Force, Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	seal := func(l *signal.Layout, length time.Duration) Envelope {
		e, err := newCodec(t, l, Spec{Length: length}).Seal(example(l, Spec{Length: length}))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for name, tc := range map[string]struct {
		layout *signal.Layout
		length time.Duration
	}{
		"two rates": {twoRates(t), 250 * time.Millisecond}, "gun drill": {signal.GunDrill(), time.Second}, "values": {values, 10 * time.Second},
	} {
		l, spec, err := LayoutOf(seal(tc.layout, tc.length))
		if err != nil || l.Fingerprint() != tc.layout.Fingerprint() || spec != (Spec{Length: tc.length}) || !slices.Equal(l.Channels(), tc.layout.Channels()) {
			t.Errorf("%s: %v, %v, %v", name, l, spec, err)
		}
	}
	good := seal(twoRates(t), time.Second)
	change := func(f func(*Envelope)) Envelope {
		e := good
		e.Value = slices.Clone(e.Value)
		f(&e)
		return e
	}
	for name, tc := range map[string]struct {
		e    Envelope
		text string
	}{
		"another layout": {change(func(e *Envelope) { e.Layout = "0123456789abcdef" }), "its fingerprint is " + good.Layout},
		"a flipped bit":  {change(func(e *Envelope) { e.Value[100] ^= 1 }), "checksum"},
		"nothing":        {change(func(e *Envelope) { e.Value, e.CRC = nil, 0 }), "no channels"},
		"a long window": {func() Envelope {
			e := seal(signal.GunDrill(), time.Second)
			e.Value = e.Value[:9000]
			e.CRC = crc32.Checksum(e.Value, castagnoli)
			return e
		}(), "more samples"},
		"only the schema": {change(func(e *Envelope) { e.Value = e.Value[:500]; e.CRC = crc32.Checksum(e.Value, castagnoli) }), "no channels"},
		"a long name":     {seal(long, time.Second), "its fingerprint is"},
	} {
		_, _, err := LayoutOf(tc.e)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(fmt.Sprint(err), tc.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// However a schema is damaged, reading its channels ends.
func TestWireChannelsSurvivesMutants(t *testing.T) {
	c := newCodec(t, twoRates(t), DefaultSpec)
	rng := rand.New(rand.NewPCG(1, 3))
	refused := 0
	for range 20_000 {
		p := slices.Clone(c.prefix)
		for range 1 + rng.IntN(4) {
			p[rng.IntN(len(p))] = byte(rng.UintN(256))
		}
		if _, ok := wireChannels(p); !ok {
			refused++
		}
	}
	if refused < 1000 || refused == 20_000 {
		t.Errorf("%d of 20,000 mutants were refused", refused)
	}
}

func FuzzWireChannels(f *testing.F) {
	c := newCodec(f, twoRates(f), DefaultSpec)
	f.Add(c.prefix)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		cs, ok := wireChannels(p)
		if ok && len(cs) == 0 || 4*len(cs) > len(p) {
			t.Errorf("%d channels, %v", len(cs), ok)
		}
		if l, spec, err := LayoutOf(Envelope{Value: p, CRC: crc32.Checksum(p, castagnoli), Layout: c.layout.Fingerprint()}); err == nil && (l.Fingerprint() != c.layout.Fingerprint() || spec.Check(l) != nil) {
			t.Errorf("layout %v, windows of %v", l.Channels(), spec)
		}
	})
}
