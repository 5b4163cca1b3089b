package dbn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The binary form of a network, all numbers little-endian:
//
//	offset  bytes
//	0       4      "FDBN"
//	4       4      version, 1
//	8       4      number L of layers, the softmax layer counted, the inputs not
//	12      4      number of inputs
//	16      4·L    number of units of each layer, from below
//	16+4·L         for each layer: weights In×Out by rows, then Out biases, float32
const (
	binaryMagic   = "FDBN"
	binaryVersion = 1
)

// AppendBinary appends the binary form of the network to b. Equal networks have
// equal bytes. It implements encoding.BinaryAppender and fails only for a
// network that was neither trained nor unmarshaled.
func (n *Network) AppendBinary(b []byte) ([]byte, error) {
	if len(n.layers) == 0 {
		return b, errors.New("dbn: an empty network has no binary form")
	}
	le := binary.LittleEndian
	b = append(b, binaryMagic...)
	b = le.AppendUint32(b, binaryVersion)
	b = le.AppendUint32(b, uint32(len(n.layers)))
	for _, width := range n.Layers() {
		b = le.AppendUint32(b, uint32(width))
	}
	for _, l := range n.layers {
		for _, v := range l.weights.Data {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
		for _, v := range l.bias {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b, nil
}

// UnmarshalBinary replaces n by the network whose binary form b is. It returns
// an error that wraps errCorrupt, and leaves n alone, if b is anything else, if
// bytes are left over, or if a weight is not finite. It allocates no more than
// a small multiple of len(b) and does not keep b.
func (n *Network) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	const header = 16
	if len(b) < header || string(b[:4]) != binaryMagic {
		return fmt.Errorf("dbn: %w: it does not start with a header of %d bytes and %q", errCorrupt, header, binaryMagic)
	}
	if v := le.Uint32(b[4:]); v != binaryVersion {
		return fmt.Errorf("dbn: %w: its version is %d, this program reads %d", errCorrupt, v, binaryVersion)
	}
	count := le.Uint32(b[8:])
	if count < 1 || count > maxLayers {
		return fmt.Errorf("dbn: %w: %d layers: must be from 1 to %d", errCorrupt, count, maxLayers)
	}
	body := header + 4*int(count)
	if len(b) < body {
		return fmt.Errorf("dbn: %w: %d bytes are too few for %d layers", errCorrupt, len(b), count)
	}
	var widths []int
	for at := header - 4; at < body; at += 4 {
		width := le.Uint32(b[at:])
		if width < 1 || width > maxWidth {
			return fmt.Errorf("dbn: %w: a layer of %d units: must be from 1 to %d", errCorrupt, width, maxWidth)
		}
		widths = append(widths, int(width))
	}
	if k := widths[count]; k < 2 {
		return fmt.Errorf("dbn: %w: %d class: must be 2 or more", errCorrupt, k)
	}
	size := int64(body) // at most 64·4·2²⁰·(2²⁰+1): no overflow
	for i := range count {
		size += 4 * int64(widths[i]+1) * int64(widths[i+1])
	}
	if int64(len(b)) != size {
		return fmt.Errorf("dbn: %w: %d bytes, layers of %v need %d", errCorrupt, len(b), widths, size)
	}

	b = b[body:]
	var layers []layer
	for i := range count {
		l := newLayer(widths[i], widths[i+1])
		for _, part := range [][]float32{l.weights.Data, l.bias} {
			for j := range part {
				part[j] = math.Float32frombits(le.Uint32(b[4*j:]))
			}
			if !finite(part) {
				return fmt.Errorf("dbn: %w: a weight of layer %d is not finite", errCorrupt, i+1)
			}
			b = b[4*len(part):]
		}
		layers = append(layers, l)
	}
	n.layers = layers
	return nil
}
