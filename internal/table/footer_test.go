package table

import (
	"encoding/binary"
	"strings"
	"testing"
)

// ends is a file of zeros with a tail.
type ends struct {
	size int64
	tail []byte
}

func (f ends) ReadAt(p []byte, at int64) (int, error) {
	clear(p)
	if from := f.size - int64(len(f.tail)); at == from {
		return copy(p, f.tail), nil
	}
	return len(p), nil
}

// A footer that is too long for us, in a file that holds it, is called that, and the error names the remedy.
func TestLongFooter(t *testing.T) {
	const long = 100 << 20
	length := binary.LittleEndian.AppendUint32(nil, long)
	parquet := ends{1 << 30, append(length, "PAR1"...)}
	if _, err := OpenParquet(parquet, parquet.size); err == nil || !strings.Contains(err.Error(), "at most 33554432 are read: write fewer columns or larger groups of rows") {
		t.Errorf("Parquet: %v", err)
	}
	parquet.size = 1000
	if _, err := OpenParquet(parquet, parquet.size); err == nil || !strings.Contains(err.Error(), "bytes, the file 1000") {
		t.Errorf("cut off: %v", err)
	}
}
