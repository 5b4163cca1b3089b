package window

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/flank-tcm/flank/pkg/signal"
)

// What a machine's control says of a cut besides its tool, hole and spindle speed is metadata of
// the record batch message, and not a column: then the schema is the same in every message, a
// window without it has the same bytes as before there was a place for it, and readers that do
// not know it pass over it. (Message.fbs, custom_metadata; schemas/window.arrow.md)

// Keys of the metadata. A value that is not known has none. The rates are here for the same reasons.
const (
	keyRates     = "rates"
	keyFeedRate  = "feed_rate"
	keyProgramme = "programme"
	keyMaterial  = "material"
)

const (
	slotVersion        = 4 // of Message
	slotCustomMetadata = 12
)

// contextKeys returns the metadata of c: pairs of a key and its value, none if nothing is known.
// It reports texts that are too long.
func contextKeys(c *signal.Context) (keys [][2]string, err error) {
	if v := knownFeedRate(c.FeedRate); v != 0 {
		keys = append(keys, [2]string{keyFeedRate, formatFloat(v)})
	}
	for _, one := range [][2]string{{keyProgramme, c.Programme}, {keyMaterial, c.Material}} {
		if n := len(one[1]); n > signal.MaxContextText {
			return nil, fmt.Errorf("window: %s %.32q… is %d bytes long: at most %d are sent, shorten it", one[0], one[1], n, signal.MaxContextText)
		}
		if one[1] != "" {
			keys = append(keys, one)
		}
	}
	return keys, nil
}

// knownFeedRate returns a feed rate, or 0, which is not known, for one that cannot be.
func knownFeedRate(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// maxRates is how many bytes of the text of rates are read.
const maxRates = 4096

// formatRates returns rates as text, six digits of each.
func formatRates(rates []float64) string {
	var text []string
	for _, v := range rates {
		text = append(text, strconv.FormatFloat(v, 'g', 6, 64))
	}
	return strings.Join(text, " ")
}

// parseRates returns the rates of a text; nil if it is not one.
func parseRates(text string) (rates []float64) {
	for _, field := range strings.Fields(text) {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) {
			return nil
		}
		rates = append(rates, v)
	}
	return rates
}

// messageWith returns the header of a record batch message with metadata.
func messageWith(header []byte, keys [][2]string) []byte {
	msg := flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
	var batch flatbuffers.Table
	msg.Union(&batch, flatbuffers.UOffsetT(msg.Offset(slotHeader)))
	b := flatbuffers.NewBuilder(len(header) + 1024)
	vector := func(slot flatbuffers.VOffsetT) flatbuffers.UOffsetT {
		n := batch.VectorLen(flatbuffers.UOffsetT(batch.Offset(slot)))
		all, _ := structs(&batch, slot, n)
		b.StartVector(16, n, 8)
		for i := range n {
			first, second := all.at(n - 1 - i)
			b.Prep(8, 16)
			b.PrependInt64(second)
			b.PrependInt64(first)
		}
		return b.EndVector(n)
	}
	nodes, buffers := vector(slotNodes), vector(slotBuffers)
	b.StartObject(4)
	b.PrependInt64Slot(0, batch.GetInt64Slot(slotBatchLength, 0), 0)
	b.PrependUOffsetTSlot(1, nodes, 0)
	b.PrependUOffsetTSlot(2, buffers, 0)
	record := b.EndObject()
	var pairs []flatbuffers.UOffsetT
	for _, one := range keys {
		key, value := b.CreateString(one[0]), b.CreateString(one[1])
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, key, 0)
		b.PrependUOffsetTSlot(1, value, 0)
		pairs = append(pairs, b.EndObject())
	}
	metadata := b.CreateVectorOfTables(pairs)
	b.StartObject(5)
	b.PrependInt64Slot(3, msg.GetInt64Slot(slotBodyLength, 0), 0)
	b.PrependUOffsetTSlot(4, metadata, 0)
	b.PrependUOffsetTSlot(2, record, 0)
	b.PrependInt16Slot(0, msg.GetInt16Slot(slotVersion, 0), 0)
	b.PrependByteSlot(1, headerRecordBatch, 0)
	b.Finish(b.EndObject())
	header = b.FinishedBytes()
	return append(header, make([]byte, -len(header)&7)...)
}

// readContext stores in w what the metadata of a record batch message says. P is what follows the
// schema; the guard has checked it. It passes over keys that it does not know. A feed rate that
// cannot be is not known. It reports texts that are too long, and damage.
func readContext(p []byte, w *Window) (err error) {
	c := &w.Context
	defer func() { // offsets inside the flatbuffer may be damaged
		if r := recover(); r != nil {
			err = fmt.Errorf("metadata of the record batch: %v", r)
		}
	}()
	c.FeedRate, c.Programme, c.Material, w.Rates = 0, "", "", nil
	header := p[8 : 8+binary.LittleEndian.Uint32(p[4:])]
	msg := flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
	r := schemaReader{left: len(header)}
	for _, kv := range r.tables(&msg, slotCustomMetadata) {
		key := r.text(&kv, slotKey)
		var to *string
		switch key {
		case keyFeedRate:
			v, err := strconv.ParseFloat(r.text(&kv, slotValue), 64)
			if err == nil {
				c.FeedRate = knownFeedRate(v)
			}
			continue
		case keyRates:
			w.Rates = parseRates(r.textOf(&kv, slotValue, maxRates+1))
			continue
		case keyProgramme:
			to = &c.Programme
		case keyMaterial:
			to = &c.Material
		default:
			continue
		}
		if *to = r.textOf(&kv, slotValue, signal.MaxContextText+1); len(*to) > signal.MaxContextText {
			return fmt.Errorf("%s is longer than %d bytes", key, signal.MaxContextText)
		}
	}
	return nil
}
