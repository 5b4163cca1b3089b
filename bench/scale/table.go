//go:build unix

package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/flank-tcm/flank/internal/table"
)

// The table: lives of tools, one after the other, at one row a second.
const (
	parts    = 40
	partRows = 250_000
	features = 196
	telling  = 14     // features that wear moves
	life     = 12_500 // rows of a tool
)

func partName(part int) string { return fmt.Sprintf("part-%02d.parquet", part) }

// rowsOf returns the rows of a part, always the same.
func rowsOf(part int) *table.Table {
	names := make([]string, features)
	for i := range names {
		names[i] = fmt.Sprintf("f%03d", i)
	}
	t := table.New(names)
	t.Data = make([]float32, 0, partRows*features)
	rng := rand.New(rand.NewPCG(1, uint64(part)))
	x := make([]float32, features)
	for i := range partRows {
		wear := float64(i%life) / life
		for j := range x {
			x[j] = float32(rng.NormFloat64())
			if j < telling {
				x[j] += float32(2 * wear)
			}
		}
		class := 0
		if wear >= 0.8 {
			class = 1
		}
		t.Append(table.Row{Tool: fmt.Sprintf("T%04d", part*(partRows/life)+i/life), Class: class, VBMaxUM: math.NaN(), Features: x})
	}
	return t
}
