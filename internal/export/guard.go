package export

import (
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/vote"
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

// guard adds what bounds the network's posterior p, double N×2, and returns the bounded one: vote.Scorer.Judge
// and what classify makes of its margin.
func (g *graph) guard(c *classify.Classifier, p string) string {
	v := c.Guard()
	experts, watched := v.Experts(), v.Watched()
	in := inputsOf(experts)
	n, e, s := len(in.a), len(experts), len(watched)
	axis := g.initializer("guard.axis", onnxInt64, rawInts([]int64{1}), 1)
	number := func(name string, x float64) string { return g.doubles("guard."+name, []float64{x}) }
	half, zero, one := number("half", 0.5), number("zero", 0), number("one", 1)
	node := func(op, output string, inputs ...string) string { return g.node(op, inputs, "guard."+output) }
	sum := func(x, output string) string {
		return g.node("ReduceSum", []string{x, axis}, "guard."+output, attribute{"keepdims", 1})
	}
	double := func(x string) string {
		return g.node("Cast", []string{x}, x+".double", attribute{"to", onnxDouble})
	}
	take := func(x, name string, at []int64, output string) string {
		return g.node("Gather", []string{x, g.initializer("guard."+name, onnxInt64, rawInts(at), len(at))}, "guard."+output, attribute{"axis", 1})
	}

	// Sensors of which all that is watched is missing.
	share := make([]float64, c.Columns()*s)
	for k, columns := range watched {
		for _, j := range columns {
			share[j*s+k] = 1 / float64(len(columns))
		}
	}
	missing := g.node("Cast", []string{"missing"}, "guard.missing", attribute{"to", onnxDouble})
	failed := double(node("Greater", "failed", node("MatMul", "missing.share", missing, g.doubles("guard.watched", share, c.Columns(), s)), number("nearly", 1-1e-9)))

	// Inputs, and whether they are there.
	second, both := make([]int64, n), make([]byte, n)
	for i, b := range in.b {
		if second[i] = in.a[i]; b >= 0 {
			second[i], both[i] = b, 1
		}
	}
	x := take("features.double", "a", in.a, "first")
	less := node("Sub", "difference", x, take("features.double", "b", second, "second"))
	x = node("Where", "input", g.initializer("guard.both", onnxBool, both, n), less, x)
	there := node("And", "there", node("Not", "known", node("IsNaN", "unknown", x)), node("Less", "sound", take(failed, "sensor", in.sensor, "failed.input"), half))
	x = node("Div", "standard", node("Sub", "centred", x, g.doubles("guard.mean", in.mean, n)), g.doubles("guard.sd", in.sd, n))
	x = node("Clip", "clipped", x, number("least", -vote.ClipInput), number("most", vote.ClipInput))
	x = node("Where", "part", there, node("Mul", "weighted", x, g.doubles("guard.weight", in.weight, n)), zero)

	// Log odds of the experts, and who votes.
	bias, ratio := make([]float64, e), make([]float64, s*e)
	for i, of := range experts {
		bias[i] = of.Bias
		for _, k := range of.Sensors {
			if of.Ratio {
				ratio[k*e+i] = 1
			}
		}
	}
	member := g.doubles("guard.expert", oneHot(in.expert, e), n, e)
	odds := node("Add", "odds.whole", node("MatMul", "odds.sum", x, member), g.doubles("guard.bias", bias, e))
	odds = node("Clip", "odds", odds, number("odds.least", -vote.ClipOdds), number("odds.most", vote.ClipOdds))
	votes := node("And", "votes", node("Greater", "expert.there", node("MatMul", "expert.inputs", double(there), member), half),
		node("Less", "expert.sound", node("MatMul", "expert.failed", failed, g.doubles("guard.ratio", ratio, s, e)), half))

	// The median: experts that abstain are sorted behind the others.
	sorted := "guard.sorted"
	g.nodes = append(g.nodes, topK(node("Where", "odds.voting", votes, odds, number("behind", 2*vote.ClipOdds)), g.initializer("guard.experts", onnxInt64, rawInts([]int64{int64(e)}), 1), sorted, "guard.order"))
	count := sum(double(votes), "count")
	at := func(name string, less float64) string {
		place := node("Max", name+".from0", node("Floor", name+".floor", node("Mul", name+".half", node("Sub", name+".less", count, number(name+".by", less)), half)), zero)
		return g.node("GatherElements", []string{sorted, g.node("Cast", []string{place}, "guard."+name+".at", attribute{"to", onnxInt64})}, "guard."+name, attribute{"axis", 1})
	}
	// Where all abstain, at(high, 0) is 0 too; the network's posterior stands then.
	median := node("Mul", "vote", node("Add", "vote.twice", at("low", 1), at("high", 0)), half)

	// The network's margin within ± the bound of the vote's.
	w := weights(c.Costs())
	network := node("Mul", "network.weighted", p, g.doubles("guard.cost", w, 2))
	score := node("Div", "network.score", take(network, "worn", []int64{1}, "network.worn"), sum(network, "network.sum"))
	margin := node("Sub", "network.margin", node("Log", "network.log", score), node("Log", "network.log1", node("Sub", "network.rest", one, score)))
	own := node("Sub", "margin.vote", median, number("cut", v.Cut()))
	beyond := node("Clip", "beyond", node("Sub", "apart", margin, own), number("bound.least", -v.Bound()), number("bound.most", v.Bound()))
	anyFailed := node("Greater", "failed.any", sum(failed, "failed.count"), half)
	margin = node("Add", "margin", own, node("Where", "beyond.sound", anyFailed, zero, beyond))

	// Its posterior.
	shifted := node("Sub", "margin.shifted", margin, number("offset", c.Costs().Offset()))
	worn := node("Div", "worn.p", one, node("Add", "worn.1", one, node("Exp", "worn.exp", node("Neg", "worn.neg", shifted))))
	healthy := node("Div", "healthy.p", one, node("Add", "healthy.1", one, node("Exp", "healthy.exp", shifted)))
	bounded := g.node("Concat", []string{healthy, worn}, "guard.posterior", attribute{"axis", 1})
	return node("Where", "bounded", node("Greater", "any", count, half), bounded, p)
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
