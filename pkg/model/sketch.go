package model

import (
	"errors"
	"fmt"
)

// The most that a sketch has: rows of each tool, columns of a row, and tools.
const (
	SketchRows    = 8
	SketchColumns = 8
	SketchTools   = 256
)

// Sketch is a small sample of the rows that a model was trained on, by which its tools
// are recognised in other data, under any name and in any format.
type Sketch struct {
	// Columns are the features that rows of the sketch have, counted from 0. Tolerance is
	// by how much each may differ in a copy of a row, because numbers were rounded.
	Columns   []int     `json:"columns"`
	Tolerance []float64 `json:"tolerance"`

	Tools []SketchTool `json:"tools"`
}

// SketchTool is what a sketch has of one tool.
type SketchTool struct {
	Name string `json:"name"`

	// Rows has one float32 for each of the sketch's columns and each row, before the
	// reference, row by row, little endian.
	Rows []byte `json:"rows"`
}

// Row returns row i of the tool in a sketch with so many columns.
func (t SketchTool) Row(i, columns int) []float32 {
	row := make([]float32, columns)
	taken(t.Rows[4*i*columns:], row)
	return row
}

// Add appends a row, one value for each column of the sketch.
func (t *SketchTool) Add(row []float32) { t.Rows = appended(t.Rows, row) }

// Len returns how many rows the tool has in a sketch with so many columns.
func (t SketchTool) Len(columns int) int { return len(t.Rows) / (4 * columns) }

// check reports what contradicts itself in a sketch of so many features.
func (s *Sketch) check(features int) error {
	if s == nil {
		return nil
	}
	n := len(s.Columns)
	if n == 0 || n > SketchColumns || len(s.Tolerance) != n {
		return fmt.Errorf("sketch: %d columns and %d tolerances", n, len(s.Tolerance))
	}
	if err := s.checkColumns(features); err != nil {
		return err
	}
	if len(s.Tools) > SketchTools {
		return fmt.Errorf("sketch: %d tools, more than %d", len(s.Tools), SketchTools)
	}
	for _, t := range s.Tools {
		if err := t.check(n); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sketch) checkColumns(features int) error {
	last := -1
	for i, c := range s.Columns {
		if c <= last || c >= features {
			return fmt.Errorf("sketch: column %d of %d features", c, features)
		}
		if last = c; !(s.Tolerance[i] >= 0) {
			return errors.New("sketch: a tolerance is negative")
		}
	}
	return nil
}

// check reports rows that are not of so many columns.
func (t SketchTool) check(columns int) error {
	switch n := len(t.Rows); {
	case n > 4*columns*SketchRows:
		return fmt.Errorf("sketch: tool %q has more than %d rows", t.Name, SketchRows)
	case n == 0 || n%(4*columns) != 0:
		return fmt.Errorf("sketch: the rows of tool %q are cut off", t.Name)
	}
	return nil
}
