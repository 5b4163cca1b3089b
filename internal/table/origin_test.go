package table

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Flags and frames of windows are read from the text that was written of them.
func TestDetailText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9 .µ-]{1,4}`), 1, 5, rapid.ID[string]).Draw(t, "channels")
		var channels []signal.Channel
		var quality []signal.Quality
		for _, name := range names {
			channels = append(channels, signal.Channel{Name: name})
			quality = append(quality, signal.Quality(rapid.IntRange(0, 63).Draw(t, "flags")))
		}
		text := FormatQuality(quality, channels)
		if got, err := ParseQuality(text, channels); err != nil || !slices.Equal(got, quality) {
			t.Fatalf("%q: %v, %v; want %v", text, got, err, quality)
		}
		frames := rapid.SliceOf(rapid.Float32()).Draw(t, "frames")
		text = FormatFrames(frames)
		if got, err := ParseFrames(text); err != nil || !slices.Equal(got, frames) {
			t.Fatalf("%q: %v, %v; want %v", text, got, err, frames)
		}
	})
	if got, err := ParseFrames(FormatFrames([]float32{1, float32(math.NaN())})); err != nil || len(got) != 2 || got[1] == got[1] {
		t.Errorf("a frame without samples: %v, %v", got, err)
	}
}

func TestDetailErrors(t *testing.T) {
	channels := []signal.Channel{{Name: "a"}, {Name: "b"}}
	for _, s := range []string{"a", "a=", "a=loud", "c=dropout", "b=dropout; a=dropout", "a=dropout; ; b=dropout", "a=dropout+"} {
		if q, err := ParseQuality(s, channels); err == nil || !strings.Contains(err.Error(), WriteAgain) {
			t.Errorf("quality %q: %v, %v", s, q, err)
		}
	}
	if x, err := ParseFrames("1 2 three"); err == nil {
		t.Errorf("frames: %v", x)
	}
}

func FuzzParseQuality(f *testing.F) {
	channels := []signal.Channel{{Name: "a"}, {Name: "b c"}}
	f.Add("a=dropout+clipped; b c=flatline")
	f.Fuzz(func(t *testing.T, s string) {
		q, err := ParseQuality(s, channels)
		if err != nil {
			return
		}
		again, err := ParseQuality(FormatQuality(q, channels), channels)
		if err != nil || !slices.Equal(again, q) {
			t.Fatalf("%q: %v, then %v, %v", s, q, again, err)
		}
	})
}
