package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/buslog"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/route"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
)

const description = `Judge the windows of machines and raise alerts.

Results go to tcm.results.v1, alerts to tcm.alerts.v1, messages that cannot be read to tcm.dlq.v1.
The monitor keeps its memory on tcm.state.v1. You may kill it at any time and start it again, here
or elsewhere: it judges every window once. Several monitors of one group share the machines.
Commands of people come on tcm.commands.v1.

  monitor run --config examples/gun-drill/monitor.yaml
  monitor alerts ls --config examples/gun-drill/monitor.yaml
  monitor tune --config monitor.yaml --data turning.csv --budget "1 per 8h"

The model comes from ` + "`trainer fit`" + `, the topics from ` + "`ingest topics apply`" + `.`

type flags struct {
	Init     initCommand     `cmd:"" help:"Write a configuration to begin with."`
	Run      runCommand      `cmd:"" help:"Judge until Ctrl-C."`
	Check    checkCommand    `cmd:"" help:"Try every step between this computer, the broker, the model and the state, and name the one that fails."`
	Alerts   alertsCommand   `cmd:"" help:"List alarms, show their history, and act on them."`
	Machines machinesCommand `cmd:"" help:"List the machines that the monitor remembers, take one off, rename one, or declare a tool new."`
	Tune     tuneCommand     `cmd:"" help:"Choose k, n and the threshold of the alarm for a budget of false alarms, by replaying labelled tools."`
	Report   reportCommand   `cmd:"" help:"Report each shift: alarms, false alarms, chattering, time to acknowledge, tools, sensors."`
	Replay   replayCommand   `cmd:"" help:"Let two models judge features of the past, and say how they differ."`
	People   peopleCommand   `cmd:"" help:"Say who may log in to the page, each with a token and a role."`
	Dlq      struct {
		Ls      dlqListCommand    `cmd:"" help:"List the dead letters."`
		Show    dlqShowCommand    `cmd:"" help:"Print one dead letter in full."`
		Redrive dlqRedriveCommand `cmd:"" help:"Send dead letters again to the topic they came from, once the cause is corrected."`
	} `cmd:"" help:"List, show and resend messages that could not be used, on tcm.dlq.v1."`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Run(ctx, new(flags), "monitor", description, args, stdout, stderr)
}

type runCommand struct {
	Config  string        `required:"" placeholder:"FILE" help:"Configuration, see examples/gun-drill/monitor.yaml."`
	Wait    time.Duration `default:"0s" help:"How long to wait for a broker or a model that is not there yet."`
	Verbose bool          `help:"Log more."`

	InsecureModels bool `help:"Also accept models and deployments of tcm.models.v1 that are not signed, or by a key that is not in models.keys. The page warns of that."`
}

// Run judges windows until ctx ends.
func (f *runCommand) Run(ctx context.Context, out cli.Output) error {
	c, to, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	if c.judges() {
		if _, err := c.deployed(f.InsecureModels); err != nil {
			return err
		}
	}
	if err := c.Alarm.Check(); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	if err := c.checkPage(); err != nil {
		return err
	}
	log := cli.Logger(out.Stderr, cli.Level(f.Verbose, zerolog.InfoLevel))
	if !c.judges() {
		c.Alerts = cli.Alerts{} // the monitors that judge have routes
	}
	routes, err := c.Alerts.Build(c.file, to, c.Group, false, log)
	if err != nil {
		return err
	}
	to.OnRetry = buslog.OnRetry(log, "waiting for Kafka")
	cfg, err := f.monitorConfig(ctx, c, to)
	if err != nil {
		return err
	}
	cfg.Log = log
	p, err := newPage(ctx, c, &cfg, f.InsecureModels)
	defer p.close()
	if err != nil {
		return err
	}
	mon, err := monitor.New(cfg)
	if err != nil {
		return err
	}
	if err := p.serve(mon, routes, cfg); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	go buslog.WatchCertificates(ctx, to, log)
	c.sayBegin(log, cfg)
	stop := cli.RunRoutes(ctx, routes)
	err = mon.Run(ctx)
	stop()
	s := mon.Stats()
	if !c.judges() {
		fmt.Fprintf(out.Stdout, "features of %d windows published, %d messages set aside\n", s.Features, s.Dead)
		return err
	}
	fmt.Fprintf(out.Stdout, "%d windows judged, %d repeats dropped, %d messages set aside, %d alerts\n", s.Judged, s.Repeats, s.Dead, s.Alerts)
	return err
}

// sayBegin logs what the monitor is about to do.
func (c settings) sayBegin(log zerolog.Logger, cfg monitor.Config) {
	if !c.judges() {
		log.Info().Str("group", monitor.ExtractGroup(c.Group)).Msg("extracting features of windows; no model is used, and nothing is judged")
		return
	}
	text := "monitoring"
	if !c.extracts() {
		text = "monitoring by features alone"
	}
	ev := log.Info().Str("group", c.Group)
	if cfg.Model != nil {
		ev = ev.Str("model", cfg.Model.ID()).Str("layout", cfg.Model.Layout.Fingerprint())
	}
	ev.Msg(text)
}

// monitorConfig loads the model and opens the evidence. It waits for a model and a
// broker that are not there yet, for as long as the command says.
func (f *runCommand) monitorConfig(ctx context.Context, c settings, to bus.Config) (cfg monitor.Config, err error) {
	cfg = monitor.Config{Group: c.Group, Stages: c.Stages, Alarm: c.Alarm, Silence: c.Silence, Bus: to, EvidenceURL: c.Evidence.URL}
	if c.judges() {
		err = cli.Await(ctx, f.Wait, func(context.Context) (err error) {
			if c.Model != "" {
				cfg.Model, err = model.Load(config.ResolvePath(c.file, c.Model))
				return err
			}
			cfg.Keys = c.keys(f.InsecureModels)
			_, err = cfg.Keys()
			return err
		})
		if err != nil {
			return cfg, err
		}
	}
	if err := cli.Await(ctx, f.Wait, func(ctx context.Context) error { return bus.Probe(ctx, to) }); err != nil {
		return cfg, fmt.Errorf("%s: kafka: %w", c.file, err)
	}
	cfg.Evidence, err = c.Evidence.open(c.file)
	return cfg, err
}

// page is the page of a monitor. It has no hub if the configuration names no address
// for it, or if there is nothing to show: one that only extracts has metrics.
type page struct {
	cli.Page
	guard   *web.Guard
	hub     *web.Hub
	monitor *monitor.Monitor // set before the page is served
	system  *system
	closers []func()
}

// newPage prepares the page, and the callbacks of cfg that it needs.
func newPage(ctx context.Context, c settings, cfg *monitor.Config, insecure bool) (*page, error) {
	access, token, err := c.pageAccess()
	p := &page{Page: access}
	if err != nil {
		return p, err
	}
	if p.Listen == "" {
		return p, nil
	}
	if p.guard, err = access.Guard(token, cfg.Log, c.Evidence.host()); err != nil {
		return p, config.Locate(c.file, err)
	}
	if !c.judges() {
		return p, nil
	}
	view := web.Config{InsecureModels: insecure, Ready: func() error { return p.monitor.Ready() }}
	if cfg.Model != nil {
		view.Layout = cfg.Model.Layout
	}
	if cfg.Evidence != nil {
		view.Evidence = cfg.Evidence.Handler()
	}
	if p.guard.Find != nil {
		control, stop, err := cli.PageControl(cfg.Bus)
		if err != nil {
			return p, err
		}
		view.Control, p.closers = control, append(p.closers, stop)
	}
	store, err := c.History.open(c.file, c.Group, cfg.Log)
	if err != nil {
		return p, err
	}
	p.closers = append(p.closers, func() { cli.CloseHistory(store, cfg.Log) })
	cli.ShowHistory(&view, store)
	p.system = &system{c: c, bus: cfg.Bus}
	p.system.show(&view)
	p.hub = web.NewHub(view)
	status := web.Status{Phase: web.Monitoring, Fraction: -1}
	if !c.extracts() {
		status.Text = "judging by features: the waveforms are not shown here"
	}
	p.hub.Status(status)
	cfg.Show(p.hub)
	to := cfg.Bus
	to.OnRetry = buslog.OnRetry(cfg.Log, "the page waits for Kafka")
	p.closers = append(p.closers, cli.Follow(ctx, to, cfg.Group, p.hub, store, cfg.Log))
	return p, nil
}

// serve answers with the page and the metrics until close.
func (p *page) serve(mon *monitor.Monitor, routes []*route.Route, cfg monitor.Config) error {
	p.monitor = mon
	if p.Listen == "" {
		return nil
	}
	pages := http.NewServeMux()
	if p.hub != nil {
		p.system.begin(mon, routes)
		pages.Handle("/", p.hub.Handler())
	} else {
		pages.HandleFunc("GET /readyz", p.serveReady)
	}
	pages.Handle("/metrics", metric.Handler(mon.Metrics(), route.Metrics(routes), buslog.CertificateMetrics(cfg.Bus), cli.PageMetrics(p.guard)))
	_, stop, err := p.Serve(p.guard, pages, cfg.Log)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, stop)
	return nil
}

// serveReady says whether a monitor that only extracts is ready.
func (p *page) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := p.monitor.Ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (p *page) close() {
	for _, c := range slices.Backward(p.closers) {
		c()
	}
}
