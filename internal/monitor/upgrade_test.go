package monitor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	upgradedLine  = "acme/line1/"
	upgradedLathe = "acme/spore/bay2/line1/lathe"
)

// newUpgradedPlant is the plant of testdata/old-release on the disks of this release, and
// a clock that goes on a minute after it was made.
func newUpgradedPlant(t *testing.T) (p *plant, clock func(*Monitor)) {
	t.Helper()
	p, clock = openFrozen(t, "old-release")
	p.apply(0) // as how-to/upgrade.md says: the release before knew fewer topics
	return p, clock
}

// openFrozen opens a copy of a plant in testdata.
func openFrozen(t *testing.T, release string) (p *plant, clock func(*Monitor)) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", release))); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(filepath.Join(dir, "model"))
	if err != nil {
		t.Fatal(err)
	}
	p = &plant{t: t, dir: filepath.Join(dir, "broker"), model: m}
	p.open()
	text, err := os.ReadFile(filepath.Join(dir, "made"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	ahead := time.Since(made) - time.Minute
	return p, func(m *Monitor) { m.now = func() time.Time { return time.Now().Add(-ahead) } }
}

// ingestUpgraded runs this release's ingester on the old spool, with two more windows.
func (p *plant) ingestUpgraded() {
	p.t.Helper()
	r := source.Recording{Path: filepath.Join(p.t.TempDir(), "live.csv"), Layout: p.model.Layout, Machine: upgradedLathe}
	if err := os.WriteFile(r.Path, []byte("force\n10\n10\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	src, err := r.Open()
	if err != nil {
		p.t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Source: src, Window: window.DefaultSpec, SpoolDir: filepath.Join(p.dir, "..", "spool"), Bus: p.bus, Log: zerolog.New(&p.log)})
	if err != nil {
		p.t.Fatal(err)
	}
	defer g.Close()
	if err := g.Run(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// perWindow returns how many results each window has, under any id.
func (p *plant) perWindow() map[string]int {
	n := map[string]int{}
	for _, r := range p.results() {
		n[fmt.Sprintf("%s/%s/%d", r.Machine, r.Epoch, r.Seq)]++
	}
	return n
}

// alertsOf returns the states of a machine's alerts, in order of their names.
func (p *plant) alertsOf(name string) string {
	var states []string
	for _, a := range p.alertsByID() {
		if a.Machine == upgradedLine+name {
			states = append(states, string(a.State))
		}
	}
	slices.Sort(states)
	return strings.Join(states, " ")
}

// ofMachine returns windows of a machine of the old plant.
func ofMachine(name string, ws ...*window.Window) []*window.Window {
	for _, w := range ws {
		w.Machine = upgradedLine + name
	}
	return ws
}

// The disks of a plant of the release before are taken over: broker, spool, model and
// state records, once, with what was decided and not sent, and what people have done.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	p, clock := newUpgradedPlant(t)
	evidence := keeping(t, t.TempDir())
	incidents, raised := map[string]string{}, 0
	for _, a := range p.alertsByID() {
		if a.State == "raised" {
			incidents[strings.TrimPrefix(a.Machine, upgradedLine)] = a.Incident
			raised++
		}
	}
	if raised != 3 {
		t.Fatalf("%d alarms were raised", raised)
	}
	had := map[string]bool{}
	for _, m := range append(p.read(bus.TopicResults), p.read(bus.TopicAlerts)...) {
		had[string(m.Header("ce_id"))] = true
	}

	p.ingestUpgraded()
	windows := len(p.read(bus.TopicWindows))
	mon := p.monitor(clock, evidence)
	p.untilResults(windows)
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool { // the command that no one had answered
		return strings.Contains(string(msgs[len(msgs)-1].Value), `"suppressed"`)
	})

	if n := p.perWindow(); len(n) != windows {
		t.Errorf("%d windows have results, want %d", len(n), windows)
	} else {
		for w, results := range n {
			if results != 1 {
				t.Errorf("window %s has %d results", w, results)
			}
		}
	}
	late := map[string]int{} // how often what was pending was sent
	for _, m := range append(p.read(bus.TopicResults), p.read(bus.TopicAlerts)...) {
		if id := string(m.Header("ce_id")); m.Key == upgradedLine+"unsent" && !had[id] {
			late[id]++
		}
	}
	of := upgradedLine + "unsent/0000000000000001/"
	for _, id := range []string{of + "4", of + "5", of + "5/raised"} {
		if late[id] != 1 {
			t.Errorf("%s was sent %d times", id, late[id])
		}
	}
	if len(late) != 3 {
		t.Errorf("sent of the machine whose results were not: %v", late)
	}
	for name, want := range map[string]struct{ alarm, by, alerts string }{
		"acknowledged": {"acknowledged", "kim", "acknowledged raised"},
		"shelved":      {"shelved", "kim", "raised shelved"},
		"raised":       {"raised", "", "raised"},
		"unsent":       {"raised", "", "raised"},
		"healthy":      {"normal", "", "shelved unshelved"},
		"clock":        {"suppressed", "lee", "suppressed"},
	} {
		st := p.standing(upgradedLine + name)
		if st.Alarm != want.alarm || st.By != want.by || name != "unsent" && st.Incident != incidents[name] {
			t.Errorf("%s: %+v, want %s by %q under %s", name, st, want.alarm, want.by, incidents[name])
		}
		if got := p.alertsOf(name); got != want.alerts {
			t.Errorf("%s: alerts %q, want %q", name, got, want.alerts)
		}
		if name == "clock" && (len(st.Advisories) != 1 || st.Advisories[0].Kind != event.SensorAdvisory) {
			t.Errorf("advisories %+v", st.Advisories)
		}
	}
	p.checkKeys()

	// The shelf ends by command, evidence is written when its windows come, and the alarm
	// that is raised stays the one that it was.
	unshelve := event.Command{ID: event.NewCommandID(), Machine: upgradedLine + "shelved", Action: event.Unshelve, By: "lee", Issued: time.Now()}
	if err := SendCommand(t.Context(), p.out, unshelve); err != nil {
		t.Fatal(err)
	}
	p.until(bus.TopicAlerts, func(msgs []bus.Message) bool {
		return strings.Contains(string(msgs[len(msgs)-1].Value), unshelve.ID)
	})
	p.send(p.messages(ofMachine("raised", life(14, 4)[6:]...)...)...)
	windows += 8
	p.untilResults(windows)
	of = upgradedLine + "raised/0000000000000001/5/raised"
	e := p.evidence(1)[of+"/evidence"]
	if !e.Complete || e.Incident != incidents["raised"] {
		t.Errorf("evidence %+v", e)
	}
	if st, alerts := p.standing(upgradedLine+"raised"), p.alertsOf("raised"); st.Incident != incidents["raised"] || alerts != "raised" {
		t.Errorf("%+v, alerts %q", st, alerts)
	}
	if letters := p.read(bus.TopicDead); len(letters) > 0 {
		t.Errorf("%d dead letters, the first: %s", len(letters), letters[0].Header("dead_reason"))
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}

	// Another start changes nothing. The broker may compact the records at any time, so only the
	// last of each key counts.
	before := map[string]int{}
	topics := []string{bus.TopicResults, bus.TopicAlerts, bus.TopicDead}
	for _, topic := range topics {
		before[topic] = len(p.read(topic))
	}
	state := p.lastStates()
	p.monitor(clock, evidence)
	p.send(p.messages(ofMachine("healthy", life(8, 100)[7:]...)...)...)
	p.send(p.messages(ofMachine("clock", at(5, "T1", false))...)...)
	p.untilResults(windows + 2)
	before[bus.TopicResults] += 2
	for _, topic := range topics {
		if msgs := p.read(topic); len(msgs) != before[topic] {
			t.Errorf("%s: %d messages, want %d; the last: %q %.300s", topic, len(msgs), before[topic], msgs[len(msgs)-1].Key, msgs[len(msgs)-1].Value)
		}
	}
	for key, m := range p.lastStates() {
		if strings.Contains(key, upgradedLine+"healthy") || strings.Contains(key, upgradedLine+"clock") {
			continue // these two have had a window
		}
		if was, there := state[key]; !there || !bytes.Equal(was.Value, m.Value) {
			t.Errorf("the record %q changed from %.300s to %.300s", key, was.Value, m.Value)
		}
	}
}

// lastStates returns the last record of each key.
func (p *plant) lastStates() map[string]bus.Message {
	p.t.Helper()
	last := map[string]bus.Message{}
	for _, m := range p.read(bus.TopicState) {
		last[m.Key] = m
	}
	return last
}

// checkKeys checks that the machines' old records are deleted and the group's are there.
func (p *plant) checkKeys() {
	p.t.Helper()
	last := p.lastStates()
	for _, name := range []string{"acknowledged", "shelved", "raised", "unsent", "healthy", "clock"} {
		if old, there := last[upgradedLine+name]; !there || old.Value != nil {
			p.t.Errorf("%s: its old record is not deleted", name)
		}
		if len(last[machine.Key{Group: DefaultGroup, Machine: upgradedLine + name}.String()].Value) == 0 {
			p.t.Errorf("%s has no record of the group", name)
		}
	}
}

// A monitor of the release before that was suspended has written its record behind a newer
// one. The newer one is taken over.
func TestUpgradeRecordOfThePast(t *testing.T) {
	t.Parallel()
	p, clock := newUpgradedPlant(t)
	const name = upgradedLine + "acknowledged"
	records := p.read(bus.TopicState)
	past := records[slices.IndexFunc(records, func(m bus.Message) bool { return m.Key == name })]
	if strings.Contains(string(past.Value), `"acked":true`) || past.Header(headerTurn) == nil {
		t.Fatalf("the first record is not of before the acknowledgement: %s", past.Value)
	}
	i := slices.IndexFunc(past.Headers, func(h bus.Header) bool { return h.Key == headerTurn })
	past.Headers[i].Value = []byte("0")
	p.send(past)
	p.monitor(clock)
	p.send(p.messages(ofMachine("acknowledged", at(7, "T1", true))...)...)
	p.until(bus.TopicResults, func(msgs []bus.Message) bool {
		return strings.Contains(string(msgs[len(msgs)-1].Value), fmt.Sprintf(`"id":"%s/0000000000000001/7/`, name))
	})
	if st := p.standing(name); st.Alarm != "acknowledged" {
		t.Errorf("%+v", st)
	}
	if got := p.alertsOf("acknowledged"); got != "acknowledged raised" {
		t.Errorf("alerts %q", got)
	}
}

// While a member of the older release is in the group a monitor is not ready, and says
// which member keeps it out. Then it takes over by itself.
func TestOlderReleaseKeepsMonitorOut(t *testing.T) {
	p := newPlant(t, 1)
	cfg := p.bus
	cfg.ClientID = "older"
	older, err := bus.NewGroup(cfg, DefaultGroup, bus.TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	joined := make(chan struct{}, 10)
	older.OnGeneration = func(int) { joined <- struct{}{} }
	go func() {
		_ = older.Run(ctx, func(ctx context.Context, _ *bus.Partition) error { <-ctx.Done(); return ctx.Err() })
	}()
	<-joined
	m := p.monitor()
	ready := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			err := m.Ready()
			if strings.Contains(fmt.Sprint(err), want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("Ready: %v, want %s", err, want)
			}
		}
	}
	p.send(p.messages(at(0, "T1", false))...)
	ready("group tcm-monitor has members of another release, and Kafka lets this program in when they have left: stop them (older at ")
	if n := len(p.results()); n > 0 {
		t.Errorf("%d results of a monitor that was kept out", n)
	}
	stop()
	p.untilResults(1)
	ready("<nil>")
}
