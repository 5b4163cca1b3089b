package machine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/window"
)

// Owner is the machines of one partition while a monitor has it, and the order in which
// the monitor takes it over, reads and publishes. It is pure: what has to be done is an
// [Action], what came of it is a [Reply]. The monitor does the actions with Kafka, the
// simulation with a model of it.
//
// At most one of Fence, Load and Publish is under way. What comes meanwhile waits.
type Owner struct {
	settings  *Settings
	fleet     Fleet
	partition int
	machines  map[string]*Machine
	names     []string // of machines, in order
	models    candidates

	phase    phase
	position Position        // up to which what was decided is published
	queue    []came          // while something was under way
	reading  bool            // windows were asked for
	taking   bool            // features were asked for
	hearing  bool            // commands were asked for
	pending  *Batch          // that is being published
	heard    int64           // offset behind the last command that was read
	backlog  int64           // offset up to which commands lay there when the partition was taken over
	ticks    int             // since then
	answered time.Time       // when Kafka got the last command that was carried out, where the group's position is gone
	held     []Command       // that wait for windows which Kafka got before them
	until    *Position       // how far those windows go at most; nil: Kafka has not said
	asked    bool            // a machine asks how far the partition goes
	first    Position        // what Kafka has not deleted, when it said so last
	fresh    bool            // the group had no position in the commands
	built    string          // machine for which a build was due last
	window   window.Features // that is being judged

	// Has, if not nil, reports whether a machine's windows come to the partition. Without it no machine is missed that was never seen.
	Has func(machine string) bool

	// OnWindow, if not nil, sees every window as it is judged, which is before its result is
	// published. It must not keep the window.
	OnWindow func(*window.Features, event.Result)

	// OnReply, if not nil, sees every reply of which machines hear, in the order in which they do: commands when they are carried out, and the
	// windows after one that waits apart from those before it, and when it came. A batch is of the last one.
	OnReply func(Reply, time.Time)

	// OnFeatures, if not nil, sees the features of every window that is not a repeat, also of
	// one that no model judges. The batch that follows from the window is published after it.
	OnFeatures func(*window.Features)
}

// came is a reply, and when it came by the clock of the monitor.
type came struct {
	reply Reply
	now   time.Time
}

// backlogTicks is how many ticks an owner waits for the commands that lay there when it took the partition over.
const backlogTicks = 10

type phase int

const (
	fencing phase = iota
	loading
	idle
	publishing
	lost
)

// NewOwner returns an owner of a partition, given by its number, that is not taken over
// yet.
func NewOwner(s *Settings, f Fleet, partition int) *Owner {
	return &Owner{settings: s, fleet: f, partition: partition, machines: make(map[string]*Machine), models: candidates{known: f.Model}}
}

// Start returns the first action.
func (o *Owner) Start() []Action { return []Action{Fence{}} }

// put makes a machine one of the partition.
func (o *Owner) put(name string, m *Machine) {
	if i, there := slices.BinarySearch(o.names, name); !there {
		o.names = slices.Insert(o.names, i, name)
	}
	o.machines[name] = m
}

// Machines calls f for every machine that is not retired, in the order of their names.
func (o *Owner) Machines(f func(*Machine)) {
	for _, name := range slices.Clone(o.names) { // f may change which there are
		if m := o.machines[name]; !m.gone {
			f(m)
		}
	}
}

// Machine returns a machine; nil if nothing is known of it, or it is retired.
func (o *Owner) Machine(name string) *Machine {
	if m := o.machines[name]; m != nil && !m.gone {
		return m
	}
	return nil
}

// On takes a reply, which came at that time by the clock of the monitor, and returns what is to be done next.
func (o *Owner) On(r Reply, now time.Time) []Action {
	if o.phase == lost {
		return nil
	}
	if _, is := r.(Lost); is {
		o.phase, o.machines, o.names, o.queue = lost, nil, nil, nil
		return nil
	}
	if o.phase == fencing || o.phase == loading {
		return o.takeOver(r, now)
	}
	if _, is := r.(Published); is && o.phase == publishing {
		o.phase, o.position, o.pending = idle, o.pending.Position, nil
		return o.proceed()
	}
	if _, is := r.(Tick); is { // one is enough
		o.queue = slices.DeleteFunc(o.queue, func(q came) bool { _, is := q.reply.(Tick); return is })
	}
	o.queue = append(o.queue, came{r, now})
	return o.proceed()
}

// takeOver takes a reply before there are machines: what was not asked for yet does not count.
func (o *Owner) takeOver(r Reply, now time.Time) []Action {
	switch r := r.(type) {
	case *Fleet:
		o.fleet, o.models.known = *r, r.Model
	case Fenced:
		if o.phase == fencing {
			return o.fenced(r)
		}
	case Loaded:
		if o.phase == loading {
			return o.loaded(r, now)
		}
	case Read, FeaturesPassed, CommandsRead, CommandsDue, Published, Lost, Tick, End, EvidenceOf, *Build:
	}
	return nil
}

func (o *Owner) fenced(r Fenced) []Action {
	o.position, o.backlog = r.At, r.CommandsEnd
	if o.fresh = o.position.Commands < 0; o.fresh {
		// A new group does nothing that was asked of others. In a partition that is new to a group, all is for it.
		o.position.Commands = r.CommandsEnd
		if o.position.Windows >= 0 {
			o.position.Commands = 0
		}
	}
	o.phase = loading
	return []Action{LoadState{}}
}

// proceed takes what has waited, until something is under way again, and asks for more.
func (o *Owner) proceed() (actions []Action) {
	for o.phase == idle && len(o.queue) > 0 {
		r := o.queue[0]
		o.queue = o.queue[1:]
		actions = append(actions, o.handle(o.cut(r))...)
	}
	return append(actions, o.read()...)
}

// read asks for windows, features and commands, unless it has asked: also while a batch is
// being published, behind that. After a takeover commands come first, as the windows that wait may lie behind them.
func (o *Owner) read() (actions []Action) {
	at := o.position
	switch o.phase {
	case idle:
	case publishing:
		at = o.pending.Position
	default:
		return nil
	}
	if !o.reading && o.heard >= o.backlog {
		o.reading = true
		actions = append(actions, ReadWindows{at.Windows})
	}
	if !o.taking && o.heard >= o.backlog {
		o.taking = true
		actions = append(actions, ReadFeatures{at.Features})
	}
	if !o.hearing && (len(o.held) == 0 || o.heard < o.backlog) {
		o.hearing = true
		actions = append(actions, ReadCommands{o.heard})
	}
	return actions
}

// loaded makes machines of the records.
func (o *Owner) loaded(records Loaded, now time.Time) []Action {
	o.phase = idle
	if o.fresh && slices.ContainsFunc(records, func(rec event.StateRecord) bool { return rec.Key.Group == o.settings.Group }) {
		o.position.Commands = 0 // the partition is new, and the group is not
	}
	o.heard = max(0, o.position.Commands)
	b := &Batch{Position: o.position, now: now}
	byMachine := o.recordsByMachine(records)
	for _, name := range slices.Sorted(maps.Keys(byMachine)) {
		o.takeIn(b, name, byMachine[name])
		if m := o.machines[name]; m != nil && o.fresh {
			for _, c := range m.Commands.IDs {
				if c.At.After(o.answered) {
					o.answered = c.At
				}
			}
		}
	}
	o.expect(b.now)
	return o.publish(b)
}

// recordsByMachine sorts the records of the group's machines.
func (o *Owner) recordsByMachine(records []event.StateRecord) map[string][]event.StateRecord {
	machines := make(map[string][]event.StateRecord)
	for _, rec := range records {
		if rec.Value != nil && rec.Key.Group == o.settings.Group {
			machines[rec.Key.Machine] = append(machines[rec.Key.Machine], rec)
		}
	}
	return machines
}

// load makes a machine of records that were kept under a name. Its deployment counts at once: a command may
// come before its next window.
func (o *Owner) load(name, was string, records []event.StateRecord, now time.Time) (*Machine, error) {
	m, err := loadAs(name, was, records, o.settings, &o.models, now)
	if err != nil {
		return nil, err
	}
	m.judges.deployed = o.deployedFor(name)
	if !m.unjudged() {
		m.deploy(m.judges.deployed(m.Layout))
	}
	return m, nil
}

// setRecordsAside sets the records of a machine aside that cannot be used.
func setRecordsAside(b *Batch, name string, records []event.StateRecord, err error) {
	for _, rec := range records {
		b.Letters = append(b.Letters, Letter{Log: StateLog, Key: rec.Key.String(), Offset: rec.Offset, Reason: err.Error(), Err: err})
		b.State = append(b.State, event.StateRecord{Key: rec.Key})
	}
	b.Lines = append(b.Lines, machineLine{name, Line{true, "state_set_aside", fmt.Sprintf("%s: its record cannot be used (%v) and was set aside: its alarm is forgotten and its reference is learnt "+
		"from the tool at hand, however worn: change the tool, or do not trust its verdicts until it is changed", event.ShortName(name), err)}})
}

// cut returns what is to be handled now of a reply, and puts the rest before what waits: a command is carried out before the first
// window or features that Kafka got later, and after all that Kafka got sooner. So a backlog is judged as it would have been at its time.
func (o *Owner) cut(c came) came {
	r, ok := c.reply.(Read)
	if len(o.held) == 0 || !ok {
		return c
	}
	k := slices.IndexFunc(r.Inputs, func(in Input) bool { return in.At.After(o.held[0].At) })
	if k < 0 {
		return c
	}
	n := 1
	for n < len(o.held) && r.Inputs[k].At.After(o.held[n].At) {
		n++
	}
	due := came{CommandsDue(o.held[:n]), c.now}
	if o.held = o.held[n:]; k == 0 {
		o.queue = slices.Insert(o.queue, 0, c)
		return due
	}
	o.queue = slices.Insert(o.queue, 0, due, came{Read{Log: r.Log, Inputs: r.Inputs[k:]}, c.now})
	return came{Read{r.Log, r.Inputs[:k:k], true}, c.now}
}

// hear takes commands that were read, and reports whether to ask how far the windows go that Kafka got before them.
func (o *Owner) hear(b *Batch, c []Command) (ask bool) {
	if len(c) > 0 {
		o.heard, o.until = c[len(c)-1].Offset+1, nil
	}
	n := len(o.held)
	o.hearing = false
	for _, c := range c {
		if o.answered.IsZero() || c.At.After(o.answered) {
			o.held = append(o.held, c)
		}
	}
	if n = n + len(c) - len(o.held); n > 0 {
		b.Lines = append(b.Lines, machineLine{"", Line{true, "commands_not_repeated", fmt.Sprintf("%d commands up to %s are not carried out again: the group has lost its position in the commands, and the last one that it carried out came then", n, statement.Day(o.answered))}})
	}
	return len(o.held) > 0 && o.heard >= o.backlog
}

// handle takes a reply while nothing is under way.
func (o *Owner) handle(c came) []Action {
	b := &Batch{Of: c.reply, Position: o.position, now: c.now}
	if _, waits := c.reply.(CommandsRead); o.OnReply != nil && !waits {
		o.OnReply(c.reply, c.now)
	}
	ask, rest := false, false
	switch r := c.reply.(type) {
	case Tick:
		b.now = r.Now
		o.asked = o.tick(b, r) || o.asked
		if o.ticks++; o.ticks >= backlogTicks {
			o.backlog = 0 // what lies there are no commands
		}
		ask = o.asked || len(o.held) > 0
	case Read:
		rest = r.rest
		o.judge(b, r)
	case FeaturesPassed:
		b.Position.Features, b.passed = max(b.Position.Features, int64(r)), true // the next batch publishes it
	case CommandsRead: // nothing follows from them yet
		ask = o.hear(b, r)
	case CommandsDue:
		for _, c := range r {
			b.Position.Commands = c.Offset + 1
			o.carryOut(b, c)
		}
	case End:
		o.endIs(r, c.now)
	case EvidenceOf:
		if m := o.Machine(r.Machine); m != nil {
			o.add(b, m, o.apply(b, m, r.EvidenceDone, nil))
		}
	case *Fleet:
		o.redeploy(b, *r)
	case *Build:
		if m := o.Machine(r.job.Machine); m != nil {
			o.add(b, m, o.apply(b, m, built{r}, nil))
		}
	case Fenced, Loaded, Published, Lost: // On takes them
	}
	if !rest && len(o.held) > 0 && o.until != nil && o.reached(b.Position).beyond(*o.until) {
		o.queue = slices.Insert(o.queue, 0, came{CommandsDue(o.held), c.now})
		o.held = nil
	}
	actions := o.publish(b)
	if ask {
		actions = append(actions, AskEnd{})
	}
	return actions
}

// endIs takes how far the partition goes.
func (o *Owner) endIs(e End, now time.Time) {
	end := Position{Windows: e.Windows.reach(), Features: e.Features.reach()}
	if e.Known { // what Kafka has deleted is not to be judged any more
		o.until = o.until.nearer(end)
		o.first = Position{Windows: e.Windows.First, Features: e.Features.First}
	}
	o.Machines(func(m *Machine) {
		if m.overdue(now) && (o.asked || !e.Known) {
			m.EndIs(end, e.Known, now)
		}
	})
	o.asked = false
}

// reached returns up to where all is judged that Kafka has not deleted. It is not published: who reads there next reports the gap.
func (o *Owner) reached(p Position) Position {
	return Position{Windows: max(p.Windows, o.first.Windows), Features: max(p.Features, o.first.Features)}
}

// tick lets every machine know the time. It reports whether one of them asks how far the partition goes.
func (o *Owner) tick(b *Batch, t Tick) (ask bool) {
	t.Next = o.reached(o.position)
	o.Machines(func(m *Machine) {
		d := o.apply(b, m, t, nil)
		ask = ask || d.AskEnd
		o.add(b, m, d)
	})
	return ask
}

// publish puts the records of all machines that changed into a batch, and publishes it if
// there is anything in it.
func (o *Owner) publish(b *Batch) []Action {
	for _, name := range o.names {
		b.State = append(b.State, o.records(b, o.machines[name])...)
	}
	if (b.Position == o.position || b.passed) && !o.fresh && b.empty() {
		o.position = b.Position // the next batch publishes it
		return o.read()
	}
	assert(o.phase == idle && o.pending == nil, "partition %d publishes %+v in phase %d, and %v waits", o.partition, b.Position, o.phase, o.pending)
	o.phase, o.pending, o.fresh = publishing, b, false
	return append(o.read(), b)
}

// judge judges windows, or those whose features gateways have extracted.
func (o *Owner) judge(b *Batch, r Read) {
	next, asked := &b.Position.Windows, &o.reading
	if r.Log == FeatureLog {
		next, asked, b.passed = &b.Position.Features, &o.taking, true
	}
	*asked = r.rest
	for _, in := range r.Inputs {
		*next = in.Offset + 1
		switch {
		case in.Ledger != nil:
			o.account(b, in)
		case in.Open != nil:
			b.passed = false
			o.judgeOne(b, in, r.Log)
		}
	}
}

// judgeOne judges a window, or sets it aside.
func (o *Owner) judgeOne(b *Batch, in Input, l replyLog) {
	if err := o.open(b, in); err != nil {
		o.setAside(b, in, l, err)
		return
	}
	repeats := b.Repeats
	o.take(b, Window{Features: &o.window, Offset: event.Offset{At: in.Offset, Features: l == FeatureLog}, At: in.At, Now: b.now}, Letter{Log: l, Offset: in.Offset, Advised: true})
	if b.Repeats == repeats && o.OnFeatures != nil {
		o.OnFeatures(&o.window)
	}
}

// carryOut lets a machine carry a command out, or sets the command aside.
func (o *Owner) carryOut(b *Batch, c Command) {
	letter := Letter{Log: CommandLog, Key: c.Key, Offset: c.Offset}
	m := o.machines[c.Key]
	if m == nil || m.gone {
		if l := o.commandUnknown(b, c); l != nil {
			l.Log, l.Key, l.Offset = CommandLog, c.Key, c.Offset
			b.Letters = append(b.Letters, *l)
		}
		return
	}
	d := o.apply(b, m, c, &letter)
	if m.gone {
		m.Model = "" // as its records say
	}
	if d.Refused != "" {
		letter.Reason = d.Refused
		b.Letters = append(b.Letters, letter)
	}
	o.add(b, m, d)
}

// commandUnknown takes a command for a machine of which nothing is known. The only one that
// can be carried out gives it what was remembered under another name. All others are set
// aside.
func (o *Owner) commandUnknown(b *Batch, c Command) *Letter {
	e, err := event.ReadCommand(c.Key, c.Value)
	retired := o.machines[c.Key]
	switch {
	case err == nil && e.Action == event.Fetch: // a gateway answers it
		return nil
	case err == nil && retired != nil && retired.Commands.has(e.ID):
		return &Letter{Reason: fmt.Sprintf("command %s: %v", e.ID, errRepeated)}
	case err != nil || e.Action != event.Rename:
		return &Letter{Unknown: true, Reason: fmt.Sprintf("command for machine %.64q: no window of it has ever been judged, or none since it was retired", c.Key)}
	}
	var ids commands
	if retired != nil {
		ids = retired.Commands
	}
	if err := ids.timely(e, c.At); err != nil {
		return &Letter{Reason: fmt.Sprintf("command %s: rename: %v", e.ID, err)}
	}
	var m *Machine
	var d Decision
	if bad := guard(func() { m, d, err = o.rename(c, e, b.now) }); bad != nil {
		b.Panics++
		b.Lines = append(b.Lines, machineLine{c.Key, Line{true, "command_failed", fmt.Sprintf("%s: command %s: rename: %v\n%s", event.ShortName(c.Key), e.ID, bad, bad.stack)}})
		err = bad
	}
	if err != nil {
		return &Letter{Unknown: errors.Is(err, event.ErrNoState), Reason: fmt.Sprintf("command %s: rename: %v", e.ID, err)}
	}
	m.Commands.IDs = append(ids.IDs, m.Commands.IDs...)
	o.put(c.Key, m)
	o.add(b, m, d)
	return nil
}

// add puts what a decision says into a batch.
func (o *Owner) add(b *Batch, m *Machine, d Decision) {
	b.Panics += d.Defects
	if d.Repeat {
		b.Repeats++
	}
	if d.Result != nil {
		b.Judged++
		if d.Result.Late {
			b.Late++
		}
		b.Events = append(b.Events, Result{d.Result, d.Missing})
	}
	for i := range d.Alerts {
		b.Events = append(b.Events, Alert{&d.Alerts[i]})
	}
	for i := range d.Advisories {
		b.Events = append(b.Events, Advisory{&d.Advisories[i]})
	}
	if d.Evidence != nil {
		b.Events = append(b.Events, Evidence{d.Evidence})
	}
	b.Events = append(b.Events, d.Shadows...)
	for _, l := range d.Lines {
		b.Lines = append(b.Lines, machineLine{m.Machine, l})
	}
}
