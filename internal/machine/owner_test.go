package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// partition is what Kafka holds of a partition.
type partition struct {
	windows   []*window.Window // nil: a message that is not one
	features  []feature
	commands  []Command
	records   map[event.StateKey]event.StateRecord
	position  Position
	published []string // events and letters
	lines     []machineLine
}

// feature is a message of the features topic.
type feature struct {
	*window.Window      // nil: not features
	others         bool // they are not for the owner
}

func newPartition() *partition {
	return &partition{records: make(map[event.StateKey]event.StateRecord), position: Position{Windows: -1, Features: -1, Commands: -1}}
}

// commit publishes a batch.
func (p *partition) commit(b *Batch) {
	p.position = b.Position
	p.lines = append(p.lines, b.Lines...)
	for _, r := range b.State {
		if r.Value == nil {
			delete(p.records, r.Key)
		} else {
			p.records[r.Key] = r
		}
	}
	for _, e := range b.Events {
		switch e := e.(type) {
		case Result:
			p.published = append(p.published, e.Result.Machine+": result "+string(event.JSON(e.Result)))
		case Alert:
			p.published = append(p.published, e.Alert.Machine+": alert "+string(event.JSON(e.Alert)))
		case Advisory:
			p.published = append(p.published, e.Advisory.Machine+": advisory "+string(event.JSON(e.Advisory)))
		case Evidence, ShadowResult, ShadowAlert: // tests of these look for themselves
		}
	}
	for _, l := range b.Letters {
		topic := ""
		if l.Log == FeatureLog {
			topic = "features"
		}
		p.published = append(p.published, fmt.Sprintf("%s%s: letter %d %s", topic, l.Key, l.Offset, l.Reason))
	}
}

// of returns what was published of a machine.
func (p *partition) of(name string) (all []string) {
	for _, s := range p.published {
		if strings.HasPrefix(s, name+": ") {
			all = append(all, s)
		}
	}
	return all
}

// inputs returns at most n windows from an offset on.
func (p *partition) inputs(from int64, n int) (all []Input) {
	from = max(from, 0)
	for i := from; i < int64(len(p.windows)) && len(all) < n; i++ {
		all = append(all, input(i, p.windows[i]))
	}
	return all
}

func input(offset int64, w *window.Window) Input {
	return Input{Offset: offset, At: noon.Add(time.Duration(offset) * time.Second), Open: func(into *window.Features) error {
		if w == nil {
			return errors.New("not a window")
		}
		*into = *machinetest.Features(nil, w)
		return nil
	}}
}

// taken returns at most n messages of features from an offset on.
func (p *partition) taken(from int64, n int) (all []Input) {
	from = max(from, 0)
	for i := from; i < int64(len(p.features)) && len(all) < n; i++ {
		f := p.features[i]
		in := input(i, f.Window)
		if f.others {
			in.Open = nil
		}
		all = append(all, in)
	}
	return all
}

func (p *partition) loaded() []event.StateRecord {
	all := []event.StateRecord{}
	for _, r := range p.records {
		all = append(all, r)
	}
	return all
}

// is reports whether an action is of a type.
func is[T Action](a Action) bool {
	_, ok := a.(T)
	return ok
}

func newOwner(m *model.Model) *Owner {
	return NewOwner(&Settings{Group: group, Alarm: testAlarm}, Everything(m), 0)
}

// reply does an action, with at most n messages. It reports false where Kafka does not
// answer yet.
func (p *partition) reply(a Action, n int) (Reply, bool) {
	switch a := a.(type) {
	case Fence:
		return Fenced{p.position, int64(len(p.commands))}, true
	case LoadState:
		return Loaded(p.loaded()), true
	case ReadWindows:
		in := p.inputs(a.From, n)
		return Read{Log: WindowLog, Inputs: in}, len(in) > 0
	case ReadFeatures:
		in := p.taken(a.From, n)
		return Read{Log: FeatureLog, Inputs: in}, len(in) > 0
	case ReadCommands:
		from := max(a.From, 0)
		c := CommandsRead(p.commands[from:min(len(p.commands), int(from)+n)])
		return c, len(c) > 0
	case AskEnd:
		return End{Windows: Bounds{0, int64(len(p.windows))}, Features: Bounds{0, int64(len(p.features))}, Known: true}, true
	case *Batch:
		p.commit(a)
	}
	return Published{}, true
}

// finish lets an owner work until nothing is left to do.
func (p *partition) finish(o *Owner, actions []Action, n int) {
	for len(actions) > 0 {
		a := actions[0]
		actions = actions[1:]
		if r, ok := p.reply(a, n); ok {
			actions = append(actions, o.On(r, noon)...)
		}
	}
}

// Owners that end at any moment, before or after what they publish has reached Kafka, are
// followed by others, and what is published in the end is what one owner would have
// published, once.
func TestOwnersFollow(t *testing.T) {
	m := machinetest.OneValue(t)
	names := []string{drill, "acme/line1/lathe", "acme/line1/mill"}
	rapid.Check(t, func(t *rapid.T) {
		p := newPartition()
		seq := make(map[string]uint64)
		for range rapid.IntRange(1, 60).Draw(t, "windows") {
			name := rapid.SampledFrom(names).Draw(t, "machine")
			if rapid.IntRange(0, 19).Draw(t, "other") == 19 {
				p.windows, p.features = append(p.windows, nil), append(p.features, feature{})
				continue
			}
			w := at(seq[name], rapid.SampledFrom([]string{"T1", "T1", "T1", "T2"}).Draw(t, "tool"), seq[name]%9 > 2)
			w.Machine = name
			if name == names[1] { // its gateway extracts
				p.features = append(p.features, feature{Window: w})
			} else {
				p.windows, p.features = append(p.windows, w), append(p.features, feature{Window: w, others: true})
			}
			seq[name]++
		}
		once := newPartition()
		once.windows, once.features = p.windows, p.features
		steady := newOwner(m)
		once.finish(steady, steady.Start(), 1)

		now := noon
		o := newOwner(m)
		var open []Action
		open = append(open, o.Start()...)
		for step := 0; step < 400 && (p.position.Windows < int64(len(p.windows)) || p.position.Features < int64(len(p.features))); step++ {
			now = now.Add(time.Second)
			if len(open) == 0 {
				t.Fatal("an owner has nothing to do, and windows or features are left")
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "action")
			switch rapid.IntRange(0, 9).Draw(t, "fate") {
			case 9: // it ends
				if b, ok := open[i].(*Batch); ok && rapid.Bool().Draw(t, "published") {
					p.commit(b) // and does not get to know
				}
				o = newOwner(m)
				open = o.Start()
				continue
			case 8:
				open = append(open, o.On(Tick{Now: now}, now)...)
				continue
			}
			a := open[i]
			r, ok := p.reply(a, rapid.IntRange(1, 9).Draw(t, "messages"))
			if !ok {
				continue
			}
			open = slices.Delete(open, i, i+1)
			open = append(open, o.On(r, now)...)
			publishing := 0
			for _, a := range open {
				if is[*Batch](a) {
					publishing++
				}
			}
			if publishing > 1 {
				t.Fatal("two batches are published at once")
			}
		}
		p.finish(o, open, 3)
		for _, name := range append(names, "", "features") {
			if got, want := p.of(name), once.of(name); !slices.Equal(got, want) {
				t.Fatalf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// An owner that has lost its partition does nothing any more.
func TestOwnerLost(t *testing.T) {
	m := machinetest.OneValue(t)
	p := newPartition()
	for seq := range uint64(4) {
		p.windows = append(p.windows, at(seq, "T1", false))
	}
	o := newOwner(m)
	p.finish(o, o.Start(), 2)
	p.windows = append(p.windows, at(4, "T1", false))
	if a := o.On(Lost{}, time.Time{}); len(a) > 0 {
		t.Fatalf("%+v", a)
	}
	for _, r := range []Reply{Read{Log: WindowLog, Inputs: p.inputs(4, 1)}, Published{}, Tick{Now: noon.Add(time.Hour)}, Lost{}, CommandsRead{{Key: drill}}} {
		if a := o.On(r, noon); len(a) > 0 {
			t.Errorf("%+v: %+v", r, a)
		}
	}
	if o.Machine(drill) != nil {
		t.Error("it still has its machine")
	}
}

// A backlog is judged as it would have been at its time: a command comes behind the windows that Kafka got before it, and before those that
// Kafka got later, however many are read at once, also when other owners take the partition over in between.
func TestCommandsKeepTheirTime(t *testing.T) {
	m := machinetest.OneValue(t)
	for _, action := range []event.Action{event.NewTool, event.Retire, event.Suppress, event.Acknowledge} {
		t.Run(string(action), func(t *testing.T) {
			var live []string
			for _, n := range []int{0, 64, 3, 1} { // messages at once; 0: live
				p := newPartition()
				o := newOwner(m)
				p.finish(o, o.Start(), 64)
				for seq := range uint64(14) {
					if p.windows = append(p.windows, at(seq, "T1", seq >= 3)); seq == 6 || seq == 9 {
						when := noon.Add(time.Duration(seq)*time.Second + 500*time.Millisecond)
						c := event.Command{ID: fmt.Sprint(seq), Machine: drill, Action: action, By: "kim", Note: "n", Issued: when}
						if action == event.NewTool {
							c.Tool = "T1"
						}
						p.commands = append(p.commands, Command{Key: drill, Value: event.JSON(c), Offset: int64(len(p.commands)), At: when})
					}
					if seq == 0 || n == 0 {
						o = newOwner(m)
						p.finish(o, o.Start(), 64)
					}
				}
				for n > 0 && p.position != (Position{Windows: 14, Features: -1, Commands: 2}) {
					o = newOwner(m) // the one before ends when it has published something
					at := p.position
					actions := o.Start()
					for len(actions) > 0 && (n == 64 || p.position == at) {
						a := actions[0]
						actions = actions[1:]
						if r, ok := p.reply(a, n); ok {
							actions = append(actions, o.On(r, noon)...)
						}
					}
				}
				if n == 0 {
					live = p.published
				} else if !slices.Equal(p.published, live) {
					t.Errorf("%d at once:\n%s\nlive:\n%s", n, strings.Join(p.published, "\n"), strings.Join(live, "\n"))
				}
			}
		})
	}
}

// If the group's positions are gone, commands that were carried out are not carried out again, also those whose ids are forgotten. Later ones
// are, and the log has a line.
func TestCommandsAreNotRepeatedWithoutPosition(t *testing.T) {
	const lathe = "acme/line1/lathe" // which got one command before all others
	p := newPartition()
	of := at(0, "T1", false)
	of.Machine = lathe
	p.windows = append(p.windows, at(0, "T1", false), at(1, "T1", false), of)
	o := newOwner(machinetest.OneValue(t))
	p.finish(o, o.Start(), 64)
	first := event.Command{ID: "lathe", Machine: lathe, Action: event.Suppress, Note: "n", By: "kim", Issued: noon.Add(time.Minute)}
	p.commands = append(p.commands, Command{Key: lathe, Value: event.JSON(first), At: first.Issued})
	send := func(i int) {
		when := noon.Add(time.Duration(1+i) * 10 * time.Minute)
		c := event.Command{ID: fmt.Sprint(i), Machine: drill, Action: event.Unsuppress, By: "kim", Issued: when}
		if i%2 == 0 {
			c.Action, c.Note = event.Suppress, "n"
		}
		p.commands = append(p.commands, Command{Key: drill, Value: event.JSON(c), Offset: int64(len(p.commands)), At: when})
	}
	for i := range keptCommands + 20 {
		send(i)
	}
	o = newOwner(machinetest.OneValue(t))
	p.finish(o, o.Start(), 64)
	published := len(p.published)
	send(keptCommands + 20)
	p.position = Position{Windows: -1, Features: -1, Commands: -1}
	o = newOwner(machinetest.OneValue(t))
	p.finish(o, o.Start(), 64)
	if got := p.published[published:]; len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("command/%d/suppressed", keptCommands+20)) {
		t.Errorf("%d published: %.400q", len(got), got)
	}
	said := 0
	for _, l := range p.lines {
		n := 0
		if l.Event == "commands_not_repeated" && strings.Contains(l.Text, "commands up to") {
			_, _ = fmt.Sscan(l.Text, &n)
		}
		said += n
	}
	if said != keptCommands+21 {
		t.Errorf("the log says it of %d commands, want %d", said, keptCommands+21)
	}
}

// Commands that wait are carried out in their order, also if Kafka has said meanwhile that the windows before them are judged, and no more
// of them are asked for.
func TestCommandsKeepTheirOrder(t *testing.T) {
	p := newPartition()
	p.windows = append(p.windows, at(0, "T1", false))
	o := newOwner(machinetest.OneValue(t))
	p.finish(o, o.Start(), 9)
	var waiting []Command
	for i, action := range []event.Action{event.Suppress, event.Unsuppress} {
		when := noon.Add(time.Duration(i)*time.Second + 1500*time.Millisecond)
		c := event.Command{ID: fmt.Sprint(i), Machine: drill, Action: action, By: "kim", Note: "n", Issued: when}
		waiting = append(waiting, Command{Key: drill, Value: event.JSON(c), Offset: int64(i), At: when})
	}
	p.commands = waiting
	for _, a := range o.On(CommandsRead(waiting), noon) {
		if is[ReadCommands](a) {
			t.Error("more commands are asked for")
		}
	}
	p.windows = append(p.windows, at(1, "T1", false), at(2, "T1", false), at(3, "T1", false))
	o.On(End{Windows: Bounds{0, 2}, Known: true}, noon)
	published := len(p.published)
	p.finish(o, o.On(Read{Log: WindowLog, Inputs: p.inputs(1, 9)}, noon), 9)
	order := ""
	for _, s := range p.published[published:] {
		for _, what := range []string{"/1/test\"", "command/0/suppressed", "/2/test\"", "command/1/unsuppressed", "/3/test\""} {
			if strings.Contains(s, what) {
				order += what + " "
			}
		}
	}
	// The second window came after Kafka's answer, by the clock of a broker that is behind: no command waits for it.
	if want := "/1/test\" command/0/suppressed command/1/unsuppressed /2/test\" /3/test\" "; order != want {
		t.Errorf("%s, want %s", order, want)
	}
}

// Neither a command nor the silence of a machine waits for windows that Kafka has lost.
func TestWindowsThatAreLost(t *testing.T) {
	p := newPartition()
	p.windows = append(p.windows, at(0, "T1", false))
	o := NewOwner(&Settings{Group: group, Alarm: testAlarm, Silence: time.Minute}, Everything(machinetest.OneValue(t)), 0)
	p.finish(o, o.Start(), 9)
	c := event.Command{ID: "c", Machine: drill, Action: event.Suppress, By: "kim", Note: "n", Issued: noon}
	p.commands = []Command{{Key: drill, Value: event.JSON(c), At: noon}}
	late := noon.Add(2 * time.Minute)
	hand := func(r Reply) {
		p.finish(o, slices.DeleteFunc(o.On(r, late), is[AskEnd]), 9)
	}
	hand(CommandsRead(p.commands))
	tick := Tick{Now: late}
	for _, end := range []int64{4, 1} {
		hand(tick)
		if all := fmt.Sprint(p.published); strings.Contains(all, "suppressed") || strings.Contains(all, "silence") {
			t.Fatal("windows are not waited for")
		}
		hand(End{Windows: Bounds{0, end}, Known: true})
	}
	hand(tick)
	for _, want := range []string{"suppressed", "silence"} {
		if !strings.Contains(fmt.Sprint(p.published), want) {
			t.Errorf("%v: no %s", p.published, want)
		}
	}
}

// Commands that lie there at a takeover come before windows, but not for ever.
func TestBacklogThatIsNoCommand(t *testing.T) {
	o := newOwner(machinetest.OneValue(t))
	o.Start()
	o.On(Fenced{At: Position{Windows: 0, Commands: 3}, CommandsEnd: 5}, noon)
	asks := func(actions []Action) bool {
		return slices.ContainsFunc(actions, is[ReadWindows])
	}
	if asks(o.On(Loaded{}, noon)) {
		t.Error("windows are read before the commands")
	}
	for i := range backlogTicks {
		if got := asks(o.On(Tick{Now: noon}, noon)); got != (i == backlogTicks-1) {
			t.Fatalf("tick %d: windows are read: %v", i, got)
		}
	}
}

// Each command gets one answer: an alert, or a letter that says why there is none.
func TestOwnerCommands(t *testing.T) {
	m := machinetest.OneValue(t)
	send := func(p *partition, key, id string, action event.Action, when time.Time) {
		c := event.Command{ID: id, Machine: key, Action: action, By: "kim", Note: "n", Issued: when, Until: when.Add(time.Hour)}
		p.commands = append(p.commands, Command{Key: key, Value: event.JSON(c), Offset: int64(len(p.commands)), At: when})
	}
	p := newPartition()
	for seq := range uint64(3) {
		p.windows = append(p.windows, at(seq, "T1", false))
	}
	send(p, drill, "old", event.Shelve, noon.Add(-time.Hour)) // of before the group
	o := newOwner(m)
	p.finish(o, o.Start(), 9)
	if p.position != (Position{Windows: 3, Features: -1, Commands: 1}) || len(p.published) != 3 {
		t.Fatalf("at %+v, published %q", p.position, p.published)
	}
	p.published = nil
	send(p, drill, "a", event.Suppress, noon)
	send(p, drill, "a", event.Suppress, noon)
	send(p, "acme/line1/none", "b", event.Suppress, noon)
	p.commands = append(p.commands, Command{Key: drill, Value: []byte("{"), Offset: 4, At: noon})
	send(p, drill, "c", event.Retire, noon)
	send(p, drill, "d", event.Suppress, noon)
	send(p, drill, "c", event.Retire, noon)
	o = newOwner(m)
	p.finish(o, o.Start(), 9)
	want := []string{`alert "suppressed"`, "letter 2 command a: a command of this id came before", "letter 3 command for machine", "letter 4 command: unexpected end", `alert "retired"`, "letter 6 command for machine", "letter 7 command c: a command of this id came before"}
	var got []string
	for _, s := range p.published {
		_, what, _ := strings.Cut(s, ": ")
		if kind, body, _ := strings.Cut(what, " "); kind == "alert" {
			_, body, _ = strings.Cut(body, `"state":`)
			what = kind + " " + body
		}
		got = append(got, what)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("published\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(p.records) != 1 || o.Machine(drill) != nil || p.position.Commands != int64(len(p.commands)) {
		t.Errorf("%d records, at %+v", len(p.records), p.position)
	}
	published := len(p.published)
	o = newOwner(m)
	p.finish(o, o.Start(), 9)
	if len(p.published) != published {
		t.Errorf("answered again: %q", p.published[published:])
	}
	p.windows = append(p.windows, at(3, "T1", false))
	send(p, drill, "c", event.Retire, noon.Add(10*time.Second))
	o = newOwner(m)
	p.finish(o, o.Start(), 9)
	if last := p.published[len(p.published)-1]; o.Machine(drill) == nil || !strings.Contains(last, "command c: a command of this id came before") {
		t.Errorf("a retire that comes again after the next window: %q", p.published[published:])
	}
}

// A command for a machine of which no window was judged is set aside and leaves its id free:
// the next message with that id is carried out once the machine is known.
func TestUnknownMachineLeavesTheIDFree(t *testing.T) {
	m := machinetest.OneValue(t)
	p := newPartition()
	o := newOwner(m)
	p.finish(o, o.Start(), 9)
	suppress := event.JSON(event.Command{ID: "a", Machine: drill, Action: event.Suppress, By: "kim", Note: "n", Issued: noon})
	for i := range 3 {
		p.commands = append(p.commands, Command{Key: drill, Value: suppress, Offset: int64(i), At: noon})
		if i == 0 {
			o = newOwner(m)
			p.finish(o, o.Start(), 9)
			p.windows = append(p.windows, at(0, "T1", false))
			o = newOwner(m)
			p.finish(o, o.Start(), 9)
		}
	}
	o = newOwner(m)
	p.finish(o, o.Start(), 9)
	all := strings.Join(p.published, "\n")
	for what, n := range map[string]int{"letter 0 command for machine": 1, `"state":"suppressed"`: 1, "letter 2 command a: a command of this id came before": 1, "letter": 2} {
		if got := strings.Count(all, what); got != n {
			t.Errorf("%d times %s, want %d:\n%s", got, what, n, all)
		}
	}
}

// A record that cannot be used is set aside and deleted; other machines are judged.
func TestOwnerSetsAside(t *testing.T) {
	m := machinetest.OneValue(t)
	p := newPartition()
	bad := event.StateKey{Group: group, Machine: drill}
	p.records[bad] = event.StateRecord{Key: bad, Value: []byte(`{"version":4,"machine":"` + drill + `"}`), Offset: 7}
	tool := event.StateKey{Group: group, Machine: drill, Part: event.ToolState, Tool: "T1"}
	p.records[tool] = event.StateRecord{Key: tool, Value: []byte(`{"tool":"T1","alarm":{}}`), Offset: 8}
	other := event.StateKey{Group: "trial", Machine: drill}
	p.records[other] = event.StateRecord{Key: other, Value: []byte(`[]`)}
	o := newOwner(m)
	p.finish(o, o.Start(), 1)
	if _, there := p.records[other]; !there || len(p.records) != 1 || len(p.published) != 2 || !strings.Contains(p.published[0], "it is of version 4, this program reads version 3") {
		t.Fatalf("%d records, published %q", len(p.records), p.published)
	}
	p.windows = append(p.windows, at(0, "T1", false))
	p.finish(o, []Action{ReadWindows{}}, 1)
	if o.Machine(drill) == nil || len(p.published) != 3 {
		t.Errorf("published %q", p.published)
	}
}

// What a batch counts, and from which log a message was set aside.
func TestOwnerCounts(t *testing.T) {
	for _, log := range []replyLog{WindowLog, FeatureLog} {
		o := readyOwner(t)
		a := machinetest.OneValue(t)
		var in []Input
		for _, seq := range []uint64{0, 2, 1, 1, 2, 3} { // one late, two again
			f := machinetest.Features(nil, at(seq, "T1", false))
			in = append(in, Input{Offset: int64(len(in)), At: noon, Open: func(into *window.Features) error { *into = *f; return nil }})
		}
		damaged, stopped := in[0], in[0]
		damaged.Offset, damaged.Open = 6, func(*window.Features) error { return errors.New("damaged") }
		stopped.Offset, stopped.Open = 7, func(into *window.Features) error {
			o.models.used[a.ID()].judge = nil // which is a defect
			*into = *machinetest.Features(nil, at(4, "T1", false))
			return nil
		}
		b := batchOf(t, o.On(Read{Log: log, Inputs: append(in, damaged, stopped)}, noon))
		if b.Judged != 4 || b.Late != 1 || b.Repeats != 2 || b.Panics != 1 || len(b.Letters) != 2 {
			t.Errorf("%d judged, %d late, %d repeats, %d panics, %d letters", b.Judged, b.Late, b.Repeats, b.Panics, len(b.Letters))
		}
		for i, l := range b.Letters {
			if l.Log != log || l.Offset != int64(6+i) {
				t.Errorf("log %v: %+v", log, l)
			}
		}
	}
}

// Features that are for another owner move the position, and are not worth a batch of their
// own: the next one publishes it.
func TestOwnerPassesOverFeatures(t *testing.T) {
	p := newPartition()
	o := newOwner(machinetest.OneValue(t))
	p.finish(o, o.Start(), 9)
	for seq := range uint64(3) {
		p.features = append(p.features, feature{Window: at(seq, "T1", false), others: true})
	}
	before := p.position
	actions := o.On(Read{Log: FeatureLog, Inputs: p.taken(0, 9)}, noon)
	if len(actions) != 1 || actions[0] != (ReadFeatures{3}) || p.position != before {
		t.Fatalf("%+v, at %+v", actions, p.position)
	}
	p.features = append(p.features, feature{Window: at(3, "T1", false)})
	p.finish(o, actions, 9)
	if p.position.Features != 4 || len(p.published) != 1 {
		t.Errorf("at %+v, published %q", p.position, p.published)
	}
	p.features = append(p.features, feature{Window: at(4, "T1", false), others: true})
	p.windows = append(p.windows, at(5, "T1", false))
	p.finish(o, o.On(Read{Log: FeatureLog, Inputs: p.taken(4, 1)}, noon), 1)
	p.finish(o, o.On(Read{Log: WindowLog, Inputs: p.inputs(0, 1)}, noon), 1)
	if p.position.Features != 5 || p.position.Windows != 1 {
		t.Errorf("at %+v", p.position)
	}
	if actions := o.On(FeaturesPassed(7), noon); len(actions) > 0 { // the end of a transaction lies at 5 and at 6
		t.Errorf("%+v", actions)
	}
	p.windows = append(p.windows, at(6, "T1", false))
	p.finish(o, o.On(Read{Log: WindowLog, Inputs: p.inputs(1, 1)}, noon), 1)
	if p.position.Features != 7 {
		t.Errorf("at %+v", p.position)
	}
}

// Judging features that a gateway extracted leaves the position in the windows. The machine
// remembers where the features lie, since Kafka does not have the windows.
func TestOwnerJudgesExtractedFeatures(t *testing.T) {
	p := newPartition()
	for i := range uint64(4) {
		p.features = append(p.features, feature{Window: at(i, "T1", false)})
	}
	o := newOwner(machinetest.OneValue(t))
	p.finish(o, o.Start(), 9)
	if want := (Position{Windows: -1, Features: 4}); p.position.Windows != want.Windows || p.position.Features != want.Features {
		t.Errorf("at %+v, want %+v", p.position, want)
	}
	tool := o.Machine(drill).inSpindle()
	if len(tool.Trace) != 4 || tool.Trace[3].Offset != (event.Offset{At: 3, Features: true}) {
		t.Errorf("%+v", tool.Trace)
	}
}

// A machine is silent when neither its windows nor its features wait to be judged.
func TestOwnerSilence(t *testing.T) {
	p := newPartition()
	o := NewOwner(&Settings{Group: group, Alarm: testAlarm, Silence: time.Minute}, Everything(machinetest.OneValue(t)), 0)
	p.windows = append(p.windows, at(0, "T1", false))
	p.finish(o, o.Start(), 9)
	later := noon.Add(time.Hour)
	tick := func() (asks bool) {
		actions := o.On(Tick{Now: later}, later)
		asks = slices.ContainsFunc(actions, is[AskEnd])
		p.finish(o, slices.DeleteFunc(actions, is[AskEnd]), 9)
		return asks
	}
	silent := func() bool { return strings.Contains(strings.Join(p.published, "\n"), "SILENT") }
	if !tick() {
		t.Fatal("it does not ask how far the partition goes")
	}
	p.features = append(p.features, feature{Window: at(1, "T1", false), others: true}, feature{Window: at(1, "T1", false), others: true})
	o.On(End{Windows: Bounds{0, 1}, Features: Bounds{0, 2}, Known: true}, later)
	if tick(); silent() {
		t.Fatal("silent, and two messages of features wait")
	}
	p.finish(o, o.On(Read{Log: FeatureLog, Inputs: p.taken(0, 9)}, later), 9)
	if tick(); !silent() {
		t.Error("not silent, and nothing waits")
	}
}

// A partition whose first window the group has not judged yet is not new to the group: commands that lie there are for it.
func TestPositionOfTheFirstWindow(t *testing.T) {
	for windows, want := range map[int64]int64{-1: 5, 0: 0, 7: 0} {
		o := newOwner(machinetest.OneValue(t))
		o.Start()
		o.On(Fenced{At: Position{Windows: windows, Commands: -1}, CommandsEnd: 5}, noon)
		from := int64(-1)
		for _, a := range o.On(Loaded{}, noon) {
			if read, ok := a.(ReadCommands); ok {
				from = read.From
			}
		}
		if from != want {
			t.Errorf("windows from %d on: commands from %d on, want %d", windows, from, want)
		}
	}
}

// Once the last command that lay there at a takeover is heard, no more are asked for before it is carried out.
func TestNoMoreCommandsThanLayThere(t *testing.T) {
	o := newOwner(machinetest.OneValue(t))
	o.Start()
	o.On(Fenced{At: Position{}, CommandsEnd: 2}, noon)
	o.On(Loaded{}, noon)
	o.On(CommandsRead{}, noon) // none has come for a while
	for offset, want := range []bool{true, false} {
		asks := false
		for _, a := range o.On(CommandsRead{{Key: drill, Value: []byte("{}"), Offset: int64(offset), At: noon}}, noon) {
			asks = asks || is[ReadCommands](a)
		}
		if asks != want {
			t.Errorf("after command %d more are asked for: %v", offset, asks)
		}
	}
}

// While a batch is being published all that comes waits, but only the last tick.
func TestWhatWaitsForABatch(t *testing.T) {
	o := newOwner(machinetest.OneValue(t))
	p := newPartition()
	p.windows = append(p.windows, at(0, "T1", false), at(1, "T1", false))
	p.finish(o, o.Start(), 1)
	o.On(Read{Log: WindowLog, Inputs: p.inputs(0, 1)}, noon)
	if o.phase != publishing {
		t.Fatal("nothing is published")
	}
	o.On(Read{Log: WindowLog, Inputs: p.inputs(1, 1)}, noon)
	for range 3 {
		o.On(Tick{Now: noon}, noon)
	}
	ticks, windows := 0, 0
	for _, r := range o.queue {
		if _, tick := r.reply.(Tick); tick {
			ticks++
		} else if read, ok := r.reply.(Read); ok {
			windows += len(read.Inputs)
		}
	}
	if ticks != 1 || windows != 1 {
		t.Errorf("%d ticks and %d windows wait, want one of each", ticks, windows)
	}
}

// OnReply gets a command when the owner carries it out, and all else when the owner handles it.
func TestOnReply(t *testing.T) {
	o := newOwner(machinetest.OneValue(t))
	p := newPartition()
	p.windows = append(p.windows, at(0, "T1", false))
	told := ""
	o.OnReply = func(r Reply, _ time.Time) {
		if read, ok := r.(Read); ok && read.Log == WindowLog {
			told += "window "
		} else if _, due := r.(CommandsDue); due {
			told += "command "
		}
	}
	p.finish(o, o.Start(), 1)
	for _, a := range o.On(CommandsRead{}, noon) {
		if is[AskEnd](a) {
			t.Error("it asks how far the windows go, and no command waits for them")
		}
	}
	p.commands = []Command{{Key: drill, Value: []byte("{}"), At: noon}}
	o.On(CommandsRead(p.commands), noon)
	if told != "window " {
		t.Errorf("%q, and the command waits", told)
	}
	p.finish(o, o.On(End{Windows: Bounds{0, 1}, Known: true}, noon), 1)
	if told != "window command " {
		t.Errorf("%q", told)
	}
}
