package history

import (
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
)

// Alerts gives each alert of a group once, also if another group has sent one under its id. One that names no group cannot be read: no monitor has sent it.
func TestAlerts(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	trial := func(a *event.Alert) { a.Group = "trial" }
	none := func(a *event.Alert) { a.Group = "" }
	malformed := alertMessage(2, event.Raised)
	malformed.Value = []byte("{")
	p.send(malformed, alertMessage(3, event.Raised), alertMessage(3, event.Raised), alertMessage(4, event.Raised, trial), alertMessage(5, event.Cleared, trial), alertMessage(5, event.Cleared), alertMessage(6, event.Cleared, none))
	for g, want := range map[string]string{group: "raised cleared", "trial": "raised cleared", "third": ""} {
		var got []string
		skipped, err := Alerts(t.Context(), p.bus, g, func(a event.Alert) error {
			got = append(got, string(a.State))
			return nil
		})
		if err != nil || skipped != 2 || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %d skipped, %v; want %q", g, got, skipped, err, want)
		}
	}
}
