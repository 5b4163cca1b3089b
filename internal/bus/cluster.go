package bus

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadataPause is how long what a broker says of the cluster holds at least: all partitions
// of a broker that is gone ask at the same time.
const metadataPause = 50 * time.Millisecond

// staleAfter is how many failures it takes until other brokers are asked than the one that answered last.
const staleAfter = 4

// cluster is what a broker has said about brokers and topics. It is not modified.
type cluster struct {
	protocol.Cluster                        // topics that can be used
	refused          map[string]kafka.Error // why other topics cannot be
	ids              map[string]topicID
	addrs            map[int32]string // of brokers
	at               time.Time
}

// question asks for the cluster.
type question struct {
	done chan struct{}
	now  *cluster // what is known then
	err  error
}

// expire notes that the cluster may have changed: the next request asks again before it is sent.
func (t *transport) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale = true
	clear(t.coordinators)
	if t.expired++; t.expired%staleAfter == 0 {
		t.good = "" // perhaps it answers with what is long over
	}
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
			if age > t.cfg.network().MetadataTTL {
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
		if q.err != nil && (fresh || !q.now.knows(topics, false)) {
			return nil, q.err
		}
		return q.now, nil
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
	req := metadataRequest(slices.Sorted(maps.Keys(t.topics)))
	go func() {
		defer close(q.done)
		res, err := t.raw(t.ctx, anyNode, req)
		t.mu.Lock()
		defer t.mu.Unlock()
		if q.err = err; err == nil {
			t.cluster, t.stale = clusterOf(res.(*kmsg.MetadataResponse), t.cluster), false
		}
		q.now, t.asking = t.cluster, nil
	}()
	return q, true
}

func metadataRequest(topics []string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	req.Topics = []kmsg.MetadataRequestTopic{} // nil would ask for all
	for _, topic := range topics {
		asked := kmsg.NewMetadataRequestTopic()
		asked.Topic = &topic
		req.Topics = append(req.Topics, asked)
	}
	return req
}

// clusterOf returns what a broker has said. A broker that does not know yet that a topic has grown
// does not change it back: the messages of a key would go from one partition to another and back, and
// readers would get later ones first. A topic that was made again has another id.
func clusterOf(res *kmsg.MetadataResponse, before *cluster) *cluster {
	c := &cluster{refused: make(map[string]kafka.Error), ids: make(map[string]topicID), addrs: make(map[int32]string), at: time.Now()}
	c.Controller, c.Brokers, c.Topics = res.ControllerID, make(map[int32]protocol.Broker), make(map[string]protocol.Topic)
	for _, b := range res.Brokers {
		c.Brokers[b.NodeID] = protocol.Broker{ID: b.NodeID, Host: b.Host, Port: b.Port}
		c.addrs[b.NodeID] = net.JoinHostPort(b.Host, fmt.Sprint(b.Port))
	}
	for _, topic := range res.Topics {
		name := ""
		if topic.Topic != nil {
			name = *topic.Topic
		}
		switch code := kafka.Error(topic.ErrorCode); code {
		case 0:
		case kafka.TopicAuthorizationFailed:
			c.refused[name] = kafka.UnknownTopicOrPartition // Kafka says the same of a topic that is not there
			continue
		default:
			c.refused[name] = code
			continue
		}
		parts := make(map[int32]protocol.Partition, len(topic.Partitions))
		for _, p := range topic.Partitions {
			parts[p.Partition] = protocol.Partition{ID: p.Partition, Leader: p.Leader, Replicas: p.Replicas}
		}
		old := before.Topics[name].Partitions
		if id := topicID(topic.TopicID); id != (topicID{}) && id == before.ids[name] && len(parts) < len(old) {
			parts = old
		}
		c.Topics[name], c.ids[name] = protocol.Topic{Name: name, Partitions: parts}, topic.TopicID
	}
	return c
}

// topic returns a topic, or the error of a broker that does not show it.
func (c *cluster) topic(name string) (protocol.Topic, error) {
	if topic, ok := c.Topics[name]; ok {
		return topic, nil
	}
	return protocol.Topic{}, fmt.Errorf("topic %s: %w", name, cmp.Or(c.refused[name], kafka.UnknownTopicOrPartition))
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

// offsets returns the offsets that belong to times in ms, or to FirstOffset, lastOffset or
// newestTime, in partitions of a topic; -1 is behind the end. It sends one request to each broker
// that leads some of them. If committed, lastOffset is the one before which every transaction has
// ended. With an error it returns the offsets that it got.
func (t *transport) offsets(ctx context.Context, topic string, times map[int]int64, committed bool) (found map[int]kmsg.ListOffsetsResponseTopicPartition, err error) {
	now, err := t.know(ctx, false, topic)
	if err != nil {
		return nil, err
	}
	asks, err := now.askOffsets(topic, times, committed)
	var mu sync.Mutex
	var wg sync.WaitGroup
	found = make(map[int]kmsg.ListOffsetsResponseTopicPartition)
	for node, req := range asks {
		wg.Go(func() {
			res, failed := t.raw(ctx, node, req)
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				err = failed
				return
			}
			for _, of := range res.(*kmsg.ListOffsetsResponse).Topics {
				for _, p := range of.Partitions {
					if p.ErrorCode == 0 {
						found[int(p.Partition)] = p
					} else {
						err = fmt.Errorf("bus: offsets of topic %s partition %d: %w", topic, p.Partition, kafka.Error(p.ErrorCode))
					}
				}
			}
		})
	}
	wg.Wait()
	for partition := range times {
		if _, ok := found[partition]; !ok && err == nil {
			err = fmt.Errorf("bus: offsets of topic %s partition %d: %w", topic, partition, errNotAnswered)
		}
	}
	return found, err
}

// askOffsets returns the requests for offsets, by the leader. With an error it returns requests for the partitions that have a leader.
func (c *cluster) askOffsets(topic string, times map[int]int64, committed bool) (asks map[int32]*kmsg.ListOffsetsRequest, err error) {
	asks = make(map[int32]*kmsg.ListOffsetsRequest)
	for _, partition := range slices.Sorted(maps.Keys(times)) {
		node, missing := c.leader(place{topic, partition})
		if missing != nil {
			err = missing
			continue
		}
		if asks[node] == nil {
			asks[node] = &kmsg.ListOffsetsRequest{ReplicaID: -1, Topics: []kmsg.ListOffsetsRequestTopic{{Topic: topic}}}
			if committed {
				asks[node].IsolationLevel = int8(kafka.ReadCommitted)
			}
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = int32(partition), times[partition]
		of := &asks[node].Topics[0]
		of.Partitions = append(of.Partitions, p)
	}
	return asks, err
}

// everywhere returns the same time for each of n partitions.
func everywhere(n int, time int64) map[int]int64 {
	times := make(map[int]int64)
	for p := range n {
		times[p] = time
	}
	return times
}

// newestTime stands for the newest message by its time.
const newestTime = -3

var errNotAnswered = errors.New("not in the answer")

// offset is offsets for one partition.
func (t *transport) offset(ctx context.Context, at place, time int64, committed bool) (int64, error) {
	found, err := t.offsets(ctx, at.topic, map[int]int64{at.partition: time}, committed)
	return found[at.partition].Offset, err
}

// endOf returns the offset behind the newest message of a partition that may be read.
func (t *transport) endOf(ctx context.Context, at place) (int64, error) {
	return t.offset(ctx, at, lastOffset, committedOnly(at.topic))
}

// topicID is the id that Kafka gives a new topic; zero if it is not known.
type topicID [16]byte

// askID asks for the id of a topic, once.
func (t *transport) askID(ctx context.Context, topic string) topicID {
	now, err := t.know(ctx, true, topic)
	if err != nil {
		return topicID{}
	}
	return now.ids[topic]
}

// errOldBroker says that a broker does not speak record batches of version 2.
var errOldBroker = fmt.Errorf("bus: the broker is older than Kafka 0.11: %w", kafka.UnsupportedVersion)

// rawRequest is a request that the client library does not know, or whose answer it would
// trust to have the lengths that it says.
type rawRequest struct {
	kmsg.Request
	clientID string
}

// rawResponse is the answer to a rawRequest.
type rawResponse struct {
	kmsg.Response
	body *Loan // of the answer to a fetch, which is not decoded yet: several readers do that
}

func (r *rawRequest) ApiKey() protocol.ApiKey  { return protocol.ApiKey(r.Key()) }
func (r *rawResponse) ApiKey() protocol.ApiKey { return protocol.ApiKey(r.Key()) }

// newestForms are the last versions of requests before they got another form.
var newestForms = map[protocol.ApiKey]int16{protocol.Fetch: 11, protocol.OffsetFetch: 7}

// speaks takes the version from what the broker speaks.
func (r *rawRequest) speaks(newest map[protocol.ApiKey]int16) {
	version := min(newest[r.ApiKey()], r.MaxVersion())
	if form, ok := newestForms[r.ApiKey()]; ok {
		version = min(version, form)
	}
	r.SetVersion(version)
}

// Required implements protocol.RawExchanger.
func (r *rawRequest) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange implements protocol.RawExchanger.
func (r *rawRequest) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	fetches := r.ApiKey() == protocol.Fetch
	if fetches && r.GetVersion() < 4 {
		return nil, errOldBroker
	}
	if _, err := rw.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(r.clientID)).AppendRequest(nil, r.Request, 1)); err != nil {
		return nil, err
	}
	if !fetches {
		return takeAnswer(rw, r.ResponseKind())
	}
	body, err := readAnswer(rw, maxResponse)
	if err != nil {
		return nil, err
	}
	return &rawResponse{r.ResponseKind(), body}, nil
}

// takeAnswer reads and decodes an answer.
func takeAnswer(rw io.Reader, res kmsg.Response) (protocol.Message, error) {
	body, err := readAnswer(rw, maxRaw)
	if err != nil {
		return nil, err
	}
	defer body.Return()
	return decodeAnswer(body.bytes, res)
}

// decodeAnswer decodes an answer without its length. Any bytes are safe to try.
func decodeAnswer(body []byte, res kmsg.Response) (protocol.Message, error) {
	d := decoder{left: body}
	d.int32() // number of the request
	if res.IsFlexible() {
		d.bytes(1) // no tags
	}
	if err := errors.Join(d.answer(), res.ReadFrom(d.left)); err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	return &rawResponse{Response: res}, nil
}

// readAnswer returns an answer of at most so many bytes, without the four bytes of its length.
func readAnswer(rw io.Reader, most uint32) (*Loan, error) {
	var length [4]byte
	if _, err := io.ReadFull(rw, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > most {
		return nil, errNotKafka
	}
	body := takeBody(int(n))
	if _, err := io.ReadFull(rw, body.bytes); err != nil {
		body.Return()
		return nil, err
	}
	return body, nil
}

// raw sends a request that the client library does not know to the broker with a number, or to
// any, and returns its answer.
func (t *transport) raw(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	send := t.anyone
	if node != anyNode {
		send = func(ctx context.Context, req protocol.Message) (protocol.Message, error) {
			return t.toNode(ctx, node, req)
		}
	}
	res, err := send(ctx, &rawRequest{req, t.cfg.ClientID})
	if err != nil {
		return nil, err
	}
	return res.(*rawResponse).Response, nil
}

// anyNode is not the number of a broker: any of them may answer.
const anyNode int32 = -1

// maxRaw is the most bytes of an answer to a rawRequest: decoded, it may take a hundred times as much memory.
const maxRaw = 4 << 20
