// Package fetch asks the gateway of a machine for raw windows and collects them.
//
// In edge mode a gateway sends features, and keeps raw windows in its spool for some
// time. A command with action fetch on the commands topic asks for windows by time or by
// seq. The gateway sends copies of them to the windows topic, with the id of the command
// in the header [envelope.Copied], and then an [event.Fetched] to the features topic.
package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
)

// ErrSilent is returned when no gateway answers.
var ErrSilent = errors.New("no gateway has answered")

// CommandMessage returns the Kafka message of a command. It reports one that no program
// would read.
func CommandMessage(c event.Command) (bus.Message, error) {
	if err := c.Check(); err != nil {
		return bus.Message{}, fmt.Errorf("command: %w", err)
	}
	return envelope.Event(bus.TopicCommands, c.ID, c.Machine, event.CommandType, c.Issued, event.JSON(c)), nil
}

// AnswerMessage returns the Kafka message of an answer.
func AnswerMessage(f event.Fetched) bus.Message {
	return envelope.Event(bus.TopicFeatures, f.ID, f.Machine, event.FetchedType, f.At, event.JSON(f))
}

// IsAnswer reports whether a message of the features topic is an answer, not features.
func IsAnswer(m *bus.Message) bool { return string(m.Header("ce_type")) == event.FetchedType }

// Ask sends a command with action fetch and calls each for every window that comes for it,
// once, in the order in which they come. It returns the answer when all windows that it
// counts are there. When neither a window nor an answer comes for as long as patience, it
// returns ErrSilent. An error of each ends it and is returned.
func Ask(ctx context.Context, to bus.Config, c event.Command, patience time.Duration, each func(bus.Message) error) (event.Fetched, error) {
	m, err := CommandMessage(c)
	if err != nil {
		return event.Fetched{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a := &asking{command: c, came: make(chan bus.Message), failed: make(chan error, 2)}
	for _, topic := range []string{bus.TopicWindows, bus.TopicFeatures} {
		if err := a.follow(ctx, to, topic); err != nil {
			return event.Fetched{}, err
		}
	}
	out, err := bus.NewProducer(to)
	if err != nil {
		return event.Fetched{}, err
	}
	defer out.Close()
	if err := out.Send(ctx, []bus.Message{m}); err != nil {
		return event.Fetched{}, err
	}
	return a.collect(ctx, patience, each)
}

// asking is a command that is waited for.
type asking struct {
	command event.Command
	came    chan bus.Message // windows for the command, and its answer
	failed  chan error
}

// wants reports whether a message is of the machine, and a copy for this command or an answer.
func (a *asking) wants(m *bus.Message) bool {
	switch {
	case m.Key != a.command.Machine:
		return false
	case m.Topic == bus.TopicFeatures:
		return IsAnswer(m)
	}
	return string(m.Header(envelope.Copied)) == a.command.ID
}

// follow reads what comes to the machine's partition of a topic from now on, until ctx
// ends.
func (a *asking) follow(ctx context.Context, to bus.Config, topic string) error {
	n, err := bus.Partitions(ctx, to, topic)
	if err != nil {
		return err
	}
	partition := bus.PartitionOf(a.command.Machine, n)
	_, end, err := bus.Bounds(ctx, to, topic, partition)
	if err != nil {
		return fmt.Errorf("topic %s, partition %d: %w", topic, partition, err)
	}
	go func() {
		err := bus.ReadFrom(ctx, to, topic, partition, end, true, func(m bus.Message) error {
			if !a.wants(&m) {
				return nil
			}
			select {
			case a.came <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if ctx.Err() == nil {
			a.failed <- err
		}
	}()
	return nil
}

// collect waits for windows and the answer.
func (a *asking) collect(ctx context.Context, patience time.Duration, each func(bus.Message) error) (answer event.Fetched, err error) {
	seen := make(map[string]bool)
	answered := false
	for !answered || len(seen) < answer.Windows {
		select {
		case m := <-a.came:
			if m.Topic == bus.TopicFeatures {
				var f event.Fetched
				if json.Unmarshal(m.Value, &f) == nil && f.Command == a.command.ID {
					answer, answered = f, true
				}
				continue
			}
			if id := string(m.Header("ce_id")); !seen[id] {
				seen[id] = true
				if err := each(m); err != nil {
					return answer, err
				}
			}
		case err := <-a.failed:
			return answer, err
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(patience):
			if answered { // Kafka has removed windows before they were read
				return answer, nil
			}
			return answer, ErrSilent
		}
	}
	return answer, nil
}
