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
