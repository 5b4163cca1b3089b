package table

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// Any part of the rows reads back as it was appended, and nothing is left of the
// file.
func TestRowFile(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		cols := rapid.IntRange(1, 9).Draw(t, "columns")
		data := rapid.SliceOfN(rapid.Float32(), cols, 40*cols).Draw(t, "values")
		rows := len(data) / cols
		f, err := NewRowFile(dir, cols)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for i := range rows {
			if err := f.Append(data[i*cols : (i+1)*cols]); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Flush(); err != nil {
			t.Fatal(err)
		}
		if r, c := f.Shape(); r != rows || c != cols {
			t.Fatalf("%d×%d, want %d×%d", r, c, rows, cols)
		}
		from := rapid.IntRange(0, rows-1).Draw(t, "from")
		got := make([]float32, cols*rapid.IntRange(1, rows-from).Draw(t, "n"))
		if err := f.ReadRows(got, from); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != data[from*cols+i] {
				t.Fatalf("value %d of row %d: %v, want %v", i%cols, from+i/cols, v, data[from*cols+i])
			}
		}
		if err := f.ReadRows(make([]float32, cols), rows); err == nil {
			t.Fatal("a row beyond the last is read")
		}
	})
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if _, err := NewRowFile(filepath.Join(dir, "absent"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
