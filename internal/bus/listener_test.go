package bus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The embedded broker refuses messages that no reader could read, as Apache Kafka does. The
// connection stays open.
func TestBrokerRefusesDamage(t *testing.T) {
	_, cfg := startBroker(t)
	apply(t, cfg, 1)
	for name, bad := range hostile(t) {
		err := produceRaw(t, cfg, TopicState, craftBatch(0, 1, bad.attributes, noProducer, bad.payload))
		if name == "another batch's offset" {
			continue // Apache Kafka corrects it, and readers check it
		}
		if !errors.Is(err, kerr.InvalidRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := produceRaw(t, cfg, TopicState, craftBatch(0, 1, 0, noProducer, craftRecords("good"))); err != nil {
		t.Error(err)
	}
	if got := readAll(t, cfg, TopicState)["k"]; !slices.Equal(got, []string{"good"}) && len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// A large length takes no memory before its bytes come. A request that is too long or of an
// unknown kind ends its connection and nothing else.
func TestBrokerGuards(t *testing.T) {
	b, cfg := startBroker(t)
	request := func(size uint32, key, version int16) []byte {
		r := binary.BigEndian.AppendUint32(nil, size)
		r = binary.BigEndian.AppendUint16(r, uint16(key))
		r = binary.BigEndian.AppendUint16(r, uint16(version))
		return append(r, 0, 0, 0, 1)
	}
	for name, sent := range map[string][]byte{
		"4 GiB":                    binary.BigEndian.AppendUint32(nil, 1<<32-1),
		"4 GiB to write":           request(1<<32-1, 0, 9),
		"a long question":          request(maxRequest+1, 3, 9),
		"no request at all":        request(0, 3, 9),
		"an unknown request":       request(8, 999, 0),
		"a negative one":           request(8, -1, 0),
		"a write of version 2":     append(request(8, 0, 2), 0, 0),
		"a write of version 99":    request(8, 0, 99),
		"a write that breaks off":  request(8, 0, 9),
		"a web browser's question": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
	} {
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(append(sent, make([]byte, 64)...)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %d bytes, %v: want the connection closed", name, n, err)
		}
		c.Close()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 16 {
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(request(maxProduce, 0, 9)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Probe(testContext(t), cfg); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > maxProduce {
		t.Errorf("%d bytes taken for 16 lengths", took)
	}
}

// aProduceRequest returns a request for two topics, as the library of another client
// encodes it.
func aProduceRequest(version int16) (*kmsg.ProduceRequest, []byte) {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks = version, -1
	id := "tcm-monitor-1"
	req.TransactionID = &id
	for i, name := range []string{"a", "topic"} {
		t := kmsg.NewProduceRequestTopic()
		t.Topic = name
		t.TopicID[3] = byte(i + 1)
		for p := range int32(i + 1) {
			part := kmsg.NewProduceRequestTopicPartition()
			part.Partition, part.Records = p*7, craftBatch(0, 1, 0, noProducer, craftRecords(name))
			t.Partitions = append(t.Partitions, part)
		}
		req.Topics = append(req.Topics, t)
	}
	return req, kmsg.NewRequestFormatter(kmsg.FormatterClientID("me")).AppendRequest(nil, req, 77)[4:]
}

func TestParseProduce(t *testing.T) {
	for version := int16(3); version <= 13; version++ {
		want, b := aProduceRequest(version)
		got, damage, err := parseProduce(b)
		if err != nil || damage != nil || got.number != 77 || got.acks != -1 || got.refusal.Version != version || len(got.refusal.Topics) != 2 {
			t.Fatalf("version %d: %+v, %v, %v", version, got, damage, err)
		}
		for i, topic := range got.refusal.Topics {
			var partitions, found []int32
			for _, p := range want.Topics[i].Partitions {
				partitions = append(partitions, p.Partition)
			}
			for _, p := range topic.Partitions {
				found = append(found, p.Partition)
			}
			if version < 13 && topic.Topic != want.Topics[i].Topic || version == 13 && topic.TopicID != want.Topics[i].TopicID || !slices.Equal(found, partitions) {
				t.Errorf("version %d: %+v, want %+v", version, topic, want.Topics[i])
			}
		}
		refusal := got.refuse(errRecord)
		res := kmsg.NewPtrProduceResponse()
		res.Version = version
		body := refusal[8:]
		if res.IsFlexible() {
			body = body[1:]
		}
		if err := res.ReadFrom(body); err != nil || binary.BigEndian.Uint32(refusal) != uint32(len(refusal)-4) || binary.BigEndian.Uint32(refusal[4:]) != 77 {
			t.Fatalf("version %d: refusal %x: %v", version, refusal, err)
		}
		for i, topic := range res.Topics {
			for j, p := range topic.Partitions {
				if p.ErrorCode != kerr.InvalidRecord.Code || p.Partition != want.Topics[i].Partitions[j].Partition {
					t.Errorf("version %d: %+v", version, p)
				}
			}
		}
	}
}

// Any bytes are safe, and a request that passes has at most maxProduceTo partitions.
func FuzzProduceRequest(f *testing.F) {
	for _, version := range []int16{3, 8, 9, 13} {
		_, b := aProduceRequest(version)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _, err := parseProduce(b)
		if err != nil || len(b) < 10 {
			return
		}
		n := 0
		for _, topic := range got.refusal.Topics {
			n += len(topic.Partitions)
		}
		if n > maxProduceTo || len(got.refusal.Topics) > len(b) {
			t.Fatalf("%d partitions, %d topics in %d bytes", n, len(got.refusal.Topics), len(b))
		}
	})
}

// copyFolder copies a folder in the state in which a kill would leave it.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// After any number of kills with an open transaction, an embedded broker shows every
// message that is committed later and no message that was not committed.
func TestBrokerKilledInATransaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	for life := range 3 {
		b, err := StartBroker(dir, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		cfg := b.Config("test")
		apply(t, cfg, 1)
		withPartition(t, cfg, func(ctx context.Context, p *Partition) {
			txn := fence(t, ctx, p)
			for i := range 2 {
				value := fmt.Sprint(life, "/", i)
				if err := txn.Publish(ctx, []Message{message(TopicState, value, value), message(TopicResults, "k", value)}, nil); err != nil {
					t.Fatal(err)
				}
				want = append(want, value)
			}
			outs, err := txn.plan(ctx, []Message{message(TopicState, "open", "open"), message(TopicResults, "k", "open")})
			if err == nil {
				err = txn.write(ctx, outs, map[string]int64{TopicWindows: 0})
			}
			if err != nil {
				t.Fatal(err)
			}
			dir = copyFolder(t, dir)
		})
		if got := committed(t, cfg, TopicResults, 0); !slices.Equal(got, want) {
			t.Errorf("life %d, before the kill: %q, want %q", life, got, want)
		}
		b.Close()
	}
	b, err := StartBroker(dir, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, topic := range []string{TopicState, TopicResults} {
		if got := committed(t, b.Config("test"), topic, 0); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
	}
}

// The file that shows a kill exists while a broker runs, and not afterwards.
func TestBrokerMark(t *testing.T) {
	dir := t.TempDir()
	for life := range 2 {
		b, err := StartBroker(dir, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(b.mark); err != nil {
			t.Errorf("life %d: %v", life, err)
		}
		b.Close()
		if _, err := os.Stat(b.mark); !os.IsNotExist(err) {
			t.Errorf("life %d, closed: %v", life, err)
		}
	}
}

// shortenRebalance changes the rebalance timeout in every version of the request, and
// nothing else.
func TestShortenRebalance(t *testing.T) {
	for version := int16(0); version <= joinRequest("").MaxVersion(); version++ {
		for _, asked := range []int32{3_000, 5_000, 5_001, 30_000, -1} {
			req := joinRequest("member")
			req.Version, req.RebalanceTimeoutMillis = version, asked
			b := kmsg.NewRequestFormatter(kmsg.FormatterClientID("me")).AppendRequest(nil, req, 77)[4:]
			shortenRebalance(b)
			if version > 0 && (asked > 5_000 || asked < 0) {
				req.RebalanceTimeoutMillis = 5_000
			}
			if want := kmsg.NewRequestFormatter(kmsg.FormatterClientID("me")).AppendRequest(nil, req, 77)[4:]; !slices.Equal(b, want) {
				t.Errorf("version %d, %d ms: request is\n%x, want\n%x", version, asked, b, want)
			}
			for n := range b {
				shortenRebalance(b[:n]) // it breaks off
			}
		}
	}
}
