package classify

import (
	"fmt"
	"math"

	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// memberReport is one network of a [Committee], as its Report names it.
type memberReport struct {
	Encoding    Encoding `json:"encoding"`
	Temperature float64  `json:"temperature"` // at which its posteriors held out have the least cross-entropy
	Share       float64  `json:"share"`       // of its log posteriors, at that temperature, in the joint ones; all sum to 1
}

// member is a network and its encoder, fitted to the same rows.
type member struct {
	encoder *Encoder
	network *dbn.Network
	history *dbn.History
	weights *Weights
	columns *score.Columns // nil where columns are not weighed
}

// join returns the classifier of the members, still without costs, and the joint
// posteriors of held-out rows of classes y, from the posteriors of each member.
// Without any, or uncalibrated, all members count alike. A member alone stays as it is.
func join(all []member, held [][]float64, y []int, k int, uncalibrated bool, r *Report) (*Classifier, []float64) {
	if len(all) == 1 {
		return &Classifier{encoder: all[0].encoder, network: all[0].network}, held[0]
	}
	r.Members = make([]memberReport, len(all))
	logs := make([][]float64, len(all))
	for m := range all {
		member := &r.Members[m]
		*member = memberReport{Encoding: all[m].encoder.encoding, Temperature: 1, Share: 1 / float64(len(all))}
		if held[m] != nil && !uncalibrated {
			member.Temperature = Temperature(held[m], y, k)
		}
		logs[m] = make([]float64, len(held[m]))
		for i, p := range held[m] {
			logs[m][i] = max(math.Log(p), leastLog) / member.Temperature
		}
	}
	if held[0] != nil && !uncalibrated {
		for m, share := range shares(logs, y, k) {
			r.Members[m].Share = share
		}
	}

	var parts []dbn.Part
	var encoders []*Encoder
	inputs := 0
	for m, member := range r.Members {
		if member.Share == 0 {
			continue
		}
		p := dbn.Part{Network: all[m].network, Share: member.Share / member.Temperature}
		for range all[m].encoder.inputs {
			p.Inputs = append(p.Inputs, inputs)
			inputs++
		}
		parts, encoders = append(parts, p), append(encoders, all[m].encoder)
	}
	c := &Classifier{network: dbn.Join(inputs, parts...), encoder: encoders[0]}
	if len(encoders) > 1 {
		c.encoder = committeeOf(encoders)
	}
	if held[0] == nil {
		return c, nil
	}
	return c, pool(logs, r.Members, k)
}

// pool returns the joint posteriors, N×K, of the members whose log posteriors are
// given: their weighted products, normalised.
func pool(logs [][]float64, all []memberReport, k int) []float64 {
	joint := make([]float64, len(logs[0]))
	for m, member := range all {
		for i, v := range logs[m] {
			joint[i] += member.Share * v
		}
	}
	for row := joint; len(row) > 0; row = row[k:] {
		norm := logSum(row[:k])
		for j, v := range row[:k] {
			row[j] = math.Exp(v - norm)
		}
	}
	return joint
}

// shares returns the shares, multiples of 1/shareSteps that sum to 1, with which
// the joint posteriors of rows of classes y have the least mean cross-entropy.
// Of equals it takes those that come last to the first members.
func shares(logs [][]float64, y []int, k int) []float64 {
	if len(logs[0]) != len(y)*k {
		panic(fmt.Sprintf("classify: shares of %d posteriors and %d labels of %d classes", len(logs[0]), len(y), k))
	}
	var best []float64
	least := math.Inf(1)
	z := make([]float64, k)
	eachShare(len(logs), shareSteps, nil, func(steps []int) {
		var loss float64
		for n, label := range y {
			clear(z)
			for m, s := range steps {
				for j := range z {
					z[j] += float64(s) / shareSteps * logs[m][n*k+j]
				}
			}
			loss += logSum(z) - z[label]
		}
		if loss < least {
			least, best = loss, make([]float64, len(steps))
			for m, s := range steps {
				best[m] = float64(s) / shareSteps
			}
		}
	})
	return best
}

// eachShare calls visit with every way to give the given number of steps to n
// members after those in given.
func eachShare(n, steps int, given []int, visit func(steps []int)) {
	if n == 1 {
		visit(append(given, steps))
		return
	}
	for s := range steps + 1 {
		eachShare(n-1, steps-s, append(given, s), visit)
	}
}

// logSum returns ln Σ_j exp(z_j).
func logSum(z []float64) float64 {
	top := math.Inf(-1)
	for _, v := range z {
		top = max(top, v)
	}
	var sum float64
	for _, v := range z {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}
