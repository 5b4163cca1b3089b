package train

import (
	"fmt"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/table/wear"
)

// A label goes to the life of its tool. Answers count only where there is no label.
func TestLabelMeasurements(t *testing.T) {
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	minute := func(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Minute))) }
	um := func(v float64) *float64 { return &v }
	label := func(l event.Label) event.Label {
		l.Machine, l.Tool, l.By, l.Given = "acme/usk25", "T8", "kim", start
		l.ID = l.NewLabelID()
		return l
	}
	a := label(event.Label{At: minute(10), WearUM: um(100)})
	b := a
	b.ToolLife, b.WearUM = "2", um(50)
	b.ID = b.NewLabelID()
	gone := a
	gone.Revoked = &event.Revoked{}
	weak := label(event.Label{At: minute(3), Until: minute(5), State: "worn"})
	third := weak
	third.ToolLife = "3"
	ms := LabelMeasurements([]event.Label{a, b, gone}, []event.Label{weak, third})
	j, err := wear.NewJoin(ms, wear.Auto)
	if err != nil {
		t.Fatal(err)
	}
	window := func(life string, at float64) wear.Window {
		return wear.Window{Machine: "acme/usk25", Tool: wear.ToolOf("T8", life), Start: minute(at), Length: time.Second}
	}
	for _, life := range []string{"", "2", "3", "4"} {
		j.See(window(life, 0))
		j.See(window(life, 10))
	}
	for _, tc := range []struct {
		life string
		at   float64
		want string
	}{
		{"", 5, "50 "}, {"2", 5, "25 "}, {"3", 4, "NaN worn"}, {"3", 2, "NaN "}, {"3", 6, "NaN "}, {"4", 5, "50 "},
	} {
		m, _ := j.Peek(window(tc.life, tc.at))
		if got := fmt.Sprint(m.VBMaxUM, " ", m.State); got != tc.want {
			t.Errorf("life %s at %v: %q, want %q", tc.life, tc.at, got, tc.want)
		}
	}
	if got := fmt.Sprint(j.Sources()); got != "map[alarms:1 floor:2]" {
		t.Errorf("labels from %s", got)
	}
}
