package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/pkg/signal"
)

// onShift starts a broker and a monitor for kim, who runs commands: their words are separated by blanks.
func onShift(t *testing.T, yaml string) (cfg bus.Config, out *bus.Producer, command func(args string) (string, error)) {
	cfg, out, command, config := plantOf(t, yaml)
	t.Cleanup(startMonitor(t, config))
	return cfg, out, command
}

// plantOf starts a broker, and returns what runs kim's commands, and the flag that names their configuration.
func plantOf(t *testing.T, yaml string) (cfg bus.Config, out *bus.Producer, command func(args string) (string, error), config string) {
	addr := startBroker(t, true)
	config = " --config " + filepath.Join(folder(t, "monitor.yaml", monitorYAML(addr, "")+yaml), "monitor.yaml")
	cfg = bus.Config{Brokers: []string{addr}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	command = func(args string) (string, error) {
		var stdout, stderr bytes.Buffer
		if !strings.HasPrefix(args, "machines") {
			args = "alerts " + args
		}
		err := run(t.Context(), strings.Fields(args+config), &stdout, &stderr)
		return stdout.String(), err
	}
	if got, err := command("ls"); err != nil || got != "no open alarms; 0 machines\n" {
		t.Errorf("ls: %v, %q", err, got)
	}
	return cfg, out, command, config
}

// startMonitor runs a monitor until stop is called.
func startMonitor(t *testing.T, config string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var stdout, stderr bytes.Buffer
		done <- run(ctx, strings.Fields("run"+config), &stdout, &stderr)
	}()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The tool of an alarm may be in the magazine: people acknowledge and shelve it all the same.
func TestAnswerAlarmOfMagazine(t *testing.T) {
	t.Parallel()
	cfg, out, command := onShift(t, "")
	l := layout(t, "force")
	for seq, v := range []float32{10, 10, 20, 20} {
		if err := out.Send(t.Context(), []bus.Message{windowMessage(t, l, uint64(seq), v)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Send(t.Context(), []bus.Message{windowOf(t, l, "T2", 4, 10)}); err != nil {
		t.Fatal(err)
	}
	id := awaitAlert(t, cfg, event.Cleared).Incident
	for _, step := range []struct{ args, want string }{
		{"ls", "T1    raised, in the magazine  "},
		{"show " + id, "tool     T1\nalarm    raised, in the magazine\n"},
		{"ls --all -o json", `"cleared": null`},
		{"show lathe", "tool     T2\nalarm    normal\n"},
		{"ack lathe", "lathe: no alarm of the tool in the spindle is open; " + id + " is of tool T1 in the magazine: monitor alerts ack " + id},
		{"ack " + id, "lathe tool T1: alarm of second 2 acknowledged by kim"},
		{"ack " + id, "it is acknowledged already"},
		{"shelve " + strings.ToLower(id) + " --for 2h --reason sharpen", "lathe tool T1: alarm shelved until"},
		{"unshelve " + id, "lathe tool T1: alarm unshelved"},
		{"ls --format json", `"state": "acknowledged"`},
		{"ack lathe", "lathe: no alarm of the tool in the spindle is open"},
		{"ack A-AAAAAAAA", "neither an open alarm nor a machine"},
		{"ls", "T1    acknowledged, in the magazine  "},
	} {
		got, err := command(step.args)
		if err != nil {
			got += err.Error()
		}
		if !strings.Contains(got, step.want) {
			t.Errorf("%s: %q lacks %q", step.args, got, step.want)
		}
	}
}

// A person finds an alarm, acknowledges it, shelves it, takes that back, and
// reads afterwards who did what.
func TestAlerts(t *testing.T) {
	t.Parallel()
	cfg, out, command := onShift(t, "evidence: {dir: evidence, url: 'http://plant:9102'}\n")
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
	err := bus.ReadTopic(t.Context(), cfg, bus.TopicAlerts, bus.FirstOffset, true, func(m bus.Message) error {
		if string(m.Header("ce_type")) == event.AdvisoryType {
			return enough // the last of both
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	all, _, err := monitor.Alarms(t.Context(), cfg, monitor.DefaultGroup)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	id := all[0].Incident
	// Alerts that cannot be read do not keep people from the others.
	for _, typ := range []string{event.AlertType, event.AdvisoryType, event.EvidenceType} {
		bad := bus.Message{Topic: bus.TopicAlerts, Key: "lathe", Value: []byte("{"), Headers: []bus.Header{{Key: "ce_type", Value: []byte(typ)}}}
		if err := out.Send(t.Context(), []bus.Message{bad, bad}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		args string
		want []string // in what is printed, or in the error
		err  bool
	}{
		{"ls", []string{id, "lathe", "T1", "raised", "\nadvisory", "SENSOR clock Maintenance required: clock_step"}, false},
		{"show lathe", []string{"FAULTY since", "sensor raised", "clock_step"}, false},
		{"show " + id, []string{
			"reasons  log-odds of faulty +", " 100 %  force  20 N, usually 1", "scores   ··▆▆  4 windows to ", "evidence http://plant:9102/evidence/" + id + "-3.arrow",
		}, false},
		{"ack nothing", []string{"neither an open alarm nor a machine"}, true},
		{"ack " + strings.ToLower(id) + " --note at-hole-end", []string{"acknowledged by kim: at"}, false},
		{"mark-false " + id, []string{"marked as false by kim."}, false},
		{"ack " + id + " --by lee", []string{"acknowledge by lee: refused: it is acknowledged already"}, true},
		{"ls", []string{id, "acknowledged", "kim", "note: 2 messages on tcm.alerts.v1 cannot be read and are left out\n"}, false},
		{"shelve lathe --for 2h", []string{"--reason"}, true},
		{"shelve lathe --for 20h --reason test", []string{"at most 8h0m0s"}, true},
		{"shelve lathe --for 2h --reason test", []string{"alarm shelved until", "by kim: test"}, false},
		{"ls", []string{"shelved (acknowledged)", "kim", "test"}, false},
		{"ls -o json", []string{`"alarm": "` + id + `"`, `"state": "shelved"`, `"state_beneath": "acknowledged"`, `"by": "kim"`, `"watched": true`, `"kind": "sensor"`}, false},
		{"unshelve acme/spore/bay2/line1/lathe", []string{"alarm unshelved by kim"}, false},
		{"suppress lathe --reason setting-up", []string{"lathe with all its tools: suppressed by kim: setting-up"}, false},
		{"unsuppress lathe", []string{"lathe with all its tools: unsuppressed"}, false},
		{"suppress lathe --tool T1 --reason runs-in", []string{"lathe tool T1: alarm suppressed by kim: runs-in"}, false},
		{"unsuppress lathe", []string{"not masked in this way; the alarm of tool T1 is: name the tool, --tool T1"}, true},
		{"unsuppress lathe --tool T1", []string{"alarm unsuppressed"}, false},
		{"out-of-service lathe --reason repair", []string{"lathe with all its tools: out of service by kim: repair"}, false},
		{"in-service lathe", []string{"lathe with all its tools: in service again"}, false},
		{"show " + id, []string{"acme/spore/bay2/line1/lathe", "FAULTY since", "acknowledged by kim", "marked as false by kim", "lee: refused", "shelved until", "in service again", "note: 6 messages on tcm.alerts.v1 cannot be read"}, false},
		{"show A-AAAAAAAA", []string{"no alarm or machine is called"}, true},
		{"ls --all", []string{id, "T1", "kim", "yes\n", "note: 2 messages on tcm.alerts.v1 cannot be read"}, false},
		{"mark-false " + id, []string{"refused: it is marked as false already"}, true},
		{"ls --all --format json", []string{`"alarm": "` + id + `"`, `"acknowledged_by": "kim"`, `"cleared": null`, `"false": true`}, false},
		{"unmark-false " + strings.ToLower(id) + " --note worn-after-all", []string{"lathe tool T1: alarm of ", "no longer marked as false by kim: worn-after-all."}, false},
		{"ls --all", []string{"-\n"}, false},
		{"mark-false " + id + " --by lee", []string{"marked as false by lee."}, false},
		{"show " + id, []string{"marked_false", "alarm    acknowledged"}, false},
		{"mark-false lathe", []string{"no machine remembers an alarm lathe", "ls --all"}, true},
		{"ls", []string{id, "acknowledged", "kim"}, false},
		{"machines ls", []string{"acme/spore/bay2/line1/lathe  T1", "acknowledged"}, false},
		{"machines ls -o json", []string{`"machine": "acme/spore/bay2/line1/lathe"`, `"tools": 1`, `"state": "acknowledged"`}, false},
		{"machines new-tool lathe T9", []string{"no tool \"T9\" is remembered here"}, true},
		{"machines rename lathe acme/spore/bay2/line1/lathe", []string{"windows of acme/spore/bay2/line1/lathe came before (to group tcm-monitor)"}, true},
		{"machines rename lathe acme/spore/bay2/line2/turner --note moved", []string{"turner: renamed from acme/spore/bay2/line1/lathe by kim; it goes on with what is remembered of 1 tools.\nacme/spore/bay2/line1/lathe is acme/spore/bay2/line2/turner now: start its ingester under this name.\n"}, false},
		{"machines ls", []string{"line2/turner  T1", "acknowledged"}, false},
		{"ls", []string{id, "line2/turner"}, false},
		{"unmark-false " + id, []string{"turner tool T1: alarm of ", "no longer marked as false by kim."}, false},
		{"machines new-tool turner T1", []string{"turner tool T1: declared new by kim"}, false},
		{"ls", []string{"no open alarms; 1 machines"}, false},
		{"machines retire lathe", []string{"no machine is called lathe: see `monitor machines ls`"}, true},
		{"machines retire turner --note scrapped", []string{"turner: retired by kim"}, false},
		{"ls", []string{"no open alarms; 0 machines"}, false},
	} {
		got, err := command(step.args)
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
	ofTool := make(map[event.Action]string)
	if err := bus.ReadTopic(t.Context(), cfg, bus.TopicCommands, bus.FirstOffset, false, func(m bus.Message) error {
		var c event.Command
		if err := json.Unmarshal(m.Value, &c); err != nil || c.Check() != nil {
			t.Errorf("%s: %v, %v", m.Value, err, c.Check())
		}
		if c.Tool != "" {
			ofTool[c.Action] += c.Tool + c.Incident
		}
		return nil
	}); err != nil || fmt.Sprint(ofTool) != "map[new_tool:T9T1 suppress:T1 unsuppress:T1]" {
		t.Errorf("commands of tools: %v, %v", ofTool, err)
	}
	// The alarm ended under the old name and begins again under the new one, in an alert of its own:
	// receivers must not take the one that says the name for an alarm without an incident.
	renamed := 0
	if _, err := history.Alerts(t.Context(), cfg, monitor.DefaultGroup, func(a event.Alert) error {
		if a.State == event.Renamed {
			if renamed++; a.Alarm != "normal" || a.Incident != "" || a.Tool != "T1" {
				t.Errorf("renamed: %s", event.JSON(a))
			}
		}
		return nil
	}); err != nil || renamed != 1 {
		t.Errorf("%d renamed, %v", renamed, err)
	}
}

// Years of alerts lie on the topic. The commands read only what they need of them: here each of these counts as one that cannot be
// read.
func TestAlertsAmongMany(t *testing.T) {
	t.Parallel()
	cfg, out, command := onShift(t, "")
	l := layout(t, "force")
	for seq, v := range []float32{10, 10, 20, 20} {
		if err := out.Send(t.Context(), []bus.Message{windowMessage(t, l, uint64(seq), v)}); err != nil {
			t.Fatal(err)
		}
	}
	const lathe = "acme/spore/bay2/line1/lathe"
	id := awaitAlert(t, cfg, event.Raised).Incident
	many := make([]bus.Message, 3000)
	for i := range many {
		many[i] = bus.Message{Topic: bus.TopicAlerts, Key: lathe, Value: []byte("{"), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.AlertType)}}}
	}
	if err := out.Send(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	read := func(args, want string) (unreadable int) {
		got, err := command(args)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, %q", args, err, got)
		}
		if _, note, ok := strings.Cut(got, "note: "); ok {
			fmt.Sscan(note, &unreadable)
		}
		return unreadable
	}
	if n := read("ls", id); n != 0 {
		t.Errorf("ls read %d alerts, and no one has acknowledged the alarm", n)
	}
	read("ack "+id, "acknowledged by kim")
	if n := read("ls", "kim"); n == 0 || n > 1000 {
		t.Errorf("ls read %d alerts before the acknowledgement", n)
	}
	if err := out.Send(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if n := read("ls", "kim"); n < 3000 {
		t.Errorf("ls read %d alerts behind the acknowledgement", n)
	}
}

// An answer that was on the topic before the command was sent is not the command's.
func TestAwaitAnswerFromTheEnd(t *testing.T) {
	t.Parallel()
	cfg := bus.Config{Brokers: []string{startBroker(t, true)}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	answer := func(text string) {
		m := bus.Message{Topic: bus.TopicAlerts, Key: "lathe", Value: event.JSON(event.Alert{Group: "g", Machine: "lathe", Command: "1", Text: text}), Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.AlertType)}}}
		if err := out.Send(t.Context(), []bus.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	answer("before")
	from, err := alertEnds(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	answer("after")
	if a, err := awaitAnswer(t.Context(), cfg, from, "g", "1"); err != nil || a.Text != "after" {
		t.Errorf("%q, %v", a.Text, err)
	}
}

// awaitAlert returns the first alert with a state.
func awaitAlert(t *testing.T, cfg bus.Config, state event.AlertState) (a event.Alert) {
	t.Helper()
	enough := errors.New("enough")
	if err := bus.ReadTopic(t.Context(), cfg, bus.TopicAlerts, bus.FirstOffset, true, func(m bus.Message) error {
		a = event.Alert{}
		if err := json.Unmarshal(m.Value, &a); err != nil || a.State != state {
			return err
		}
		return enough
	}); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	return a
}

// A person shelves the alarm of a tool that is in the magazine by then, by the alarm's name. A name
// that no alarm ever had is not sent.
func TestAlarmOfTheMagazine(t *testing.T) {
	t.Parallel()
	cfg, out, command := onShift(t, "")
	l := layout(t, "force")
	var windows []bus.Message
	for seq, v := range []float32{10, 10, 20, 20} {
		windows = append(windows, windowMessage(t, l, uint64(seq), v))
	}
	if err := out.Send(t.Context(), append(windows, windowOf(t, l, "T2", 4, 10))); err != nil {
		t.Fatal(err)
	}
	id := ""
	enough := errors.New("enough")
	err := bus.ReadTopic(t.Context(), cfg, bus.TopicAlerts, bus.FirstOffset, true, func(m bus.Message) error {
		var a event.Alert
		if err := json.Unmarshal(m.Value, &a); err != nil {
			return err
		}
		if a.State == event.Raised {
			id = a.Incident
		}
		if a.State == event.Cleared {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || id == "" {
		t.Fatalf("alarm %q: %v", id, err)
	}
	if got, err := command("shelve " + strings.ToLower(id) + " --for 2h --reason test"); !strings.Contains(fmt.Sprint(got, err), "by kim") {
		t.Errorf("the monitor has not answered: %v, %s", err, got)
	}
	if _, err := command("shelve A-AAAAAAAA --for 2h --reason test"); err == nil || !strings.Contains(err.Error(), "neither an open alarm nor a machine") {
		t.Error(err)
	}
	var sent []string
	if err := bus.ReadTopic(t.Context(), cfg, bus.TopicCommands, bus.FirstOffset, false, func(m bus.Message) error {
		var c event.Command
		err := json.Unmarshal(m.Value, &c)
		sent = append(sent, fmt.Sprint(c.Action, " ", c.Machine, " ", c.Incident))
		return err
	}); err != nil || fmt.Sprint(sent) != "[shelve acme/spore/bay2/line1/lathe "+id+"]" {
		t.Errorf("%v, %v", sent, err)
	}
}

// The report has the windows, alarms and advisories of each shift.
func TestReport(t *testing.T) {
	zone := time.Local
	t.Cleanup(func() { time.Local = zone }) // when the broker, which reads it, is down
	time.Local = time.UTC
	addr := startBroker(t, true)
	bench(t, "monitor.yaml", monitorYAML(addr, "")+"shifts: 00-12\n",
		"wear.csv", "machine,tool,time,vb_max_um\nacme/spore/bay2/line1/lathe,T1,2026-11-16T13:00:00Z,100\nacme/spore/bay2/line1/lathe,T1,2026-11-16T14:00:00Z,200\n",
		"no-model.yaml", strings.Replace(monitorYAML(addr, ""), "m.flank", "no.flank", 1), "bad.yaml", monitorYAML(addr, "")+"shifts: noon\n")
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const lathe = "acme/spore/bay2/line1/lathe"
	noon := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	say := func(topic, typ, id string, at time.Time, v any) bus.Message {
		m := bus.Message{Topic: topic, Key: lathe, Time: at, Value: event.JSON(v)}
		for _, a := range event.Attributes(id, lathe, typ, at, "application/json") {
			m.Headers = append(m.Headers, bus.Header{Key: a[0], Value: []byte(a[1])})
		}
		return m
	}
	var msgs []bus.Message
	for seq := range 8 {
		r := event.Result{ID: fmt.Sprint(seq), Group: monitor.DefaultGroup, Machine: lathe, Epoch: "1", Seq: uint64(seq), Tool: "T1", Start: noon.Add(time.Duration(seq-2) * 30 * time.Minute), Verdict: event.Faulty, Model: "m"}
		r.End = r.Start.Add(30 * time.Minute)
		trial := r // another group's verdict on the same window
		trial.Group, trial.Verdict, trial.Model = "trial", event.Healthy, "t"
		msgs = append(msgs, say(bus.TopicResults, event.ResultType, r.ID+"/trial", r.End, trial), say(bus.TopicResults, event.ResultType, r.ID, r.End, r))
	}
	counted := event.Result{ID: "counted", Group: monitor.DefaultGroup, Machine: lathe, Epoch: "2", Tool: "T1", Start: time.Unix(75, 0).UTC(), End: time.Unix(76, 0).UTC(), Verdict: event.Faulty, Model: "m"}
	msgs = append(msgs, say(bus.TopicResults, event.ResultType, counted.ID, counted.End, counted))
	raised := event.Alert{ID: "a", Group: monitor.DefaultGroup, Machine: lathe, Tool: "T1", State: event.Raised, At: noon.Add(90*time.Minute + time.Second)}
	ack := event.Alert{ID: "b", Group: monitor.DefaultGroup, Machine: lathe, Tool: "T1", State: "acknowledged", At: noon.Add(91 * time.Minute)}
	advisory := event.Advisory{ID: "c", Group: monitor.DefaultGroup, Machine: lathe, Kind: event.SensorAdvisory, State: event.Raised, At: noon}
	msgs = append(msgs, say(bus.TopicAlerts, event.AlertType, "a", raised.At, raised), say(bus.TopicAlerts, event.AlertType, "b", ack.At, ack),
		say(bus.TopicAlerts, event.AdvisoryType, "c", noon, advisory), say(bus.TopicAlerts, "io.tcm.other.v1", "d", noon, 1), say(bus.TopicAlerts, event.AlertType, "bad", noon, 1), say(bus.TopicAlerts, event.AdvisoryType, "bad", noon, 1),
		say(bus.TopicResults, event.ResultType, "bad", noon, 1))
	if err := out.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args string
		want []string
		err  bool
	}{
		{"--week 2026-W47", []string{"2026-11-16 00:00 to ", "\nMon 16 Nov 00-12        2        0   1.00 h       0", "\nMon 16 Nov 12-00        6        0   3.00 h       1      0           0             1    59s      59s      0s       1      0\n", "8 faulty", "Judged by m."}, false},
		{"2026-W47 --week --format markdown", []string{"| Mon 16 Nov 12-00 | 6 |"}, false},
		{"--since 2026-11-16T12:00:00Z --until 2026-11-16T13:00:00Z --format json", []string{`"windows": 2`, `"alarms": 0`, `"wear_limit_um": 300`}, false},
		{"--since 2026-11-16T00:00:00Z --wear wear.csv", []string{"of 1 of 1 alarms whether", "1      1           0"}, false},
		{"--since 2026-11-17T00:00:00Z", []string{"Nothing happened"}, false},
		{"", []string{"name the time"}, true},
		{"2026-W47", []string{"name the time"}, true},
		{"--week --since 2026-11-16T00:00:00Z", []string{"give one of them"}, true},
		{"--until 2026-11-16T00:00:00Z", []string{"goes with --since"}, true},
		{"--since 2026-11-16T00:00:00Z --until 2026-11-15T00:00:00Z", []string{"not before the end"}, true},
		{"--week 2026-47", []string{"expected one as in 2026-W47"}, true},
		{"--week 2999-W01", []string{"has not begun"}, true},
		{"--week --wear wear.csv --config no-model.yaml", []string{"--wear needs the label rule", "no.flank"}, true},
		{"--week --wear no.csv", []string{"no.csv"}, true},
		{"--week --config bad.yaml", []string{"bad.yaml: shifts"}, true},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"report", "--quiet"}, strings.Fields(tc.args)...)
		if !strings.Contains(tc.args, "--config") {
			args = append(args, "--config", "monitor.yaml")
		}
		err := run(t.Context(), args, &stdout, &stderr)
		got := stdout.String()
		if err != nil {
			got += err.Error()
		}
		if (err != nil) != tc.err {
			t.Errorf("%s: %v", tc.args, err)
		}
		if warned := strings.Contains(stderr.String(), `"tcm.results.v1":1,"tcm.alerts.v1":2`); err == nil && !warned {
			t.Errorf("%s: what cannot be read is not counted: %s", tc.args, &stderr)
		}
		if counted := strings.Contains(stderr.String(), "the report leaves out windows of recordings that do not say when they began"); err == nil && !counted {
			t.Errorf("%s: a window without a clock is not counted: %s", tc.args, &stderr)
		}
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", tc.args, want, got)
			}
		}
	}
}

func TestSparkline(t *testing.T) {
	var trace []event.Point
	for _, score := range []float64{0, 0.125, 0.49, 0.5, 0.99, 1} {
		trace = append(trace, event.Point{Score: score, Verdict: event.Healthy})
	}
	trace = append(trace, event.Point{Verdict: event.NotCutting}, event.Point{Score: -1, Verdict: event.Faulty})
	if got := sparkline(trace); got != "▁▂▄▅██·▁" {
		t.Error(got)
	}
}

// Advisories of several machines have one heading, and a machine that never had an alarm was not raised.
func TestShowNothingTwice(t *testing.T) {
	var b bytes.Buffer
	open := []monitor.Advice{{Kind: event.DriftAdvisory}}
	if err := advice([]monitor.Standing{{Machine: "a/drill", Advisories: open}, {Machine: "a/lathe", Advisories: open}}, &b); err != nil || strings.Count(b.String(), "advisory") != 1 || strings.Count(b.String(), "\n") != 4 {
		t.Errorf("%v\n%s", err, &b)
	}
	b.Reset()
	if err := (&story{last: &event.Alert{State: event.Suppressed, Machine: "a/drill", K: 5, N: 8}}).print(&b); err != nil || strings.Contains(b.String(), "raised") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// A short name that several machines share finds none of them.
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
