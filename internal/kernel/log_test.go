package kernel

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// On amd64 that is math.Log to the bit; what it hashes to there holds elsewhere.
func TestLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	x := []float64{1, 2, 0.5, math.Sqrt2 / 2, math.Nextafter(math.Sqrt2/2, 1), math.Sqrt2, 0x1p-1022, math.MaxFloat64,
		math.Nextafter(1, 0), math.Nextafter(1, 2), 0, -1, 5e-324, math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1)}
	special := len(x)
	for range 20_000 {
		x = append(x, math.Float64frombits(rng.Uint64()>>1), 0.5+rng.Float64())
	}
	eachFamily(t, func(t *testing.T) {
		hash := fnv.New64a()
		for _, n := range []int{0, 1, 7, 8, 9, special, len(x)} {
			got := make([]float64, n+1)
			Log(got[:n], x[:n])
			if got[n] != 0 {
				t.Fatalf("%d numbers: wrote behind them", n)
			}
			for i, l := range got[:n] {
				bits, want := math.Float64bits(l), math.Log(x[i])
				if runtime.GOARCH == "amd64" && bits != math.Float64bits(want) && l == l || (l == l) != (want == want) {
					t.Fatalf("%d numbers: ln %v is %v, want %v", n, x[i], l, want)
				}
				if x[i] >= 0x1p-1022 && x[i] <= math.MaxFloat64 {
					hash.Write(binary.LittleEndian.AppendUint64(nil, bits))
				}
			}
		}
		if got, want := hash.Sum64(), uint64(0x787c08b508c71985); got != want {
			t.Errorf("logarithms hash to %#x, want %#x", got, want)
		}
	})
}
