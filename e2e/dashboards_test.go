//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dashboard is what the test reads of Grafana's JSON.
type dashboard struct {
	Title      string
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// A gateway and a monitor run, a Prometheus with the configuration of deploy/prometheus scrapes
// them, and every query of every dashboard gets data. Prometheus evaluates every rule.
func TestDashboards(t *testing.T) {
	prometheus := os.Getenv("FLANK_PROMETHEUS")
	if prometheus == "" {
		t.Fatal("FLANK_PROMETHEUS is not set: run make dashboards, which fetches Prometheus")
	}
	b, _ := startServer(t, 2)
	dir := prepare(t, b.Addr(), 20)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	gateway, monitor, server := freeAddr(t), freeAddr(t), freeAddr(t)
	ingestYAML, err := os.ReadFile(filepath.Join(dir, "ingest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "ingest.yaml", string(ingestYAML)+fmt.Sprintf("metrics: %q\n", gateway))
	write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: \"\"\nmetrics: %q\nalerts: {routes: [{name: cmms, webhook: {url: %q}}]}\n", b.Addr(), monitor, receiver.URL))
	start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml"))
	start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	startPrometheus(t, prometheus, server, map[string]string{"ingest:9101": gateway, "monitor:9103": monitor, "15s": "1s"})

	paths, err := filepath.Glob("../deploy/grafana/dashboards/*.json")
	if err != nil || len(paths) != 3 {
		t.Fatal(paths, err)
	}
	deadline, queries := time.Now().Add(patience), 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, v := range d.Templating.List {
			metric, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
			until(t, deadline, d.Title+": variable "+v.Name, func() (string, bool) {
				got := ask(t, server, "label/"+label+"/values?match[]="+url.QueryEscape(metric))
				return string(got), strings.Contains(string(got), machine)
			})
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				queries++
				expr := strings.NewReplacer("$machine", machine, "$__rate_interval", "1m").Replace(target.Expr)
				until(t, deadline, fmt.Sprintf("%s: %s: %s", d.Title, p.Title, expr), func() (string, bool) { return evaluate(t, server, expr) })
			}
		}
	}
	if queries < 60 {
		t.Errorf("the dashboards have %d queries only", queries)
	}
	until(t, deadline, "rules", func() (string, bool) { return rulesAreEvaluated(t, server) })
	for _, addr := range []string{gateway, monitor} {
		promtool(t, filepath.Join(prometheus, "promtool"), addr)
	}
}

// rulesAreEvaluated reports whether Prometheus has evaluated every rule without an error.
func rulesAreEvaluated(t *testing.T, server string) (string, bool) {
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, LastEvaluation string }
		}
	}
	text := ask(t, server, "rules")
	if err := json.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	healthy, all := 0, 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			all++
			if r.Health == "ok" && !strings.HasPrefix(r.LastEvaluation, "0001") {
				healthy++
			}
		}
	}
	return string(text), all > 0 && healthy == all
}

// evaluate returns the result of a query, and whether it has a number.
func evaluate(t *testing.T, server, expr string) (string, bool) {
	text := ask(t, server, "query?query="+url.QueryEscape(expr))
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := json.Unmarshal(text, &data); err != nil {
		t.Fatalf("%s: %v\n%s", expr, err, text)
	}
	for _, r := range data.Result {
		if v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64); err == nil && !math.IsNaN(v) {
			return string(text), true
		}
	}
	return string(text), false
}

// until waits until done reports true.
func until(t *testing.T, deadline time.Time, what string, done func() (string, bool)) {
	t.Helper()
	for {
		got, ok := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: no data: %.2000s", what, got)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ask returns the data of an answer of Prometheus; null while it does not answer.
func ask(t *testing.T, server, path string) json.RawMessage {
	t.Helper()
	none := json.RawMessage("null")
	res, err := http.Get("http://" + server + "/api/v1/" + path)
	if err != nil {
		return none
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return none
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if res.StatusCode == http.StatusServiceUnavailable { // it starts
		return none
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %s: %.500s", path, res.Status, text)
	}
	return answer.Data
}

// startPrometheus starts Prometheus with the configuration of deploy/prometheus, in which some
// texts are replaced.
func startPrometheus(t *testing.T, bin, listen string, replace map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"prometheus.yaml", "rules.yaml"} {
		text, err := os.ReadFile(filepath.Join("../deploy/prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		for from, to := range replace {
			if name == "prometheus.yaml" && !bytes.Contains(text, []byte(from)) {
				t.Fatalf("%s has no %s", name, from)
			}
			if name == "prometheus.yaml" {
				text = bytes.ReplaceAll(text, []byte(from), []byte(to))
			}
		}
		write(t, dir, name, string(text))
	}
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "prometheus"), "--config.file", filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", listen)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s", &log)
		}
	})
}

// promtool lets Prometheus's own linter examine what a program serves.
func promtool(t *testing.T, program, addr string) {
	t.Helper()
	res, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	cmd := exec.Command(program, "check", "metrics")
	cmd.Stdin = res.Body
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
