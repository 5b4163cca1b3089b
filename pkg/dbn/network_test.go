package dbn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

func randomNetwork(widths ...int) *Network {
	return &Network{layers: randomLayers(widths[0], widths[1:], rand.New(rand.NewPCG(1, 1)))}
}

func randomRows(n, width int) Matrix {
	rng := rand.New(rand.NewPCG(2, 2))
	x := NewMatrix(n, width)
	for i := range x.Data {
		x.Data[i] = float32(rng.NormFloat64())
	}
	return x
}

// Several rows give what each gives alone, to the bit, from any number of
// goroutines.
func TestScorerAgreesWithPosteriorTo(t *testing.T) {
	n := randomNetwork(300, 30, 17, 3)
	x := randomRows(2*chunk+5, 300)
	p := NewMatrix(x.Rows, 3)
	n.PosteriorTo(p, x)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			s := n.NewScorer()
			for i := worker; i < x.Rows; i += 4 {
				if got := s.Posterior(x.Row(i)); !slices.Equal(got, p.Row(i)) {
					t.Errorf("row %d: %v alone, %v among others", i, got, p.Row(i))
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range x.Rows {
		var sum float64
		for _, v := range p.Row(i) {
			if !(v >= 0) {
				t.Fatalf("row %d: %v", i, p.Row(i))
			}
			sum += float64(v)
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Fatalf("row %d: %v sums to %v", i, p.Row(i), sum)
		}
	}
}

func TestScorerDoesNotAllocate(t *testing.T) {
	n := randomNetwork(1216, 30, 30, 2) // as wide as eight bins of 152 features
	s, row := n.NewScorer(), randomRows(1, 1216).Data
	if allocs := testing.AllocsPerRun(100, func() { s.Posterior(row) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestPosteriorOfExtremes(t *testing.T) {
	n := &Network{layers: []layer{newLayer(1, 2)}}
	copy(n.layers[0].weights.Data, []float32{1e30, -1e30})
	s := n.NewScorer()
	if p := s.Posterior([]float32{1}); p[0] != 1 || p[1] != 0 {
		t.Errorf("far from the border: %v", p)
	}
	if p := s.Posterior([]float32{0}); p[0] != 0.5 || p[1] != 0.5 {
		t.Errorf("on the border: %v", p)
	}
	if p := s.Posterior([]float32{float32(math.NaN())}); p[0] == p[0] {
		t.Errorf("NaN becomes %v", p)
	}
}

func TestWrongWidthPanics(t *testing.T) {
	n := randomNetwork(3, 2, 2)
	for name, call := range map[string]func(){
		"row":        func() { n.NewScorer().Posterior(make([]float32, 2)) },
		"rows":       func() { n.PosteriorTo(NewMatrix(1, 2), NewMatrix(1, 4)) },
		"posteriors": func() { n.PosteriorTo(NewMatrix(1, 3), NewMatrix(1, 3)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "dbn: ") {
					t.Errorf("panic %q", text)
				}
			}()
			call()
		})
	}
}

func TestBinaryRoundTrip(t *testing.T) {
	for _, widths := range [][]int{{1, 2}, {14, 30, 30, 2}, {3, 1, 5}} {
		n := randomNetwork(widths...)
		b, err := n.AppendBinary([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.TrimPrefix(b, []byte("before"))
		var again Network
		if err := again.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(again.Layers(), widths) || again.Inputs() != widths[0] || again.Classes() != widths[len(widths)-1] {
			t.Errorf("layers %v, want %v", again.Layers(), widths)
		}
		if twice, _ := again.AppendBinary(nil); !bytes.Equal(twice, b) {
			t.Error("bytes change on the way")
		}
	}
	if _, err := new(Network).AppendBinary(nil); err == nil {
		t.Error("an empty network has a binary form")
	}
}

func TestBinaryForm(t *testing.T) {
	n := &Network{layers: []layer{newLayer(1, 2)}}
	copy(n.layers[0].weights.Data, []float32{1, -2})
	copy(n.layers[0].bias, []float32{0.5, 0})
	got, err := n.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "46444e42 01000000 01000000 01000000 02000000 0000803f 000000c0 0000003f 00000000 "
	var words strings.Builder
	for part := range slices.Chunk(got, 4) {
		fmt.Fprintf(&words, "%x ", part)
	}
	if strings.Replace(want, "46444e42", fmt.Sprintf("%x", "FDBN"), 1) != words.String() {
		t.Errorf("bytes %s, want %s", words.String(), want)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	good, err := randomNetwork(3, 2, 2).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	word := func(at int, v uint32) []byte {
		b := slices.Clone(good)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":         nil,
		"header only":     good[:16],
		"other magic":     word(0, 0),
		"other version":   word(4, 2),
		"no layers":       word(8, 0),
		"too many layers": word(8, 1<<31),
		"one layer less":  word(8, 1),
		"no inputs":       word(12, 0),
		"huge inputs":     word(12, maxWidth),
		"huge width":      word(16, math.MaxUint32),
		"one class":       word(20, 1),
		"torn":            good[:len(good)-1],
		"bytes left over": append(slices.Clone(good), 0),
		"NaN":             word(24, math.Float32bits(float32(math.NaN()))),
		"infinite bias":   word(len(good)-4, math.Float32bits(float32(math.Inf(1)))),
	} {
		t.Run(name, func(t *testing.T) {
			n := randomNetwork(1, 2)
			if err := n.UnmarshalBinary(b); !errors.Is(err, errCorrupt) {
				t.Errorf("error %v", err)
			}
			if n.Inputs() != 1 {
				t.Error("the network has changed")
			}
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, widths := range [][]int{{1, 2}, {3, 2, 2}} {
		b, err := randomNetwork(widths...).AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var n Network
		if err := n.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, errCorrupt) {
				t.Errorf("error %v", err)
			}
			return
		}
		if again, err := n.AppendBinary(nil); err != nil || !bytes.Equal(again, b) {
			t.Errorf("bytes change on the way: %x to %x, %v", b, again, err)
		}
		n.NewScorer().Posterior(make([]float32, n.Inputs()))
	})
}

func ExampleTrain() {
	// Is exactly one of two switches on? Each case is seen twice.
	x := Matrix{Rows: 8, Cols: 2, Data: []float32{0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1}}
	y := []int{0, 1, 1, 0, 0, 1, 1, 0}
	network, _, err := Train(context.Background(), x, y, 2, Settings{Hidden: []int{8}, FineTune: FineTuneSettings{Rate: 0.1, Epochs: 300}})
	if err != nil {
		fmt.Println(err)
		return
	}
	scorer := network.NewScorer()
	for i := range 4 {
		fmt.Printf("%v: %.1f\n", x.Row(i), scorer.Posterior(x.Row(i))[1])
	}
	// Output:
	// [0 0]: 0.0
	// [0 1]: 1.0
	// [1 0]: 1.0
	// [1 1]: 0.0
}

func BenchmarkScorer(b *testing.B) {
	n := randomNetwork(112, 30, 30, 2)
	s, row := n.NewScorer(), randomRows(1, 112).Data
	b.ReportAllocs()
	for b.Loop() {
		s.Posterior(row)
	}
}
