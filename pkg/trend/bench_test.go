package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drifting returns tools of p features: every fifth one rises with the wear, with an
// offset of the tool, the others go their own ways; the first is negative.
func drifting(tools, windows, p int) *Rows {
	rng := rand.New(rand.NewPCG(1, 2))
	r := &Rows{Columns: p}
	for k := range tools {
		offset := make([]float64, p)
		for c := range offset {
			offset[c] = rng.NormFloat64()
		}
		for i := range windows {
			um := float64(i+1) * 300 / float64(windows) * (1 + 0.1*float64(k%3))
			for c := range p {
				v := 10 + offset[c] + rng.NormFloat64()
				if c%5 == 0 {
					v += math.Sqrt(um)
				}
				if c == 0 {
					v = -v
				}
				r.X = append(r.X, float32(v))
			}
			r.WearUM, r.Tool = append(r.WearUM, um), append(r.Tool, string(rune('A'+k)))
		}
	}
	refer(r, 10)
	return r
}

// One estimate of 152 features, by the ridge regression alone and by the mean of all
// three parts.
func BenchmarkRoot(b *testing.B) {
	rows := drifting(6, 200, 152)
	for _, tc := range []struct {
		name  string
		parts []Part
	}{{"ridge", nil}, {"mean", mixes[0]}} {
		m := full(b, rows)
		m.Parts = tc.parts
		n := len(rows.Tool)
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.Root(rows.Row(i%64), rows.Reference[n-1])
			}
		})
	}
}
