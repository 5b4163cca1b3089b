package table

import (
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Cells of a dictionary are null where the row is, and where the word is.
func TestCellsOfArrowDictionary(t *testing.T) {
	b := array.NewDictionaryBuilder(memory.DefaultAllocator, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}).(*array.BinaryDictionaryBuilder)
	for _, s := range []string{"T1", "T2", "T1"} {
		if err := b.AppendString(s); err != nil {
			t.Fatal(err)
		}
	}
	b.AppendNull()
	c, ok := CellsOfArrow(b.NewArray())
	if !ok || c.Kind != KindText {
		t.Fatalf("kind %v, %v", c.Kind, ok)
	}
	for row, want := range []string{"T1", "T2", "T1"} {
		if c.Null(row) || c.Text(row) != want {
			t.Errorf("row %d: %q", row, c.Text(row))
		}
	}
	if !c.Null(3) {
		t.Error("row 3 is not null")
	}
}

func TestCellsOfArrowNull(t *testing.T) {
	c, ok := CellsOfArrow(array.NewNull(2))
	if !ok || c.Kind != KindNumber || !c.Null(0) || !c.Null(1) {
		t.Errorf("a column without values: %v, %v", c.Kind, ok)
	}
}

// Times before 1970 are not rounded towards it.
func TestCellTime(t *testing.T) {
	at := time.Date(1850, 3, 1, 12, 0, 0, 5000, time.UTC)
	c := CellReader[int]{Kind: KindTime, Ticks: func(int) int64 { return at.UnixMicro() }, Unit: time.Microsecond}
	if !c.Time(0).Equal(at) || c.Seconds(0) != float64(at.UnixMicro())/1e6 {
		t.Errorf("%v, %v s", c.Time(0), c.Seconds(0))
	}
}
