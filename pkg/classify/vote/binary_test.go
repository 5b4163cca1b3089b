package vote_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify/vote"
)

func TestBinaryRoundTrip(t *testing.T) {
	table := newShop(1, 4, 2).table([]string{"a", "b", "c", "d", "e", "f"})
	g := fitted(t, table)
	b, err := g.AppendBinary([]byte("prefix"))
	if err != nil {
		t.Fatal(err)
	}
	b = b[len("prefix"):]
	var back vote.Guard
	if err := back.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if again, err := back.AppendBinary(nil); err != nil || !slices.Equal(b, again) {
		t.Errorf("the guard read back has other bytes, error %v", err)
	}
	if !slices.Equal(g.Sensors(), back.Sensors()) {
		t.Errorf("sensors %v, read back %v", g.Sensors(), back.Sensors())
	}
	one, two := g.NewScorer(), back.NewScorer()
	for i := range table.X.Rows {
		if p, q := one.Judge(table.X.Row(i), 0.6), two.Judge(table.X.Row(i), 0.6); p != q {
			t.Fatalf("row %d: %+v, read back %+v", i, p, q)
		}
	}
	if _, err := new(vote.Guard).AppendBinary(nil); err == nil {
		t.Error("an empty guard has a binary form")
	}
}

// Every truncation and every changed byte either gives a guard that works or an error that
// says so; nothing panics and nothing is half read.
func TestDamagedBinary(t *testing.T) {
	b, err := fitted(t, newShop(1, 3, 0).table([]string{"a", "b", "c"})).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		var back vote.Guard
		if err := back.UnmarshalBinary(b[:n]); !errors.Is(err, vote.ErrCorrupt) || back.Columns() != 0 {
			t.Fatalf("the first %d of %d bytes: error %v", n, len(b), err)
		}
	}
	if err := new(vote.Guard).UnmarshalBinary(append(slices.Clone(b), 0)); !errors.Is(err, vote.ErrCorrupt) {
		t.Errorf("a byte too many: error %v", err)
	}
	rng := rand.New(rand.NewPCG(1, 0))
	for range 5000 {
		damaged := slices.Clone(b)
		damaged[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
		checkUnmarshal(t, damaged)
	}
}

// checkUnmarshal reads b and uses what was read.
func checkUnmarshal(t *testing.T, b []byte) {
	var g vote.Guard
	if err := g.UnmarshalBinary(b); err != nil {
		if !errors.Is(err, vote.ErrCorrupt) {
			t.Fatalf("error %v is not ErrCorrupt", err)
		}
		return
	}
	row := make([]float32, g.Columns())
	var m vote.Memory
	for _, v := range []float32{0, nan, math.MaxFloat32, float32(math.Inf(-1))} {
		for j := range row {
			row[j] = v
		}
		failed := g.Failed(&m, row)
		s := g.NewScorer()
		for _, row := range [][]float32{row, s.Without(row, failed)} {
			j := s.Judge(row, 0.5)
			if !(math.Abs(j.Vote) <= 6) || !(j.Score >= 0 && j.Score <= 1) || j.Sensor >= len(failed) {
				t.Fatalf("judged %+v", j)
			}
		}
	}
	if again, err := g.AppendBinary(nil); err != nil || !slices.Equal(again, b) {
		t.Fatalf("read back as other bytes, error %v", err)
	}
}

func FuzzUnmarshalBinary(f *testing.F) {
	b, err := fitted(f, newShop(1, 3, 0).table([]string{"a", "b", "c"})).AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) { checkUnmarshal(t, b) })
}
