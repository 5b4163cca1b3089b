package event

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

func TestJSON(t *testing.T) {
	at := time.Date(2026, 11, 2, 2, 13, 41, 0, time.UTC)
	machine, epoch := "acme/spore/bay2/line1/usk25", "00000000cafe0001"
	golden.Check(t, "result.json", JSON(Result{
		ID: WindowID(machine, epoch, 17), Group: "tcm-monitor", Machine: machine, Epoch: epoch, Seq: 17, Tool: "T07", Hole: "H3_08", Start: at, End: at.Add(time.Second),
		Verdict: Faulty, Posterior: []float64{0.25, 0.75}, Score: 0.93, Model: "ecs-dbn-0123456789ab", Alarm: "raised",
		Sensors: []Sensor{{"ch07", []string{"flatline"}}},
	}))
	golden.Check(t, "alert.json", JSON(Alert{
		ID: WindowID(machine, epoch, 17) + "/raised", Group: "tcm-monitor", Machine: machine, Tool: "T07", Hole: "H3_08", State: Raised, Severity: "warning",
		Since: at.Add(-6 * time.Second), At: at.Add(time.Second), Epoch: epoch, Seq: 17, Faulty: 6, Of: 8, K: 6, N: 8, Score: 0.93,
		Model: "ecs-dbn-0123456789ab", Text: "usk25 tool T07 hole H3_08: FAULTY since 02:13:35, 6 of 8 cutting windows, score 0.93.",
	}))
}

// A reader of another make finds the attributes of CloudEvents 1.0.
func TestAttributes(t *testing.T) {
	at := time.Date(2026, 11, 2, 3, 0, 0, 5e6, time.FixedZone("CET", 3600))
	got := map[string]string{}
	for _, a := range Attributes("m/1/2", "m", ResultType, at, "application/json") {
		got[a[0]] = a[1]
	}
	for name, want := range map[string]string{
		"ce_specversion": "1.0", "ce_id": "m/1/2", "ce_source": "/m", "ce_type": "io.tcm.result.v1",
		"ce_time": "2026-11-02T02:00:00.005Z", "ce_partitionkey": "m", "content-type": "application/json",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestJSONRefusesNaN(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.HasPrefix(r.(string), "event: ") {
			t.Errorf("recovered %v", r)
		}
	}()
	JSON(Result{Score: math.NaN()})
}

// The lists hold every word that the schemas have, so that who checks against them, as
// the filters of routes do, knows each of them.
func TestListsAreThoseOfTheSchemas(t *testing.T) {
	enum := func(schema, property string) string {
		t.Helper()
		text, err := os.ReadFile("../../schemas/" + schema)
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Properties map[string]struct{ Enum []string }
		}
		if err := json.Unmarshal(text, &s); err != nil || len(s.Properties[property].Enum) == 0 {
			t.Fatalf("%s: %s: %v", schema, property, err)
		}
		return fmt.Sprintf("%q", s.Properties[property].Enum)
	}
	if got, want := fmt.Sprintf("%q", AlertStates), enum("alert.schema.json", "state"); got != want {
		t.Errorf("states of alerts: %s, the schema has %s", got, want)
	}
	if got, want := fmt.Sprintf("%q", AuditActions), enum("audit.schema.json", "action"); got != want {
		t.Errorf("actions of audit records: %s, the schema has %s", got, want)
	}
	if got, want := fmt.Sprintf("%q", AdvisoryKinds), enum("advisory.schema.json", "kind"); got != want {
		t.Errorf("kinds of advisories: %s, the schema has %s", got, want)
	}
}

// What an older program wrote can be read, and what a newer one adds is
// ignored: within v1 there are only additions.
func TestResultReadsAdditions(t *testing.T) {
	var r Result
	if err := json.Unmarshal([]byte(`{"id":"a","verdict":"healthy","seq":3,"new_in_v1_9":{"x":1}}`), &r); err != nil || r.Seq != 3 || r.Verdict != Healthy {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestShortName(t *testing.T) {
	for path, want := range map[string]string{"acme/line1/drill": "drill", "drill": "drill"} {
		if got := ShortName(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
