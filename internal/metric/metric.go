// Package metric exposes the counts of a program to Prometheus.
//
// A room lists its metrics once, each as a function of a snapshot S of its counts. A
// [Collector] takes the snapshots when Prometheus asks, one for each machine, route
// or certificate, so that the values of one row fit together. Durations go to a [Histogram].
// docs/reference/metrics.md lists all metrics of Flank; their names are kept, as names of
// topics are.
package metric

import (
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Collector is a set of metrics.
type Collector = prometheus.Collector

// Histogram counts durations, in seconds, by size. It is a Collector, and safe for concurrent
// use.
type Histogram struct{ prometheus.Histogram }

// Observe counts a duration. One that is negative, because two clocks differ, counts as 0: Prometheus takes a
// sum that falls for a restart.
func (h Histogram) Observe(seconds float64) { h.Histogram.Observe(max(seconds, 0)) }

// MaxMachines is how many machines of one program have rows of their own. It bounds what
// Prometheus must keep.
const MaxMachines = 500

// NewHistogram returns a histogram of durations from 100 µs to an hour.
func NewHistogram(name, help string) Histogram {
	return Histogram{prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets: []float64{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
	})}
}

// Runtime returns the metrics of Go, of the process, and of the program's build.
func Runtime() []Collector {
	return []Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector(),
	}
}

// Expiries returns when certificates for Kafka expire. Rows yields whose each of them is.
func Expiries(rows iter.Seq2[string, time.Time]) Collector {
	return By("certificate", rows, []Metric[time.Time]{
		Gauge("tcm_certificate_expiry_timestamp_seconds", "When a certificate expires, since 1970.", func(at time.Time) float64 { return float64(at.Unix()) }),
		Gauge("tcm_certificate_days_left", "Until a certificate expires.", func(at time.Time) float64 { return time.Until(at).Hours() / 24 }),
	})
}

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
	return newCollector(nil, func(yield func([]string, S) bool) { yield(nil, snapshot()) }, metrics)
}

// By returns the metrics of several snapshots. A label tells them apart; rows yields
// its value with the snapshot.
func By[S any](label string, rows iter.Seq2[string, S], metrics []Metric[S]) Collector {
	return ByLabels([]string{label}, func(yield func([]string, S) bool) {
		for value, s := range rows {
			if !yield([]string{value}, s) {
				return
			}
		}
	}, metrics)
}

// ByLabels returns the metrics of several snapshots. Several labels tell them apart; rows
// yields a value of each label, in their order, with the snapshot.
func ByLabels[S any](labels []string, rows iter.Seq2[[]string, S], metrics []Metric[S]) Collector {
	return newCollector(labels, rows, metrics)
}

type collector[S any] struct {
	rows    iter.Seq2[[]string, S]
	metrics []Metric[S]
	descs   []*prometheus.Desc
}

func newCollector[S any](labels []string, rows iter.Seq2[[]string, S], metrics []Metric[S]) Collector {
	c := &collector[S]{rows: rows, metrics: metrics}
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
	for values, s := range c.rows {
		labels := make([]string, len(values))
		for i, v := range values {
			labels[i] = strings.ToValidUTF8(v, "\uFFFD")
		}
		for i, m := range c.metrics {
			out <- prometheus.MustNewConstMetric(c.descs[i], m.kind, m.value(s), labels...)
		}
	}
}

// WriteFile writes the metrics of collectors to a file for the textfile collector of
// node-exporter. The file is there whole or not at all; everyone may read it.
func WriteFile(path string, collectors ...Collector) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	return prometheus.WriteToTextfile(path, registry)
}

// mostScrapes is how many scrapes of a program may be under way: one that waits for a disk that hangs is never
// given up.
const mostScrapes = 5

// Handler answers GET and HEAD with the metrics of collectors and nothing else. A row that does not fit the
// others, such as a second one with the same labels, is left out. While many scrapes wait, it answers 503.
func Handler(collectors ...Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	mux := http.NewServeMux()
	mux.Handle("GET /", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: mostScrapes}))
	return mux
}
