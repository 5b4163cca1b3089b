// Package source turns recordings and live feeds into blocks of samples.
//
// A [Source] delivers [Block]s: samples, and, where the recording has labels,
// the [Truth] of what the tool was like. A [Cutter] joins a source to a window
// slicer, so that gateway and trainer cut the same windows from the same data.
package source

import (
	"context"
	"io"
	"math"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Truth is what a recording says of the tool, and of the machine, at one sample.
type Truth struct {
	VBMeanUM float64 // mean flank wear in µm; NaN if not known
	VBMaxUM  float64 // maximum flank wear in µm; NaN if not known
	State    string  // of the tool, a word such as "worn" or "broken"; empty if not known
	Phase    string  // of the machine: idle, start-up, coolant, entry, drilling, retract; empty if not known
}

// NoTruth knows nothing.
var NoTruth = Truth{VBMeanUM: math.NaN(), VBMaxUM: math.NaN()}

// Block is a block of samples with what is known of the tool.
type Block struct {
	signal.Block
	Truth []Truth // one per sample, or a single one for the whole block; empty if nothing is known
}

// Source delivers the blocks of one machine in the order of time. Blocks of
// different rates may interleave in any way.
type Source interface {
	// Layout returns the layout of the blocks.
	Layout() *signal.Layout

	// Next returns the next block, which is valid until the next call, or
	// io.EOF after the last one. Any other error is final and names what is
	// wrong with the recording, where, and what to do about it.
	Next(ctx context.Context) (*Block, error)
}

// Close closes a source if it can be closed.
func Close(s Source) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// AckedSource is a live Source that needs to know which samples are on disk. Its sender
// keeps the others, and sends them again after a failure.
type AckedSource interface {
	Source

	// Acked says that the windows of a session that begin before a sample counter
	// of the layout's highest rate are on disk, or never will be, and so are all
	// windows of earlier sessions. It is called from the goroutine that calls Next,
	// and also before the first Next, for what an earlier run wrote.
	Acked(session, next int64)
}
