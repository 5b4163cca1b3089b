// Package recorded finds recordings for tests.
package recorded

import (
	"os"
	"strings"
	"testing"
)

// Folder returns the folder of recordings that FLANK_DATA names, and skips the test without it. The test's name begins
// with TestRecorded, so that `make recordings` finds it.
func Folder(t testing.TB) string {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestRecorded") && !strings.HasPrefix(t.Name(), "Benchmark") {
		t.Fatalf("%s reads recordings: name it TestRecorded...", t.Name())
	}
	dir := os.Getenv("FLANK_DATA")
	if dir == "" {
		t.Skip("set FLANK_DATA to the folder of recordings to run this test")
	}
	return dir
}
