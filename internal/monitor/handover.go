package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/envelope"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// Headers of a message that the owner of another partition has forwarded: the partition, and the
// owner's group. The owners of other groups forward the original, each in its own order.
const (
	headerMovedFrom = "moved_from"
	headerMovedBy   = "moved_by"
)

// againBatch is how many messages of a machine that were passed over are judged at once.
const againBatch = 16

// partitionCounts is what the monitor knows of how many partitions there were and are.
type partitionCounts struct {
	mu     sync.Mutex
	reader *bus.CountsReader
}

// ask asks Kafka. It returns the numbers of partitions, and whether a partition came after a
// group of monitors had begun.
func (p *partitionCounts) ask(ctx context.Context, cfg bus.Config, group string, partition int) (counts []int, grown bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader == nil {
		p.reader = bus.NewCountsReader(cfg)
	}
	c, err := p.reader.Read(ctx)
	if err != nil {
		return nil, false, err
	}
	n, err := bus.Partitions(ctx, cfg, bus.TopicWindows)
	if err != nil {
		return nil, false, err
	}
	return c.With(max(n, partition+1)), c.After(group, partition), nil
}

// hand does an action that is about machines that move between partitions. It reports false
// for other actions. What comes of it is handed over later.
func (s *partition) hand(ctx context.Context, a machine.Action) bool {
	var do func() (machine.Reply, error)
	switch {
	case a.Adopt != "":
		do = func() (machine.Reply, error) { return s.adopt(ctx, a.Adopt) }
	case a.Again != nil:
		do = func() (machine.Reply, error) { return s.readAgain(ctx, *a.Again) }
	case a.AskRead:
		passed := s.in.Passed()
		do = func() (machine.Reply, error) {
			return machine.Reply{Read: &machine.Position{Windows: passed}}, nil
		}
	default:
		return false
	}
	s.moving.Go(func() {
		for ctx.Err() == nil {
			r, err := do()
			if err != nil {
				if ctx.Err() == nil {
					s.log.Warn().Err(err).Msg("cannot read what is needed to move a machine between partitions; trying again")
				}
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				continue
			}
			select {
			case s.replies <- r:
			case <-ctx.Done():
			}
			return
		}
	})
	return true
}

// adopt reads what the partition has of a machine.
func (s *partition) adopt(ctx context.Context, name string) (machine.Reply, error) {
	end, err := s.endOf(ctx, s.id)
	if err != nil {
		return machine.Reply{}, err
	}
	last := make(map[string]machine.Record)
	err = bus.ReadState(ctx, s.cfg.Bus, s.id, bus.FirstOffset, func(m bus.Message) error {
		k, ok := machine.ParseKey(m.Key)
		if ok && k.Machine == name && m.Damage == nil && k.OfGroup(s.cfg.Group) {
			if delete(last, m.Key); m.Value != nil {
				last[m.Key] = machine.Record{Key: k, Value: m.Value, Offset: m.Offset}
			}
		}
		return nil
	})
	if err != nil {
		return machine.Reply{}, err
	}
	r := machine.Adopted{Machine: name, End: end}
	for _, rec := range last {
		r.Records = append(r.Records, rec)
	}
	slices.SortFunc(r.Records, func(a, b machine.Record) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return machine.Reply{Adopted: &r}, nil
}

// endOf returns where windows and features of a partition end; 0 if nothing lies there.
func (s *partition) endOf(ctx context.Context, id int) (machine.Position, error) {
	var at machine.Position
	for topic, of := range map[string]*int64{bus.TopicWindows: &at.Windows, bus.TopicFeatures: &at.Features} {
		if topic == bus.TopicWindows && !s.cfg.does(Extract) {
			continue // it reads features only
		}
		first, end, err := bus.Bounds(ctx, s.cfg.Bus, topic, id)
		if err != nil {
			return at, err
		}
		if first < end {
			*of = end
		}
	}
	return at, nil
}

// readAgain reads messages of a machine again.
func (s *partition) readAgain(ctx context.Context, a machine.Again) (machine.Reply, error) {
	topic := []string{machine.WindowLog: bus.TopicWindows, machine.FeatureLog: bus.TopicFeatures, machine.CommandLog: bus.TopicCommands}[a.Log]
	var found []bus.Message
	r := machine.AgainOf{Again: a, Next: a.To}
	err := bus.ReadRange(ctx, s.cfg.Bus, topic, s.id, bus.Range{From: a.From, To: a.To}, func(m bus.Message) error {
		if m.Key != a.Machine {
			return nil
		}
		if found = append(found, m); len(found) == againBatch {
			r.Next = m.Offset + 1
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return machine.Reply{}, err
	}
	again := make(map[letterKey]bus.Message)
	for i := range found {
		m := &found[i]
		again[letterKey{topic, m.Offset, ""}] = *m
		switch a.Log {
		case machine.WindowLog:
			r.Windows = append(r.Windows, s.windowInput(m))
		case machine.FeatureLog:
			r.Windows = append(r.Windows, s.featuresInput(m))
		default:
			if c := s.commandOf(ctx, m); c.Handover == nil && !c.Foreign {
				r.Commands = append(r.Commands, c)
			}
		}
	}
	s.mu.Lock()
	s.again = again
	s.mu.Unlock()
	return machine.Reply{Again: &r}, nil
}

// windowInput returns a message of the windows topic as the owner takes it.
func (s *partition) windowInput(m *bus.Message) machine.Input {
	in := machine.Input{Offset: m.Offset, At: m.Time}
	if m.Header(envelope.Copied) == nil {
		in.Open = func(into *window.Features) error { return s.extract(m, into) }
	}
	return s.forwarded(in, m)
}

// forwarded says of a message whether the owner of another partition has forwarded it.
func (s *partition) forwarded(in machine.Input, m *bus.Message) machine.Input {
	if s.ofOtherGroup(m) {
		in.Open = nil
	}
	if from, err := strconv.Atoi(string(m.Header(headerMovedFrom))); err == nil && from >= 0 {
		in.Forwarded, in.Origin = true, from
	}
	return in
}

// ofOtherGroup reports whether the owner of another group has forwarded a message.
func (s *partition) ofOtherGroup(m *bus.Message) bool {
	by := m.Header(headerMovedBy)
	return by != nil && string(by) != s.cfg.Group
}

// commandOf returns a message of the commands topic as the owner takes it.
func (s *partition) commandOf(ctx context.Context, m *bus.Message) machine.Command {
	c := machine.Command{Key: m.Key, Value: m.Value, Offset: m.Offset, At: m.Time, Foreign: s.ofOtherGroup(m)}
	if m.Damage != nil {
		c.Key, c.Value = "", nil
		return c
	}
	if string(m.Header("ce_type")) != event.HandoverType {
		return c
	}
	var h event.Handover
	if json.Unmarshal(m.Value, &h) != nil || h.Machine != m.Key || min(h.From, h.To) < 0 {
		return c
	}
	if n, err := bus.Partitions(ctx, s.cfg.Bus, bus.TopicCommands); err == nil && max(h.From, h.To) < n {
		c.Handover = &h
	}
	return c
}

// handoverMessages returns the messages of a batch for other partitions: questions and
// answers, the state of machines that move, and what is forwarded.
func (s *partition) handoverMessages(ctx context.Context, b *machine.Batch, now time.Time) (msgs []bus.Message, err error) {
	for _, m := range b.Moves {
		for _, r := range m.Records {
			msg := stateMessage(r, now)
			msg.Pinned, msg.Partition = true, m.To
			msgs = append(msgs, msg)
		}
	}
	for _, o := range b.Events {
		if o.Handover == nil {
			continue
		}
		h, to, id := *o.Handover, o.Handover.To, o.Handover.ID
		if !h.Answer {
			end, err := s.endOf(ctx, h.From)
			if err != nil {
				return nil, fmt.Errorf("monitor: partition %d: %w: where partition %d ends: %w", s.id, bus.ErrLost, h.From, err)
			}
			to, h.Windows, h.Features = h.From, end.Windows, end.Features
		} else {
			id += "/answer"
		}
		msg := message(bus.TopicCommands, h.Machine+"/"+h.Group+"/handover/"+id, h.Machine, event.HandoverType, now, event.JSON(h))
		msg.Pinned, msg.Partition = true, to
		msgs = append(msgs, msg)
	}
	for _, f := range b.Forwards {
		l := machine.Letter{Offset: f.Offset, Command: f.Log == machine.CommandLog, Feature: f.Log == machine.FeatureLog}
		was := s.original(l)
		msg := bus.Message{Topic: was.Topic, Partition: f.To, Pinned: true, Key: was.Key, Value: was.Value}
		for _, h := range was.Headers {
			if h.Key != headerMovedFrom && h.Key != headerMovedBy {
				msg.Headers = append(msg.Headers, h)
			}
		}
		msg.Headers = append(msg.Headers, bus.Header{Key: headerMovedFrom, Value: strconv.AppendInt(nil, int64(s.id), 10)}, bus.Header{Key: headerMovedBy, Value: []byte(s.cfg.Group)})
		msgs = append(msgs, msg)
	}
	return msgs, nil
}
