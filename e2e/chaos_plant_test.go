//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/loopback"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/flank-tcm/flank/schemas"
)

// plant is a broker, a model and a day's recording with known rows.
type plant struct {
	t    *testing.T
	b    server
	cfg  bus.Config
	dir  string
	rows [][3]float32 // of the recording, as windows have them
}

// newPlant starts a broker and writes a recording of so many tools, each of so
// many windows. The ingester delivers it speed times as fast as a live sensor.
func newPlant(t *testing.T, partitions, tools, perTool int, speed float64) *plant {
	b, cfg := startServer(t, partitions)
	return newPlantAt(t, b, cfg, tools, perTool, speed)
}

func newPlantAt(t *testing.T, b server, cfg bus.Config, tools, perTool int, speed float64) *plant {
	p := &plant{t: t, b: b, cfg: cfg, dir: prepare(t, b.Addr(), speed)}
	text := wearing(rand.New(rand.NewPCG(2, 3)), tools, perTool)
	write(t, p.dir, "day.csv", text)
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		var row [3]float32
		for c, cell := range strings.Split(line, ",")[:3] {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			row[c] = float32(v)
		}
		p.rows = append(p.rows, row)
	}
	return p
}

func (p *plant) file(name string) string { return filepath.Join(p.dir, name) }

func (p *plant) ingest() *process {
	return start(p.t, "ingest", "run", "--config", p.file("ingest.yaml"))
}

func (p *plant) monitor() *process {
	return start(p.t, "monitor", "run", "--wait", "60s", "--config", p.file("monitor.yaml"))
}

// configure writes ingest.yaml again, with other settings of the source and more lines.
func (p *plant) configure(source string, more ...string) {
	write(p.t, p.dir, "ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nlayout: layout.yaml\nspool: spool\nsource: {%s}\n%s\n",
		machine, p.b.Addr(), source, strings.Join(more, "\n")))
}

// evict removes all members of the monitors' group, as the broker does 6 s, a session timeout,
// after they died.
func (p *plant) evict() {
	p.t.Helper()
	kc := &kafka.Client{Addr: kafka.TCP(p.b.Addr()), Timeout: 10 * time.Second, Transport: &kafka.Transport{}}
	defer kc.Transport.(*kafka.Transport).CloseIdleConnections()
	res, err := kc.DescribeGroups(context.Background(), &kafka.DescribeGroupsRequest{GroupIDs: []string{"tcm-monitor"}})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, g := range res.Groups {
		for _, m := range g.Members {
			_, err := kc.LeaveGroup(context.Background(), &kafka.LeaveGroupRequest{
				GroupID: g.GroupID, Members: []kafka.LeaveGroupRequestMember{{ID: m.MemberID}},
			})
			if err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// ledger holds the messages of a topic by id.
type ledger struct {
	t        *testing.T
	mu       sync.Mutex
	bodies   map[string]uint64 // hash of the first message of each id
	messages int
	differ   []string // ids of which two messages differ
	last     time.Time
}

// watch follows a topic and calls first with the first message of each id.
func (p *plant) watch(topic string, first func(bus.Message)) *ledger {
	l := &ledger{t: p.t, bodies: make(map[string]uint64)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := readTopic(ctx, p.cfg, topic, bus.FirstOffset, true, func(m bus.Message) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			id, sum := string(m.Header("ce_id")), hash(m.Value)
			l.messages++
			if before, ok := l.bodies[id]; !ok {
				l.bodies[id], l.last = sum, time.Now()
				first(m)
			} else if before != sum {
				l.differ = append(l.differ, id)
			}
			return nil
		})
		if ctx.Err() == nil {
			p.t.Errorf("reading %s: %v", topic, err)
		}
	}()
	p.t.Cleanup(func() { cancel(); <-done })
	return l
}

func hash(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// count returns how many different ids there are.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bodies)
}

// repeats returns how many messages came again, and how many of those differ from
// the first of their id.
func (l *ledger) repeats() (again, differ int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages - len(l.bodies), len(l.differ)
}

// patience is how long a test waits for the next message. It does not measure speed.
const patience = 4 * time.Minute

// until waits until there are n ids, or until none has come for long.
func (l *ledger) until(n int) {
	l.t.Helper()
	if !l.reached(n, patience) {
		l.t.Fatalf("%d ids, still waiting for %d", l.count(), n)
	}
}

// reached waits until there are n ids, and gives up when none has come for as long
// as wait.
func (l *ledger) reached(n int, wait time.Duration) bool {
	began := time.Now()
	for {
		l.mu.Lock()
		have, last := len(l.bodies), l.last
		l.mu.Unlock()
		if have >= n {
			return true
		}
		if time.Since(began) > wait && time.Since(last) > wait {
			return false
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// settle waits for repeats, until no message has come for a moment.
func (l *ledger) settle() {
	for n := -1; ; time.Sleep(300 * time.Millisecond) {
		l.mu.Lock()
		messages := l.messages
		l.mu.Unlock()
		if messages == n {
			return
		}
		n = messages
	}
}

// windowLedger is the topic of windows, compared with the recording.
type windowLedger struct {
	*ledger
	seen       []bool // rows of the recording that are there
	wrong      int    // windows whose samples are not the row of their seq
	disordered int    // windows whose seq is lower than the previous seq
	next       uint64
}

// codec returns the codec for windows of a layout in the plant's folder.
func (p *plant) codec(layoutFile string) *window.Codec {
	layout, _, err := signal.LoadLayout(p.file(layoutFile))
	if err != nil {
		p.t.Fatal(err)
	}
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		p.t.Fatal(err)
	}
	return codec
}

// windows follows the windows of the plant's machine.
func (p *plant) windows() *windowLedger {
	return p.follow(p.codec("layout.yaml"), len(p.rows), func(w *window.Window) bool {
		return [3]float32{w.Samples[0][0], w.Samples[1][0], w.Samples[2][0]} == p.rows[w.Seq]
	})
}

// follow compares windows with a recording of n windows. Right reports whether a window is the
// one of its seq.
func (p *plant) follow(codec *window.Codec, n int, right func(*window.Window) bool) *windowLedger {
	w := &windowLedger{seen: make([]bool, n)}
	var win window.Window
	w.ledger = p.watch(bus.TopicWindows, func(m bus.Message) {
		if err := envelope.Open(codec, &m, &win); err != nil || win.Seq >= uint64(n) || !right(&win) {
			w.wrong++
			return
		}
		w.seen[win.Seq] = true
		if win.Seq < w.next {
			w.disordered++
		}
		w.next = win.Seq + 1
	})
	return w
}

// lost returns how many of the first n rows of the recording are not there.
func (w *windowLedger) lost(n int) (lost int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seen := range w.seen[:n] {
		if !seen {
			lost++
		}
	}
	return lost
}

// verdictLedger is the topics of results and alerts.
type verdictLedger struct {
	*ledger
	alerts  *ledger
	results map[uint64]string // what was decided, by seq
	twice   int               // windows that have results of two ids
	late    int
	invalid int
	raised  map[string]string // alerts, by seq and state
}

// verdicts follows the results and alerts of the plant's machine.
func (p *plant) verdicts() *verdictLedger {
	v := &verdictLedger{results: make(map[uint64]string), raised: make(map[string]string)}
	v.ledger = p.watch(bus.TopicResults, func(m bus.Message) {
		var r event.Result
		if err := schemas.Validate(schemas.Result, m.Value); err != nil || json.Unmarshal(m.Value, &r) != nil {
			v.invalid++
			return
		}
		if _, twice := v.results[r.Seq]; twice {
			v.twice++
		}
		if r.Late {
			v.late++
		}
		v.results[r.Seq] = fmt.Sprintf("%s %v %s %d", r.Verdict, r.Score, r.Alarm, r.ReferenceLen)
	})
	v.alerts = p.watch(bus.TopicAlerts, func(m bus.Message) {
		if string(m.Header("ce_type")) != event.AlertType {
			return
		}
		var a event.Alert
		if err := schemas.Validate(schemas.Alert, m.Value); err != nil || json.Unmarshal(m.Value, &a) != nil {
			v.invalid++
			return
		}
		v.raised[fmt.Sprintf("%d/%s", a.Seq, a.State)] = a.Text
	})
	return v
}

// calm returns the verdicts of an undisturbed monitor on the plant's recording, with its own
// broker.
func (p *plant) calm() *verdictLedger {
	e := &embedded{dir: p.t.TempDir(), addr: loopback.Host(2) + ":0"}
	e.Restart(p.t)
	p.t.Cleanup(e.Kill)
	cfg := bus.Config{Brokers: []string{e.Addr()}, ClientID: "e2e"}
	if _, err := bus.Apply(context.Background(), cfg, 2, 1); err != nil {
		p.t.Fatal(err)
	}
	q := &plant{t: p.t, b: e, cfg: cfg, dir: p.dir, rows: p.rows}
	write(p.t, p.dir, "calm-ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nlayout: layout.yaml\nspool: calm\nsource: {kind: csv, file: day.csv, speed: 0}\n", machine, e.Addr()))
	write(p.t, p.dir, "calm-monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: \"\"\n", e.Addr()))
	run(p.t, "ingest", "run", "--config", p.file("calm-ingest.yaml"))
	v := q.verdicts()
	mon := start(p.t, "monitor", "run", "--config", p.file("calm-monitor.yaml"))
	v.until(len(p.rows))
	v.settle()
	v.alerts.settle()
	mon.kill()
	return v
}

// against counts the differences from the undisturbed monitor: windows without a result, windows
// with another verdict, missing alerts and extra alerts.
func (v *verdictLedger) against(calm *verdictLedger) (missing, otherwise, forgotten, invented int) {
	for _, l := range []*ledger{v.ledger, v.alerts} {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	for seq, want := range calm.results {
		switch got, ok := v.results[seq]; {
		case !ok:
			missing++
		case got != want:
			if otherwise++; otherwise <= 5 {
				v.t.Logf("window %d: %s, undisturbed %s", seq, got, want)
			}
		}
	}
	for id, want := range calm.raised {
		if v.raised[id] != want {
			forgotten++
			v.t.Logf("alert %s: %q, undisturbed %q", id, v.raised[id], want)
		}
	}
	for id := range v.raised {
		if _, ok := calm.raised[id]; !ok {
			invented++
			v.t.Logf("alert %s: %q, undisturbed none", id, v.raised[id])
		}
	}
	return missing, otherwise, forgotten, invented
}

// judged notes the figures for windows that are judged under faults.
func (r *record) judged(what, count string, v, calm *verdictLedger) {
	v.settle()
	v.alerts.settle()
	missing, otherwise, forgotten, invented := v.against(calm)
	again, differ := v.repeats()
	alertsAgain, alertsDiffer := v.alerts.repeats()
	r.exact(figure{
		What: what + ": windows without a result / judged twice / judged otherwise than by a monitor left alone", Count: count, Goal: "0 / 0 / 0",
		Measured: fmt.Sprintf("%d / %d / %d of %d; %d results repeated under their id, %d of them different", missing, v.twice+differ, otherwise, len(calm.results), again, differ),
	}, missing+v.twice+differ+otherwise+v.invalid == 0)
	r.exact(figure{
		What: what + ": alerts forgotten / invented or repeated under another id", Count: count, Goal: "0 / 0",
		Measured: fmt.Sprintf("%d / %d of %d; %d repeated under their id, %d of them different", forgotten, invented, len(calm.raised), alertsAgain, alertsDiffer),
	}, forgotten+invented+alertsDiffer == 0 && len(calm.raised) > 0)
}

// delivered notes whether all windows came, whole and in order.
func (r *record) delivered(what, count string, w *windowLedger, n int) {
	w.settle()
	again, differ := w.repeats()
	lost := w.lost(n)
	r.exact(figure{
		What: what + ": windows lost / not the recording's / out of order", Count: count, Goal: "0 / 0 / 0",
		Measured: fmt.Sprintf("%d / %d / %d of %d; %d repeated under their id, %d of them different", lost, w.wrong, w.disordered, n, again, differ),
	}, lost+w.wrong+w.disordered+differ == 0)
}

// median returns the median.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
