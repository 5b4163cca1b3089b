package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// published is what was published of a machine, and the laws that hold for it.
type published struct {
	t          rapid.TB
	alarm      event.AlertState            // raised or cleared, the last one
	advisories map[string]event.AlertState // by kind and subject
	windows    map[string]bool             // that have a result
	ids        map[string]bool             // of everything
}

func newPublished(t rapid.TB) *published {
	return &published{t: t, advisories: make(map[string]event.AlertState), windows: make(map[string]bool), ids: make(map[string]bool)}
}

func (p *published) id(id string) {
	p.t.Helper()
	if p.ids[id] {
		p.t.Fatalf("%s is published twice", id)
	}
	p.ids[id] = true
}

// decision checks what follows from an event. Window is nil if it is not a window.
func (p *published) decision(d Decision, w *window.Window) {
	p.t.Helper()
	if w != nil {
		id := event.WindowID(w.Machine, w.EpochString(), w.Seq)
		if d.Repeat != p.windows[id] || d.Repeat != (d.Result == nil) {
			p.t.Fatalf("window %s: judged before %v, %+v", id, p.windows[id], d)
		}
		p.windows[id] = true
		if d.Result != nil {
			p.id(d.Result.ID)
		}
	} else if d.Result != nil {
		p.t.Fatalf("a result without a window: %s", event.JSON(d.Result))
	}
	for _, a := range d.Alerts {
		switch a.State {
		case event.Refused: // again, if the command is sent again when it is forgotten
			continue
		case event.Raised, event.Cleared:
			if p.alarm == a.State || p.alarm == "" && a.State == event.Cleared {
				p.t.Fatalf("%s after %q: %s", a.State, p.alarm, event.JSON(a))
			}
			p.alarm = a.State
		}
		p.id(a.ID)
	}
	for _, a := range d.Advisories {
		p.id(a.ID)
		about := string(a.Kind) + "/" + a.Subject
		if p.advisories[about] == a.State || p.advisories[about] == "" && a.State == event.Cleared {
			p.t.Fatalf("%s after %q: %s", a.State, p.advisories[about], event.JSON(a))
		}
		p.advisories[about] = a.State
	}
}

// lawModels are models of the same features, one of them with states of the machine and
// wear, and one of other features.
func lawModels(t *testing.T) []*model.Model {
	full := machinetest.Cycling(t)
	full.Wear, full.Drift = machinetest.WithWear(t).Wear, machinetest.Unsure(t).Drift
	if _, err := full.Encode(); err != nil {
		t.Fatal(err)
	}
	return []*model.Model{full, machinetest.Unsure(t), machinetest.OfThree(t), otherFeatures(t)}
}

// otherFeatures returns a model that learns a tool from another number of windows.
func otherFeatures(t machinetest.TB) *model.Model {
	m := machinetest.OneValue(t)
	m.Reference.Windows = 3
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// day draws what happens to a machine.
type day struct {
	t        *rapid.T
	seq      map[uint64]uint64 // next one by epoch
	epoch    uint64
	tool     string
	life     string
	worn     bool
	when     time.Duration // since noon, by every clock
	commands int
	sent     []event.Command
}

func newDay(t *rapid.T) *day { return &day{t: t, seq: make(map[uint64]uint64), epoch: 1, tool: "T1"} }

// one draws true about once in so many times.
func (d *day) one(in int, label string) bool { return rapid.IntRange(0, in-1).Draw(d.t, label) == in-1 }

// window draws the next window of the current epoch, one that was sent before or is out of
// order, or one of another epoch.
func (d *day) window() (w *window.Window, life string) {
	if d.one(12, "tool change") {
		d.tool = rapid.SampledFrom([]string{"T1", "T2", "T3", "", "T/4"}).Draw(d.t, "tool")
	}
	if d.one(30, "new life") {
		d.life = rapid.SampledFrom([]string{"", "a", "b"}).Draw(d.t, "life")
	}
	if d.one(25, "new epoch") {
		d.epoch = rapid.Uint64Range(1, 4).Draw(d.t, "epoch")
	}
	epoch, tool, seq := d.epoch, d.tool, d.seq[d.epoch]
	switch {
	case d.one(10, "stray"):
		epoch = rapid.Uint64Range(1, 4).Draw(d.t, "of epoch")
		tool = rapid.SampledFrom([]string{"T1", "T2", "T5"}).Draw(d.t, "of tool")
		seq = d.seq[epoch]
		d.seq[epoch]++
	case d.one(10, "out of order"):
		seq = rapid.Uint64Range(0, seq+3).Draw(d.t, "seq")
	default:
		d.seq[epoch]++
	}
	if d.one(8, "wear") {
		d.worn = !d.worn
	}
	w = at(seq, tool, d.worn != d.one(6, "odd"))
	if d.one(10, "idle") {
		w.Samples = machinetest.Idle(seq, tool).Samples
	}
	w.Epoch = epoch
	w.Samples[0][0] += float32(rapid.IntRange(0, 1).Draw(d.t, "more"))
	w.Hole = rapid.SampledFrom([]string{"", "H1", "H2"}).Draw(d.t, "hole")
	if d.one(12, "fault of a sensor") {
		w.Quality[0] = rapid.SampledFrom([]signal.Quality{signal.ClockStep, signal.Flatline}).Draw(d.t, "quality")
	}
	return w, d.life
}

// command draws a command, perhaps one that was sent before.
func (d *day) command(incident string) event.Command {
	if len(d.sent) > 0 && d.one(8, "command again") {
		return rapid.SampledFrom(d.sent).Draw(d.t, "sent before")
	}
	now := noon.Add(d.when)
	c := event.Command{
		ID: fmt.Sprint("c", len(d.sent)), Machine: drill, Incident: incident, By: "kim", Note: "n", Issued: now, Until: now.Add(time.Hour),
		Action: rapid.SampledFrom(event.Actions[:len(event.Actions)-2]).Draw(d.t, "action"),
	}
	d.sent = append(d.sent, c)
	return c
}

func (d *day) nextID() string {
	d.commands++
	return fmt.Sprint("n", d.commands)
}

// step lets something happen, which is the same for all benches, and returns what followed.
func (d *day) step(benches []*bench, models []*model.Model) (decisions []Decision, w *window.Window) {
	d.when += time.Duration(rapid.IntRange(0, 90).Draw(d.t, "seconds")) * time.Second
	now := noon.Add(d.when)
	first := benches[0]
	var e Event
	kind := 0
	if len(first.m.Epochs) > 0 { // an owner refuses what comes before the first window
		kind = rapid.IntRange(0, 40).Draw(d.t, "event")
	}
	switch kind {
	case 40:
		e = Tick{Now: now}
	case 39:
		c := d.command(first.incident())
		e = Command{Key: drill, Value: event.JSON(c), At: now}
	case 38:
		c := event.Command{ID: d.nextID(), Machine: drill, Action: event.NewTool, Tool: d.tool, By: "kim", Issued: now}
		e = Command{Key: drill, Value: event.JSON(c), At: now}
	case 37:
		if d.one(2, "retire") {
			c := event.Command{ID: d.nextID(), Machine: drill, Action: event.Retire, By: "kim", Issued: now}
			e = Command{Key: drill, Value: event.JSON(c), At: now}
		}
	case 36:
		if len(first.m.Evidence) > 0 {
			job := first.m.Evidence[0]
			about, text := job.About(drill, "")
			about.Text = text
			e = EvidenceDone{job, about}
		}
	case 35:
		left := rapid.Uint64Range(0, 4).Draw(d.t, "windows left")
		for _, b := range benches {
			if r := b.m.judges.startBuild(now); r != nil {
				for i := range left {
					r.Observe(machinetest.Features(nil, at(i, r.job.Tool, false)), now)
				}
				decisions = append(decisions, b.apply(built{r}))
			}
		}
		if len(decisions) > 0 {
			return decisions, nil
		}
	case 34:
		if d.one(3, "model") {
			m := models[rapid.IntRange(0, len(models)-1).Draw(d.t, "other model")]
			for _, b := range benches {
				b.restartUnder(m)
			}
			return nil, nil
		}
	}
	var life string
	if e == nil {
		w, life = d.window()
	}
	for _, b := range benches {
		if w != nil {
			copied := *w
			copied.ToolLife = life
			e = Window{Features: machinetest.Features(b.model, &copied), Offset: event.Offset{At: b.offset}, At: now, Now: now}
			b.offset++
		}
		decisions = append(decisions, b.apply(e))
	}
	return decisions, w
}

// remembered returns all that a machine would write, in the order of its tools.
func remembered(m *Machine) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", event.JSON(m.head()), event.JSON(m.slow()))
	for _, t := range m.Tools {
		fmt.Fprintf(&b, "%s\n", event.JSON(t))
		for _, j := range slices.SortedFunc(slices.Values(t.Judgings), func(a, b *Judging) int { return strings.Compare(a.Model, b.Model) }) {
			fmt.Fprintf(&b, "%s\n", event.JSON(j))
		}
	}
	return b.String()
}

// A machine that is restarted at any moment remembers and decides the same as one that
// never was. Raised and cleared alternate, every window has one result, and no id is
// published twice.
func TestLaws(t *testing.T) {
	models := lawModels(t)
	rapid.Check(t, func(t *rapid.T) {
		latch := rapid.Bool().Draw(t, "latch")
		settings := func(s *Settings) { s.Alarm.Latch, s.Evidence = latch, true }
		first := models[rapid.IntRange(0, len(models)-1).Draw(t, "model")]
		steady, restarted := newBench(t, first, settings), newBench(t, first, settings)
		restarted.unchecked = true
		p, d := newPublished(t), newDay(t)
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			decisions, w := d.step([]*bench{steady, restarted}, models)
			if decisions == nil {
				continue
			}
			if a, b := event.JSON(decisions[0]), event.JSON(decisions[1]); string(a) != string(b) {
				t.Fatalf("never restarted: %s\nrestarted: %s", a, b)
			}
			p.decision(decisions[0], w)
			if steady.m.gone { // its owner forgets it
				if len(steady.records) != 1 || len(restarted.records) != 1 || p.alarm == event.Raised {
					t.Fatalf("retired, with %d records left and the alarm %s", len(steady.records), p.alarm)
				}
				steady, restarted = newBench(t, steady.model, settings), newBench(t, steady.model, settings)
				restarted.unchecked = true
				clear(p.windows)
				clear(p.ids)
				continue
			}
			if rapid.Bool().Draw(t, "restart") {
				restarted.restart()
				if a, b := remembered(steady.m), remembered(restarted.m); a != b {
					t.Fatalf("never restarted:\n%s\nrestarted:\n%s", a, b)
				}
			}
		}
	})
}
