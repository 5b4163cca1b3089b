package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

// rule is an alert of rules.yaml.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

// rules returns the alerts of rules.yaml. promtool checks their syntax and tests them: make
// metrics-check.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile("prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// Each alert has a severity, texts, a section of the runbooks with commands, and a test.
func TestAlerts(t *testing.T) {
	book, err := os.ReadFile("../docs/how-to/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("prometheus/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for part := range strings.SplitSeq(string(book), "\n## ") {
		name, text, _ := strings.Cut(part, "\n")
		sections[name] = text
	}
	all := rules(t)
	if len(all) != 13 || len(sections) != len(all)+1 { // and the beginning
		t.Errorf("%d alerts, %d runbooks", len(all), len(sections)-1)
	}
	command := regexp.MustCompile("(?m)^(ingest|monitor|curl) ")
	for _, r := range all {
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "docs/how-to/runbooks.md#")
		switch {
		case anchor != strings.ToLower(r.Alert) || sections[r.Alert] == "":
			t.Errorf("%s: runbook %q", r.Alert, r.Annotations["runbook_url"])
		case !command.MatchString(sections[r.Alert]):
			t.Errorf("%s: its runbook has no command", r.Alert)
		case r.Labels["severity"] != "critical" && r.Labels["severity"] != "warning", r.Annotations["summary"] == "", r.Annotations["description"] == "":
			t.Errorf("%s: labels %v, annotations %v", r.Alert, r.Labels, r.Annotations)
		case !strings.Contains(string(tests), "alertname: "+r.Alert+"\n"):
			t.Errorf("%s has no test in rules_test.yaml", r.Alert)
		}
		checkNames(t, r.Alert, r.Expr)
	}
}

var metricName = regexp.MustCompile(`\b(tcm_[a-z_]+|go_[a-z_]+|process_[a-z_]+)`)

// checkNames reports metrics in an expression that docs/reference/metrics.md does not have.
func checkNames(t *testing.T, where, expr string) {
	t.Helper()
	page, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := metricName.FindAllString(string(page), -1)
	for _, name := range metricName.FindAllString(expr, -1) {
		if !strings.HasPrefix(name, "tcm_") {
			continue
		}
		if base := strings.TrimSuffix(name, "_bucket"); !slices.Contains(known, base) {
			t.Errorf("%s: no metric %s on docs/reference/metrics.md", where, name)
		}
	}
}

// checkJudged reports an expression that takes a machine of which no window was judged, such as one that has just got
// another name, for one that was judged in 1970 last.
func checkJudged(t *testing.T, where, expr string) {
	t.Helper()
	if ages := regexp.MustCompile(`- ?\(?max[^-]*tcm_machine_judged_until_timestamp_seconds[^>]*$`); ages.MatchString(expr) {
		t.Errorf("%s: %s: leave 0 out with > 0", where, expr)
	}
}

// The dashboards have panels that do not overlap, ask the provisioned source, and name only
// metrics of the page. `make dashboards` runs their queries.
func TestDashboards(t *testing.T) {
	source, err := os.ReadFile("grafana/provisioning/datasources/prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("grafana/dashboards/*.json")
	if err != nil || len(paths) != 3 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			UID    string
			Panels []struct {
				ID         int
				Title      string
				Datasource struct{ UID string }
				GridPos    struct{ X, Y, W, H int }
				Targets    []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if d.UID != strings.TrimSuffix(filepath.Base(path), ".json") {
			t.Errorf("%s: uid %q", path, d.UID)
		}
		taken := make(map[[2]int]string)
		for i, p := range d.Panels {
			if p.ID != i+1 || !strings.Contains(string(source), "uid: "+p.Datasource.UID+"\n") || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s: id %d, source %q, %d queries, at %+v", path, p.Title, p.ID, p.Datasource.UID, len(p.Targets), p.GridPos)
			}
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if taken[at] != "" {
						t.Fatalf("%s: %q and %q overlap", path, taken[at], p.Title)
					}
					taken[at] = p.Title
				}
			}
			for _, target := range p.Targets {
				checkNames(t, path+": "+p.Title, target.Expr)
				checkJudged(t, path+": "+p.Title, target.Expr)
			}
		}
	}
}

// The expressions to begin with name only metrics of the page.
func TestExpressions(t *testing.T) {
	page, err := os.ReadFile("../docs/how-to/prometheus.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Expressions to begin with")
	exprs := regexp.MustCompile("(?m)^\\| [^|]*\\? \\| `([^`]+)`").FindAllStringSubmatch(table, -1)
	if len(exprs) < 6 {
		t.Fatalf("%d expressions", len(exprs))
	}
	for _, e := range exprs {
		checkNames(t, "prometheus.md", e[1])
		checkJudged(t, "prometheus.md", e[1])
	}
}

// Prometheus scrapes each program at its address and keeps a bounded amount; Grafana asks that
// Prometheus and reads the provisioned folder. Both are reached from this machine only.
func TestMonitoring(t *testing.T) {
	p := load(t)
	prometheus, grafana := p.Services["prometheus"], p.Services["grafana"]
	for s, port := range map[*types.ServiceConfig]string{&prometheus: "9090", &grafana: "3000"} {
		if len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.Ports[0].Published != port {
			t.Errorf("%s: ports %+v", s.Name, s.Ports)
		}
		if !regexp.MustCompile(`:v?\d+\.\d+\.\d+$`).MatchString(s.Image) {
			t.Errorf("%s: image %q: want one version", s.Name, s.Image)
		}
	}
	if !slices.Contains(prometheus.Command, "--storage.tsdb.retention.size=2GB") || !prometheus.ReadOnly {
		t.Errorf("what Prometheus keeps is not bounded: %q", prometheus.Command)
	}
	read := func(s types.ServiceConfig, path string) string {
		file, _ := onHost(t, s, path)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	config := read(prometheus, "/etc/prometheus/prometheus.yaml")
	for _, name := range []string{"ingest", "monitor"} {
		_, port, _ := strings.Cut(configuration(t, p.Services[name]).Metrics, ":")
		if port == "" || !strings.Contains(config, `["`+name+":"+port+`"]`) {
			t.Errorf("prometheus.yaml does not scrape %s:%s", name, port)
		}
	}
	if source := read(grafana, "/etc/grafana/provisioning/datasources/prometheus.yaml"); !strings.Contains(source, "url: http://prometheus:9090\n") {
		t.Errorf("Grafana asks another Prometheus:\n%s", source)
	}
	folder := regexp.MustCompile(`path: (\S+)}`).FindStringSubmatch(read(grafana, "/etc/grafana/provisioning/dashboards/flank.yaml"))
	if folder == nil {
		t.Fatal("no folder of dashboards is provisioned")
	}
	read(grafana, folder[1]+"/flank-fleet.json")
}
