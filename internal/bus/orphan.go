package bus

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// When the embedded broker starts after a kill it aborts the transactions that were open,
// but writes no markers. Readers would then take all later messages of the same producer
// for aborted, and after the next kill the broker itself would take the aborted messages
// for committed. So StartBroker writes the markers before it lets any client in.

// runningMark is the name of a file in the broker's folder while the broker runs.
const runningMark = "running"

// orphanAge is longer than any transaction may be open: Kafka's limit is 15 minutes.
const orphanAge = 16 * time.Minute

// markRunning notes that the broker runs. It reports whether the last broker in the folder
// was killed.
func markRunning(dir string) (killed bool, err error) {
	path := filepath.Join(dir, runningMark)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := cmp.Or(f.Sync(), f.Close()); err != nil {
		return false, err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	return false, cmp.Or(folder.Sync(), folder.Close())
}

// orphans finds and ends the transactions that a killed broker left without a marker.
type orphans struct{ client *kgo.Client }

// endOrphans writes the missing markers and returns how many it wrote.
func endOrphans(ctx context.Context, dial func() (net.Conn, error), addr string) (n int, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxVersions(kversion.V3_0_0()), // newer requests name topics by id
		kgo.Dialer(func(context.Context, string, string) (net.Conn, error) { return dial() }))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	o := orphans{cl}
	meta, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, cl)
	if err != nil {
		return 0, err
	}
	for _, t := range meta.Topics {
		if t.Topic == nil || *t.Topic == TopicWindows || strings.HasPrefix(*t.Topic, "__") {
			continue // windows are not written in transactions
		}
		for _, p := range t.Partitions {
			producers, err := o.find(ctx, *t.Topic, p.Partition)
			for _, producer := range producers {
				if err == nil {
					err = o.end(ctx, *t.Topic, p.Partition, producer)
				}
				n++
			}
			if err != nil {
				return n, fmt.Errorf("topic %s partition %d: %w", *t.Topic, p.Partition, err)
			}
		}
	}
	return n, nil
}

// find returns the producers whose last transaction in a partition was aborted
// without a marker.
func (o *orphans) find(ctx context.Context, topic string, partition int32) ([]int64, error) {
	end, _, err := o.offset(ctx, topic, partition, LastOffset)
	if err != nil || end == 0 {
		return nil, err
	}
	at, err := o.recent(ctx, topic, partition)
	if err != nil {
		return nil, err
	}
	open := make(map[int64]int64) // first offset, by producer
	for at < end {
		part, err := o.fetch(ctx, topic, partition, at)
		if err != nil {
			return nil, err
		}
		for _, a := range part.AbortedTransactions {
			open[a.ProducerID] = max(open[a.ProducerID], a.FirstOffset)
		}
		before := at
		for b := part.RecordBatches; len(b) > 0; {
			batch, rest, err := nextBatch(b)
			if rest == nil && err != nil {
				break
			}
			b, at = rest, max(at, batch.last+1)
			if first, ok := open[batch.producer]; ok && err == nil && batch.attributes.Control() && batch.aborts() && batch.first > first {
				delete(open, batch.producer)
			}
		}
		if at == before {
			at++
		}
	}
	var producers []int64
	for producer := range open {
		producers = append(producers, producer)
	}
	slices.Sort(producers)
	return producers, nil
}

// recent returns an offset at or before the beginning of every transaction that is open at
// the end of the log.
func (o *orphans) recent(ctx context.Context, topic string, partition int32) (int64, error) {
	const newest = -3 // a time that Kafka takes for the newest there is
	first, _, err := o.offset(ctx, topic, partition, FirstOffset)
	if err != nil {
		return 0, err
	}
	_, at, err := o.offset(ctx, topic, partition, newest)
	if err != nil || at <= 0 {
		return first, err
	}
	from, _, err := o.offset(ctx, topic, partition, max(at-orphanAge.Milliseconds(), 0))
	return max(from, first), err
}

// offset returns the offset that belongs to a time in ms, and its own time.
func (o *orphans) offset(ctx context.Context, topic string, partition int32, at int64) (offset, found int64, err error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t, p := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, at
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	res, err := req.RequestWith(ctx, o.client)
	if err != nil {
		return 0, 0, err
	}
	answer := res.Topics[0].Partitions[0]
	return answer.Offset, answer.Timestamp, kerr.ErrorForCode(answer.ErrorCode)
}

func (o *orphans) fetch(ctx context.Context, topic string, partition int32, at int64) (part kmsg.FetchResponseTopicPartition, err error) {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes, req.IsolationLevel = -1, 1, math.MaxInt32, 1 // as fetcher.fetchOnce
	t, p := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, at, MaxMessage
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	res, err := req.RequestWith(ctx, o.client)
	if err != nil {
		return part, err
	}
	part = res.Topics[0].Partitions[0]
	return part, kerr.ErrorForCode(part.ErrorCode)
}

func (o *orphans) end(ctx context.Context, topic string, partition int32, producer int64) error {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	m, t := kmsg.NewWriteTxnMarkersRequestMarker(), kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	t.Topic, t.Partitions = topic, []int32{partition}
	m.ProducerID, m.Topics = producer, append(m.Topics, t)
	req.Markers = append(req.Markers, m)
	res, err := req.RequestWith(ctx, o.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(res.Markers[0].Topics[0].Partitions[0].ErrorCode)
}
