package unknown

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/classify"
)

// mostKept bounds what a calibration keeps: of more different numbers so many that
// a share of them is never smaller than of all, and larger by 2/mostKept at most.
const mostKept = 9_999

// toolShares is a distribution in which every tool weighs the same, however many
// numbers it has: the mean over K tools of the share of the tool's numbers that are v
// or less,
//
//	F(v) = (1/K) Σ_t #{i of tool t: x_i ≤ v} / n_t.
//
// It must not be changed once made.
//
// Source: R. Dunn, L. Wasserman, A. Ramdas, "Distribution-Free Prediction Sets for
// Two-Layer Hierarchical Models", J. Am. Stat. Assoc. 118, 2023 (pooling of CDFs).
type toolShares struct {
	tools int       // K
	at    []float64 // ascending, each once
	share []float64 // F(at[i]), in (0, 1], never falling; the last is 1
}

// newToolShares returns the distribution of x, of which value i is of tool number[i], below
// tools. Tools without values do not count. It keeps neither slice. There must be a value.
func newToolShares(x []float64, number []int32, tools int) toolShares {
	of, seen := make([]int, tools), make([]int, tools)
	order := make([]int32, len(x))
	present := 0
	for i, t := range number {
		if of[t] == 0 {
			present++
		}
		of[t]++
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(x[a], x[b]) })
	k := float64(present)
	now := func() float64 { // in the order of the tools, so that twice the numbers of one tool give the same bits
		var sum float64
		for t, n := range seen {
			if n > 0 {
				sum += float64(n) / float64(of[t])
			}
		}
		return sum / k
	}
	different := 0
	for n, i := range order {
		if n == 0 || x[i] != x[order[n-1]] {
			different++
		}
	}
	room := 0.0 // what numbers that are not kept may add to the share of the one before
	if different > mostKept {
		room = 2. / mostKept
	}
	s := toolShares{tools: present}
	added := 0.0 // since the last number kept, with it
	for n := 0; n < len(order); {
		m, step := n, 0.0
		for ; m < len(order) && x[order[m]] == x[order[n]]; m++ {
			step += 1 / (float64(of[number[order[m]]]) * k)
		}
		if added += step; n == 0 || added > room {
			if n > 0 {
				s.share = append(s.share, now())
			}
			s.at, added = append(s.at, x[order[n]]), step
		}
		for ; n < m; n++ {
			seen[number[order[n]]]++
		}
	}
	s.share = append(s.share, 1)
	return s
}

// upTo returns F(v).
func (s *toolShares) upTo(v float64) float64 {
	if n := atMost(s.at, v); n > 0 {
		return s.share[n-1]
	}
	return 0
}

// atMost returns how many values of ascending x are v or less.
func atMost(x []float64, v float64) int {
	return sort.Search(len(x), func(i int) bool { return !(x[i] <= v) })
}

// sound reports whether s is such a distribution of numbers from low to high.
func (s *toolShares) sound(low, high float64) bool {
	n := len(s.at)
	if s.tools < 1 || n == 0 || len(s.share) != n || !(s.at[0] >= low && s.at[n-1] <= high && s.share[0] > 0 && s.share[n-1] == 1) {
		return false
	}
	for i := 1; i < n; i++ {
		if !(s.at[i] > s.at[i-1] && s.share[i] >= s.share[i-1]) {
			return false
		}
	}
	return true
}

// The binary form of toolShares, all numbers little-endian:
//
//	bytes  content
//	4      number of tools
//	4+8·n  number of values and the values, float64, ascending
//	4+8·n  n and the share up to each, float64

func appendToolShares(b []byte, s toolShares) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(s.tools))
	return kernel.AppendFloats(kernel.AppendFloats(b, s.at), s.share)
}

func readToolShares(r *kernel.Reader) toolShares {
	return toolShares{tools: int(r.Uint32()), at: r.Floats(), share: r.Floats()}
}

// readVersion reads magic and a version. It reports a version that this program does not read, also the first one, which
// had no magic.
func readVersion(r *kernel.Reader, magic string, want uint32) error {
	if !bytes.HasPrefix(r.Rest, []byte(magic)) {
		return fmt.Errorf("unknown: %w: it does not start with %s, as version 1 did not, this program reads %d: train the model again", classify.ErrCorrupt, magic, want)
	}
	r.Bytes(len(magic))
	if v := r.Uint32(); v != want {
		return fmt.Errorf("unknown: %w: %s of version %d, this program reads %d: use the Flank release that made it", classify.ErrCorrupt, magic, v, want)
	}
	return nil
}
