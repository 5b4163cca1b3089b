package monitor

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/metric"
)

// durations are how long the steps of a window take.
type durations struct {
	fetch, judge, transaction, result metric.Histogram
}

func newDurations() durations {
	return durations{
		fetch:       metric.NewHistogram("tcm_window_fetch_seconds", "From when Kafka had a window, or its features, until the monitor had read it."),
		judge:       metric.NewHistogram("tcm_judge_seconds", "Unpacking and judging one window."),
		transaction: metric.NewHistogram("tcm_transaction_seconds", "Publishing one batch in a transaction of Kafka."),
		result:      metric.NewHistogram("tcm_window_result_seconds", "From the end of a window until its result was published, without windows that came late."),
	}
}

// read notes how long ago Kafka got the messages that were read to be judged.
func (d *durations) read(now time.Time, msgs []bus.Message, inputs []machine.Input) {
	for i := range msgs {
		if inputs[i].Open != nil {
			d.fetch.Observe(now.Sub(msgs[i].Time).Seconds())
		}
	}
}

// otherMachines is the label of the machines beyond metric.MaxMachines.
const otherMachines = "other"

// machineTable has a row for each machine that a monitor judges, at most
// metric.MaxMachines of them. It is safe for concurrent use.
type machineTable struct {
	mu     sync.Mutex
	rows   map[string]*machineRow
	known  map[int]int // partition → its machines, those without a row included
	others machineRow  // verdicts of the machines without a row
}

// machineRow is what is shown of one machine.
type machineRow struct {
	partition int
	until     time.Time // end of the newest window that was judged
	alarm     string    // in the words of a result
	model     string    // id; empty if none is deployed
	missing   uint64
	stopped   bool        // by a defect
	tool      string      // of the last result
	life      string      // of the tool, see event.Result.ToolLife
	wear      *event.Wear // of the tool, after the last window for which it is known; nil before
	verdicts  [6]uint64   // in the order of event.Verdicts
}

// row returns the row of a machine, or the row that stands for many. The caller has the lock.
func (t *machineTable) row(name string, partition int) *machineRow {
	r := t.rows[name]
	if r == nil && len(t.rows) >= metric.MaxMachines {
		return &t.others
	}
	if r == nil {
		if t.rows == nil {
			t.rows = make(map[string]*machineRow)
		}
		r = new(machineRow)
		t.rows[name] = r
	}
	r.partition = partition
	return r
}

// judged counts the results that were published.
func (t *machineTable) judged(partition int, events []machine.Output) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		if r, ok := e.(machine.Result); ok {
			t.row(r.Machine, partition).add(r.Result)
		} else if a, ok := e.(machine.Alert); ok && a.State == event.ToolIsNew {
			if m := t.row(a.Machine, partition); m.tool == a.Tool {
				m.wear = nil
			}
		}
	}
}

// add counts a result.
func (r *machineRow) add(of *event.Result) {
	if v := slices.Index(event.Verdicts, of.Verdict); v >= 0 {
		r.verdicts[v]++
	}
	if of.Late || of.Between() { // the tool is still in
		return
	}
	if of.Tool != r.tool || of.ToolLife != "" && of.ToolLife != r.life {
		r.tool, r.life, r.wear = of.Tool, of.ToolLife, nil
	}
	if of.Wear != nil {
		r.wear = of.Wear
	}
}

// update takes over how the machines of a partition are, and forgets those that have left it.
func (t *machineTable) update(partition int, owner *machine.Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	here := make(map[string]bool)
	owner.Machines(func(m *machine.Machine) {
		here[m.Machine] = true
		r := t.row(m.Machine, partition)
		if r == &t.others {
			return
		}
		r.model, _ = m.Judges()
		r.until, r.alarm, r.missing = m.Newest, m.AlarmWord(), m.Missing()
		r.stopped = slices.ContainsFunc(m.Notices, func(n machine.Notice) bool { return n.Kind == event.StoppedAdvisory && n.Stands() })
	})
	t.leave(partition, here)
	if t.known == nil {
		t.known = make(map[int]int)
	}
	t.known[partition] = len(here)
}

// leave removes the rows of a partition, but of those machines that stay. The caller has the
// lock.
func (t *machineTable) leave(partition int, stay map[string]bool) {
	for name, r := range t.rows {
		if r.partition == partition && !stay[name] {
			delete(t.rows, name)
		}
	}
}

// revoked forgets the machines of a partition.
func (t *machineTable) revoked(partition int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(partition, nil)
	delete(t.known, partition)
}

// snapshot returns a copy of the rows, and how many machines have none.
func (t *machineTable) snapshot() (rows map[string]machineRow, others machineRow, unlisted int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows = make(map[string]machineRow, len(t.rows))
	for name, r := range t.rows {
		rows[name] = *r
	}
	for _, n := range t.known {
		unlisted += n
	}
	return rows, t.others, max(0, unlisted-len(rows))
}

// each returns rows as metric.ByLabels takes them: labels returns the values of the labels of a
// row, nil for none.
func (t *machineTable) each(labels func(name string, r machineRow) []string) func(func([]string, machineRow) bool) {
	return func(yield func([]string, machineRow) bool) {
		rows, _, _ := t.snapshot()
		for name, r := range rows {
			if l := labels(name, r); l != nil && !yield(l, r) {
				return
			}
		}
	}
}

func one(machineRow) float64 { return 1 }

// metrics returns the metrics of the machines.
func (t *machineTable) metrics() []metric.Collector {
	verdicts := func(yield func([]string, uint64) bool) {
		rows, others, _ := t.snapshot()
		if others.verdicts != [6]uint64{} {
			rows[otherMachines] = others
		}
		for name, r := range rows {
			for i, n := range r.verdicts {
				if !yield([]string{name, string(event.Verdicts[i])}, n) {
					return
				}
			}
		}
	}
	return []metric.Collector{
		metric.ByLabels([]string{"machine", "verdict"}, verdicts, []metric.Metric[uint64]{
			metric.Counter("tcm_machine_windows_total", "Windows judged, by machine and verdict.", func(n uint64) uint64 { return n }),
		}),
		metric.ByLabels([]string{"machine"}, t.each(func(name string, r machineRow) []string { return []string{name} }), []metric.Metric[machineRow]{
			metric.Gauge("tcm_machine_judged_until_timestamp_seconds", "Sensor time up to which windows of the machine are judged, since 1970; 0 if none was.", func(r machineRow) float64 {
				if r.until.IsZero() {
					return 0
				}
				return float64(r.until.UnixMilli()) / 1000
			}),
			metric.Gauge("tcm_machine_windows_missing", "Windows of the machine that have not come yet.", func(r machineRow) float64 { return float64(r.missing) }),
			metric.Gauge("tcm_machine_stopped", "1 if a defect has stopped the machine, and no window of it was judged since.", func(r machineRow) float64 { return truth(r.stopped) }),
		}),
		metric.ByLabels([]string{"machine", "state"}, t.each(func(name string, r machineRow) []string { return []string{name, r.alarm} }), []metric.Metric[machineRow]{
			metric.Gauge("tcm_machine_alarm_state", "1 for the state that the machine's alarm is in.", one),
		}),
		metric.ByLabels([]string{"machine", "model"}, t.each(func(name string, r machineRow) []string {
			if r.model == "" {
				return nil
			}
			return []string{name, r.model}
		}), []metric.Metric[machineRow]{
			metric.Gauge("tcm_machine_model_info", "1 for the model that judges the machine.", one),
		}),
		metric.ByLabels([]string{"machine"}, t.each(func(name string, r machineRow) []string {
			if r.wear == nil {
				return nil
			}
			return []string{name}
		}), []metric.Metric[machineRow]{
			metric.Gauge("tcm_machine_wear_meters", "Estimated flank wear of the tool in the spindle, after the last window for which it is known.", func(r machineRow) float64 { return r.wear.WearUM / 1e6 }),
			metric.Gauge("tcm_machine_wear_high_meters", "Upper end of the wear's 80 % interval.", func(r machineRow) float64 { return r.wear.WearHighUM / 1e6 }),
		}),
		metric.Of(func() int { _, _, n := t.snapshot(); return n }, []metric.Metric[int]{
			metric.Gauge("tcm_machines_unlisted", "Machines beyond the 500 that have metrics of their own.", func(n int) float64 { return float64(n) }),
		}),
	}
}

// lag is how far behind a partition is.
type lag struct{ messages int64 }

// lags yields topic and partition with how many messages wait.
func (r *readiness) lags(yield func([]string, lag) bool) {
	r.mu.Lock()
	rows := make(map[[2]string]lag)
	for id, h := range r.partitions {
		for of, topic := range []string{ofWindows: bus.TopicWindows, ofFeatures: bus.TopicFeatures} {
			if h.end[of] > 0 {
				rows[[2]string{topic, strconv.Itoa(id)}] = lag{max(h.end[of]-h.next[of], 0)}
			}
		}
	}
	r.mu.Unlock()
	for labels, n := range rows {
		if !yield(labels[:], n) {
			return
		}
	}
}

// links is what a monitor is connected to.
type links struct {
	kafka, ready bool
	partitions   int
}

func (m *Monitor) links() links {
	m.ready.mu.Lock()
	l := links{kafka: m.ready.joined && m.ready.failing == nil, partitions: len(m.ready.partitions)}
	m.ready.mu.Unlock()
	l.ready = m.Ready() == nil
	return l
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Metrics returns what the monitor counts and measures, for Prometheus.
func (m *Monitor) Metrics() []metric.Collector {
	d := &m.took
	return append([]metric.Collector{
		metric.Of(m.Stats, metrics), d.fetch, d.judge, d.transaction, d.result,
		metric.ByLabels([]string{"topic", "partition"}, m.ready.lags, []metric.Metric[lag]{
			metric.Gauge("tcm_partition_lag_messages", "Messages that wait to be judged, with the marks of Kafka's transactions between them, by partition at hand.", func(l lag) float64 { return float64(l.messages) }),
		}),
		metric.ByLabels([]string{"reason"}, m.aside.each, []metric.Metric[uint64]{
			metric.Counter("tcm_set_aside_total", "Messages and records set aside on the dead-letter topic, by reason.", func(n uint64) uint64 { return n }),
		}),
		metric.Of(m.links, []metric.Metric[links]{
			metric.Gauge("tcm_monitor_kafka_up", "1 while the broker answers and the monitor is in its group.", func(l links) float64 { return truth(l.kafka) }),
			metric.Gauge("tcm_monitor_ready", "1 while the monitor judges what comes, as /readyz says it.", func(l links) float64 { return truth(l.ready) }),
			metric.Gauge("tcm_monitor_partitions", "Partitions that the monitor has.", func(l links) float64 { return float64(l.partitions) }),
		}),
	}, m.table.metrics()...)
}
