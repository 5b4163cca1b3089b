package table

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// CellsOfArrow returns what reads the cells of an array by their rows. It is false for
// types that are not numbers, text or timestamps.
func CellsOfArrow(a arrow.Array) (CellReader[int], bool) {
	cells := CellReader[int]{Null: a.IsNull}
	switch a := a.(type) {
	case *array.String:
		cells.Kind, cells.Text = KindText, a.Value
	case *array.LargeString:
		cells.Kind, cells.Text = KindText, a.Value
	case *array.Timestamp:
		cells.Kind, cells.Unit = KindTime, a.DataType().(*arrow.TimestampType).Unit.Multiplier()
		cells.Ticks = func(row int) int64 { return int64(a.Value(row)) }
	case *array.Dictionary:
		return ofDictionary(a)
	case *array.Null:
		cells.Null, cells.Number = func(int) bool { return true }, func(int) float64 { return 0 }
	default:
		of := arrowNumbers[a.DataType().ID()]
		if of == nil {
			return cells, false
		}
		cells.Number = of(a)
	}
	return cells, true
}

// ofDictionary returns what reads cells that are words of a dictionary.
func ofDictionary(a *array.Dictionary) (CellReader[int], bool) {
	words, ok := CellsOfArrow(a.Dictionary())
	if !ok {
		return words, false
	}
	cells := CellReader[int]{Kind: words.Kind, Unit: words.Unit}
	cells.Null = func(row int) bool { return a.IsNull(row) || words.Null(a.GetValueIndex(row)) }
	switch words.Kind {
	case KindNumber:
		cells.Number = func(row int) float64 { return words.Number(a.GetValueIndex(row)) }
	case KindText:
		cells.Text = func(row int) string { return words.Text(a.GetValueIndex(row)) }
	case KindTime:
		cells.Ticks = func(row int) int64 { return words.Ticks(a.GetValueIndex(row)) }
	}
	return cells, true
}

// arrowNumbers are what reads numbers by their rows, by the type of their array.
var arrowNumbers = map[arrow.Type]func(arrow.Array) func(row int) float64{
	arrow.BOOL: func(a arrow.Array) func(row int) float64 {
		return func(row int) float64 { return truth(a.(*array.Boolean).Value(row)) }
	},
	arrow.FLOAT32: numbers((*array.Float32).Float32Values), arrow.FLOAT64: numbers((*array.Float64).Float64Values),
	arrow.INT8: numbers((*array.Int8).Int8Values), arrow.INT16: numbers((*array.Int16).Int16Values),
	arrow.INT32: numbers((*array.Int32).Int32Values), arrow.INT64: numbers((*array.Int64).Int64Values),
	arrow.UINT8: numbers((*array.Uint8).Uint8Values), arrow.UINT16: numbers((*array.Uint16).Uint16Values),
	arrow.UINT32: numbers((*array.Uint32).Uint32Values), arrow.UINT64: numbers((*array.Uint64).Uint64Values),
}

func numbers[A arrow.Array, T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](values func(A) []T) func(arrow.Array) func(row int) float64 {
	return func(a arrow.Array) func(row int) float64 {
		x := values(a.(A))
		return func(row int) float64 { return float64(x[row]) }
	}
}
