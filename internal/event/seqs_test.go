package event

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/flank-tcm/flank/internal/testkit/seededrapid"
)

// Sets hold what was added, and say whether it was new.
func TestSeqs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Seqs
		want := make(map[uint64]bool)
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			n := rapid.Uint64Range(0, 30).Draw(t, "number")
			if added := s.Add(n, math.MaxInt); added == want[n] {
				t.Fatalf("adding %d: %v", n, added)
			}
			want[n] = true
		}
		for n := range uint64(32) {
			if s.Has(n) != want[n] {
				t.Fatalf("%v has %d: %v", s, n, s.Has(n))
			}
		}
		for i := 1; i < len(s); i++ {
			if s[i][0] <= s[i-1][1]+1 {
				t.Fatalf("intervals touch: %v", s)
			}
		}
	})
}

// A set that may have few ranges closes the oldest gap.
func TestSeqsOfFewRanges(t *testing.T) {
	var s Seqs
	for _, n := range []uint64{1, 3, 5, 7} {
		s.Add(n, 3)
	}
	if want := (Seqs{{1, 3}, {5, 5}, {7, 7}}); !slices.Equal(s, want) || s.Add(2, 3) {
		t.Errorf("%v, want %v", s, want)
	}
}
