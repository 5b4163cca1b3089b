package trend

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/recorded"
)

// recording reads a recording of FLANK_DATA; the test is skipped without it.
func recording(t *testing.T, path ...string) [][]string {
	t.Helper()
	folder := recorded.Folder(t)
	if raceDetector {
		t.Skip("takes minutes under the race detector, which sees the same code at work on made-up tools")
	}
	f, err := os.Open(filepath.Join(append([]string{folder}, path...)...))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// turning returns the rows of the turning tools, features as recorded, with references
// as the monitor takes them by default.
func turning(t *testing.T) *Rows {
	t.Helper()
	lines := recording(t, "vicomtech-turning", "turning_wear_dev.csv")
	r := &Rows{Columns: len(lines[0]) - 2}
	for _, line := range lines[1:] {
		for _, cell := range line[:r.Columns] {
			v, err := strconv.ParseFloat(cell, 32)
			if err != nil {
				v = math.NaN()
			}
			r.X = append(r.X, float32(v))
		}
		um, err := strconv.ParseFloat(line[r.Columns+1], 64)
		if err != nil {
			t.Fatal(err)
		}
		r.WearUM, r.Tool = append(r.WearUM, um), append(r.Tool, line[r.Columns])
	}
	refer(r, 10)
	return r
}

// The goals on tools never seen: an error of 27 µm, and 80 % intervals that
// hold 75 to 90 %.
func TestRecordedTurning(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s, err := CrossValidate(t.Context(), turning(t), Settings{LimitUM: 300, Seed: 1}, runtime.GOMAXPROCS(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range s.Tools {
		t.Logf("%+v", k)
	}
	t.Logf("MAE %.2f µm (%.2f of all), coverage %.3f, width %.1f µm, %d of %d known; life: %d of %d known, MAE %.1f, coverage %.3f",
		s.MAEUM, s.AllMAEUM, s.Coverage, s.WidthUM, s.Known, s.Rows, s.LifeKnown, s.Life, s.LifeMAE, s.LifeCoverage)
	if s.MAEUM > 27 || s.AllMAEUM > 28 {
		t.Errorf("error %.2f µm, %.2f of all windows, want 27 and 28 at most", s.MAEUM, s.AllMAEUM)
	}
	if s.Coverage < 0.75 || s.Coverage > 0.9 {
		t.Errorf("intervals hold %.3f, want 0.75 to 0.9", s.Coverage)
	}
	if s.Known < s.Rows*92/100 {
		t.Errorf("%d of %d windows are known, want 92 %%: nine of each tool have no reference", s.Known, s.Rows)
	}
}

// milling returns the rows of the cutters of PHM 2010, one for each cut, in the order of
// cutting, with the wear of the most worn flute.
func milling(t *testing.T) *Rows {
	t.Helper()
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	wear := make(map[string]float64)
	for _, line := range recording(t, "phm2010-features", "process_info.csv")[1:] {
		wear[line[0]+"/"+line[1]] = max(number(line[2]), number(line[3]), number(line[4]))
	}
	lines := recording(t, "phm2010-features", "feature_vector.csv")
	r := &Rows{Columns: len(lines[0]) - 3}
	for _, line := range lines[1:] {
		for _, cell := range line[3:] {
			r.X = append(r.X, float32(number(cell)))
		}
		um, known := wear[line[0]+"/"+line[1]]
		if !known {
			t.Fatalf("cut %s of cutter %s has no wear", line[1], line[0])
		}
		r.WearUM, r.Tool = append(r.WearUM, um), append(r.Tool, line[0])
	}
	refer(r, 10)
	return r
}

// With two cutters to learn from, the estimate cut at the limit tells worn from unworn
// windows of the third.
func TestRecordedTwoToolsTellTheLimit(t *testing.T) {
	rows := milling(t)
	var right, of [2]float64 // unworn, worn
	var sum, n float64
	for _, held := range []string{"1", "4", "6"} {
		m, c, err := Fit(t.Context(), rows.Without(map[string]bool{held: true}), Settings{LimitUM: 150, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !c.Fixed || c.Penalty != 630 || len(c.Parts) != 3 || c.Median != usualMedian {
			t.Errorf("cutter %s: chosen on two tools: %+v", held, c)
		}
		m.Distance, m.MostUM = math.MaxFloat64, math.MaxFloat64
		var rightOf, all [2]float64
		for i, tool := range rows.Tool {
			if root, known := m.Root(rows.Row(i), rows.Reference[i]); tool == held && known {
				worn := 0
				if rows.WearUM[i] >= 150 {
					worn = 1
				}
				all[worn]++
				if (root*root >= 150) == (worn == 1) {
					rightOf[worn]++
				}
				sum += math.Abs(root*root - rows.WearUM[i])
				n++
			}
		}
		t.Logf("cutter %s: G-mean %.3f", held, math.Sqrt(rightOf[0]/all[0]*rightOf[1]/all[1]))
		for k := range right {
			right[k], of[k] = right[k]+rightOf[k], of[k]+all[k]
		}
	}
	g := math.Sqrt(right[0] / of[0] * right[1] / of[1])
	t.Logf("G-mean %.3f, MAE %.1f µm", g, sum/n)
	if g < 0.95 {
		t.Errorf("G-mean %.3f, want 0.95", g)
	}
}

// refer gives the rows of each tool the median of its first n as a reference, from the
// n-th on.
func refer(r *Rows, n int) {
	r.Reference = make([][]float32, len(r.Tool))
	for _, of := range r.byTool() {
		if len(of) < n {
			continue
		}
		center := make([]float32, r.Columns)
		for c := range center {
			var column []float32
			for _, i := range of[:n] {
				if v := r.Row(i)[c]; v == v {
					column = append(column, v)
				}
			}
			if slices.Sort(column); len(column) == 0 {
				center[c] = float32(math.NaN())
			} else {
				center[c] = (column[(len(column)-1)/2] + column[len(column)/2]) / 2
			}
		}
		for _, i := range of[n-1:] {
			r.Reference[i] = center
		}
	}
}
