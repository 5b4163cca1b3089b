package bus

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A batch has the bytes that the client library makes, whether values are parts of their own or not.
func TestBatchIsTheLibrarys(t *testing.T) {
	long := func(n int) []byte { return slices.Repeat([]byte("0123456789abcdef"), n/16+1)[:n] }
	headers := []Header{{"a", []byte("1")}, {"empty", []byte{}}, {"nil", nil}, {"", long(300)}}
	for name, tc := range map[string]struct {
		topic string
		msgs  []Message
		parts int
	}{
		"one":                      {TopicWindows, []Message{{Key: "k", Value: []byte("v")}}, 1},
		"no value, no key":         {TopicState, []Message{{}, {Value: []byte{}}}, 1},
		"headers":                  {TopicWindows, []Message{{Key: "k", Value: []byte("v"), Headers: headers}, {Key: "l", Headers: headers[:1]}}, 1},
		"just short":               {TopicWindows, []Message{{Key: "k", Value: long(ownPart - 1), Headers: headers}}, 1},
		"just long":                {TopicWindows, []Message{{Key: "k", Value: long(ownPart), Headers: headers}}, 3},
		"long between short":       {TopicWindows, []Message{{Key: "k", Value: long(9)}, {Key: "k", Value: long(900_000), Headers: headers}, {Key: "k", Value: long(7)}}, 3},
		"long next to long":        {TopicWindows, []Message{{Key: "k", Value: long(20_000), Headers: headers}, {Key: "k", Value: long(30_000)}}, 5},
		"more than 127":            {TopicResults, slices.Repeat([]Message{{Key: "k", Value: []byte("v")}}, 200), 1},
		"compressed":               {TopicFeatures, slices.Repeat([]Message{{Key: "k", Value: long(12_000), Headers: headers}}, 9), 1},
		"compressed, of long ones": {TopicFeatures, slices.Repeat([]Message{{Key: "k", Value: long(70_000), Headers: headers}}, 3), 1},
	} {
		b := encodeBatch(place{topic: tc.topic}, pointers(tc.msgs), anyone)
		got := bytes.Join(b.parts, nil)
		at := time.UnixMilli(int64(binary.BigEndian.Uint64(got[27:])))
		if age := time.Since(at); age < 0 || age > time.Hour {
			t.Errorf("%s: of %v", name, at)
		}
		var records []kafka.Record
		for _, m := range tc.msgs {
			r := kafka.Record{Time: at, Key: kafka.NewBytes([]byte(m.Key)), Value: kafka.NewBytes(m.Value)}
			for _, h := range m.Headers {
				r.Headers = append(r.Headers, kafka.Header{Key: h.Key, Value: h.Value})
			}
			records = append(records, r)
		}
		set := protocol.RecordSet{Version: 2, Attributes: protocol.Attributes(compressionOf(tc.topic)), Records: kafka.NewRecordReader(records...)}
		var want bytes.Buffer
		if _, err := set.WriteTo(&want); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()[4:]) || b.size != len(got) || len(b.parts) != tc.parts {
			t.Errorf("%s: %d bytes in %d parts, want %d in %d:\n%s", name, len(got), len(b.parts), want.Len()-4, tc.parts, difference(got, want.Bytes()[4:]))
		}
	}
}

// difference says where two texts begin to differ.
func difference(a, b []byte) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("at %d: %x, want %x", i, a[i:min(i+16, len(a))], b[i:min(i+16, len(b))])
		}
	}
	return "one is longer"
}

// slowBroker leads one partition of the windows topic. It reads a part of its first request to write messages, and the rest
// after any client has lost patience.
type slowBroker struct {
	patience time.Duration
	mu       sync.Mutex
	slowed   bool
	read     [][]byte // requests to write messages, as far as they came, without the first eight bytes
}

func (b *slowBroker) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go b.serve(server)
	return client, nil
}

func (b *slowBroker) serve(c net.Conn) {
	defer c.Close()
	for {
		var head [8]byte // length, what is asked for, and in which version
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		key, version := int16(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:]))
		body, err := b.rest(c, key, int(binary.BigEndian.Uint32(head[:]))-4)
		if kmsg.Key(key) == kmsg.Produce {
			b.mu.Lock()
			b.read = append(b.read, body)
			b.mu.Unlock()
		}
		if err != nil {
			return
		}
		res := b.answer(kmsg.Key(key))
		res.SetVersion(version)
		out := append(make([]byte, 4), body[:4]...) // its number
		if res.IsFlexible() && res.Key() != int16(kmsg.ApiVersions) {
			out = append(out, 0)
		}
		out = res.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

// rest reads what follows the first bytes of a request.
func (b *slowBroker) rest(c net.Conn, key int16, n int) ([]byte, error) {
	body := make([]byte, n)
	b.mu.Lock()
	slow := !b.slowed && kmsg.Key(key) == kmsg.Produce
	b.slowed = b.slowed || slow
	b.mu.Unlock()
	got := 0
	if slow {
		got, _ = io.ReadFull(c, body[:n/3])
		time.Sleep(b.patience)
	}
	more, err := io.ReadFull(c, body[got:])
	return body[:got+more], err
}

func (b *slowBroker) answer(key kmsg.Key) kmsg.Response {
	switch key {
	case kmsg.ApiVersions:
		res := kmsg.NewPtrApiVersionsResponse()
		for key, newest := range map[kmsg.Key]int16{kmsg.ApiVersions: 0, kmsg.Metadata: 9, kmsg.Produce: 8} {
			res.ApiKeys = append(res.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: int16(key), MaxVersion: newest})
		}
		return res
	case kmsg.Metadata:
		name := TopicWindows
		res := kmsg.NewPtrMetadataResponse()
		res.Brokers = []kmsg.MetadataResponseBroker{{NodeID: 1, Host: "slow", Port: 9092}}
		res.Topics = []kmsg.MetadataResponseTopic{{Topic: &name, Partitions: []kmsg.MetadataResponseTopicPartition{{Leader: 1}}}}
		return res
	}
	res := kmsg.NewPtrProduceResponse()
	res.Topics = []kmsg.ProduceResponseTopic{{Topic: TopicWindows, Partitions: []kmsg.ProduceResponseTopicPartition{{}}}}
	return res
}

// Once Send has returned, no one reads the memory of the messages: not even a request that a slow broker had not read when the
// client lost patience, or when the caller did.
func TestSentMemoryIsTheCallers(t *testing.T) {
	for name, giveUp := range map[string]time.Duration{"the client": 0, "the caller": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &slowBroker{patience: 5 * callTimeout}
				p := newProducer(t, Config{Brokers: []string{"slow:9092"}, Network: &Network{Dial: b.dial, MetadataTTL: time.Hour}})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if giveUp > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), giveUp)
				}
				defer cancel()
				value := bytes.Repeat([]byte{1}, 900_000)
				err := p.Send(ctx, []Message{{Topic: TopicWindows, Key: "k", Value: value}})
				if (err == nil) != (giveUp == 0) {
					t.Errorf("Send: %v", err)
				}
				for i := range value { // the next window
					value[i] = 2
				}
				time.Sleep(10 * callTimeout)
				b.mu.Lock()
				defer b.mu.Unlock()
				whole := 0
				for _, got := range b.read {
					if bytes.Count(got, []byte{2, 2, 2, 2}) > 0 {
						t.Errorf("a request of %d bytes has some of the next window", len(got))
					}
					if len(got) > len(value) {
						whole++
					}
				}
				if want := map[bool]int{true: 1}[giveUp == 0]; whole != want {
					t.Errorf("%d whole requests, want %d", whole, want)
				}
			})
		})
	}
}
