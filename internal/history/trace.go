package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
)

// Step is a message about a window, and where it lies.
type Step struct {
	At        time.Time `json:"at"`    // when Kafka got it
	Where     string    `json:"where"` // topic; or a folder, for those that add steps of spools
	Partition int       `json:"partition"`
	Offset    int64     `json:"offset"`
	What      string    `json:"what"` // in words
	ID        string    `json:"id"`   // of the message
	Trace     string    `json:"traceparent,omitempty"`

	Acquired time.Time `json:"acquired,omitzero"` // of the window, by the gateway's clock
}

// Trace looks for a window in the topics, among messages that Kafka got at since or later, and returns
// what is about it, the oldest first. It reads the features, results, alerts and dead letters
// of the machine's partitions. It looks the window itself up where these say that it lies, or
// among the windows of which no features are there yet.
func Trace(ctx context.Context, cfg bus.Config, window string, since time.Time) ([]Step, error) {
	name, _, _, ok := event.SplitWindowID(window)
	if !ok {
		return nil, fmt.Errorf("%q: not the id of a window: expected machine/epoch/number, such as acme/spore/bay2/line1/usk25/00c0ffee00c0ffee/17, as in the ce_id of results and alerts", window)
	}
	t := tracing{cfg: cfg, window: window, behind: make(map[int]int64), at: make(map[int]int64)}
	partitions, err := partitionsOf(ctx, cfg, name)
	if err != nil {
		return nil, err
	}
	for _, topic := range []string{bus.TopicFeatures, bus.TopicResults, bus.TopicShadow, bus.TopicAlerts} {
		for _, id := range partitions {
			if err := bus.ReadRange(ctx, cfg, topic, id, bus.Range{Since: since}, t.take); err != nil {
				return nil, fmt.Errorf("%s: %w", topic, err)
			}
		}
	}
	if err := t.letters(ctx, since); err != nil {
		return nil, err
	}
	for _, id := range partitions {
		if err := t.windows(ctx, id, since); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(t.steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return t.steps, nil
}

// partitionsOf returns the partitions that a machine's messages lie in: the present one, and
// the ones from when there were fewer.
func partitionsOf(ctx context.Context, cfg bus.Config, machine string) ([]int, error) {
	n, err := bus.Partitions(ctx, cfg, bus.TopicWindows)
	if err != nil {
		return nil, err
	}
	growth, err := bus.NewGrowthReader(cfg).Read(ctx)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, count := range growth.With(n) {
		ids = append(ids, bus.PartitionOf(machine, count))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// tracing is a search for one window.
type tracing struct {
	cfg    bus.Config
	window string
	steps  []Step
	behind map[int]int64 // offset in the windows, by partition, behind which no features are there yet
	at     map[int]int64 // offset of the window in the windows, where that is known
}

// take takes a message, if it is about the window.
func (t *tracing) take(m bus.Message) error {
	id := string(m.Header("ce_id"))
	if m.Topic == bus.TopicFeatures {
		_, offset, err := envelope.Origin(&m)
		if err == nil && offset >= 0 {
			t.behind[m.Partition] = max(t.behind[m.Partition], offset+1)
			if id == t.window {
				t.at[m.Partition] = offset
			}
		}
	}
	if id != t.window && !strings.HasPrefix(id, t.window+"/") {
		return nil
	}
	t.steps = append(t.steps, Step{
		At: m.Time, Where: m.Topic, Partition: m.Partition, Offset: m.Offset, ID: id, Trace: string(m.Header(event.TraceHeader)), What: describe(&m), Acquired: envelope.AcquiredAt(&m),
	})
	return nil
}

// describe returns a message in words.
func describe(m *bus.Message) string {
	var r event.Result
	var of struct{ Text string }
	switch string(m.Header("ce_type")) {
	case event.WindowType:
		if why := m.Header(envelope.Copied); why != nil {
			return "the window, sent again because of " + string(why)
		}
		return "the window, " + bus.FormatBytes(int64(len(m.Value)))
	case event.FeaturesType:
		by, _, _ := envelope.Origin(m) // empty: features that no program of ours sent
		return "features, extracted by the " + string(by)
	case event.ResultType:
		if json.Unmarshal(m.Value, &r) != nil {
			return "a result that cannot be read"
		}
		return fmt.Sprintf("verdict %s of group %s, score %.2f, alarm %s, model %s%s", r.Verdict, r.Group, r.Score, r.Alarm, r.Model, saidByControl(&r))
	}
	if json.Unmarshal(m.Value, &of) == nil && of.Text != "" {
		return of.Text
	}
	return string(m.Header("ce_type"))
}

// saidByControl describes feed rate, programme and material as far as they are known, each behind a
// comma.
func saidByControl(r *event.Result) (text string) {
	if r.FeedRate != 0 {
		text = fmt.Sprintf(", feed rate %v mm/min", r.FeedRate)
	}
	if r.Programme != "" {
		text += fmt.Sprintf(", programme %.40q", r.Programme)
	}
	if r.Material != "" {
		text += fmt.Sprintf(", material %.40q", r.Material)
	}
	return text
}

// letters takes the dead letters about the window.
func (t *tracing) letters(ctx context.Context, since time.Time) error {
	n, err := bus.Partitions(ctx, t.cfg, bus.TopicDead)
	if err != nil {
		return err
	}
	for id := range n {
		err := bus.ReadRange(ctx, t.cfg, bus.TopicDead, id, bus.Range{Since: since}, func(m bus.Message) error {
			l, err := bus.OpenLetter(m)
			if err != nil || string(l.Message.Header("ce_id")) != t.window {
				return nil // not ours
			}
			t.steps = append(t.steps, Step{At: m.Time, Where: m.Topic, Partition: m.Partition, Offset: m.Offset, ID: t.window, Trace: string(l.Message.Header(event.TraceHeader)), What: "set aside: " + l.Reason})
			if l.Message.Topic == bus.TopicWindows {
				t.at[l.Message.Partition] = l.Message.Offset
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", bus.TopicDead, err)
		}
	}
	return nil
}

var errFound = errors.New("found")

// windows takes the window itself. Windows are large, so it reads one where it is known which one
// it is, and otherwise those that nothing was made of yet.
func (t *tracing) windows(ctx context.Context, partition int, since time.Time) error {
	r := bus.Range{From: t.behind[partition], Since: since}
	if at, known := t.at[partition]; known {
		r = bus.Range{From: at, To: at + 1}
	} else if len(t.at) > 0 {
		return nil
	}
	found := len(t.steps)
	err := bus.ReadRange(ctx, t.cfg, bus.TopicWindows, partition, r, func(m bus.Message) error {
		_ = t.take(m) // it takes any
		if len(t.steps) > found {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return fmt.Errorf("%s: %w", bus.TopicWindows, err)
	}
	return nil
}
