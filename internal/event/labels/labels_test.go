package labels

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/table/wear"
)

var start = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)

func minute(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Minute))) }

func um(v float64) *float64 { return &v }

func label(l event.Label) event.Label {
	l.Machine, l.Tool, l.By, l.Given = "acme/usk25", "T8", "kim", start
	l.ID = l.NewLabelID()
	return l
}

// words are what training knows without a configuration.
var words Classes = wear.Rule{}.StateClass

func TestContradictions(t *testing.T) {
	worn := label(event.Label{At: minute(10), WearUM: um(300), State: "worn"})
	other := worn
	other.ToolLife = "2"
	revoked := worn
	revoked.Revoked = &event.Revoked{By: "kim", Reason: "x", At: start}
	span := label(event.Label{At: minute(10), Until: minute(20), State: "worn"})
	hole := label(event.Label{Hole: "H1", State: "worn"})
	for name, tc := range map[string]struct {
		before, new event.Label
		want        string
	}{
		"a correction":             {worn, label(event.Label{At: minute(10), State: "healthy"}), ""},
		"healthy before":           {worn, label(event.Label{At: minute(5), State: "healthy"}), ""},
		"healthy just before":      {worn, label(event.Label{At: minute(9.5), State: "new"}), "it is new and worn at about the same time"},
		"healthy later":            {worn, label(event.Label{At: minute(60), State: "i.O."}), "a tool that is worn is not i.O. later"},
		"healthy within a span":    {span, label(event.Label{At: minute(15), State: "healthy"}), "not healthy later"},
		"more wear later":          {worn, label(event.Label{At: minute(60), WearUM: um(310)}), ""},
		"less wear later":          {worn, label(event.Label{At: minute(60), WearUM: um(290)}), "wear falls from 300 µm, worn to 290 µm"},
		"more wear before":         {worn, label(event.Label{At: minute(1), WearUM: um(310)}), "wear falls from 310 µm to 300 µm, worn"},
		"less, of a tool like new": {other, label(event.Label{At: minute(60), WearUM: um(10)}), ""},
		"less, of a revoked label": {revoked, label(event.Label{At: minute(60), WearUM: um(10)}), ""},
		"a word without a class":   {worn, label(event.Label{At: minute(60), State: "chatter"}), ""},
		"another hole":             {hole, label(event.Label{Hole: "H2", State: "healthy"}), ""},
		"a hole and a time":        {hole, worn, "one of them has a time"},
	} {
		got := words.contradiction([]event.Label{tc.before}, tc.new)
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) || got != "" && !strings.HasPrefix(got, "label "+tc.before.ID) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// What is probably a mistake is asked about.
func TestDoubts(t *testing.T) {
	seen := Seen{"acme/usk25": {"T8": ""}}
	for name, tc := range map[string]struct {
		seen Seen
		l    event.Label
		want string
	}{
		"all right":          {seen, event.Label{At: start, WearUM: um(120)}, ""},
		"an unseen machine":  {Seen{"acme/other": nil}, event.Label{State: "worn"}, "no monitor has seen machine acme/usk25; monitors know acme/other"},
		"an unseen tool":     {Seen{"acme/usk25": {"T9": ""}}, event.Label{State: "worn"}, "no monitor remembers tool T8 of acme/usk25; it has T9"},
		"another life":       {Seen{"acme/usk25": {"T8": "2"}}, event.Label{ToolLife: "3", State: "worn"}, "the tool that monitors saw last under the name T8 has life 2, not 3"},
		"a life of no one":   {seen, event.Label{ToolLife: "x", State: "worn"}, "has no life, not x"},
		"the life":           {Seen{"acme/usk25": {"T8": "2"}}, event.Label{ToolLife: "2", State: "worn"}, ""},
		"of an alarm":        {seen, event.Label{ToolLife: "x", State: "worn", Incident: "i"}, ""},
		"in mm":              {seen, event.Label{WearUM: um(0.34)}, "0.34 µm is less than anyone can measure: is it in mm?"},
		"a misspelt state":   {seen, event.Label{State: "wrn"}, `state "wrn" says neither worn nor healthy`},
		"a word in German":   {seen, event.Label{State: "verschlissen"}, ""},
		"tomorrow":           {seen, event.Label{At: minute(24 * 60), State: "worn"}, "2026-11-03T06:00:00Z is in the future"},
		"until tomorrow":     {seen, event.Label{At: start, Until: minute(24 * 60), State: "worn"}, "2026-11-03T06:00:00Z is in the future"},
		"by another's clock": {seen, event.Label{At: minute(0.5), State: "worn"}, ""},
	} {
		if got := strings.Join(words.Doubts(nil, tc.seen, label(tc.l)), "; "); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A false alarm and a confirmed one are labels; an alarm that no one answered, a mark that was withdrawn, and a tool that came back are none.
func TestAnswers(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	cfg := b.Config("test")
	if all, err := Answers(t.Context(), cfg); err != nil || len(all) != 0 {
		t.Fatalf("%v, %v", all, err)
	}
	if _, err := bus.Apply(t.Context(), cfg, 2, 1); err != nil {
		t.Fatal(err)
	}
	raised := event.Alert{State: event.Raised, Since: minute(1), At: minute(2), ToolLife: "2"}
	acked := event.Alert{State: event.Acknowledged, Since: minute(1), At: minute(3), By: "kim", Note: "dull"}
	changed := event.Alert{State: event.Cleared, Since: minute(1), At: minute(9), Reason: "tool_change"}
	marked := event.Alert{State: event.MarkedFalse, Since: minute(1), At: minute(30), By: "lee"}
	falseAck, recovered, unmarked := acked, changed, marked
	falseAck.FalseAlarm, recovered.Reason, unmarked.State = true, "recovered", event.UnmarkedFalse
	var msgs []bus.Message
	var unlike []string // alarms of which only one group still knew when a person marked them as false
	for _, c := range "BCDEFGHI" {
		unlike = append(unlike, "A-"+strings.Repeat(string(c), 8))
	}
	all := map[string][]event.Alert{
		"A-22222222": {raised, acked, changed}, "A-33333333": {raised, changed, marked}, "A-44444444": {raised, falseAck, recovered},
		"A-55555555": {raised, changed}, "A-66666666": {raised, acked, recovered}, "A-77777777": {raised, changed, marked, unmarked},
		"A-AAAAAAAA": {marked},
	}
	for _, incident := range unlike {
		all[incident] = []event.Alert{raised, acked, changed, marked}
	}
	for incident, alerts := range all {
		for _, group := range []string{"tcm-a", "tcm-b"} {
			for _, a := range alerts {
				if group == "tcm-b" && a.State == event.MarkedFalse && slices.Contains(unlike, incident) {
					continue
				}
				a.Group, a.Machine, a.Tool, a.Incident = group, "acme/usk25", "T"+incident[2:], incident
				msgs = append(msgs, envelope.Event(bus.TopicAlerts, "x", a.Machine, event.AlertType, a.At, event.JSON(a)))
			}
		}
	}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := out.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	answers, err := Answers(t.Context(), cfg)
	var got []string
	for _, l := range answers {
		got = append(got, fmt.Sprintf("%s %s %s %s %v", l.Incident[2:4], l.ToolLife, l.State, l.By, max(0, l.Until.Sub(l.At))))
	}
	slices.Sort(got)
	want := []string{"22 2 worn kim 8m0s", "33 2 healthy lee 8m0s", "44 2 healthy kim 8m0s", "AA  healthy lee 0s"}
	for _, incident := range unlike {
		want = append(want, incident[2:4]+" 2 healthy lee 8m0s")
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// Labels are written in batches. A write that is cut off says how many are kept.
func TestWriteIsCutOff(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	cfg := b.Config("test")
	if _, err := bus.Apply(t.Context(), cfg, 2, 1); err != nil {
		t.Fatal(err)
	}
	var given []event.Label
	for i := range 2*writeBatch + 10 {
		given = append(given, label(event.Label{At: minute(float64(i)), State: "worn"}))
	}
	ctx, stop := context.WithCancel(t.Context())
	var done []int
	err := Write(ctx, cfg, given, func(n int) {
		done = append(done, n)
		stop()
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1000 of 2010 labels are kept") || !slices.Equal(done, []int{writeBatch}) {
		t.Errorf("%v, told %v", err, done)
	}
	done = nil
	if err := Write(t.Context(), cfg, given, func(n int) { done = append(done, n) }); err != nil || !slices.Equal(done, []int{1000, 2000, 2010}) {
		t.Errorf("%v, told %v", err, done)
	}
	if all, _, err := Read(t.Context(), cfg); err != nil || len(all) != len(given) {
		t.Errorf("%d labels, %v", len(all), err)
	}
}
