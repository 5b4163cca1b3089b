package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/route"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// Every step that fails has an exit code of its own.
func TestCheck(t *testing.T) {
	addr := startBroker(t, false)
	bench(t, "monitor.yaml", monitorYAML(addr, ""))
	cfg := bus.Config{Brokers: []string{addr}}
	check := func() (string, error) {
		var out, log bytes.Buffer
		err := run(t.Context(), []string{"check", "--config", "monitor.yaml"}, &out, &log)
		return out.String(), err
	}
	failing := func(name string, code int, want string) {
		t.Helper()
		out, err := check()
		var own *cli.Exit
		if !errors.As(err, &own) || own.Code != code || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), want) || !strings.Contains(out, "FAILED") {
			t.Errorf("%s: %v, want %q and exit code %d\n%s", name, err, want, code, out)
		}
	}
	failing("topics", 7, "ingest topics apply")
	if _, err := bus.Apply(t.Context(), cfg, 2, 1); err != nil {
		t.Fatal(err)
	}
	out, err := check()
	if err != nil || strings.Count(out, " ok ") != 10 || !strings.Contains(out, "0 machines") {
		t.Errorf("check: %v\n%s", err, out)
	}
	p, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	put := func(value string) {
		t.Helper()
		key := event.StateKey{Group: monitor.DefaultGroup, Machine: "acme/line1/drill"}.String()
		if err := p.Send(t.Context(), []bus.Message{{Topic: bus.TopicState, Key: key, Route: "acme/line1/drill", Value: []byte(value)}}); err != nil {
			t.Fatal(err)
		}
	}
	put(`{"version":3,"machine":"acme/line1/drill","epoch":{"id":"0000000000000001","judged":[[0,5]]}}`)
	if out, err := check(); err != nil || !strings.Contains(out, "1 machines, 0 with a reference, 0 alarms raised") {
		t.Errorf("check: %v\n%s", err, out)
	}
	for text, want := range map[string]string{
		"evidence: {dir: evidence, keep: 7}\n":               "evidence of 0 alerts, at most 7, in ",
		"history: {dir: kept}\n":                             "kept/history.db, which is not there yet",
		"evidence: {dir: m.flank}\n":                         "m.flank: ",
		"evidence: {dir: evidence, keep: -1}\n":              "keep -1: must be 1 or more",
		"evidence: {dir: evidence, url: 'plant:9102/x y'}\n": "must be the address of the page",
	} {
		page := ""
		if strings.Contains(text, "history") {
			page = "127.0.0.1:0"
		}
		bench(t, "monitor.yaml", monitorYAML(addr, page)+text)
		if strings.Contains(text, "keep: 7") || strings.Contains(text, "history") {
			if out, err := check(); err != nil || !strings.Contains(out, want) {
				t.Errorf("check: %v\n%s", err, out)
			}
			continue
		}
		failing("disk", 12, want)
	}
	bench(t, "monitor.yaml", monitorYAML(addr, ""))
	for _, record := range []string{`{"version":3,"machine":"acme/line1/lathe"}`, `{"version":4,"machine":"acme/line1/drill"}`} {
		put(record)
		failing("state", 11, "will set this record aside")
	}
	if err := os.WriteFile("m.flank", []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	failing("model", 10, "m.flank")
	if err := os.WriteFile("monitor.yaml", []byte(monitorYAML(nowhere, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	failing("tcp", 4, nowhere)
}

// A machine of which Kafka has features only counts without windows, until its gateway sends
// windows again.
func TestCheckMode(t *testing.T) {
	addr := startBroker(t, true)
	bench(t, "monitor.yaml", monitorYAML(addr, ""))
	trained, err := model.Load("m.flank")
	if err != nil {
		t.Fatal(err)
	}
	writes, err := cli.MachineWrites(trained.Layout, trained.Window)
	if err != nil {
		t.Fatal(err)
	}
	p, err := bus.NewProducer(bus.Config{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	judge := func(name string, offsets ...event.Offset) {
		t.Helper()
		m, err := machine.New(name, &machine.Settings{Group: "tcm-monitor", Alarm: alarm.Default}, machine.NewModel(trained), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for seq, offset := range offsets {
			w := machinetest.At(uint64(seq), "T1", false)
			w.Machine = name
			m.Apply(machine.Window{Features: machinetest.Features(trained, w), Offset: offset, At: w.End(), Now: w.End()})
		}
		for _, r := range m.Records() {
			if err := p.Send(t.Context(), []bus.Message{{Topic: bus.TopicState, Key: r.Key.String(), Value: r.Value}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(windows int64, mode string) {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), []string{"check", "--config", "monitor.yaml"}, &out, io.Discard); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		row := strings.Fields(after(out.String(), "\n            "+bus.TopicWindows+" "))
		if got, want := strings.Join(row[2:4], " "), bus.FormatBytes(windows*writes[bus.TopicWindows]); got != want || strings.Contains(out.String(), "in mode edge") != (mode != "") || !strings.Contains(out.String(), mode) {
			t.Errorf("%s of windows a day, want %s and %q\n%s", got, want, mode, out.String())
		}
	}
	first, then, edge := event.Offset{}, event.Offset{At: 1}, event.Offset{Features: true}
	judge("acme/line1/a", first, then)
	judge("acme/line1/b", edge, first, then)
	judge("acme/line1/c", then, edge)
	check(2, "3 machines, 3 with a reference, 0 alarms raised; 1 in mode edge: of these the disk step counts no windows")
	judge("acme/line1/c", first, edge, then)
	check(3, "")
}

// A monitor with a page, or with routes, reads what monitors publish.
func TestNeeds(t *testing.T) {
	results, alerts := bus.TopicResults, bus.TopicAlerts
	for name, tc := range map[string]struct {
		change func(*settings)
		want   []string
	}{
		"with a page":             {func(*settings) {}, []string{results, alerts}},
		"without":                 {func(c *settings) { c.Page.Listen = "" }, nil},
		"with a route alone":      {func(c *settings) { c.Page.Listen = ""; c.Alerts.Routes = append(c.Alerts.Routes, route.Config{}) }, []string{alerts}},
		"with a page and a route": {func(c *settings) { c.Alerts.Routes = append(c.Alerts.Routes, route.Config{}) }, []string{results, alerts}},
	} {
		c := defaults("monitor.yaml")
		tc.change(&c)
		var got []string
		for _, topic := range c.needs().Read {
			if topic == results || topic == alerts {
				got = append(got, topic)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: reads %q, want %q", name, got, tc.want)
		}
	}
}
