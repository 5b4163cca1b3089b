package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/fetch"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// gun is a machine that a gateway may have, and gunRaised the window of gunLife whose alert it
// is.
const (
	gun       = "acme/spore/bay2/line1/gun"
	gunRaised = gun + "/0000000000000001/11/" + DefaultGroup + "/raised"
)

// gunLife is life(20, 10) of gun.
func gunLife() []*window.Window {
	ws := life(20, 10)
	for _, w := range ws {
		w.Machine = gun
	}
	return ws
}

// blocks are windows as the source of a gateway.
type blocks struct {
	layout *signal.Layout
	ws     []*window.Window
	first  int64
}

func (s *blocks) Layout() *signal.Layout { return s.layout }

func (s *blocks) Next(context.Context) (*source.Block, error) {
	if len(s.ws) == 0 {
		return nil, io.EOF
	}
	w := s.ws[0]
	s.ws = s.ws[1:]
	b := &source.Block{Block: signal.Block{Context: w.Context, Session: 1, First: s.first, Time: w.Start, Samples: w.Samples}}
	s.first += int64(len(w.Samples[0]))
	return b, nil
}

// deliver sends windows by a gateway, in mode edge or raw, under the epoch of life.
func (p *plant) deliver(mode *gateway.Edge, dir string, ws []*window.Window) {
	p.t.Helper()
	g, err := gateway.New(gateway.Config{
		Source: &blocks{layout: p.model.Layout, ws: ws}, Window: p.model.Window, SpoolDir: dir, Bus: p.bus, Edge: mode,
		MintEpoch: func() uint64 { return 1 }, Log: zerolog.New(&p.log),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	defer g.Close()
	if err := g.Run(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// answerFetches answers commands from the spool of a gateway until the test ends.
func (p *plant) answerFetches(dir string) {
	p.t.Helper()
	f, err := gateway.NewFetcher(gateway.FetcherConfig{Machine: gun, SpoolDir: dir, Length: p.model.Window.Length, Bus: p.bus, Log: zerolog.New(&p.log)})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(stopped)
	}()
	go func() {
		_ = bus.ReadTopic(ctx, p.bus, bus.TopicCommands, bus.FirstOffset, true, func(m bus.Message) error { // it ends with ctx
			var c event.Command
			if json.Unmarshal(m.Value, &c) == nil && c.Action == event.Fetch {
				f.Take(c)
			}
			return nil
		})
	}()
	p.t.Cleanup(func() { stop(); <-stopped })
}

// A recording gives the same results, alerts and evidence, byte for byte, whether its gateway
// sends windows or features; for the evidence the monitor fetches windows from the gateway. What
// the machine's control said is in results and evidence of both.
func TestEdgeModeAgrees(t *testing.T) {
	t.Parallel()
	type said struct{ results, alerts, waveform []byte }
	var both [2]said
	for i, mode := range []*gateway.Edge{nil, {Keep: time.Hour, Sample: 7}} {
		p := newPlant(t, 1)
		dir, kept := filepath.Join(t.TempDir(), "spool"), filepath.Join(t.TempDir(), "evidence")
		p.monitor(keeping(t, kept))
		ws := gunLife()
		for _, w := range ws {
			w.FeedRate, w.Programme, w.Material = 82.5, "O1234 <bore>", "42CrMo4"
		}
		p.deliver(mode, dir, ws)
		if mode != nil {
			p.answerFetches(dir)
		}
		p.untilResults(20)
		e := p.evidence(1)[gunRaised+"/evidence"]
		if !e.Complete || e.Windows != 10 {
			t.Errorf("mode %d: %+v\n%s", i, e, p.log.String())
		}
		if n := len(p.read(bus.TopicDead)); n != 0 {
			t.Errorf("mode %d: %d dead letters", i, n)
		}
		files, err := filepath.Glob(filepath.Join(kept, "*.arrow"))
		if err != nil || len(files) != 1 {
			t.Fatalf("mode %d: %d files, %v", i, len(files), err)
		}
		waveform, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		both[i] = said{event.JSON(p.results()), event.JSON(p.alertsByID()), waveform}
	}
	raw, edge := both[0], both[1]
	if !bytes.Equal(raw.results, edge.results) || !bytes.Equal(raw.alerts, edge.alerts) || !bytes.Equal(raw.waveform, edge.waveform) {
		t.Errorf("raw:\n%s\n%s\nedge:\n%s\n%s\nevidence of %d and %d bytes", raw.results, raw.alerts, edge.results, edge.alerts, len(raw.waveform), len(edge.waveform))
	}
	if n := bytes.Count(raw.results, []byte(`"feed_rate":82.5,"programme":"O1234 \u003cbore\u003e","material":"42CrMo4"`)); n != 20 {
		t.Errorf("%d results say what the control said", n)
	}
	for _, text := range []string{"feed_rate", "O1234 <bore>", "42CrMo4"} {
		if !bytes.Contains(raw.waveform, []byte(text)) {
			t.Errorf("the evidence has no %s", text)
		}
	}
	if len(raw.alerts) < 100 {
		t.Error("no alert: the test has no teeth")
	}
}

// Where the gateway is silent, or has given windows up, the evidence says what is missing, and
// judging goes on.
func TestEvidenceOfASilentGateway(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers bool
		text    string
	}{
		"silent": {false, "not kept: all its windows are gone; Kafka has only features of this machine, and its gateway was silent for 300ms: `ingest fetch` brings"},
		"gone":   {true, "not kept: all its windows are gone; Kafka has only features of this machine, and its gateway sent no window; the spool is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t, 1)
			p.monitor(keeping(t, t.TempDir()), func(m *Monitor) {
				if !tc.answers {
					m.fetchPatience = 300 * time.Millisecond
				}
			})
			p.deliver(&gateway.Edge{Keep: time.Hour}, filepath.Join(t.TempDir(), "spool"), gunLife())
			if tc.answers {
				p.answerFetches(filepath.Join(t.TempDir(), "new"))
			}
			e := p.evidence(1)[gunRaised+"/evidence"]
			if e.Complete || e.Windows != 0 || !strings.Contains(e.Text, tc.text) {
				t.Errorf("%+v", e)
			}
			p.send(p.edgeMessage(at(30, "T1", true)))
			p.untilResults(21)
		})
	}
}

// Commands that gateways answer are not for monitors: not for machines that they know, and
// not for others. A command after them that cannot be used is the only dead letter.
func TestMonitorLeavesFetchesToGateways(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	p.monitor()
	p.send(p.messages(at(0, "T1", false))...)
	p.untilResults(1)
	now := time.Now()
	var ids []string
	for _, name := range []string{drill, gun} {
		c := event.Command{ID: event.NewCommandID(), Machine: name, Action: event.Fetch, By: "kim", Issued: now, Until: now.Add(time.Hour), Wanted: &event.Wanted{From: now.Add(-time.Hour), To: now, Windows: 9}}
		m, err := fetch.CommandMessage(c)
		if err != nil {
			t.Fatal(err)
		}
		p.send(m)
		ids = append(ids, c.ID)
	}
	p.send(bus.Message{Topic: bus.TopicCommands, Key: gun, Value: []byte("{}")})
	p.untilMessages(bus.TopicDead, 1)
	for _, id := range ids {
		if dead := string(p.read(bus.TopicDead)[0].Value); strings.Contains(dead, id) {
			t.Errorf("a dead letter: %s", dead)
		}
	}
	if n := len(p.read(bus.TopicAlerts)); n != 0 {
		t.Errorf("%d alerts", n)
	}
}
