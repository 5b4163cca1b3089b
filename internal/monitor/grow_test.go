package monitor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/ingest/grow"
	"github.com/flank-tcm/flank/pkg/window"
)

func (p *plant) grow(partitions int) {
	p.t.Helper()
	g := grow.Growth{Bus: p.bus, Partitions: partitions, Watch: time.Millisecond, Say: func(line string) { p.t.Log(line) }}
	if err := g.Run(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	out, err := bus.NewProducer(p.bus) // which knows the new partitions
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(out.Close)
	p.out = out
}

// movers returns names of machines, of which some have another partition of 7 than of 2.
func movers(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("acme/line1/m%d", i))
	}
	return names
}

// The topics grow twice between monitors. What is published is what a monitor publishes whose topics never
// grew: each window once, with the references and alarms of before, and commands are carried out.
func TestGrown(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	const windows = 12
	names := movers(4)
	var all []*window.Window
	sent := func(from, to int) {
		for _, name := range names {
			for seq := from; seq < to; seq++ {
				w := at(uint64(seq), "T1", seq%12 > 6)
				w.Machine = name
				all = append(all, w)
				p.send(p.message(w))
			}
		}
	}
	judged := 0
	for i, partitions := range []int{2, 7, 12} {
		if i > 0 {
			p.grow(partitions)
		}
		sent(i*windows, (i+1)*windows)
		m := p.monitor()
		judged += windows * len(names)
		p.untilResults(judged)
		if err := m.stop(); err != nil {
			t.Fatal(err)
		}
	}
	results, alerts := p.calm(all...)
	if got := p.results(); !maps.EqualFunc(got, results, func(a, b event.Result) bool { return string(event.JSON(a)) == string(event.JSON(b)) }) {
		t.Errorf("%d results, want %d\n%s", len(got), len(results), p.log.String())
	}
	if got := slices.Sorted(maps.Keys(p.alertsByID())); !slices.Equal(got, slices.Sorted(maps.Keys(alerts))) || len(got) < len(names) {
		t.Errorf("alerts %q, want %q", got, slices.Sorted(maps.Keys(alerts)))
	}
	if letters := p.read(bus.TopicDead); len(letters) > 0 {
		t.Errorf("%d dead letters, the first: %s", len(letters), letters[0].Header("dead_reason"))
	}
	p.monitor()
	moved := names[slices.IndexFunc(names, func(name string) bool { return bus.PartitionOf(name, 2) != bus.PartitionOf(name, 12) })]
	c := event.Command{ID: event.NewCommandID(), Machine: moved, Action: event.Suppress, By: "kim", Note: "n", Issued: time.Now()}
	if err := SendCommand(t.Context(), p.out, c); err != nil {
		t.Fatal(err)
	}
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		return strings.Contains(string(msgs[len(msgs)-1].Value), c.ID)
	})
	if standing, _, err := Alarms(t.Context(), p.bus, DefaultGroup); err != nil || len(standing) != len(names) {
		t.Errorf("%d machines in the listing, %v", len(standing), err)
	}
}

// A monitor does not start while the topics are half-grown, and says what
// to do.
func TestHalfGrown(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	if err := p.out.WriteGrowth(t.Context(), bus.Growth{Had: []int{2}, Growing: 7}); err != nil {
		t.Fatal(err)
	}
	const want = "the state of the machines has not followed yet: run `ingest topics grow --partitions 7` until it has ended"
	m, err := New(Config{Model: p.model, Bus: p.bus})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	steps, err := bus.Steps(p.bus, Needs(DefaultGroup))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(steps, func(s bus.Step) bool { return s.Name == "topics" })
	if _, err := steps[i].Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the check says %v", err)
	}
	p.grow(7)
	p.send(p.messages(life(3, 9)...)...)
	p.monitor()
	p.untilResults(3)
}

// A monitor looks for a growth once it is a member of its group: what it saw before it joined may be
// out of date.
func TestGrowthBeginsWhileAMonitorJoins(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 2)
	m, err := New(Config{Model: p.model, Bus: p.bus})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.checkTopics(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.out.WriteGrowth(t.Context(), bus.Growth{Had: []int{2}, Growing: 7}); err != nil {
		t.Fatal(err)
	}
	m.group.OnGeneration(2)
	if err := m.checkTopics(t.Context()); err == nil {
		t.Error("the monitor judges while the topics grow")
	}
}

// What lies in the old partition of a machine is not judged there, where the machine would begin a
// second time: windows that an ingester sends there late become dead letters, and what was there before
// the topics grew is passed over by a new group.
func TestWindowsInTheOldPartition(t *testing.T) {
	p := newPlant(t, 2)
	name := movers(9)[slices.IndexFunc(movers(9), func(name string) bool { return bus.PartitionOf(name, 2) != bus.PartitionOf(name, 7) })]
	var msgs []bus.Message
	for _, w := range life(9, 9) {
		w.Machine = name
		msgs = append(msgs, p.message(w))
	}
	p.send(msgs[:3]...)
	p.grow(7) // no group has ever run
	late := msgs[3]
	late.Pinned, late.Partition = true, bus.PartitionOf(name, 2)
	p.send(late)
	p.send(msgs[4:]...)
	p.monitor()
	p.untilResults(5)
	p.untilMessages(bus.TopicDead, 1)
	letter, err := bus.OpenLetter(p.read(bus.TopicDead)[0])
	if err != nil || !strings.Contains(letter.Reason, fmt.Sprintf("it lies in partition %d, and since the topics have grown its machine is in partition %d", bus.PartitionOf(name, 2), bus.PartitionOf(name, 7))) {
		t.Errorf("%+v, %v", letter, err)
	}
	p.send(letter.Message)
	p.untilResults(6)
	if records, err := history.Records(t.Context(), p.bus, DefaultGroup); err != nil || len(records) != 1 {
		t.Errorf("%v, %v", records, err)
	}
}
