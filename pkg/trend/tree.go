package trend

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

const (
	forestTrees  = 50
	forestInputs = 20  // of the greatest stability weight
	leastLeaf    = 5   // rows
	leafShare    = 100 // a leaf has a hundredth of the rows at least, so a tree has at most 199 nodes

	// What a model file may hold.
	mostTrees = 100
	mostNodes = 512
)

// node is a question, or a leaf. Nodes are in preorder: the branch of inputs up to
// value comes next, the other one at right.
type node struct {
	value float32 // that the input is compared with; in a leaf the root of the wear, in √µm
	input uint16
	right uint16 // 0: a leaf
}

// Tree is a regression tree. In JSON it is the base64 of its nodes, 8 bytes each,
// little-endian: value float32, input uint16, right uint16.
type Tree []node

const nodeSize = 8

// MarshalText returns the nodes in base64.
func (t Tree) MarshalText() ([]byte, error) {
	b := make([]byte, 0, nodeSize*len(t))
	for _, n := range t {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n.value))
		b = binary.LittleEndian.AppendUint16(b, n.input)
		b = binary.LittleEndian.AppendUint16(b, n.right)
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText reads what MarshalText wrote. It trusts nothing but the length: call
// Model.Check.
func (t *Tree) UnmarshalText(text []byte) error {
	if len(text) > base64.StdEncoding.EncodedLen(nodeSize*mostNodes) {
		return fmt.Errorf("trend: tree: more than %d nodes", mostNodes)
	}
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("trend: tree: %w", err)
	}
	if len(b)%nodeSize != 0 {
		return fmt.Errorf("trend: tree: %d bytes are not nodes of %d", len(b), nodeSize)
	}
	*t = make(Tree, len(b)/nodeSize)
	for i := range *t {
		at := b[i*nodeSize:]
		(*t)[i] = node{math.Float32frombits(binary.LittleEndian.Uint32(at)), binary.LittleEndian.Uint16(at[4:]), binary.LittleEndian.Uint16(at[6:])}
	}
	return nil
}

// check reports a tree that at cannot follow to a leaf for that many inputs.
func (t Tree) check(inputs int) error {
	if len(t) == 0 || len(t) > mostNodes {
		return fmt.Errorf("trend: tree of %d nodes, expected 1 to %d", len(t), mostNodes)
	}
	for i, n := range t {
		if !finite(float64(n.value)) {
			return errors.New("trend: tree: a number is not finite")
		}
		if n.right == 0 {
			continue
		}
		// Both branches are further on, so every way ends.
		if int(n.input) >= inputs || int(n.right) <= i+1 || int(n.right) >= len(t) {
			return fmt.Errorf("trend: tree: node %d asks for input %d and goes to node %d", i, n.input, n.right)
		}
	}
	return nil
}

// at returns the leaf that inputs z lead to.
func (t Tree) at(z []float64) float64 {
	i := 0
	for t[i].right != 0 {
		if n := &t[i]; z[n.input] <= float64(n.value) {
			i++
		} else {
			i = int(n.right)
		}
	}
	return float64(t[i].value)
}

// average returns what trees say of inputs z.
func average(trees []Tree, z []float64) float64 {
	var sum float64
	for _, t := range trees {
		sum += t.at(z)
	}
	return sum / float64(len(trees))
}

// grower grows extra trees.
type grower struct {
	columns int
	z       []float64 // rows×columns, by rows
	y       []float64
	leaf    int
	rng     *rand.Rand
	low     []float64 // scratch, by column
	high    []float64
}

// forest grows trees on inputs z, rows×columns by rows, of roots y. At each node one
// threshold is drawn for each input, evenly between the least and the greatest value
// that the rows of the node have, and the one that leaves the least square error is
// taken. Equal seeds give equal trees.
//
// Source: P. Geurts, D. Ernst, L. Wehenkel, "Extremely randomized trees", Machine
// Learning 63, 2006, Table 1, with K = all inputs, the default for regression.
func forest(z []float64, columns int, y []float64, seed uint64) []Tree {
	trees := make([]Tree, forestTrees)
	for k := range trees {
		g := grower{
			columns: columns, z: z, y: y, leaf: max(leastLeaf, (len(y)+leafShare-1)/leafShare),
			rng: rand.New(rand.NewPCG(seed, uint64(k))), low: make([]float64, columns), high: make([]float64, columns),
		}
		rows := make([]int, len(y))
		for i := range rows {
			rows[i] = i
		}
		trees[k] = g.grow(nil, rows)
	}
	return trees
}

// grow appends the tree of the rows, whose order it changes.
func (g *grower) grow(t Tree, rows []int) Tree {
	var sum float64
	for _, i := range rows {
		sum += g.y[i]
	}
	at := len(t)
	t = append(t, node{value: float32(sum / float64(len(rows)))})
	if len(rows) < 2*g.leaf {
		return t
	}
	input, threshold, found := g.split(rows, sum)
	if !found {
		return t
	}
	n := 0
	for k, i := range rows {
		if g.z[i*g.columns+input] <= float64(threshold) {
			rows[n], rows[k] = i, rows[n]
			n++
		}
	}
	t[at].input, t[at].value = uint16(input), threshold
	t = g.grow(t, rows[:n])
	t[at].right = uint16(len(t))
	return g.grow(t, rows[n:])
}

// split returns the best of the thresholds drawn, one for each input that varies.
func (g *grower) split(rows []int, sum float64) (input int, threshold float32, found bool) {
	for c := range g.columns {
		g.low[c], g.high[c] = math.Inf(1), math.Inf(-1)
	}
	for _, i := range rows {
		for c, v := range g.z[i*g.columns : (i+1)*g.columns] {
			g.low[c], g.high[c] = min(g.low[c], v), max(g.high[c], v)
		}
	}
	best := sum * sum / float64(len(rows)) * (1 + 1e-12) // rounding is not a gain
	for c := range g.columns {
		if g.low[c] == g.high[c] {
			continue
		}
		at := float32(g.low[c] + g.rng.Float64()*(g.high[c]-g.low[c]))
		var left float64
		n := 0
		for _, i := range rows {
			if g.z[i*g.columns+c] <= float64(at) {
				left += g.y[i]
				n++
			}
		}
		if n < g.leaf || len(rows)-n < g.leaf {
			continue
		}
		right := sum - left
		if s := left*left/float64(n) + right*right/float64(len(rows)-n); s > best {
			best, input, threshold, found = s, c, at, true
		}
	}
	return input, threshold, found
}
