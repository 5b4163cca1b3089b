package order

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// The set answers as a map does, stays in normal form, and survives JSON.
func TestSeqs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Seqs
		want := map[uint64]bool{}
		for _, seq := range rapid.SliceOf(rapid.Uint64Range(0, 40)).Draw(t, "seqs") {
			r.Add(seq)
			want[seq] = true
		}
		var last uint64
		for seq := range uint64(42) {
			if r.Has(seq) != want[seq] {
				t.Fatalf("has(%d) = %v in %v", seq, r.Has(seq), r)
			}
			if want[seq] {
				last = seq
			}
		}
		if got, any := r.Last(); any != (len(want) > 0) || got != last {
			t.Fatalf("last = %d, %v in %v", got, any, r)
		}
		for i := range r {
			if r[i][0] > r[i][1] || i > 0 && r[i][0] <= r[i-1][1]+1 {
				t.Fatalf("not in normal form: %v", r)
			}
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var again Seqs
		if err := json.Unmarshal(text, &again); err != nil || len(r) != len(again) || len(r) > 0 && !reflect.DeepEqual(r, again) {
			t.Fatalf("%v became %v: %v", r, again, err)
		}
	})
}

func TestSeqsRefuse(t *testing.T) {
	for _, text := range []string{`[[2,1]]`, `[[0,5],[5,6]]`, `[[4,5],[1,2]]`, `[["a",1]]`, `{}`} {
		var r Seqs
		if err := json.Unmarshal([]byte(text), &r); err == nil {
			t.Errorf("%s was taken as %v", text, r)
		}
	}
}

// A set with ever more gaps stays small and forgets the oldest of them.
func TestSeqsAreBounded(t *testing.T) {
	var r Seqs
	for seq := uint64(0); seq < 4*keptRanges; seq += 2 {
		r.Add(seq)
	}
	if len(r) != keptRanges {
		t.Errorf("%d intervals, want %d", len(r), keptRanges)
	}
	if last := uint64(4*keptRanges - 2); !r.Has(1) || !r.Has(last) || r.Has(last-1) {
		t.Errorf("oldest gap open: %v, newest gap open: %v", !r.Has(1), !r.Has(last-1))
	}
}
