// Package golden holds what a test got to a file in its testdata folder. Tests
// only. `go test ./that/package -update` writes the files again; the change then
// shows in the diff.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// home is the folder of the package under test, wherever a test goes later.
var home, _ = os.Getwd()

var update = flag.Bool("update", false, "write the golden files again")

// Update reports whether golden files are to be written, for tests that
// compare by more than bytes.
func Update() bool { return *update }

// Check compares got with testdata/name of the package under test.
func Check[T string | []byte](t testing.TB, name string, got T) {
	t.Helper()
	path := filepath.Join(home, "testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("testdata/%s differs; if that is meant, -update writes it again. Got:\n%s", name, string(got))
	}
}
