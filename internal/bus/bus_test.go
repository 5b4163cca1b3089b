package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// patience bounds waits that should take a moment. It does not measure speed: on a busy
// machine Apache Kafka takes that long to come back.
var patience = func() time.Duration {
	if kafkatest.Version() != "" {
		return 4 * time.Minute
	}
	return 3 * time.Minute
}()

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestMain(m *testing.M) {
	await.Together()
	os.Exit(kafkatest.Main(m))
}

// anyBroker returns how to reach a broker without topics: the Apache Kafka that
// FLANK_KAFKA names, or an embedded one.
func anyBroker(t testing.TB) Config {
	t.Helper()
	if kafkatest.Version() == "" {
		_, cfg := startBroker(t)
		return cfg
	}
	return Config{Brokers: []string{kafkatest.Shared(t).Addr}, ClientID: "test"}
}

// startBroker starts an embedded broker in memory, for its own tests and for tests that inject faults. They do not run where
// FLANK_KAFKA names another one.
func startBroker(t testing.TB) (*Broker, Config) {
	t.Helper()
	if kafkatest.Version() != "" {
		t.Skip("on the embedded broker: go test runs it")
	}
	b, err := StartBroker("", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, b.Config("test")
}

// ask sends a request that the package does not send.
func ask(t testing.TB, cfg Config, req kmsg.Request) kmsg.Response {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	res, err := cl.Request(testContext(t), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// createTopic creates a topic as another program would, with one setting.
func createTopic(t testing.TB, cfg Config, topic string, partitions int32, name, value string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = []kmsg.CreateTopicsRequestTopic{{
		Topic: topic, NumPartitions: partitions, ReplicationFactor: 1,
		Configs: []kmsg.CreateTopicsRequestTopicConfig{{Name: name, Value: &value}},
	}}
	if err := kerr.ErrorForCode(ask(t, cfg, req).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// deleteRecords removes the messages below offset, as retention would.
func deleteRecords(t testing.TB, cfg Config, topic string, partition int32, offset int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 10_000
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{
		Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}},
	}}
	if err := kerr.ErrorForCode(ask(t, cfg, req).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// deleteTopic removes a topic and returns when the broker has forgotten it.
func deleteTopic(t testing.TB, cfg Config, topic string) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 10_000
	req.TopicNames = []string{topic}
	req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &topic}}
	if err := kerr.ErrorForCode(ask(t, cfg, req).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
	c := openClient(t, cfg)
	for {
		ctx := testContext(t)
		if _, err := c.askPartitions(ctx, topic); errors.Is(err, ErrNoTopic) {
			return
		} else if ctx.Err() != nil {
			t.Fatal("the topic is still there")
		}
	}
}

// openClient returns a client that is closed when the test ends.
func openClient(t testing.TB, cfg Config) *client {
	t.Helper()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

func apply(t testing.TB, cfg Config, partitions int) {
	t.Helper()
	if _, err := Apply(testContext(t), cfg, partitions, 1); err != nil {
		t.Fatal(err)
	}
}

func newProducer(t testing.TB, cfg Config) *Producer {
	t.Helper()
	p, err := NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func windows(key string, from, to int) (msgs []Message) {
	for i := from; i < to; i++ {
		msgs = append(msgs, Message{Topic: TopicWindows, Key: key, Value: fmt.Appendf(nil, "%s/%d", key, i), Headers: []Header{{"seq", fmt.Append(nil, i)}}})
	}
	return msgs
}

func send(t testing.TB, p *Producer, msgs []Message) {
	t.Helper()
	if err := p.Send(testContext(t), msgs); err != nil {
		t.Fatal(err)
	}
}

// readAll returns the values of a topic by key, in order.
func readAll(t testing.TB, cfg Config, topic string) map[string][]string {
	t.Helper()
	got := make(map[string][]string)
	err := ReadTopic(testContext(t), cfg, topic, FirstOffset, false, func(m Message) error {
		got[m.Key] = append(got[m.Key], string(m.Value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func values(msgs []Message) (v []string) {
	for _, m := range msgs {
		v = append(v, string(m.Value))
	}
	return v
}

func TestSendAndRead(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 4)
	p := newProducer(t, cfg)
	var msgs []Message
	want := make(map[string][]string)
	for i := range 500 {
		key := fmt.Sprint("machine ", i%7)
		msgs = append(msgs, windows(key, i, i+1)...)
		want[key] = append(want[key], fmt.Sprintf("%s/%d", key, i))
	}
	began := time.Now().Truncate(time.Millisecond)
	send(t, p, msgs)
	if got := readAll(t, cfg, TopicWindows); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	m := Message{Topic: TopicModels, Key: "k", Time: time.Unix(0, 0), Headers: []Header{{"a", []byte("1")}, {"a", nil}}}
	send(t, p, []Message{m})
	err := ReadFrom(testContext(t), cfg, TopicModels, 0, FirstOffset, false, func(got Message) error {
		if got.Key != "k" || got.Value != nil || string(got.Header("a")) != "1" || len(got.Headers) != 2 || got.Time.Before(began) {
			t.Errorf("got %+v, sent %+v after %v", got, m, began)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReadFromOffsets(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	send(t, p, windows("k", 0, 10))
	for offset, want := range map[int64]int{FirstOffset: 10, 0: 10, 7: 3, 10: 0, lastOffset: 0} {
		n := 0
		if err := ReadFrom(testContext(t), cfg, TopicWindows, 0, offset, false, func(Message) error { n++; return nil }); err != nil || n != want {
			t.Errorf("from %d: %d messages, want %d; %v", offset, n, want, err)
		}
	}
	stop := errors.New("enough")
	next := 8
	err := ReadFrom(testContext(t), cfg, TopicWindows, 0, 8, true, func(m Message) error {
		if string(m.Value) != fmt.Sprint("k/", next) {
			t.Errorf("message %q, want k/%d", m.Value, next)
		}
		switch next++; next {
		case 10:
			send(t, p, windows("k", 10, 12)) // with follow, it is read too
		case 12:
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("ReadFrom ended with %v", err)
	}
}

// Messages that retention removed before they were read do not stop the reader.
func TestOffsetsRemoved(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	send(t, newProducer(t, cfg), windows("k", 0, 30))
	deleteRecords(t, cfg, TopicWindows, 0, 20)
	said := ""
	cfg.OnRetry = func(err error, _ time.Duration) {
		if err != nil {
			said = err.Error()
		}
	}
	var got []Message
	err := ReadFrom(testContext(t), cfg, TopicWindows, 0, 5, false, func(m Message) error { got = append(got, m); return nil })
	if err != nil || !slices.Equal(values(got), values(windows("k", 20, 30))) || !strings.Contains(said, "offset 5 is gone, going on at 20") {
		t.Errorf("%q, %v; said %q", values(got), err, said)
	}
}

// Other programs may write in transactions. Their markers are not messages, and a reader
// does not wait at a marker at the end.
func TestTransactionMarkers(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	for i := range 3 {
		inTransaction(t, cfg, "tx", []Message{{Topic: TopicWindows, Key: "k", Value: fmt.Append(nil, i)}}, commitIt)
	}
	got := readAll(t, cfg, TopicWindows)
	if !slices.Equal(got["k"], []string{"0", "1", "2"}) {
		t.Errorf("got %q", got["k"])
	}
	if len(got) != 1 {
		t.Errorf("markers among the messages: %q", got)
	}
}

// How inTransaction ends its transaction.
const (
	commitIt = iota
	abortIt
	leaveOpen
)

// inTransaction sends messages in one transaction of another client library.
func inTransaction(t testing.TB, cfg Config, id string, msgs []Message, end int) {
	t.Helper()
	ctx := testContext(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.TransactionalID(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		r := &kgo.Record{Topic: m.Topic, Key: []byte(m.Key), Value: m.Value}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if end == leaveOpen {
		return
	}
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(end == commitIt)); err != nil {
		t.Fatal(err)
	}
	cl.Close()
}

// A step of a check asks again while a leader moves, and not after another error.
func TestRepeat(t *testing.T) {
	c := openClient(t, anyBroker(t))
	moved := fmt.Errorf("partition 5: %w", kafka.NotLeaderForPartition)
	for name, tc := range map[string]struct {
		answers []error
		want    error
	}{
		"a leader moves": {[]error{moved, kafka.LeaderNotAvailable, nil}, nil},
		"no right":       {[]error{moved, kafka.TopicAuthorizationFailed, nil}, kafka.TopicAuthorizationFailed},
	} {
		asked := 0
		err := repeat(testContext(t), c, func() error { asked++; return tc.answers[asked-1] })
		if !errors.Is(err, tc.want) || asked != slices.Index(tc.answers, tc.want)+1 {
			t.Errorf("%s: %v after asking %d times", name, err, asked)
		}
	}
}
