//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/monitor"
)

var (
	badSeed   = flag.Uint64("bad.seed", 1, "what TestBadMinutes draws faults, commands and tools from")
	badRounds = flag.Int("bad.rounds", 1, "how often TestBadMinutes goes through its faults; once takes some 40 s")
)

// badGroups are the groups of TestBadMinutes, and badMachines how many machines they judge.
var badGroups = []string{"tcm-monitor", "tcm-trial"}

const (
	badMachines   = 4
	badPartitions = 3
	badSpeed      = 25 // windows a second of a machine
)

// badMinutes is a plant of four machines with three monitors under faults.
type badMinutes struct {
	*plant
	machines []string
	monitors []*badMonitor
	results  *reader
	alerts   *reader
	starts   int
	did      map[string]int
	kills    []time.Time // of the broker
}

// badMonitor is a monitor of a group that is restarted as one process after the other.
type badMonitor struct {
	group string
	model string
	proc  *process
	log   string
}

// Two monitors of a group and one of another group with another model are stopped, killed
// and suspended, and the broker is killed, while tools change and come back and people send
// commands. In the end every window has one result in each group, and the events of each group
// are consistent.
//
// The test does not notice if the fence of transactions is missing: the moment in which only the
// fence protects is too short to hit by chance. internal/testkit/simulation/nightly aims at it.
func TestBadMinutes(t *testing.T) {
	t.Logf("-bad.seed %d -bad.rounds %d", *badSeed, *badRounds)
	b := newBadMinutes(t)
	ingester := b.launch("ingest.log", "ingest", "run", "--config", b.file("ingest.yaml"))
	for i := range b.monitors {
		b.start(i)
	}
	b.await("for results of every machine in every group", b.allJudged) // a new group ignores earlier commands
	over := make(chan struct{})
	var g errgroup.Group
	g.Go(func() error { return b.command(over) })
	b.disturb()
	close(over)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	b.end(ingester, "ingest.log")
	b.awaitDone()
	for _, m := range b.monitors {
		b.end(m.proc, m.log)
	}
	s := b.read()
	for i, wrong := range s.check() {
		if i == 20 {
			t.Error("and more")
			break
		}
		t.Error(wrong)
	}
	if !t.Failed() {
		s.checkTampered(t)
	}
	t.Logf("%s; %v", s.counts(), b.did)
}

// newBadMinutes starts a broker and writes recordings, models and configurations.
func newBadMinutes(t *testing.T) *badMinutes {
	broker, cfg := startServer(t, badPartitions)
	p := &plant{t: t, b: broker, cfg: cfg, dir: prepare(t, broker.Addr(), badSpeed)}
	b := &badMinutes{plant: p, did: make(map[string]int)}
	write(t, p.dir, "train2.yaml", "layout: layout.yaml\nnetwork: {hidden: [5], pretrain: {epochs: 4}, fine_tune: {epochs: 25}}\nevaluate: {by_tool: \"off\", random_split: false}\n")
	run(t, "trainer", "fit", "--quiet", "--config", p.file("train2.yaml"), "--data", p.file("history.csv"), "--model", p.file("m2.flank"))
	ingest := fmt.Sprintf("kafka: {brokers: [%q]}\nmachines:\n", broker.Addr())
	for i := range badMachines {
		name := fmt.Sprintf("%s%d", machine, i)
		b.machines = append(b.machines, name)
		write(t, p.dir, fmt.Sprintf("day%d.csv", i), magazine(rand.New(rand.NewPCG(*badSeed, uint64(i))), 20_000**badRounds))
		ingest += fmt.Sprintf("  - {machine: %s, layout: layout.yaml, spool: spool%d, source: {kind: csv, file: day%d.csv, speed: %d}}\n", name, i, i, badSpeed)
	}
	write(t, p.dir, "ingest.yaml", ingest)
	b.monitors = []*badMonitor{{group: badGroups[0], model: "m.flank"}, {group: badGroups[0], model: "m.flank"}, {group: badGroups[1], model: "m2.flank"}}
	b.results, b.alerts = follow(t, cfg, bus.TopicResults), follow(t, cfg, bus.TopicAlerts)
	return b
}

// magazine is a recording of four tools that take turns, each for some dozens of rows. A tool
// with another name replaces one that has been worn for a while.
func magazine(rng *rand.Rand, rows int) string {
	type tool struct {
		name, age int // age in rows
		gain      float64
	}
	const life = 150 // rows to 420 µm
	names := 0
	fresh := func() tool {
		names++
		return tool{name: names - 1, gain: 1 + rng.Float64()}
	}
	tools := []tool{fresh(), fresh(), fresh(), fresh()}
	var b strings.Builder
	b.WriteString("force,power,noise,tool,VB\n")
	for n := 0; n < rows; {
		t := &tools[rng.IntN(len(tools))]
		if t.age > life*4/3 {
			*t = fresh()
		}
		for range 40 + rng.IntN(80) {
			writeRow(&b, rng, t.gain, t.name, 420*min(1, float64(t.age)/life))
			t.age++
			n++
		}
	}
	return b.String()
}

// start starts a monitor.
func (b *badMinutes) start(i int) {
	m := b.monitors[i]
	b.starts++
	m.log = fmt.Sprintf("monitor%d-%d.log", i, b.starts)
	config := fmt.Sprintf("monitor%d.yaml", i)
	write(b.t, b.dir, config, fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: %s\ngroup: %s\npage: \"\"\nsilence: 5s\nalarm: {k: 3, n: 5, off_hold: 10s}\n", b.b.Addr(), m.model, m.group))
	m.proc = b.launch(m.log, "monitor", "run", "--wait", "60s", "--config", b.file(config))
}

// end ends a process with SIGTERM. It must end in time and without an error.
func (b *badMinutes) end(p *process, log string) {
	b.t.Helper()
	p.signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			b.t.Errorf("%v: %v\n%s", p.cmd.Args, err, tail(b.log(log)))
		}
	case <-time.After(patience):
		p.signal(syscall.SIGQUIT) // it prints where it hangs
		<-ended
		b.t.Fatalf("%v does not end:\n%s", p.cmd.Args, b.log(log))
	}
}

// await waits until a condition holds. It fails the test after patience.
func (b *badMinutes) await(what string, holds func() bool) {
	b.t.Helper()
	for began := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			b.t.Fatalf("after %v still waiting: %s", patience, what)
		}
	}
}

// allJudged reports whether each group has judged a window of every machine.
func (b *badMinutes) allJudged() bool {
	seen := make(map[of]bool)
	for _, m := range b.results.all() {
		var r event.Result
		if json.Unmarshal(m.Value, &r) == nil {
			seen[of{r.Group, r.Machine}] = true
		}
	}
	return len(seen) == len(badGroups)*badMachines
}

// disturb goes through the faults, in a random order each time. Between two faults a monitor
// must judge a window.
func (b *badMinutes) disturb() {
	rng := rand.New(rand.NewPCG(*badSeed, 100))
	faults := []func(*rand.Rand){b.terminate, b.terminate, b.terminate, b.kill, b.kill, b.suspend, b.suspend, b.killBroker}
	for range *badRounds {
		for _, i := range rng.Perm(len(faults)) {
			judged := len(b.results.all())
			b.await("for a result", func() bool { return len(b.results.all()) > judged })
			time.Sleep(moment(rng, 2*time.Second))
			faults[i](rng)
		}
	}
}

// restart starts a monitor again, sometimes with the other model.
func (b *badMinutes) restart(i int, rng *rand.Rand) {
	m := b.monitors[i]
	if rng.IntN(3) == 0 {
		m.model = map[string]string{"m.flank": "m2.flank", "m2.flank": "m.flank"}[m.model]
		b.did["another model"]++
	}
	b.start(i)
}

func (b *badMinutes) terminate(rng *rand.Rand) {
	i := rng.IntN(len(b.monitors))
	m := b.monitors[i]
	b.await(m.log+" to say that it monitors", func() bool { return strings.Contains(b.log(m.log), "monitoring") }) // earlier it does not handle signals
	b.end(m.proc, m.log)
	b.did["SIGTERM"]++
	b.restart(i, rng)
}

func (b *badMinutes) kill(rng *rand.Rand) {
	i := rng.IntN(len(b.monitors))
	b.monitors[i].proc.kill()
	b.did["SIGKILL"]++
	b.restart(i, rng)
}

// suspend suspends a monitor for longer than its session of 6 s, while another monitor of its
// group takes over.
func (b *badMinutes) suspend(rng *rand.Rand) {
	p := b.monitors[rng.IntN(2)].proc
	p.signal(syscall.SIGSTOP)
	time.Sleep(6500*time.Millisecond + moment(rng, 2*time.Second))
	p.signal(syscall.SIGCONT)
	b.did["SIGSTOP"]++
}

func (b *badMinutes) killBroker(rng *rand.Rand) {
	b.kills = append(b.kills, time.Now())
	b.b.Kill()
	time.Sleep(moment(rng, 3*time.Second))
	b.b.Restart(b.t)
	b.did["broker"]++
}

// command sends commands until over is closed.
func (b *badMinutes) command(over <-chan struct{}) error {
	out, err := bus.NewProducer(b.cfg)
	if err != nil {
		return err
	}
	defer out.Close()
	rng := rand.New(rand.NewPCG(*badSeed, 101))
	for {
		select {
		case <-over:
			return nil
		case <-time.After(moment(rng, 600*time.Millisecond)):
		}
		c, ok := b.nextCommand(rng)
		if !ok {
			continue // there was no alarm yet
		}
		if err := monitor.SendCommand(context.Background(), out, c); err != nil {
			return err
		}
	}
}

// nextCommand draws a command. It reports false if the command needs an alarm and the machine
// never had one.
func (b *badMinutes) nextCommand(rng *rand.Rand) (event.Command, bool) {
	actions := []event.Action{event.Acknowledge, event.Acknowledge, event.Acknowledge, event.Shelve, event.Shelve, event.Unshelve, event.Suppress, event.Unsuppress, event.Unsuppress, event.MarkFalse, event.NewTool}
	c := event.Command{
		ID: fmt.Sprintf("seed%d-%016x", *badSeed, rng.Uint64()), Machine: b.machines[rng.IntN(len(b.machines))], Action: actions[rng.IntN(len(actions))],
		By: "kim", Note: "test", Issued: time.Now(),
	}
	shelf, latest := 2*time.Second+moment(rng, 10*time.Second), b.latest(c.Machine, badGroups[rng.IntN(len(badGroups))])
	switch c.Action {
	case event.Acknowledge, event.MarkFalse:
		c.Incident = latest.Incident
		return c, c.Incident != ""
	case event.Shelve:
		c.Until = c.Issued.Add(shelf)
	case event.NewTool:
		c.Tool = latest.Tool
		return c, c.Tool != ""
	}
	return c, true
}

// latest returns the last alert of a machine and group that names an alarm.
func (b *badMinutes) latest(machine, group string) (latest event.Alert) {
	for _, m := range b.alerts.all() {
		if a, ok := alertIn(m); ok && a.Machine == machine && a.Group == group && a.Incident != "" {
			latest = a
		}
	}
	return latest
}

// awaitDone waits until both groups have read all windows and commands.
func (b *badMinutes) awaitDone() {
	b.t.Helper()
	kc := &kafka.Client{Addr: kafka.TCP(b.b.Addr()), Timeout: 10 * time.Second, Transport: &kafka.Transport{}}
	defer kc.Transport.(*kafka.Transport).CloseIdleConnections()
	for _, group := range badGroups {
		least := int64(math.MaxInt64)
		for since := time.Now(); least > 0; time.Sleep(20 * time.Millisecond) {
			if left, err := b.left(kc, group); err == nil && left < least {
				least, since = left, time.Now()
			}
			if time.Since(since) > patience {
				b.t.Fatalf("group %s stands still for %v with %d messages to read", group, patience, least)
			}
		}
	}
}

// left returns how many windows and commands a group has not read yet.
func (b *badMinutes) left(kc *kafka.Client, group string) (left int64, err error) {
	topics := map[string][]int{}
	for _, topic := range []string{bus.TopicWindows, bus.TopicCommands} {
		for i := range badPartitions {
			topics[topic] = append(topics[topic], i)
		}
	}
	res, err := kc.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{GroupID: group, Topics: topics})
	if err != nil {
		return 0, err
	}
	for topic, partitions := range res.Topics {
		for _, p := range partitions {
			first, end, err := bus.Bounds(context.Background(), b.cfg, topic, p.Partition)
			if err != nil {
				return 0, err
			}
			left += end - max(first, p.CommittedOffset)
		}
	}
	return left, res.Error
}

// read returns the committed messages of the topics.
func (b *badMinutes) read() *account {
	a := &account{kills: b.kills, standing: make(map[string][]monitor.Standing)}
	for topic, into := range map[string]*[]bus.Message{
		bus.TopicWindows: &a.windows, bus.TopicResults: &a.results, bus.TopicAlerts: &a.alerts, bus.TopicCommands: &a.commands, bus.TopicDead: &a.dead,
	} {
		err := readTopic(context.Background(), b.cfg, topic, bus.FirstOffset, false, func(m bus.Message) error {
			*into = append(*into, m)
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	for _, group := range badGroups {
		all, skipped, err := monitor.Alarms(context.Background(), b.cfg, group)
		if err != nil || skipped > 0 {
			b.t.Fatalf("history of %s: %d alerts skipped, %v", group, skipped, err)
		}
		a.standing[group] = all
	}
	return a
}
