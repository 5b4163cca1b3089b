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
)

// turning returns the rows of the turning tools, features as recorded, with references
// as the monitor takes them by default.
func turning(t *testing.T) *Rows {
	t.Helper()
	folder := os.Getenv("FLANK_DATA")
	if folder == "" {
		t.Skip("FLANK_DATA is not set")
	}
	f, err := os.Open(filepath.Join(folder, "vicomtech-turning", "turning_wear_dev.csv"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
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

// The goals on tools never seen: an error of 28 µm, and 80 % intervals that
// hold 75 to 85 %.
func TestTurning(t *testing.T) {
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
	if s.MAEUM > 28 || s.AllMAEUM > 28 {
		t.Errorf("error %.2f µm, %.2f of all windows, want 28 at most", s.MAEUM, s.AllMAEUM)
	}
	if s.Coverage < 0.75 || s.Coverage > 0.85 {
		t.Errorf("intervals hold %.3f, want 0.75 to 0.85", s.Coverage)
	}
	if s.Known < s.Rows*95/100 {
		t.Errorf("%d of %d windows are known, want 95 %%", s.Known, s.Rows)
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
