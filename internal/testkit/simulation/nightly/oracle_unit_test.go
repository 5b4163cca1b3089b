package nightly

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/window"
)

// The oracle accepts the topics of an undisturbed run, and finds each way to spoil them.
func TestOracle(t *testing.T) {
	o := &oracle{machinetest.OneValue(t), []string{"one", "two"}}
	for name, tc := range map[string]struct {
		spoil func(*topics)
		want  string // in what the oracle says; empty: nothing
	}{
		"no trouble":                     {func(*topics) {}, ""},
		"a window twice in the log":      {func(l *topics) { l.windows[0] = append(l.windows[0], l.windows[0][3]) }, ""},
		"a window is lost":               {func(l *topics) { l.windows[0] = l.windows[0][:39] }, "was cut and does not lie in Kafka"},
		"a result is lost":               {func(l *topics) { l.results = l.results[1:] }, "is missing"},
		"a result comes twice":           {func(l *topics) { l.results = append(l.results, l.results[5]) }, "has two results, which are equal"},
		"two results differ":             {func(l *topics) { l.results = append(l.results, changed(l.results[5])) }, "has two results, which differ"},
		"a result is another one":        {func(l *topics) { l.results[5] = changed(l.results[5]) }, "and without trouble"},
		"an alarm is lost":               {func(l *topics) { l.alerts = l.alerts[1:] }, "is missing"},
		"an alarm comes twice":           {func(l *topics) { l.alerts = append(l.alerts, l.alerts[0]) }, "is there twice, and both are equal"},
		"cleared comes before raised":    {func(l *topics) { slices.Reverse(l.alerts) }, "do not alternate"},
		"an alarm of no window":          {func(l *topics) { l.alerts = append(l.alerts, renamed(l.alerts[0])) }, "is there, and is not without trouble"},
		"a window is set aside":          {func(l *topics) { l.dead = append(l.dead, bus.DeadLetter(l.windows[0][3], "why", time.Time{})) }, "set aside once more than it should be: why"},
		"a command is not answered":      {func(l *topics) { l.commands[0] = append(l.commands[0], command("c2", 1)) }, "was not answered"},
		"a repeated command is not said": {func(l *topics) { l.commands[0] = append(l.commands[0], command("c1", 1)) }, "2 groups have not set it aside"},
		"a repeated command is set aside by both groups": {func(l *topics) {
			again := command("c1", 1)
			l.commands[0] = append(l.commands[0], again)
			l.dead = append(l.dead, bus.DeadLetter(again, "came before", time.Time{}), bus.DeadLetter(again, "came before", time.Time{}))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cut, left := o.left(t)
			tc.spoil(left)
			wrong := strings.Join(o.check(cut, left), "\n")
			if tc.want == "" && wrong != "" || !strings.Contains(wrong, tc.want) {
				t.Errorf("the oracle says %q, want %q", wrong, tc.want)
			}
		})
	}
}

// The same as TestOracle, for the events that the receiver of a route took.
func TestCheckRoute(t *testing.T) {
	o := &oracle{machinetest.OneValue(t), []string{"one", "two"}}
	_, left := o.left(t)
	for name, tc := range map[string]struct {
		spoil func([]delivery) []delivery
		want  string // in what checkRoute says; empty: nothing
	}{
		"all in order":           {func(got []delivery) []delivery { return got }, ""},
		"an event comes again":   {func(got []delivery) []delivery { return append(got, got[0]) }, ""},
		"an event is lost":       {func(got []delivery) []delivery { return got[1:] }, "was not delivered"},
		"the last event is lost": {func(got []delivery) []delivery { return got[:len(got)-1] }, "was not delivered"},
		"an event is early": {func(got []delivery) []delivery {
			got[0], got[1] = got[1], got[0]
			return got
		}, "which was published earlier"},
		"an event is changed": {func(got []delivery) []delivery {
			got[1].body = append(slices.Clone(got[1].body), ' ')
			return got
		}, "and published as"},
		"an event of another group": {func(got []delivery) []delivery {
			return append(got, delivery{"x" + got[0].id, got[0].machine, got[0].body})
		}, "was not published"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []delivery
			for _, m := range left.alerts {
				if a := (event.Alert{}); json.Unmarshal(m.Value, &a) == nil && a.Group == "one" {
					got = append(got, delivery{a.ID, a.Machine, m.Value})
				}
			}
			if len(got) < 2 {
				t.Fatalf("only %d events of the group", len(got))
			}
			wrong := strings.Join(checkRoute("one", left.alerts, tc.spoil(got)), "\n")
			if tc.want == "" && wrong != "" || !strings.Contains(wrong, tc.want) {
				t.Errorf("checkRoute says %q, want %q", wrong, tc.want)
			}
		})
	}
}

// left returns the topics after an undisturbed run: a tool wears out, and a person declares a new
// one.
func (o *oracle) left(t *testing.T) (cut []string, left *topics) {
	t.Helper()
	codec, err := window.NewCodec(o.model.Layout, o.model.Window)
	if err != nil {
		t.Fatal(err)
	}
	left = &topics{windows: make([][]bus.Message, 1), commands: make([][]bus.Message, 1)}
	for i := range uint64(40) {
		w := machinetest.At(i, "T1", i >= 20)
		e, err := codec.Seal(w)
		if err != nil {
			t.Fatal(err)
		}
		m := envelope.Window(e)
		m.Offset = int64(i)
		left.windows[0] = append(left.windows[0], m)
		cut = append(cut, event.WindowID(w.Machine, w.EpochString(), w.Seq))
	}
	left.commands[0] = []bus.Message{command("c1", 0)}
	for _, group := range o.groups {
		p, err := o.calm(group, codec, left, map[string]string{"c1": cut[35]})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range cut {
			left.results = append(left.results, bus.Message{Value: p.results[id+"/"+group]})
		}
		for _, id := range p.order {
			left.alerts = append(left.alerts, bus.Message{Value: p.alerts[id], Headers: []bus.Header{{Key: "ce_id", Value: []byte(id)}}})
		}
	}
	if len(left.alerts) < 4 {
		t.Fatalf("only %d events", len(left.alerts))
	}
	return cut, left
}

func command(id string, offset int64) bus.Message {
	c := event.Command{ID: id, Machine: machinetest.Drill, Action: event.NewTool, Tool: "T1", By: "kim", Issued: time.Unix(1, 0)}
	return bus.Message{
		Topic: bus.TopicCommands, Key: c.Machine, Offset: offset, Time: c.Issued, Value: event.JSON(c),
		Headers: []bus.Header{{Key: "ce_id", Value: []byte(id)}},
	}
}

// changed returns an event with another body, renamed one with another id.
func changed(m bus.Message) bus.Message {
	m.Value = slices.Concat(m.Value[:len(m.Value)-1], []byte(`,"more":1}`))
	return m
}

func renamed(m bus.Message) bus.Message {
	m.Value = fmt.Append(nil, strings.Replace(string(m.Value), `{"id":"`, `{"id":"x`, 1))
	return m
}
