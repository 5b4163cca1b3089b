package kernel

import "testing"

// families are all that this machine can run, the portable one first.
func families() []*family { return []*family{&portable} }

// eachFamily runs a test once for every family, in use while it runs.
func eachFamily(t *testing.T, test func(t *testing.T)) {
	defer func(f *family) { active = f }(active)
	for _, f := range families() {
		active = f
		t.Run(f.name, test)
	}
}

func eachFamilyBench(b *testing.B, bench func(b *testing.B)) {
	defer func(f *family) { active = f }(active)
	for _, f := range families() {
		active = f
		b.Run(f.name, bench)
	}
}
