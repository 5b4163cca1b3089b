//go:build unix

package main

import "fmt"

// shape is a product to be timed, with the group of goals that it belongs to.
type shape struct {
	op      string
	m, n, k int
	wide    bool // a layer of 500 to 1024 units rather than of an RBM on features
	what    string
}

var shapes = []shape{
	{"nn", 100, 50, 196, false, "hidden units of a batch of 100"},
	{"nt", 100, 196, 50, false, "reconstruction"},
	{"tn", 196, 50, 200, false, "gradient"},
	{"nn", 128, 50, 196, false, ""},
	{"nn", 1024, 50, 196, false, ""},
	{"nn", 4096, 50, 196, false, ""},
	{"nn", 128, 200, 196, false, ""},
	{"nt", 128, 196, 200, false, ""},
	{"tn", 196, 200, 256, false, ""},
	{"nn", 1024, 200, 196, false, ""},
	{"nn", 4096, 200, 196, false, ""},
	{"nn", 128, 500, 500, true, ""},
	{"nt", 128, 500, 500, true, ""},
	{"tn", 500, 500, 256, true, ""},
	{"nn", 1024, 500, 500, true, ""},
	{"nn", 4096, 500, 500, true, ""},
	{"nn", 1024, 1024, 1024, true, ""},
}

func (s shape) String() string { return fmt.Sprintf("%s %d×%d×%d", s.op, s.m, s.k, s.n) }

// request asks for the given number of trials of at least so many
// floating-point operations each.
func (s shape) request(name string, operations float64, trials int) string {
	return fmt.Sprintf("%s %s %d %d %d %d %d", name, s.op, s.m, s.n, s.k, s.repetitions(operations), trials)
}

func (s shape) repetitions(operations float64) int { return max(1, int(operations/s.operations())) }

func (s shape) operations() float64 { return 2 * float64(s.m) * float64(s.n) * float64(s.k) }
