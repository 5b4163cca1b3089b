package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// waiting is a machine that waits for its state, which may be in another partition.
type waiting struct {
	waitRecord

	name  string
	era   int  // the newest number of partitions under which this one is its home
	dirty bool // the record has to be written
	stage stage
	asks  []int  // partitions that are left to ask; the first one is being asked
	id    string // of the question; empty: it was not sent yet
	sent  time.Time
	pause time.Duration // until the question is sent again
	once  bool          // all have to be asked once more
	asked bool          // adopting: the action is under way
	end   Position      // reaching: the partition has to be judged up to there

	// Catching.
	cut     Position // windows before it that were forwarded come first
	origins []int    // that have forwarded them, the oldest home first
	origin  int      // index in origins; behind them come the windows that were not forwarded
	reading Again    // what was asked for last
}

// waitRecord is the state record of a machine that waits. Of each log, what came for the
// machine from an offset on is still to be judged.
type waitRecord struct {
	From    [logs]int64         `json:"from"`              // -1: none was passed over
	Direct  bool                `json:"direct,omitempty"`  // a window came that was not forwarded
	Origins []int               `json:"origins,omitempty"` // partitions that have forwarded windows
	Read    map[int][logs]int64 `json:"read,omitempty"`    // by origin: what it has forwarded from there on is still to be judged
}

// stage says what a machine waits for.
type stage int

const (
	asking   stage = iota // for the answers of other partitions
	adopting              // for its records that are in this partition now
	reaching              // for the partition to be judged up to where it ended then
	catching              // for what was passed over
)

// Again asks for the messages of one machine that were passed over.
type Again struct {
	Machine  string
	Log      Log
	From, To int64 // offsets: at From or behind, and before To
}

// AgainOf answers Again. It holds all messages of the machine before the offset Next, which
// may be before Again.To.
type AgainOf struct {
	Again

	Windows  []Input
	Commands []Command
	Next     int64
}

// Adopted answers Action.Adopt.
type Adopted struct {
	Machine string
	Records []Record // of the machine in this partition
	End     Position // behind the newest window and features of the partition
}

// How long an owner waits for an answer before it asks again, twice as long each time: the
// owner that it asked may have ended.
const (
	firstPatience = 2 * time.Second
	mostPatience  = time.Minute
)

var nothingPassed = waitRecord{From: [logs]int64{-1, -1, -1}}

func (o *Owner) wait(name string) *waiting {
	w := &waiting{waitRecord: nothingPassed, name: name, era: o.era(name), dirty: true}
	if o.handovers.waiting == nil {
		o.handovers.waiting = make(map[string]*waiting)
	}
	o.handovers.waiting[name] = w
	return w
}

func (w *waiting) ask(partitions []int) {
	w.stage, w.asks, w.id = asking, partitions, ""
	if len(partitions) == 0 {
		w.stage, w.asked = adopting, false
	}
}

// passOver notes a message that is to be read again.
func (w *waiting) passOver(l Log, offset int64, origin int) {
	if w.From[l] < 0 || offset < w.From[l] { // less if the log has lost its tail
		w.From[l], w.dirty = offset, true
	}
	if read := w.Read[origin]; offset < read[l] {
		read[l] = offset
		w.Read[origin], w.dirty = read, true
	}
	switch {
	case l == CommandLog:
	case origin >= 0:
		if !slices.Contains(w.Origins, origin) {
			w.Origins, w.dirty = append(w.Origins, origin), true
		}
	case !w.Direct:
		// All windows before this one lie in the old partitions now, which have perhaps
		// answered before.
		w.Direct, w.once, w.dirty = true, true, true
	}
}

// loadHandovers makes machines wait, and notes others as moved, as their records say.
func (o *Owner) loadHandovers(records []Record) {
	for _, r := range records {
		if r.Key.Group != o.settings.Group || r.Value == nil {
			continue
		}
		switch {
		case r.Key.Waits:
			w := o.wait(r.Key.Machine)
			if err := json.Unmarshal(r.Value, &w.waitRecord); err != nil { // no program of ours wrote it
				w.waitRecord = nothingPassed
			}
			w.dirty = false
		case r.Key.Moved:
			var m movedRecord
			if json.Unmarshal(r.Value, &m) == nil {
				o.noteMoved(new(Batch), r.Key.Machine, m)
			}
		}
	}
}

// resumeWaits asks again for all machines that wait, after the partition was taken over.
func (o *Owner) resumeWaits(b *Batch, now time.Time) []Action {
	for name, w := range o.handovers.waiting {
		w.ask(o.toAsk(name))
	}
	return o.advance(b, now)
}

// arrive makes a machine one of this partition. Its deployment counts at once: a command may
// come before its next window.
func (o *Owner) arrive(m *Machine) {
	m.moveTo(o.partition)
	o.deploy(m, o.fleet.Of(m.Machine, m.Layout), nil)
}

// answered takes the answer of another partition.
func (o *Owner) answered(h *event.Handover) {
	w := o.handovers.waiting[h.Machine]
	switch {
	case h.Moved && o.machines[h.Machine] == nil && (w == nil || w.stage != asking): // an earlier owner has asked
		if w == nil {
			w = o.wait(h.Machine)
		}
		w.ask(nil)
	case w == nil || w.stage != asking || w.id != h.ID || w.id == "":
	default:
		w.ask(w.asks[1:])
		if w.stage != asking && w.once {
			w.once = false
			w.ask(o.toAsk(h.Machine))
		}
	}
}

// advance lets the machines that wait go on, as far as they can.
func (o *Owner) advance(b *Batch, now time.Time) (actions []Action) {
	for _, name := range sortedKeys(o.handovers.waiting) {
		w := o.handovers.waiting[name]
		if w.once && w.stage != asking { // all have answered before that window came
			w.once = false
			w.ask(o.toAsk(name))
		}
		switch w.stage {
		case asking:
			o.question(b, w, now)
		case adopting:
			if !w.asked {
				w.asked = true
				actions = append(actions, Action{Adopt: name})
			}
		case reaching:
			if !b.Position.beyond(w.end) {
				continue
			}
			w.stage, w.cut, w.origins, w.origin, w.reading = catching, b.Position, o.byAge(name, w.Origins), 0, Again{}
			fallthrough
		case catching:
			if o.handovers.again {
				continue
			}
			next, ok := w.next(b.Position)
			if !ok {
				o.settle(b, w)
				continue
			}
			o.handovers.again, w.reading = true, next
			actions = append(actions, Action{Again: &next})
		}
	}
	return actions
}

// byAge sorts partitions that have forwarded windows of a machine, the oldest home first.
func (o *Owner) byAge(name string, partitions []int) (sorted []int) {
	for _, n := range o.handovers.counts {
		if p := o.Divide(name, n); slices.Contains(partitions, p) && !slices.Contains(sorted, p) {
			sorted = append(sorted, p)
		}
	}
	for _, p := range partitions {
		if !slices.Contains(sorted, p) {
			sorted = append(sorted, p)
		}
	}
	return sorted
}

// question asks the next partition, and asks it again when the answer does not come.
func (o *Owner) question(b *Batch, w *waiting, now time.Time) {
	switch {
	case w.id == "":
		if o.handovers.questions == 0 {
			o.handovers.questions = max(now.UnixNano(), 0) // an answer to an earlier owner is not one to this owner
		}
		o.handovers.questions++
		w.id, w.pause = strconv.FormatInt(o.handovers.questions, 36), firstPatience
	case now.Sub(w.sent) < w.pause:
		return
	default:
		w.pause = min(2*w.pause, mostPatience)
	}
	w.sent = now
	b.Events = append(b.Events, Output{Handover: &event.Handover{
		ID: w.id, Group: o.settings.Group, Machine: w.name, From: w.asks[0], To: o.partition, Partitions: w.era, Known: o.machines[w.name] != nil,
	}})
}

// adopt takes the records of a machine that another owner has moved to this partition.
func (o *Owner) adopt(b *Batch, a *Adopted, now time.Time) {
	w := o.handovers.waiting[a.Machine]
	if w == nil {
		return
	}
	if w.stage == adopting {
		w.stage, w.end = reaching, a.End
	}
	if o.machines[a.Machine] != nil {
		return
	}
	var own []Record
	shadows := make(map[shadowKey][]Record)
	for _, r := range a.Records {
		switch group, id, ok := strings.Cut(r.Key.Group, shadowSeparator); {
		case r.Value == nil || r.Key.Waits || r.Key.Moved || r.Key.Machine != a.Machine || group != o.settings.Group:
		case ok:
			shadows[shadowKey{a.Machine, id}] = append(shadows[shadowKey{a.Machine, id}], r)
		default:
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return
	}
	m, err := Load(own, o.settings, o.loadedBy(a.Machine, own), now)
	if err != nil {
		setRecordsAside(b, a.Machine, own, err)
		return
	}
	o.put(a.Machine, m)
	if m.gone {
		m.Partition = o.partition
		return
	}
	o.arrive(m)
	o.loadShadows(b, shadows, now)
	b.Lines = append(b.Lines, MachineLine{a.Machine, Line{false, "machine_moved", fmt.Sprintf("%s: its windows come in partition %d now; it goes on with what is remembered of %d tools", short(a.Machine), o.partition, len(m.Tools))}})
}

// next returns what is to be read again next; false: nothing is left before a position.
func (w *waiting) next(at Position) (Again, bool) {
	for ; w.origin < len(w.origins); w.origin++ {
		for l := range CommandLog {
			if next, ok := w.rest(l, w.Read[w.origins[w.origin]][l], w.cut); ok {
				return next, true
			}
		}
	}
	for l := range CommandLog {
		if next, ok := w.rest(l, 0, at); ok {
			return next, true
		}
	}
	w.From[WindowLog], w.From[FeatureLog] = -1, -1
	return w.rest(CommandLog, 0, at)
}

// rest returns what is left to be read again of a log, from an offset on and before a position;
// false: nothing.
func (w *waiting) rest(l Log, from int64, before Position) (Again, bool) {
	from = max(from, w.From[l])
	return Again{w.name, l, from, l.of(before)}, w.From[l] >= 0 && from < l.of(before)
}

// takes reports whether a window that is read again is one of the origin that is read now.
func (w *waiting) takes(in Input, l Log) bool {
	if w.origin < len(w.origins) {
		return in.Forwarded && in.Origin == w.origins[w.origin]
	}
	return !in.Forwarded || in.Offset >= l.of(w.cut)
}

// readUpTo notes what was read again. An owner that takes over goes on from there: a window
// that was refused is not remembered as one that was judged is.
func (w *waiting) readUpTo(l Log, next int64) {
	w.dirty = true
	if l == CommandLog || w.origin == len(w.origins) {
		w.From[l] = next
		return
	}
	if w.Read == nil {
		w.Read = make(map[int][logs]int64)
	}
	origin := w.origins[w.origin]
	read := w.Read[origin]
	read[l] = next
	w.Read[origin] = read
}

// readAgain judges what was passed over.
func (o *Owner) readAgain(b *Batch, r *AgainOf, now time.Time) {
	o.handovers.again = false
	w := o.handovers.waiting[r.Machine]
	if w == nil || w.stage != catching || w.reading != r.Again {
		return // the old partitions were asked again meanwhile
	}
	for _, c := range r.Commands {
		o.carryOut(b, c, now)
	}
	for _, in := range r.Windows {
		if w.takes(in, r.Log) && in.Open != nil {
			o.judgeAgain(b, in, r.Log, now)
		}
	}
	w.readUpTo(r.Log, r.Next)
}

// judgeAgain judges a window that was passed over. One that is not a window of ours was set
// aside then.
func (o *Owner) judgeAgain(b *Batch, in Input, l Log, now time.Time) {
	if err := in.Open(&o.window); machineOf(&o.window, err) != "" {
		o.judgeOpened(b, in, l, err, now)
	}
}

// settle ends the waiting of a machine.
func (o *Owner) settle(b *Batch, w *waiting) {
	delete(o.handovers.waiting, w.name)
	b.State = append(b.State, Record{Key: w.key(o.settings.Group)})
	m := o.machines[w.name]
	if m != nil && w.Direct {
		m.Settled, m.dirty.head = w.era, true
	}
	if m != nil {
		o.noteMoved(b, w.name, movedRecord{})
	}
}

func (w *waiting) key(group string) Key { return Key{Group: group, Machine: w.name, Waits: true} }

// waitRecords returns the records of machines that wait and that have changed.
func (o *Owner) waitRecords() (out []Record) {
	for _, name := range sortedKeys(o.handovers.waiting) {
		if w := o.handovers.waiting[name]; w.dirty {
			w.dirty = false
			out = append(out, Record{Key: w.key(o.settings.Group), Value: event.JSON(w.waitRecord)})
		}
	}
	return out
}
