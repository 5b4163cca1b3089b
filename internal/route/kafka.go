package route

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/internal/bus"
)

// Kafka is a topic that gets the events as they are: key, headers and value. The
// topic must be there.
type Kafka struct {
	Topic   string
	Cluster *bus.Config // nil: that of the alerts
}

func (k *Kafka) check(bus.Config) *wrong {
	if k.Topic == "" {
		return bad("topic", "name the topic that gets the alerts")
	}
	if k.Cluster == nil && strings.HasPrefix(k.Topic, "tcm.") {
		return bad("topic", "%s: names that begin with tcm. are Flank's own, and a route from %s to itself never ends: name another topic, or another cluster's `brokers`", k.Topic, bus.TopicAlerts)
	}
	return nil
}

type kafkaReceiver struct {
	topic string
	cfg   bus.Config
	out   *bus.Producer
}

func newKafka(k Kafka, r *Route) (*kafkaReceiver, error) {
	cfg := r.opt.Bus
	if k.Cluster != nil {
		cfg = *k.Cluster
	}
	cfg.OnRetry, cfg.OnStall, cfg.OnGap = nil, nil, nil // the route says it
	out, err := bus.NewProducer(cfg)
	return &kafkaReceiver{k.Topic, cfg, out}, err
}

func (k *kafkaReceiver) deliver(ctx context.Context, e *Event) error {
	m := bus.Message{Topic: k.topic, Key: e.message.Key, Headers: e.message.Headers, Value: e.message.Value}
	err := k.out.Send(ctx, []bus.Message{m})
	if errors.Is(err, bus.ErrTooLarge) {
		return &refusal{err}
	}
	return err
}

func (k *kafkaReceiver) probe(ctx context.Context) (string, error) {
	steps, err := bus.Steps(k.cfg, bus.Needs{Write: []string{k.topic}})
	if err != nil {
		return "", err
	}
	for _, s := range steps {
		if s.Name == "clock" {
			continue // of windows
		}
		if _, err := s.Run(ctx); err != nil {
			return "", fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return "topic " + k.topic + " may be written", nil
}

func (k *kafkaReceiver) close() { k.out.Close() }
