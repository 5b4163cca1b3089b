package classify

import "github.com/flank-tcm/flank/pkg/dbn"

// crossing is a row that was not recorded, on the straight line from the last row of a
// tool below the limit to the next one, beyond it.
type crossing struct {
	below, above int // places of rows in the subset
	share        float32
	class        int
}

// crossings returns the rows to put where wear jumps over the limit: a tool that chips
// goes from 0.9 limits to 2 in one window, and nothing in its windows says where between
// them the limit is. Its wear passed through all values between, so there is a row for
// each crossingStep, up to mostTunedWear, of the class that its wear gives. (A straight line
// between two rows, as in N. V. Chawla et al., "SMOTE: Synthetic Minority Over-sampling
// Technique", JAIR 16, 2002; there between neighbours of one class, here along the life
// of one tool.)
func (d subset) crossings() []crossing {
	if d.of.Wear == nil || d.of.Groups == nil || !d.of.Ordered {
		return nil
	}
	var out []crossing
	last := make(map[string]int) // place of each tool's
	place := -1
	d.rows.each(func(i int) {
		place++
		before, known := last[d.of.Groups[i]]
		last[d.of.Groups[i]] = place
		if !known || d.of.Y[i] == Healthy {
			return
		}
		h := d.rows.row(before)
		from, to := d.of.Wear[h], d.of.Wear[i]
		if d.of.Y[h] != Healthy || !(from < 1 && to >= 1 && to-from > crossingStep) {
			return
		}
		for n := 1.0; from+n*crossingStep < min(to, mostTunedWear); n++ {
			b := crossing{before, place, float32(n * crossingStep / (to - from)), Healthy}
			if from+n*crossingStep >= 1 {
				b.class = d.of.Y[i]
			}
			out = append(out, b)
		}
	})
	return out
}

// crossed returns the rows of crossings, with their classes.
func (l lesson) crossed() (dbn.Matrix, []int, error) {
	all := l.crossings()
	_, cols := l.x.Shape()
	x, y := dbn.NewMatrix(len(all), cols), make([]int, len(all))
	below, above := make([]float32, cols), make([]float32, cols)
	for i, b := range all {
		if err := l.x.ReadRows(below, b.below); err != nil {
			return x, nil, err
		}
		if err := l.x.ReadRows(above, b.above); err != nil {
			return x, nil, err
		}
		for j, v := range below {
			x.Row(i)[j] = v + b.share*(above[j]-v)
		}
		y[i] = b.class
	}
	return x, y, nil
}
