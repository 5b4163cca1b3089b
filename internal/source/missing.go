package source

import (
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/table"
)

// missingCells are cells that a layout takes for missing values. The zero value is none.
type missingCells struct {
	cells   []string
	numbers []float64
}

// missingOf returns what a layout's `recording: missing` says.
func missingOf(cells []string) missingCells {
	m := missingCells{cells: cells}
	for _, cell := range cells {
		if v, err := strconv.ParseFloat(cell, 64); err == nil {
			m.numbers = append(m.numbers, v)
		}
	}
	return m
}

// IsMissing returns what reports whether a number is one that a layout's `recording: missing` names, nil if it names none.
func IsMissing(cells []string) func(v float64) bool {
	if len(cells) == 0 {
		return nil
	}
	return missingOf(cells).number
}

// word reports whether a cell is one of them as it is written.
func (m missingCells) word(cell string) bool {
	return len(m.cells) > 0 && slices.ContainsFunc(m.cells, func(c string) bool { return strings.EqualFold(c, cell) })
}

// number reports whether a number of 32 or 64 bits is one of them.
func (m missingCells) number(v float64) bool {
	return len(m.numbers) > 0 && slices.ContainsFunc(m.numbers, func(n float64) bool { return v == n || v == float64(float32(n)) })
}

// isMissingNumber reports whether a cell of a column of numbers says that there is no
// number: what [table.IsMissing] takes, and the words that loggers write for a value that they
// could not compute, express or get. In a column of text they may be values.
func isMissingNumber(cell string) bool {
	if table.IsMissing(cell) || cell[0] == '#' {
		return true
	}
	sign := strings.TrimLeft(strings.ToLower(cell), "+-")
	if len(sign) > 2 && sign[0] == '1' && sign[2] == '#' || strings.HasPrefix(sign, "err:") { // 1.#QNAN, 1.#IND, 1.#INF of C on Windows; Err:502 of LibreOffice
		return true
	}
	switch sign {
	case "n.a.", "<na>", "<null>", "err", "ol", "ofl", "over", "open", "***", "--.--", "unknown", "nan", "nan(ind)", "nan(snan)", "inf", "infinity", "∞", "none", "missing", "bad", "bad input", "invalid", "error", "no data", "nodata", "?",
		"overflow", "overload", "overrange", "over range", "out of range", "ovld", "ovrflw", "underrange", "under range", "timeout", "i/o timeout":
		return true
	}
	return false
}
