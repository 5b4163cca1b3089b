package bus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadataPause is how long what a broker says of the cluster holds at least: all partitions
// of a broker that is gone ask at the same time.
const metadataPause = 50 * time.Millisecond

// cluster is what a broker has said about brokers and topics. It is not modified.
type cluster struct {
	protocol.Cluster                        // topics that can be used
	refused          map[string]kafka.Error // why other topics cannot be
	at               time.Time
}

// question asks for the cluster.
type question struct {
	done chan struct{}
	err  error
}

// expire notes that the cluster may have changed: the next request asks again before it is sent.
func (t *transport) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale = true
}

// know returns what is known of the cluster and of topics. It asks a broker if a topic is not
// known, after expire, or if fresh, always. Otherwise it asks every metadataTTL, and does not wait for the
// answer.
func (t *transport) know(ctx context.Context, fresh bool, topics ...string) (*cluster, error) {
	for first := true; ; first = false {
		t.mu.Lock()
		for _, topic := range topics {
			t.topics[topic] = true
		}
		now := t.cluster
		age := time.Since(now.at)
		knows := now.knows(topics, age < metadataPause)
		if !fresh && knows && (!t.stale || age < metadataPause) {
			if age > t.cfg.metadataTTL() {
				t.ask()
			}
			t.mu.Unlock()
			return now, nil
		}
		q, began := t.ask()
		t.mu.Unlock()
		select {
		case <-q.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !began && first {
			continue // that one may have been asked without the topics
		}
		t.mu.Lock()
		now = t.cluster
		t.mu.Unlock()
		if q.err != nil && (fresh || !now.knows(topics, false)) {
			return nil, q.err
		}
		return now, nil
	}
}

// knows reports whether a broker has said something about topics.
func (c *cluster) knows(topics []string, refused bool) bool {
	for _, topic := range topics {
		_, bad := c.refused[topic]
		if _, ok := c.Topics[topic]; !ok && !(bad && refused) {
			return false
		}
	}
	return !c.at.IsZero()
}

// ask asks for the cluster and for the topics in use, in a goroutine of its own. If that is
// under way it returns the question. The caller holds mu.
func (t *transport) ask() (q *question, began bool) {
	if t.asking != nil {
		return t.asking, false
	}
	q = &question{done: make(chan struct{})}
	t.asking = q
	req := &metadata.Request{TopicNames: slices.AppendSeq([]string{}, maps.Keys(t.topics))} // nil would ask for all topics
	slices.Sort(req.TopicNames)
	go func() {
		defer close(q.done)
		ctx, cancel := context.WithTimeout(t.ctx, callTimeout)
		defer cancel()
		res, err := t.anyone(ctx, req)
		t.mu.Lock()
		defer t.mu.Unlock()
		if q.err = err; err == nil {
			t.cluster, t.stale = clusterOf(res.(*metadata.Response)), false
		}
		t.asking = nil
	}()
	return q, true
}

func clusterOf(res *metadata.Response) *cluster {
	c := &cluster{refused: make(map[string]kafka.Error), at: time.Now()}
	c.Controller, c.Brokers, c.Topics = res.ControllerID, make(map[int32]protocol.Broker), make(map[string]protocol.Topic)
	for _, b := range res.Brokers {
		c.Brokers[b.NodeID] = protocol.Broker{ID: b.NodeID, Host: b.Host, Port: b.Port, Rack: b.Rack}
	}
	for _, topic := range res.Topics {
		if topic.ErrorCode != 0 {
			if c.refused[topic.Name] = kafka.Error(topic.ErrorCode); topic.ErrorCode == int16(kafka.TopicAuthorizationFailed) {
				c.refused[topic.Name] = kafka.UnknownTopicOrPartition // Kafka says the same of a topic that is not there
			}
			continue
		}
		parts := make(map[int32]protocol.Partition, len(topic.Partitions))
		for _, p := range topic.Partitions {
			parts[p.PartitionIndex] = protocol.Partition{ID: p.PartitionIndex, Error: p.ErrorCode, Leader: p.LeaderID, Replicas: p.ReplicaNodes}
		}
		c.Topics[topic.Name] = protocol.Topic{Name: topic.Name, Partitions: parts}
	}
	return c
}

// topic returns a topic, or the error of a broker that does not show it.
func (c *cluster) topic(name string) (protocol.Topic, error) {
	if topic, ok := c.Topics[name]; ok {
		return topic, nil
	}
	if err, ok := c.refused[name]; ok {
		return protocol.Topic{}, fmt.Errorf("topic %s: %w", name, err)
	}
	return protocol.Topic{}, fmt.Errorf("topic %s: %w", name, kafka.UnknownTopicOrPartition)
}

// leader returns the number of the broker that leads a partition.
func (c *cluster) leader(at place) (int32, error) {
	topic, err := c.topic(at.topic)
	if err != nil {
		return 0, err
	}
	p, ok := topic.Partitions[int32(at.partition)]
	if !ok {
		return 0, fmt.Errorf("topic %s partition %d: %w", at.topic, at.partition, kafka.UnknownTopicOrPartition)
	}
	if _, ok := c.Brokers[p.Leader]; !ok {
		return 0, fmt.Errorf("topic %s partition %d: %w", at.topic, at.partition, kafka.LeaderNotAvailable)
	}
	return p.Leader, nil
}

// offsetAnswer is where a time lies in a partition.
type offsetAnswer struct {
	offset int64 // -1: behind the end
	err    error
}

// offsets asks for the offsets that belong to times in ms, or to FirstOffset or LastOffset, in
// partitions of a topic. It sends one request to each broker that leads some of them. If
// committed, LastOffset is the one before which every transaction has ended.
func (t *transport) offsets(ctx context.Context, topic string, times map[int]int64, committed bool) (map[int]offsetAnswer, error) {
	now, err := t.know(ctx, false, topic)
	if err != nil {
		return nil, err
	}
	answers := make(map[int]offsetAnswer)
	asks := make(map[int32]*listoffsets.Request)
	for _, partition := range slices.Sorted(maps.Keys(times)) {
		node, err := now.leader(place{topic, partition})
		if err != nil {
			answers[partition] = offsetAnswer{err: err}
			continue
		}
		if asks[node] == nil {
			asks[node] = &listoffsets.Request{ReplicaID: -1, Topics: []listoffsets.RequestTopic{{Topic: topic}}}
			if committed {
				asks[node].IsolationLevel = int8(kafka.ReadCommitted)
			}
		}
		to := &asks[node].Topics[0]
		to.Partitions = append(to.Partitions, listoffsets.RequestPartition{Partition: int32(partition), CurrentLeaderEpoch: -1, Timestamp: times[partition]})
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for node, req := range asks {
		wg.Go(func() {
			res, err := askBroker[*listoffsets.Response](ctx, t, node, req)
			mu.Lock()
			defer mu.Unlock()
			for _, p := range req.Topics[0].Partitions {
				answers[int(p.Partition)] = offsetAnswer{err: cmpNil(err, errNotAnswered)}
			}
			if err != nil {
				return
			}
			for _, part := range res.Topics {
				for _, p := range part.Partitions {
					if a := (offsetAnswer{offset: p.Offset}); part.Topic == topic {
						if p.ErrorCode != 0 {
							a.err = kafka.Error(p.ErrorCode)
						}
						answers[int(p.Partition)] = a
					}
				}
			}
		})
	}
	wg.Wait()
	return answers, nil
}

var errNotAnswered = errors.New("not in the answer")

// cmpNil returns the first error that is not nil.
func cmpNil(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// offset is offsets for one partition.
func (t *transport) offset(ctx context.Context, at place, time int64, committed bool) (int64, error) {
	answers, err := t.offsets(ctx, at.topic, map[int]int64{at.partition: time}, committed)
	if err != nil {
		return 0, err
	}
	if err := answers[at.partition].err; err != nil {
		return 0, fmt.Errorf("bus: offsets of topic %s partition %d: %w", at.topic, at.partition, err)
	}
	return answers[at.partition].offset, nil
}

// endOf returns the offset behind the newest message of a partition that may be read.
func (t *transport) endOf(ctx context.Context, at place) (int64, error) {
	return t.offset(ctx, at, LastOffset, committedOnly(at.topic))
}

// offsetAt returns the offset that FirstOffset or LastOffset stands for now.
func offsetAt(ctx context.Context, kc *kafka.Client, topic string, partition int, at int64) (int64, error) {
	return transportOf(kc).offset(ctx, place{topic, partition}, at, false)
}

// topicID is the id that Kafka gives a new topic; zero if it is not known.
type topicID [16]byte

// idRequest asks for the id of a topic, which the client library does not know of.
type idRequest struct {
	metadata.Request
	topic    string
	clientID string
	version  int16
}

// speaks takes the version of the request from what the broker speaks.
func (r *idRequest) speaks(newest map[protocol.ApiKey]int16) {
	r.version = min(newest[protocol.Metadata], (&kmsg.MetadataRequest{}).MaxVersion())
}

// Required implements protocol.RawExchanger.
func (r *idRequest) Required(map[protocol.ApiKey]int16) bool { return true }

// idResponse is the answer to an idRequest.
type idResponse struct {
	metadata.Response
	id topicID
}

// RawExchange implements protocol.RawExchanger.
func (r *idRequest) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &r.topic
	req.Topics = append(req.Topics, asked)
	req.SetVersion(r.version)
	if _, err := rw.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(r.clientID)).AppendRequest(nil, req, 1)); err != nil {
		return nil, err
	}
	body, err := readBody(rw)
	if err != nil {
		return nil, err
	}
	defer giveBody(body)
	head := 4 // the number of the request
	if req.IsFlexible() {
		head++ // no tags
	}
	res := req.ResponseKind().(*kmsg.MetadataResponse)
	if len(body) < head {
		return nil, errAnswer
	}
	if err := res.ReadFrom(body[head:]); err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	answer := new(idResponse)
	if len(res.Topics) == 1 && res.Topics[0].ErrorCode == 0 {
		answer.id = res.Topics[0].TopicID
	}
	return answer, nil
}

// askID asks for the id of a topic, once.
func (t *transport) askID(ctx context.Context, topic string) topicID {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	res, err := t.anyone(ctx, &idRequest{topic: topic, clientID: t.cfg.ClientID})
	if err != nil {
		return topicID{}
	}
	return res.(*idResponse).id
}

// readBody reads an answer, without the four bytes of its length.
func readBody(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxResponse {
		return nil, errNotKafka
	}
	body := takeBody(int(n))
	_, err := io.ReadFull(r, body)
	return body, err
}
