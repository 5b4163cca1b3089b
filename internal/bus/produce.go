package bus

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ownPart is the length in bytes from which on a value is not copied into a batch.
const ownPart = 16 << 10

// batch is a record batch of version 2 for a partition, in parts: long values are the messages' own memory.
type batch struct {
	place
	parts [][]byte
	size  int
}

// producing is what a batch says of who writes it.
type producing struct {
	attributes protocol.Attributes
	producer   int64
	epoch      int16
	sequence   int32 // of the first message
}

// anyone is a producer without a number.
var anyone = producing{producer: -1, epoch: -1, sequence: -1}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeBatch returns the batch of messages for a partition. It shares the memory of their values.
func encodeBatch(to place, msgs []*Message, by producing) batch {
	b := batch{place: to}
	compression := compressionOf(to.topic)
	head := make([]byte, batchHead, batchHead+64*len(msgs)+sizeOfSmall(msgs))
	ms := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint32(head[12:], 1<<32-1) // the leader's epoch is not known
	head[16] = 2
	binary.BigEndian.PutUint16(head[21:], uint16(by.attributes|protocol.Attributes(compression)))
	binary.BigEndian.PutUint32(head[23:], uint32(len(msgs)-1))
	binary.BigEndian.PutUint64(head[27:], ms)
	binary.BigEndian.PutUint64(head[35:], ms)
	binary.BigEndian.PutUint64(head[43:], uint64(by.producer))
	binary.BigEndian.PutUint16(head[51:], uint16(by.epoch))
	binary.BigEndian.PutUint32(head[53:], uint32(by.sequence))
	binary.BigEndian.PutUint32(head[57:], uint32(len(msgs)))
	if b.parts = appendRecords(head, msgs); compression != 0 {
		var packed bytes.Buffer
		packed.Write(head)
		w := compression.Codec().NewWriter(&packed)
		b.parts[0] = b.parts[0][batchHead:]
		for _, p := range b.parts {
			_, _ = w.Write(p) // a buffer takes all
		}
		_ = w.Close()
		b.parts = [][]byte{packed.Bytes()}
	}
	head = b.parts[0]
	sum := crc32.Checksum(head[21:], castagnoli)
	b.size = len(head)
	for _, p := range b.parts[1:] {
		sum = crc32.Update(sum, castagnoli, p)
		b.size += len(p)
	}
	binary.BigEndian.PutUint32(head[8:], uint32(b.size-batchPrefix))
	binary.BigEndian.PutUint32(head[17:], sum)
	return b
}

// sizeOfSmall returns about how many bytes messages take in a batch, without the values that are parts of their own.
func sizeOfSmall(msgs []*Message) (n int) {
	for _, m := range msgs {
		if n += m.Size(); len(m.Value) >= ownPart {
			n -= len(m.Value)
		}
	}
	return n
}

// appendRecords appends the records of messages to a batch and returns its parts.
func appendRecords(b []byte, msgs []*Message) (parts [][]byte) {
	parts = make([][]byte, 0, 3)
	for i, m := range msgs {
		size := 2 + varintSize(int64(i)) + varintSize(int64(len(m.Key))) + len(m.Key) + nullableSize(m.Value) + varintSize(int64(len(m.Headers)))
		for _, h := range m.Headers {
			size += varintSize(int64(len(h.Key))) + len(h.Key) + nullableSize(h.Value)
		}
		b = append(binary.AppendVarint(b, int64(size)), 0, 0) // attributes, and ms since the batch's time
		b = binary.AppendVarint(b, int64(i))
		b = append(binary.AppendVarint(b, int64(len(m.Key))), m.Key...)
		if len(m.Value) < ownPart {
			b = appendNullable(b, m.Value)
		} else {
			parts = append(parts, binary.AppendVarint(b, int64(len(m.Value))), m.Value)
			b = make([]byte, 0, sizeOfSmall(msgs[i:]))
		}
		b = binary.AppendVarint(b, int64(len(m.Headers)))
		for _, h := range m.Headers {
			b = append(binary.AppendVarint(b, int64(len(h.Key))), h.Key...)
			b = appendNullable(b, h.Value)
		}
	}
	return append(parts, b)
}

// varintSize returns how many bytes AppendVarint appends.
func varintSize(v int64) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutVarint(b[:], v)
}

// nullableSize returns how many bytes appendNullable appends.
func nullableSize(v []byte) int {
	if v == nil {
		return 1
	}
	return varintSize(int64(len(v))) + len(v)
}

// appendNullable appends the length of v as a varint, -1 for nil, and v.
func appendNullable(b, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(b, -1)
	}
	return append(binary.AppendVarint(b, int64(len(v))), v...)
}

// produceRequest writes batches to the broker that leads their partitions. It hands their parts to the connection one after
// the other: the client library would copy them.
type produceRequest struct {
	clientID    string
	transaction string        // id; empty: none
	timeout     time.Duration // for the replicas
	batches     []batch
	version     int16
}

// ApiKey implements protocol.Message.
func (r *produceRequest) ApiKey() protocol.ApiKey { return protocol.Produce }

// speaks takes the version from what the broker speaks. Version 9 has another form.
func (r *produceRequest) speaks(newest map[protocol.ApiKey]int16) {
	r.version = min(newest[protocol.Produce], 8)
}

// Required implements protocol.RawExchanger.
func (r *produceRequest) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange implements protocol.RawExchanger. When it returns, no one reads the batches any more.
func (r *produceRequest) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if r.version < 3 {
		return nil, errOldBroker
	}
	if err := r.write(rw); err != nil {
		return nil, err
	}
	res := kmsg.NewPtrProduceResponse()
	res.Version = r.version
	return takeAnswer(rw, res)
}

// write sends the request.
func (r *produceRequest) write(w io.Writer) error {
	b := make([]byte, 4, 512)
	text := func(s string) { b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	b = binary.BigEndian.AppendUint16(b, uint16(protocol.Produce))
	b = binary.BigEndian.AppendUint16(b, uint16(r.version))
	b = binary.BigEndian.AppendUint32(b, 1) // number of the request
	text(r.clientID)
	if r.transaction == "" {
		b = append(b, 0xff, 0xff)
	} else {
		text(r.transaction)
	}
	b = append(b, 0xff, 0xff) // all replicas
	b = binary.BigEndian.AppendUint32(b, uint32(r.timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.batches)))
	size := len(b)
	for _, one := range r.batches {
		size += 2 + len(one.topic) + 12 + one.size
	}
	binary.BigEndian.PutUint32(b, uint32(size-4))
	for _, one := range r.batches {
		text(one.topic)
		b = binary.BigEndian.AppendUint32(b, 1)
		b = binary.BigEndian.AppendUint32(b, uint32(one.partition))
		b = binary.BigEndian.AppendUint32(b, uint32(one.size))
		for _, p := range one.parts {
			if len(p) < ownPart {
				b = append(b, p...)
				continue
			}
			if _, err := w.Write(b); err != nil {
				return err
			}
			if _, err := w.Write(p); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	if len(b) == 0 {
		return nil
	}
	_, err := w.Write(b)
	return err
}

// produce sends a request to a broker and returns its answer.
func (t *transport) produce(ctx context.Context, leader int32, req *produceRequest) (*kmsg.ProduceResponse, error) {
	req.clientID = t.cfg.ClientID
	res, err := t.toNode(ctx, leader, req)
	if err != nil {
		return nil, err
	}
	return res.(*rawResponse).Response.(*kmsg.ProduceResponse), nil
}

// produceOnce writes messages to a partition.
func (c *client) produceOnce(ctx context.Context, to place, msgs []*Message) error {
	now, err := c.t.know(ctx, false, to.topic)
	if err != nil {
		return err
	}
	leader, err := now.leader(to)
	if err != nil {
		return err
	}
	res, err := c.t.produce(ctx, leader, &produceRequest{timeout: callTimeout / 2, batches: []batch{encodeBatch(to, msgs, anyone)}})
	if err != nil {
		return err
	}
	if len(res.Topics) != 1 || len(res.Topics[0].Partitions) != 1 {
		return fmt.Errorf("bus: topic %s partition %d: the answer is of other partitions", to.topic, to.partition)
	}
	if code := kafka.Error(res.Topics[0].Partitions[0].ErrorCode); code != 0 {
		return fmt.Errorf("bus: topic %s partition %d: %w", to.topic, to.partition, code)
	}
	return nil
}
