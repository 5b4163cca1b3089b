package imbalance

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// The eigenvectors give what solving (I/C + HᵀΩH)·β = HᵀΩt gives.
func TestRidge(t *testing.T) {
	x, y := clouds(1, 40, 8, 3, 1)
	h := newRandomUnits(x, 6, newRand(2)).apply(x)
	weight := [2]float64{0.5, 3}
	r := newRidge(h, y, weight)
	for _, c := range []float64{1e-3, 1, 1e3} {
		left, right := mat.NewDense(6, 6, nil), mat.NewVecDense(6, nil)
		for a := range 6 {
			left.Set(a, a, 1/c)
			for i, label := range y {
				w := weight[label]
				right.SetVec(a, right.AtVec(a)+w*h.At(i, a)*float64(2*label-1))
				for b := range 6 {
					left.Set(a, b, left.At(a, b)+w*h.At(i, a)*h.At(i, b))
				}
			}
		}
		var want mat.VecDense
		if err := want.SolveVec(left, right); err != nil {
			t.Fatal(err)
		}
		for i, got := range r.beta(c) {
			if math.Abs(got-want.AtVec(i)) > 1e-8*mat.Norm(&want, 2) {
				t.Errorf("C = %v: β[%d] = %v, want %v", c, i, got, want.AtVec(i))
			}
		}
	}
}

// A row of integer weight w counts as w rows.
func TestRidgeWeights(t *testing.T) {
	x, y := clouds(3, 20, 5, 2, 1)
	u := newRandomUnits(x, 4, newRand(2))
	twice, labels := x, y
	for i := 20; i < 25; i++ {
		twice.Data = append(twice.Data[:len(twice.Data):len(twice.Data)], x.Row(i)...)
		twice.Rows++
		labels = append(labels[:len(labels):len(labels)], 1)
	}
	a := newRidge(u.apply(x), y, [2]float64{1, 2}).beta(10)
	b := newRidge(u.apply(twice), labels, [2]float64{1, 1}).beta(10)
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-9 {
			t.Errorf("β[%d] = %v and %v", i, a[i], b[i])
		}
	}
}

func TestWELMWeights(t *testing.T) {
	y := []int{0, 0, 0, 0, 1, 1}
	if w := welmWeights(y, false); w != [2]float64{0.25, 0.5} {
		t.Errorf("W1: %v", w)
	}
	if w := welmWeights(y, true); w != [2]float64{0.618 / 4, 0.5} {
		t.Errorf("W2: %v", w)
	}
}

func TestKMeans(t *testing.T) {
	x := dbn.NewMatrix(30, 2)
	var rows []int
	for i := range 30 {
		x.Row(i)[0] = float32(100*(i%3)) + float32(i)/10
		rows = append(rows, i)
	}
	cluster := kMeans(x, rows, 3, newRand(1))
	for i := range rows {
		for j := range rows {
			if (cluster[i] == cluster[j]) != (i%3 == j%3) {
				t.Fatalf("rows %d and %d: clusters %v", i, j, cluster)
			}
		}
	}
	for _, c := range kMeans(x, rows[:2], 8, newRand(1)) {
		if c < 0 || c > 1 {
			t.Errorf("two rows in cluster %d", c)
		}
	}
}

func TestECOOversample(t *testing.T) {
	x, y := clouds(1, 40, 10, 2, 2)
	got, labels := ecoPlan{clusters: 2, ratio: 0.5, reach: 1}.oversample(x, y, newRand(1))
	if got.Rows != 65 || labels[64] != 1 {
		t.Errorf("%d rows, want half of the 30 that are missing", got.Rows)
	}
	same, _ := ecoPlan{clusters: 3, ratio: 1, reach: 0}.oversample(x, y, newRand(1))
	for i := 50; i < same.Rows; i++ {
		found := false
		for j := 40; j < 50; j++ {
			found = found || between(same.Row(i), x.Row(j), x.Row(j), 0, 0)
		}
		if !found {
			t.Errorf("without reach, %v is not a copy", same.Row(i))
		}
	}
}
