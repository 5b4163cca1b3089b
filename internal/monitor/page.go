package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/labels"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Show makes a page show the waveforms that the monitor sees and the models that judge: it
// sets OnWindow and OnModels. Verdicts, alerts and evidence come from the topics, see Follower.
func (c *Config) Show(hub *web.Hub) {
	c.OnModels = hub.Models
	c.OnWindow = func(l *signal.Layout, w *window.Window, r event.Result) {
		hub.Window(web.Window{
			Machine: w.Machine, Tool: w.Tool, Hole: w.Hole, Epoch: w.EpochString(), Seq: w.Seq, Start: w.Start, Layout: l, Quality: faults(l, r),
			Samples: w.Samples, Learning: r.Verdict == event.Learning, Idle: r.Verdict == event.NotCutting || r.Verdict == event.SensorFault,
		})
	}
}

// Bounds of what Recall reads.
const (
	recallFirst  = 256 // offsets of each partition, from its end backwards; then twice as many
	recallMost   = 4096
	recallEnough = 50       // alerts of a machine: a page keeps no more
	recallBytes  = 32 << 20 // of all partitions together
	recallAtOnce = 4        // partitions
)

// Recall shows the newest of what the topic of alerts holds of a group, so that a page knows after
// a restart what it knew before. It reads every partition from its end backwards, until
// each machine that it met has the alerts that a page keeps, or until it has read as
// many messages or bytes as the bounds allow: old messages cost nothing.
//
// Messages that cannot be read as events are skipped and counted. An error comes from the
// broker, for example if the monitor may not read the topic, or from ctx; what was read
// before is shown. Ends are the offsets up to which the partitions were read.
func Recall(ctx context.Context, cfg bus.Config, group string, hub *web.Hub) (ends map[int]int64, skipped int, err error) {
	r, err := readPast(ctx, cfg, group)
	for _, e := range r.events {
		give(hub, &e.Message)
	}
	if err != nil {
		err = fmt.Errorf("monitor: alerts: %w", err)
	}
	return r.ends, r.skipped, err
}

// past is what was read of the topic of alerts.
type past struct {
	events  []pastEvent // in the order in which they were sent
	read    int         // messages
	skipped int         // that are not events
	ends    map[int]int64
}

type pastEvent struct {
	at      time.Time // when it was sent, and never before what lies before it in its partition
	machine string
	summary.Message
}

// readPast reads the partitions, some of them at once. With an error it returns what it
// has.
func readPast(ctx context.Context, cfg bus.Config, group string) (all past, err error) {
	n, err := bus.Partitions(ctx, cfg, bus.TopicAlerts)
	if err != nil {
		return all, err
	}
	var (
		wg    sync.WaitGroup
		one   sync.Mutex
		slots = make(chan struct{}, recallAtOnce)
	)
	all.ends = make(map[int]int64)
	for id := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p, end, e := readPartitionsPast(ctx, cfg, group, id, recallBytes/n)
			one.Lock()
			defer one.Unlock()
			all.events = append(all.events, p.events...)
			all.read += p.read
			all.skipped += p.skipped
			if e == nil {
				all.ends[id] = end
			}
			if err == nil {
				err = e
			}
		})
	}
	wg.Wait()
	// A machine has events in two partitions if there were fewer once.
	slices.SortStableFunc(all.events, func(a, b pastEvent) int { return a.at.Compare(b.at) })
	return all, err
}

// readPartitionsPast reads a partition in parts, the last one first, each twice as long
// as the one behind it. It returns where the partition ended, too.
func readPartitionsPast(ctx context.Context, cfg bus.Config, group string, id, budget int) (p past, last int64, err error) {
	first, end, err := bus.Bounds(ctx, cfg, bus.TopicAlerts, id)
	last = end
	alerts := make(map[string]int) // by machine
	for size := int64(recallFirst); err == nil && first < end && p.read < recallMost && budget > 0; size *= 2 {
		var part past
		var bytes int
		from := max(first, end-min(size, int64(recallMost-p.read)))
		part, bytes, err = readPart(ctx, cfg, group, id, from, end, budget)
		if err != nil {
			break // what is missing of the part lies between what was read and what is known
		}
		for _, e := range part.events {
			n := alerts[e.machine] // also of a machine without alerts: it was met
			if e.Alert != nil {
				n++
			}
			alerts[e.machine] = n
		}
		p.events = append(part.events, p.events...)
		p.read, p.skipped = p.read+part.read, p.skipped+part.skipped
		budget -= bytes
		end = from
		if len(alerts) > 0 && slices.Min(slices.Collect(maps.Values(alerts))) >= recallEnough {
			break
		}
	}
	p.order()
	return p, last, err
}

// order makes times ascend as offsets do: clocks go back.
func (p *past) order() {
	for i := range p.events {
		if i > 0 && p.events[i].at.Before(p.events[i-1].at) {
			p.events[i].at = p.events[i-1].at
		}
	}
}

// readPart reads the messages of a partition from one offset up to but not including
// another, and keeps the last of them that are within so many bytes.
func readPart(ctx context.Context, cfg bus.Config, group string, id int, from, to int64, budget int) (p past, bytes int, err error) {
	var sizes []int
	err = bus.ReadRange(ctx, cfg, bus.TopicAlerts, id, bus.Range{From: from, To: to}, func(m bus.Message) error {
		p.read++
		e := pastEvent{m.Time, m.Key, summary.Message{At: m.Time}}
		ours, err := openEvent(&m, group, &e.Message)
		if err != nil {
			p.skipped++
		}
		if !ours {
			return nil
		}
		p.events, sizes = append(p.events, e), append(sizes, len(m.Value))
		for bytes += len(m.Value); bytes > budget && len(sizes) > 1; {
			bytes -= sizes[0]
			p.events, sizes = p.events[1:], sizes[1:]
		}
		return nil
	})
	return p, bytes, err
}

// Control lets pages send commands and labels through out. Known returns the classes of states in labels.
func Control(cfg bus.Config, out *bus.Producer, known labels.Classes) *web.Control {
	return &web.Control{
		Send: func(ctx context.Context, c event.Command) error { return SendCommand(ctx, out, c) },
		Label: func(ctx context.Context, l event.Label, tools map[string]string, anyway bool) ([]string, error) {
			if !anyway {
				all, _, err := labels.Read(ctx, cfg)
				if err != nil {
					return nil, err
				}
				seen := make(labels.Seen)
				if tools != nil {
					seen[l.Machine] = tools
				}
				if doubts := known.Doubts(all, seen, l); len(doubts) > 0 {
					return doubts, nil
				}
			}
			return nil, out.Send(ctx, []bus.Message{labels.Message(l)})
		},
	}
}

// faults returns what is wrong with each channel beyond what the model has
// learnt to expect of it.
func faults(layout *signal.Layout, r event.Result) []signal.Quality {
	qs := make([]signal.Quality, len(layout.Channels()))
	for _, s := range r.Sensors {
		if q, err := signal.ParseQuality(s.Flags); err == nil && layout.Index(s.Channel) >= 0 { // it may be of another layout
			qs[layout.Index(s.Channel)] = q
		}
	}
	return qs
}
