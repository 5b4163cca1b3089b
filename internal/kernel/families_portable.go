//go:build !amd64 || noasm

package kernel

// families returns the families that this processor can run, the best first.
func families() []*family { return []*family{&portable} }
