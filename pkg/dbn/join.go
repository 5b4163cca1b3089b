package dbn

import "math"

// Part is a network that [Join] makes a part of a larger one.
type Part struct {
	Network *Network
	Inputs  []int   // of the larger network: where each input of this one comes from
	Share   float64 // what its log posteriors are multiplied by
}

// Join returns one network of the given number of inputs that says what all
// parts say together, a weighted product of their posteriors:
//
//	P(y=j|x) proportional to Π_p P_p(y=j|x_p)^share_p.
//
// It has the hidden units of all parts, with weights of 0 between units of different
// parts, and a softmax layer that adds up the shares of theirs. So code that scores,
// stores or exports a network does so with a committee too. It panics unless there is a part, all have as many layers and classes, every input
// of a part is one of the larger network's and shares are finite.
//
// Source: the logarithmic opinion pool, C. Genest and J. Zidek, "Combining
// Probability Distributions: A Critique and an Annotated Bibliography",
// Statistical Science 1, 1986, §3.2.
func Join(inputs int, parts ...Part) *Network {
	mustMatch(len(parts) > 0, "a network of no parts")
	first := parts[0].Network
	depth, classes := len(first.layers), first.Classes()
	widths := make([]int, depth)
	for _, p := range parts {
		mustMatch(len(p.Network.layers) == depth && p.Network.Classes() == classes, "networks of %v and %v", first.Layers(), p.Network.Layers())
		mustMatch(len(p.Inputs) == p.Network.Inputs(), "%d inputs for a network of %d", len(p.Inputs), p.Network.Inputs())
		mustMatch(!math.IsNaN(p.Share) && !math.IsInf(p.Share, 0), "a share of %v", p.Share)
		for l := range depth - 1 {
			widths[l] += p.Network.layers[l].weights.Cols
		}
	}
	widths[depth-1] = classes

	joint := &Network{layers: make([]layer, depth)}
	in := inputs
	for l, out := range widths {
		joint.layers[l] = newLayer(in, out)
		in = out
	}
	from := make([]int, depth) // the part's first unit in each layer
	for _, p := range parts {
		for l, part := range p.Network.layers {
			into, top := joint.layers[l], l == depth-1
			for i := range part.weights.Rows {
				row := p.row(l, i, inputs, from)
				for j, w := range part.weights.Row(i) {
					if top {
						into.weights.Row(row)[j] += float32(p.Share * float64(w))
					} else {
						into.weights.Row(row)[from[l]+j] += w
					}
				}
			}
			for j, b := range part.bias {
				if top {
					into.bias[j] += float32(p.Share * float64(b))
				} else {
					into.bias[from[l]+j] = b
				}
			}
		}
		for l := range depth - 1 {
			from[l] += p.Network.layers[l].weights.Cols
		}
	}
	return joint
}

// row returns the place of value i, which goes into layer l of the part, among the
// values that go into layer l of the joint network.
func (p *Part) row(l, i, inputs int, from []int) int {
	if l > 0 {
		return from[l-1] + i
	}
	mustMatch(p.Inputs[i] >= 0 && p.Inputs[i] < inputs, "input %d of %d", p.Inputs[i], inputs)
	return p.Inputs[i]
}
