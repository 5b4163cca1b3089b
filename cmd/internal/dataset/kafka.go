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

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/rs/zerolog"
)

// Kafka names windows on Kafka.
type Kafka struct {
	cli.Broker
	From string `name:"since" placeholder:"PLACE" help:"First window: when it began, as 2026-11-02T06:00:00Z, or its offset (default: the oldest that Kafka has)."`
	To   string `name:"until" placeholder:"PLACE" help:"Where windows end: windows that began then or later, or have this offset or a higher one, are left out (default: the newest)."`
}

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
	flag     string // that names the configuration
	part     bus.Range
	from, to time.Time // of windows; zero: no bound
	log      zerolog.Logger

	seen    map[string]bool // ids of windows
	ids     []string        // with checksums
	offsets []model.OffsetRange
	refused int
	reason  error // why the first was refused
}

// input returns the windows as something to learn from.
func (f Kafka) input(flag string, log zerolog.Logger) (train.Input, error) {
	cfg, err := f.Bus("flank-trainer")
	if err != nil {
		return train.Input{}, err
	}
	r := &topicReader{cfg: cfg, flag: flag, log: log, seen: make(map[string]bool)}
	if r.from, r.part.From, err = bound("--since", f.From); err != nil {
		return train.Input{}, err
	}
	if r.to, r.part.To, err = bound("--until", f.To); err != nil {
		return train.Input{}, err
	}
	if !r.from.IsZero() {
		r.part.Since = r.from.Add(-bus.ClockMargin) // Kafka got no window before it began
	}
	return train.Input{Name: bus.TopicWindows, Cut: r.read}, nil
}

// read is the Cut of a train.Input.
func (r *topicReader) read(ctx context.Context, m *model.Model, visit func(*window.Window) error) (sum string, offsets []model.OffsetRange, err error) {
	ctx, cancel := cli.WithPatience(ctx, &r.cfg)
	defer cancel(nil)
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	if err := r.readPartitions(ctx, m, visit); err != nil {
		return "", nil, err
	}
	if err := r.checkFound(m); err != nil {
		return "", nil, err
	}
	slices.SortFunc(r.ids, cmp.Compare)
	h := sha256.Sum256([]byte(strings.Join(r.ids, "\n")))
	return hex.EncodeToString(h[:]), r.offsets, nil
}

// readPartitions visits the windows of all partitions, one after the other.
func (r *topicReader) readPartitions(ctx context.Context, m *model.Model, visit func(*window.Window) error) error {
	codec, err := window.NewCodec(m.Layout, m.Window)
	if err != nil {
		return err
	}
	partitions, err := bus.Partitions(ctx, r.cfg, bus.TopicWindows)
	if errors.Is(err, bus.ErrNoTopic) {
		return fmt.Errorf("%w: `ingest topics apply` makes those that ingesters need", err)
	}
	if err != nil {
		return err
	}
	var w window.Window
	for p := range partitions {
		err := bus.ReadRange(ctx, r.cfg, bus.TopicWindows, p, r.part, func(msg bus.Message) error { return r.take(p, codec, &msg, &w, visit) })
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
		return fmt.Errorf("topic %s has no windows between --since and --until: Kafka keeps them for a limited time", bus.TopicWindows)
	case r.refused > 0:
		r.log.Warn().Int("messages", r.refused).AnErr("first", r.reason).Msg("left out messages that are not windows of this layout")
	}
	return nil
}

func (r *topicReader) wants(at time.Time) bool {
	return !(!r.from.IsZero() && at.Before(r.from)) && !(!r.to.IsZero() && !at.Before(r.to))
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
	if !r.wants(w.Start) {
		return nil
	}
	id := string(msg.Header("ce_id"))
	if r.seen[id] {
		return nil // sent again
	}
	r.seen[id] = true
	r.ids = append(r.ids, id+" "+string(msg.Header("crc32c")))
	if n := len(r.offsets); n == 0 || r.offsets[n-1].Partition != partition {
		r.offsets = append(r.offsets, model.OffsetRange{Partition: partition, From: msg.Offset})
	}
	r.offsets[len(r.offsets)-1].To = msg.Offset + 1
	return visit(w)
}
