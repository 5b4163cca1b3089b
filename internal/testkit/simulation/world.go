// Package simulation runs the pipeline in one goroutine under virtual time: gateways that
// number and send windows, a model of Kafka, two groups of monitors, a route that takes
// the alerts of one group to a receiver, and the people who send commands. Every fault is
// drawn from one seed. What the monitors decide is the product's own [machine.Owner];
// gateways, routes, Kafka and the clock are models.
//
// After every step the world checks what must always hold, and at the end what must hold
// once faults have ended; see check.go. A seed that fails tells its story in lines, and is
// replayed by its number.
package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Settings say what is simulated.
type Settings struct {
	Windows int             // of each machine
	Skip    map[string]bool // faults to leave out, by name: for shrinking a story
	Trace   bool            // keep every line, not only lines about faults
	Bug     Bug             // breaks the model of Kafka or its use, to prove that the checks see it
}

// Bug is a way in which the pipeline may be built wrong.
type Bug string

// The bugs.
const (
	NoBug          Bug = ""
	NoFence        Bug = "no-fence"        // the broker takes what a previous owner writes
	NoIdempotence  Bug = "no-idempotence"  // the broker takes a late duplicate of a write
	NotAtomic      Bug = "not-atomic"      // results and alerts are visible before the transaction is committed
	ReadsAborted   Bug = "reads-aborted"   // state is read from transactions that were aborted
	StopsAtOpen    Bug = "stops-at-open"   // state is read up to another group's open transaction only
	ForgetsCommand Bug = "forgets-command" // the position in the commands is not committed

	WaitsBeyondEnd    Bug = "waits-beyond-end"    // a reader whose log has lost its tail waits for its offset
	SurvivesLoss      Bug = "survives-loss"       // an owner whose records were lost goes on with what it remembers
	NumbersRefused    Bug = "numbers-refused"     // a window that a full disk refuses takes a number
	RouteCommitsFirst Bug = "route-commits-first" // a route moves its position on before the receiver has the alert
	RouteReadsOpen    Bug = "route-reads-open"    // a route reads alerts of transactions that are not committed
	RefusesSilently   Bug = "refuses-silently"    // a window that is refused does not say of which machine it is

	SwapMovesAlarm     Bug = "swap-moves-alarm"     // a model that takes over at once begins with an alarm of its own
	SwapForgetsWindows Bug = "swap-forgets-windows" // windows that come while a model sees a tool's past are not shown to it
	ShadowOnResults    Bug = "shadow-on-results"    // what shadows publish goes to the results and alerts
	FeaturesTwice      Bug = "features-twice"       // features are published before the transaction of their windows' results
	FleetGoesBack      Bug = "fleet-goes-back"      // a monitor takes deployments as they come, older ones after newer ones
)

// Bugs lists every bug that seeds are known to find.
var Bugs = []Bug{
	NoFence, NoIdempotence, NotAtomic, ReadsAborted, StopsAtOpen, ForgetsCommand,
	WaitsBeyondEnd, SurvivesLoss, NumbersRefused, RouteCommitsFirst, RouteReadsOpen, RefusesSilently,
	SwapMovesAlarm, SwapForgetsWindows, ShadowOnResults, FeaturesTwice, FleetGoesBack,
}

// Story is one run.
type Story struct {
	Seed   uint64
	Wrong  string   // what did not hold; empty: everything did
	Faults []string // names, in the order in which they were drawn
	Lines  []string // what happened
	Steps  int
	Held   int // verdicts after swaps that were compared
}

// task is something that happens at a time.
type task struct {
	at     int64 // virtual milliseconds
	number int   // orders tasks of one time
	who    *process
	life   int // of the process when the task was made
	do     func()
}

// tasks is a heap, the next one first.
type tasks []*task

func (q tasks) Len() int { return len(q) }
func (q tasks) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}
func (q tasks) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *tasks) Push(t any)   { *q = append(*q, t.(*task)) }

func (q *tasks) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	*q = (*q)[:last]
	return t
}

// process is a program that may be killed and suspended.
type process struct {
	name   string
	life   int   // rises with every start and every death
	frozen int64 // until then nothing of it happens; then all at once
	held   []*task
}

// world is everything that is simulated.
type world struct {
	Settings
	seed   uint64
	rng    *rand.Rand
	queue  tasks
	now    int64
	number int
	steps  int
	drawn  map[kind]*draws
	calm   bool // faults have ended
	calmAt int64
	still  bool // everything is done
	faults []string
	lines  []string
	wrong  string

	broker   *broker
	fleet    *fleet
	opened   opened // by an owner, last
	gateways []*gateway
	groups   []*group
	route    *route
	check    *checker
	renames  map[string]*renamed // by command
}

// epoch0 is the virtual time 0.
var epoch0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *world) time() time.Time { return epoch0.Add(time.Duration(w.now) * time.Millisecond) }

// after plans something of a process, or of the world if who is nil.
func (w *world) after(d int64, who *process, do func()) {
	w.number++
	t := &task{at: w.now + d, number: w.number, who: who, do: do}
	if who != nil {
		t.life = who.life
	}
	heap.Push(&w.queue, t)
}

// kind is a kind of fault: what happens, and to whom.
type kind struct{ what, who string }

// freeze suspends a process until a time, at the latest until faults end.
func (w *world) freeze(p *process, until int64) {
	p.frozen = until
	w.after(until-w.now, nil, func() { w.thaw(p) })
}

func (w *world) thaw(p *process) {
	if w.now < p.frozen && !w.calm {
		return // suspended again
	}
	p.frozen = 0
	for _, t := range p.held {
		t.at = w.now
		heap.Push(&w.queue, t) // it keeps its number, so that the order stays
	}
	p.held = nil
}

// draws is how often a kind of fault was asked for.
type draws struct {
	n    int
	hash uint64 // of the seed and the kind
}

// fault draws whether something goes wrong. Each fault is known by its kind and by how
// often that kind was asked for, so that one can be left out and the others stay.
func (w *world) fault(p float64, what, who string) bool {
	d := w.drawn[kind{what, who}]
	if d == nil {
		d = &draws{hash: w.seed}
		for _, c := range []byte(what + who) {
			d.hash = (d.hash ^ uint64(c)) * 1099511628211
		}
		w.drawn[kind{what, who}] = d
	}
	d.n++
	if w.calm {
		return false
	}
	h := mix(d.hash + uint64(d.n)*0x9e3779b97f4a7c15)
	if float64(h>>11)/(1<<53) >= p {
		return false
	}
	name := fmt.Sprintf("%s%s#%d", what, who, d.n)
	if w.Skip[name] {
		return false
	}
	w.faults = append(w.faults, name)
	w.say("FAULT %s", name)
	return true
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014).
func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// latency is how long a frame takes.
func (w *world) latency() int64 { return 1 + w.rng.Int64N(20) }

func (w *world) say(format string, args ...any) {
	if w.Trace {
		w.lines = append(w.lines, fmt.Sprintf("%9.3f s  ", float64(w.now)/1000)+fmt.Sprintf(format, args...))
	}
}

// fail notes the first thing that does not hold.
func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf("%.3f s: ", float64(w.now)/1000) + fmt.Sprintf(format, args...)
		w.say("WRONG %s", w.wrong)
	}
}

// Sizes of the plant.
const (
	machines   = 3
	partitions = 2
	members    = 2                // of each group
	settle     = int64(90 * 1000) // most virtual milliseconds without faults at the end: a route tries again after up to 60 s
	quiet      = int64(25 * 1000) // of these, until all frames have arrived, however late
	longest    = int64(20 * 60_000)
	lastWindow = int64(18 * 1000) // of these, until each machine cuts one window more
)

// Run simulates one seed.
func Run(seed uint64, s Settings, models *Models) *Story {
	w := &world{
		Settings: s, seed: mix(seed + 1), rng: rand.New(rand.NewPCG(seed, 1)), drawn: make(map[kind]*draws), renames: make(map[string]*renamed),
	}
	w.broker = newBroker(w, partitions)
	w.check = newChecker(w)
	for i := range machines {
		w.gateways = append(w.gateways, newGateway(w, i, models))
	}
	w.fleet = newFleet(w, models)
	for i, name := range []string{"tcm-monitor", "tcm-trial"} {
		w.groups = append(w.groups, newGroup(w, name, i))
	}
	w.route = newRoute(w, w.groups[0])
	w.people()
	w.weather()
	for w.wrong == "" && len(w.queue) > 0 {
		t := heap.Pop(&w.queue).(*task)
		w.now = max(w.now, t.at)
		if w.calm && (w.now > w.calmAt+settle || w.now > w.calmAt+quiet && w.still) {
			break
		}
		if w.now > longest {
			w.fail("windows still wait to be sent")
			break
		}
		if t.who != nil {
			if t.life != t.who.life {
				continue
			}
			if t.who.frozen > w.now {
				t.who.held = append(t.who.held, t)
				continue
			}
		}
		w.steps++
		t.do()
	}
	if w.wrong == "" {
		w.check.end()
	}
	if w.wrong == "" {
		w.route.end()
	}
	for _, g := range w.gateways {
		if w.wrong == "" {
			g.end()
		}
	}
	return &Story{Seed: seed, Wrong: w.wrong, Faults: w.faults, Lines: w.lines, Steps: w.steps, Held: w.check.held}
}

// weather is what happens to the plant as a whole: processes that die and hang, a broker
// that stops and loses what it had taken, logs that are compacted. It ends the faults when all windows were
// sent.
func (w *world) weather() {
	w.after(1000, nil, func() {
		if !w.calm && w.sent() {
			w.calm, w.calmAt = true, w.now
			for _, g := range w.groups {
				for _, m := range g.members {
					w.thaw(&m.process)
				}
			}
			w.thaw(&w.route.reader.process)
			w.route.down = min(w.route.down, w.now)
			w.say("faults end")
			for _, g := range w.gateways {
				w.after(lastWindow, nil, g.last)
			}
		}
		switch {
		case w.broker.isDown():
		case w.fault(0.005, "the broker stops", ""):
			w.broker.stop()
		case w.fault(0.005, "the broker loses the tails of its logs", ""):
			w.broker.stop()
			for i := range w.broker.parts {
				w.broker.loseTails(i)
			}
		}
		for _, p := range w.broker.parts {
			switch {
			case w.calm:
				p.clock = 0
			case w.fault(0.01, "a clock of Kafka jumps", ""):
				p.clock = []int64{0, 1, -1, 60, -60}[w.rng.IntN(5)] * w.rng.Int64N(8000) // commands are refused, too
			}
			if w.fault(0.01, "retention", "") {
				for _, log := range []int{windowLog, featureLog} {
					p.kept[log] = max(p.kept[log], p.end(log)-w.rng.IntN(50))
				}
			}
		}
		w.still = w.calm && w.broker.idle() && w.route.idle() && !w.builds()
		w.route.trouble()
		w.broker.expire()
		if w.rng.IntN(8) == 0 {
			w.broker.compact()
		}
		for _, g := range w.groups {
			for _, m := range g.members {
				switch {
				case !m.up:
				case w.fault(0.01, "kill ", m.name):
					m.kill()
					w.after(500+w.rng.Int64N(5000), nil, m.start)
				case w.fault(0.01, "freeze ", m.name):
					w.freeze(&m.process, w.now+1000+w.rng.Int64N(20000))
				}
			}
		}
		w.weather()
	})
}

// builds reports whether a monitor shows the past of a tool to a model.
func (w *world) builds() bool {
	for _, g := range w.groups {
		for _, m := range g.members {
			for _, d := range m.drives {
				if d.building && !d.over {
					return true
				}
			}
		}
	}
	return false
}

func (w *world) sent() bool {
	for _, g := range w.gateways {
		if !g.done() {
			return false
		}
	}
	return true
}

// Shrink leaves out faults that a failing seed does not need, and returns the story that
// is left, with all its lines.
func Shrink(seed uint64, s Settings, models *Models) *Story {
	s.Skip = make(map[string]bool)
	left := Run(seed, s, models).Faults
	for step := max(len(left)/2, 1); ; {
		smaller := false
		for i := 0; i < len(left); i += step {
			var out []string
			for _, f := range left[i:min(i+step, len(left))] {
				if !s.Skip[f] {
					s.Skip[f] = true
					out = append(out, f)
				}
			}
			if len(out) == 0 {
				continue
			}
			if Run(seed, s, models).Wrong != "" {
				smaller = true
				continue
			}
			for _, f := range out {
				delete(s.Skip, f)
			}
		}
		if step > 1 {
			step /= 2
		} else if !smaller {
			break
		}
	}
	s.Trace = true
	return Run(seed, s, models)
}

// String tells a story in lines.
func (s *Story) String() string {
	return fmt.Sprintf("seed %d, %d faults: %s\n%s\n", s.Seed, len(s.Faults), s.Wrong, strings.Join(s.Lines, "\n"))
}
