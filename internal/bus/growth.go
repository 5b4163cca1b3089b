package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// growthKey is the key of the record of TopicModels that holds the Growth.
const growthKey = "partitions"

// Growth says how many partitions the topics of machines have had, and whether the state of
// the machines is where their windows go now. The zero value is of topics that have never grown.
type Growth struct {
	Had     []int     `json:"had,omitempty"`     // numbers of partitions, ascending; each machine's messages may lie where it was under each
	Growing int       `json:"growing,omitempty"` // the topics get so many, and the state moves; 0: they do not grow
	State   int       `json:"state,omitempty"`   // number of partitions under which the state lies
	Since   time.Time `json:"since,omitzero"`    // when the topics began to grow last, by Kafka's clock
}

// With returns the numbers of partitions, ascending, if TopicWindows has so many now.
func (g Growth) With(windows int) []int {
	return slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(g.Had), windows))))
}

// Check returns an error, with the remedy, unless the state of all machines lies where their
// windows go if the topics have so many partitions.
func (g Growth) Check(partitions int) error {
	const remedy = "run `ingest topics grow --partitions %d` until it has ended, and start the monitors then"
	switch {
	case g.Growing > 0:
		return fmt.Errorf("bus: the topics of machines are getting %d partitions, and the state of the machines has not followed yet: "+remedy, g.Growing, g.Growing)
	case len(g.Had) == 0 || g.State == partitions:
		return nil
	case g.State == 0:
		return fmt.Errorf("bus: the topics of machines have grown to %s under another release, which may have left the state of machines behind: "+remedy, plural(partitions, "partition"), partitions)
	}
	return fmt.Errorf("bus: the topics of machines have %s, and the state of the machines lies where it was with %d: another program has raised them: "+remedy, plural(partitions, "partition"), g.State, partitions)
}

// GrowthReader reads the Growth, and reads only what is new when it is asked again. It is not
// safe for concurrent use.
type GrowthReader struct {
	cfg  Config
	next int64
	last Growth
}

// NewGrowthReader returns a reader that has read nothing.
func NewGrowthReader(cfg Config) *GrowthReader { return &GrowthReader{cfg: cfg, next: FirstOffset} }

// Read returns what the record says now. The zero value stands for a record or a TopicModels
// that is missing.
func (r *GrowthReader) Read(ctx context.Context) (Growth, error) {
	if _, end, err := Bounds(ctx, r.cfg, TopicModels, 0); err == nil && end < r.next { // the topic was made again
		r.next, r.last = FirstOffset, Growth{}
	}
	err := ReadFrom(ctx, r.cfg, TopicModels, 0, r.next, false, func(m Message) error {
		r.next = m.Offset + 1
		if m.Key != growthKey {
			return nil
		}
		var g Growth
		if m.Value != nil {
			if err := json.Unmarshal(m.Value, &g); err != nil || slices.ContainsFunc(g.Had, func(n int) bool { return n < 1 }) {
				return fmt.Errorf("bus: topic %s offset %d: the record %q cannot be read: another program wrote it; `ingest topics grow` writes it again", TopicModels, m.Offset, growthKey)
			}
		}
		if g.Growing > 0 && g.Since.IsZero() {
			g.Since = m.Time
		}
		r.last = g
		return nil
	})
	if errors.Is(err, ErrNoTopic) {
		return Growth{}, nil
	}
	return r.last, err
}

// WriteGrowth writes the record; the zero value removes it.
func (p *Producer) WriteGrowth(ctx context.Context, g Growth) (err error) {
	m := Message{Topic: TopicModels, Key: growthKey}
	if len(g.Had) > 0 || g.Growing > 0 {
		m.Value, err = json.Marshal(g)
	}
	if err == nil {
		err = p.Send(ctx, []Message{m})
	}
	if err != nil {
		return fmt.Errorf("bus: write to %s how many partitions there are: %w", TopicModels, err)
	}
	return nil
}
