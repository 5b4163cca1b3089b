package simulation

import (
	"testing"
)

const windows = 60

// Seeds hold; `make simulate` runs as many as one likes.
func TestSeeds(t *testing.T) {
	models := NewModels(t)
	n := uint64(150)
	if testing.Short() {
		n = 30
	}
	for seed := range n {
		if s := Run(seed, Settings{Windows: windows}, models); s.Wrong != "" {
			t.Fatalf("%s\nreplay it with `make simulate SEED=%d`", Shrink(seed, Settings{Windows: windows}, models), seed)
		}
	}
}

// A run is the same whenever it is run.
func TestEqualSeeds(t *testing.T) {
	models := NewModels(t)
	for seed := range uint64(5) {
		a, b := Run(seed, Settings{Windows: windows, Trace: true}, models), Run(seed, Settings{Windows: windows, Trace: true}, models)
		if a.String() != b.String() || a.Steps != b.Steps {
			t.Fatalf("seed %d differs from itself", seed)
		}
	}
}

// Every bug of the pipeline is found: a check that cannot fail proves nothing.
func TestBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes many seeds")
	}
	models := NewModels(t)
	for _, bug := range Bugs {
		t.Run(string(bug), func(t *testing.T) {
			for seed := range uint64(2000) {
				if Run(seed, Settings{Windows: windows, Bug: bug}, models).Wrong != "" {
					t.Logf("found by seed %d", seed)
					return
				}
			}
			t.Error("2000 seeds did not find it")
		})
	}
}
