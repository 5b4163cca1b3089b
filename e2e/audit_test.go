//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// Someone logs in wrongly and rightly, answers alarms on the page and in a terminal, rolls a model
// out and breaks the configuration. The audit lists all of it, accepted or refused, and neither the
// list nor the programs' logs have a token.
func TestAudit(t *testing.T) {
	b, cfg := startServer(t, 2)
	dir := prepare(t, b.Addr(), 0)
	at := func(name string) string { return filepath.Join(dir, name) }
	address := freeAddr(t)
	conf := fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: {listen: %q, people: people.yaml}\n", b.Addr(), address)
	write(t, dir, "monitor.yaml", conf)
	token := strings.TrimSpace(run(t, "monitor", "people", "add", "kim", "--role", "operator", "--file", at("people.yaml"), "--config", at("monitor.yaml")))
	run(t, "ingest", "run", "--config", at("ingest.yaml"))
	results := follow(t, cfg, bus.TopicResults)
	monitor := start(t, "monitor", "run", "--config", at("monitor.yaml"))
	results.until(t, windows, "results")
	var incident string
	for _, m := range readAll(t, cfg, bus.TopicAlerts) { // of the transactions that the results are in
		var a event.Alert
		if json.Unmarshal(m.Value, &a) == nil && a.State == event.Raised && a.Incident != "" {
			incident = a.Incident
		}
	}
	if incident == "" {
		t.Fatal("no alarm was raised")
	}

	post := func(path, body string, want int) *http.Response {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, "http://"+address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if path != "/api/login" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Fatalf("%s: %s", path, res.Status)
		}
		return res
	}
	const wrong = "QX5GZ7J2M4T6WYBNC3DKLRA7UE"
	post("/api/login", fmt.Sprintf(`{"token":%q}`, wrong), http.StatusUnauthorized)
	post("/api/login", fmt.Sprintf(`{"token":%q}`, token), http.StatusOK)
	post("/api/commands", fmt.Sprintf(`{"machine":%q,"action":"acknowledge","incident":%q}`, machine, incident), http.StatusAccepted)
	post("/api/commands", fmt.Sprintf(`{"machine":%q,"action":"suppress","note":"setup"}`, machine), http.StatusForbidden)
	run(t, "monitor", "alerts", "mark-false", "--config", at("monitor.yaml"), incident, "--by", "anna")
	run(t, "trainer", "keys", "new", "--out", at("plant"))
	trainer := func(command string, args ...string) {
		run(t, "trainer", append([]string{command}, append(args, "--kafka", b.Addr(), "--key", at("plant.key"), "--by", "emmy")...)...)
	}
	trainer("publish", at("m.flank"))
	list := run(t, "monitor", "audit", "--config", at("monitor.yaml"), "--action", "publish_model", "-o", "json")
	var models []event.Audit
	if err := json.Unmarshal([]byte(list), &models); err != nil || len(models) != 1 || models[0].Model == "" {
		t.Fatalf("%v\n%s", err, list)
	}
	trainer("promote", models[0].Model, "--for", "acme/**")
	write(t, dir, "monitor.yaml", conf+"no_such_key: 1\n")
	if err := monitor.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}

	want := []string{
		"monitor add_person accepted terminal kim (operator) ",
		"monitor login refused nothing  wrong token", "monitor login accepted token  ",
		"monitor acknowledge accepted token " + machine + " ",
		"monitor acknowledge accepted command " + machine + " ", // the alarm waits with its tool in the magazine
		"monitor suppress refused token " + machine + " the role operator may not ask for it",
		"monitor mark_false accepted terminal " + machine + " ", "monitor mark_false accepted command " + machine + " ",
		"trainer publish_model accepted terminal  ", "trainer promote accepted terminal acme/** ",
		"monitor reload refused signal  ",
	}
	var have []string
	for deadline := time.Now().Add(patience); len(have) < len(want); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the audit has\n%s\nlog:\n%s", strings.Join(have, "\n"), &monitor.stderr)
		}
		write(t, dir, "list.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\n", b.Addr()))
		list = run(t, "monitor", "audit", "--config", at("list.yaml"), "-o", "json")
		var all []event.Audit
		if err := json.Unmarshal([]byte(list), &all); err != nil {
			t.Fatal(err)
		}
		have = nil
		for _, a := range all {
			about := a.Machine + a.Object
			if a.Action == event.Reload { // a path and a line
				about, a.Reason = "", ""
			}
			have = append(have, strings.Join([]string{a.Program, string(a.Action), string(a.Outcome), string(a.Actor.Identified), about, a.Reason}, " "))
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the audit has\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	monitor.kill()
	signing, err := os.ReadFile(at("plant.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{token, wrong, strings.TrimSpace(string(signing))} {
		if strings.Contains(list+monitor.stderr.String()+monitor.stdout.String(), secret) {
			t.Errorf("a secret is in the audit or in the log")
		}
	}
	if n := strings.Count(monitor.stderr.String(), `"event":"audit"`); n != 7 {
		t.Errorf("the monitor's log has %d records\n%s", n, &monitor.stderr)
	}
}
