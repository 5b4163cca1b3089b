package window

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// longFile begins as an Arrow file does and has zeros up to its tail.
type longFile struct {
	size int64
	tail []byte
}

func (f longFile) ReadAt(p []byte, at int64) (int, error) {
	switch at {
	case 0:
		return copy(p, "ARROW1\x00\x00\x00\x00"), nil
	case f.size - int64(len(f.tail)):
		return copy(p, f.tail), nil
	}
	clear(p)
	return len(p), nil
}

// A footer that is too long for us, in a file that holds it, is called that, and the error names the remedy.
func TestLongFooter(t *testing.T) {
	f := longFile{1 << 30, append(binary.LittleEndian.AppendUint32(nil, 100<<20), "ARROW1"...)}
	for name, tc := range map[string]struct {
		size int64
		want string
	}{
		"long":    {1 << 30, "at most 67108864 are read: write fewer columns or larger record batches"},
		"cut off": {1000, "bytes, the file 1000"},
	} {
		f.size = tc.size
		if _, err := OpenArrow(f, f.size); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenWindows(bytes.NewReader(nil), 0); err == nil || !strings.Contains(err.Error(), "begin and end with ARROW1") {
		t.Errorf("nothing: %v", err)
	}
}
