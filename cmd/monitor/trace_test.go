package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/pkg/window"
)

// A window is followed from the topic of windows to its result and alert, or to the dead letters;
// one that waits for a monitor is found too. All messages about it are of one trace.
func TestTrace(t *testing.T) {
	t.Parallel()
	addr := startBroker(t, true)
	config := "--config=" + filepath.Join(folder(t, "monitor.yaml", monitorYAML(addr, "")), "monitor.yaml")
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	send := func(m bus.Message) (id string) {
		t.Helper()
		envelope.SetAcquired(&m, time.Now())
		if err := out.Send(t.Context(), []bus.Message{m}); err != nil {
			t.Fatal(err)
		}
		return string(m.Header("ce_id"))
	}
	refused := windowMessage(t, layout(t, "force"), 90, 10)
	refused.Value = refused.Value[:len(refused.Value)-9]
	letter := send(refused)
	var judged []string
	for seq, v := range []float32{10, 10, 10, 20, 20, 20} {
		judged = append(judged, send(windowMessage(t, layout(t, "force"), uint64(seq), v)))
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	go func() {
		defer stop()
		_ = bus.ReadTopic(ctx, cfg, bus.TopicResults, bus.FirstOffset, true, func(m bus.Message) error {
			if strings.HasPrefix(string(m.Header("ce_id")), judged[5]+"/") {
				return errors.New("enough")
			}
			return nil
		})
	}()
	if err := run(ctx, []string{"run", config}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	waiting := send(windowMessage(t, layout(t, "force"), 6, 10))
	trace := func(args ...string) string {
		t.Helper()
		var text bytes.Buffer
		if err := run(t.Context(), append([]string{"trace", config}, args...), &text, io.Discard); err != nil {
			t.Fatal(args, err)
		}
		return text.String()
	}
	for _, tc := range []struct {
		id   string
		says []string
	}{
		{judged[4], []string{"tcm.windows.v1/0@5 the window, ", "tcm.features.v1/0@", " features, extracted by the monitor\n", "tcm.results.v1/0@", "verdict faulty of group tcm-monitor, score ", "tcm.alerts.v1/0@", "lathe tool T1: FAULTY"}},
		{judged[4] + "/tcm-monitor/raised", []string{"tcm.windows.v1/0@5 the window, "}}, // as in an alert
		{letter, []string{"tcm.windows.v1/0@0 the window, ", "tcm.dlq.v1/0@0", " set aside: "}},
		{waiting, []string{"tcm.windows.v1/0@7 the window, "}},
	} {
		got := regexp.MustCompile(" +").ReplaceAllString(trace(tc.id), " ")
		for _, want := range tc.says {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", tc.id, want, got)
			}
		}
	}
	var found struct {
		Window string `json:"window"`
		Trace  string `json:"trace_id"`
		Steps  []struct {
			At, Acquired time.Time
			Where        string
			Trace        string `json:"traceparent"`
		} `json:"steps"`
	}
	if err := json.Unmarshal([]byte(trace(judged[4], "-o", "json")), &found); err != nil {
		t.Fatal(err)
	}
	if found.Window != judged[4] || found.Trace != event.TraceID("acme/spore/bay2/line1/lathe", "0000000000000001", 4) || len(found.Steps) < 4 {
		t.Errorf("%+v", found)
	}
	for i, s := range found.Steps {
		if !strings.HasPrefix(s.Trace, "00-"+found.Trace+"-") || i > 0 && s.At.Before(found.Steps[i-1].At) || (s.Where == bus.TopicWindows) == s.Acquired.IsZero() {
			t.Errorf("%+v", s)
		}
	}
	for _, tc := range [][2]string{
		{"acme/spore/bay2/line1/lathe/0000000000000001/77", "look further back with --since"},
		{"acme/spore/bay2/line1/lathe/0000000000000001/77 --since=2026-11-02T06:00:00Z", "nothing about it is in Kafka since 2026-11-02"},
		{"acme/spore/bay2/line1/lathe/0000000000000001/77 --since=monday", "write a time such as"},
		{"A-TUUTCDZT", "expected machine/epoch/number"},
	} {
		if err := run(t.Context(), strings.Fields("trace "+tc[0]+" "+config), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), tc[1]) {
			t.Errorf("%s: %v", tc[0], err)
		}
	}
}

// The example in the help names a window as the command takes it.
func TestTraceExample(t *testing.T) {
	field, _ := reflect.TypeFor[flags]().FieldByName("Trace")
	words := strings.Fields(field.Tag.Get("example"))
	id := words[len(words)-1]
	if _, _, _, ok := event.SplitWindowID(id); !ok {
		t.Errorf("%s is not the id of a window", id)
	}
}

// trace --spool says of a window that the spool keeps where it is, when it was acquired, and whether Kafka has it.
func TestTraceInSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := spool.Open(dir, spool.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	acquired := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	for range 2 {
		m := bus.Message{Topic: bus.TopicWindows, Key: "m", Time: acquired, Headers: []bus.Header{{Key: event.TraceHeader, Value: []byte("00-1-2-01")}}, Value: []byte{1}}
		envelope.SetAcquired(&m, acquired)
		if _, err := s.Append(m.AppendBinary(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Ack(0); err != nil {
		t.Fatal(err)
	}
	epoch := window.FormatEpoch(s.Epoch())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		epoch string
		seq   uint64
		what  string // empty: it is not there
	}{
		{epoch, 0, "the window, kept in the spool; Kafka has it"},
		{epoch, 1, "the window, kept in the spool; Kafka does not have it yet"},
		{epoch, 2, ""}, {"0123456789abcdef", 0, ""}, {"none", 0, ""},
	} {
		steps, err := inSpool(dir, "id", tc.epoch, tc.seq)
		switch {
		case err != nil:
			t.Error(err)
		case tc.what == "" && len(steps) > 0, tc.what != "" && (len(steps) != 1 || steps[0].What != tc.what || !steps[0].At.Equal(acquired) || steps[0].Trace != "00-1-2-01" || filepath.Dir(steps[0].Where) != dir):
			t.Errorf("%s/%d: %+v, want %q", tc.epoch, tc.seq, steps, tc.what)
		}
	}
}
