package classify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Keeper keeps trained networks, so that work that was cut off does not begin
// anew. Its methods are called by several goroutines at a time.
type Keeper interface {
	// Load returns what Save was given under the name, or false.
	Load(name string) ([]byte, bool)
	// Save keeps data under a name. An error ends the training.
	Save(name string, data []byte) error
}

// trainOrLoad is dbn.Train, unless the keeper has the network already. The name
// it is kept under follows from everything that it depends on, rows, labels,
// settings and the kernel's family, so what is loaded is what would be trained,
// byte for byte.
func trainOrLoad(ctx context.Context, keep Keeper, x dbn.Rows, y []int, k int, s dbn.Settings) (*dbn.Network, *dbn.History, error) {
	if keep == nil {
		return dbn.Train(ctx, x, y, k, s)
	}
	name, err := networkName(x, y, k, s)
	if err != nil {
		return nil, nil, err
	}
	_, inputs := x.Shape()
	if data, ok := keep.Load(name); ok {
		if n, h, err := decodeKept(data); err == nil && n.Inputs() == inputs && n.Classes() == k {
			if s.Progress != nil {
				s.Progress("finetune", 1, 1)
			}
			return n, h, nil
		}
	}
	n, h, err := dbn.Train(ctx, x, y, k, s)
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

func networkName(x dbn.Rows, y []int, k int, s dbn.Settings) (string, error) {
	h := sha256.New()
	s.Progress, s.Workers = nil, 0 // neither changes a result
	rows, cols := x.Shape()
	fmt.Fprintf(h, "%s %d %d %d %+v\n", kernel.Family(), rows, cols, k, s)
	b := make([]byte, 0, 4*cols)
	err := eachChunk(x, func(from int, c dbn.Matrix) error {
		for i := range c.Rows {
			b = b[:0]
			for _, v := range c.Row(i) {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
			h.Write(binary.LittleEndian.AppendUint32(b, uint32(y[from+i])))
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)[:16]), err
}

// encodeKept returns the length of the history as JSON in four bytes, the
// history and the network.
func encodeKept(n *dbn.Network, h *dbn.History) ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	return n.AppendBinary(append(b, text...))
}

func decodeKept(b []byte) (*dbn.Network, *dbn.History, error) {
	if len(b) < 4 || int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
		return nil, nil, fmt.Errorf("classify: %w: a kept network is cut off", ErrCorrupt)
	}
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
