package table

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Columns that tell when a row was taken, or from which tool, are named for what they are; measurements are not.
func TestLeak(t *testing.T) {
	const tools, rows = 6, 40 // rows of each tool
	rng := rand.New(rand.NewPCG(1, 2))
	shuffled := rng.Perm(tools * rows)
	energy := 0.0
	for name, tc := range map[string]struct {
		at   func(tool, row, n int) float64
		want string
	}{
		"row number":                           {func(_, _, n int) float64 { return float64(n) }, "it seems to count rows"},
		"row number, shuffled":                 {func(_, _, n int) float64 { return float64(shuffled[n]) }, "it seems to count rows"},
		"row number with gaps":                 {func(_, _, n int) float64 { return float64(n + 3*(n/50)) }, "it never falls"},
		"row number of each tool":              {func(_, row, _ int) float64 { return float64(row) }, "it never falls while a tool is in use"},
		"countdown":                            {func(_, _, n int) float64 { return 5000 - float64(n) }, "it seems to count rows"},
		"life left of each tool":               {func(_, row, _ int) float64 { return 100 - 2.5*float64(row) }, "it never rises while a tool is in use"},
		"seconds":                              {func(_, _, n int) float64 { return float64(n) / 50 }, "it never falls"},
		"seconds of each tool":                 {func(_, row, _ int) float64 { return float64(row) / 50 }, "it never falls while a tool is in use"},
		"energy":                               {func(_, _, _ int) float64 { energy += rng.Float64(); return math.Floor(energy) }, "it never falls"},
		"odometer that stands still":           {func(tool, _, _ int) float64 { return float64(100 * tool) }, "it is constant within each tool"},
		"part counter":                         {func(_, _, n int) float64 { return float64(n / 60) }, "it never falls"},
		"ring counter":                         {func(_, _, n int) float64 { return float64(n % 100) }, "it counts in equal steps, and begins again"},
		"seconds since 1970":                   {func(_, _, n int) float64 { return 1793599200 + float64(n*n%977) }, "it looks like a time in seconds since 1970"},
		"milliseconds since 1970":              {func(_, _, n int) float64 { return 1793599200000 + float64(n*n%977) }, "it looks like a time in milliseconds since 1970"},
		"nanoseconds since 1970":               {func(_, _, n int) float64 { return 1793599200e9 + float64(n*n%977)*1e9 }, "it looks like a time in nanoseconds since 1970"},
		"LabVIEW":                              {func(_, _, n int) float64 { return 3854147867 + float64(n*n%977) }, "it looks like a time in seconds since 1904, as LabVIEW counts"},
		"Excel":                                {func(_, _, n int) float64 { return 46328 + float64(n)/86400 }, "it never falls"},
		"cutting speed":                        {func(tool, _, _ int) float64 { return []float64{180, 220, 180, 200, 220, 160}[tool] }, "it is constant within each tool"},
		"cutting speed that changes":           {func(_, row, _ int) float64 { return []float64{180, 220, 180, 200, 220, 160}[row/10] }, ""},
		"always the same":                      {func(int, int, int) float64 { return 7 }, ""},
		"missing":                              {func(int, int, int) float64 { return math.NaN() }, ""},
		"force":                                {func(_, row, _ int) float64 { return 100 + float64(row) + 5*rng.NormFloat64() }, ""},
		"force that follows wear":              {func(tool, row, _ int) float64 { return 100 + float64(row*row)/10 + rng.NormFloat64() }, ""},
		"noise in steps":                       {func(int, int, int) float64 { return float64(rng.IntN(3)) }, ""},
		"on and off":                           {func(_, _, n int) float64 { return float64(n / 5 % 2) }, ""},
		"a large level":                        {func(_, _, n int) float64 { return 1e9 + float64(n%3)*3e8 }, ""},
		"a triangle":                           {func(_, _, n int) float64 { return math.Abs(float64(n%40 - 20)) }, ""},
		"a wave":                               {func(_, _, n int) float64 { return math.Sin(float64(n) / 3) }, ""},
		"a sensor that drifts, read in counts": {func(_, _, n int) float64 { return math.Round(500 + float64(n)/4 + rng.NormFloat64()) }, ""},
	} {
		var l Leak
		for n := range tools * rows {
			v := tc.at(n/rows, n%rows, n)
			if n%37 == 36 {
				v = math.NaN() // a cell is missing
			}
			if strings.HasPrefix(name, "row number") && !strings.Contains(name, "gaps") && !strings.Contains(name, "each") || name == "countdown" {
				v = tc.at(n/rows, n%rows, n)
			}
			l.Add(v, n > 0 && n%rows == 0)
		}
		if got := l.Why(); !strings.HasPrefix(got, tc.want) || got != "" && tc.want == "" {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	for want, at := range map[string]func(tool, row int) float64{ // a tool's first cell is missing, as a difference from the row before has it
		"it never falls while a tool is in use": func(_, row int) float64 { return float64(row) / 50 },
		"it is constant within each tool":       func(tool, _ int) float64 { return []float64{180, 220, 180, 200, 220, 160}[tool] },
	} {
		var l Leak
		for n := range tools * rows {
			v := at(n/rows, n%rows)
			if n%rows == 0 {
				v = math.NaN()
			}
			l.Add(v, n > 0 && n%rows == 0)
		}
		if got := l.Why(); !strings.HasPrefix(got, want) {
			t.Errorf("without the first cells: %q, want %q", got, want)
		}
	}
	for _, values := range [][]float64{{}, {1, 2, 3, 4, 5, 6}, {.1, .2, .3, .4, .5, .6, .7}} { // too few to say
		var l Leak
		for _, v := range values {
			l.Add(v, false)
		}
		if got := l.Why(); got != "" {
			t.Error(fmt.Sprint(values), got)
		}
	}
}
