package train

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// cutRows holds windows that were cut already and do not fit in memory, on disk. In memory stays where each of them is, in
// the order of machine and time: 16 bytes a window while they are read and sorted, 4 afterwards.
type cutRows struct {
	scratch  string
	rows     *table.RowFile // see words; nil before the first window
	features int
	frames   int
	channels int
	names    []string // of machines, tools and holes
	index    map[string]uint32
	keys     []cutKey // of windows that are not in order yet
	order    []uint32 // rows in order
	cutOff   map[tool]bool
	buffer   []float32
}

// cutKey is where a window is in the order of windows.
type cutKey struct {
	start       int64
	machine, at uint32
}

// Words of 32 bits behind features and frames of a row, of which some are halves of numbers.
const (
	wordStart = 2 * iota
	wordEpoch
	wordSeq
	wordLevel
	wordMachine
	wordHole
	wordTool    = wordMachine + 1
	wordQuality = wordHole + 1 // and on: four channels each
)

// readRows is how many windows are read from disk at a time.
const readRows = 256

// newCutRows returns rows for about so many windows, in a folder. The caller closes them.
func newCutRows(scratch string, windows int) *cutRows {
	return &cutRows{scratch: scratch, index: make(map[string]uint32), keys: make([]cutKey, 0, windows)}
}

// add appends a window.
func (c *cutRows) add(o *observed) (err error) {
	if c.rows == nil {
		c.features, c.frames, c.channels = len(o.Features), len(o.Frames), len(o.Quality)
		words := c.features + c.frames + wordQuality + (c.channels+3)/4
		if c.rows, err = table.NewRowFile(c.scratch, words); err != nil {
			return err
		}
		c.buffer = make([]float32, words)
	}
	if len(o.Features) != c.features || len(o.Frames) != c.frames || len(o.Quality) != c.channels {
		return fmt.Errorf("%s has %d features, %d frames and %d channels, and windows before it %d, %d and %d", o.where(), len(o.Features), len(o.Frames), len(o.Quality), c.features, c.frames, c.channels)
	}
	at := copy(c.buffer, o.Features)
	at += copy(c.buffer[at:], o.Frames)
	put := func(word int, v uint32) { c.buffer[at+word] = math.Float32frombits(v) }
	long := func(word int, v uint64) { put(word, uint32(v)); put(word+1, uint32(v>>32)) }
	start := o.Start.UnixNano()
	long(wordStart, uint64(start))
	long(wordEpoch, o.epoch)
	long(wordSeq, o.seq)
	long(wordLevel, math.Float64bits(o.Level))
	machine := c.name(o.machine)
	put(wordMachine, machine)
	put(wordTool, c.name(o.Tool))
	put(wordHole, c.name(o.hole))
	for i := 0; i < c.channels; i += 4 {
		var four uint32
		for k, q := range o.Quality[i:min(i+4, c.channels)] {
			four |= uint32(q) << (8 * k)
		}
		put(wordQuality+i/4, four)
	}
	n, _ := c.rows.Shape()
	if n == math.MaxUint32 {
		return fmt.Errorf("%w: more than %d windows: name fewer machines or days", errData, n)
	}
	c.keys = append(c.keys, cutKey{start, machine, uint32(n)})
	return c.rows.Append(c.buffer)
}

func (c *cutRows) name(s string) uint32 {
	id, known := c.index[s]
	if !known {
		id = uint32(len(c.names))
		c.names, c.index[s] = append(c.names, s), id
	}
	return id
}

// sort brings the windows in order, which does not depend on how they came.
func (c *cutRows) sort() (err error) {
	if c.rows == nil {
		return nil
	}
	if err := c.rows.Flush(); err != nil {
		return err
	}
	row := make([]float32, len(c.buffer))
	number := func(at uint32) (epoch, seq uint64) {
		err = cmp.Or(err, c.rows.ReadRows(row, int(at)))
		return c.long(row, wordEpoch), c.long(row, wordSeq)
	}
	slices.SortFunc(c.keys, func(a, b cutKey) int {
		if d := cmp.Or(cmp.Compare(c.names[a.machine], c.names[b.machine]), cmp.Compare(a.start, b.start)); d != 0 || a.at == b.at {
			return d
		}
		epochA, seqA := number(a.at)
		epochB, seqB := number(b.at)
		return cmp.Or(cmp.Compare(epochA, epochB), cmp.Compare(seqA, seqB))
	})
	c.order = make([]uint32, len(c.keys))
	for i, k := range c.keys {
		c.order[i] = k.at
	}
	c.keys, c.index = nil, nil
	return err
}

func (c *cutRows) word(row []float32, word int) uint32 {
	return math.Float32bits(row[c.features+c.frames+word])
}

func (c *cutRows) long(row []float32, word int) uint64 {
	return uint64(c.word(row, word)) | uint64(c.word(row, word+1))<<32
}

// open stores what is in a row in o, whose slices it reuses.
func (c *cutRows) open(row []float32, o *observed) {
	*o = observed{Observation: model.Observation{
		Tool: c.names[c.word(row, wordTool)], Start: time.Unix(0, int64(c.long(row, wordStart))).UTC(), Level: math.Float64frombits(c.long(row, wordLevel)),
		Features: append(o.Features[:0], row[:c.features]...), Frames: append(o.Frames[:0], row[c.features:c.features+c.frames]...), Quality: o.Quality[:0],
	}, machine: c.names[c.word(row, wordMachine)], hole: c.names[c.word(row, wordHole)], epoch: c.long(row, wordEpoch), seq: c.long(row, wordSeq), truth: source.NoTruth, class: table.NoClass}
	for i := range c.channels {
		o.Quality = append(o.Quality, signal.Quality(c.word(row, wordQuality+i/4)>>(8*(i%4))))
	}
	o.sum, o.cutOff = sumOf(o.Features), c.cutOff[tool{o.machine, o.Tool}]
}

func (c *cutRows) count() int { return len(c.order) }

func (c *cutRows) each(visit func(i int, o *observed) error) error {
	return c.part(0, c.count(), visit)
}

// part calls visit with windows from, from+1, …, to−1 of the order. They are lent.
func (c *cutRows) part(from, to int, visit func(i int, o *observed) error) error {
	if from == to {
		return nil
	}
	all, words := c.rows.Shape()
	block, begin, n := make([]float32, readRows*words), 0, 0
	var o observed
	for i, at := range c.order[from:to] {
		if int(at) < begin || int(at) >= begin+n {
			begin, n = int(at), min(readRows, all-int(at))
			if err := c.rows.ReadRows(block[:n*words], begin); err != nil {
				return err
			}
		}
		k := int(at) - begin
		c.open(block[k*words:(k+1)*words], &o)
		if err := visit(from+i, &o); err != nil {
			return err
		}
	}
	return nil
}

// drop forgets windows.
func (c *cutRows) drop(which marks) {
	kept := c.order[:0]
	for i, at := range c.order {
		if which.of[i] == 0 {
			kept = append(kept, at)
		}
	}
	c.order = kept
}

// lacking notes which tools lack their beginning.
func (c *cutRows) lacking(tools map[tool]int) {
	c.cutOff = make(map[tool]bool)
	for of, missing := range tools {
		c.cutOff[of] = missing > 0
	}
}

// sampleBytes is how much memory a sample of windows takes, of which the model learns when a machine is cutting; stretchRows
// is how many of them follow each other.
const sampleBytes, stretchRows = 64 << 20, 2048

// sample returns all windows, or stretches of them that are evenly spread and take so many bytes, without features.
func (c *cutRows) sample(bytes int) (found [][]observed, err error) {
	n, most := c.count(), max(1, bytes/(4*c.frames+c.channels+400)/stretchRows)
	stretches, length := most, stretchRows
	if n <= most*stretchRows {
		stretches, length = 1, n
	}
	for k := range stretches {
		from := int(int64(k) * int64(n-length) / int64(max(1, stretches-1)))
		os := make([]observed, 0, length)
		if err := c.part(from, from+length, func(_ int, o *observed) error {
			p := *o
			p.Features, p.Frames, p.Quality = nil, slices.Clone(o.Frames), slices.Clone(o.Quality)
			os = append(os, p)
			return nil
		}); err != nil {
			return nil, err
		}
		found = append(found, os)
	}
	return found, nil
}

// closeCut removes windows of inputs that wait on disk.
func closeCut(inputs []Input) {
	for i := range inputs {
		if c := inputs[i].cut; c != nil && c.rows != nil {
			_ = c.rows.Close() // what is left is in no one's way
		}
		inputs[i].cut = nil
	}
}

// windows are windows one after the other, which are lent, or an error at the end.
type windows = iter.Seq2[*observed, error]

// windowsOf returns the windows of inputs: those on disk, or those that were found. Of several recordings the one that began first
// comes first, if they are to be in order.
func windowsOf(inputs []Input, found [][]observed, ordered bool) windows {
	if len(inputs) > 0 && inputs[0].cut != nil {
		return func(yield func(*observed, error) bool) {
			enough := errors.New("enough")
			if err := inputs[0].cut.each(func(_ int, o *observed) error {
				if !yield(o, nil) {
					return enough
				}
				return nil
			}); err != nil && !errors.Is(err, enough) {
				yield(nil, err)
			}
		}
	}
	if ordered {
		found = inOrder(found)
	}
	return func(yield func(*observed, error) bool) {
		for _, os := range found {
			for i := range os {
				if !yield(&os[i], nil) {
					return
				}
			}
		}
	}
}
