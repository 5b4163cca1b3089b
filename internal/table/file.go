package table

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Formats are the endings of the files that Load and Save know.
var Formats = []string{".csv", ".parquet", ".arrow"}

// Load reads the table in the file at path, whose ending says which of Formats
// it has; .feather is another ending of .arrow.
func Load(path string) (*Table, error) { return (*Ignore)(nil).Load(path) }

// Load is the function of that name, without the columns that g names.
func (g *Ignore) Load(path string) (*Table, error) {
	return gather(func(s sink) error { return scan(path, g, s) })
}

// Scan reads the table in the file at path without holding it: it calls begin
// with the names of the features, and then each with every row. The features and details of
// a row are valid until the next one. Scan returns the errors of Load, or what begin
// or each returned.
// Of an Arrow file one record batch is held.
func Scan(path string, begin func(columns []string) error, each func(Row) error) error {
	return (*Ignore)(nil).Scan(path, begin, each)
}

// Scan is the function of that name, without the columns that g names.
func (g *Ignore) Scan(path string, begin func(columns []string) error, each func(Row) error) error {
	return scan(path, g, sink{begin, each})
}

// sink takes what is read.
type sink struct {
	begin func(columns []string) error
	row   func(Row) error
}

// gather returns the table of all that is read.
func gather(scan func(sink) error) (t *Table, err error) {
	err = scan(sink{
		func(columns []string) error { t = New(columns); return nil },
		func(r Row) error { t.Append(r); return nil },
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func scan(path string, ignore *Ignore, to sink) error {
	ext, err := FormatOf(path)
	if err != nil {
		return err
	}
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("table: %w", err)
	}
	switch ext {
	case ".parquet":
		return scanParquet(f, info.Size(), path, ignore, to)
	case ".arrow":
		return scanArrow(f, info.Size(), path, ignore, to)
	}
	return scanCSV(f, path, ignore, to)
}

func open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("table: %w: check the path", err)
	}
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	return f, nil
}

// Save writes the table to the file at path in the format that its ending says,
// see Load. The file appears whole or not at all.
func (t *Table) Save(path string) error { return t.head().Save(path, t.each) }

// each calls visit with every row.
func (t *Table) each(visit func(Row) error) error {
	for i := range t.Rows() {
		if err := visit(t.Row(i)); err != nil {
			return err
		}
	}
	return nil
}

// head returns what is known of the table before its rows.
func (t *Table) head() Head {
	named := slices.ContainsFunc(t.Label, func(s string) bool { return s != "" })
	return Head{Columns: t.Columns, Detailed: t.Details != nil, Named: named}
}

// FormatOf returns which of Formats the file at path has by its ending.
func FormatOf(path string) (string, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv", ".parquet", ".arrow":
		return ext, nil
	case ".feather":
		return ".arrow", nil
	}
	return "", fmt.Errorf("table: %s: the ending says no format: name the file %s", path, strings.Join(Formats, ", "))
}
