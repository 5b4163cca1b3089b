package kernel

// Posteriors is the posteriors of the rows of any number of classes. It never changes and may be used
// by several goroutines.
type Posteriors struct {
	k       int
	counts  []int
	classes [][]float32 // of the rows of each class: blocks of K×judgedRows, rows of zeros at the end
}

// NewPosteriors copies the posteriors, N×K, of rows whose classes are y. Of each class
// it takes at most most rows, evenly spread in their order, or all if most is 0.
func NewPosteriors(k int, posterior []float64, y []int, most int) *Posteriors {
	r := &Posteriors{k: k, counts: make([]int, k), classes: make([][]float32, k)}
	all := make([]int, k)
	for _, label := range y {
		all[label]++
	}
	for class, n := range all {
		if most > 0 {
			n = min(n, most)
		}
		blocks := (n + judgedRows - 1) / judgedRows
		r.classes[class] = make([]float32, blocks*k*judgedRows)
	}
	seen := make([]int, k)
	for i, label := range y {
		take := most == 0 || all[label] <= most || seen[label]*most/all[label] != (seen[label]+1)*most/all[label]
		seen[label]++
		if !take {
			continue
		}
		at := r.counts[label]
		block := r.classes[label][at/judgedRows*k*judgedRows:]
		for j, p := range posterior[i*k : (i+1)*k] {
			block[j*judgedRows+at%judgedRows] = float32(p)
		}
		r.counts[label]++
	}
	return r
}

// Counts returns the number of rows of each class. It must not be changed.
func (r *Posteriors) Counts() []int { return r.counts }

// Count stores in t[i] what weights[i], K long, give. Weighted posteriors are
// compared in float32.
func (r *Posteriors) Count(t []Tally, weights [][]float64) {
	w := make([]float32, len(weights)*r.k)
	for i, x := range weights {
		for j, v := range x {
			w[i*r.k+j] = float32(v)
		}
		clear(t[i].Right)
		clear(t[i].Share)
	}
	size := r.k * judgedRows
	for class, blocks := range r.classes {
		for ; len(blocks) > 0; blocks = blocks[size:] {
			for i := range t {
				right, share := judge(blocks[:size], w[i*r.k:(i+1)*r.k], class)
				t[i].Right[class] += right
				t[i].Share[class] += float64(share)
			}
		}
		n := r.counts[class]
		for i := range t {
			if class == 0 { // rows of zeros tie, and ties are decided for class 0
				t[i].Right[0] -= (judgedRows - n%judgedRows) % judgedRows
			}
			t[i].Share[class] /= float64(max(n, 1))
		}
	}
}
