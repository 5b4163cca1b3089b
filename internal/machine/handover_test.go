package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

func divide(name string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32()>>3) % n
}

// cluster is the partitions of a topic that gets more of them, the owners that a group has, and
// ingesters.
type cluster struct {
	t       *rapid.T
	model   *model.Model
	parts   []*place
	counts  []int // in the record
	machine []string
	seq     map[string]uint64
	view    map[string]int // number of partitions that the machine's ingester knows
	now     time.Time

	results map[string][]string // by machine, in the order in which they were committed
	alerts  map[string][]string
	answers map[string]int // of commands, by id
	letters map[string]int // by window: how often it was set aside
	issued  int
}

// place is one partition.
type place struct {
	sent     [CommandLog][]sent // windows, and features of other machines
	commands []Command
	records  map[Key]Record
	at       Position

	owner *Owner
	open  []Action
	given Position // what lies before it was handed over
}

type sent struct {
	*window.Window
	origin int // of one that was forwarded; -1: it was not
}

func newCluster(t *rapid.T, m *model.Model, counts []int, machines int) *cluster {
	p := &cluster{t: t, model: m, counts: counts[:1], seq: make(map[string]uint64), view: make(map[string]int), now: noon,
		results: make(map[string][]string), alerts: make(map[string][]string), answers: make(map[string]int), letters: make(map[string]int)}
	for i := range machines {
		p.machine = append(p.machine, fmt.Sprintf("acme/line1/m%d", i))
	}
	for range slices.Max(counts) {
		p.parts = append(p.parts, &place{records: make(map[Key]Record), at: Position{-1, -1, -1}})
	}
	return p
}

func (p *cluster) newest() int { return p.counts[len(p.counts)-1] }

// begin gives a partition another owner.
func (p *cluster) begin(i int) {
	at := p.parts[i]
	at.owner = NewOwner(&Settings{Group: group, Alarm: testAlarm}, Everything(p.model), i)
	at.owner.Divide = divide
	at.open = at.owner.Start()
}

// generation gives all partitions other owners.
func (p *cluster) generation() {
	for i := range p.newest() {
		p.begin(i)
	}
}

// send sends the next window of a machine.
func (p *cluster) send(name string) {
	if p.view[name] == 0 {
		p.view[name] = p.newest()
	}
	seq := p.seq[name]
	w := at(seq, []string{"T1", "T2"}[seq/13%2], seq%9 > 3)
	w.Machine = name
	part, l := p.parts[divide(name, p.view[name])], logOf(name)
	part.sent[l] = append(part.sent[l], sent{w, -1})
	p.seq[name]++
}

// refused reports whether a window is of another length than the model's.
func refused(seq uint64) bool { return seq%6 == 2 }

// logOf returns where the windows of a machine come: the gateway of one sends features.
func logOf(name string) Log {
	if strings.HasSuffix(name, "1") {
		return FeatureLog
	}
	return WindowLog
}

// command sends a command.
func (p *cluster) command(name string, known int) {
	p.issued++
	c := event.Command{ID: fmt.Sprintf("c%d", p.issued), Machine: name, Action: event.Acknowledge, Incident: "A-AAAAAAAA", By: "kim", Issued: noon}
	p.put(divide(name, known), Command{Key: name, Value: event.JSON(c), At: noon})
}

func (p *cluster) put(part int, c Command) {
	at := p.parts[part]
	c.Offset = int64(len(at.commands))
	at.commands = append(at.commands, c)
}

// commit publishes a batch of the owner of a partition.
func (p *cluster) commit(i int, b *Batch) {
	at := p.parts[i]
	at.at = b.Position
	keep := func(part int, records []Record) {
		for _, r := range records {
			if delete(p.parts[part].records, r.Key); r.Value != nil {
				p.parts[part].records[r.Key] = r
			}
		}
	}
	keep(i, b.State)
	for _, m := range b.Moves {
		keep(m.To, m.Records)
	}
	for _, f := range b.Forwards {
		if l := f.Log; l != CommandLog {
			p.parts[f.To].sent[l] = append(p.parts[f.To].sent[l], sent{at.sent[l][f.Offset].Window, i})
		} else {
			c := at.commands[f.Offset]
			p.put(f.To, c)
		}
	}
	for _, e := range b.Events {
		switch {
		case e.Handover != nil:
			h := *e.Handover
			part := h.To
			if !h.Answer {
				part, h.Windows, h.Features = h.From, p.parts[h.From].end().Windows, p.parts[h.From].end().Features
			}
			p.put(part, Command{Key: h.Machine, Handover: &h, At: p.now})
		case e.Result != nil:
			p.results[e.Result.Machine] = append(p.results[e.Result.Machine], string(event.JSON(e.Result)))
		case e.Alert != nil && e.Alert.Command != "":
			p.answers[e.Alert.Command]++
		case e.Alert != nil:
			p.alerts[e.Alert.Machine] = append(p.alerts[e.Alert.Machine], string(event.JSON(e.Alert)))
		case e.Advisory != nil:
			p.alerts[e.Advisory.Machine] = append(p.alerts[e.Advisory.Machine], string(event.JSON(e.Advisory)))
		}
	}
	for _, l := range b.Letters {
		var refusal *Refusal
		if errors.As(l.Err, &refusal) {
			p.letters[fmt.Sprint(refusal.Machine, " ", refusal.Seq)]++
			continue
		}
		if !l.Command {
			p.t.Fatalf("set aside: %+v", l)
		}
		var c event.Command
		if json.Unmarshal(at.commands[l.Offset].Value, &c) != nil {
			p.t.Fatalf("set aside: %+v", l)
		}
		p.answers[c.ID]++
	}
}

// end returns where windows and features end.
func (at *place) end() Position {
	return Position{Windows: int64(len(at.sent[WindowLog])), Features: int64(len(at.sent[FeatureLog]))}
}

// inputs hands over windows or features that lie behind those that were handed over before.
func (at *place) inputs(l Log, given *int64, from int64, n int) (all []Input) {
	for o := max(from, *given, 0); o < int64(len(at.sent[l])) && len(all) < n; o++ {
		all = append(all, at.input(l, o))
		*given = o + 1
	}
	return all
}

// input returns a window as the owner of a partition gets it.
func (at *place) input(l Log, offset int64) Input {
	w := at.sent[l][offset]
	return Input{Offset: offset, At: w.End(), Forwarded: w.origin >= 0, Origin: w.origin, Open: func(into *window.Features) error {
		if refused(w.Seq) {
			return &Refusal{Machine: w.Machine, Epoch: w.EpochString(), Seq: w.Seq, Why: &window.Mismatch{What: window.OtherLength, Text: "windows of 2s, expected windows of 1s"}}
		}
		*into = *machinetest.Features(nil, w.Window)
		return nil
	}}
}

// reply does an action of the owner of a partition, with at most n messages. It returns no
// reply where Kafka does not answer yet.
func (p *cluster) reply(i int, a Action, n int) (replies []Reply) {
	at := p.parts[i]
	r := Reply{Now: p.now}
	switch {
	case a.Fence:
		pos := at.at
		r.Fenced, r.CommandsEnd, r.Counts, r.Grown = &pos, int64(len(at.commands)), slices.Clone(p.counts), i >= p.counts[0]
	case a.Load:
		r.Loaded = at.all("")
	case a.Windows != nil:
		r.Windows = at.inputs(WindowLog, &at.given.Windows, a.Windows.Windows, n)
		if len(r.Windows) == 0 {
			return nil
		}
	case a.Features != nil:
		r.Features = at.inputs(FeatureLog, &at.given.Features, a.Features.Features, n)
		if len(r.Features) == 0 {
			return nil
		}
	case a.Commands != nil:
		from := int(max(a.Commands.Commands, 0))
		to := min(len(at.commands), from+n)
		if from >= to {
			return nil
		}
		r.Commands = at.commands[from:to]
	case a.Adopt != "":
		r.Adopted = &Adopted{Machine: a.Adopt, Records: at.all(a.Adopt), End: at.end()}
	case a.Again != nil:
		r.Again = &AgainOf{Again: *a.Again, Next: a.Again.To}
		for o := a.Again.From; o < a.Again.To; o++ {
			switch {
			case len(r.Again.Windows)+len(r.Again.Commands) == n:
				r.Again.Next = o
				return []Reply{r}
			case a.Again.Log != CommandLog && at.sent[a.Again.Log][o].Machine == a.Again.Machine:
				r.Again.Windows = append(r.Again.Windows, at.input(a.Again.Log, o))
			case a.Again.Log == CommandLog && at.commands[o].Handover == nil && at.commands[o].Key == a.Again.Machine:
				r.Again.Commands = append(r.Again.Commands, at.commands[o])
			}
		}
	case a.AskRead:
		given := at.given
		r.Read = &given
	case a.Publish != nil:
		p.commit(i, a.Publish)
		r.Published = true
	}
	return append(replies, r)
}

func (at *place) all(machine string) []Record {
	all := []Record{}
	for _, r := range at.records {
		if machine == "" || r.Key.Machine == machine {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return all
}

// step lets the owner of a partition do something. It reports false if it has nothing to do.
func (p *cluster) step(i, which, n int) bool {
	at := p.parts[i]
	if at.owner == nil || len(at.open) == 0 {
		return false
	}
	which %= len(at.open)
	a := at.open[which]
	if a.Fence {
		at.given = Position{}
	}
	replies := p.reply(i, a, n)
	if len(replies) == 0 {
		return false
	}
	at.open = slices.Delete(at.open, which, which+1)
	for _, r := range replies {
		at.open = append(at.open, at.owner.On(r)...)
	}
	return true
}

func (p *cluster) tick(i int) {
	if at := p.parts[i]; at.owner != nil {
		at.open = append(at.open, at.owner.On(Reply{Tick: &Tick{Now: p.now}, Now: p.now})...)
	}
}

// finish lets all owners work until nothing is left to do.
func (p *cluster) finish() {
	p.generation()
	quiet := 0
	for round := 0; quiet < 4; round++ {
		if round > 3000 {
			p.t.Fatal("the owners do not come to an end")
		}
		busy := false
		for i := range p.newest() {
			for k := range len(p.parts[i].open) {
				busy = p.step(i, k, 5) || busy
			}
		}
		if quiet++; busy {
			quiet = 0
		} else {
			p.now = p.now.Add(2 * time.Minute)
			for i := range p.newest() {
				p.tick(i)
			}
		}
	}
	for i, at := range p.parts {
		for k := range at.records {
			if k.Waits {
				p.t.Errorf("partition %d: %s still waits", i, k.Machine)
			}
		}
	}
}

// happen lets something random happen.
func (p *cluster) happen(commands bool) {
	t := p.t
	i := rapid.IntRange(0, p.newest()-1).Draw(t, "partition")
	switch fate := rapid.IntRange(0, 39).Draw(t, "fate"); {
	case fate < 8:
		p.send(rapid.SampledFrom(p.machine).Draw(t, "machine"))
	case fate == 8:
		p.view[rapid.SampledFrom(p.machine).Draw(t, "learns")] = p.newest()
	case fate == 9: // the owner ends; what it publishes has perhaps reached Kafka
		for _, a := range p.parts[i].open {
			if a.Publish != nil && rapid.Bool().Draw(t, "published") {
				p.commit(i, a.Publish)
			}
		}
		p.begin(i)
	case fate == 10:
		p.now = p.now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second)
		p.tick(i)
	case fate >= 11 && fate < 15 && commands:
		p.command(rapid.SampledFrom(p.machine).Draw(t, "machine"), rapid.SampledFrom(p.counts).Draw(t, "known"))
	default:
		p.step(i, rapid.IntRange(0, 5).Draw(t, "action"), rapid.IntRange(1, 5).Draw(t, "messages"))
	}
}

// grow gives the topics more partitions. Some ingesters know at once; owners know when they
// are replaced, or when another owner knows.
func (p *cluster) grow(n int) {
	p.counts = append(p.counts[:len(p.counts):len(p.counts)], n)
}

var growths = [][]int{{2, 3}, {2, 4}, {1, 3}, {2, 3, 5}, {2, 5, 6}, {1, 2, 4}, {1, 3, 6}, {1, 2, 6}, {2, 3, 4, 5, 6}}

// When the topics get more partitions while windows come, and owners end at any moment, each
// window is judged once and in order, and what is published is what one owner would have
// published. Ingesters learn of the partitions at different times.
func TestHandover(t *testing.T) {
	testHandover(t, false)
}

// With commands that come meanwhile, also to partitions that are not the machine's any more,
// each command is answered once.
func TestHandoverCommands(t *testing.T) {
	testHandover(t, true)
}

func testHandover(t *testing.T, commands bool) {
	m := machinetest.OneValue(t)
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SampledFrom(growths).Draw(t, "counts")
		p := newCluster(t, m, counts, 3)
		p.finish()
		for i := range counts {
			if i > 1 && counts[i]%counts[i-1]+counts[i-1]%counts[i-2] > 0 {
				// Machines may come back to a partition. Then all of the growth before has to be done.
				for _, name := range p.machine {
					p.view[name] = p.newest()
				}
				p.finish()
			}
			if i > 0 {
				p.grow(counts[i])
				for range rapid.IntRange(0, 10).Draw(t, "before the generation") {
					p.happen(commands)
				}
				p.generation()
			}
			for range rapid.IntRange(0, 80).Draw(t, "events") {
				p.happen(commands)
			}
		}
		for _, name := range p.machine { // so that every machine comes to its last home
			p.view[name] = p.newest()
			p.send(name)
		}
		p.finish()
		p.check()
		if t.Failed() {
			p.tell()
		}
	})
}

// drain lets the owner of a partition do all that it can, but for actions that are skipped.
func (p *cluster) drain(i int, skip func(Action) bool) {
	for busy := true; busy; {
		busy = false
		for k, a := range p.parts[i].open {
			if (skip == nil || !skip(a)) && p.step(i, k, 5) {
				busy = true
				break
			}
		}
	}
}

// A command makes a machine wait in its new partition, and its old partition answers. Then a
// window comes in the old partition, and after it the first one straight in the new partition:
// the old partition has to be asked once more, no matter how far the wait has come. What the old
// partition forwards then lies behind the window that came straight: the new partition has to be
// read to its end first.
func TestFirstDirectWindow(t *testing.T) {
	m := machinetest.OneValue(t)
	commands := func(a Action) bool { return a.Commands != nil }
	windows := func(a Action) bool { return a.Windows != nil }
	again := func(a Action) bool { return a.Again != nil }
	for _, answered := range []bool{false, true} { // by what the new owner knows when the window comes
		rapid.Check(t, func(t *rapid.T) {
			name := "acme/line1/m0"
			for i := 0; divide(name, 2) != 1; i++ {
				name = fmt.Sprintf("acme/line1/m%d0", i)
			}
			p := newCluster(t, m, []int{1, 2}, 0)
			p.machine = []string{name}
			p.send(name)
			p.finish()
			p.grow(2)
			p.generation()
			p.drain(0, nil)
			p.drain(1, nil)
			p.command(name, 2)
			p.drain(1, nil) // asks
			p.send(name)
			p.drain(0, windows) // answers
			pause := commands
			if answered {
				pause = again
				p.drain(1, pause) // takes the state over
			}
			p.view[name] = 2
			p.send(name)
			p.drain(1, pause)
			p.drain(1, nil)
			p.drain(0, nil) // forwards
			p.drain(1, windows)
			p.finish()
			p.check()
		})
	}
}

// An old partition has forwarded a window that is refused. The owner that has set it aside ends
// before the machine has everything that it waits for: the next owner does not set it aside again.
func TestRefusedOnceWhileWaiting(t *testing.T) {
	m := machinetest.OneValue(t)
	rapid.Check(t, func(t *rapid.T) {
		name := "acme/line1/m0"
		for i := 0; divide(name, 2) != 1; i++ {
			name = fmt.Sprintf("acme/line1/m%d%d", i, rapid.IntRange(0, 1).Draw(t, "sends features"))
		}
		p := newCluster(t, m, []int{1, 2}, 0)
		p.machine = []string{name}
		for !refused(p.seq[name]) {
			p.send(name)
		}
		p.finish()
		p.grow(2)
		p.generation()
		p.drain(0, nil)
		p.command(name, 2)
		p.drain(1, nil) // asks
		p.drain(0, nil) // answers
		p.send(name)
		p.drain(0, nil)                                              // forwards
		p.drain(1, func(a Action) bool { return a.Commands != nil }) // passes it over
		for k := 0; len(p.letters) == 0; k++ {                       // sets it aside
			if p.step(1, k, 5); k > 100 {
				t.Fatal("the window is not set aside")
			}
		}
		p.finish()
		p.check()
	})
}

// A log that has lost its tail is filled again: what was passed over after that lies at offsets
// that were read before.
func TestPassedOverAfterLoss(t *testing.T) {
	end := Position{Windows: 20}
	w := waiting{waitRecord: nothingPassed, origins: []int{0}, cut: end}
	from := func(want int64) {
		t.Helper()
		if next, _ := w.next(end); next.From != want {
			t.Errorf("windows are read again from offset %d, want %d", next.From, want)
		}
	}
	w.passOver(WindowLog, 5, 0)
	from(5)
	w.readUpTo(WindowLog, 9)
	from(9)
	w.passOver(WindowLog, 7, 0)
	from(7)
	w.passOver(WindowLog, 3, 1)
	from(7)
	w.passOver(WindowLog, 3, 0)
	from(3)
}

// tell logs what lies in Kafka in the end.
func (p *cluster) tell() {
	for i, at := range p.parts {
		for l := range CommandLog {
			for o, w := range at.sent[l] {
				p.t.Logf("partition %d log %d offset %d: %s window %d from %d", i, l, o, w.Machine, w.Seq, w.origin)
			}
		}
		for o, c := range at.commands {
			p.t.Logf("partition %d command %d: %s %+v", i, o, c.Key, c.Handover)
		}
	}
}

// same compares what was published with what should have been.
func (p *cluster) same(what string, got, want []string) {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			p.t.Errorf("%v: %s: %d, want %d; the first that differs:\n%s\nwant\n%s", p.counts, what, len(got), len(want),
				append(got, make([]string, len(want)+1)...)[i], append(want, make([]string, len(got)+1)...)[i])
			return
		}
	}
}

// check compares what was published with what one owner publishes.
func (p *cluster) check() {
	once := newCluster(p.t, p.model, []int{1}, len(p.machine))
	once.generation()
	for _, name := range p.machine {
		for range p.seq[name] {
			once.send(name)
		}
	}
	once.finish()
	for _, name := range p.machine {
		p.same(name+": results", p.results[name], once.results[name])
		p.same(name+": alerts", p.alerts[name], once.alerts[name])
	}
	for _, name := range p.machine {
		for seq := range p.seq[name] {
			n := p.letters[fmt.Sprint(name, " ", seq)]
			if want := map[bool]int{true: 1}[refused(seq)]; n != want {
				p.t.Errorf("window %d of %s was set aside %d times, want %d", seq, name, n, want)
			}
		}
	}
	for i := range p.issued {
		if id := fmt.Sprintf("c%d", i+1); p.answers[id] != 1 {
			p.t.Errorf("command %s was answered %d times", id, p.answers[id])
		}
	}
	for i, at := range p.parts {
		for k := range at.records {
			if divide(k.Machine, p.newest()) != i && !k.Moved && p.seq[k.Machine] > 0 {
				p.t.Errorf("partition %d still has %q", i, k)
			}
		}
	}
}
