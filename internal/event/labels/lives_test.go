package labels

import (
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// A window is of the life that was declared last before it began, also under another name of its machine; the ingester's life wins.
func TestLivesOfWindows(t *testing.T) {
	minute := func(n int) time.Time { return time.Unix(0, 0).Add(time.Duration(n) * time.Minute) }
	isNew := func(machine, life string, n int) event.Alert {
		return event.Alert{Machine: machine, Tool: "T1", ToolLife: life, State: event.ToolIsNew, At: minute(n)}
	}
	l := livesOf([]event.Alert{
		isNew("new", "c", 40), {Machine: "new", Was: "old", State: event.Renamed, At: minute(30), Command: "r"},
		{Machine: "new", Was: "old", State: event.Renamed, At: minute(31), Command: "r", Group: "b"},
		isNew("old", "a", 10), isNew("old", "b", 20), isNew("old", "b", 20), // of another group
	})
	for _, tc := range []struct {
		machine, tool, named string
		at                   int
		want                 string
	}{
		{"old", "T1", "", 9, ""}, {"old", "T1", "", 10, "a"}, {"old", "T1", "", 25, "b"}, {"old", "T2", "", 25, ""}, {"other", "T1", "", 25, ""},
		{"new", "T1", "", 25, ""}, {"new", "T1", "", 35, "b"}, {"new", "T1", "", 45, "c"}, {"new", "T1", "x", 45, "x"},
	} {
		if got := l.Of(tc.machine, tc.tool, tc.named, minute(tc.at)); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
	if len(l.Renamed) != 1 {
		t.Errorf("%v", l.Renamed)
	}
}
