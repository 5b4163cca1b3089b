package export

import (
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
)

// guardInputs are the inputs of all experts, one after the other.
type guardInputs struct {
	a, b, sensor, expert []int64 // b: −1 for none
	mean, sd, weight     []float64
}

func inputsOf(experts []vote.Expert) (in guardInputs) {
	for e, x := range experts {
		for _, i := range x.Inputs {
			in.a, in.b, in.sensor, in.expert = append(in.a, int64(i.A)), append(in.b, int64(i.B)), append(in.sensor, int64(i.Sensor)), append(in.expert, int64(e))
			in.mean, in.sd, in.weight = append(in.mean, i.Mean), append(in.sd, i.SD), append(in.weight, i.Weight)
		}
	}
	return in
}

// oneHot returns rows×columns doubles that are 1 where a row has its column.
func oneHot(of []int64, columns int) []float64 {
	m := make([]float64, len(of)*columns)
	for i, k := range of {
		m[i*columns+int(k)] = 1
	}
	return m
}

// guardGraph adds a guard to a graph.
type guardGraph struct {
	partGraph
	guard           *vote.Guard
	columns         int
	axis            string // 1
	half, zero, one string
}

// guard adds what bounds the network's posterior p, double N×2, and returns the bounded one: vote.Scorer.Judge
// and what classify makes of its margin.
func (g *graph) guard(c *classify.Classifier, p string) string {
	x := guardGraph{partGraph: partGraph{g, "guard."}, guard: c.Guard(), columns: c.Columns()}
	x.axis, x.half, x.zero, x.one = x.ints("axis", []int64{1}), x.number("half", 0.5), x.number("zero", 0), x.number("one", 1)
	failed := x.failed()
	odds, votes := x.experts(failed)
	median, count := x.median(odds, votes)

	// The network's margin within ± the bound of the vote's.
	_, score := x.score(c, p)
	score = x.op("Unsqueeze", "network.score", score, x.axis)
	margin := x.op("Sub", "network.margin", x.op("Log", "network.log", score), x.op("Log", "network.log1", x.op("Sub", "network.rest", x.one, score)))
	own := x.op("Sub", "margin.vote", median, x.number("cut", x.guard.Cut()))
	beyond := x.clip(x.op("Sub", "apart", margin, own), "beyond", x.guard.Bound())
	anyFailed := x.op("Greater", "failed.any", x.sum(failed, "failed.count"), x.half)
	margin = x.op("Add", "margin", own, x.op("Where", "beyond.sound", anyFailed, x.zero, beyond))

	// Its posterior, or the network's where all abstain.
	margin = x.op("Sub", "margin.shifted", margin, x.number("offset", c.Costs().Offset()))
	worn := x.op("Div", "worn.p", x.one, x.op("Add", "worn.1", x.one, x.op("Exp", "worn.exp", x.op("Neg", "worn.neg", margin))))
	healthy := x.op("Div", "healthy.p", x.one, x.op("Add", "healthy.1", x.one, x.op("Exp", "healthy.exp", margin)))
	bounded := x.node("Concat", []string{healthy, worn}, "posterior", attribute{"axis", 1})
	return x.op("Where", "bounded", x.op("Greater", "any", count, x.half), bounded, p)
}

func (g guardGraph) op(op, output string, inputs ...string) string { return g.node(op, inputs, output) }

func (g guardGraph) number(name string, x float64) string { return g.doubles(name, []float64{x}) }

func (g guardGraph) clip(x, output string, bound float64) string {
	return g.op("Clip", output, x, g.number(output+".least", -bound), g.number(output+".most", bound))
}

// sum adds the columns of x: double N×1.
func (g guardGraph) sum(x, output string) string {
	return g.node("ReduceSum", []string{x, g.axis}, output, attribute{"keepdims", 1})
}

func (g guardGraph) cast(x, output string, to int64) string {
	return g.node("Cast", []string{x}, output, attribute{"to", to})
}

// take adds the columns of x at some places.
func (g guardGraph) take(x, output string, at []int64) string {
	return g.node("Gather", []string{x, g.ints(output+".at", at)}, output, attribute{"axis", 1})
}

// failed adds which sensors have failed, since all that is watched of them is missing: double, 1 or 0, N×sensors.
func (g guardGraph) failed() string {
	watched := g.guard.Watched()
	share := make([]float64, g.columns*len(watched))
	for k, columns := range watched {
		for _, j := range columns {
			share[j*len(watched)+k] = 1 / float64(len(columns))
		}
	}
	missing := g.op("MatMul", "missing.share", g.cast("missing", "missing", onnxDouble), g.doubles("watched", share, g.columns, len(watched)))
	return g.cast(g.op("Greater", "failed", missing, g.number("nearly", 1-1e-9)), "failed.double", onnxDouble)
}

// experts adds the log odds of the experts, double N×experts, and whether each votes, bool.
func (g guardGraph) experts(failed string) (odds, votes string) {
	experts := g.guard.Experts()
	in := inputsOf(experts)
	n, e := len(in.a), len(experts)

	// Inputs, and whether they are there.
	second, both := make([]int64, n), make([]byte, n)
	for i, b := range in.b {
		if second[i] = in.a[i]; b >= 0 {
			second[i], both[i] = b, 1
		}
	}
	x := g.take("features.double", "first", in.a)
	less := g.op("Sub", "difference", x, g.take("features.double", "second", second))
	x = g.op("Where", "input", g.initializer(g.prefix+"both", onnxBool, both, n), less, x)
	there := g.op("And", "there", g.op("Not", "known", g.op("IsNaN", "unknown", x)), g.op("Less", "sound", g.take(failed, "failed.input", in.sensor), g.half))
	x = g.op("Div", "standard", g.op("Sub", "centred", x, g.doubles("mean", in.mean, n)), g.doubles("sd", in.sd, n))
	x = g.clip(x, "clipped", vote.ClipInput)
	x = g.op("Where", "part", there, g.op("Mul", "weighted.input", x, g.doubles("weight", in.weight, n)), g.zero)

	bias := make([]float64, e)
	for i, of := range experts {
		bias[i] = of.Bias
	}
	member := g.doubles("expert", oneHot(in.expert, e), n, e)
	odds = g.op("Add", "odds.whole", g.op("MatMul", "odds.sum", x, member), g.doubles("bias", bias, e))
	inputs := g.op("MatMul", "expert.inputs", g.cast(there, "there.double", onnxDouble), member)
	return g.clip(odds, "odds", vote.ClipOdds), g.op("Greater", "votes", inputs, g.half)
}

// median adds the median of the log odds of experts that vote, and how many these are: double N×1. Experts that
// abstain are sorted behind the others.
func (g guardGraph) median(odds, votes string) (median, count string) {
	voting := g.op("Where", "odds.voting", votes, odds, g.number("behind", 2*vote.ClipOdds))
	sorted := g.prefix + "sorted"
	g.nodes = append(g.nodes, topK(voting, g.ints("experts", []int64{int64(len(g.guard.Experts()))}), sorted, g.prefix+"order"))
	count = g.sum(g.cast(votes, "votes.double", onnxDouble), "count")
	at := func(name string, less float64) string {
		place := g.op("Floor", name+".floor", g.op("Mul", name+".half", g.op("Sub", name+".less", count, g.number(name+".by", less)), g.half))
		place = g.cast(g.op("Max", name+".from0", place, g.zero), name+".at", onnxInt64)
		return g.node("GatherElements", []string{sorted, place}, name, attribute{"axis", 1})
	}
	return g.op("Mul", "vote", g.op("Add", "vote.twice", at("low", 1), at("high", 0)), g.half), count
}

// topK is the operator that sorts the last axis, ascending.
func topK(x, k, values, order string) message {
	g := graph{}
	g.node("TopK", []string{x, k}, values, attribute{"axis", 1}, attribute{"largest", 0}, attribute{"sorted", 1})
	var n message
	n.string(2, order) // a second output
	return append(g.nodes[0], n...)
}

// guard adds the guard's numbers.
func (f *safetensors) guard(v *vote.Guard) {
	experts := v.Experts()
	in := inputsOf(experts)
	ints := func(name string, lists [][]int) {
		var all, count []int64
		for _, l := range lists {
			for _, k := range l {
				all = append(all, int64(k))
			}
			count = append(count, int64(len(l)))
		}
		f.int64s(name, all)
		f.int64s(name+"_count", count)
	}
	ints("guard.watched", v.Watched())
	var bias []float64
	var ratio []int64
	var sensors [][]int
	for _, x := range experts {
		r := int64(0)
		if x.Ratio {
			r = 1
		}
		bias, ratio, sensors = append(bias, x.Bias), append(ratio, r), append(sensors, x.Sensors)
	}
	ints("guard.expert.sensors", sensors)
	f.int64s("guard.expert.ratio", ratio)
	f.float64s("guard.expert.bias", bias, len(bias))
	f.int64s("guard.input.a", in.a)
	f.int64s("guard.input.b", in.b)
	f.int64s("guard.input.sensor", in.sensor)
	f.int64s("guard.input.expert", in.expert)
	f.float64s("guard.input.mean", in.mean, len(in.mean))
	f.float64s("guard.input.sd", in.sd, len(in.sd))
	f.float64s("guard.input.weight", in.weight, len(in.weight))
	f.float64s("guard.cut_and_bound", []float64{v.Cut(), v.Bound()}, 2)
}
