package route

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/await"
)

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// postableAlerts is what API v2 takes, of api/v2/openapi.yaml of Alertmanager
// 0.34.2: postableAlerts, postableAlert, alert and labelSet.
const postableAlerts = `{
	"type": "array",
	"items": {
		"type": "object", "required": ["labels"], "additionalProperties": false,
		"properties": {
			"startsAt": {"type": "string", "format": "date-time"},
			"endsAt": {"type": "string", "format": "date-time"},
			"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
			"labels": {"type": "object", "additionalProperties": {"type": "string"}},
			"generatorURL": {"type": "string", "format": "uri"}
		}
	}
}`

// alertmanager is a receiver that holds what it gets to the API and remembers it.
func alertmanager(t *testing.T, resend time.Duration) (b *bench, last func() []postableAlert) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(postableAlerts))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("v2", doc); err != nil {
		t.Fatal(err)
	}
	schema := c.MustCompile("v2")
	s, got := receiverOf(t, nil)
	b = newBench(t, Config{Receivers: Receivers{Alertmanager: &alertmanagerConfig{URL: s.URL + "/am/", Resend: resend, Labels: map[string]string{"team": "bay2"}}}}, nil)
	b.opt.Standing = nil
	return b, func() []postableAlert {
		t.Helper()
		all := got()
		if len(all) == 0 {
			return nil
		}
		body := all[len(all)-1].body
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
		if err == nil {
			err = schema.Validate(v)
		}
		var alerts []postableAlert
		if err == nil {
			err = json.Unmarshal(body, &alerts)
		}
		if err != nil {
			t.Errorf("%v: %s", err, body)
		}
		return alerts
	}
}

// An alert keeps its labels from raised to cleared. Its annotations change. It ends
// when the alarm ends or needs no person any more.
func TestAlertmanager(t *testing.T) {
	b, last := alertmanager(t, 0)
	const labels = "map[alertname:ToolAlarm machine:acme/spore/bay2/line1/usk25 severity:warning team:bay2 tool:T07]"
	for i, tc := range []struct {
		state event.AlertState
		fires bool
		has   map[string]string // annotations
	}{
		{event.Raised, true, map[string]string{"summary": "usk25 tool T07 hole H3_08: FAULTY since 02:13:35.", "score": "0.93", "incident": "A-K3ZQ7M2P", "state": "raised", "news": ""}},
		{"acknowledged", true, map[string]string{"summary": "usk25 tool T07 hole H3_08: FAULTY since 02:13:35.", "acknowledged_by": "kim", "news": "usk25 tool T07: acknowledged by kim."}},
		{"shelved", false, map[string]string{"summary": "usk25 tool T07 hole H3_08: FAULTY since 02:13:35."}},
		{"reactivated", true, nil},
		{"returned", true, nil},
		{event.Cleared, false, map[string]string{"news": "usk25 tool T07: alarm of 02:13:35 cleared, tool changed to T08."}},
	} {
		if err := b.to.deliver(t.Context(), opened(t, alert(drill, i, tc.state))); err != nil {
			t.Fatal(err)
		}
		got := last()
		if len(got) != 1 || fmt.Sprint(got[0].Labels) != labels || got[0].EndsAt.IsZero() != tc.fires || !got[0].StartsAt.Equal(monday.Add(-6*time.Second)) {
			t.Errorf("%s: %+v", tc.state, got)
		}
		if !tc.fires && !got[0].EndsAt.Equal(b.clock) {
			t.Errorf("%s: ends at %v", tc.state, got[0].EndsAt)
		}
		for name, want := range tc.has {
			if got[0].Annotations[name] != want {
				t.Errorf("%s: %s is %q, want %q", tc.state, name, got[0].Annotations[name], want)
			}
		}
	}
}

// The route sends open alarms of its own partitions again, and nothing else. After a
// restart it takes them from the monitors' records, without the old events.
func TestAlertmanagerAgain(t *testing.T) {
	b, last := alertmanager(t, 0)
	to := b.to.(*alertmanagerReceiver)
	const lathe = "acme/spore/bay2/line1/lathe"
	standing := func(machine, alarm string) *Event {
		e := opened(t, alert(machine, 0, "", func(a *event.Alert) { a.Alarm, a.ID = alarm, machine+"/standing" }))
		return e
	}
	to.take(0, []*Event{standing(drill, "raised"), standing(lathe, "normal"), opened(t, advisory(lathe, 1, "sensor", "ch07", event.Raised))})
	to.take(1, []*Event{standing("acme/spore/bay2/line1/other", "acknowledged")})
	names := func(alerts []postableAlert) (s string) {
		for _, a := range alerts {
			if !a.EndsAt.IsZero() {
				s += "ended "
			}
			s += a.Labels["alertname"] + " " + a.Labels["machine"][strings.LastIndexByte(a.Labels["machine"], '/')+1:] + a.Labels["subject"] + "; "
		}
		return s
	}
	again := func(partition int, want string) {
		t.Helper()
		if err := to.again(t.Context(), partition); err != nil {
			t.Error(err)
		}
		if got := names(last()); got != want {
			t.Errorf("again: %q, want %q", got, want)
		}
	}
	again(0, "SensorFault lathech07; ToolAlarm usk25; ")
	again(1, "ToolAlarm other; ")
	for _, m := range []struct {
		e    *Event
		want string
	}{
		{opened(t, advisory(lathe, 2, "sensor", "ch07", event.Cleared)), "ended SensorFault lathech07; "},
		{opened(t, alert(drill, 3, event.Cleared)), "ended ToolAlarm usk25; "},
	} {
		if err := to.deliver(t.Context(), m.e); err != nil {
			t.Fatal(err)
		}
		if got := names(last()); got != m.want {
			t.Errorf("%q, want %q", got, m.want)
		}
	}
	to.drop(1)
	before := len(last())
	for p := range 2 { // nothing stands any more
		if err := to.again(t.Context(), p); err != nil || len(last()) != before {
			t.Errorf("partition %d: %v, %+v", p, err, last())
		}
	}
}

// A test fires for a minute, under a name of its own.
func TestAlertmanagerTest(t *testing.T) {
	b, last := alertmanager(t, 0)
	if err := b.to.deliver(t.Context(), TestEvent("nonce", b.clock)); err != nil {
		t.Fatal(err)
	}
	if a := last()[0]; a.Labels["alertname"] != "FlankTest" || !a.EndsAt.Equal(b.clock.Add(time.Minute)) {
		t.Errorf("%+v", a)
	}
	if len(b.to.(*alertmanagerReceiver).machines) > 0 {
		t.Error("the test's machine is remembered")
	}
}

// Credentials go along and a wrong password is about us, not about the alert.
func TestAlertmanagerLogin(t *testing.T) {
	t.Setenv("AM_PASSWORD", "right")
	s, got := receiverOf(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	b := newBench(t, Config{Receivers: Receivers{Alertmanager: &alertmanagerConfig{URL: s.URL, Login: credential.Login{User: "flank", PasswordEnv: "AM_PASSWORD"}}}}, nil)
	if err := b.to.deliver(t.Context(), opened(t, alert(drill, 1, event.Raised))); err == nil || !strings.Contains(err.Error(), "correct the token or the password") {
		t.Error(err)
	}
	if _, err := b.to.probe(t.Context()); err != nil {
		t.Error(err)
	}
	for _, r := range got() {
		if user, password, ok := (&http.Request{Header: r.head}).BasicAuth(); !ok || user != "flank" || password != "right" {
			t.Errorf("%q, %q", user, password)
		}
	}
}

// A route that gets a partition shows its open alarms, leaves out the events that
// they include, and takes later ones.
func TestShown(t *testing.T) {
	b, last := alertmanager(t, time.Hour)
	b.opt.Standing = func(_ context.Context, partition int) ([]*Event, error) {
		return []*Event{opened(t, alert(drill, 9, "", func(a *event.Alert) { a.Alarm = "raised" }))}, nil
	}
	p := newTape(alert(drill, 1, event.Raised), alert(drill, 2, event.Cleared), alert(drill, 9, event.Raised))
	b.play(t, p)
	if got := last(); len(got) != 1 || !got[0].EndsAt.IsZero() || p.committed != 3 || b.stats.delivered != 0 {
		t.Errorf("%+v, committed %d, %d delivered", got, p.committed, b.stats.delivered)
	}
}

// The same against Alertmanager itself, where FLANK_ALERTMANAGER says its URL.
func TestAlertmanagerItself(t *testing.T) {
	base := os.Getenv("FLANK_ALERTMANAGER")
	if base == "" {
		t.Skip("FLANK_ALERTMANAGER names no Alertmanager")
	}
	b := newBench(t, Config{Receivers: Receivers{Alertmanager: &alertmanagerConfig{URL: base}}}, nil)
	b.Route.now = time.Now
	machine := fmt.Sprintf("acme/spore/bay2/line1/m%d", time.Now().UnixNano())
	active := func() (summary string) {
		t.Helper()
		res, err := http.Get(base + "/api/v2/alerts?active=true&filter=" + url.QueryEscape(fmt.Sprintf("machine=%q", machine)))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var all []postableAlert
		if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			summary += a.Labels["alertname"] + " " + a.Annotations["state"] + ";"
		}
		return summary
	}
	if found, err := b.to.probe(t.Context()); err != nil || !strings.HasSuffix(found, "API v2") {
		t.Fatalf("%q, %v", found, err)
	}
	for i, tc := range []struct {
		e    *Event
		want string
	}{
		{opened(t, alert(machine, 1, event.Raised)), "ToolAlarm raised;"},
		{opened(t, alert(machine, 2, "acknowledged")), "ToolAlarm acknowledged;"},
		{opened(t, alert(machine, 3, "shelved")), ""},
		{opened(t, alert(machine, 4, "reactivated")), "ToolAlarm raised;"},
		{opened(t, alert(machine, 5, event.Cleared)), ""},
	} {
		if err := b.to.deliver(t.Context(), tc.e); err != nil {
			t.Fatal(err)
		}
		await.Until(t, fmt.Sprintf("step %d shows %q", i, tc.want), func() bool { return active() == tc.want })
	}
}

// What ends an alert has the reason of the one that began it, also if Alertmanager takes it only at the second attempt.
func TestAlertmanagerReasonAfterRetry(t *testing.T) {
	b, last := alertmanager(t, 0)
	to := b.to.(*alertmanagerReceiver)
	cleared := opened(t, alert(drill, 2, event.Cleared))
	if err := to.deliver(t.Context(), opened(t, alert(drill, 1, event.Raised))); err != nil {
		t.Fatal(err)
	}
	away, stop := context.WithCancel(t.Context())
	stop()
	if err := to.deliver(away, cleared); err == nil {
		t.Fatal("taken without a receiver")
	}
	if err := to.deliver(t.Context(), cleared); err != nil {
		t.Fatal(err)
	}
	if got := last()[0]; got.Annotations["summary"] != "usk25 tool T07 hole H3_08: FAULTY since 02:13:35." || got.Annotations["news"] == "" {
		t.Errorf("%v", got.Annotations)
	}
}

// The end of an advisory ends no other one of the machine: no two have the same labels.
func TestAdvisoryLabels(t *testing.T) {
	b, last := alertmanager(t, 0)
	seen := make(map[string]event.AdvisoryKind)
	for i, kind := range append(event.AdvisoryKinds, "of a later release") {
		if err := b.to.deliver(t.Context(), opened(t, advisory(drill, i, string(kind), "", event.Raised))); err != nil {
			t.Fatal(err)
		}
		labels := fmt.Sprint(last()[0].Labels)
		if other, ok := seen[labels]; ok {
			t.Errorf("%s and %s fire as the same alert, %s", other, kind, labels)
		}
		seen[labels] = kind
	}
}

// Advisories fire under names of their own. Only kinds that no one routes by share one.
func TestAdvisoryNames(t *testing.T) {
	for kind, want := range map[event.AdvisoryKind]string{
		event.SensorAdvisory: "SensorFault", event.SilenceAdvisory: "MachineSilent", event.RefusedAdvisory: "WindowsRefused", event.UnknownAdvisory: "ModelUnknown",
		event.DriftAdvisory: "FeatureDrift", event.StoppedAdvisory: "JudgingStopped", event.LossAdvisory: "SamplesLost", event.RivalAdvisory: "Advisory", event.ModelAdvisory: "Advisory", "of a later release": "Advisory",
	} {
		if got := advisoryName(string(kind)); got != want {
			t.Errorf("%s fires as %s, want %s", kind, got, want)
		}
	}
}
