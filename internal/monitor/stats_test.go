package monitor

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/metrictest"
	"github.com/flank-tcm/flank/pkg/window"
)

// untilStats waits until the counts satisfy done.
func (m *monitoring) untilStats(t *testing.T, done func(Stats) bool) Stats {
	t.Helper()
	var s Stats
	await.Right(t, func() string {
		if s = m.Stats(); done(s) {
			return ""
		}
		return fmt.Sprintf("%+v", s)
	})
	return s
}

// Missing windows are logged and counted, also over a restart, until they come late.
func TestSeqGaps(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	mon := p.monitor()
	for _, seq := range []uint64{40, 41, 45, 46, 50} { // what was before the first is not known
		p.send(p.message(at(seq, "T1", false)))
	}
	s := mon.untilStats(t, func(s Stats) bool { return s.Judged == 5 && s.Missing == 6 })
	if s.SeqGaps != 2 || s.Missed != 6 || s.Late != 0 {
		t.Errorf("%+v", s)
	}
	if log := p.log.String(); strings.Count(log, `"event":"seq_gap"`) != 2 || !strings.Contains(log, `"from":42,"to":44,"windows":3`) {
		t.Error(log)
	}
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	if s := mon.Stats(); s.Missing != 0 {
		t.Errorf("%d windows are missing of machines that others have", s.Missing)
	}
	mon = p.monitor()
	mon.untilStats(t, func(s Stats) bool { return s.Missing == 6 })
	for _, seq := range []uint64{43, 44, 43, 51} {
		p.send(p.message(at(seq, "T1", false)))
	}
	s = mon.untilStats(t, func(s Stats) bool { return s.Judged == 3 && s.Missing == 4 })
	if s.Late != 2 || s.Repeats != 1 || s.SeqGaps != 0 || s.Missed != 0 {
		t.Errorf("%+v", s)
	}
}

// Offsets that are gone, and readers that stood still, are logged and counted.
func TestOffsetGapsAndStallsAreCounted(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	mon := p.monitor()
	set := mon.Monitor.cfg.Bus // what New gave the readers
	set.OnGap(bus.Gap{Topic: bus.TopicWindows, Partition: 0, From: 5, To: 9})
	set.OnGap(bus.Gap{Topic: bus.TopicWindows, Partition: 0, From: 5, To: 0}) // the topic was made again
	for _, times := range []int{1, 2, 3, 0} {
		set.OnStall(bus.Stall{Topic: bus.TopicWindows, Partition: 2, Offset: 7, Behind: 3, For: 31 * time.Second, Times: times})
	}
	if s := mon.Stats(); s.OffsetGaps != 2 || s.Offsets != 4 || s.Stalls != 3 {
		t.Errorf("%+v", s)
	}
	log := p.log.String()
	for event, times := range map[string]int{"offset_gap": 2, "partition_stalled": 1, "partition_moves_again": 1} { // at the level of a plant
		if n := len(regexp.MustCompile(`"level":"(info|warn|error)","event":"`+event+`"`).FindAllString(log, -1)); n != times {
			t.Errorf("%s is logged %d times, want %d\n%s", event, n, times, log)
		}
	}
}

// Every metric is in docs/reference/metrics.md, with its kind, and its name is kept.
func TestMetricsAreDocumented(t *testing.T) {
	m := &Monitor{took: newDurations(), now: time.Now}
	m.ready.assigned(3, time.Now())
	m.ready.fetched(3, ofWindows, 9, time.Now())
	m.table.rows = map[string]*machineRow{"lathe": {alarm: "normal", model: "m", wear: &event.Wear{WearUM: 150}}}
	metrictest.Check(t, "../../docs/reference/metrics.md", m.Metrics()...)
}

// A machine has rows of what it was last, also of what nothing is known yet; a machine that leaves
// has none.
func TestMachineMetrics(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	mon := p.monitor()
	for seq := range uint64(3) {
		p.send(p.message(at(seq, "T1", false)))
	}
	mon.untilStats(t, func(s Stats) bool { return s.Judged == 3 })
	var text string
	wants := []string{
		`tcm_machine_windows_total{machine="` + drill + `",verdict="learning"} 2`, `tcm_machine_alarm_state{machine="` + drill + `",state="normal"} 1`,
		`tcm_machine_model_info{machine="` + drill + `",model="` + p.model.ID() + `"} 1`, `tcm_machine_windows_missing{machine="` + drill + `"} 0`,
		`tcm_machines_unlisted 0`, `tcm_monitor_kafka_up 1`, `tcm_monitor_partitions 1`, `tcm_judge_seconds_count 3`, `tcm_window_result_seconds_count 3`, `tcm_window_fetch_seconds_count 3`,
		`tcm_partition_lag_messages{partition="0",topic="tcm.windows.v1"} 0`,
	}
	await.Right(t, func() string {
		text = scrape(mon.Metrics())
		missing := slices.DeleteFunc(slices.Clone(wants), func(want string) bool { return strings.Contains(text, "\n"+want+"\n") })
		if len(missing) == 0 {
			return ""
		}
		return fmt.Sprintf("no %q in\n%s", missing, text)
	})
	if err := mon.stop(); err != nil {
		t.Fatal(err)
	}
	if text := scrape(mon.Metrics()); strings.Contains(text, drill) {
		t.Errorf("a monitor without a partition shows machines:\n%s", text)
	}
}

// At most 500 machines have rows of their own. Verdicts of the others are counted together, and
// wear belongs to the tool that is in.
func TestMachineMetricsAreBounded(t *testing.T) {
	var table machineTable
	for i := range metric.MaxMachines + 2 {
		table.judged(0, []machine.Output{machine.Result{Result: &event.Result{Machine: fmt.Sprintf("m%03d", i), Verdict: event.Faulty}}})
	}
	table.known = map[int]int{0: metric.MaxMachines + 2}
	text := scrape(table.metrics())
	if n := strings.Count(text, "tcm_machine_windows_missing{"); n != metric.MaxMachines {
		t.Errorf("%d machines have rows", n)
	}
	for _, want := range []string{`tcm_machine_windows_total{machine="other",verdict="faulty"} 2`, "tcm_machines_unlisted 2"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	worn := &event.Wear{WearUM: 150}
	for _, step := range []struct {
		output machine.Output
		known  bool
	}{
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T1", Wear: worn}}, true},
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T1"}}, true},
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T0", Late: true}}, true},
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T2"}}, false},
		{machine.ShadowResult{Result: &event.Result{Machine: "m000", Tool: "T2", Wear: worn}}, false},
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T2", Wear: worn}}, true},
		{machine.Alert{Alert: &event.Alert{Machine: "m000", Tool: "T1", State: event.ToolIsNew}}, true}, // it lies in the magazine
		{machine.Alert{Alert: &event.Alert{Machine: "m000", Tool: "T2", State: event.ToolIsNew}}, false},
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T2", Wear: worn}}, true},
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T2", ToolLife: "b"}}, false}, // declared new to its ingester
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T2", ToolLife: "b", Wear: worn}}, true},
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T2"}}, true},
		{machine.Result{Result: &event.Result{Machine: "m000", Tool: "T2", ToolLife: "a", Late: true}}, true},
		{machine.Result{Result: &event.Result{Machine: "m000", Verdict: event.NotCutting}}, true}, // between windows of T2, which is in
		{machine.Result{Result: &event.Result{Machine: "m000", Verdict: event.Unknown, Unknown: event.NoTool}}, true},
		{machine.Alert{Alert: &event.Alert{Machine: "m000", Tool: "T2", State: event.ToolIsNew}}, false},
	} {
		table.judged(0, []machine.Output{step.output})
		if got := strings.Contains(scrape(table.metrics()), `tcm_machine_wear_meters{machine="m000"} 0.00015`); got != step.known {
			t.Errorf("%+v: wear is shown: %v", step.output, got)
		}
	}
}

func scrape(c []metric.Collector) string {
	w := httptest.NewRecorder()
	metric.Handler(c...).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// asides returns what a monitor has counted as set aside, by reason.
func asides(m *Monitor) string {
	var all []string
	m.aside.each(func(labels []string, n uint64) bool {
		if n > 0 {
			all = append(all, fmt.Sprint(labels[0], " ", n))
		}
		return true
	})
	return strings.Join(all, ", ")
}

// Every message that is set aside is counted under one reason.
func TestReasonsOfLetters(t *testing.T) {
	m := new(Monitor)
	var all []setAside
	for _, what := range []string{window.OtherLayout, window.OtherLength, window.OtherFeatures, window.OtherSchema} {
		all = append(all, setAside{bus.Message{Topic: bus.TopicWindows}, "", fmt.Errorf("it: %w", &window.Mismatch{What: what})})
	}
	m.countAside(append(all,
		setAside{bus.Message{Topic: bus.TopicFeatures}, "", fmt.Errorf("it: %w", window.ErrCorrupt)},
		setAside{bus.Message{Topic: bus.TopicWindows, Damage: errors.New("torn")}, "", errors.New("torn")},
		setAside{bus.Message{Topic: bus.TopicWindows}, "", errors.New("no machine")},
		setAside{bus.Message{Topic: bus.TopicCommands}, "", nil},
		setAside{bus.Message{Topic: bus.TopicState}, "", window.ErrCorrupt},
	))
	if got := asides(m); got != "damaged 1, corrupt 1, not_a_window 1, command 1, state 1, layout 1, window_length 1, features 1, schema 1" || len(asideReasons) != len(m.aside) {
		t.Errorf("%s are counted", got)
	}
}
