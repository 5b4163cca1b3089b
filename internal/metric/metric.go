// Package metric lays a program's counts open in the text format of Prometheus.
//
// A [Metric] is a name with a value at one moment. A counter only grows while the
// program runs; a gauge goes up and down. Metrics of one name differ in their
// labels. docs/metrics.md lists all that Flank has; names are kept, as topics are.
package metric

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Kind says how values of a metric change.
type Kind string

// Kinds that Flank has.
const (
	Counter Kind = "counter"
	Gauge   Kind = "gauge"
)

// Metric is one value. Labels are pairs of a name and a value.
type Metric struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []string
	Value  float64
}

// Count returns a counter without labels.
func Count(name, help string, n uint64) Metric {
	return Metric{Name: name, Kind: Counter, Help: help, Value: float64(n)}
}

// Level returns a gauge without labels.
func Level(name, help string, v float64) Metric {
	return Metric{Name: name, Kind: Gauge, Help: help, Value: v}
}

// ContentType is that of the text format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// Write writes metrics; those of one name must follow each other. It panics if
// labels are not in pairs.
func Write(w io.Writer, metrics []Metric) error {
	b := bufio.NewWriter(w)
	for i, m := range metrics {
		if len(m.Labels)%2 != 0 {
			panic("metric: " + m.Name + ": labels are not in pairs")
		}
		if i == 0 || metrics[i-1].Name != m.Name {
			fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", m.Name, helpEscapes.Replace(m.Help), m.Name, m.Kind)
		}
		b.WriteString(m.Name)
		for j := 0; j < len(m.Labels); j += 2 {
			sep := ","
			if j == 0 {
				sep = "{"
			}
			b.WriteString(sep + m.Labels[j] + `="` + valueEscapes.Replace(strings.ToValidUTF8(m.Labels[j+1], "\uFFFD")) + `"`)
		}
		if len(m.Labels) > 0 {
			b.WriteString("}")
		}
		b.WriteString(" " + strconv.FormatFloat(m.Value, 'f', -1, 64) + "\n")
	}
	return b.Flush()
}

// Handler answers with what collect returns at that moment. It answers GET and
// HEAD only.
func Handler(collect func() []Metric) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", ContentType)
		_ = Write(w, collect()) // who asked has gone
	})
}
