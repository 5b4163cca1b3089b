package imbalance

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Columns that are standardised have mean 0 and deviation 1 where they vary.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, _ := clouds(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(2, 30).Draw(t, "rows"), 0, 2, 0)
		by, to := rapid.Float64Range(1e-3, 1e3).Draw(t, "by"), rapid.Float64Range(-10, 10).Draw(t, "to")
		for i := range x.Rows {
			x.Row(i)[0] = float32(by*float64(x.Row(i)[0]) + to)
			x.Row(i)[1] = 0.1
		}
		z := fitScale(x).apply(x)
		var sum, square float64
		for i := range z.Rows {
			if z.Row(i)[1] != 0 {
				t.Fatal("a constant column says something")
			}
			sum += float64(z.Row(i)[0])
			square += float64(z.Row(i)[0]) * float64(z.Row(i)[0])
		}
		if n := float64(z.Rows); math.Abs(sum/n) > 0.01 || math.Abs(square/n-1) > 0.05 {
			t.Fatalf("mean %v, mean square %v", sum/n, square/n)
		}
	})
	x, _ := clouds(1, 3, 0, 1, 0)
	x.Data[1] = float32(math.NaN())
	if z := fitScale(x).apply(x); z.Data[1] != 0 || z.Data[0] != -z.Data[2] {
		t.Errorf("a missing value becomes %v in %v", z.Data[1], z.Data)
	}
}
