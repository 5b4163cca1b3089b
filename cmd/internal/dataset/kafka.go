package dataset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Kafka names windows on Kafka.
type Kafka struct {
	Brokers     []string `name:"kafka" sep:"," placeholder:"HOST:PORT" help:"Broker to read windows from, as ingesters sent them, instead of recordings; labels come from --wear."`
	KafkaConfig string   `placeholder:"FILE" help:"The same from a file whose key kafka is as in ingest.yaml: brokers, tls and sasl."`
	Topic       string   `default:"tcm.windows.v1" help:"Topic of the windows (default: tcm.windows.v1)."`
	From        string   `name:"since" placeholder:"PLACE" help:"First window: when it began, as 2026-11-02T06:00:00Z, or its offset (default: the oldest that Kafka has)."`
	To          string   `name:"until" placeholder:"PLACE" help:"Where windows end: windows that began then or later, or have this offset or a higher one, are left out (default: the newest)."`
}

// clockMargin is how far the clock of a gateway may be ahead of Kafka's.
const clockMargin = time.Hour

// KafkaPatience is how long Kafka may not answer. Tests lower it.
var KafkaPatience = 20 * time.Second

// bound reads a time or an offset.
func bound(flag, s string) (at time.Time, offset int64, err error) {
	if s == "" {
		return time.Time{}, 0, nil
	}
	if offset, err := strconv.ParseInt(s, 10, 64); err == nil && offset >= 0 {
		return time.Time{}, offset, nil
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, 0, nil
	}
	return time.Time{}, 0, fmt.Errorf("%s %s: neither a time nor an offset: write 2026-11-02T06:00:00Z, or a number", flag, s)
}

// topicReader reads the windows of a topic once.
type topicReader struct {
	cfg      bus.Config
	topic    string
	flag     string // that names the configuration
	part     bus.Range
	from, to time.Time // of windows; zero: no bound
	log      zerolog.Logger

	seen    map[string]bool // ids of windows
	ids     []string        // with checksums
	refused int
	reason  error // why the first was refused
}

// named reports whether windows on Kafka are asked for.
func (f Kafka) named() bool { return len(f.Brokers) > 0 || f.KafkaConfig != "" }

// bus returns how to reach Kafka.
func (f Kafka) bus() (bus.Config, error) {
	const client = "flank-trainer"
	if f.KafkaConfig == "" {
		return bus.Config{Brokers: f.Brokers, ClientID: client}, nil
	}
	if len(f.Brokers) > 0 {
		return bus.Config{}, errors.New("--kafka and --kafka-config: give one of them")
	}
	var c struct {
		Kafka bus.Settings `yaml:"kafka"`
	}
	if err := config.Load(f.KafkaConfig, &c); err != nil {
		return bus.Config{}, err
	}
	return c.Kafka.Load(f.KafkaConfig, client)
}

// input returns the windows as something to learn from.
func (f Kafka) input(flag string, log zerolog.Logger) (train.Input, error) {
	cfg, err := f.bus()
	if err != nil {
		return train.Input{}, err
	}
	r := &topicReader{cfg: cfg, flag: flag, topic: f.Topic, log: log, seen: make(map[string]bool)}
	if r.from, r.part.From, err = bound("--since", f.From); err != nil {
		return train.Input{}, err
	}
	if r.to, r.part.To, err = bound("--until", f.To); err != nil {
		return train.Input{}, err
	}
	if !r.from.IsZero() {
		r.part.Since = r.from.Add(-clockMargin) // Kafka got no window before it began
	}
	return train.Input{Name: f.Topic, Cut: r.read}, nil
}

// read is the Cut of a train.Input.
func (r *topicReader) read(ctx context.Context, m *model.Model, visit func(*window.Window) error) (sum string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cfg.OnRetry = func(err error, since time.Duration) {
		if err != nil && since >= KafkaPatience {
			cancel(fmt.Errorf("no answer from Kafka at %s: %w: check the address and the network", strings.Join(r.cfg.Brokers, ", "), err))
		}
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	if err := r.readPartitions(ctx, m, visit); err != nil {
		return "", err
	}
	if err := r.checkFound(m); err != nil {
		return "", err
	}
	slices.SortFunc(r.ids, cmp.Compare)
	h := sha256.Sum256([]byte(strings.Join(r.ids, "\n")))
	return hex.EncodeToString(h[:]), nil
}

// readPartitions visits the windows of all partitions, one after the other.
func (r *topicReader) readPartitions(ctx context.Context, m *model.Model, visit func(*window.Window) error) error {
	codec, err := window.NewCodec(m.Layout, m.Window)
	if err != nil {
		return err
	}
	partitions, err := bus.Partitions(ctx, r.cfg, r.topic)
	if errors.Is(err, bus.ErrNoTopic) {
		return fmt.Errorf("%w: name the topic with --topic; `ingest topics apply` makes those that ingesters need", err)
	}
	if err != nil {
		return err
	}
	var w window.Window
	for p := range partitions {
		err := bus.ReadRange(ctx, r.cfg, r.topic, p, r.part, func(msg bus.Message) error { return r.take(p, codec, &msg, &w, visit) })
		if err != nil {
			return err
		}
	}
	return nil
}

// checkFound reports a topic without a window for the model, and logs messages that were
// left out.
func (r *topicReader) checkFound(m *model.Model) error {
	switch {
	case len(r.seen) == 0 && r.refused > 0:
		return fmt.Errorf("none of %d messages is a window of layout %q with windows of %v; %w: name the layout and the window of the ingester in %s", r.refused, m.Layout.Name(), m.Window.Length, r.reason, r.flag)
	case len(r.seen) == 0:
		return fmt.Errorf("topic %s has no windows between --since and --until: Kafka keeps them for a limited time", r.topic)
	case r.refused > 0:
		r.log.Warn().Int("messages", r.refused).AnErr("first", r.reason).Msg("left out messages that are not windows of this layout")
	}
	return nil
}

// take visits the window in a message, unless it is out of bounds or was visited.
func (r *topicReader) take(partition int, codec *window.Codec, msg *bus.Message, w *window.Window, visit func(*window.Window) error) error {
	if envelope.IsLedger(msg) {
		return nil
	}
	if err := envelope.Open(codec, msg, w); err != nil {
		if r.refused++; r.refused == 1 {
			r.reason = fmt.Errorf("offset %d of partition %d: %w", msg.Offset, partition, err)
		}
		return nil
	}
	if !r.from.IsZero() && w.Start.Before(r.from) || !r.to.IsZero() && !w.Start.Before(r.to) {
		return nil
	}
	id := string(msg.Header("ce_id"))
	if r.seen[id] {
		return nil // sent again
	}
	r.seen[id] = true
	r.ids = append(r.ids, id+" "+string(msg.Header("crc32c")))
	return visit(w)
}
