package main

import (
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/metric"
)

// metricsFlag names a file for node-exporter: a trainer does not run for long enough to be
// asked.
type metricsFlag struct {
	MetricsFile string `placeholder:"FILE.prom" help:"Also write metrics of the run to this file, also if it failed, for the textfile collector of Prometheus's node-exporter."`
}

// check reports a file that could not be written when the training is over.
func (f metricsFlag) check() error {
	if f.MetricsFile == "" {
		return nil
	}
	if filepath.Ext(f.MetricsFile) != ".prom" {
		return fmt.Errorf("--metrics-file %s: node-exporter reads files that end in .prom: name it so", f.MetricsFile)
	}
	return cli.CheckFolder("--metrics-file", f.MetricsFile)
}

// ran is what is known of a training that is over.
type ran struct {
	began, ended time.Time
	report       *card.Report // nil if it failed
}

// write writes the file, if one is named.
func (f metricsFlag) write(r ran) error {
	if f.MetricsFile == "" {
		return nil
	}
	if err := metric.WriteFile(f.MetricsFile, r.metrics()...); err != nil {
		return fmt.Errorf("--metrics-file: %w: check the folder's rights and the disk", err)
	}
	return nil
}

func (r ran) metrics() []metric.Collector {
	all := []metric.Collector{metric.Of(func() ran { return r }, []metric.Metric[ran]{
		metric.Gauge("tcm_trainer_last_run_timestamp_seconds", "When the last training was over, since 1970.", func(r ran) float64 { return float64(r.ended.UnixMilli()) / 1000 }),
		metric.Gauge("tcm_trainer_last_run_duration_seconds", "How long it took.", func(r ran) float64 { return r.ended.Sub(r.began).Seconds() }),
		metric.Gauge("tcm_trainer_last_run_success", "1 if it wrote a model, 0 if it failed or was stopped.", func(r ran) float64 {
			if r.report == nil {
				return 0
			}
			return 1
		}),
	})}
	if r.report == nil {
		return all
	}
	all = append(all, metric.By("model", func(yield func(string, ran) bool) { yield(r.report.Model, r) }, []metric.Metric[ran]{
		metric.Gauge("tcm_trainer_model_info", "1 for the model that it wrote.", func(ran) float64 { return 1 }),
		metric.Gauge("tcm_trainer_model_windows", "Windows with a label that the model has learnt from.", func(r ran) float64 { return float64(r.report.Windows.Used) }),
	}))
	if p := r.report.Pooled; p != nil && !math.IsNaN(float64(p.GMean)) {
		all = append(all, metric.By("model", func(yield func(string, ran) bool) { yield(r.report.Model, r) }, []metric.Metric[ran]{
			metric.Gauge("tcm_trainer_model_gmean_ratio", "G-mean on tools that were held out, from 0 to 1.", func(r ran) float64 { return float64(p.GMean) }),
		}))
	}
	return all
}
