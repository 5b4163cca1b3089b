package route

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/schemas"
)

// No receiver gets the year 1970 for a recording without a clock.
func TestNoClock(t *testing.T) {
	e := &Event{Type: event.AlertType, Machine: "acme/spore/bay2/line1/usk25", At: time.Unix(80, 0).UTC(), Sent: monday}
	e.Alarm, e.State, e.Incident, e.Since, e.Text = "raised", "raised", "A-K3ZQ7M2P", time.Unix(75, 500e6).UTC(), "usk25: FAULTY since second 75.5."
	a := &alertmanagerReceiver{now: func() time.Time { return monday }}
	if got := a.alert(alarmName, e, e); !got.StartsAt.Equal(monday) {
		t.Errorf("Alertmanager: %v", got.StartsAt)
	}
	if got := mailText(e); !strings.Contains(got, "since     second 75.5\nat        second 80\n") {
		t.Errorf("mail: %s", got)
	}
	advice := *e
	advice.Type, advice.Kind = event.AdvisoryType, "sensor"
	s := &standing{machine: e.Machine, last: e, raised: e, advisories: map[string]*Event{"sensor": &advice}}
	body, err := json.Marshal(machineState(s))
	if err != nil || strings.Contains(string(body), "1970") || !strings.Contains(string(body), "A-K3ZQ7M2P") {
		t.Errorf("MQTT: %s, %v", body, err)
	}
	if err := schemas.Validate("machine-state", body); err != nil {
		t.Errorf("MQTT: %v", err)
	}
	for _, m := range spbDevice(s) {
		if at, ok := m.value.(time.Time); ok && !at.IsZero() {
			t.Errorf("Sparkplug: %s is %v", m.name, at)
		}
	}
}
