package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// Versions of the form that is written: operators of opset 17, file of IR 8,
// which every runtime since 2022 reads.
const (
	opset      = 17
	irVersion  = 8
	modelProto = "flank"
)

// ONNX returns the model's classifier as an ONNX model. Its input is "features",
// float N×F; its outputs are "posterior", float N×K, P(class|window);
// "score", float N, what speaks against class 0, see
// classify.CostVector.Score; and "class", int64 N, the decision. The encoding is part of it and computes in double, as
// the original does, and so is the guard of a model that has one.
func ONNX(m *model.Model) []byte {
	g := graph{}
	c := m.Classifier
	x := g.encode(c.Encoder())
	layers := len(c.Network().Layers()) - 1
	for l := range layers {
		w, b := c.Network().Layer(l)
		name := fmt.Sprintf("layer%d", l+1)
		g.initializer(name+".weight", onnxFloat, raw(w.Data), w.Rows, w.Cols)
		g.initializer(name+".bias", onnxFloat, raw(b), len(b))
		x = g.node("Gemm", []string{x, name + ".weight", name + ".bias"}, name)
		if l < layers-1 {
			x = g.node("Sigmoid", []string{x}, name+".on")
		}
	}
	if c.Guard() == nil {
		x = g.node("Softmax", []string{x}, "posterior", attribute{"axis", 1})
		g.decide(c, g.node("Cast", []string{x}, "posterior.double", attribute{"to", onnxDouble}))
	} else {
		x = g.node("Softmax", []string{x}, "network", attribute{"axis", 1})
		x = g.guard(c, g.node("Cast", []string{x}, "network.double", attribute{"to", onnxDouble}))
		g.node("Cast", []string{x}, "posterior", attribute{"to", onnxFloat})
		g.decide(c, x)
	}

	k := c.Classes()
	var body message
	for _, n := range g.nodes {
		body.bytes(1, n)
	}
	body.string(2, "ecs-dbn")
	for _, t := range g.initializers {
		body.bytes(5, t)
	}
	body.bytes(11, onnxValue("features", onnxFloat, c.Columns()))
	body.bytes(12, onnxValue("posterior", onnxFloat, k))
	body.bytes(12, onnxValue("score", onnxFloat))
	body.bytes(12, onnxValue("class", onnxInt64))

	var version message
	version.string(1, "")
	version.int(2, opset)
	var file message
	file.int(1, irVersion)
	file.string(2, modelProto)
	file.string(3, strings.TrimPrefix(m.Provenance.Program, "flank "))
	file.string(6, "Features are relative to the tool's reference; NaN is a missing value. "+classes(m.ClassNames()))
	file.bytes(7, body)
	file.bytes(8, version)
	for _, kv := range metadata(m) {
		var p message
		p.string(1, kv[0])
		p.string(2, kv[1])
		file.bytes(14, p)
	}
	return file
}

// classes says which class is which.
func classes(names []string) string {
	text := fmt.Sprintf("Class 0 is %s", names[0])
	for k, name := range names[1:] {
		text += fmt.Sprintf(", %d %s", k+1, name)
	}
	return text + "."
}

// graph is an ONNX graph being made.
type graph struct {
	nodes, initializers []message
}

// attribute is a whole number that an operator takes.
type attribute struct {
	name  string
	value int64
}

// node adds an operator and returns the name of its output.
func (g *graph) node(op string, inputs []string, output string, attributes ...attribute) string {
	var n message
	for _, in := range inputs {
		n.string(1, in)
	}
	n.string(2, output)
	n.string(3, output)
	n.string(4, op)
	for _, a := range attributes {
		var p message
		p.string(1, a.name)
		p.int(3, a.value)
		p.int(20, 2) // an integer
		n.bytes(5, p)
	}
	g.nodes = append(g.nodes, n)
	return output
}

func (g *graph) initializer(name string, kind int64, raw []byte, dims ...int) string {
	g.initializers = append(g.initializers, onnxTensor(name, kind, raw, dims...))
	return name
}

func (g *graph) doubles(name string, x []float64, dims ...int) string {
	return g.initializer(name, onnxDouble, raw(x), dims...)
}

// encode adds the encoding of "features" and returns its output, float N×inputs.
func (g *graph) encode(e *classify.Encoder) string {
	x := g.node("Cast", []string{"features"}, "features.double", attribute{"to", onnxDouble})
	missing := g.node("IsNaN", []string{x}, "missing")
	var all []string
	for _, part := range e.Parts() {
		p := partGraph{g, ""}
		if e.Encoding() == classify.Committee {
			p.prefix = string(part.Encoding()) + "."
		}
		all = append(all, p.encode(part, x, missing))
	}
	if len(all) > 1 {
		x = g.node("Concat", all, "joined", attribute{"axis", 1})
	} else {
		x = all[0]
	}
	return g.node("Cast", []string{x}, "encoded", attribute{"to", onnxFloat})
}

// partGraph adds to a graph under names that begin with a prefix.
type partGraph struct {
	*graph
	prefix string
}

func (g partGraph) node(op string, inputs []string, output string, attributes ...attribute) string {
	return g.graph.node(op, inputs, g.prefix+output, attributes...)
}

func (g partGraph) doubles(name string, x []float64, dims ...int) string {
	return g.graph.doubles(g.prefix+name, x, dims...)
}

func (g partGraph) ints(name string, x []int64) string {
	return g.initializer(g.prefix+name, onnxInt64, raw(x), len(x))
}

func (g partGraph) scalar(name string, x int64) string {
	return g.initializer(g.prefix+name, onnxInt64, raw([]int64{x}))
}

// encode adds the encoding of x by one part.
func (g partGraph) encode(e *classify.Encoder, x, missing string) string {
	n := e.Columns()
	fill := make([]float64, n)
	for j := range fill {
		fill[j], _, _ = e.Column(j)
	}
	x = g.node("Where", []string{missing, g.doubles("fill", fill, n), x}, "complete")
	if e.Encoding() == classify.NormalScore {
		return g.interpolate(e, x)
	}
	return g.scale(e, x)
}

// scale adds clip((x − low)/width), with one input for each bin of a column,
// and 0 for constant columns.
func (g partGraph) scale(e *classify.Encoder, x string) string {
	var from []int64
	var low, width, used []float64
	add := func(j int, l, w, u float64) {
		from, low, width, used = append(from, int64(j)), append(low, l), append(width, w), append(used, u)
	}
	least, most := 0.0, 1.0
	if e.Encoding() == classify.Standard {
		least, most = -5, 5
	}
	for j := range e.Columns() {
		_, knots, values := e.Column(j)
		switch {
		case len(knots) == 0:
			add(j, 0, 1, 0)
		case e.Encoding() == classify.Standard:
			add(j, knots[0], values[0], 1)
		default:
			for b := range len(knots) - 1 {
				add(j, knots[b], knots[b+1]-knots[b], 1)
			}
		}
	}
	n := len(from)
	x = g.node("Gather", []string{x, g.ints("column", from)}, "spread", attribute{"axis", 1})
	x = g.node("Sub", []string{x, g.doubles("low", low, n)}, "shifted")
	x = g.node("Div", []string{x, g.doubles("width", width, n)}, "scaled")
	x = g.node("Clip", []string{x, g.doubles("least", []float64{least}), g.doubles("most", []float64{most})}, "clipped")
	return g.node("Mul", []string{x, g.doubles("used", used, n)}, "scaled.used")
}

// interpolate adds the line through knots and values of every column,
//
//	v_0 + Σ_b (v_{b+1} − v_b)·clip((x − k_b)/(k_{b+1} − k_b), 0, 1).
func (g partGraph) interpolate(e *classify.Encoder, x string) string {
	n, pieces := e.Columns(), 1
	for j := range n {
		_, knots, _ := e.Column(j)
		pieces = max(pieces, len(knots)-1)
	}
	first := make([]float64, n)
	low, width, rise := make([]float64, n*pieces), slices.Repeat([]float64{1}, n*pieces), make([]float64, n*pieces)
	for j := range n {
		_, knots, values := e.Column(j)
		if len(knots) == 0 {
			continue
		}
		first[j] = values[0]
		for b := range len(knots) - 1 {
			low[j*pieces+b], width[j*pieces+b], rise[j*pieces+b] = knots[b], knots[b+1]-knots[b], values[b+1]-values[b]
		}
	}
	last := g.ints("last", []int64{-1})
	x = g.node("Unsqueeze", []string{x, last}, "spread")
	x = g.node("Sub", []string{x, g.doubles("low", low, n, pieces)}, "shifted")
	x = g.node("Div", []string{x, g.doubles("width", width, n, pieces)}, "scaled")
	x = g.node("Clip", []string{x, g.doubles("least", []float64{0}), g.doubles("most", []float64{1})}, "clipped")
	x = g.node("Mul", []string{x, g.doubles("rise", rise, n, pieces)}, "risen")
	x = g.node("ReduceSum", []string{x, last}, "sum", attribute{"keepdims", 0})
	return g.node("Add", []string{x, g.doubles("first", first, n)}, "interpolated")
}

// decide adds the costs: score and class from the posterior p, double N×K.
func (g *graph) decide(c *classify.Classifier, p string) {
	weighted, share := partGraph{g, ""}.score(c, p)
	g.node("Cast", []string{share}, "score", attribute{"to", onnxFloat})
	g.node("ArgMax", []string{weighted}, "class", attribute{"axis", 1}, attribute{"keepdims", 0})
}

// score adds the posterior p times the weights of the classes, and the score that follows, double N.
func (g partGraph) score(c *classify.Classifier, p string) (weighted, score string) {
	k := c.Classes()
	p = g.node("Mul", []string{p, g.doubles("cost.weight", weights(c.Costs()), k)}, "weighted")
	var share, sum string
	if k == 2 {
		axis := g.ints("classes", []int64{1})
		sum = g.node("ReduceSum", []string{p, axis}, "weighted.sum", attribute{"keepdims", 0})
		share = g.node("Gather", []string{p, g.scalar("positive", 1)}, "weighted.positive", attribute{"axis", 1})
	} else { // the strongest of the classes but the first, next to the value
		weighted := func(class int) string {
			name := fmt.Sprintf("class%d", class)
			return g.node("Gather", []string{p, g.scalar(name, int64(class))}, name+".weighted", attribute{"axis", 1})
		}
		first := weighted(0)
		var others []string
		for class := 1; class < k; class++ {
			others = append(others, weighted(class))
		}
		share = g.node("Max", others, "weighted.strongest")
		sum = g.node("Add", []string{first, share}, "weighted.sum")
	}
	return p, g.node("Div", []string{share, sum}, "score.double")
}
