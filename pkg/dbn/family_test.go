package dbn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/kernel"
)

// Networks trained by the kernels of any family give the same posteriors up to
// rounding. The family is chosen when a program starts, so each trains in a
// process of its own.
func TestFamiliesAgree(t *testing.T) {
	const child = "FLANK_TEST_FAMILY"
	if os.Getenv(child) != "" {
		if kernel.Err() != nil {
			fmt.Println("posteriors: none")
			return
		}
		x, y := exclusiveOr(120, rand.New(rand.NewPCG(18, 1)))
		n, _, err := Train(context.Background(), x, y, 2, Settings{
			Hidden: []int{9, 5}, Pretrain: PretrainSettings{Epochs: 5}, FineTune: FineTuneSettings{Epochs: 60, Rate: 0.03, Decay: -1}})
		if err != nil {
			t.Fatal(err)
		}
		p := NewMatrix(x.Rows, 2)
		n.PosteriorTo(p, x)
		fmt.Println("posteriors:", kernel.Family(), p.Data)
		return
	}
	posteriors := func(family string) []float64 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestFamiliesAgree$")
		cmd.Env = append(os.Environ(), child+"=1", "FLANK_KERNEL="+family)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", family, err, out)
		}
		_, rest, ok := strings.Cut(string(out), "posteriors: ")
		line, _, _ := strings.Cut(rest, "\n")
		if !ok {
			t.Fatalf("%s: no posteriors in %s", family, out)
		}
		if line == "none" {
			return nil
		}
		name, list, _ := strings.Cut(line, " ")
		if name != family {
			t.Fatalf("asked for the kernels of %s, got %s", family, name)
		}
		var p []float64
		for _, f := range strings.Fields(strings.Trim(list, "[]")) {
			var v float64
			if _, err := fmt.Sscan(f, &v); err != nil {
				t.Fatal(err)
			}
			p = append(p, v)
		}
		return p
	}
	want := posteriors("go")
	if len(want) != 240 {
		t.Fatalf("%d posteriors", len(want))
	}
	for _, family := range []string{"avx2", "avx512"} {
		got := posteriors(family)
		if got == nil {
			t.Logf("this processor has no %s", family)
			continue
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-3 {
				t.Fatalf("%s: posterior %d is %v, portable code says %v", family, i, got[i], want[i])
			}
		}
	}
}
