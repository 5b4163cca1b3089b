package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// The topics grow while two monitors run and ingesters send. What is published is what a
// monitor publishes whose topics never grew: each window once, in order, and every alarm. The
// state of each machine lies in its new partition only, and a command that was sent meanwhile
// is carried out.
func TestGrownLive(t *testing.T) {
	p := newPlant(t, 2)
	p.monitor()
	p.monitor()
	const machines, count = 6, 60
	var all []*window.Window
	var ingesters sync.WaitGroup
	half := make(chan struct{}, machines)
	for i := range machines {
		name := fmt.Sprintf("acme/line1/m%d", i)
		var ws []*window.Window
		for seq := range uint64(count) {
			w := at(seq, "T1", seq%20 > 6)
			w.Machine = name
			ws = append(ws, w)
		}
		all = append(all, ws...)
		ingesters.Go(func() {
			out, err := bus.NewProducer(p.bus)
			if err != nil {
				t.Error(err)
				return
			}
			defer out.Close()
			for k, w := range ws {
				if k == count/3 {
					half <- struct{}{}
				}
				if err := out.Send(context.Background(), []bus.Message{p.message(w)}); err != nil {
					t.Error(err)
				}
				time.Sleep(40 * time.Millisecond)
			}
		})
	}
	for range machines {
		<-half
	}
	var said []string
	if err := bus.Grow(t.Context(), p.bus, 12, func(s string) { said = append(said, s) }); err != nil {
		t.Fatalf("%v, said %q", err, said)
	}
	suppress := event.Command{ID: event.NewCommandID(), Machine: "acme/line1/new", Action: event.Suppress, By: "kim", Note: "n", Issued: time.Now()}
	if err := SendCommand(t.Context(), p.out, suppress); err != nil { // of a machine that no partition knows
		t.Fatal(err)
	}
	ingesters.Wait()
	p.untilResults(machines * count)
	p.untilMessages(bus.TopicDead, 1)

	results, alerts := p.calm(all...)
	if got := p.results(); !maps.EqualFunc(got, results, func(a, b event.Result) bool { return string(event.JSON(a)) == string(event.JSON(b)) }) {
		late := 0
		for _, r := range got {
			if r.Late {
				late++
			}
		}
		t.Errorf("%d results, %d of them late, want %d\n%s", len(got), late, len(results), p.log.String())
	}
	if got := slices.Sorted(maps.Keys(p.alertsByID())); !slices.Equal(got, slices.Sorted(maps.Keys(alerts))) {
		t.Errorf("alerts %q, want %q", got, slices.Sorted(maps.Keys(alerts)))
	}
	last := map[string]bool{}
	for _, m := range p.read(bus.TopicState) {
		k, _ := machine.ParseKey(m.Key)
		if key := fmt.Sprint(m.Partition, m.Key); len(m.Value) == 0 {
			delete(last, key)
		} else if !k.Moved {
			last[key] = bus.PartitionOf(k.Machine, 12) == m.Partition && !k.Waits
		}
	}
	for key, home := range last {
		if !home {
			t.Errorf("a record lies where it should not: %q", key)
		}
	}
	standing, _, err := history.Alarms(t.Context(), p.bus, DefaultGroup)
	if err != nil || len(standing) != machines {
		t.Errorf("%d machines in the listing, %v", len(standing), err)
	}
}

// What the owner of another partition has forwarded says where it comes from, windows and
// features alike. What another group's owner has forwarded is not judged, and its commands are not
// carried out: the owners of each group forward the original.
func TestForwardedInputs(t *testing.T) {
	s := &partition{Monitor: &Monitor{cfg: Config{Group: "ours"}}, id: 3}
	for _, of := range []struct {
		by                string
		forwarded, judged bool
	}{{"", false, true}, {"ours", true, true}, {"theirs", true, false}} {
		m := &bus.Message{Topic: bus.TopicCommands, Key: "acme/line1/m0", Value: []byte("{}")}
		if of.forwarded {
			m.Headers = []bus.Header{{Key: headerMovedFrom, Value: []byte("2")}, {Key: headerMovedBy, Value: []byte(of.by)}}
		}
		for what, in := range map[string]machine.Input{"window": s.windowInput(m), "features": s.featuresInput(m)} {
			if in.Forwarded != of.forwarded || of.forwarded && in.Origin != 2 || (in.Open != nil) != of.judged || in.Past != 0 {
				t.Errorf("%s forwarded by %q: %+v", what, of.by, in)
			}
		}
		if c := s.commandOf(t.Context(), m); c.Foreign == of.judged {
			t.Errorf("command forwarded by %q: %+v", of.by, c)
		}
	}
}
