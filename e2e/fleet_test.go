//go:build e2e

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/schemas"
)

var (
	fleetSeed = flag.Uint64("fleet.seed", 1, "what TestFleet draws from")
	fleetTime = flag.Duration("fleet.time", 40*time.Second, "for how long TestFleet changes things; some seconds more for the rest")
)

const (
	fleetGroup  = "tcm-monitor"
	fleetDrills = 8
	fleetLathes = 2
	fleetGrown  = 16 // partitions, from 4
	fleetSpeed  = 8  // of the lathes, in windows a second; drills send one a second, as real ones do
)

// fleetSchedule has short lives, so that tools change during the test.
var fleetSchedule = train.Schedule{Life: 24 * time.Second, Hole: 10 * time.Second, Pause: 3 * time.Second}

// fleetRun is a plant of drills and lathes with two monitors of one group, and two models for
// each layout.
type fleetRun struct {
	*badMinutes
	rng       *rand.Rand
	models    map[string][2]string // ids, by kind of machine
	champion  map[string]string    // that was promoted last, by kind
	promoted  map[string]bool      // kinds with a champion before the present one
	shadowing map[string]bool
	grown     bool
	ingesters [2]*process
	ingestLog [2]string

	mu      sync.Mutex
	windows map[string]bus.Message // headers of the windows that were sent, by id: Kafka does not keep them all
}

// fleetRetain is what Kafka keeps of windows in a partition, some minutes: ten minutes of drills
// would fill disks.
var fleetRetain = map[string]bus.Retain{bus.TopicWindows: {Time: time.Hour, Bytes: 200e6}}

// followWindows notes the windows in all partitions that are there now.
func (f *fleetRun) followWindows() { (&latencySide{}).follow(f.t, f.cfg, bus.TopicWindows, f.note) }

func (f *fleetRun) note(m bus.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.Value = nil
	f.windows[string(m.Header("ce_id"))] = m
}

// sent returns the windows that were sent, after reading those that no one has noted yet.
func (f *fleetRun) sent() []bus.Message {
	var last []bus.Message
	f.readTopics(map[string]*[]bus.Message{bus.TopicWindows: &last})
	for _, m := range last {
		f.note(m)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.windows))
}

// Simulated drills of 14 channels and replayed lathes on one broker, two models for each, two
// monitors of one group: promote, shadow, rollback, more partitions and kills in random order. In
// the end every machine is judged by the model that was promoted last, every window has one
// result, by a model of its machine's layout, nothing is in the dead letters, and the alerts and
// records of each machine are consistent. Half of the drills send features instead of windows.
func TestFleet(t *testing.T) {
	t.Logf("-fleet.seed %d -fleet.time %v", *fleetSeed, *fleetTime)
	f := newFleetRun(t)
	f.startAll()
	steps := []func(){f.promote, f.promote, f.promoteNow, f.promoteNow, f.shadow, f.rollback, f.terminateMonitor, f.killMonitor, f.killIngester, f.grow}
	for end := time.Now().Add(*fleetTime); time.Now().Before(end); {
		for _, i := range f.rng.Perm(len(steps)) {
			judged := len(f.results.all())
			f.await("for a result", func() bool { return len(f.results.all()) > judged })
			time.Sleep(moment(f.rng, 2*time.Second))
			steps[i]()
		}
	}
	f.awaitChampions()
	for i, p := range f.ingesters {
		f.await(f.ingestLog[i]+" to say that it ingests", func() bool { return strings.Contains(f.log(f.ingestLog[i]), "ingesting") }) // earlier it does not handle signals
		f.end(p, f.ingestLog[i])
	}
	a := &fleetAccount{account: account{windows: f.sent()}}
	f.readTopics(map[string]*[]bus.Message{bus.TopicFeatures: &a.features})
	f.await("for results of all windows", func() bool {
		f.readTopics(map[string]*[]bus.Message{bus.TopicResults: &a.results})
		return len(a.due()) <= len(once(a.results))
	})
	for _, m := range f.monitors {
		f.end(m.proc, m.log)
	}
	f.readTopics(map[string]*[]bus.Message{
		bus.TopicFeatures: &a.features, bus.TopicResults: &a.results, bus.TopicShadow: &a.shadows, bus.TopicAlerts: &a.alerts, bus.TopicDead: &a.dead,
	})
	for i, wrong := range a.check(f) {
		if i == 20 {
			t.Error("and more")
			break
		}
		t.Error(wrong)
	}
	t.Logf("%s; %d features, %d messages of shadows; %v", a.counts(), len(a.features), len(a.shadows), f.did)
}

// startAll starts the ingesters and the monitors, and waits for a result of every machine.
func (f *fleetRun) startAll() {
	f.t.Cleanup(func() {
		for i := range f.monitors {
			if f.t.Failed() {
				f.t.Logf("%s:\n%s\n%s:\n%s", f.monitors[i].log, tail(f.log(f.monitors[i].log)), f.ingestLog[i], tail(f.log(f.ingestLog[i])))
			}
		}
	})
	for i := range f.ingesters {
		f.ingest(i, "ingest%d.yaml")
	}
	for i := range f.monitors {
		f.start(i)
	}
	f.await("for results of every machine", func() bool { return len(f.judged("")) == len(f.machines) })
}

// newFleetRun starts a broker, writes recordings and configurations, trains two models for each
// kind of machine, publishes them, and deploys the first one of each.
func newFleetRun(t *testing.T) *fleetRun {
	turning := dataSet(t, "vicomtech-turning", "turning_wear_dev.csv")
	t.Setenv("FLANK_KAFKA_SESSION_MS", "30000") // no one kills the broker, and the machine is busy
	broker, cfg := startServer(t, 4)
	p := &plant{t: t, b: broker, cfg: cfg, dir: t.TempDir()}
	f := &fleetRun{
		badMinutes: &badMinutes{plant: p, did: make(map[string]int)}, rng: rand.New(rand.NewPCG(*fleetSeed, 1)),
		models: make(map[string][2]string), champion: make(map[string]string), promoted: make(map[string]bool), shadowing: make(map[string]bool),
		windows: make(map[string]bus.Message),
	}
	retained := cfg
	retained.Retain = fleetRetain
	if _, err := bus.Apply(t.Context(), retained, 4, 1); err != nil {
		t.Fatal(err)
	}
	f.followWindows()
	f.trainFleet(turning)
	var ingest [2]strings.Builder
	for i := range ingest {
		fmt.Fprintf(&ingest[i], "kafka: {brokers: [%q]}\nmachines:\n", broker.Addr())
	}
	for i := range fleetDrills {
		mode := []string{"raw", "edge"}[i%2]
		name := fmt.Sprintf("acme/spore/drills/line1/drill%d", i)
		f.machines = append(f.machines, name)
		fmt.Fprintf(&ingest[i%2], "  - {machine: %s, mode: %s, edge: {keep_mib: 100}, spool: spool-d%d, spool_mib: 200, source: {kind: simulate, seed: %d, tool_life: %v}}\n", name, mode, i, *fleetSeed+uint64(i), fleetSchedule.Life)
	}
	layout, err := filepath.Abs(filepath.Join("..", "examples", "turning", "layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	windows := (int(*fleetTime/time.Second) + 300) * fleetSpeed // more than the test will wait for
	for i := range fleetLathes {
		file := f.repeated(turning, i, windows)
		name := fmt.Sprintf("acme/spore/lathes/line1/lathe%d", i)
		f.machines = append(f.machines, name)
		fmt.Fprintf(&ingest[i%2], "  - {machine: %s, layout: %s, spool: spool-l%d, source: {kind: csv, file: %s, speed: %d}}\n", name, layout, i, file, fleetSpeed)
	}
	for i := range ingest {
		write(t, p.dir, fmt.Sprintf("ingest%d.yaml", i), ingest[i].String())
		write(t, p.dir, fmt.Sprintf("only%d.yaml", i), ingest[i].String()+"spool_only: true\n")
	}
	f.monitors = []*badMonitor{{group: fleetGroup}, {group: fleetGroup}}
	f.results, f.alerts = follow(t, cfg, bus.TopicResults), follow(t, cfg, bus.TopicAlerts)
	for kind := range f.models {
		f.trainer("promote", f.models[kind][0], "--for", globOf(kind))
		f.champion[kind] = f.models[kind][0]
	}
	return f
}

func globOf(kind string) string { return "acme/spore/" + kind + "/**" }

// trainFleet trains and publishes two models of each kind.
func (f *fleetRun) trainFleet(turning string) {
	run(f.t, "trainer", "keys", "new", "--out", f.file("plant"))
	for kind, fit := range map[string]func(hidden int, file string){
		"drills": f.fitDrill, "lathes": func(hidden int, file string) { f.fitLathe(turning, hidden, file) },
	} {
		var ids [2]string
		for i, hidden := range []int{8, 6} {
			file := f.file(fmt.Sprintf("%s%d.flank", kind, i))
			fit(hidden, file)
			said := f.trainer("publish", file)
			ids[i], _, _ = strings.Cut(strings.TrimPrefix(strings.Split(said, "\n")[0], "published "), ",")
		}
		f.models[kind] = ids
	}
}

// fitDrill trains a model on a small history of simulated drills with 14 channels.
func (f *fleetRun) fitDrill(hidden int, file string) {
	f.t.Helper()
	job := train.Simulation{Machine: machine, Seed: *fleetSeed, Schedule: fleetSchedule}.Job(sim.Tools(*fleetSeed, fleetSchedule.Life)[:8])
	job.Config.Network.Hidden, job.Config.Network.Pretrain.Epochs, job.Config.Network.FineTune.Epochs = []int{hidden}, 5, 30
	job.Config.Costs.Folds = 2
	m, _, err := train.Run(f.t.Context(), job)
	if err == nil {
		err = m.Save(file)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleetRun) fitLathe(turning string, hidden int, file string) {
	f.t.Helper()
	config := quick(f.t, f.dir, "turning")
	write(f.t, f.dir, "train.yaml", strings.Replace(string(read(f.t, config)), "hidden: [8]", fmt.Sprintf("hidden: [%d]", hidden), 1))
	run(f.t, "trainer", "fit", "--quiet", "--config", config, "--data", turning, "--model", file)
}

// trainer runs a command that writes to the topic of models, and runs it again while Kafka does not
// answer.
func (f *fleetRun) trainer(command string, args ...string) string {
	f.t.Helper()
	args = append([]string{command}, args...)
	args = append(args, "--kafka", f.b.Addr(), "--key", f.file("plant.key"), "--public-key", f.file("plant.pub"), "--by", "kim")
	for began := time.Now(); ; time.Sleep(time.Second) {
		p := start(f.t, "trainer", args...)
		err := p.cmd.Wait()
		if err == nil {
			return p.stdout.String()
		}
		if !strings.Contains(p.stderr.String(), "no answer from Kafka") || time.Since(began) > patience {
			f.t.Fatalf("%v: %v\n%s", args, err, &p.stderr)
		}
	}
}

// repeated writes the recording again and again, with other names of the tools each time.
func (f *fleetRun) repeated(recording string, machine, rows int) string {
	text, err := os.ReadFile(recording)
	if err != nil {
		f.t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimRight(string(text), "\n")+"\n", "\n")
	header, lines := lines[0], lines[1:len(lines)-1]
	tool := slices.Index(strings.Split(strings.TrimSpace(header), ","), "tool")
	var b strings.Builder
	b.WriteString(header)
	for n := range rows {
		cells := strings.Split(lines[(n+machine*400)%len(lines)], ",")
		cells[tool] = fmt.Sprintf("%s-%d", strings.TrimSpace(cells[tool]), (n+machine*400)/len(lines))
		b.WriteString(strings.TrimRight(strings.Join(cells, ","), "\n") + "\n")
	}
	name := fmt.Sprintf("lathe%d.csv", machine)
	write(f.t, f.dir, name, b.String())
	return name
}

func (f *fleetRun) ingest(i int, config string) {
	f.starts++
	f.ingestLog[i] = fmt.Sprintf("ingest%d-%d.log", i, f.starts)
	f.ingesters[i] = f.launch(f.ingestLog[i], "ingest", "run", "--config", f.file(fmt.Sprintf(config, i)))
}

// start starts a monitor of the group, with a page for its metrics.
func (f *fleetRun) start(i int) {
	m := f.monitors[i]
	f.starts++
	m.log = fmt.Sprintf("monitor%d-%d.log", i, f.starts)
	config := fmt.Sprintf("monitor%d.yaml", i)
	write(f.t, f.dir, config, fmt.Sprintf("kafka: {brokers: [%q]}\nmodels: {keys: [plant.pub]}\ngroup: %s\npage: \"\"\nsilence: 0s\nalarm: {k: 3, n: 5}\n", f.b.Addr(), m.group))
	m.proc = f.launch(m.log, "monitor", "run", "--wait", "60s", "--config", f.file(config))
}

// judged returns the machines of which there is a result, by a model if one is named.
func (f *fleetRun) judged(model string) map[string]bool {
	seen := make(map[string]bool)
	for _, m := range f.results.all() {
		var r event.Result
		if json.Unmarshal(m.Value, &r) == nil && (model == "" || r.Model == model) {
			seen[r.Machine] = true
		}
	}
	return seen
}

// awaitChampions promotes the other model of each kind at once, and waits until every machine of
// the kind is judged by it.
func (f *fleetRun) awaitChampions() {
	f.t.Helper()
	var earlier []bus.Message
	f.readTopics(map[string]*[]bus.Message{bus.TopicResults: &earlier})
	old := make(map[string]bool)
	for _, m := range earlier {
		old[string(m.Header("ce_id"))] = true
	}
	for kind := range f.models {
		f.champion[kind] = f.other(kind)
		f.trainer("promote", f.champion[kind], "--for", globOf(kind), "--now")
	}
	f.results = follow(f.t, f.cfg, bus.TopicResults) // of the partitions that are there now
	judged := func() bool {
		by := make(map[string]string)
		for _, m := range f.results.all() {
			var r event.Result
			if !old[string(m.Header("ce_id"))] && json.Unmarshal(m.Value, &r) == nil {
				by[r.Machine] = r.Model
			}
		}
		for name, model := range by {
			if model != f.champion[kindOf(name)] {
				return false
			}
		}
		return len(by) == len(f.machines)
	}
	// A lathe whose ingester was killed goes through the part of its recording that was sent
	// before, as fast as a live sensor would, and sends nothing meanwhile.
	for began := time.Now(); !judged(); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > *fleetTime+patience {
			f.t.Fatal("still waiting for every machine to be judged by the model that was promoted last")
		}
	}
}

// kindOf returns the kind of a machine, by its path.
func kindOf(machine string) string { return strings.Split(machine, "/")[2] }

func (f *fleetRun) kind() string { return []string{"drills", "drills", "lathes"}[f.rng.IntN(3)] }

// other returns the model of a kind that is not the champion.
func (f *fleetRun) other(kind string) string {
	if f.champion[kind] == f.models[kind][0] {
		return f.models[kind][1]
	}
	return f.models[kind][0]
}

func (f *fleetRun) promote() { f.promoteOther("promote") }

func (f *fleetRun) promoteNow() { f.promoteOther("promote --now", "--now") }

func (f *fleetRun) promoteOther(name string, flags ...string) {
	kind := f.kind()
	to := f.other(kind)
	f.trainer("promote", append([]string{to, "--for", globOf(kind)}, flags...)...)
	f.champion[kind], f.promoted[kind] = to, true
	f.did[name]++
}

func (f *fleetRun) shadow() {
	kind := f.kind()
	f.trainer("promote", f.other(kind), "--for", globOf(kind), "--shadow", "1h")
	f.shadowing[kind] = true
	f.did["shadow"]++
}

func (f *fleetRun) rollback() {
	kind := f.kind()
	if !f.promoted[kind] {
		return
	}
	f.trainer("rollback", "--for", globOf(kind))
	f.champion[kind] = f.other(kind)
	f.promoted[kind] = false // the champion before may be the same one
	f.did["rollback"]++
}

func (f *fleetRun) terminateMonitor() {
	i := f.rng.IntN(len(f.monitors))
	m := f.monitors[i]
	f.await(m.log+" to say that it monitors", func() bool { return strings.Contains(f.log(m.log), "monitoring") })
	f.end(m.proc, m.log)
	f.did["SIGTERM"]++
	f.start(i)
}

func (f *fleetRun) killMonitor() {
	i := f.rng.IntN(len(f.monitors))
	f.monitors[i].proc.kill()
	f.did["SIGKILL monitor"]++
	f.start(i)
}

func (f *fleetRun) killIngester() {
	i := f.rng.IntN(len(f.ingesters))
	f.ingesters[i].kill()
	f.did["SIGKILL ingester"]++
	f.ingest(i, "ingest%d.yaml")
}

// ingestAgain ends the ingesters, and starts them again.
func (f *fleetRun) ingestAgain(config string) {
	for i, p := range f.ingesters {
		f.await(f.ingestLog[i]+" to say that it ingests", func() bool { return strings.Contains(f.log(f.ingestLog[i]), "ingesting") }) // earlier it does not handle signals
		f.end(p, f.ingestLog[i])
		f.ingest(i, config)
	}
}

// grow gives the topics more partitions, as docs/how-to/kafka-partitions.md says.
func (f *fleetRun) grow() {
	if f.grown {
		return
	}
	f.ingestAgain("only%d.yaml")
	for began := time.Now(); ; {
		time.Sleep(3 * time.Second) // the monitors judge the rest
		for _, m := range f.monitors {
			f.end(m.proc, m.log)
		}
		p := start(f.t, "ingest", "topics", "grow", "--config", f.file("ingest0.yaml"), "--partitions", fmt.Sprint(fleetGrown))
		if p.cmd.Wait() == nil {
			break
		}
		if said := p.stderr.String(); !strings.Contains(said, "have not judged everything") && !strings.Contains(said, "monitors are running") || time.Since(began) > patience {
			f.t.Fatal(said)
		}
		for i := range f.monitors {
			f.start(i)
		}
		f.did["grow refused"]++
	}
	for i := range f.monitors {
		f.start(i)
	}
	f.ingestAgain("ingest%d.yaml")
	f.grown = true
	f.did["grow"]++
	f.results = follow(f.t, f.cfg, bus.TopicResults) // of the new partitions too
	f.followWindows()
}

// fleetAccount holds the messages of the topics.
type fleetAccount struct {
	account
	features, shadows []bus.Message
}

// readTopics reads what is committed on each topic now. Of windows it keeps the headers only.
func (f *fleetRun) readTopics(topics map[string]*[]bus.Message) {
	for topic, into := range topics {
		*into = nil
		err := readTopic(f.t.Context(), f.cfg, topic, bus.FirstOffset, false, func(m bus.Message) error {
			if topic == bus.TopicWindows {
				m.Value = nil
			}
			*into = append(*into, m)
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
		// A machine's events are in two partitions if it has moved.
		slices.SortStableFunc(*into, func(a, b bus.Message) int { return a.Time.Compare(b.Time) })
	}
}

// due returns the ids of the results that must be there: of windows, and of features that a
// gateway has sent.
func (a *fleetAccount) due() map[string]bool {
	due := make(map[string]bool)
	for _, m := range a.windows {
		due[string(m.Header("ce_id"))+"/"+fleetGroup] = true
	}
	for _, m := range a.features {
		if string(m.Header("extracted")) == "gateway" {
			due[string(m.Header("ce_id"))+"/"+fleetGroup] = true
		}
	}
	return due
}

// check returns a sentence for each contradiction.
func (a *fleetAccount) check(f *fleetRun) (wrong []string) {
	for _, msgs := range [][]bus.Message{a.results, a.alerts, a.shadows} {
		wrong = append(wrong, a.checkRepeats(msgs)...)
	}
	wrong = append(wrong, a.checkResults(f)...)
	wrong = append(wrong, a.checkShadows(f)...)
	wrong = append(wrong, a.checkFeatures()...)
	for _, m := range a.dead {
		l, err := bus.OpenLetter(m)
		wrong = append(wrong, fmt.Sprintf("set aside: %s of %s: %v", l.Reason, l.Message.Topic, err))
	}
	said := make(map[string]*says)
	for _, m := range once(a.alerts) {
		if said[m.Key] == nil {
			said[m.Key] = &says{alarm: "normal", advisories: make(map[string]bool)}
		}
		if why := said[m.Key].hear(m); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s: %s", m.Key, why, m.Value))
		}
	}
	return append(wrong, f.checkStanding(said)...)
}

// checkStanding checks that the group's records agree with the last alert of each machine.
func (f *fleetRun) checkStanding(said map[string]*says) (wrong []string) {
	all, skipped, err := monitor.Alarms(f.t.Context(), f.cfg, fleetGroup)
	if err != nil || skipped > 0 || len(all) != len(f.machines) {
		wrong = append(wrong, fmt.Sprintf("records of %d machines, %d alerts skipped, %v", len(all), skipped, err))
	}
	for _, st := range all {
		s := said[st.Machine]
		if s == nil {
			s = &says{alarm: "normal"}
		}
		if !s.agrees(st) {
			wrong = append(wrong, fmt.Sprintf("%s: records say %+v, alerts said %+v", st.Machine, st, s))
		}
	}
	return wrong
}

// checkResults checks that every window has one result, by a model of its machine's layout.
func (a *fleetAccount) checkResults(f *fleetRun) (wrong []string) {
	due := a.due()
	for _, m := range once(a.results) {
		var r event.Result
		id := string(m.Header("ce_id"))
		if err := schemas.Validate(schemas.Result, m.Value); err != nil || json.Unmarshal(m.Value, &r) != nil {
			wrong = append(wrong, fmt.Sprintf("result %s: %v", id, err))
		}
		if !due[id] {
			wrong = append(wrong, fmt.Sprintf("result %s belongs to no window, or is there twice", id))
		}
		delete(due, id)
		if models := f.models[kindOf(r.Machine)]; !slices.Contains(models[:], r.Model) {
			wrong = append(wrong, fmt.Sprintf("result %s is by %s, the machine's models are %v", id, r.Model, models))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(due)) {
		wrong = append(wrong, "no result "+id)
	}
	return wrong
}

// checkShadows checks that shadows are judged by models of the machine's layout.
func (a *fleetAccount) checkShadows(f *fleetRun) (wrong []string) {
	for _, m := range a.shadows {
		var r event.Result
		if string(m.Header("ce_type")) != event.ResultType {
			continue
		}
		_ = json.Unmarshal(m.Value, &r)
		if models := f.models[kindOf(r.Machine)]; !slices.Contains(models[:], r.Model) || r.Group != fleetGroup+"~"+r.Model {
			wrong = append(wrong, fmt.Sprintf("shadow's result %s is by %s in group %s", r.ID, r.Model, r.Group))
		}
	}
	if len(f.shadowing) > 0 && len(a.shadows) == 0 {
		wrong = append(wrong, "no shadow judged anything")
	}
	return wrong
}

// checkFeatures checks that every window's features are on the bus once.
func (a *fleetAccount) checkFeatures() (wrong []string) {
	seen := make(map[string]bool)
	for _, m := range a.features {
		id := string(m.Header("ce_id"))
		if by := string(m.Header("extracted")); seen[id] && by != "gateway" {
			wrong = append(wrong, fmt.Sprintf("features of %s are there twice", id))
		}
		seen[id] = true
	}
	for _, m := range a.windows {
		if id := string(m.Header("ce_id")); !seen[id] {
			wrong = append(wrong, "no features of "+id)
		}
	}
	return wrong
}
