package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/window"
)

// Head is what is known of a table before its rows.
type Head struct {
	Columns  []string // names of the features, each different
	Detailed bool     // rows have details
	Named    bool     // classes have names

	// Meta, if not empty, is JSON that goes with the table: in the metadata of a Parquet or
	// an Arrow file, under the key "flank", and next to a CSV file, see MetaPath.
	Meta string
}

// metaKey is the key of Head.Meta in Parquet and Arrow files.
const metaKey = "flank"

// maxMeta is the longest Head.Meta that is read next to a CSV file.
const maxMeta = 64 << 20

// MetaPath returns the path of the file that has the Head.Meta of a CSV file.
func MetaPath(path string) string { return path + ".flank.json" }

// columns returns all columns in the order in which they are written: names as text, start as a timestamp in nanoseconds, class as a
// whole number, or as text if any class has a name, wear and numbers of details as numbers of 64 bits and features of 32.
func (h Head) columns() (all []SheetColumn) {
	class := sheetInt32
	if h.Named {
		class = SheetText
	}
	for f, kind := range []SheetKind{factStart: SheetTime, factClass: class, factVBMax: SheetNumber} { // others are text
		all = append(all, SheetColumn{Name: facts[f], Kind: kind})
	}
	if h.Detailed {
		for _, d := range details {
			all = append(all, SheetColumn{Name: d.name, Kind: d.kind()})
		}
	}
	for _, name := range h.Columns {
		all = append(all, SheetColumn{Name: name, Kind: SheetSingle})
	}
	return all
}

// Save writes the rows that each visits to the file at path, in the format that its ending
// says, see Load. The file appears whole or not at all. Rows are not held. Save returns an error if
// two columns have one name, if a feature has the name of a column that is none, or if a number is infinite.
func (h Head) Save(path string, each func(visit func(Row) error) error) error {
	ext, err := FormatOf(path)
	if err != nil {
		return err
	}
	err = config.WriteFileTo(path, func(w io.Writer) error { return h.write(w, ext, each) })
	if err == nil && ext == ".csv" && h.Meta != "" {
		var text bytes.Buffer
		if err = json.Indent(&text, []byte(h.Meta), "", "  "); err == nil {
			err = config.WriteFile(MetaPath(path), append(text.Bytes(), '\n'))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// rowWriter writes rows in one format.
type rowWriter interface {
	write(facts []value, features []float32) error // a row
	close() error
}

// write writes all rows to w in a format.
func (h Head) write(w io.Writer, ext string, each func(visit func(Row) error) error) error {
	if err := writable(h.Columns); err != nil {
		return err
	}
	var out rowWriter
	columns := h.columns()
	switch ext {
	case ".parquet":
		out = &parquetWriter{out: NewSheetWriter(w, "table", columns), columns: columns, meta: h.Meta}
	case ".arrow":
		a, err := newArrowWriter(w, columns, h.Meta)
		if err != nil {
			return fmt.Errorf("table: write: %w", err)
		}
		out = a
	default:
		out = newCSVWriter(w, columns)
	}
	i := 0
	var facts []value
	err := each(func(r Row) error {
		if h.Detailed != (r.Details != nil) {
			panic("table: write: a row has details, and others do not")
		}
		facts = r.facts(facts[:0], h.Named || ext == ".csv")
		err := r.writable(i, facts, columns)
		if at := r.Start; err == nil && ext != ".csv" && !at.IsZero() && !time.Unix(0, at.UnixNano()).Equal(at) {
			err = fmt.Errorf("row %d: start %v is outside the years 1678 to 2261, which this format can hold: write CSV", i+1, at)
		}
		if err == nil {
			err = out.write(facts, r.Features)
		}
		if err != nil {
			return fmt.Errorf("table: write: %w", err)
		}
		i++
		return nil
	})
	if err != nil {
		_ = out.close() // what it has written is thrown away
		return err
	}
	if err := out.close(); err != nil {
		return fmt.Errorf("table: write: %w", err)
	}
	return nil
}

// Meta returns the Head.Meta of the table in the file at path; empty if it has none.
func Meta(path string) (text string, err error) {
	ext, err := FormatOf(path)
	if err != nil {
		return "", err
	}
	if ext == ".csv" {
		return csvMeta(path)
	}
	f, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("table: %w", err)
	}
	defer func() { // the libraries panic at damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("table: %s: the file is damaged: %v: write the table again", path, r)
		}
	}()
	if ext == ".parquet" {
		text, err = parquetMeta(f, info.Size())
	} else {
		text, err = arrowMeta(f, info.Size())
	}
	if err != nil {
		return "", fmt.Errorf("table: %s: is damaged, or not of the format that its ending says: %w: write the table again", path, err)
	}
	return text, nil
}

func csvMeta(path string) (string, error) {
	f, err := os.Open(MetaPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("table: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMeta))
	if err != nil {
		return "", fmt.Errorf("table: %w", err)
	}
	return string(text), nil
}

func parquetMeta(in io.ReaderAt, size int64) (string, error) {
	f, err := OpenParquet(in, size)
	if err != nil {
		return "", err
	}
	text, _ := f.Lookup(metaKey)
	return text, nil
}

func arrowMeta(in io.ReaderAt, size int64) (string, error) {
	f, err := window.OpenArrow(in, size)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it only drops what it holds
	meta := f.Schema().Metadata()
	if i := meta.FindKey(metaKey); i >= 0 {
		return meta.Values()[i], nil
	}
	return "", nil
}
