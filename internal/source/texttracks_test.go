package source

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/flank-tcm/flank/pkg/signal"
)

// What is found of a file says all that a layout needs: read with it, the file has the
// same dialect.
func TestWritten(t *testing.T) {
	for text, want := range map[string]signal.Recording{
		"a,b\n1,2\n3,4\n":       {},
		"a;b\n1,5;2,5\n3,5;4\n": {Separator: "semicolon", Decimal: "comma"},
		"1 2 3\n4 5 6\n":        {Header: "none", Separator: "blank"},
		"a\tb\nN\tN\n1\t2\n":    {Header: "2", Separator: "tab"},
	} {
		path := filepath.Join(t.TempDir(), "f.dat")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenTracks(path, signal.Recording{})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.(*textFile).Written(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
		f.Close()
	}
}
