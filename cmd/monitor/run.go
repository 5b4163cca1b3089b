package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/cmd/internal/pages"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/bus/buslog"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/route"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
)

// program is the name under which the audit has what this program does.
const program = "monitor"

const description = `Judge the windows of machines and raise alerts.

Results go to tcm.results.v1, alerts to tcm.alerts.v1, messages that cannot be read to tcm.dlq.v1.
The monitor keeps its memory on tcm.state.v1. You may kill it at any time and start it again, here
or elsewhere: it judges every window once. Several monitors of one group share the machines.
Commands of people come on tcm.commands.v1.

  monitor run --config examples/gun-drill/monitor.yaml
  monitor alerts ls --config examples/gun-drill/monitor.yaml

The model comes from ` + "`trainer fit`" + `, the topics from ` + "`ingest topics apply`" + `.`

type flags struct {
	Init     initCommand     `cmd:"" help:"Write a configuration to begin with." example:"monitor init --kafka kafka1:9092"`
	Run      runCommand      `cmd:"" help:"Judge until Ctrl-C." example:"monitor run --config monitor.yaml; monitor run --config monitor.yaml --wait 5m"`
	Check    checkCommand    `cmd:"" help:"Try every step between this computer, the broker, the model and the state, and name the one that fails. Exit codes: 3 dns, 4 tcp, 5 tls, 6 sasl, 7 topics, 8 acl, 9 clock, 10 model, 11 state, 12 disk, 13 and up the routes." example:"monitor check --config monitor.yaml"`
	Alerts   alertsCommand   `cmd:"" help:"List alarms, show their history, and act on them."`
	Machines machinesCommand `cmd:"" help:"List the machines that the monitor remembers, take one off, rename one, or declare a tool new."`
	Report   reportCommand   `cmd:"" help:"Report each shift: alarms, false alarms, chattering, time to acknowledge, tools, sensors." example:"monitor report --config monitor.yaml --week; monitor report --config monitor.yaml --since 2026-11-16T06:00:00Z --format markdown"`
	Replay   replayCommand   `cmd:"" help:"Let two models judge features of the past, and say how they differ." example:"monitor replay --config monitor.yaml --models today.flank,new.flank --since 2026-11-02T06:00:00Z --format html"`
	Trace    traceCommand    `cmd:"" help:"Say where a window was, and when: on the topics, among the dead letters." more:"It looks a day back, or as far as --since says." example:"monitor trace --config monitor.yaml acme/spore/bay2/line1/usk25/1a2b3c4d5e6f7081/42"`
	Audit    auditCommand    `cmd:"" help:"List who did what, from where, and whether it was accepted." example:"monitor audit --config monitor.yaml --since 2026-11-16T06:00:00Z; monitor audit --config monitor.yaml --by kim --outcome refused -o json"`
	People   peopleCommand   `cmd:"" help:"Say who may log in to the page, each with a token and a role."`
	Dlq      struct {
		Ls      dlqListCommand    `cmd:"" help:"List the dead letters." example:"monitor dlq ls --config monitor.yaml; monitor dlq ls --config monitor.yaml -o json"`
		Show    dlqShowCommand    `cmd:"" help:"Print one dead letter in full." example:"monitor dlq show --config monitor.yaml 17"`
		Redrive dlqRedriveCommand `cmd:"" help:"Send dead letters again to the topic they came from, once the cause is corrected." example:"monitor dlq redrive --config monitor.yaml 17 18; monitor dlq redrive --config monitor.yaml --all"`
	} `cmd:"" help:"List, show and resend messages that could not be used, on tcm.dlq.v1."`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "tune" {
		return &cli.Exit{Code: 2, Err: errors.New("tune: the command is `trainer tune` now, with the same flags: use that program")}
	}
	return cli.Run(ctx, new(flags), program, description, args, stdout, stderr)
}

type runCommand struct {
	cli.ConfigFile
	cli.Waiting
	cli.VerboseFlag

	InsecureModels bool `help:"Also accept models and deployments of tcm.models.v1 that are not signed, or by a key that is not in models.keys. The page warns of that."`
}

// Run judges windows until ctx ends.
func (f *runCommand) Run(ctx context.Context, out cli.Output) error {
	log := cli.Logger(out.Stderr, cli.Level(f.Verbose, zerolog.InfoLevel))
	record := &cli.Audit{Program: program, Log: log}
	reloaded := func(err error) { record.Reloaded(f.Config, err) }
	load := f.load
	return cli.Reloading(ctx, log, func() (settings, error) {
		c, err := load()
		load = f.loadAgain
		return c, err
	}, reloaded, func(ctx context.Context, c settings, watch func(func() error)) error {
		return f.judge(ctx, c, record, log, out, watch)
	})
}

// loadAgain returns a configuration for a monitor that runs already. It also tries the files that the
// configuration names: at the start the monitor may wait for them, but later it must not end for them.
func (f *runCommand) loadAgain() (settings, error) {
	c, err := f.load()
	if err == nil {
		err = c.checkFiles(f.InsecureModels)
	}
	return c, err
}

// checkFiles reports a model, keys or routes that cannot be used.
func (c settings) checkFiles(insecureModels bool) error {
	if err := c.Evidence.check(c.file); err != nil {
		return err
	}
	var err error
	if c.Model != "" {
		_, err = model.Load(config.ResolvePath(c.file, c.Model))
	} else {
		_, err = c.keys(insecureModels)()
	}
	if err != nil {
		return err
	}
	to, err := c.Kafka.Load(c.file, "flank-monitor")
	if err != nil {
		return err
	}
	routes, err := c.Alerts.Build(c.file, to, c.Group, true, zerolog.Nop())
	for _, r := range routes {
		r.Close()
	}
	return err
}

// load returns a configuration that can be used, as far as the file itself shows it.
func (f *runCommand) load() (settings, error) {
	c, _, err := loadBus(f.Config)
	if err != nil {
		return c, err
	}
	if _, err := c.deployed(f.InsecureModels); err != nil {
		return c, err
	}
	if err := c.Alarm.Check(); err != nil {
		return c, fmt.Errorf("%s: %w", c.file, err)
	}
	return c, c.checkPage()
}

// judge judges windows by one configuration until ctx ends. It calls watch with what says whether the
// monitor is ready.
func (f *runCommand) judge(ctx context.Context, c settings, record *cli.Audit, log zerolog.Logger, out cli.Output, watch func(func() error)) error {
	to, err := c.Kafka.Load(c.file, "flank-monitor")
	if err != nil {
		return err
	}
	routes, err := c.Alerts.Build(c.file, to, c.Group, false, log)
	if err != nil {
		return err
	}
	stop := func() {
		for _, r := range routes {
			r.Close()
		}
	}
	defer func() { stop() }()
	to.OnRetry = buslog.OnRetry(log, "waiting for Kafka")
	cfg, err := f.monitorConfig(ctx, c, to)
	if err != nil {
		return err
	}
	written, closeAudit, err := record.Open(to)
	if err != nil {
		return err
	}
	defer closeAudit()
	cfg.Log, cfg.OnAudit = log, record.Record
	p, err := newPage(ctx, c, &cfg, f.InsecureModels)
	defer p.close()
	if err != nil {
		return err
	}
	mon, err := monitor.New(cfg)
	if err != nil {
		return err
	}
	p.audit = written
	if err := p.serve(mon, routes, cfg); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	go buslog.WatchCertificates(ctx, to, log)
	c.sayBegin(log, cfg)
	watch(mon.Ready)
	stop = pages.RunRoutes(ctx, routes)
	err = mon.Run(ctx)
	stop()
	s := mon.Stats()
	fmt.Fprintf(out.Stdout, "%d windows judged, %d repeats dropped, %d messages set aside, %d alerts\n", s.Judged, s.Repeats, s.Dead, s.Alerts)
	return err
}

// sayBegin logs what the monitor is about to do.
func (c settings) sayBegin(log zerolog.Logger, cfg monitor.Config) {
	ev := log.Info().Str("group", c.Group)
	if cfg.Model != nil {
		ev = ev.Str("model", cfg.Model.ID()).Str("layout", cfg.Model.Layout.Fingerprint())
	}
	ev.Msg("monitoring")
}

// monitorConfig loads the model and opens the evidence. It waits for a model and a
// broker that are not there yet, for as long as the command says.
func (f *runCommand) monitorConfig(ctx context.Context, c settings, to bus.Config) (cfg monitor.Config, err error) {
	cfg = monitor.Config{Group: c.Group, Alarm: c.Alarm, Silence: c.Silence, Bus: to, EvidenceURL: c.Evidence.URL}
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
	if err := cli.Await(ctx, f.Wait, func(ctx context.Context) error { return bus.Probe(ctx, to) }); err != nil {
		return cfg, fmt.Errorf("%s: kafka: %w", c.file, err)
	}
	cfg.Evidence, err = c.Evidence.open(c.file)
	return cfg, err
}

// page is the page of a monitor. It has no hub if the configuration names no address
// for it.
type page struct {
	pages.Config
	metrics string // address of its own; empty: the page's
	guard   *web.Guard
	hub     *web.Hub
	monitor *monitor.Monitor // set before the page is served
	system  *system
	audit   *audit.Writer
	status  web.Status
	closers []func()
}

// newPage prepares the page, and the callbacks of cfg that it needs.
func newPage(ctx context.Context, c settings, cfg *monitor.Config, insecure bool) (*page, error) {
	access, token, err := c.pageAccess()
	p := &page{Config: access}
	if err != nil {
		return p, err
	}
	if p.metrics = c.Metrics; p.Listen == "" {
		return p, nil
	}
	if p.guard, err = access.Guard(token, cfg.Log, c.Evidence.host()); err != nil {
		return p, config.Locate(c.file, err)
	}
	p.guard.Audit = cfg.OnAudit
	view := web.Config{InsecureModels: insecure, Ready: func() error { return p.monitor.Ready() }}
	if cfg.Model != nil {
		view.Layout = cfg.Model.Layout
	}
	if cfg.Evidence != nil {
		view.Evidence = cfg.Evidence.Handler()
	}
	if p.guard.Find != nil {
		control, stop, err := pages.Control(cfg.Bus)
		if err != nil {
			return p, err
		}
		view.Control, p.closers = control, append(p.closers, stop)
	}
	store, err := c.History.open(c.file, c.Group, cfg.Log)
	if err != nil {
		return p, err
	}
	p.closers = append(p.closers, func() { pages.CloseHistory(store, cfg.Log) })
	pages.ShowHistory(&view, store)
	p.system = &system{c: c, bus: cfg.Bus}
	p.system.show(&view)
	p.hub = web.NewHub(view)
	pages.Remember(p.hub, store, cfg.Log)
	status := web.Status{Phase: web.Monitoring, Fraction: -1}
	p.hub.Status(status)
	p.status = status
	cfg.Show(p.hub)
	to := cfg.Bus
	to.OnRetry = buslog.OnRetry(cfg.Log, "the page waits for Kafka")
	p.closers = append(p.closers, pages.Follow(ctx, to, cfg.Group, p.hub, store, cfg.Log))
	return p, nil
}

// serve answers with the page and the metrics, each at its address, until close.
func (p *page) serve(mon *monitor.Monitor, routes []*route.Route, cfg monitor.Config) error {
	p.monitor = mon
	collectors := append(mon.Metrics(), route.Metrics(routes), metric.Expiries(cfg.Bus.Expiries()), cli.AuditMetrics(p.audit))
	if p.Listen != "" {
		collectors = append(collectors, pages.Metrics(p.guard))
	}
	if p.metrics != "" {
		stop, err := cli.ServeMetrics(p.metrics, mon.Ready, cfg.Log, collectors...)
		if err != nil {
			return err
		}
		p.closers = append(p.closers, stop)
	}
	if p.Listen == "" {
		return nil
	}
	pages := http.NewServeMux()
	if p.hub != nil {
		p.system.begin(mon, routes)
		ctx, cancel := context.WithCancel(context.Background())
		p.closers = append(p.closers, cancel)
		go p.system.showRate(ctx, p.hub, p.status)
		pages.Handle("/", p.hub.Handler())
	} else {
		pages.Handle("GET /readyz", cli.Readyz(mon.Ready))
	}
	if p.metrics == "" {
		pages.Handle("/metrics", cli.Metrics(collectors))
	}
	_, stop, err := p.Serve(p.guard, pages, cfg.Log)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, stop)
	return nil
}

func (p *page) close() {
	for _, c := range slices.Backward(p.closers) {
		c()
	}
}
