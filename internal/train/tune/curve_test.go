package tune

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/alarm"
)

// A curve comes out of its file as it went in, and only for its own model.
func TestCurve(t *testing.T) {
	lives := []Life{life("0000900090|9999"), life("00000000|0999"), life("000000")}
	j := Job{Lives: lives, Length: time.Second, Alarm: alarm.Settings{K: 2, N: 3, Clear: 1, Latch: true}, Budget: budget{Alarms: 1, Per: time.Hour}}
	for _, noHours := range []string{"", "no one said"} {
		if j.NoHours = noHours; noHours != "" {
			j.Budget.Per = 0
		}
		c, err := Choose(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		want := c.Saved("m1")
		if want.Tools != 3 || want.Turned != 2 || len(want.Points) == 0 || want.Chosen.Found+want.Chosen.Missed != 2 || want.Now.K != 2 || want.Now.Threshold != alarm.Default.Threshold {
			t.Fatalf("%+v", want)
		}
		if hours := noHours == ""; want.Hours != hours || (want.Chosen.PerHour != nil) != hours {
			t.Errorf("hours %v: %+v", hours, want.Chosen)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.tune.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := alarm.LoadCurve(path, "m1")
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
		}
		if got, err := alarm.LoadCurve(path, "m2"); got != nil || err != nil {
			t.Errorf("of another model: %+v, %v", got, err)
		}
		if got, err := alarm.LoadCurve(path+".no", "m1"); got != nil || err != nil {
			t.Errorf("no file: %+v, %v", got, err)
		}
		if err := os.WriteFile(path, text[:len(text)-2], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := alarm.LoadCurve(path, "m1"); err == nil || !strings.Contains(err.Error(), "make it again") {
			t.Errorf("cut short: %v", err)
		}
	}
}
