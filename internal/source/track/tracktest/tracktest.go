// Package tracktest has what the tests of all formats need.
package tracktest

import (
	"io"
	"os"
	"testing"

	"github.com/flank-tcm/flank/internal/source/track"
)

// Read returns all numbers of a track, and the error that ended it if it was not
// the end.
func Read(f track.Contents, i int) (x []float64, err error) {
	r, err := f.Open([]int{i})
	if err != nil {
		return nil, err
	}
	for {
		v, n, err := r.Read(1000)
		if err == io.EOF {
			return x, nil
		}
		if err != nil {
			return x, err
		}
		x = append(x, v[0].Numbers[:n]...)
	}
}

// Count returns how many values the tracks have until they end.
func Count(t *testing.T, f track.Contents, tracks ...int) (n int) {
	r, err := f.Open(tracks)
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, m, err := r.Read(4096)
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
}

// FixtureFolder returns where make peers-formats wants the fixtures of a test. It
// skips the test when another command runs it.
func FixtureFolder(t *testing.T) string {
	dir := os.Getenv("FLANK_PEERS")
	if dir == "" {
		t.Skip("set FLANK_PEERS to a folder for the fixtures; make peers-formats does")
	}
	return dir
}
