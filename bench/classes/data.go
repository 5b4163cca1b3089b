package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
)

// jobOf returns the job of a data set in three classes, in mode log.
func jobOf(folder, name string) (train.Job, error) {
	var t *table.Table
	var err error
	worn, faulty := 150., 300.
	job := train.SimulatedHistory("local/site/area/line/drill", 1)
	switch name {
	case "turning":
		t, err = readTurning(folder)
	case "phm2010":
		worn, faulty = 100, 150
		t, err = readPHM(folder)
	case "uniwear":
		worn, faulty = 100, 150
		t, err = readUniwear(folder)
	case "drill":
	default:
		err = fmt.Errorf("no data set %q: choose from turning, phm2010, uniwear and drill", name)
	}
	if err != nil {
		return job, err
	}
	if t != nil {
		job.Config, job.Inputs = train.DefaultConfig(), []train.Input{{Name: name, Windows: t.Rows(), Table: t}}
		job.Config.Gate = "off" // every row is of cutting
		if job.Layout, err = train.TableLayout(name, t.Columns, time.Second); err != nil {
			return job, err
		}
	}
	job.Log = zerolog.Nop()
	job.Config.Reference.Mode = model.ReferenceLog
	job.Config.Label = wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn", VBMaxUM: worn}, {Name: "faulty", VBMaxUM: faulty}}}
	return job, nil
}

// add appends a window whose wear is known.
func add(t *table.Table, tool string, um float64, features []float32) {
	t.Append(table.Row{
		Machine: "m", Tool: tool, Start: time.Unix(1_700_000_000+int64(t.Rows()), 0).UTC(), Class: table.NoClass, VBMaxUM: um, Features: features,
	})
}

// readTurning reads the turning recording: a row a second, 152 features.
func readTurning(folder string) (*table.Table, error) {
	f, err := openCSV(filepath.Join(folder, "vicomtech-turning", "turning_wear_dev.csv"))
	if err != nil {
		return nil, err
	}
	columns := f.except("tool", "Vb")
	t := table.New(columns)
	return t, f.each(func(row map[string]string) { add(t, row["tool"], number(row["Vb"]), numbers(row, columns)) })
}

// readPHM reads the cutters of the PHM challenge of 2010: a row for each cut, worn as the
// most worn of three flutes.
func readPHM(folder string) (*table.Table, error) {
	f, err := openCSV(filepath.Join(folder, "phm2010-features", "process_info.csv"))
	if err != nil {
		return nil, err
	}
	um := make(map[[2]string]float64)
	if err := f.each(func(row map[string]string) {
		um[[2]string{row["case"], row["run"]}] = max(number(row["VB_flute_1"]), number(row["VB_flute_2"]), number(row["VB_flute_3"]))
	}); err != nil {
		return nil, err
	}
	if f, err = openCSV(filepath.Join(folder, "phm2010-features", "feature_vector.csv")); err != nil {
		return nil, err
	}
	columns := f.except("case", "run", "enable")
	t := table.New(columns)
	return t, f.each(func(row map[string]string) {
		add(t, "cutter "+row["case"], um[[2]string{row["case"], row["run"]}], numbers(row, columns))
	})
}

// readUniwear reads Uniwear's experiments: windows of 20 rows, about ten seconds, and of each of
// the three channels its mean, least and greatest value.
func readUniwear(folder string) (*table.Table, error) {
	f, err := openCSV(filepath.Join(folder, "uniwear", "uniwear_dev.csv"))
	if err != nil {
		return nil, err
	}
	const rows = 20
	channels := []string{"force_z", "vibration_x", "vibration_y"}
	var columns []string
	for _, c := range channels {
		columns = append(columns, c+".mean", c+".min", c+".max")
	}
	t := table.New(columns)
	var tool string
	var um float64
	var window [][]float32
	return t, f.each(func(row map[string]string) {
		if row["experiment_tag"] != tool {
			tool, um, window = row["experiment_tag"], 0, nil
		}
		um += 1000 * number(row["tool_wear"]) / rows
		if window = append(window, numbers(row, channels)); len(window) < rows {
			return
		}
		var x []float32
		for c := range channels {
			var mean float32
			values := make([]float32, rows)
			for i := range window {
				values[i] = window[i][c]
				mean += values[i] / rows
			}
			x = append(x, mean, slices.Min(values), slices.Max(values))
		}
		add(t, tool, um, x)
		um, window = 0, nil
	})
}

// file is a table of text.
type file struct {
	path   string
	header []string
	rows   [][]string
}

func openCSV(path string) (*file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := &file{path: path, header: header}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out.rows = append(out.rows, row)
	}
}

// except returns the names of the columns but for the given ones.
func (f *file) except(names ...string) []string {
	return slices.DeleteFunc(slices.Clone(f.header), func(s string) bool { return slices.Contains(names, s) })
}

// each calls visit with the cells of each row by column.
func (f *file) each(visit func(row map[string]string)) error {
	row := make(map[string]string, len(f.header))
	for _, cells := range f.rows {
		for c, name := range f.header {
			row[name] = cells[c]
		}
		visit(row)
	}
	return nil
}

// number reads a cell; NaN is one that is empty or not a number.
func number(cell string) float64 {
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

func numbers(row map[string]string, columns []string) []float32 {
	x := make([]float32, len(columns))
	for i, c := range columns {
		x[i] = float32(number(row[c]))
	}
	return x
}
