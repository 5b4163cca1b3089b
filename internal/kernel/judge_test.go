package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Every family counts as the definition says, ties and rows of zeros among them,
// and adds shares to the same bits.
func TestJudge(t *testing.T) {
	eachFamily(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 3))
		for k := 1; k <= 12; k++ {
			p, w := make([]float32, k*judgedRows), make([]float32, k)
			for i := range p {
				p[i] = float32(rng.IntN(4)) / 4 // many ties
				if i%judgedRows > 100 {
					p[i] = rng.Float32()
				}
				if i%judgedRows > 250 {
					p[i] = 0
				}
			}
			for j := range w {
				w[j] = float32(rng.IntN(3)) / 2
			}
			for class := range k {
				var want int
				var wantShare float64
				for row := range judgedRows {
					best, most, sum := 0, float32(0), float64(0)
					for j := range k {
						v := w[j] * p[j*judgedRows+row]
						sum += float64(v)
						if v > most {
							best, most = j, v
						}
					}
					if best == class {
						want++
					}
					if sum > 0 {
						wantShare += float64(w[class]*p[class*judgedRows+row]) / sum
					}
				}
				right, share := judge(p, w, class)
				if right != want || math.Abs(float64(share)-wantShare) > 1e-4 {
					t.Fatalf("class %d of %d: %d right, shares %v, want %d and %v", class, k, right, share, want, wantShare)
				}
				if _, portableShare := judgeGo(p, w, class); share != portableShare {
					t.Fatalf("class %d of %d: shares %v, portable %v", class, k, share, portableShare)
				}
			}
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	p, w := make([]float32, 10*judgedRows), make([]float32, 10)
	for i := range p {
		p[i] = rng.Float32()
	}
	for j := range w {
		w[j] = rng.Float32()
	}
	eachFamilyBench(b, func(b *testing.B) {
		for b.Loop() {
			judge(p, w, 4)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/judgedRows, "ns/row")
	})
}
