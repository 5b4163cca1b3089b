//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	rollingMonitors   = 4
	rollingPartitions = 64
	heldUpAtMost      = 3 * time.Second // of a machine, when a monitor is restarted with SIGTERM
	killedAtMost      = 10 * time.Second
	rollingPause      = 2 * time.Second // from when a monitor is ready until the next one is restarted
)

// rolling is a set of machines that send a window a second each, the windows of one machine a
// moment after the windows of another. It notes when each window was sent, and when a reader of
// committed messages saw its result.
type rolling struct {
	*plant
	codec    *window.Codec
	out      *bus.Producer
	machines []string
	stopped  chan struct{}

	mu    sync.Mutex
	sent  map[string][]time.Time // by machine and seq
	seen  map[string]time.Time   // by machine and seq
	twice int                    // windows with results of two ids
	odd   int                    // results of windows that were never sent
}

func newRolling(t *testing.T, machines int) *rolling {
	b, cfg := startServer(t, rollingPartitions)
	h := &rolling{
		plant:   &plant{t: t, b: b, cfg: cfg, dir: prepare(t, b.Addr(), 0)},
		stopped: make(chan struct{}), sent: make(map[string][]time.Time), seen: make(map[string]time.Time),
	}
	h.codec = h.plant.codec("layout.yaml")
	var err error
	if h.out, err = bus.NewProducer(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.out.Close)
	for i := range machines {
		h.machines = append(h.machines, fmt.Sprintf("acme/spore/bay%d/line%d/lathe%d", 1+i/16, 1+i/4%4, i))
	}
	ids := make(map[string]string)
	(&latencySide{}).follow(t, cfg, bus.TopicResults, func(m bus.Message) {
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil {
			t.Error(err)
			return
		}
		at := fmt.Sprintf("%s %d", r.Machine, r.Seq)
		h.mu.Lock()
		defer h.mu.Unlock()
		switch before, again := ids[at]; {
		case again && before != r.ID:
			h.twice++
		case !again:
			ids[at], h.seen[at] = r.ID, time.Now()
			if r.Seq >= uint64(len(h.sent[r.Machine])) {
				h.odd++
			}
		}
	})
	return h
}

// fillState writes so many MB of another group's state into every partition: what lies there
// until Kafka compacts it, which it does from 16 MB on.
func (h *rolling) fillState(mb int) {
	h.t.Helper()
	keys := make(map[int]string)
	for i := 0; len(keys) < rollingPartitions; i++ {
		key := event.StateKey{Group: "another", Machine: fmt.Sprint("acme/spore/bay9/line1/mill", i)}.String()
		keys[bus.PartitionOf(key, rollingPartitions)] = key
	}
	const each = 1 << 10
	value := bytes.Repeat([]byte("{}"), each/2)
	for _, key := range keys {
		for range mb {
			msgs := make([]bus.Message, 1<<20/each)
			for i := range msgs {
				msgs[i] = bus.Message{Topic: bus.TopicState, Key: key, Value: value}
			}
			if err := h.out.Send(context.Background(), msgs); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// send sends windows until ctx ends.
func (h *rolling) send(ctx context.Context) {
	defer close(h.stopped)
	begin := time.Now()
	var sending sync.WaitGroup
	for i, name := range h.machines {
		sending.Go(func() {
			offset := time.Duration(i) * time.Second / time.Duration(len(h.machines))
			for seq := uint64(0); ; seq++ {
				due := begin.Add(offset + time.Duration(seq)*time.Second)
				select {
				case <-time.After(time.Until(due)):
				case <-ctx.Done():
					return
				}
				h.mu.Lock()
				h.sent[name] = append(h.sent[name], time.Now())
				h.mu.Unlock()
				if err := h.out.Send(context.Background(), []bus.Message{h.window(name, seq, due)}); err != nil {
					h.t.Error(err)
					return
				}
			}
		})
	}
	sending.Wait()
}

// window returns the message of a window that ends at a time.
func (h *rolling) window(name string, seq uint64, end time.Time) bus.Message {
	level := float32(100 + seq%7)
	e, err := h.codec.Seal(&window.Window{
		Context: signal.Context{Machine: name, Tool: "T1"}, Epoch: 1, Seq: seq, Start: end.Add(-time.Second), Length: time.Second,
		Samples: [][]float32{{level}, {level / 5}, {0}}, Quality: make([]signal.Quality, 3),
	})
	if err != nil {
		h.t.Error(err)
	}
	return envelope.Window(e)
}

// span is how long after windows were sent their results were seen.
type span struct {
	all   []time.Duration // of all windows
	worst []time.Duration // of each machine's slowest window
}

// String returns figures for a note.
func (s span) String() string {
	late := 0
	for _, d := range s.all {
		if d > time.Second/2 {
			late++
		}
	}
	return fmt.Sprintf("median %d ms, 99 %% of the windows within %.2f s, %d of %d windows later than 0.5 s; the slowest window of a machine took %.2f s for the machine in the middle",
		quantile(s.all, 0.5).Milliseconds(), quantile(s.all, 0.99).Seconds(), late, len(s.all), quantile(s.worst, 0.5).Seconds())
}

func (s span) longest() time.Duration { return slices.Max(s.worst) }

// heldUp measures the windows that were sent between two times. It counts the windows without a
// result, whenever they were sent.
func (h *rolling) heldUp(from, to time.Time) (s span, lost int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range h.machines {
		slowest := time.Duration(0)
		for seq, at := range h.sent[name] {
			seen, ok := h.seen[fmt.Sprintf("%s %d", name, seq)]
			if !ok {
				lost++
			} else if at.After(from) && at.Before(to) {
				s.all = append(s.all, seen.Sub(at))
				slowest = max(slowest, seen.Sub(at))
			}
		}
		s.worst = append(s.worst, slowest)
	}
	return s, lost
}

// hallMonitor is a monitor of the rolling, with a page.
type hallMonitor struct {
	h      *rolling
	config string
	page   string
	*process
}

func (h *rolling) startMonitor(i int) *hallMonitor {
	m := &hallMonitor{h: h, page: freeAddr(h.t)}
	name := fmt.Sprintf("monitor%d.yaml", i)
	m.config = write(h.t, h.dir, name, fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: %s\n", h.b.Addr(), m.page))
	m.run()
	return m
}

func (m *hallMonitor) run() {
	m.process = m.h.launch(filepath.Base(m.config)+".log", "monitor", "run", "--wait", "60s", "--config", m.config)
}

// ready waits until the monitor says that it is ready.
func (m *hallMonitor) ready() {
	m.h.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var says []byte
		res, err := http.Get("http://" + m.page + "/readyz")
		if err == nil {
			says, _ = io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			m.h.t.Fatalf("the monitor is not ready: %s %v", says, err)
		}
	}
}

// Row 14. Four monitors of one group are restarted one after the other, each when the one before
// is ready, while every machine sends a window a second.
func monitorsRestarted(t *testing.T, r *record) {
	h := newRolling(t, r.n(64, 16))
	state := r.n(15, 0)
	h.fillState(state)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go h.send(ctx)
	var monitors []*hallMonitor
	for i := range rollingMonitors {
		monitors = append(monitors, h.startMonitor(i))
	}
	for _, m := range monitors {
		m.ready()
	}
	time.Sleep(5 * time.Second)
	restart := func(count int, sig syscall.Signal) (from, to time.Time) {
		from = time.Now()
		for i := range count {
			m := monitors[i%len(monitors)]
			m.signal(sig)
			_ = m.cmd.Wait()
			m.run()
			m.ready()
			time.Sleep(rollingPause)
		}
		return from, time.Now()
	}
	calmFrom := time.Now()
	time.Sleep(3 * time.Second)
	calmTo := time.Now()
	restarts, kills := r.n(2*rollingMonitors, rollingMonitors), r.n(rollingMonitors, 1)
	termFrom, termTo := restart(restarts, syscall.SIGTERM)
	killFrom, killTo := restart(kills, syscall.SIGKILL)
	time.Sleep(time.Second)
	stop()
	<-h.stopped
	h.settle()

	calm, lost := h.heldUp(calmFrom, calmTo)
	term, _ := h.heldUp(termFrom, termTo.Add(-rollingPause/2)) // what the first kill holds up is the kill's
	kill, _ := h.heldUp(killFrom, killTo)
	t.Logf("before the restarts: %v", calm)
	t.Logf("while they are restarted: %v", term)
	t.Logf("while they are killed: %v", kill)
	r.exact(figure{
		What:  "monitors restarted one after the other: windows without a result / with two",
		Count: fmt.Sprintf("%d SIGTERMs, then %d SIGKILLs, of %d monitors with %d machines and %d MB of state for each", restarts, kills, rollingMonitors, len(h.machines), state), Goal: "0 / 0",
		Measured: fmt.Sprintf("%d / %d of %d", lost, h.twice, len(h.seen)),
	}, lost+h.twice+h.odd == 0)
	r.measured(figure{
		What: "monitors restarted one after the other: longest from a window to its result, of any machine", Count: fmt.Sprintf("%d SIGTERMs", restarts), Goal: "≤ 3 s",
		Measured: fmt.Sprintf("%.2f s", term.longest().Seconds()), Note: fmt.Sprintf("%v. Before the restarts: %v.", term, calm),
	}, term.longest() <= heldUpAtMost)
	r.measured(figure{
		What: "monitors killed one after the other: longest from a window to its result, of any machine", Count: fmt.Sprintf("%d SIGKILLs", kills), Goal: "≤ 10 s",
		Measured: fmt.Sprintf("%.2f s", kill.longest().Seconds()), Note: fmt.Sprintf("%v. Kafka waits 6 s, a session, before it gives the partitions of a killed monitor to others.", kill),
	}, kill.longest() <= killedAtMost)
}

// settle waits until every window has a result, or none has come for long.
func (h *rolling) settle() {
	counts := func() (sent, seen int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, at := range h.sent {
			sent += len(at)
		}
		return sent, len(h.seen)
	}
	for last, since := 0, time.Now(); time.Since(since) < patience; time.Sleep(20 * time.Millisecond) {
		sent, seen := counts()
		if seen >= sent {
			break
		}
		if seen > last {
			last, since = seen, time.Now()
		}
	}
	time.Sleep(300 * time.Millisecond) // for repeats
}
