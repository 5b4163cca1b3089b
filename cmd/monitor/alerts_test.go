package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/pkg/signal"
)

// A person finds an alarm, acknowledges it, shelves it, takes that back, and
// reads afterwards who did what.
func TestAlerts(t *testing.T) {
	addr := startBroker(t, true)
	bench(t, "monitor.yaml", monitorYAML(addr, ""))
	t.Setenv("USER", "kim")
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	alerts := func(args ...string) (string, error) {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), append(append([]string{"alerts"}, args...), "--config", "monitor.yaml"), &stdout, &stderr)
		return stdout.String(), err
	}
	if got, err := alerts("ls"); err != nil || got != "no alarm stands; 0 machines\n" {
		t.Errorf("ls: %v, %q", err, got)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var stdout, stderr bytes.Buffer
		done <- run(ctx, strings.Fields("run --config monitor.yaml"), &stdout, &stderr)
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	l := layout(t, "force")
	var windows []bus.Message
	for seq, v := range []float32{10, 10, 20, 20} {
		windows = append(windows, windowMessage(t, l, uint64(seq), v))
	}
	windows = append(windows, windowMessage(t, l, 4, 20, signal.ClockStep))
	if err := out.Send(t.Context(), windows); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	err = bus.ReadTopic(t.Context(), cfg, bus.TopicAlerts, bus.FirstOffset, true, func(m bus.Message) error {
		if string(m.Header("ce_type")) == event.AdvisoryType {
			return enough // the last of both
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	all, err := monitor.Alarms(t.Context(), cfg)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	id := all[0].Incident
	for _, step := range []struct {
		args string
		want []string // in what is printed, or in the error
		err  bool
	}{
		{"ls", []string{id, "lathe", "T1", "raised", "\nadvisory", "SENSOR clock Maintenance required: clock_step"}, false},
		{"show lathe", []string{"FAULTY since", "sensor raised", "clock_step"}, false},
		{"ack nothing", []string{"neither an alarm that stands nor a machine"}, true},
		{"ack " + strings.ToLower(id) + " --note at-hole-end", []string{"acknowledged by kim: at"}, false},
		{"ack " + id + " --by lee", []string{"acknowledge by lee: refused: it is acknowledged already"}, true},
		{"ls", []string{id, "acknowledged", "kim"}, false},
		{"shelve lathe --for 2h", []string{"--reason"}, true},
		{"shelve lathe --for 20h --reason test", []string{"at most 8h0m0s"}, true},
		{"shelve lathe --for 2h --reason test", []string{"alarm shelved until", "by kim: test"}, false},
		{"ls", []string{"shelved (acknowledged)", "kim", "test"}, false},
		{"unshelve acme/spore/bay2/line1/lathe", []string{"alarm unshelved by kim"}, false},
		{"suppress lathe --reason setting-up", []string{"alarm suppressed by kim: setting-up"}, false},
		{"unsuppress lathe", []string{"alarm unsuppressed"}, false},
		{"out-of-service lathe --reason repair", []string{"alarm out of service by kim: repair"}, false},
		{"in-service lathe", []string{"alarm in service again"}, false},
		{"show " + id, []string{"acme/spore/bay2/line1/lathe", "FAULTY since", "acknowledged by kim", "lee: refused", "shelved until", "in service again"}, false},
		{"show A-AAAAAAAA", []string{"nothing is known"}, true},
		{"ls --all", []string{id, "T1", "kim"}, false},
	} {
		got, err := alerts(strings.Fields(step.args)...)
		if err != nil {
			got += err.Error()
		}
		if (err != nil) != step.err {
			t.Errorf("%s: %v", step.args, err)
		}
		for _, want := range step.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q lacks %q", step.args, got, want)
			}
		}
	}
}

// Names that several machines share are no names.
func TestFind(t *testing.T) {
	all := []monitor.Standing{
		{Machine: "a/drill", Incident: "A-AAAAAAAA"}, {Machine: "b/drill"}, {Machine: "b/lathe"},
	}
	for id, want := range map[string]string{
		"A-AAAAAAAA": "a/drill", "a-aaaaaaaa": "a/drill", "b/drill": "b/drill", "lathe": "b/lathe", "drill": "", "mill": "", "": "",
	} {
		if st, err := find(all, id); (err == nil) != (want != "") || err == nil && st.Machine != want {
			t.Errorf("%q: %q, %v", id, st.Machine, err)
		}
	}
	if when(time.Time{}) != "-" {
		t.Error("a time that is none")
	}
}
