// Package metric exposes the counts of a program to Prometheus.
//
// A room lists its metrics once, each as a function of a snapshot S of its counts. A
// [Collector] takes the snapshots when Prometheus asks, one for each machine, route
// or certificate, so that the values of one row fit together. docs/reference/metrics.md lists
// all metrics of Flank; their names are kept, as names of topics are.
package metric

import (
	"iter"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Collector is a set of metrics.
type Collector = prometheus.Collector

// Metric is one metric of a snapshot S.
type Metric[S any] struct {
	name, help string
	kind       prometheus.ValueType
	value      func(S) float64
}

// Counter returns a metric that only grows while the program runs.
func Counter[S any](name, help string, value func(S) uint64) Metric[S] {
	return Metric[S]{name, help, prometheus.CounterValue, func(s S) float64 { return float64(value(s)) }}
}

// Gauge returns a metric that goes up and down.
func Gauge[S any](name, help string, value func(S) float64) Metric[S] {
	return Metric[S]{name, help, prometheus.GaugeValue, value}
}

// Of returns the metrics of one snapshot, without labels.
func Of[S any](snapshot func() S, metrics []Metric[S]) Collector {
	return newCollector(nil, func(yield func(string, S) bool) { yield("", snapshot()) }, metrics)
}

// By returns the metrics of several snapshots. A label tells them apart; rows yields
// its value with the snapshot.
func By[S any](label string, rows iter.Seq2[string, S], metrics []Metric[S]) Collector {
	return newCollector([]string{label}, rows, metrics)
}

type collector[S any] struct {
	labels  []string
	rows    iter.Seq2[string, S]
	metrics []Metric[S]
	descs   []*prometheus.Desc
}

func newCollector[S any](labels []string, rows iter.Seq2[string, S], metrics []Metric[S]) Collector {
	c := &collector[S]{labels: labels, rows: rows, metrics: metrics}
	for _, m := range metrics {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector[S]) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector[S]) Collect(out chan<- prometheus.Metric) {
	for label, s := range c.rows {
		labels := []string{strings.ToValidUTF8(label, "\uFFFD")}[:len(c.labels)]
		for i, m := range c.metrics {
			out <- prometheus.MustNewConstMetric(c.descs[i], m.kind, m.value(s), labels...)
		}
	}
}

// Handler answers GET and HEAD with the metrics of collectors and nothing else: no
// metrics of Go or of the process.
func Handler(collectors ...Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	mux := http.NewServeMux()
	mux.Handle("GET /", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}
