package monitor

import (
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
)

// homes says in which partitions machines are where the topics have grown. A window may lie in
// another partition: it was there before, or an ingester that did not know yet has sent it there
// since. A monitor that judged it there would begin the machine a second time. The zero value is for
// topics that have never grown.
type homes struct {
	partitions int
	since      time.Time // what Kafka got before that was judged before the topics grew
}

// check returns an error if a message lies in another partition than its machine is in. Old
// reports whether it was there before the topics grew.
func (h homes) check(m *bus.Message) (old bool, err error) {
	if h.partitions == 0 || m.Damage != nil {
		return false, nil
	}
	home := bus.PartitionOf(m.Key, h.partitions)
	if home == m.Partition {
		return false, nil
	}
	return m.Time.Before(h.since), fmt.Errorf("monitor: it lies in partition %d, and since the topics have grown its machine is in partition %d: `monitor dlq redrive` sends it there", m.Partition, home)
}

// homeOf returns in which partition a machine is.
func (m *Monitor) homeOf(name string) int {
	m.topics.mu.Lock()
	defer m.topics.mu.Unlock()
	return bus.PartitionOf(name, m.topics.partitions)
}

// homes returns what the last look at the topics has found.
func (m *Monitor) homes() homes {
	m.topics.mu.Lock()
	defer m.topics.mu.Unlock()
	return m.topics.homes
}
