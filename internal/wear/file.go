package wear

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/csvfile"
)

// columns of wear.csv, in the order in which Write writes them.
var columns = []string{"machine", "tool", "hole", "time", "vb_mean_um", "vb_max_um", "state"}

// Indices of columns.
const (
	colMachine = iota
	colTool
	colHole
	colTime
	colVBMean
	colVBMax
	colState
)

// Write writes measurements as wear.csv. What is not known is an empty cell.
func Write(w io.Writer, ms []Measurement) error {
	number := func(v float64) string {
		if v != v {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	out := csv.NewWriter(w)
	out.Write(columns) // errors stick; see Error below
	for _, m := range ms {
		var at string
		if !m.Time.IsZero() {
			at = m.Time.UTC().Format(time.RFC3339Nano)
		}
		out.Write([]string{m.Machine, m.Tool, m.Hole, at, number(m.VBMeanUM), number(m.VBMaxUM), m.State})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("wear: write: %w", err)
	}
	return nil
}

// Load reads the file at path, see [Read].
func Load(path string) (ms []Measurement, warnings []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("wear: %w", err)
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads measurements, in file order; file names them in errors.
//
// The file has one row for each measurement, cells separated by commas, and a
// header row with the names machine, tool, hole, time, vb_mean_um, vb_max_um
// and state in any order. Only tool is needed, and one of the last three.
// Other columns are ignored, unless they start with "vb", so that wear in
// millimetres is not lost without a word. An empty cell (also NaN, nan or NA)
// is not known; a row must have a tool. Times are RFC 3339.
//
// What cannot be a measurement is an error with file, line, column and remedy:
// text in a number, negative wear, a mean above the maximum, the same tool
// measured twice at one hole and time. What is odd but can be is a warning:
// wear that falls within a tool, because measured curves do fall by the
// uncertainty of the microscope, or when a built-up edge breaks off, and a
// file that is refused for it would be edited until it fits; and wear so small
// throughout that it looks like millimetres.
func Read(r io.Reader, file string) (ms []Measurement, warnings []string, err error) {
	d := &reader{where: "wear: " + file, Reader: csvfile.NewReader(r, "wear: "+file)}
	if err := d.readHeader(); err != nil {
		return nil, nil, err
	}
	var lines []int
	for {
		m, err := d.readRow()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		ms = append(ms, m)
		lines = append(lines, d.Line)
	}
	if err := checkTwice(file, ms, lines); err != nil {
		return nil, nil, err
	}
	return ms, warn(file, ms, lines), nil
}

// reader reads the rows of a wear file.
type reader struct {
	*csvfile.Reader
	where string // what errors begin with
	cell  [7]int // of each of columns, -1 if the file lacks it
}

func (d *reader) readHeader() error {
	if err := d.Header(); err == io.EOF {
		return fmt.Errorf("%s: the file is empty: write a header such as %s", d.where, strings.Join(columns, ","))
	} else if err != nil {
		return err
	}
	if len(d.Row) == 1 && strings.ContainsAny(d.Row[0], ";\t") {
		return fmt.Errorf("%s:%d: the header is one name, %.60q: separate columns by commas", d.where, d.Line, d.Row[0])
	}
	for i := range d.cell {
		d.cell[i] = -1
	}
	for i, name := range d.Row {
		name = strings.ToLower(strings.TrimSpace(name))
		switch k := slices.Index(columns, name); {
		case k >= 0 && d.cell[k] >= 0:
			return fmt.Errorf("%s:%d: columns %d and %d are both named %q: rename or remove one", d.where, d.Line, d.cell[k]+1, i+1, name)
		case k >= 0:
			d.cell[k] = i
		case strings.HasPrefix(name, "vb"):
			return fmt.Errorf("%s:%d: column %q is not known: wear is in µm, in columns vb_mean_um and vb_max_um", d.where, d.Line, name)
		}
	}
	if d.cell[colTool] < 0 {
		return fmt.Errorf("%s:%d: no column %q: add it; the columns are %s", d.where, d.Line, "tool", strings.Join(columns, ", "))
	}
	if d.cell[colVBMean] < 0 && d.cell[colVBMax] < 0 && d.cell[colState] < 0 {
		return fmt.Errorf("%s:%d: no column says how worn a tool is: add vb_mean_um, vb_max_um or state", d.where, d.Line)
	}
	return nil
}

func (d *reader) readRow() (Measurement, error) {
	if err := d.Next(); err != nil {
		return Measurement{}, err
	}
	var m Measurement
	for k, to := range []*string{colMachine: &m.Machine, colTool: &m.Tool, colHole: &m.Hole, colState: &m.State} {
		if to == nil || d.cell[k] < 0 {
			continue
		}
		cell := d.text(k)
		if !utf8.ValidString(cell) {
			return m, d.errorf(k, "is not valid UTF-8: save the file as UTF-8")
		}
		*to = strings.Clone(cell)
	}
	if m.Tool == "" {
		return m, d.errorf(colTool, "is not a tool: name the tool that was measured")
	}
	if cell := d.text(colTime); cell != "" {
		var ok bool
		if m.Time, ok = csvfile.ParseTime(cell); !ok {
			return m, d.errorf(colTime, "is not a time: write RFC 3339, as 2026-01-31T14:05:09Z")
		}
	}
	for k, to := range []*float64{colVBMean: &m.VBMeanUM, colVBMax: &m.VBMaxUM} {
		if to == nil {
			continue
		}
		v, ok := csvfile.ParseNumber(d.text(k), 64)
		if !ok {
			return m, d.errorf(k, "is not a number of µm: correct it, or leave the cell empty if it was not measured")
		}
		if v < 0 {
			return m, d.errorf(k, "is a negative wear: correct it, or leave the cell empty if it was not measured")
		}
		*to = v
	}
	if m.VBMeanUM > m.VBMaxUM {
		return m, d.errorf(colVBMean, "is above vb_max_um, %v, but a mean is at most the maximum: correct the row; are the columns exchanged?", m.VBMaxUM)
	}
	return m, nil
}

// text returns the cell of a column of ours, empty if it is not known.
func (d *reader) text(k int) string {
	if d.cell[k] < 0 {
		return ""
	}
	switch s := strings.TrimSpace(d.Row[d.cell[k]]); s {
	case "NaN", "nan", "NA":
		return ""
	default:
		return s
	}
}

func (d *reader) errorf(k int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: column %s: %.60q %s", d.where, d.Line, columns[k], d.text(k), fmt.Sprintf(format, args...))
}

// checkTwice returns an error if two rows measure the same tool at the same
// hole and time.
func checkTwice(file string, ms []Measurement, lines []int) error {
	type key struct {
		machine, tool, hole string
		at                  time.Time
	}
	seen := make(map[key]int, len(ms))
	for i, m := range ms {
		k := key{m.Machine, m.Tool, m.Hole, m.Time}
		if line, twice := seen[k]; twice {
			return fmt.Errorf("wear: %s:%d: tool %q is measured at this hole and time on line %d already: keep one of them, or state when each was measured", file, lines[i], m.Tool, line)
		}
		seen[k] = lines[i]
	}
	return nil
}

// warn returns what is odd about the measurements, one line of text for each.
func warn(file string, ms []Measurement, lines []int) []string {
	order := make([]int, len(ms))
	largest := math.NaN()
	for i, m := range ms {
		order[i] = i
		for _, v := range []float64{m.VBMeanUM, m.VBMaxUM} {
			if !(v <= largest) && v == v {
				largest = v
			}
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := ms[i], ms[j]
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Tool, b.Tool), a.Time.Compare(b.Time))
	})
	var warnings []string
	last := [2]int{-1, -1} // the latest row that knows the mean, and the maximum
	for n, i := range order {
		if n > 0 && (ms[i].Machine != ms[order[n-1]].Machine || ms[i].Tool != ms[order[n-1]].Tool) {
			last = [2]int{-1, -1}
		}
		for q, of := range []func(Measurement) float64{
			func(m Measurement) float64 { return m.VBMeanUM },
			func(m Measurement) float64 { return m.VBMaxUM },
		} {
			v := of(ms[i])
			if v != v {
				continue
			}
			if j := last[q]; j >= 0 && v < of(ms[j]) {
				warnings = append(warnings, fmt.Sprintf("wear: %s:%d: %s of tool %q falls from %v (line %d) to %v: check the measurements; a tool that was ground again needs a new name",
					file, lines[i], columns[colVBMean+q], ms[i].Tool, of(ms[j]), lines[j], v))
			}
			last[q] = i
		}
	}
	if largest > 0 && largest < 3 {
		warnings = append(warnings, fmt.Sprintf("wear: %s: no wear is above %v µm: are these millimetres? Write µm", file, largest))
	}
	return warnings
}
