package imbalance

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// clouds returns two normal clouds of rows, the second one shifted by apart.
func clouds(seed uint64, frequent, rare, columns int, apart float64) (dbn.Matrix, []int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x, y := dbn.NewMatrix(frequent+rare, columns), make([]int, frequent+rare)
	for i := range y {
		if i >= frequent {
			y[i] = 1
		}
		for j := range columns {
			x.Row(i)[j] = float32(rng.NormFloat64() + apart*float64(y[i]))
		}
	}
	return x, y
}

// peer is what imbalanced-learn and scikit-learn make of a problem; see
// bench/peers/study/resamplers.py, which wrote the file.
type peer struct {
	X                  [][]float32
	Y                  []int
	MinorityNeighbours [][]int `json:"minority_neighbours"`
	AllNeighbours      [][]int `json:"all_neighbours"`
	Danger             []int
	Rows               map[string]*int
	SVC                struct {
		Support []int
		Values  []float64
		Rho     float64
	}
}

func peers(t *testing.T) []peer {
	text, err := os.ReadFile("testdata/imbalanced-learn.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []peer }
	if err := json.Unmarshal(text, &all); err != nil || len(all.Cases) == 0 {
		t.Fatal(err)
	}
	return all.Cases
}

func (p peer) matrix() dbn.Matrix {
	x := dbn.NewMatrix(len(p.X), len(p.X[0]))
	for i, row := range p.X {
		copy(x.Row(i), row)
	}
	return x
}

func TestResamplersAgainstImbalancedLearn(t *testing.T) {
	for n, p := range peers(t) {
		x, l := p.matrix(), lackOf(p.Y)
		if got := neighbours(x, l.rows, l.rows, fewNeighbours); !reflect.DeepEqual(got, p.MinorityNeighbours) {
			t.Errorf("case %d: neighbours of the class %v, want %v", n, got, p.MinorityNeighbours)
		}
		if got := neighbours(x, l.rows, l.everything, fewNeighbours); !reflect.DeepEqual(got, p.AllNeighbours) {
			t.Errorf("case %d: neighbours %v, want %v", n, got, p.AllNeighbours)
		}
		if danger, _ := standing(x, p.Y, l.rows, l); !slices.Equal(danger, p.Danger) {
			t.Errorf("case %d: in danger are %v, want %v", n, danger, p.Danger)
		}
		for name, resample := range map[string]resampler{"smote": smote, "adasyn": ADASYN, "borderline1": borderline1, "borderline2": borderline2, "svm": svmsmote} {
			got, _ := resample(x, p.Y, newRand(1))
			want := *p.Rows[name]
			if name == "svm" && want < len(p.Y)+l.need {
				// Support vectors of one kind only: their share is drawn at random.
				if got.Rows <= len(p.Y) || got.Rows >= len(p.Y)+l.need {
					t.Errorf("case %d, %s: %d rows, want some of those that are missing", n, name, got.Rows)
				}
			} else if got.Rows != want {
				t.Errorf("case %d, %s: %d rows, want %d", n, name, got.Rows, want)
			}
		}
		s := fitSVC(x, p.Y)
		support := slices.Concat(s.support(p.Y, 0), s.support(p.Y, 1))
		slices.Sort(support)
		want := slices.Sorted(slices.Values(p.SVC.Support))
		if !slices.Equal(support, want) {
			t.Errorf("case %d: support vectors %v, want %v", n, support, want)
		}
		values := s.values()
		for i, v := range p.SVC.Values {
			if got := values[i]; math.Abs(got-v) > 3e-3 { // both stop within 1e-3 of the optimum
				t.Errorf("case %d: value of row %d is %v, want %v", n, i, got, v)
			}
		}
	}
}

// values returns the decision values of all rows, Σ_j α_j·s_j·K(x_j, x_i) − ρ. ρ is the mean
// over free vectors, or the middle of what the others allow.
func (s *svc) values() []float64 {
	out := make([]float64, len(s.alpha))
	var sum, free float64
	low, high := math.Inf(-1), math.Inf(1)
	for i, a := range s.alpha {
		for j, k := range s.kernel(i) {
			out[i] += s.alpha[j] * s.sign[j] * k
		}
		switch rho := out[i] - s.sign[i]; {
		case a > 0 && a < svcC:
			sum += rho
			free++
		case (a == 0) == (s.sign[i] > 0):
			high = min(high, rho)
		default:
			low = max(low, rho)
		}
	}
	rho := sum / free
	if free == 0 {
		rho = (low + high) / 2
	}
	for i := range out {
		out[i] -= rho
	}
	return out
}

// The conditions of an optimum hold for any rows.
func TestSVCOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := clouds(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(2, 40).Draw(t, "frequent"), rapid.IntRange(1, 20).Draw(t, "rare"),
			rapid.IntRange(1, 4).Draw(t, "columns"), rapid.Float64Range(0, 3).Draw(t, "apart"))
		if rapid.Bool().Draw(t, "repeated") {
			copy(x.Row(1), x.Row(x.Rows-1)) // the same row in both classes
		}
		s := fitSVC(x, y)
		var sum float64
		values := s.values()
		for i, a := range s.alpha {
			sum += s.sign[i] * a
			margin := s.sign[i] * values[i]
			switch {
			case a < 0 || a > svcC:
				t.Fatalf("α of row %d is %v", i, a)
			case a == 0 && margin < 1-2*svcTolerance, a == svcC && margin > 1+2*svcTolerance, a > 0 && a < svcC && math.Abs(margin-1) > 2*svcTolerance:
				t.Fatalf("row %d with α %v has margin %v", i, a, margin)
			}
		}
		if math.Abs(sum) > 1e-9 {
			t.Fatalf("Σ s·α = %v", sum)
		}
	})
}

// between reports whether row lies on the line from a to b, a share of the way
// within [low, high].
func between(row, a, b []float32, low, high float64) bool {
	var along, whole float64
	for j := range row {
		along += (float64(row[j]) - float64(a[j])) * (float64(b[j]) - float64(a[j]))
		whole += (float64(b[j]) - float64(a[j])) * (float64(b[j]) - float64(a[j]))
	}
	u := 0.0
	if whole > 0 {
		u = along / whole
	}
	for j := range row {
		if math.Abs(float64(a[j])+u*(float64(b[j])-float64(a[j]))-float64(row[j])) > 1e-4 {
			return false
		}
	}
	return u >= low-1e-4 && u <= high+1e-4
}

// Rows made up lie between a base and one of its neighbours; the old ones stay.
func TestResamplersProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := clouds(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(20, 60).Draw(t, "frequent"), rapid.IntRange(2, 15).Draw(t, "rare"),
			rapid.IntRange(2, 4).Draw(t, "columns"), rapid.Float64Range(0, 3).Draw(t, "apart"))
		old, labels := slices.Clone(x.Data), slices.Clone(y)
		l := lackOf(y)
		danger, _ := standing(x, y, l.rows, l)
		dangerous, safe := standing(x, y, fitSVC(x, y).support(y, 1), l)
		counts := adasynCounts(x, y, l)
		adasyn := l.need
		if counts != nil {
			adasyn = 0
			for _, n := range counts {
				adasyn += n
			}
			if d := adasyn - l.need; d < -len(l.rows) || d > len(l.rows) {
				t.Fatalf("ADASYN makes %d rows of %d", adasyn, l.need)
			}
		}
		for name, tc := range map[string]struct {
			resample    resampler
			bases       []int
			among       []int
			least, most int
			low, high   float64
		}{
			"SMOTE":       {smote, l.rows, l.rows, l.need, l.need, 0, 1},
			"ADASYN":      {ADASYN, l.rows, l.rows, adasyn, adasyn, 0, 1},
			"Borderline1": {borderline1, danger, l.rows, l.need, l.need, 0, 1},
			"Borderline2": {borderline2, danger, l.everything, l.need, l.need, 0, 1},
			"SVMSMOTE":    {svmsmote, append(slices.Clone(dangerous), safe...), l.rows, 0, l.need, -0.5, 1},
		} {
			if len(tc.bases) == 0 {
				tc.least, tc.most = 0, 0
			}
			seed := rapid.Uint64().Draw(t, "draws")
			gotX, gotY := tc.resample(x, y, newRand(seed))
			again, _ := tc.resample(x, y, newRand(seed))
			if !slices.Equal(gotX.Data, again.Data) {
				t.Fatalf("%s: equal seeds, other rows", name)
			}
			if !slices.Equal(x.Data, old) || !slices.Equal(y, labels) || !slices.Equal(gotX.Data[:len(old)], old) || !slices.Equal(gotY[:len(y)], y) {
				t.Fatalf("%s changes the rows it was given", name)
			}
			made := gotX.Rows - x.Rows
			if made < tc.least || made > tc.most || len(gotY) != gotX.Rows {
				t.Fatalf("%s: %d rows made up, want %d to %d", name, made, tc.least, tc.most)
			}
			near := neighbours(x, tc.bases, tc.among, fewNeighbours)
			for i := x.Rows; i < gotX.Rows; i++ {
				found := false
				for b, base := range tc.bases {
					if counts != nil && name == "ADASYN" && counts[b] == 0 {
						continue // all around it is its own class
					}
					found = found || len(near[b]) == 0 && slices.Equal(gotX.Row(i), x.Row(base))
					for _, n := range near[b] {
						high := tc.high
						if y[n] != l.class {
							high = 0.5
						}
						found = found || between(gotX.Row(i), x.Row(base), x.Row(n), tc.low, high)
					}
				}
				if !found || gotY[i] != l.class {
					t.Fatalf("%s: row %v of class %d comes from nowhere", name, gotX.Row(i), gotY[i])
				}
			}
		}
	})
}

// Whichever class is smaller is added to, and nothing if they are equal.
func TestLack(t *testing.T) {
	for _, tc := range []struct {
		y          []int
		class, row int
	}{{[]int{0, 0, 0, 1, 1}, 1, 6}, {[]int{0, 0, 1, 1, 1}, 0, 6}, {[]int{0, 0, 1, 1}, 1, 4}} {
		x := dbn.NewMatrix(len(tc.y), 1)
		for i := range tc.y {
			x.Data[i] = float32(i)
		}
		got, y := smote(x, tc.y, newRand(1))
		if got.Rows != tc.row || y[len(y)-1] != tc.class {
			t.Errorf("%v: %v", tc.y, y)
		}
	}
}

func TestADASYNFallsBack(t *testing.T) {
	x, y := clouds(1, 30, 10, 2, 100)
	if adasynCounts(x, y, lackOf(y)) != nil {
		t.Fatal("rows far from all others have a share")
	}
	a, _ := ADASYN(x, y, newRand(3))
	b, _ := smote(x, y, newRand(3))
	if fmt.Sprint(a.Data) != fmt.Sprint(b.Data) {
		t.Error("it is not SMOTE")
	}
}
