package broker

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
)

// compactEvery is how often the embedded broker compacts topics and removes what is old.
const compactEvery = 10 * time.Second

// compactor compacts the topics of an embedded broker, and only while no transaction on
// such a topic is open. By itself, kfake takes a message of an open transaction for the
// newest of its key and removes the one before; when the transaction is aborted, both are
// gone.
type compactor struct {
	cluster *kfake.Cluster
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	waiting bool // to compact before the next request
	over    bool // the broker stops
}

func startCompactor(c *kfake.Cluster) *compactor {
	ctx, stop := context.WithCancel(context.Background())
	k := &compactor{cluster: c, stop: stop}
	k.running.Go(func() {
		tick := time.NewTicker(compactEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				k.due()
			case <-ctx.Done():
				return
			}
		}
	})
	return k
}

// due removes old messages. It has the topics compacted before the next request that finds
// no transaction open: the broker does nothing else at that moment.
func (k *compactor) due() {
	k.cluster.ApplyRetention()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.waiting {
		k.waiting = true
		k.cluster.ControlKey(-1, k.beforeRequest)
	}
}

// beforeRequest compacts if no transaction is open. It leaves the request to the broker.
func (k *compactor) beforeRequest(kmsg.Request) (kmsg.Response, error, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.over && k.settled() {
		k.cluster.Compact()
		k.cluster.DropControl()
		k.waiting = false
	}
	return nil, nil, false
}

// settled reports whether every transaction on the compacted topics has ended.
func (k *compactor) settled() bool {
	for _, topic := range []string{bus.TopicState, bus.TopicModels} {
		for _, p := range k.cluster.PartitionInfos(topic) {
			if p.LastStableOffset < p.HighWatermark {
				return false
			}
		}
	}
	return true
}

// close ends compacting. The broker may be stopped when it returns.
func (k *compactor) close() {
	k.mu.Lock()
	k.over = true
	k.mu.Unlock()
	k.stop()
	k.running.Wait()
}
