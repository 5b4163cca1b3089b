package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/train/compare"
)

// judgedBy makes what a model of a group published of a tool of 300 windows: it is faulty from
// one window on, and raises five windows later.
func judgedBy(topic, group, model, name string, faulty int) (msgs []bus.Message) {
	send := func(topic, id, typ string, at time.Time, v any) {
		m := bus.Message{Topic: topic, Key: name, Time: at, Value: event.JSON(v)}
		for _, a := range event.Attributes(id, name, typ, at, "application/json") {
			m.Headers = append(m.Headers, bus.Header{Key: a[0], Value: []byte(a[1])})
		}
		msgs = append(msgs, m)
	}
	const epoch = "00000000000000a1"
	incident := ""
	for i := range 300 {
		start := shift.Add(time.Duration(i) * time.Second)
		r := event.Result{
			ID: event.WindowID(name, epoch, uint64(i)) + "/" + group, Group: group, Machine: name, Epoch: epoch, Seq: uint64(i), Tool: "T1", Start: start, End: start.Add(time.Second),
			Verdict: event.Healthy, Model: model, Incident: incident,
		}
		raised := false
		switch {
		case i%50 == 49:
			r.Verdict = event.Unknown
		case i >= faulty:
			r.Verdict = event.Faulty
			raised = i == faulty+4
		}
		if raised {
			incident = "A-" + strings.ToUpper(model[len(model)-8:])
			r.Incident = incident
		}
		send(topic, r.ID, event.ResultType, r.End, r)
		if raised {
			to := topic
			if to == bus.TopicResults {
				to = bus.TopicAlerts
			}
			send(to, r.ID+"/raised", event.AlertType, r.End, event.Alert{
				ID: r.ID + "/raised", Group: group, Machine: name, Tool: "T1", State: event.Raised, Incident: incident, At: r.End, Since: r.End, Epoch: epoch, Seq: r.Seq, Score: 0.9, Model: model,
			})
		}
	}
	return msgs
}

// shadowsOnKafka starts a broker that has what two groups published of three machines: a
// champion on all, one shadow on two of them and one on one. It returns its address.
func shadowsOnKafka(t *testing.T) string {
	t.Helper()
	cfg := startBroker(t, 3)
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const group, old, fresh, third = "tcm-monitor", "ecs-dbn-aaaaaaaaaaaa", "ecs-dbn-bbbbbbbbbbbb", "ecs-dbn-cccccccccccc"
	var msgs []bus.Message
	for i := range 3 {
		name := fmt.Sprintf("acme/bay%d/line1/drill", i)
		msgs = append(msgs, judgedBy(bus.TopicResults, group, old, name, 200)...)
		msgs = append(msgs, judgedBy(bus.TopicResults, "other", old, name, 20)...)
		if i < 2 {
			msgs = append(msgs, judgedBy(bus.TopicShadow, event.ShadowGroup(group, fresh), fresh, name, 190+100*i)...)
			msgs = append(msgs, judgedBy(bus.TopicShadow, event.ShadowGroup("other", fresh), fresh, name, 0)...)
		}
	}
	msgs = append(msgs, judgedBy(bus.TopicShadow, event.ShadowGroup(group, third), third, "acme/bay1/line1/drill", 1000)...)
	msgs = append(msgs, msgs[:400]...) // again
	broken := msgs[0]
	broken.Value = []byte("{")
	if err := out.Send(t.Context(), append(msgs, broken)); err != nil {
		t.Fatal(err)
	}
	return cfg.Brokers[0]
}

// The report of shadows says what champions and shadows published of the same windows.
func TestShadowReport(t *testing.T) {
	broker := shadowsOnKafka(t)
	wear := filepath.Join(t.TempDir(), "wear.csv")
	rows := "tool,time,vb_max_um\nT1,2026-11-02T06:00:00Z,0\nT1,2026-11-02T06:05:00Z,300\n"
	if err := os.WriteFile(wear, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	text, log, err := trainer(t, "shadow report --kafka "+broker+" --wear "+wear)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shadow.txt", text)
	if !strings.Contains(log, "messages that cannot be read") {
		t.Error(log)
	}
	for args, want := range map[string][]uint64{
		"--for acme/bay0/**":                              {300},
		"--for acme/bay1/line1/drill":                     {300, 300},
		"--for acme/bay2/line1/drill":                     {},
		"--for acme/bay0/** --since 2026-11-02T06:04:00Z": {60},
		"--group other --for acme/bay1/**":                {300},
		"--group third":                                   {},
	} {
		text, _, err := trainer(t, "shadow report --quiet --format json --kafka "+broker+" "+args)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Shadows []compare.Report }
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Shadows) != len(want) {
			t.Errorf("%s: %d reports, %v", args, len(got.Shadows), err)
			continue
		}
		for i, r := range got.Shadows {
			if r.Windows != want[i] {
				t.Errorf("%s: %d windows, want %d", args, r.Windows, want[i])
			}
		}
	}
	text, _, err = trainer(t, "shadow report --quiet --group third --kafka "+broker)
	if err != nil || !strings.Contains(text, "no shadow of group third has judged a window of these machines") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestShadowReportRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                             "name the broker with --kafka",
		"--kafka h:1 --kafka-config f": "give one of them",
		"--for a//b":                   "--for \"a//b\": a level is empty",
	} {
		if _, _, err := trainer(t, "shadow report "+args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
