package classify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"sync"

	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// Shared has networks that were trained, and what comes before them, so that fits of the same rows train each of them once: leaving out tool a and then, to
// choose costs, tool b leaves the rows that leaving out b and then a does, and the networks by which the final fit chooses costs
// are those that were scored. It holds them until it is dropped, and is safe for concurrent use.
type Shared struct {
	mu       sync.Mutex
	networks map[string]*once
	encoders map[encoderName]*Encoder
	ranks    score.Known
}

// encoderName says what an encoder is fitted to, and how.
type encoderName struct {
	of       [sha256.Size]byte
	cols     int
	encoding Encoding
	bins     int
}

// once is a network that is trained, or will be.
type once struct {
	done    chan struct{}
	network *dbn.Network
	history *dbn.History
	err     error
}

// NewShared returns a Shared that has no network.
func NewShared() *Shared {
	return &Shared{networks: make(map[string]*once), encoders: make(map[encoderName]*Encoder)}
}

// encoder is fitEncoder, unless an encoder was fitted to the same columns of the same rows before. Encoders of kind NormalScore are as large as their rows,
// and not kept.
func (s *Shared) encoder(x dbn.Matrix, encoding Encoding, bins int, weights []float64) (*Encoder, error) {
	if encoding == NormalScore {
		return fitEncoder(x, encoding, bins, weights)
	}
	h := sha256.New()
	if err := hashRows(h, x, func(int) int { return 0 }); err != nil {
		return nil, err
	}
	for j, w := range weights {
		if w == 0 {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(j)))
		}
	}
	name := encoderName{[sha256.Size]byte(h.Sum(nil)), x.Cols, encoding, bins}
	s.mu.Lock()
	e, known := s.encoders[name]
	s.mu.Unlock()
	if known {
		return e, nil
	}
	e, err := fitEncoder(x, encoding, bins, weights)
	if err == nil {
		s.mu.Lock()
		s.encoders[name] = e
		s.mu.Unlock()
	}
	return e, err
}

// train is dbn.Train, unless the network was trained before, is being trained by another goroutine, or keep has it. Rows that are not in memory would have to be read to know what they are, and are not shared.
func (s *Shared) train(ctx context.Context, keep Checkpoints, x dbn.Rows, y []int, k int, set dbn.Settings) (*dbn.Network, *dbn.History, error) {
	_, inMemory := x.(dbn.Matrix)
	if !inMemory && keep == nil {
		return dbn.Train(ctx, x, y, k, set)
	}
	name, err := networkName(x, y, k, set)
	switch {
	case err != nil:
		return nil, nil, err
	case !inMemory:
		return trainOrLoad(ctx, keep, name, x, y, k, set)
	}
	s.mu.Lock()
	o, known := s.networks[name]
	if !known {
		o = &once{done: make(chan struct{})}
		s.networks[name] = o
	}
	s.mu.Unlock()
	if !known {
		defer close(o.done)
		if o.network, o.history, o.err = trainOrLoad(ctx, keep, name, x, y, k, set); o.err != nil {
			s.mu.Lock()
			delete(s.networks, name) // another fit may try again
			s.mu.Unlock()
		}
		return o.network, o.history, o.err
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if o.err == nil && set.Progress != nil {
		set.Progress("finetune", 1, 1)
	}
	return o.network, o.history, o.err
}

// seed returns the seed of a network that learns from d: of equal rows it is the same, in any order of holding others out. Rows
// without groups are dealt to folds at random, so that no two folds leave the same: there it is the seed of a stream of the fit.
func (d subset) seed(s Settings, stream uint64) uint64 {
	if d.of.Groups == nil {
		return DeriveSeed(s.Seed, stream)
	}
	h := fnv.New64a()
	for _, rows := range []rowSet{d.rows, d.more} {
		for _, r := range rows.runs {
			h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(r.from)), uint64(r.to)))
		}
		h.Write([]byte{0}) // no more of these
	}
	return DeriveSeed(s.root, h.Sum64())
}
