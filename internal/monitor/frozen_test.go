package monitor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/window"
)

// frozen is a plant as the formats of November 2026 leave it on its disks. After the first release it is never made
// again: later releases must read it. A release that changes a form adds a plant of its own next to it (docs/figures/held.md#frozen-plants).
const frozen = "release-2026-11"

// TestMakeFrozen makes the plant in the folder that FIXTURE names.
func TestMakeFrozen(t *testing.T) {
	dir := os.Getenv("FIXTURE")
	if dir == "" {
		t.Skip("FIXTURE names no folder: the frozen plant is made once for a release")
	}
	p := newPlantIn(t, t.TempDir())
	for _, topic := range bus.Planned(1) {
		settings := []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}} // the data are read for years
		if topic.Settings["cleanup.policy"] == "compact" {
			settings = []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}
		}
		partitions := 2
		if topic.Single {
			partitions = 1
		}
		p.createTopic(topic.Name, partitions, settings...)
	}
	mon := p.monitor(keeping(t, t.TempDir()))
	send := func(name string, ws ...*window.Window) { p.send(p.messages(ofMachine(name, ws...)...)...) }
	send("acknowledged", life(7, 4)...)
	send("shelved", life(7, 4)...)
	send("raised", life(6, 4)...)
	send("healthy", life(4, 100)...)
	p.ingestRows(p.bus.Brokers, filepath.Join(dir, "spool"), strings.Repeat("10\n", 3))
	p.untilResults(7 + 7 + 6 + 4 + 3)
	for _, c := range []event.Command{
		{Machine: upgradedLine + "acknowledged", Action: event.Acknowledge, Incident: p.standing(upgradedLine + "acknowledged").Incident, Note: "change at hole end"},
		{Machine: upgradedLine + "shelved", Action: event.Shelve, Note: "test piece", Until: time.Now().Add(4 * time.Hour)},
	} {
		c.ID, c.By, c.Issued = event.NewCommandID(), "kim", time.Now()
		if err := SendCommand(t.Context(), p.out, c); err != nil {
			t.Fatal(err)
		}
		p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
			var a event.Alert
			_ = json.Unmarshal(msgs[len(msgs)-1].Value, &a)
			return a.Command == c.ID
		})
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	// Windows and a command that no monitor has seen, and windows that no broker has.
	send("healthy", life(7, 100)[4:]...)
	waiting := event.Command{ID: event.NewCommandID(), Machine: upgradedLine + "healthy", Action: event.Suppress, By: "lee", Note: "door open", Issued: time.Now()}
	if err := SendCommand(t.Context(), p.out, waiting); err != nil {
		t.Fatal(err)
	}
	p.ingestRows([]string{"127.0.0.1:1"}, filepath.Join(dir, "spool"), strings.Repeat("10\n", 2)+strings.Repeat("20\n", 3))

	if err := p.model.Save(filepath.Join(dir, "model")); err != nil {
		t.Fatal(err)
	}
	p.out.Close()
	if err := p.broker.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "broker"), os.DirFS(p.dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "made"), []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ingestRows runs an ingester on a spool with these rows of a recording, for two seconds where no broker answers.
func (p *plant) ingestRows(brokers []string, spool, rows string) {
	p.t.Helper()
	r := source.Recording{Path: filepath.Join(p.t.TempDir(), "live.csv"), Layout: p.model.Layout, Machine: upgradedLathe}
	if err := os.WriteFile(r.Path, []byte("force\n"+rows), 0o600); err != nil {
		p.t.Fatal(err)
	}
	src, err := r.Open()
	if err != nil {
		p.t.Fatal(err)
	}
	cfg := p.bus
	cfg.Brokers = brokers
	g, err := gateway.New(gateway.Config{Source: src, Window: window.DefaultSpec, SpoolDir: spool, Bus: cfg, Log: zerolog.Nop()})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx := p.t.Context()
	if !slices.Equal(brokers, p.bus.Brokers) {
		away, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		ctx = away
	}
	if err := g.Run(ctx); err != nil {
		p.t.Log(err)
	}
	_ = g.Close()
}

// This release reads everything that the frozen one left: spool, windows, model, states, results, alerts, commands.
func TestReadsFrozen(t *testing.T) {
	t.Parallel()
	p, clock := openFrozen(t, frozen)
	incidents, decided := map[string]string{}, len(p.results())
	for _, a := range p.alertsByID() {
		if a.State == event.Raised {
			incidents[strings.TrimPrefix(a.Machine, upgradedLine)] = a.Incident
		}
	}
	if decided != 7+7+6+4+3 || len(incidents) != 3 {
		t.Fatalf("%d results and %d alarms are read, want 27 and 3", decided, len(incidents))
	}
	p.ingestUpgraded()
	windows := len(p.read(bus.TopicWindows))
	if windows != decided+3+5+2 {
		t.Fatalf("%d windows are on Kafka, of the spool too", windows)
	}
	p.monitor(clock, keeping(t, t.TempDir()))
	p.untilResults(windows)
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		return strings.Contains(string(msgs[len(msgs)-1].Value), `"suppressed"`)
	})
	for w, n := range p.perWindow() {
		if n != 1 {
			t.Errorf("window %s has %d results", w, n)
		}
	}
	for name, want := range map[string]struct{ alarm, by string }{"acknowledged": {"acknowledged", "kim"}, "shelved": {"shelved", "kim"}, "raised": {"raised", ""}, "healthy": {"suppressed", "lee"}} {
		if st := p.standing(upgradedLine + name); st.Alarm != want.alarm || st.By != want.by || st.Incident != incidents[name] {
			t.Errorf("%s: %+v, want %s by %q under %q", name, st, want.alarm, want.by, incidents[name])
		}
	}
	if letters := p.read(bus.TopicDead); len(letters) > 0 {
		t.Errorf("%d dead letters, the first: %s", len(letters), letters[0].Header("dead_reason"))
	}
}
