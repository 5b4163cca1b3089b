package machine

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// The set answers as a map does, stays in normal form, and survives JSON.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ranges
		want := map[uint64]bool{}
		for _, seq := range rapid.SliceOf(rapid.Uint64Range(0, 40)).Draw(t, "seqs") {
			r.add(seq)
			want[seq] = true
		}
		var last uint64
		for seq := range uint64(42) {
			if r.has(seq) != want[seq] {
				t.Fatalf("has(%d) = %v in %v", seq, r.has(seq), r)
			}
			if want[seq] {
				last = seq
			}
		}
		if got, any := r.last(); any != (len(want) > 0) || got != last {
			t.Fatalf("last = %d, %v in %v", got, any, r)
		}
		for i := range r {
			if r[i].first > r[i].last || i > 0 && r[i].first <= r[i-1].last+1 {
				t.Fatalf("not in normal form: %v", r)
			}
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var again ranges
		if err := json.Unmarshal(text, &again); err != nil || len(r) != len(again) || len(r) > 0 && !reflect.DeepEqual(r, again) {
			t.Fatalf("%v became %v: %v", r, again, err)
		}
	})
}

func TestRangesRefuse(t *testing.T) {
	for _, text := range []string{`[[2,1]]`, `[[0,5],[5,6]]`, `[[4,5],[1,2]]`, `[["a",1]]`, `{}`} {
		var r ranges
		if err := json.Unmarshal([]byte(text), &r); err == nil {
			t.Errorf("%s was taken as %v", text, r)
		}
	}
}

// A set with ever more gaps stays small and forgets the oldest of them.
func TestRangesAreBounded(t *testing.T) {
	var r ranges
	for seq := uint64(0); seq < 4*keptRanges; seq += 2 {
		r.add(seq)
	}
	if len(r) != keptRanges {
		t.Errorf("%d intervals, want %d", len(r), keptRanges)
	}
	if last := uint64(4*keptRanges - 2); !r.has(1) || !r.has(last) || r.has(last-1) {
		t.Errorf("oldest gap open: %v, newest gap open: %v", !r.has(1), !r.has(last-1))
	}
}
