package dbn

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// biasedNetwork is a random network whose biases are not 0.
func biasedNetwork(rng *rand.Rand, widths ...int) *Network {
	n := &Network{layers: randomLayers(widths[0], widths[1:], rng)}
	for _, l := range n.layers {
		for j := range l.bias {
			l.bias[j] = float32(rng.NormFloat64())
		}
	}
	return n
}

// A joint network says what its definition says, also where parts share inputs.
func TestJoinIsTheWeightedProductOfPosteriors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		inputs, classes := rapid.IntRange(1, 6).Draw(t, "inputs"), rapid.IntRange(2, 4).Draw(t, "classes")
		depth := rapid.IntRange(1, 3).Draw(t, "hidden layers")
		parts := make([]Part, rapid.IntRange(1, 3).Draw(t, "parts"))
		for p := range parts {
			from := rng.Perm(inputs)[:1+rng.IntN(inputs)]
			widths := []int{len(from)}
			for range depth {
				widths = append(widths, 1+rng.IntN(5))
			}
			parts[p] = Part{biasedNetwork(rng, append(widths, classes)...), from, 2*rng.Float64() - 0.5}
		}
		joint := Join(inputs, parts...)
		row := make([]float32, inputs)
		for i := range row {
			row[i] = float32(rng.NormFloat64())
		}
		logs := make([]float64, classes)
		for _, p := range parts {
			own := make([]float32, len(p.Inputs))
			for i, from := range p.Inputs {
				own[i] = row[from]
			}
			for j, v := range p.Network.NewScorer().Posterior(own) {
				logs[j] += p.Share * math.Log(float64(v))
			}
		}
		var sum float64
		for _, v := range logs {
			sum += math.Exp(v)
		}
		for j, got := range joint.NewScorer().Posterior(row) {
			if want := math.Exp(logs[j]) / sum; math.Abs(float64(got)-want) > 1e-5 {
				t.Errorf("class %d: %v, want %v", j, got, want)
			}
		}
	})
}

func TestJoinPanicsOnPartsThatDoNotFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	net := func(widths ...int) *Network { return biasedNetwork(rng, widths...) }
	for name, parts := range map[string][]Part{
		"none":                         nil,
		"another depth":                {{net(1, 2, 2), []int{0}, 1}, {net(1, 2, 2, 2), []int{0}, 1}},
		"other classes":                {{net(1, 2, 2), []int{0}, 1}, {net(1, 2, 3), []int{0}, 1}},
		"too few inputs":               {{net(2, 2, 2), []int{0}, 1}},
		"an input out of range":        {{net(1, 2, 2), []int{2}, 1}},
		"a share that is not a number": {{net(1, 2, 2), []int{0}, math.NaN()}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			Join(2, parts...)
		})
	}
}
