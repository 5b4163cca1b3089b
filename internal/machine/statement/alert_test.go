package statement

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// The texts about a recording without a clock count seconds from its start.
func TestTextsWithoutClock(t *testing.T) {
	a := event.Alert{Since: time.Unix(75, 250e6).UTC(), Faulty: 5, Of: 8, K: 5, N: 8, Score: 0.9}
	a.Alarm = "raised"
	for change, want := range map[alarm.Change]string{
		alarm.Raised: "FAULTY since second 75.25, 5 of 8", alarm.Cleared: "alarm of second 75.25 cleared", alarm.Returned: "alarm of second 75.25 is over", alarm.Acknowledged: "alarm of second 75.25 acknowledged",
	} {
		if got := Alert(change, &a, ""); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", change, got, want)
		}
	}
	if a.Reason = "tool_back"; !strings.HasPrefix(Alert(alarm.Raised, &a, ""), "is back, FAULTY since second 75.25.") {
		t.Errorf("a tool that is back: %q", Alert(alarm.Raised, &a, ""))
	}
	a.Since = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	if got := Alert(alarm.Raised, &a, ""); !strings.HasPrefix(got, "is back, FAULTY since 2026-11-02 06:00:00.") {
		t.Errorf("with a clock: %q", got)
	}
}

// What each change of an alarm is in words.
func TestAlert(t *testing.T) {
	a := event.Alert{
		Since: time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 2, 14, 0, 0, 0, time.UTC), Faulty: 5, Of: 8, Score: 0.9, Alarm: "raised", By: "kim", Note: "why.",
	}
	for want, change := range map[string]func(*event.Alert) alarm.Change{
		"FAULTY since 06:00:00, 5 of 8 cutting windows, score 0.90. Change the tool before the next part.": func(*event.Alert) alarm.Change { return alarm.Raised },
		"FAULTY since 06:00:00, not announced while the alarm was masked. Change the tool before the next part.": func(a *event.Alert) alarm.Change {
			a.Score = 0
			return alarm.Raised
		},
		"is back, FAULTY since 2026-11-02 06:00:00. Change the tool before the next part.": func(a *event.Alert) alarm.Change {
			a.Reason = "tool_back"
			return alarm.Raised
		},
		"FAULTY since 06:00:00, 5 of 8 cutting windows, score 0.90. Look at it before the next part: chatter.": func(a *event.Alert) alarm.Change {
			a.Finding = "chatter"
			return alarm.Raised
		},
		"FAULTY since 06:00:00, not announced while the alarm was masked. Look at it before the next part: chatter.": func(a *event.Alert) alarm.Change {
			a.Finding, a.Score = "chatter", 0
			return alarm.Raised
		},
		"is back, FAULTY since 2026-11-02 06:00:00. Look at it before the next part: chatter.": func(a *event.Alert) alarm.Change {
			a.Finding, a.Reason = "chatter", "tool_back"
			return alarm.Raised
		},
		"is back, FAULTY since 2026-11-02 06:00:00. Its alarm was acknowledged.": func(a *event.Alert) alarm.Change {
			a.Reason, a.Alarm = "tool_back", "acknowledged"
			return alarm.Raised
		},
		"FAULTY again, 5 of 8 cutting windows, score 0.90; the alarm of 06:00:00 is not acknowledged.": func(*event.Alert) alarm.Change { return alarm.Reactivated },
		"alarm of 06:00:00 is over, 5 of the last 8 windows are faulty; it waits to be acknowledged.":  func(*event.Alert) alarm.Change { return alarm.Returned },
		"alarm of 06:00:00 cleared, none of the last 8 windows is faulty.": func(a *event.Alert) alarm.Change {
			a.Faulty = 0
			return alarm.Cleared
		},
		"alarm of 06:00:00 cleared, 5 of the last 8 windows is faulty.": func(*event.Alert) alarm.Change { return alarm.Cleared },
		"alarm of 06:00:00 cleared, tool changed to T2.": func(a *event.Alert) alarm.Change {
			a.Reason = "tool_change"
			return alarm.Cleared
		},
		"alarm of 06:00:00 cleared, acknowledged by kim: why.": func(a *event.Alert) alarm.Change {
			a.Reason = "acknowledged"
			return alarm.Cleared
		},
		"alarm of 06:00:00 cleared, declared new by its ingester.": func(a *event.Alert) alarm.Change {
			a.Reason, a.By, a.Note = "new_tool", "", ""
			return alarm.Cleared
		},
		"alarm of 06:00:00 cleared, machine retired by kim: why.": func(a *event.Alert) alarm.Change {
			a.Reason = "retired"
			return alarm.Cleared
		},
		"alarm of 06:00:00 acknowledged by kim: why.": func(*event.Alert) alarm.Change { return alarm.Acknowledged },
		"alarm of 06:00:00 acknowledged as false by kim: why.": func(a *event.Alert) alarm.Change {
			a.FalseAlarm = true
			return alarm.Acknowledged
		},
		"alarm shelved until 2026-11-02 14:00:00 UTC by kim: why.": func(*event.Alert) alarm.Change { return alarm.Shelved },
		"the shelf of its alarm is over.": func(a *event.Alert) alarm.Change {
			a.Reason = "expired"
			return alarm.Unshelved
		},
		"the shelf of its alarm is over, its tool is declared new by kim: why.": func(a *event.Alert) alarm.Change {
			a.Reason = "new_tool"
			return alarm.Unshelved
		},
		"alarm unshelved by kim: why.":        func(*event.Alert) alarm.Change { return alarm.Unshelved },
		"alarm in service again by kim: why.": func(*event.Alert) alarm.Change { return alarm.InService },
		"alarm out of service by kim: why.":   func(*event.Alert) alarm.Change { return alarm.OutOfService },
		"alarm suppressed by kim: why.":       func(*event.Alert) alarm.Change { return alarm.Suppressed },
	} {
		b := a
		c := change(&b)
		if got := Alert(c, &b, "T2"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if Tool("") != "an unnamed one" || Tool("T1") != "T1" {
		t.Errorf("%q %q", Tool(""), Tool("T1"))
	}
}
