package window

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/flank-tcm/flank/pkg/signal"
)

// The buffers of a record batch of features that FactsOf reads, in the order of Message.fbs: a text has three, a number two, a list
// three. The last of each has its value.
const (
	bufTool     = 3 * colTool
	bufHole     = 3 * colHole
	bufStart    = 3*colEpoch + 2*(colStart-colEpoch)
	bufLength   = 3*colEpoch + 2*(colLength-colEpoch)
	bufQuality  = 3*colEpoch + 2*(colQuality-colEpoch)
	bufToolLife = bufQuality + 3
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
	if got := crc32.Checksum(e.Value, castagnoli); got != e.CRC {
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
	size, err := recordBatch(p, &batch)
	if err != nil {
		return w, err
	}
	buffers, err := structs(&batch, slotBuffers, batch.VectorLen(flatbuffers.UOffsetT(batch.Offset(slotBuffers))))
	if err != nil {
		return w, err
	}
	end := int64(len(p) - len(endOfStream))
	r := factReader{buffers: buffers, body: p[end-size : end]}
	w = Window{
		Epoch: r.number(3 * colEpoch), Seq: r.number(3*colEpoch + 2*(colSeq-colEpoch)), Start: time.Unix(0, int64(r.number(bufStart))).UTC(),
		Length: time.Duration(r.number(bufLength)),
	}
	w.Machine, w.Tool, w.Hole, w.ToolLife = r.text(colMachine), r.text(bufTool), r.text(bufHole), r.text(bufToolLife)
	if w.Machine != e.Machine || w.Epoch != e.Epoch || w.Seq != e.Seq || w.ToolLife != e.ToolLife || len(w.ToolLife) > signal.MaxToolLife || w.Length <= 0 {
		return w, fmt.Errorf("headers say %.64q %x %d %.64q, the value says %.64q %x %d %.64q, of %v",
			e.Machine, e.Epoch, e.Seq, e.ToolLife, w.Machine, w.Epoch, w.Seq, w.ToolLife, w.Length)
	}
	return w, nil
}

// factReader reads columns of one row. It panics where a buffer is not within the body.
type factReader struct {
	buffers pairs
	body    []byte
}

func (r factReader) buffer(i int, least int64) []byte {
	at, n := r.buffers.at(i)
	if size := int64(len(r.body)); at < 0 || n < least || n > size || at > size-n {
		panic(fmt.Sprintf("buffer %d is [%d, +%d) of a body of %d", i, at, n, size))
	}
	return r.body[at : at+n]
}

// number returns the value of a column of eight bytes that begins with buffer i.
func (r factReader) number(i int) uint64 { return binary.LittleEndian.Uint64(r.buffer(i+1, 8)) }

// text returns the value of a column of text.
func (r factReader) text(i int) string {
	offsets, text := r.buffer(i+1, 8), r.buffer(i+2, 0)
	from, to := binary.LittleEndian.Uint32(offsets), binary.LittleEndian.Uint32(offsets[4:])
	return string(text[from:to])
}
