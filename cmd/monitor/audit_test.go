package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
)

// The audit lists what was done, narrowed by each flag, also what someone has forged, safely. Changes
// of the people are in it, without their tokens.
func TestAuditListing(t *testing.T) {
	t.Setenv("USER", "lee")
	addr := startBroker(t, true)
	cfg := bus.Config{Brokers: []string{addr}}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("monitor.yaml", []byte("kafka: {brokers: [\""+addr+"\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	do := func(args ...string) error {
		stdout.Reset()
		stderr.Reset()
		return run(t.Context(), append(args, "--config", "monitor.yaml"), &stdout, &stderr)
	}
	list := func(args ...string) (all []event.Audit) {
		t.Helper()
		if err := do(append([]string{"audit", "-o", "json"}, args...)...); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(stdout.Bytes(), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := list(); got == nil || len(got) > 0 {
		t.Errorf("an empty topic: %+v", got)
	}
	if err := do("people", "add", "anna", "--role", "operator", "--file", "people.yaml"); err != nil || strings.Contains(stderr.String(), "note") {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	token := strings.TrimSpace(stdout.String())
	if err := do("people", "add", "anna", "--role", "operator", "--file", "people.yaml"); err == nil {
		t.Fatal("anna is there twice")
	}
	if err := do("people", "rm", "anna", "--file", "people.yaml"); err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, a := range []event.Audit{
		{Action: event.Acknowledge, Machine: "acme/spore/usk25", Alarm: "A-K3ZQ7M2P", Actor: event.Actor{Name: "kim", Identified: event.BySession, From: "192.0.2.7"}, Outcome: event.Accepted},
		{Action: event.Shelve, Machine: "acme/spore/usk20", Actor: event.Actor{Name: "vera", Identified: event.ByToken}, Outcome: event.Denied, Reason: "the role viewer may not", More: 4},
		{Action: event.Login, Actor: event.Actor{Name: "kim", Identified: event.ByToken}, Outcome: event.Accepted},
	} {
		a.At = noon.Add(time.Duration(i) * time.Hour)
		if err := audit.Write(t.Context(), cfg, "monitor", a); err != nil {
			t.Fatal(err)
		}
	}
	forged := event.Audit{ID: "f", At: noon.Add(-time.Hour), Program: "monitor", Action: "login", Outcome: "accepted", Actor: event.Actor{Name: "eve\x1b[2J\nroot"}}
	p, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Send(t.Context(), []bus.Message{audit.Message(forged), audit.Message(forged), {Topic: bus.TopicAudit, Key: "stray", Value: []byte("x")}}); err != nil {
		t.Fatal(err)
	}

	all := list()
	if len(all) != 7 || all[0].ID != "f" || !strings.Contains(stderr.String(), "note: 1 messages on tcm.audit.v1 cannot be read") {
		t.Errorf("%d records\n%s%s", len(all), &stdout, &stderr)
	}
	if strings.Contains(stdout.String(), token) || strings.ContainsAny(stdout.String(), "\x1b") {
		t.Errorf("the list has a token or an escape\n%s", &stdout)
	}
	for _, tc := range []struct {
		args string
		want int
	}{
		{"--by kim", 2}, {"--machine usk25", 1}, {"--machine acme/spore/usk20", 1}, {"--machine 25", 0}, {"--action login", 2}, {"--action login,shelve", 3}, {"--outcome refused", 2},
		{"--since 2026-11-20T12:00:00Z --until 2026-11-20T14:00:00Z", 2}, {"--until 2026-11-20T12:00:00Z", 1}, {"--action remove_person", 1}, {"--action add_person --outcome accepted", 1},
	} {
		if got := list(strings.Fields(tc.args)...); len(got) != tc.want {
			t.Errorf("%s: %d records, want %d\n%s", tc.args, len(got), tc.want, &stdout)
		}
	}
	if err := do("audit"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"when ", "acknowledge    accepted  kim", "192.0.2.7", "acme/spore/usk25, A-K3ZQ7M2P", "the role viewer may not (and 4 more before, without a record)",
		"anna (operator)", "anna is there already", `eve\x1b[2J\nroot`, "terminal", "@" + audit.Host(),
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the list lacks %q\n%s", want, &stdout)
		}
	}
	for args, want := range map[string]string{
		"--action nothing": "choose from login, logout", "--since 2026-11-20T12:00:00Z --until 2026-11-20T12:00:00Z": "is not before --until", "--outcome maybe": "--outcome",
	} {
		if err := do(append([]string{"audit"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Without the topic a command does what it is for, and says that it has no record.
func TestCommandWithoutAudit(t *testing.T) {
	t.Parallel()
	dir := folder(t, "monitor.yaml", "kafka: {brokers: [\""+startBroker(t, false)+"\"]}\n")
	var stdout, stderr bytes.Buffer
	var unread error
	var reading sync.WaitGroup
	reading.Go(func() { // next to the other command: both wait for the topic
		unread = run(t.Context(), []string{"audit", "--config", dir + "/monitor.yaml"}, io.Discard, io.Discard)
	})
	if err := run(t.Context(), []string{"people", "add", "anna", "--role", "viewer", "--file", dir + "/people.yaml", "--config", dir + "/monitor.yaml"}, &stdout, &stderr); err != nil || len(stdout.String()) < 20 {
		t.Errorf("%v\n%s", err, &stdout)
	}
	if !strings.Contains(stderr.String(), "note: tcm.audit.v1 has no record of this: ") || !strings.Contains(stderr.String(), "ingest topics apply") {
		t.Error(stderr.String())
	}
	if reading.Wait(); unread == nil || !strings.Contains(unread.Error(), "tcm.audit.v1") {
		t.Errorf("%v", unread)
	}
}
