package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
)

// routesYAML is a configuration with routes, each a text behind "- ".
func routesYAML(broker string, routes ...string) string {
	text := monitorYAML(broker, "") + "alerts:\n  routes:\n"
	for _, r := range routes {
		text += "    - " + strings.ReplaceAll(r, "\n", "\n      ") + "\n"
	}
	return text
}

// What a person gets wrong in a route, and what monitor says to it.
func TestRouteErrors(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	const hook = "webhook: {url: \"https://cmms.example/hook\"}"
	for _, tc := range []struct {
		why    string
		routes []string
	}{
		{"no name", []string{hook}},
		{"a name with blanks", []string{"name: the CMMS\n" + hook}},
		{"the same name twice", []string{"name: cmms\n" + hook, "name: cmms\n" + hook}},
		{"no receiver", []string{"name: cmms"}},
		{"two receivers", []string{"name: cmms\n" + hook + "\nmqtt: {broker: \"mqtts://b.example\"}"}},
		{"unknown key", []string{"name: cmms\nwebhook: {uri: \"https://cmms.example\"}"}},
		{"unknown severity", []string{"name: cmms\nseverity: critical\n" + hook}},
		{"unknown kind", []string{"name: cmms\nkinds: [alert, noise]\n" + hook}},
		{"unknown state", []string{"name: cmms\nstates: [gone]\n" + hook}},
		{"pattern that is none", []string{"name: cmms\nmachines: [\"usk[\"]\n" + hook}},
		{"hours that are none", []string{"name: cmms\nhours: \"6-14\"\n" + hook}},
		{"zone that is nowhere", []string{"name: cmms\nhours: \"06:00-14:00\"\nzone: Europe/Bay2\n" + hook}},
		{"timeout in the past", []string{"name: cmms\ntimeout: -1s\n" + hook}},
		{"hours of a receiver that shows states", []string{"name: am\nhours: \"06:00-14:00\"\nalertmanager: {url: \"https://am.example\"}"}},
		{"kafka without a topic", []string{"name: copy\nkafka: {brokers: [\"other:9092\"]}"}},
		{"kafka onto itself", []string{"name: copy\nkafka: {topic: tcm.alerts.v1}"}},
		{"kafka with a password in the clear", []string{"name: copy\nkafka: {topic: alerts, brokers: [\"other:9092\"], sasl: {user: u, password_env: P}}"}},
		{"webhook without a URL", []string{"name: cmms\nwebhook: {mode: binary}"}},
		{"webhook that is none", []string{"name: cmms\nwebhook: {url: \"cmms.example/hook\"}"}},
		{"a password in the URL", []string{"name: cmms\nwebhook: {url: \"https://kim:pass@cmms.example\"}"}},
		{"a token in the clear", []string{"name: cmms\nwebhook: {url: \"http://cmms.example\", token: {file: secret}}"}},
		{"no such secret", []string{"name: cmms\nwebhook: {url: \"https://cmms.example\", secret: {file: absent}}"}},
		{"a short secret", []string{"name: cmms\nwebhook: {url: \"https://cmms.example\", secret: {file: secret}}"}},
		{"unknown mode", []string{"name: cmms\nwebhook: {url: \"https://cmms.example\", mode: batch}"}},
		{"no such CA", []string{"name: cmms\nwebhook: {url: \"https://cmms.example\", tls: {ca: absent.pem}}"}},
		{"Alertmanager's own labels", []string{"name: am\nalertmanager: {url: \"https://am.example\", labels: {severity: page}}"}},
		{"MQTT by another scheme", []string{"name: hmi\nmqtt: {broker: \"tcp://b.example:1883\"}"}},
		{"MQTT's user without a password", []string{"name: hmi\nmqtt: {broker: \"mqtts://b.example\", user: flank}"}},
		{"a slash in Sparkplug's names", []string{"name: hmi\nmqtt: {broker: \"mqtts://b.example\", sparkplug: {group: acme/spore}}"}},
		{"mail without a port", []string{"name: shift\nsmtp: {server: mail.example, from: a@b.example, to: [c@b.example]}"}},
		{"mail without recipients", []string{"name: shift\nsmtp: {server: \"mail.example:587\", from: a@b.example}"}},
		{"mail to no address", []string{"name: shift\nsmtp: {server: \"mail.example:587\", from: a@b.example, to: [c@b.example, kim]}"}},
		{"mail's password in the clear", []string{"name: shift\nsmtp: {server: \"mail.example:25\", encrypt: none, from: a@b.example, to: [c@b.example], user: u, password_file: secret}"}},
		{"OPC UA without certificates", []string{"name: plc\nopcua: {endpoint: \"opc.tcp://plc.example:4840\", nodes: [{machine: usk25, alarm: \"ns=2;s=a\"}]}"}},
		{"OPC UA's node that is none", []string{"name: plc\nopcua: {endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: usk25, alarm: usk25.Alarm}]}"}},
		{"OPC UA's request without its id", []string{"name: plc\nopcua: {endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: usk25, request: \"ns=2;s=a\"}]}"}},
		{"OPC UA's variable of several machines", []string{"name: plc\nopcua: {endpoint: \"opc.tcp://127.0.0.1\", nodes: [{machine: \"usk*\", alarm: \"ns=2;s=a\"}]}"}},
	} {
		dir := folder(t, "monitor.yaml", routesYAML(nowhere, tc.routes...), "secret", "short\n")
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), []string{"run", "--config", dir + "/monitor.yaml"}, &stdout, &stderr)
		if err == nil || !strings.HasPrefix(err.Error(), dir+"/monitor.yaml:") {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		fmt.Fprintf(&got, "# %s\n%s\n\n", tc.why, strings.ReplaceAll(err.Error(), dir+"/", ""))
	}
	golden.Check(t, "routes.golden", got.String())
}

// alertsTestOf runs `alerts test` of a route.
func alertsTestOf(t *testing.T, name string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), []string{"alerts", "test", "--config", "monitor.yaml", "--route", name}, &stdout, &stderr)
	return stdout.String(), err
}

// A person tries a route out: each step says what happened, a failure its cause and
// the remedy, and nothing needs a broker.
func TestAlertsTest(t *testing.T) {
	var bodies []string
	answer := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		w.WriteHeader(answer)
	}))
	defer s.Close()
	m := mqtttest.Start(t, mqtttest.Options{})
	bench(t, "monitor.yaml", routesYAML(nowhere,
		fmt.Sprintf("name: cmms\nseverity: warning\nwebhook: {url: %q}", s.URL),
		fmt.Sprintf("name: hmi\nmqtt: {broker: %q}", m.URL),
		fmt.Sprintf("name: scada\nmqtt: {broker: %q, sparkplug: {}}", m.URL),
		"name: gone\nsmtp: {server: \"127.0.0.1:1\", from: a@b.example, to: [c@b.example]}"))
	out, err := alertsTestOf(t, "cmms")
	if err != nil || strings.Count(out, " ok ") != 4 || !strings.Contains(out, "severity warning passes now") || len(bodies) != 1 || !strings.Contains(bodies[0], "TEST of a route") {
		t.Errorf("%v\n%s%q", err, out, bodies)
	}
	for _, name := range []string{"hmi", "scada"} {
		if out, err := alertsTestOf(t, name); err != nil || !strings.Contains(out, "taken after ") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	failing := func(name string, code int, want string) {
		t.Helper()
		out, err := alertsTestOf(t, name)
		var own *cli.Exit
		if !errors.As(err, &own) || own.Code != code || !strings.Contains(err.Error(), want) || !strings.Contains(out, "FAILED") {
			t.Errorf("%s: %v, want %q and exit code %d\n%s", name, err, want, code, out)
		}
	}
	answer = http.StatusUnprocessableEntity
	failing("cmms", 6, "refused permanently: the receiver answers 422 Unprocessable Entity: an alert would be set aside on tcm.dlq.v1")
	answer = http.StatusServiceUnavailable
	failing("cmms", 6, "an alert would be retried until the receiver takes it")
	failing("gone", 4, "connection refused: check the address, and that the receiver runs")
	if _, err := alertsTestOf(t, "cms"); err == nil || !strings.Contains(err.Error(), `no route is called cms: there are ["cmms" "hmi" "scada" "gone"]`) {
		t.Error(err)
	}
}

// monitor check tries the routes too, without sending anything.
func TestCheckRoutes(t *testing.T) {
	sent := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent++ }))
	defer s.Close()
	addr := startBroker(t, true)
	check := func() (string, error) {
		var out, log bytes.Buffer
		err := run(t.Context(), []string{"check", "--config", "monitor.yaml"}, &out, &log)
		return out.String(), err
	}
	good := fmt.Sprintf("name: cmms\nwebhook: {url: %q}", s.URL)
	bench(t, "monitor.yaml", routesYAML(addr, good, "name: copy\nkafka: {topic: plant.alerts}"))
	out, err := check()
	var own *cli.Exit
	if !errors.As(err, &own) || own.Code != 14 || !strings.Contains(err.Error(), "route copy: topics: bus: topic plant.alerts") || !strings.Contains(out, "route cmms ok") || sent > 0 {
		t.Errorf("%v, %d requests\n%s", err, sent, out)
	}
	if err := os.WriteFile("monitor.yaml", []byte(routesYAML(addr, good)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := check(); err != nil || !strings.Contains(out, "tcm.commands.v1, tcm.models.v1, tcm.alerts.v1; write ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The examples of routes, which are comments, can be read too.
func TestRouteExamples(t *testing.T) {
	for path, want := range map[string]int{"../../examples/gun-drill/monitor.yaml": 5, "../../docs/how-to/routes.md": 7} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		part := string(text)
		if strings.HasSuffix(path, ".md") {
			_, part, _ = strings.Cut(part, "```yaml\nalerts:\n")
			part, _, _ = strings.Cut("alerts:\n"+part, "```")
		} else {
			_, part, _ = strings.Cut(part, "# alerts:")
			part = strings.ReplaceAll("alerts:"+part, "\n# ", "\n")
		}
		var c settings
		if err := config.Decode([]byte(part), path, &c); err != nil || len(c.Alerts.Routes) != want {
			t.Errorf("%d routes, want %d: %v", len(c.Alerts.Routes), want, err)
		}
	}
}
