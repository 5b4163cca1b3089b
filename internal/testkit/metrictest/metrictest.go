// Package metrictest checks the metrics of a room, for tests: their names and labels against a
// golden file and the page of metrics, their form against Prometheus's own rules.
package metrictest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// kept are names that Prometheus's rules would not give a metric today. They stay, as every
// name does.
var kept = map[string]string{
	"tcm_certificate_days_left": "use base unit \"seconds\" instead of \"days\"",
}

// Check gathers the metrics of collectors, each of which must have at least one value. It
// compares their names, kinds, labels and help with the golden file metrics.txt, looks each name
// up in the page at docs, and lets promlint examine all.
func Check(t *testing.T, docs string, collectors ...prometheus.Collector) {
	t.Helper()
	page, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if kept[p.Metric] != p.Text {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	var text strings.Builder
	for _, f := range families {
		kind := strings.ToLower(f.GetType().String())
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		fmt.Fprintf(&text, "%s %s {%s} %s\n", f.GetName(), kind, strings.Join(labels, ","), f.GetHelp())
		if !slices.ContainsFunc(strings.Split(string(page), "\n"), func(l string) bool {
			return strings.Contains(l, "| "+kind+" |") && strings.Contains(l, "`"+f.GetName()+"`")
		}) {
			t.Errorf("%s lacks `%s` in a row with | %s |", docs, f.GetName(), kind)
		}
	}
	golden.Check(t, "metrics.txt", text.String())
}
