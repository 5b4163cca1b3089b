package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/internal/bus"
)

// kafkaConfig is a topic that gets the events as they are: key, headers and value. The
// topic must be there.
type kafkaConfig struct {
	Topic   string       `yaml:"topic"`
	Cluster bus.Settings `yaml:",inline"` // without brokers: the cluster of the alerts

	file string // from whose folder the paths of Cluster begin
}

func (k *kafkaConfig) check() error {
	own := len(k.Cluster.Brokers) == 0
	err := cmp.Or(
		wrong(k.Topic == "", "topic", "name the topic that gets the alerts"),
		wrong(own && strings.HasPrefix(k.Topic, "tcm."), "topic", "%s: names that begin with tcm. are Flank's own, and a route from %s to itself never ends: name another topic, or another cluster's `brokers`", k.Topic, bus.TopicAlerts))
	if err == nil && !own {
		_, err = k.Cluster.Config(k.file, "")
	}
	return err
}

func (k *kafkaConfig) resolve(file string) { k.file = file }

func (k *kafkaConfig) target() string { return "Kafka, topic " + k.Topic }

type kafkaReceiver struct {
	topic string
	cfg   bus.Config
	out   *bus.Producer
}

func (k *kafkaConfig) open(r *Route) (receiver, error) {
	cfg := r.opt.Bus
	if len(k.Cluster.Brokers) > 0 {
		var err error
		if cfg, err = k.Cluster.Config(k.file, cfg.ClientID); err != nil {
			return nil, err
		}
	}
	cfg.OnRetry, cfg.OnStall, cfg.OnGap = nil, nil, nil // the route logs it
	out, err := bus.NewProducer(cfg)
	if err != nil {
		return nil, err
	}
	return &kafkaReceiver{k.Topic, cfg, out}, nil
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
