package broker

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
)

// compacting is a folder in the broker's: partitions as they were before kfake began to compact them.
const compacting = "compacting"

var compacted = []string{bus.TopicState, bus.TopicModels, bus.TopicLabels}

// compactEvery is how often the embedded broker compacts topics and removes what is old.
const compactEvery = 10 * time.Second

// compactor compacts the topics of an embedded broker, and only while no transaction on
// such a topic is open. By itself, kfake takes a message of an open transaction for the
// newest of its key and removes the one before; when the transaction is aborted, both are
// gone.
type compactor struct {
	cluster *kfake.Cluster
	dir     string // of the broker; empty: all data is in memory
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	waiting bool // to compact before the next request
	over    bool // the broker stops
}

func startCompactor(c *kfake.Cluster, dir string) *compactor {
	ctx, stop := context.WithCancel(context.Background())
	k := &compactor{cluster: c, dir: dir, stop: stop}
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
		k.keep()
		k.cluster.Compact()
		k.forget()
		k.cluster.DropControl()
		k.waiting = false
	}
	return nil, nil, false
}

// keep links the batches that kfake deletes before it writes what takes their place, so that a kill between the two loses nothing. It
// keeps nothing where a file cannot be linked, nor where the disk has no room for both: kfake drops what it cannot write.
func (k *compactor) keep() {
	if k.dir == "" {
		return
	}
	k.forget() // what a failure left
	kept, partitions := filepath.Join(k.dir, compacting), filepath.Join(k.dir, "kafka", "partitions")
	room, err := os.Create(kept + ".room")
	for _, topic := range compacted {
		for _, f := range glob(partitions, topic+"-*/*.dat") {
			to := strings.Replace(f, partitions, kept+".tmp", 1)
			data, unread := os.ReadFile(f)
			_, full := room.Write(data)
			err = cmp.Or(err, unread, full, os.MkdirAll(filepath.Dir(to), 0o700), os.Link(f, to))
		}
	}
	err = cmp.Or(err, room.Close(), os.Remove(kept+".room"))
	if err != nil || os.Rename(kept+".tmp", kept) != nil {
		_ = os.RemoveAll(kept + ".tmp")
	}
}

func (k *compactor) forget() {
	if kept := filepath.Join(k.dir, compacting); k.dir != "" {
		_ = os.Rename(kept, kept+".tmp")
		_ = os.RemoveAll(kept + ".tmp")
	}
}

// settled reports whether every transaction on the compacted topics has ended.
func (k *compactor) settled() bool {
	for _, topic := range compacted {
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
