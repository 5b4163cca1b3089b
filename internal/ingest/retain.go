package ingest

import (
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
)

// retainConfig says what Kafka keeps of a topic.
type retainConfig struct {
	Windows  retention `yaml:"windows"`
	Features retention `yaml:"features"`
	Dead     retention `yaml:"dead_letters"`
}

type retention struct {
	Time  time.Duration `yaml:"time"`  // 0: the default
	Bytes *config.Bytes `yaml:"bytes"` // of each partition; nil: the default; 0: no limit but time
}

// The least that can be kept: Kafka looks every five minutes for what it may remove,
// and removes segments of 16 MiB or more.
const (
	leastTime  = 10 * time.Minute
	leastBytes = 100e6
)

// Topics returns what the configuration says, by topic. It reports a value that
// cannot be used as a config.KeyError.
func (r retainConfig) Topics() (map[string]bus.Retain, error) {
	keep := make(map[string]bus.Retain)
	for _, one := range []struct {
		key, topic string
		retention
	}{{"windows", bus.TopicWindows, r.Windows}, {"features", bus.TopicFeatures, r.Features}, {"dead_letters", bus.TopicDead, r.Dead}} {
		key := "retain." + one.key
		if one.Time != 0 && one.Time < leastTime {
			return nil, &config.KeyError{Key: key + ".time", Err: fmt.Errorf("%v: must be 10m or more, such as 168h", one.Time)}
		}
		k := bus.Retain{Time: one.Time}
		if one.Bytes != nil {
			k.Bytes = int64(*one.Bytes)
			if k.Bytes == 0 {
				k.Bytes = bus.Unlimited
			} else if k.Bytes < leastBytes {
				return nil, &config.KeyError{Key: key + ".bytes", Err: fmt.Errorf("%s: must be %s or more, or 0 for no limit but time", bus.FormatBytes(k.Bytes), bus.FormatBytes(leastBytes))}
			}
		}
		if k != (bus.Retain{}) {
			keep[one.topic] = k
		}
	}
	return keep, nil
}
