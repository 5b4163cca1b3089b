package classify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Checkpoints keeps networks, trained or half-way, so that work that was cut off goes on
// where it was. Its methods are called by several goroutines at a time.
type Checkpoints interface {
	// Load returns what Save was given last under the name, or false.
	Load(name string) ([]byte, bool)
	// Save keeps data under a name. An error ends the training.
	Save(name string, data []byte) error
	// Watch is called when the training of a network begins. The function that
	// it returns says after every epoch whether the training's state is to be saved now.
	Watch() (due func() bool)
}

// What is kept begins with a byte that says what it is: a network, or the state
// of its training, which the network replaces in the end.
const (
	keptNetwork = 'N'
	keptState   = 'S'
)

// trainOrLoad is dbn.Train, unless keep has the network of that name already or the state of a
// training that was cut off, which goes on from there.
func trainOrLoad(ctx context.Context, keep Checkpoints, name string, x dbn.Rows, y []int, k int, s dbn.Settings) (*dbn.Network, *dbn.History, error) {
	if keep == nil {
		return dbn.Train(ctx, x, y, k, s)
	}
	_, inputs := x.Shape()
	if data, ok := keep.Load(name); ok && len(data) > 0 {
		if data[0] == keptState {
			s.Resume = data[1:]
		} else if n, h, err := decodeKept(data); err == nil && n.Inputs() == inputs && n.Classes() == k {
			if s.Progress != nil {
				s.Progress("finetune", 1, 1)
			}
			return n, h, nil
		}
	}
	due := keep.Watch()
	s.Checkpoint = func(state func() []byte) error {
		if !due() {
			return nil
		}
		return keep.Save(name, append([]byte{keptState}, state()...))
	}
	n, h, err := dbn.Train(ctx, x, y, k, s)
	if errors.Is(err, dbn.ErrResume) && s.Resume != nil { // a damaged one: as good as none
		s.Resume = nil
		n, h, err = dbn.Train(ctx, x, y, k, s)
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := encodeKept(n, h)
	if err == nil {
		err = keep.Save(name, data)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("keeping a trained network: %w", err)
	}
	return n, h, nil
}

// networkName returns the name of a network. It follows from everything that the network depends on, rows, labels, settings
// and the kernel's family, so what is loaded is what would be trained, byte for byte.
func networkName(x dbn.Rows, y []int, k int, s dbn.Settings) (string, error) {
	h := sha256.New()
	s.Workers, s.Progress, s.Checkpoint, s.Resume = 0, nil, nil, nil // none changes a result
	more := s.Pretrain.Rows
	s.Pretrain.Rows = nil
	rows, cols := x.Shape()
	fmt.Fprintf(h, "%s %d %d %d %+v\n", kernel.Family(), rows, cols, k, s)
	err := hashRows(h, x, func(i int) int { return y[i] })
	if err == nil && more != nil {
		fmt.Fprintln(h, "pre-trained on")
		err = hashRows(h, more, func(int) int { return 0 })
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), err
}

// hashRows adds rows and their classes to h.
func hashRows(h hash.Hash, x dbn.Rows, class func(i int) int) error {
	var b []byte
	return eachChunk(x, func(from int, c dbn.Matrix) error {
		for i := range c.Rows {
			b = b[:0]
			for _, v := range c.Row(i) {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
			h.Write(binary.LittleEndian.AppendUint32(b, uint32(class(from+i))))
		}
		return nil
	})
}

// encodeKept returns, after the byte for a network, the length of the history as
// JSON in four bytes, the history and the network.
func encodeKept(n *dbn.Network, h *dbn.History) ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint32([]byte{keptNetwork}, uint32(len(text)))
	return n.AppendBinary(append(b, text...))
}

func decodeKept(b []byte) (*dbn.Network, *dbn.History, error) {
	if len(b) < 5 || b[0] != keptNetwork || int64(binary.LittleEndian.Uint32(b[1:])) > int64(len(b)-5) {
		return nil, nil, fmt.Errorf("classify: %w: a kept network is cut off", ErrCorrupt)
	}
	b = b[1:]
	size := binary.LittleEndian.Uint32(b)
	n, h := new(dbn.Network), new(dbn.History)
	dec := json.NewDecoder(bytes.NewReader(b[4 : 4+size]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(h); err != nil {
		return nil, nil, fmt.Errorf("classify: %w: %w", ErrCorrupt, err)
	}
	if err := n.UnmarshalBinary(b[4+size:]); err != nil {
		return nil, nil, fmt.Errorf("classify: %w: %w", ErrCorrupt, err)
	}
	return n, h, nil
}
