package window

import (
	"encoding/binary"
	"errors"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Where the buffers of the facts begin in a record batch, in the order of Message.fbs: a text has three, a number two, a list three.
const (
	bufMachine = 3 * colMachine
	bufTool    = 3 * colTool
	bufHole    = 3 * colHole
	bufEpoch   = 3 * colEpoch
	bufSeq     = bufEpoch + 2*(colSeq-colEpoch)
	bufStart   = bufEpoch + 2*(colStart-colEpoch)
	bufLength  = bufEpoch + 2*(colLength-colEpoch)
	bufSession = bufEpoch + 2*(colSession-colEpoch)
	bufFirst   = bufEpoch + 2*(colFirst-colEpoch)
	bufSpeed   = bufEpoch + 2*(colSpeed-colEpoch)
	bufQuality = bufEpoch + 2*(colQuality-colEpoch)
	bufBehind  = bufQuality + 3 // of the column after the facts

	// Of features.
	bufToolLife = bufBehind
	bufLevel    = bufToolLife + 3
	bufValues   = bufLevel + 2
	bufFrames   = bufValues + 3
)

// FactsOf returns what features of any form, also of a layout that is not known, say of their window: which one it is, of which tool, and when it
// was. It leaves out samples, quality, and what the control says. It does not trust the value; the errors wrap ErrCorrupt.
func FactsOf(e Envelope) (w Window, err error) {
	defer func() {
		if r := recover(); r != nil { // offsets inside the flatbuffers may be damaged
			err = fmt.Errorf("metadata: %v", r)
		}
		if err != nil {
			w, err = Window{}, fmt.Errorf("window: facts of features: %w: %w", err, ErrCorrupt)
		}
	}()
	if got := e.sum(); got != e.CRC {
		return w, fmt.Errorf("checksum %08x, header says %08x", got, e.CRC)
	}
	if len(e.Value) < 8 || binary.LittleEndian.Uint32(e.Value) != 0xffffffff {
		return w, errors.New("no schema")
	}
	schema := int64(binary.LittleEndian.Uint32(e.Value[4:]))
	if schema > int64(len(e.Value)-8) {
		return w, fmt.Errorf("a schema of %d bytes in %d", schema, len(e.Value))
	}
	p := e.Value[8+schema:]
	var batch flatbuffers.Table
	body, err := recordBatch(p, &batch)
	if err != nil {
		return w, err
	}
	buffers, err := structs(&batch, slotBuffers, batch.VectorLen(flatbuffers.UOffsetT(batch.Offset(slotBuffers))))
	if err != nil {
		return w, err
	}
	c := columns{buffers, body}
	c.facts(&w)
	c.text(bufToolLife, &w.ToolLife)
	w.Session, w.First, w.SpindleSpeed = 0, 0, 0
	if w.Machine != e.Machine || w.Epoch != e.Epoch || w.Seq != e.Seq || w.ToolLife != e.ToolLife || len(w.ToolLife) > signal.MaxToolLife || w.Length <= 0 {
		return w, fmt.Errorf("headers say %.64q %x %d %.64q, the value says %.64q %x %d %.64q, of %v",
			e.Machine, e.Epoch, e.Seq, e.ToolLife, w.Machine, w.Epoch, w.Seq, w.ToolLife, w.Length)
	}
	return w, nil
}
