package dbn

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"

	"github.com/flank-tcm/flank/internal/kernel"
)

// ErrResume: bytes are not a state that the training at hand can go on from.
var ErrResume = errors.New("not a state of this training")

// A state is what a training needs to go on after an epoch. Numbers are
// little-endian, floats as their bits, a list has its length before it:
//
//	4 bytes   "FDBT"
//	4         version, 2
//	16        what the settings are known by, and the family of kernels
//	16        what the rows and labels are known by
//	8         number F of layers whose pre-training is over
//	8         1 in fine-tuning, else 0
//	          order of the rows, or of the blocks that they are read in
//	          F times: weights and biases of the layer, unless in fine-tuning, its history
//	          in pre-training: the RBM, its momentum, chains and random sources
//	          in fine-tuning: the network, its optimizer, the best one so far, losses
//	4         CRC-32C of all before
const (
	stateMagic   = "FDBT"
	stateVersion = 2
	stateHeader  = 4 + 4 + 16 + 16
	stateRows    = 1000 // that rows are known by
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// archive writes values to a state or reads them from one: the same calls in the
// same order do either, so that what is read is what was written.
type archive struct {
	b       []byte // written so far, or left to read
	reading bool
	err     error // of reading
}

// next returns the place of n bytes more, nil if fewer are left to read.
func (a *archive) next(n int) []byte {
	if !a.reading {
		a.b = append(a.b, make([]byte, n)...)
		return a.b[len(a.b)-n:]
	}
	if a.err == nil && n > len(a.b) {
		a.err = fmt.Errorf("dbn: %w: %d bytes are missing", ErrResume, n-len(a.b))
	}
	if a.err != nil {
		return nil
	}
	place := a.b[:n]
	a.b = a.b[n:]
	return place
}

func (a *archive) word(v *uint64) {
	switch b := a.next(8); {
	case !a.reading:
		binary.LittleEndian.PutUint64(b, *v)
	case b != nil:
		*v = binary.LittleEndian.Uint64(b)
	}
}

func (a *archive) int(v *int) {
	w := uint64(*v)
	a.word(&w)
	*v = int(w)
}

func (a *archive) flag(v *bool) {
	w := uint64(0)
	if *v {
		w = 1
	}
	a.word(&w)
	*v = w == 1
}

func (a *archive) float(v *float64) {
	w := math.Float64bits(*v)
	a.word(&w)
	*v = math.Float64frombits(w)
}

// floats is for lists whose length is known.
func (a *archive) floats(x []float32) {
	b := a.next(4 * len(x))
	switch {
	case !a.reading:
		for i, v := range x {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
		}
	case b != nil:
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
}

// series is for lists that grow with the epochs.
func (a *archive) series(x *[]float64) {
	n := len(*x)
	a.int(&n)
	if a.reading {
		if n < 0 || n > len(a.b)/8 {
			n = 0
			a.fail("a history is cut off")
		}
		*x = make([]float64, n)
	}
	for i := range *x {
		a.float(&(*x)[i])
	}
	if n == 0 {
		*x = nil
	}
}

// permutation is for an order of 0, 1, …, len(x)-1.
func (a *archive) permutation(x []int) {
	b := a.next(4 * len(x))
	switch {
	case !a.reading:
		for i, v := range x {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
		}
	case b != nil:
		seen := make([]bool, len(x))
		for i := range x {
			v := int(binary.LittleEndian.Uint32(b[4*i:]))
			if v >= len(x) || seen[v] {
				a.fail("an order of rows names one twice")
				return
			}
			x[i], seen[v] = v, true
		}
	}
}

func (a *archive) random(p *rand.PCG) {
	const size = 20
	switch b := a.next(size); {
	case !a.reading:
		state, err := p.MarshalBinary()
		if err != nil || len(state) != size {
			panic(fmt.Sprintf("dbn: a random source has %d bytes, %v", len(state), err))
		}
		copy(b, state)
	case b != nil:
		if p.UnmarshalBinary(b) != nil {
			a.fail("a random source is damaged")
		}
	}
}

func (a *archive) lanes(g *kernel.Lanes) {
	for w := range g {
		for lane := range g[w] {
			v := uint64(g[w][lane])
			a.word(&v)
			g[w][lane] = uint32(v)
		}
	}
}

func (a *archive) layers(ls ...layer) {
	for _, l := range ls {
		a.floats(l.weights.Data)
		a.floats(l.bias)
	}
}

func (a *archive) history(h *LayerHistory) {
	a.series(&h.ReconstructionError)
	a.series(&h.FreeEnergyGap)
}

func (a *archive) fail(what string) {
	if a.err == nil {
		a.err = fmt.Errorf("dbn: %w: %s", ErrResume, what)
	}
}

// course is where a training stands, for its states.
type course struct {
	feed     *feed // of the rows themselves
	layers   []layer
	history  *History
	header   []byte
	keep     func(state func() []byte) error
	resumed  *archive // left to read of the state that training goes on from; nil if it does not
	finished int      // layers that the state has
	tuning   bool     // the state is of fine-tuning
}

// newCourse returns the beginning of a training, or where the state in the
// settings stands.
func newCourse(f *feed, classes int, s Settings, h *History) (*course, error) {
	c := &course{feed: f, history: h, keep: s.Checkpoint}
	if s.Checkpoint == nil && s.Resume == nil {
		return c, nil
	}
	var err error
	if c.header, err = stateHeaderOf(f, classes, s); err != nil || s.Resume == nil {
		return c, err
	}
	b := s.Resume
	end := len(b) - 4
	switch le := binary.LittleEndian; {
	case end < stateHeader || string(b[:4]) != stateMagic:
		return nil, fmt.Errorf("dbn: %w: it does not begin with %q", ErrResume, stateMagic)
	case le.Uint32(b[4:]) != stateVersion:
		return nil, fmt.Errorf("dbn: %w: its version is %d, this program knows %d", ErrResume, le.Uint32(b[4:]), stateVersion)
	case le.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli):
		return nil, fmt.Errorf("dbn: %w: it is cut off or damaged", ErrResume)
	case string(b[8:24]) != string(c.header[8:24]):
		return nil, fmt.Errorf("dbn: %w: it is of other settings, or of another family of kernels than %s: train with those, or from the beginning", ErrResume, kernel.Family())
	case string(b[24:stateHeader]) != string(c.header[24:]):
		return nil, fmt.Errorf("dbn: %w: it is of other rows or labels: train on those, or from the beginning", ErrResume)
	}
	a := &archive{b: b[stateHeader:end], reading: true}
	a.int(&c.finished)
	a.flag(&c.tuning)
	a.permutation(f.order)
	if c.finished < 0 || c.finished > len(s.Hidden) || !c.tuning && c.finished == len(s.Hidden) {
		a.fail("it has more layers than there are")
	}
	c.resumed = a
	return c, a.err
}

// stateHeaderOf says which training it is: by the settings, the shape and labels
// of all rows and the values of some from all over.
func stateHeaderOf(f *feed, classes int, s Settings) ([]byte, error) {
	s.Workers, s.Progress, s.Checkpoint, s.Resume = 0, nil, nil, nil // none changes a result
	settings := sha256.New()
	for _, v := range []*Matrix{&s.Pretrain.Validation, &s.FineTune.Validation} {
		a := archive{}
		a.floats(v.Data)
		settings.Write(a.b)
		v.Data = nil
	}
	more := s.Pretrain.Rows
	s.Pretrain.Rows = nil
	fmt.Fprintf(settings, "%s %+v", kernel.Family(), s)

	some, err := f.sample(stateRows)
	if err != nil {
		return nil, err
	}
	data := sha256.New()
	fmt.Fprintln(data, f.rows, f.cols, classes)
	if more != nil {
		below := newFeed(more, nil, s.Visible)
		x, err := below.sample(stateRows)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(data, below.rows, below.cols)
		a := archive{}
		a.floats(x.Data)
		data.Write(a.b)
	}
	var b []byte
	for _, label := range f.y {
		if b = binary.LittleEndian.AppendUint32(b, uint32(label)); len(b) > 1<<16 {
			data.Write(b)
			b = b[:0]
		}
	}
	a := archive{b: b}
	a.floats(some.Data)
	data.Write(a.b)

	h := binary.LittleEndian.AppendUint32([]byte(stateMagic), stateVersion)
	return append(append(h, settings.Sum(nil)[:16]...), data.Sum(nil)[:16]...), nil
}

// rbm returns a layer whose pre-training is over, as what rows go through.
func (c *course) rbm(l int) *rbm {
	return &rbm{Weights: c.layers[l].weights, HiddenBias: c.layers[l].bias}
}

// finishedLayer reads the weights and the history of a layer whose pre-training
// was over.
func (c *course) finishedLayer(l layer) error {
	h := LayerHistory{}
	if !c.tuning { // the network's own layers follow
		c.resumed.layers(l)
	}
	c.resumed.history(&h)
	c.layers, c.history.Pretrain = append(c.layers, l), append(c.history.Pretrain, h)
	return c.resumed.err
}

// resume reads what visit reads, if the state that training goes on from is of
// this phase, and nothing else is left then.
func (c *course) resume(tuning bool, visit func(*archive)) error {
	a := c.resumed
	if a == nil || tuning != c.tuning {
		return nil
	}
	c.resumed = nil
	visit(a)
	if len(a.b) > 0 {
		a.fail("bytes are left over")
	}
	return a.err
}

// checkpoint lets the caller of Train keep what visit writes.
func (c *course) checkpoint(tuning bool, visit func(*archive)) error {
	if c.keep == nil {
		return nil
	}
	err := c.keep(func() []byte {
		a := &archive{b: append([]byte(nil), c.header...)}
		finished := len(c.layers)
		a.int(&finished)
		a.flag(&tuning)
		a.permutation(c.feed.order)
		for i, l := range c.layers {
			if !tuning {
				a.layers(l)
			}
			a.history(&c.history.Pretrain[i])
		}
		visit(a)
		return binary.LittleEndian.AppendUint32(a.b, crc32.Checksum(a.b, castagnoli))
	})
	if err != nil {
		return fmt.Errorf("dbn: checkpoint: %w", err)
	}
	return nil
}
