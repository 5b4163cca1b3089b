package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/monitor"
)

// Someone who may write to Kafka fills every text of events, states and dead letters with
// what could move a cursor, forge a line or become a link. No listing and no report shows it raw.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	addr := startBroker(t, true)
	dir := folder(t, "monitor.yaml", monitorYAML(addr, ""))
	const evil = "T1\nFORGED line\r\x1b[2J\u009b31m\u202e<b>[x](https://evil.example)|"
	machine := "acme/spore/bay2/line1/" + evil
	at := time.Now().Add(-time.Hour).UTC()
	alert := func(state event.AlertState) bus.Message {
		a := event.Alert{
			ID: "a/" + string(state), Group: monitor.DefaultGroup, Machine: machine, Tool: evil, Hole: evil, State: state, Alarm: evil, Incident: "A-K3ZQ7M2P", Severity: "warning", Since: at, At: at, Epoch: evil,
			Model: evil, By: evil, Note: evil, Text: evil, Reason: evil, CuttingState: evil, CuttingSeconds: 3,
			Evidence: &event.EvidenceLink{URL: evil}, Reasons: &event.Reasons{Channels: []event.ChannelReason{{Channel: evil, Words: evil}}, Features: []event.FeatureReason{{Feature: evil, Channel: evil, Unit: evil, Value: new(float64)}}},
		}
		return bus.Message{Topic: bus.TopicAlerts, Key: machine, Value: event.JSON(a), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.AlertType)}, {Key: "ce_id", Value: []byte(a.ID)}, {Key: "ce_time", Value: []byte(at.Format(time.RFC3339Nano))}}}
	}
	advisory := event.Advisory{ID: "v", Group: monitor.DefaultGroup, Machine: machine, Tool: evil, Kind: event.AdvisoryKind(evil), Subject: evil, State: event.Raised, Status: evil, Severity: "warning", Since: at, At: at, Model: evil, Text: evil}
	result := event.Result{ID: "r", Group: monitor.DefaultGroup, Machine: machine, Epoch: "1", Tool: evil, Hole: evil, Start: at, End: at.Add(time.Second), Verdict: event.Healthy, Model: evil}
	p, err := bus.NewProducer(bus.Config{Brokers: []string{addr}, ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	letter := bus.DeadLetter(bus.Message{Topic: evil, Key: evil, Value: []byte(evil), Headers: []bus.Header{{Key: evil, Value: []byte(evil)}}}, evil, at)
	if err := p.Send(t.Context(), []bus.Message{
		alert(event.Raised), alert(event.Acknowledged), letter,
		{Topic: bus.TopicAlerts, Key: machine, Value: event.JSON(advisory), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.AdvisoryType)}}},
		{Topic: bus.TopicResults, Key: machine, Value: event.JSON(result), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.ResultType)}}},
	}); err != nil {
		t.Fatal(err)
	}
	since := "--since=" + at.Add(-time.Hour).Format(time.RFC3339)
	for _, args := range [][]string{
		{"alerts", "ls"}, {"alerts", "ls", "--all"}, {"alerts", "show", "A-K3ZQ7M2P"}, {"machines", "ls"}, {"dlq", "ls"}, {"dlq", "show", "0"},
		{"report", since}, {"report", since, "--format=markdown"}, {"report", since, "--format=json"}, {"alerts", "ack", evil, "--by=kim"},
		{"alerts", "ls", "-o", "json"}, {"alerts", "show", machine}, {"machines", "ls", "-o", "json"}, {"dlq", "ls", "-o", "json"},
		{"machines", "rename", "T1" + evil, "a/b/c/d/e", "--by=kim"},
		{"trace", "T1" + evil}, {"trace", machine + "/1/0"}, {"people", "add", "T1" + evil, "--role=viewer", "--file=" + dir + "/people.yaml"},
	} {
		var stdout, stderr bytes.Buffer
		if args[0] != "people" {
			args = append(args, "--config", dir+"/monitor.yaml")
		}
		err := run(t.Context(), args, &stdout, &stderr)
		text := stdout.String()
		if args[0] == "people" {
			text += stderr.String()
		}
		if err != nil {
			text += err.Error() + "\n"
		}
		if !strings.Contains(text, "T1") && args[1] != "ls" {
			t.Errorf("%q shows nothing of it, so it tests nothing: %s", args, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
				t.Errorf("%q: a line was forged:\n%s", args, text)
			}
			if i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%q: %q is raw in %q", args, line[i:min(i+4, len(line))], line)
			}
			if slices.Contains(args, "--format=markdown") && strings.Contains(line, "evil.example") && !strings.Contains(line, "` ") {
				t.Errorf("%q: Markdown makes a link of %q", args, line)
			}
		}
	}
}
