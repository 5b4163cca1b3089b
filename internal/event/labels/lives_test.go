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

// A machine that was retired remembers no tools: its tools have no life when they come back, also where a later machine has its name, until they are
// declared new again. A rename, which retires the old name, takes what the tools were along.
func TestLivesEndWithTheMachine(t *testing.T) {
	minute := func(n int) time.Time { return time.Unix(0, 0).Add(time.Duration(n) * time.Minute) }
	isNew := func(life string, n int) event.Alert {
		return event.Alert{Machine: "old", Tool: "T1", ToolLife: life, State: event.ToolIsNew, At: minute(n), Command: life}
	}
	retired := func(group string, n int) event.Alert {
		return event.Alert{Machine: "old", State: event.Retired, At: minute(n), Command: minute(n).String(), Group: group}
	}
	renamed := func(to string, n int) event.Alert {
		return event.Alert{Machine: to, Was: "old", State: event.Renamed, At: minute(n), Command: to}
	}
	l := livesOf([]event.Alert{
		isNew("a", 10), retired("one", 20), retired("two", 20), renamed("first", 21), // with life a
		retired("one", 30), renamed("second", 31), // T1 came back at 25 without a life
		isNew("b", 40), retired("one", 50), retired("two", 50), renamed("third", 51), // with life b
	})
	for _, tc := range []struct {
		machine string
		at      int
		want    string
	}{
		{"old", 15, "a"}, {"old", 25, ""}, {"first", 22, "a"}, {"second", 32, ""}, {"old", 35, ""}, {"old", 45, "b"}, {"old", 55, ""}, {"third", 52, "b"},
	} {
		if got := l.Of(tc.machine, "T1", "", minute(tc.at)); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}
