package signal

import "testing"

func TestOtsu(t *testing.T) {
	for name, tc := range map[string]struct {
		sorted []float64
		want   Split
	}{
		"nothing":       {nil, Split{}},
		"one":           {[]float64{3}, Split{}},
		"all the same":  {[]float64{2, 2, 2}, Split{}},
		"two":           {[]float64{1, 3}, Split{At: 1, Threshold: 2, Low: 1, High: 3, Between: 1}},
		"uneven halves": {[]float64{0, 1, 2, 13}, Split{At: 3, Threshold: 7.5, Low: 1, High: 13, Between: 27}},
	} {
		if got := Otsu(tc.sorted); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
