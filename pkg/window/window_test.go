package window

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// A distance is a window's if it is 1 % off at most, of another hop if it is no longer than a window, and else a gap.
func TestFollow(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		spec        Spec
		hop         time.Duration
		same, other bool
	}{
		{DefaultSpec, 1000 * ms, true, false}, {DefaultSpec, 1010 * ms, true, false}, {DefaultSpec, 990 * ms, true, false},
		{DefaultSpec, 989 * ms, false, true}, {DefaultSpec, 500 * ms, false, true}, {DefaultSpec, 1011 * ms, false, false}, {DefaultSpec, 2000 * ms, false, false},
		{Spec{Length: 1000 * ms, Hop: 500 * ms}, 505 * ms, true, false}, {Spec{Length: 1000 * ms, Hop: 500 * ms}, 1010 * ms, false, true},
		{Spec{Length: 1000 * ms, Hop: 500 * ms}, 1011 * ms, false, false}, {Spec{Length: 1000 * ms, Hop: 500 * ms}, 0, false, true},
	} {
		if same, other := tc.spec.Follow(tc.hop); same != tc.same || other != tc.other {
			t.Errorf("%v, %v: same %v, other %v", tc.spec, tc.hop, same, other)
		}
	}
}

// Windows of which one would not fit in memory are refused in words, by all that make something for windows.
func TestSpecOfTooManySamples(t *testing.T) {
	layout := signal.GunDrill()
	for _, length := range []time.Duration{839 * time.Second, 200 * 365 * 24 * time.Hour} {
		spec := Spec{Length: length}
		_, codec := NewCodec(layout, spec)
		_, slicer := NewSlicer(layout, spec)
		_, form := NewForm(layout, spec, signal.FeatureSpec{}, nil)
		for _, err := range []error{spec.Check(layout), codec, slicer, form} {
			if err == nil || !strings.Contains(err.Error(), "choose a shorter length") {
				t.Errorf("%v: %v", length, err)
			}
		}
	}
	if err := (Spec{Length: 838 * time.Second}).Check(layout); err != nil {
		t.Error(err)
	}
}
