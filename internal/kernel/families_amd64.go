//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

//go:generate go run ./gen

// families returns the families that this processor can run, the best first.
func families() []*family {
	all := []*family{&portable}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append([]*family{&familyAVX2}, all...)
		if cpu.X86.HasAVX512F {
			all = append([]*family{&familyAVX512}, all...)
		}
	}
	return all
}
