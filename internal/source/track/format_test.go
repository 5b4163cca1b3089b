package track

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A packed recording is read whole from a temporary file, of which nothing is left: not after it is closed, and not
// when it is refused.
func TestPacked(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	path := filepath.Join(t.TempDir(), "a.bin.gz")
	in, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(in)
	io.WriteString(w, "samples")
	w.Close()
	in.Close()

	var got string
	refuse := errors.New("refused")
	format := func(err error) Format {
		return Format{Name: "bin", New: func(in io.ReaderAt, size int64, name string) (Contents, error) {
			b, _ := io.ReadAll(io.NewSectionReader(in, 0, size))
			got = string(b)
			return &listed{}, err
		}}
	}
	f, err := format(nil).Open(path)
	if err != nil || got != "samples" || strings.Join(f.Notes(), "; ") != "unpacked from gzip" {
		t.Fatalf("%q, %v, notes %q", got, err, f.Notes())
	}
	f.Close()
	if _, err := format(refuse).Open(path); err != refuse {
		t.Error(err)
	}
	most := mostUnpacked
	defer func() { mostUnpacked = most }()
	mostUnpacked = 6
	if _, err := format(nil).Open(path); err == nil || !strings.Contains(err.Error(), "it unpacks to more than 0 MiB: unpack it by hand") {
		t.Error(err)
	}
	mostUnpacked = 7
	if _, err := format(refuse).Open(path); err != refuse {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "absent"))
	t.Setenv("TMP", filepath.Join(dir, "absent"))
	if _, err := format(nil).Open(path); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Error(err)
	}
}

type listed struct{ Listing }

func (*listed) Open([]int) (Reader, error) { return nil, io.EOF }
