package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/buslog"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/credential"
	"github.com/flank-tcm/flank/internal/evidence"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/route"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

const description = `Judge the windows of machines and raise alerts.

Results go to tcm.results.v1, alerts to tcm.alerts.v1, what cannot be read to tcm.dlq.v1. What the
monitor remembers is on tcm.state.v1: it may be killed at any time and started again, here or
elsewhere, and judges every window once. Several monitors of one group share the machines.
What people say of alarms comes on tcm.commands.v1.

  monitor run --config examples/gun-drill/monitor.yaml
  monitor alerts ls --config examples/gun-drill/monitor.yaml
  monitor tune --config monitor.yaml --train train.yaml --data turning.csv --budget "1 per 8h"

The model comes from ` + "`trainer fit`" + `, the topics from ` + "`ingest topics apply`" + `.`

type flags struct {
	Run struct {
		Config  string        `required:"" placeholder:"FILE" help:"Configuration, see examples/gun-drill/monitor.yaml."`
		Wait    time.Duration `default:"0s" help:"How long to wait for a broker or a model that is not there yet."`
		Verbose bool          `help:"Log more."`
	} `cmd:"" help:"Judge until Ctrl-C."`
	Check struct {
		Config string `required:"" placeholder:"FILE" help:"Configuration. Exit codes: 3 dns, 4 tcp, 5 tls, 6 sasl, 7 topics, 8 acl, 9 clock, 10 model, 11 state, 12 disk, 13 and up the routes."`
	} `cmd:"" help:"Try every step between this machine and the broker, the model and the state, and name the one that fails."`
	Alerts   alertsFlags   `cmd:"" help:"Alarms: what stands, what happened, and what you have to say of it."`
	Machines machinesFlags `cmd:"" help:"Machines that the monitor remembers: list them, take one off, give one another name, say that a tool is new."`
	Tune     tuneFlags     `cmd:"" help:"Choose k, n and the threshold of the alarm for a budget of false alarms, by replaying labelled tools."`
	Report   reportFlags   `cmd:"" help:"Tell what happened in each shift: alarms, false ones, chattering, time to acknowledge, tools, sensors."`
	Dlq      struct {
		Ls      dlqFlags     `cmd:"" help:"List the dead letters."`
		Show    dlqOneFlags  `cmd:"" help:"Print one whole."`
		Redrive redriveFlags `cmd:"" help:"Send dead letters again to the topic they came from, after what was wrong is mended."`
	} `cmd:"" help:"Messages that could not be used, on tcm.dlq.v1."`
}

// settings is monitor.yaml.
type settings struct {
	Kafka bus.Settings   `yaml:"kafka"`
	Model string         `yaml:"model"`
	Group string         `yaml:"group"`
	Alarm alarm.Settings `yaml:"alarm"`
	Page  string         `yaml:"page"` // address; empty: none

	Silence  time.Duration    `yaml:"silence"` // 0: never
	Alerts   cli.Alerts       `yaml:"alerts"`
	Shifts   string           `yaml:"shifts"` // when they begin, for reports
	Evidence evidenceSettings `yaml:"evidence"`

	PageToken credential.Secret `yaml:"page_token"` // without one the page only shows
}

// evidenceSettings says where the waveforms around alerts are kept.
type evidenceSettings struct {
	Dir  string `yaml:"dir"`  // empty: none is kept
	Keep int    `yaml:"keep"` // alerts
	URL  string `yaml:"url"`  // of the page, as receivers of alerts reach it
}

// open returns the store that the configuration in file names, nil if it names none.
func (e evidenceSettings) open(file string) (*evidence.Store, error) {
	if e.Dir == "" {
		return nil, nil
	}
	if u, err := url.Parse(e.URL); err != nil || e.URL != "" && (u.Scheme == "" || u.Host == "" || u.RawQuery != "") {
		return nil, fmt.Errorf("%s: evidence.url %q: must be the address of the page, for example http://usk25-monitor:9102", file, e.URL)
	}
	s, err := evidence.Open(config.ResolvePath(file, e.Dir), e.Keep)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f flags
	k, err := cli.Parse(&f, "monitor", description, args, stdout, stderr)
	if k == nil {
		return err
	}
	c := settings{Group: "tcm-monitor", Alarm: alarm.Default, Page: "127.0.0.1:9102", Silence: time.Minute, Shifts: "06-14-22", Evidence: evidenceSettings{Keep: evidence.DefaultKeep}}
	file := cmp.Or(f.Run.Config, f.Check.Config, f.Dlq.Ls.Config, f.Dlq.Show.Config, f.Dlq.Redrive.Config, f.Alerts.Config, f.Tune.Config, f.Report.Config, f.Machines.Config)
	if err := config.Load(file, &c); err != nil {
		return err
	}
	if strings.HasPrefix(k.Command(), "tune") {
		return tuneAlarm(ctx, file, c, f.Tune, stdout, stderr)
	}
	to, err := c.Kafka.Load(file, "flank-monitor")
	if err != nil {
		return err
	}
	switch k.Command() {
	case "dlq ls":
		return dlqList(ctx, to, stdout)
	case "dlq show <offset>":
		return dlqShow(ctx, to, f.Dlq.Show.Offset, stdout)
	case "dlq redrive", "dlq redrive <offset>":
		return dlqRedrive(ctx, to, f.Dlq.Redrive, stdout)
	}
	if k.Command() == "alerts test" {
		return alertsTest(ctx, file, c, to, f.Alerts.Test, stdout)
	}
	if strings.HasPrefix(k.Command(), "alerts ") {
		return alerts(ctx, to, c.Group, k.Command(), f.Alerts, stdout)
	}
	if strings.HasPrefix(k.Command(), "machines ") {
		return machines(ctx, to, c.Group, k.Command(), f.Machines, time.Now(), stdout)
	}
	if strings.HasPrefix(k.Command(), "report") {
		return report(ctx, file, c, to, f.Report, time.Now(), stdout, stderr)
	}
	if k.Command() == "check" {
		return check(ctx, file, c, to, stdout)
	}
	if c.Model == "" {
		return fmt.Errorf("%s: model: name the model file, train one with `trainer fit`", file)
	}
	if err := c.Alarm.Check(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	level := zerolog.InfoLevel
	if f.Run.Verbose {
		level = zerolog.DebugLevel
	}
	log := cli.Logger(stderr, level)

	routes, err := c.Alerts.Build(file, to, c.Group, false, log)
	if err != nil {
		return err
	}

	var m *model.Model
	err = cli.Await(ctx, f.Run.Wait, func(context.Context) (err error) {
		m, err = model.Load(config.ResolvePath(file, c.Model))
		return err
	})
	if err != nil {
		return err
	}
	to.OnRetry = buslog.OnRetry(log, "waiting for Kafka")
	cfg := monitor.Config{Model: m, Group: c.Group, Alarm: c.Alarm, Silence: c.Silence, Log: log, Bus: to}
	if err := cli.Await(ctx, f.Run.Wait, func(ctx context.Context) error { return bus.Probe(ctx, cfg.Bus) }); err != nil {
		return fmt.Errorf("%s: kafka: %w", file, err)
	}
	if cfg.Evidence, err = c.Evidence.open(file); err != nil {
		return err
	}
	cfg.EvidenceURL = c.Evidence.URL
	var mon *monitor.Monitor // is there when the page is served
	var hub *web.Hub
	if c.Page != "" {
		view := web.Config{Layout: m.Layout}
		if cfg.Evidence != nil {
			view.Evidence = cfg.Evidence.Handler()
		}
		if token := c.PageToken.Resolve(file); !token.IsZero() {
			if _, err := token.Token(); err != nil {
				return fmt.Errorf("token of the page: %w", err)
			}
			out, err := bus.NewProducer(cfg.Bus)
			if err != nil {
				return err
			}
			defer out.Close()
			view.Control = monitor.Control(out, token.Token)
		}
		view.Ready = func() error { return mon.Ready() }
		hub = web.NewHub(view)
		hub.Status(web.Status{Phase: web.Monitoring, Fraction: -1})
		cfg.Show(hub)
		cli.Recall(ctx, cfg.Bus, cfg.Group, hub, log)
	}
	if mon, err = monitor.New(cfg); err != nil {
		return err
	}
	if hub != nil {
		pages := http.NewServeMux()
		pages.Handle("/", hub.Handler())
		pages.Handle("/metrics", metric.Handler(mon.Metrics(), route.Metrics(routes), buslog.CertificateMetrics(cfg.Bus)))
		stop, err := cli.Serve(c.Page, "page", pages, log)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		defer stop()
	}
	go buslog.WatchCertificates(ctx, cfg.Bus, log)
	log.Info().Str("model", m.ID()).Str("layout", m.Layout.Fingerprint()).Str("group", c.Group).Msg("monitoring")
	stop := cli.RunRoutes(ctx, routes)
	err = mon.Run(ctx)
	stop()
	s := mon.Stats()
	fmt.Fprintf(stdout, "%d windows judged, %d repeats dropped, %d messages set aside, %d alerts\n", s.Judged, s.Repeats, s.Dead, s.Alerts)
	return err
}
