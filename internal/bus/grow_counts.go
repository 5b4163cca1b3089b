package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go"
)

// countsKey is the key of the record of TopicModels that says how many partitions the topics
// of machines have had.
const countsKey = "partitions"

// Counts is how many partitions the topics of machines have had. A machine's windows have
// gone to another partition under each of them, perhaps. Monitors look there for its state.
type Counts struct {
	Had     []int          `json:"had"`               // ascending
	Growing int            `json:"growing,omitempty"` // the topics get so many now; 0: they do not grow
	Groups  map[string]int `json:"groups,omitempty"`  // groups of monitors, and how many partitions there were when they were seen first
}

// With returns the numbers of partitions, ascending, if TopicWindows has so many now. The
// last one is the present one.
func (c Counts) With(windows int) []int {
	had := slices.Clone(c.Had)
	if c.Growing > 0 && c.Growing <= windows {
		had = append(had, c.Growing)
	}
	had = append(had, windows) // or another program raised it
	slices.Sort(had)
	had = slices.Compact(had)
	return had[:slices.Index(had, windows)+1] // a topic that was made again may have fewer
}

// After reports whether the topics got a partition after a group had begun.
func (c Counts) After(group string, partition int) bool {
	n := c.Groups[group]
	return n > 0 && partition >= n
}

// merge adds what another program has written meanwhile.
func (c *Counts) merge(o Counts) {
	c.Had = append(c.Had, o.Had...)
	slices.Sort(c.Had)
	c.Had = slices.Compact(c.Had)
	if c.Groups == nil {
		c.Groups = make(map[string]int)
	}
	for group, n := range o.Groups {
		if was := c.Groups[group]; was == 0 || n < was {
			c.Groups[group] = n
		}
	}
}

// CountsReader reads Counts, and reads only what is new when it is asked again. It is not
// safe for concurrent use.
type CountsReader struct {
	cfg  Config
	next int64
	last Counts
}

// NewCountsReader returns a reader that has read nothing.
func NewCountsReader(cfg Config) *CountsReader { return &CountsReader{cfg: cfg, next: FirstOffset} }

// Read returns the numbers as they are now. They are empty if the topics have never grown, or
// if TopicModels is missing.
func (r *CountsReader) Read(ctx context.Context) (Counts, error) {
	err := ReadFrom(ctx, r.cfg, TopicModels, 0, r.next, false, func(m Message) error {
		if m.Offset < r.next { // the topic was made again
			r.last = Counts{}
		}
		r.next = m.Offset + 1
		if m.Key != countsKey {
			return nil
		}
		var c Counts
		if err := json.Unmarshal(m.Value, &c); err != nil || slices.ContainsFunc(c.Had, func(n int) bool { return n < 1 }) {
			return fmt.Errorf("bus: topic %s offset %d: the record %q cannot be read: another program wrote it; `ingest topics grow` writes it again", TopicModels, m.Offset, countsKey)
		}
		r.last = c
		return nil
	})
	if errors.Is(err, ErrNoTopic) {
		return Counts{}, nil
	}
	return r.last, err
}

// writeCounts writes the record, with what another program has written since.
func (g *grower) writeCounts(ctx context.Context, c Counts) error {
	now, err := NewCountsReader(g.c.cfg).Read(ctx)
	if err != nil {
		now = Counts{} // it is written again
	}
	c.merge(now)
	value, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("bus: %s: %w", countsKey, err)
	}
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		return produceOnce(ctx, kc, TopicModels, 0, []*Message{{Key: countsKey, Value: value}})
	})
	if err != nil {
		return fmt.Errorf("bus: write how many partitions there are to %s: %w", TopicModels, err)
	}
	return nil
}
