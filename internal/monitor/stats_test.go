package monitor

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/golden"
	"github.com/flank-tcm/flank/internal/metric"
)

// untilStats waits until the counts satisfy done.
func (m *monitoring) untilStats(t *testing.T, done func(Stats) bool) Stats {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		s := m.Stats()
		if done(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", s)
		}
	}
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

// Every metric is in docs/reference/metrics.md, with its kind.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	m := new(Monitor)
	m.judged.Store(1)
	w := httptest.NewRecorder()
	metric.Handler(m.Metrics()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var heads []string
	values := 0
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			heads = append(heads, line)
			continue
		}
		values++
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		if !slices.Contains(heads, "# TYPE "+name+" "+kind+"\n") || value != map[bool]string{true: "1", false: "0"}[name == "tcm_windows_judged_total"] {
			t.Error(line)
		}
		if !slices.ContainsFunc(strings.Split(string(text), "\n"), func(l string) bool {
			return strings.HasPrefix(l, "| `"+name+"` |") && strings.Contains(l, kind)
		}) {
			t.Errorf("docs/reference/metrics.md lacks %s, a %s", name, kind)
		}
	}
	if values != len(metrics) {
		t.Errorf("%d metrics, want %d", values, len(metrics))
	}
	slices.Sort(heads)
	golden.Check(t, "metrics.txt", strings.Join(heads, ""))
}
