package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// orphanAge is longer than any transaction may be open: Kafka's limit is 15 minutes.
const orphanAge = 16 * time.Minute

// EndOrphans writes the end markers of transactions that a broker aborted without writing them, as
// the embedded one does when it starts after a kill. Readers would take all later messages of the
// same producer for aborted, and after the next kill the broker itself would take the aborted
// messages for committed. It returns how many markers it wrote. No client may write meanwhile.
func EndOrphans(ctx context.Context, to Config) (n int, err error) {
	t := newTransport(to, mostToOne)
	defer t.close()
	meta, err := t.raw(ctx, anyNode, kmsg.NewPtrMetadataRequest())
	if err != nil {
		return 0, err
	}
	for _, of := range meta.(*kmsg.MetadataResponse).Topics {
		if of.Topic == nil || *of.Topic == TopicWindows || strings.HasPrefix(*of.Topic, "__") {
			continue // windows are not written in transactions
		}
		for _, p := range of.Partitions {
			at := place{*of.Topic, int(p.Partition)}
			producers, err := t.orphans(ctx, at)
			for _, producer := range producers {
				if err == nil {
					err = t.endOrphan(ctx, at, producer)
				}
				n++
			}
			if err != nil {
				return n, fmt.Errorf("topic %s partition %d: %w", at.topic, at.partition, err)
			}
		}
	}
	return n, nil
}

// orphans returns the producers whose last transaction in a partition was aborted
// without a marker.
func (t *transport) orphans(ctx context.Context, in place) ([]int64, error) {
	end, err := t.offset(ctx, in, lastOffset, false)
	if err != nil || end == 0 {
		return nil, err
	}
	at, err := t.recent(ctx, in)
	if err != nil {
		return nil, err
	}
	open := make(map[int64]int64) // first offset, by producer
	for at < end {
		part, _, err := t.fetch(ctx, nil, demand{place: in, next: at, most: MaxMessage, wait: time.Millisecond, urgent: true})
		if err == nil && part.code != 0 {
			err = part.code
		}
		if err != nil {
			return nil, err
		}
		for _, a := range part.aborted {
			open[a.producer] = max(open[a.producer], a.first)
		}
		before := at
		at = max(at, closeMarked(open, part.records))
		part.body.Return()
		if at == before {
			at++
		}
	}
	return slices.Sorted(maps.Keys(open)), nil
}

// recent returns an offset at or before the beginning of every transaction that is open at
// the end of the log.
func (t *transport) recent(ctx context.Context, in place) (int64, error) {
	first, err := t.offset(ctx, in, FirstOffset, false)
	if err != nil {
		return 0, err
	}
	found, err := t.offsets(ctx, in.topic, map[int]int64{in.partition: newestTime}, false)
	newest := found[in.partition].Timestamp
	if err != nil || newest <= 0 {
		return first, err
	}
	from, err := t.offset(ctx, in, max(newest-orphanAge.Milliseconds(), 0), false)
	return max(from, first), err
}

func (t *transport) endOrphan(ctx context.Context, in place, producer int64) error {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Markers = []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: producer, Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{
		{Topic: in.topic, Partitions: []int32{int32(in.partition)}},
	}}}
	res, err := t.raw(ctx, anyNode, req)
	if err != nil {
		return err
	}
	return errorOf(res.(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions[0].ErrorCode)
}

// closeMarked removes the producers whose marker is among the records. It returns the offset behind them.
func closeMarked(open map[int64]int64, records []byte) (end int64) {
	for b := records; len(b) > 0; {
		batch, rest, err := nextBatch(b)
		if rest == nil && err != nil {
			break
		}
		b, end = rest, max(end, batch.last+1)
		if first, ok := open[batch.producer]; ok && err == nil && batch.attributes.Control() && batch.aborts() && batch.first > first {
			delete(open, batch.producer)
		}
	}
	return end
}
