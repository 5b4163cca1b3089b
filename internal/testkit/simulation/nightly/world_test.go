package nightly

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	brokerAddress = "127.0.0.1:9092"
	partitions    = 2
	machines      = 3
)

// badDays are the faults while windows are cut.
var badDays = faults{
	lost:    0.001,
	late:    0.002,
	lateBy:  20 * time.Second,
	unheard: 0.002,
	slow:    0.002,
	slowBy:  8 * time.Second,
	doubled: 0.02, doubledBy: 15 * time.Second,
}

// badTransactions are the faults of the requests that begin and end transactions and that
// commit positions in them. A monitor that is suspended in the middle of a transaction may
// wake after its session of six seconds, when another monitor has its partition, and before
// its transaction ends by itself after ten.
var badTransactions = faults{
	lost:    0.002,
	late:    0.01,
	lateBy:  20 * time.Second,
	unheard: 0.01,
	slow:    0.005,
	slowBy:  8 * time.Second,
	frozen:  0.002, stranded: 0.004, frozenFrom: 6 * time.Second, frozenTo: 11 * time.Second,
}

// routedGroup is the group whose monitors run a route.
const routedGroup = "tcm-monitor"

// members are the monitors: the first two share the partitions, the third judges all of them.
var members = []struct{ name, group string }{{"monitor-a", routedGroup}, {"monitor-b", routedGroup}, {"trial", "tcm-trial"}}

// story records a run: a hash of all lines, and the last lines.
type story struct {
	mu    sync.Mutex
	hash  hash.Hash
	lines int
	last  []string
	all   *bufio.Writer // nil: not written
}

const storyKept = 400 // lines for the report of a seed that fails

func (s *story) say(format string, args ...any) {
	line := fmt.Sprintf("%10.3f s  ", time.Since(bubbleStart).Seconds()) + fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines++
	fmt.Fprintln(s.hash, line)
	if s.last = append(s.last, line); len(s.last) >= 2*storyKept {
		s.last = slices.Clone(s.last[len(s.last)-storyKept:])
	}
	if s.all != nil {
		fmt.Fprintln(s.all, line)
	}
}

// bubbleStart is the time at which every bubble begins.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// logOf makes lines of a program's log part of the story.
type logOf struct {
	s   *story
	who string
}

func (l logOf) Write(b []byte) (int, error) {
	l.s.say("%s: %s", l.who, strings.TrimSpace(string(b)))
	return len(b), nil
}

// outcome holds the counts of a run.
type outcome struct {
	hash                     string
	lines                    int
	windows, results, alerts int
	commands                 int
	delivered, refused       int // by routes, with repeats; attempts that the receiver failed
	kills, stops, suspended  int
	network                  *network
	virtual                  time.Duration
}

func (o *outcome) String() string {
	return fmt.Sprintf("hash %s of %d lines, %v virtual, %d windows, %d results, %d commands, %d events, %d deliveries, %d failed, %d kills, %d stops, %d suspended, network %+v",
		o.hash, o.lines, o.virtual.Round(time.Second), o.windows, o.results, o.commands, o.alerts, o.delivered, o.refused, o.kills, o.stops, o.suspended, o.network.count)
}

// world is everything in the bubble.
type world struct {
	seed    uint64
	windows int // of each machine
	model   *model.Model
	net     *network
	hook    *hook
	story   *story
	dir     string

	mu      sync.Mutex
	cut     []string // ids of windows
	running map[string]bool
	judging map[string]bool   // groups and machines with a judged window
	raised  map[string]string // the last alarm that was raised, by machine
	outcome outcome
}

// simulate runs a seed. A violation ends the test binary: a test cannot leave a bubble whose
// goroutines are stuck.
func simulate(t *testing.T, seed uint64, windows int, m *mutant, all *bufio.Writer) *outcome {
	w := &world{
		seed: seed, windows: windows, model: machinetest.OneValue(t), dir: t.TempDir(), running: make(map[string]bool),
		judging: make(map[string]bool), raised: make(map[string]string),
		story: &story{hash: sha256.New(), all: all},
	}
	w.net = newNetwork(seed, w.story.say)
	w.net.mutant = m
	w.outcome.network = w.net
	w.hook = &hook{w: w}
	cryptotest.SetGlobalRandom(t, seed)
	runAlone()
	synctest.Test(t, func(*testing.T) {
		seedBubble(seed)
		if wrong := w.live(); len(wrong) > 0 {
			w.fail(wrong)
		}
		w.outcome.virtual = time.Since(bubbleStart)
		w.outcome.hash, w.outcome.lines = fmt.Sprintf("%x", w.story.hash.Sum(nil)[:8]), w.story.lines
	})
	return &w.outcome
}

// wrongMark stands before the violations.
const wrongMark = "WRONG"

// fail prints the end of the story and the violations, and ends the program.
func (w *world) fail(wrong []string) {
	fmt.Println(strings.Join(w.story.last[max(0, len(w.story.last)-storyKept):], "\n"))
	if len(wrong) > 20 {
		wrong = append(wrong[:20], fmt.Sprintf("and %d more", len(wrong)-20))
	}
	if w.story.all != nil {
		_ = w.story.all.Flush()
	}
	fmt.Printf("%s, seed %d:\n%s\n", wrongMark, w.seed, strings.Join(wrong, "\n"))
	os.Exit(1)
}

func (w *world) bus(name string) bus.Config {
	return bus.Config{Brokers: []string{brokerAddress}, ClientID: name, Network: &bus.Network{
		Dial: w.net.dialer(name), MetadataTTL: 20 * time.Second, ReadWait: 2 * time.Second,
	}}
}

// log returns the log of a program.
func (w *world) log(name string) zerolog.Logger { return zerolog.New(logOf{w.story, name}) }

// live runs the pipeline from the first window to the last, and returns the violations.
func (w *world) live() []string {
	broker, err := broker.NewMemory(w.net.listen(brokerAddress, false))
	if err != nil {
		return []string{err.Error()}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := bus.Apply(ctx, w.bus("admin"), partitions, 1); err != nil {
		return []string{err.Error()}
	}
	if err := w.keepState(ctx); err != nil {
		return []string{err.Error()}
	}
	if err := w.beginRoute(ctx); err != nil {
		return []string{err.Error()}
	}
	go w.hook.serve(ctx)
	w.net.faults, w.net.txnFaults = badDays, badTransactions
	var ingesting, judging sync.WaitGroup
	for i := range machines {
		ingesting.Go(func() { w.ingest(ctx, i) })
	}
	monitoring, stop := context.WithCancel(ctx)
	defer stop()
	for _, m := range members {
		judging.Go(func() { w.monitor(monitoring, m.name, m.group) })
	}
	go w.suspend(ctx)
	ingesting.Go(func() { w.people(ctx) })

	time.Sleep(time.Duration(w.windows) * time.Second)
	w.net.endFaults()
	if wrong := w.wait(&ingesting, settle); wrong != nil {
		return wrong
	}
	time.Sleep(settle)
	stop()
	if wrong := w.wait(&judging, 30*time.Second); wrong != nil {
		return wrong
	}
	t, err := w.read(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	wrong := (&oracle{w.model, []string{routedGroup, "tcm-trial"}}).check(w.cut, t)
	wrong = append(wrong, checkRoute(routedGroup, t.alerts, w.hook.got)...)
	w.outcome.delivered, w.outcome.refused = len(w.hook.got), w.hook.refused
	w.outcome.windows, w.outcome.results, w.outcome.alerts = len(w.cut), len(t.results), len(t.alerts)
	if len(w.cut) < machines*w.windows*9/10 {
		wrong = append(wrong, fmt.Sprintf("only %d windows were cut", len(w.cut)))
	}
	cancel()
	if err := broker.Close(); err != nil {
		wrong = append(wrong, err.Error())
	}
	time.Sleep(6 * time.Minute) // until the client library closes idle connections
	return wrong
}

// keepState makes the broker compact no state records under a mutant. Under a mutant every program
// has its own producer. When the embedded broker compacts away the end marker of an aborted
// transaction, readers no longer see the later records of its producer. Seeds must not find a
// mutant by that.
func (w *world) keepState(ctx context.Context) error {
	if w.net.mutant == nil {
		return nil
	}
	t := &kafka.Transport{Dial: w.net.dialer("admin"), ClientID: "admin"}
	defer t.CloseIdleConnections()
	res, err := (&kafka.Client{Addr: kafka.TCP(brokerAddress), Transport: t}).IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: bus.TopicState,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "cleanup.policy", Value: "delete", ConfigOperation: kafka.ConfigOperationSet}},
	}}})
	if err == nil {
		err = res.Resources[0].Error
	}
	return err
}

// wait waits for programs to return. It returns a sentence with the programs that do not.
func (w *world) wait(programs *sync.WaitGroup, most time.Duration) []string {
	done := make(chan struct{})
	go func() {
		programs.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(most):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return []string{fmt.Sprintf("%v after the end these programs still run: %v", most, w.running)}
}

func (w *world) begin(name string) (ended func()) {
	w.mu.Lock()
	w.running[name] = true
	w.mu.Unlock()
	return func() {
		w.mu.Lock()
		delete(w.running, name)
		w.mu.Unlock()
	}
}

// ingest runs the gateway of a machine until all its windows are in Kafka.
func (w *world) ingest(ctx context.Context, i int) {
	name := fmt.Sprintf("gateway-%d", i)
	defer w.begin(name)()
	g, err := gateway.New(gateway.Config{
		Source: newTools(w, i), Window: w.model.Window, SpoolDir: filepath.Join(w.dir, name), Bus: w.bus(name), Log: w.log(name),
		OnCut: func(c source.Cut) {
			if c.Window == nil {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.cut = append(w.cut, event.WindowID(c.Window.Machine, c.Window.EpochString(), c.Window.Seq))
		},
	})
	if err != nil {
		w.fail([]string{err.Error()})
	}
	defer g.Close()
	if err := g.Run(ctx); err != nil {
		w.fail([]string{name + ": " + err.Error()})
	}
}

// monitor runs a member of a group. It is stopped or killed and started again.
func (w *world) monitor(ctx context.Context, name, group string) {
	rng := rand.New(rand.NewPCG(w.seed, sum(name)))
	for life := 1; ctx.Err() == nil; life++ {
		w.oneLife(ctx, fmt.Sprintf("%s/%d", name, life), group, rng)
		select {
		case <-time.After(time.Duration(rng.Int64N(int64(10 * time.Second)))):
		case <-ctx.Done():
		}
	}
}

// oneLife is one life of a monitor, with the route of its group.
func (w *world) oneLife(ctx context.Context, name, group string, rng *rand.Rand) {
	defer w.begin(name)()
	m, err := monitor.New(monitor.Config{
		Model: w.model, Bus: w.bus(name), Group: group, Log: w.log(name),
		OnWindow: func(_ *signal.Layout, win *window.Window, _ event.Result) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.judging[group+" "+win.Machine] = true
		},
		OnAlert: func(a event.Alert) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if a.State == event.Raised {
				w.raised[a.Machine] = a.Incident
			}
		},
	})
	if err != nil {
		w.fail([]string{err.Error()})
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	kill := rng.IntN(3) > 0
	end := time.AfterFunc(5*time.Second+time.Duration(rng.ExpFloat64()*float64(2*time.Minute)), func() {
		for w.net.isJoining(name) && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		if w.net.isCalm() || ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		if kill {
			w.outcome.kills++
		} else {
			w.outcome.stops++
		}
		w.mu.Unlock()
		if kill {
			w.net.kill(name)
		}
		stop()
	})
	defer end.Stop()
	if group == routedGroup {
		routing := w.route(ctx, name)
		defer routing()
	}
	if err := m.Run(ctx); err != nil {
		w.fail([]string{name + ": " + err.Error()})
	}
}

// people sends commands, some of them twice, after every group has judged every machine.
func (w *world) people(ctx context.Context) {
	const name = "people"
	defer w.begin(name)()
	out, err := bus.NewProducer(w.bus(name))
	if err != nil {
		w.fail([]string{err.Error()})
	}
	defer out.Close()
	rng := rand.New(rand.NewPCG(w.seed, sum(name)))
	began := false
	for n := 0; !w.net.isCalm(); {
		time.Sleep(time.Second + time.Duration(rng.ExpFloat64()*float64(4*time.Second)))
		w.mu.Lock()
		all := len(w.judging) == 2*machines
		w.mu.Unlock()
		if !all {
			continue
		}
		if !began { // now the first results are published, and with them the groups' positions in the commands
			began = true
			time.Sleep(30 * time.Second)
			continue
		}
		n++
		c := w.command(rng, n)
		for range 1 + rng.IntN(8)/7 {
			if err := monitor.SendCommand(ctx, out, c); err != nil {
				w.fail([]string{"command: " + err.Error()})
			}
		}
	}
}

// command draws a command. No command depends on time: the behaviour of an undisturbed owner must
// follow from the windows.
func (w *world) command(rng *rand.Rand, n int) event.Command {
	c := event.Command{ID: fmt.Sprintf("c%d", n), Machine: machineName(rng.IntN(machines)), By: "kim", Note: "why not", Issued: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.commands++
	incident := w.raised[c.Machine]
	switch k := rng.IntN(10); {
	case k < 4 && incident != "":
		c.Action, c.Incident = event.Acknowledge, incident
	case k < 6 && incident != "":
		c.Action, c.Incident = event.MarkFalse, incident
	case k == 6:
		c.Action = event.Suppress
	case k == 7:
		c.Action, c.Tool = event.NewTool, fmt.Sprintf("T%d", rng.IntN(4))
	default:
		c.Action = event.Unsuppress
	}
	return c
}

func machineName(i int) string { return fmt.Sprintf("acme/spore/bay2/line%d/mill", i) }

// suspend suspends members from time to time.
func (w *world) suspend(ctx context.Context) {
	rng := rand.New(rand.NewPCG(w.seed, sum("suspend")))
	for {
		select {
		case <-time.After(5*time.Second + time.Duration(rng.ExpFloat64()*float64(40*time.Second))):
		case <-ctx.Done():
			return
		}
		prefix, by := members[rng.IntN(len(members))].name, time.Second+time.Duration(rng.Int64N(int64(20*time.Second)))
		if w.net.isCalm() {
			return
		}
		w.mu.Lock()
		for name := range w.running {
			if strings.HasPrefix(name, prefix) {
				w.outcome.suspended++
				w.net.suspendHost(name, by)
			}
		}
		w.mu.Unlock()
	}
}

func (n *network) isCalm() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calm
}

// sum spreads names over the second half of a seed.
func sum(name string) (h uint64) {
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// read returns the messages of the topics.
func (w *world) read(ctx context.Context) (*topics, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	t := &topics{windows: make([][]bus.Message, partitions), commands: make([][]bus.Message, partitions)}
	for _, r := range []struct {
		topic string
		take  func(bus.Message)
	}{
		{bus.TopicWindows, func(m bus.Message) { t.windows[m.Partition] = append(t.windows[m.Partition], m) }},
		{bus.TopicCommands, func(m bus.Message) { t.commands[m.Partition] = append(t.commands[m.Partition], m) }},
		{bus.TopicResults, func(m bus.Message) { t.results = append(t.results, m) }},
		{bus.TopicAlerts, func(m bus.Message) { t.alerts = append(t.alerts, m) }},
		{bus.TopicDead, func(m bus.Message) { t.dead = append(t.dead, m) }},
	} {
		take := func(m bus.Message) error {
			r.take(m)
			return nil
		}
		if err := bus.ReadTopic(ctx, w.bus("reader"), r.topic, bus.FirstOffset, false, take); err != nil {
			return nil, fmt.Errorf("topic %s: %w", r.topic, err)
		}
	}
	return t, nil
}

// tools is the source of a machine: one sample a second. Its tools wear, come back from the
// magazine and are replaced.
type tools struct {
	layout  *signal.Layout
	machine string
	rng     *rand.Rand
	start   time.Time
	next    int64
	end     int64
	tool    string
	left    int // samples until the tool changes
	wear    map[string]float64
	block   source.Block
}

func newTools(w *world, i int) *tools {
	return &tools{
		layout: w.model.Layout, machine: machineName(i), rng: rand.New(rand.NewPCG(w.seed, uint64(i))),
		start: time.Now(), end: int64(w.windows), wear: make(map[string]float64),
	}
}

func (s *tools) Layout() *signal.Layout { return s.layout }

func (s *tools) Next(ctx context.Context) (*source.Block, error) {
	if s.next >= s.end {
		return nil, io.EOF
	}
	select {
	case <-time.After(time.Until(s.start.Add(time.Duration(s.next+1) * time.Second))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.left == 0 {
		s.tool, s.left = fmt.Sprintf("T%d", s.rng.IntN(4)), 8+s.rng.IntN(40)
	}
	s.left--
	s.wear[s.tool] += 0.02 * s.rng.Float64()
	value := float32(10)
	if s.wear[s.tool] > 0.5 {
		value = 20
	}
	s.block = source.Block{Block: signal.Block{
		Context: signal.Context{Machine: s.machine, Tool: s.tool}, Session: 1, First: s.next,
		Time: s.start.Add(time.Duration(s.next) * time.Second), Samples: [][]float32{{value}},
	}}
	s.next++
	return &s.block, nil
}
