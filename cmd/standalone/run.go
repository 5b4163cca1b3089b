package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/credential"
	"github.com/flank-tcm/flank/internal/evidence"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/route"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/wear"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const description = `Run all of Flank in one process: an embedded Kafka broker, the gateway, the monitor and a page.

Without further flags it simulates a gun drill: on the first start it makes a labelled history of
20 tools and trains a model from it, then it monitors a live drill whose tools wear out within two
minutes each. With --replay it sends a recording through the same pipeline instead.

The broker is for trying out and for small plants; it has no replicas.`

type flags struct {
	Once      bool      `help:"Stop when the simulated tool's life or the recording is over, and print a summary as JSON."`
	Replay    string    `placeholder:"FILE" help:"Recording to replay instead of the simulated drill."`
	Layout    string    `placeholder:"FILE" help:"Layout of the recording, see examples/turning/layout.yaml."`
	Model     string    `placeholder:"FILE" help:"Model to judge with. Needed with --replay; default for the simulated drill: the one in the data directory, trained if it is not there."`
	Results   string    `placeholder:"FILE" help:"Write every result as a line of JSON, as read from tcm.results.v1."`
	DataDir   string    `default:"./flank-data" placeholder:"DIR" help:"Holds broker, spool and model; started again, everything goes on where it was (default: ./flank-data)."`
	Page      string    `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address of the page (default: 127.0.0.1:8080); 'off' for none."`
	PageToken pageToken `embed:"" prefix:"page-token-"`
	Routes    string    `placeholder:"FILE" help:"Routes of alerts to others: a file with 'alerts: routes:' as in monitor.yaml, see docs/alerts.md."`
	Broker    string    `default:"127.0.0.1:9092" placeholder:"ADDR" help:"Address of the embedded broker (default: 127.0.0.1:9092)."`
	Machine   string    `default:"local/site/area/line/drill" placeholder:"PATH" help:"ISA-95 path of the machine, whatever a recording calls it (default: local/site/area/line/drill)."`
	Speed     float64   `placeholder:"X" help:"Times as fast as a live sensor. Default: 1 for the simulated drill, as fast as possible for a recording."`
	Seed      uint64    `default:"1" help:"Of the simulation and the training."`
	Verbose   bool      `help:"Log what the parts do."`
}

// pageToken is a credential.Secret as flags.
type pageToken struct {
	File string `placeholder:"FILE" help:"Holds the token with which the page takes commands."`
	Env  string `placeholder:"NAME" help:"Environment variable that holds it instead."`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f flags
	k, err := cli.Parse(&f, "standalone", description, args, stdout, stderr)
	if k == nil {
		return err
	}
	switch {
	case f.Replay != "" && f.Model == "":
		return errors.New("--replay needs --model: train one with `trainer fit`")
	case f.Replay == "" && f.Layout != "":
		return errors.New("--layout goes with --replay: the simulated drill has its own")
	case f.Speed < 0:
		return fmt.Errorf("--speed %v: must be positive", f.Speed)
	}
	if err := gateway.CheckMachine(f.Machine); err != nil {
		return fmt.Errorf("--machine: %w", err)
	}
	level := zerolog.ErrorLevel
	if f.Verbose {
		level = zerolog.DebugLevel
	}
	p := &plant{flags: f, stdout: stdout, stderr: stderr, log: cli.Logger(stderr, level)}
	defer p.close()
	return p.run(ctx)
}

// plant is everything that runs.
type plant struct {
	flags
	stdout, stderr io.Writer
	log            zerolog.Logger

	broker   *bus.Broker
	bus      bus.Config
	model    *model.Model
	hub      *web.Hub
	evidence *evidence.Store
	page     *http.Server
	orders   *bus.Producer // of pages
	pageURL  string
	started  time.Time
}

// job is what is fed to the gateway.
type job struct {
	source    source.Source
	recording string // identity of a recording, see gateway.Config
	rule      wear.Rule
	speed     float64
}

func (p *plant) run(ctx context.Context) error {
	p.started = time.Now()
	if err := os.MkdirAll(p.DataDir, 0o755); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	var err error
	// A model or a recording that cannot be used is said before anything starts.
	var replay *source.Recording
	if p.Replay != "" {
		if replay, err = p.openReplay(); err != nil {
			return err
		}
	} else if p.Model != "" {
		if p.model, err = model.Load(p.Model); err != nil {
			return err
		}
	}
	if p.broker, err = bus.StartBroker(filepath.Join(p.DataDir, "broker"), p.Broker); err != nil {
		return err
	}
	p.bus = p.broker.Config("flank-standalone")
	if err := p.servePage(); err != nil {
		return err
	}
	if _, err := bus.Apply(ctx, p.bus, 1, 1); err != nil {
		return err
	}
	var j job
	if replay != nil {
		j, err = p.replay(replay)
	} else {
		j, err = p.drill(ctx)
	}
	if err != nil {
		return err
	}
	if c, ok := j.source.(io.Closer); ok {
		defer c.Close()
	}
	return p.monitor(ctx, j)
}

// servePage starts the page. It shows the channels of the model, or of the
// simulated drill before there is one.
func (p *plant) servePage() error {
	layout := signal.GunDrill()
	if p.model != nil {
		layout = p.model.Layout
	}
	var err error
	if p.evidence, err = evidence.Open(filepath.Join(p.DataDir, "evidence"), evidence.DefaultKeep); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	view := web.Config{Layout: layout, Evidence: p.evidence.Handler()}
	if token := credential.Secret(p.PageToken); !token.IsZero() {
		if _, err := token.Token(); err != nil {
			return fmt.Errorf("token of the page: %w", err)
		}
		var err error
		if p.orders, err = bus.NewProducer(p.bus); err != nil {
			return err
		}
		view.Control = monitor.Control(p.orders, token.Token)
	}
	p.hub = web.NewHub(view)
	p.hub.Status(web.Status{Phase: web.Starting, Fraction: -1})
	if p.Page == "off" {
		return nil
	}
	l, err := net.Listen("tcp", p.Page)
	if err != nil {
		return fmt.Errorf("page: %w: stop the program that uses %s, or choose another address with --page", err, p.Page)
	}
	p.pageURL = "http://" + l.Addr().String()
	p.page = &http.Server{Handler: p.hub.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := p.page.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error().Err(err).Msg("the page is gone")
		}
	}()
	return nil
}

func (p *plant) close() {
	if p.page != nil {
		p.page.Close()
	}
	if p.orders != nil {
		p.orders.Close()
	}
	if p.broker != nil {
		if err := p.broker.Close(); err != nil {
			p.log.Warn().Err(err).Msg("broker")
		}
	}
}

// monitor feeds the job through gateway, broker and monitor until it is over
// or ctx ends, and prints the summary.
func (p *plant) monitor(ctx context.Context, j job) (err error) {
	fmt.Fprintf(p.stderr, "model    %s\n", p.model)
	if p.pageURL != "" {
		fmt.Fprintf(p.stderr, "page     %s\n", p.pageURL)
	}
	var results *history.Collector
	gw, err := gateway.New(gateway.Config{
		Source: source.Pace(j.source, j.speed, source.Clock{}), Window: p.model.Window, SpoolDir: filepath.Join(p.DataDir, "spool"),
		Bus: p.bus, Recording: j.recording, SyncEvery: syncEvery(j.speed), Log: p.log,
		OnCut: func(c source.Cut) {
			if c.Window == nil {
				return
			}
			if class, ok := j.rule.Class(c.Truth.VBMeanUM, c.Truth.VBMaxUM, c.Truth.State); ok {
				results.Truth(c.Window.Seq, min(class, wear.Faulty))
			}
		},
	})
	if err != nil {
		return err
	}
	defer gw.Close()
	epoch, first, err := gw.Begin(ctx)
	if err != nil {
		return err
	}
	out, err := p.resultsFile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	results = history.NewCollector(monitor.DefaultGroup, p.Machine, window.FormatEpoch(epoch), first, out)

	line := newStatus(p)
	cfg := monitor.Config{Model: p.model, Bus: p.bus, Silence: time.Minute, Evidence: p.evidence, EvidenceURL: p.pageURL, Log: p.log}
	cfg.Show(p.hub)
	cli.Recall(ctx, p.bus, monitor.DefaultGroup, p.hub, p.log)
	cfg.OnWindow, cfg.OnAlert, cfg.OnAdvisory = line.also(cfg.OnWindow, cfg.OnAlert, cfg.OnAdvisory)
	mon, err := monitor.New(cfg)
	if err != nil {
		return err
	}
	routes, err := p.routes()
	if err != nil {
		return err
	}

	// Monitor and reader go on until what the gateway delivered is judged and
	// read; ctx stops the gateway only.
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReading()
	judging, stopJudging := context.WithCancel(reading)
	defer stopJudging()
	feeding, halt := context.WithCancel(ctx)
	defer halt()
	var wg sync.WaitGroup
	failures := make(chan error, 5)
	start := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				failures <- err
				halt()
			}
		})
	}
	defer cli.RunRoutes(reading, routes)()
	settled := make(chan struct{})
	start(func() error { defer close(settled); return mon.Run(judging) })
	start(func() error { return results.Run(reading, p.bus) })
	wg.Go(func() { line.run(reading) })
	patience := 20 * time.Second
	if err := gw.Run(feeding); err != nil {
		failures <- err
		halt()
	}
	if feeding.Err() != nil {
		patience = 2 * time.Second
	}
	results.Wait(reading, gw.Stats().Windows, patience)
	// Alerts follow the results of their batch: once the monitor has settled it,
	// all are there.
	stopJudging()
	<-settled
	if err := results.CatchUp(reading, p.bus, patience); err != nil {
		failures <- err
	}
	if err := results.Flush(); err != nil {
		failures <- err
	}
	line.close()
	over := feeding.Err() == nil && len(failures) == 0
	if over {
		p.hub.Status(web.Status{Phase: web.Done, Text: "the recording is over", Fraction: 1})
		if results.Summary().Results == gw.Stats().Windows {
			err = gw.Finish() // nobody waits for this replay any more
		}
	}
	sum, failed := p.summarize(gw, results)
	if err = errors.Join(err, failed); over {
		err = errors.Join(err, sum.check())
	}
	if over && !p.Once {
		fmt.Fprintln(p.stderr, "The page stays until Ctrl-C.")
		<-ctx.Done()
	}
	stopReading()
	wg.Wait()
	close(failures)
	for f := range failures {
		err = errors.Join(err, f)
	}
	return err
}

// routes returns the routes of --routes. What goes wrong with them is logged, in
// whatever mode.
func (p *plant) routes() ([]*route.Route, error) {
	if p.Routes == "" {
		return nil, nil
	}
	var c struct {
		Alerts cli.Alerts `yaml:"alerts"`
	}
	if err := config.Load(p.Routes, &c); err != nil {
		return nil, err
	}
	return c.Alerts.Build(p.Routes, p.bus, "tcm-monitor", false, cli.Logger(p.stderr, zerolog.WarnLevel))
}

func syncEvery(speed float64) int {
	if speed == 0 {
		return 64
	}
	return 1
}

// resultsFile opens the file of --results, or one that takes everything.
func (p *plant) resultsFile() (io.WriteCloser, error) {
	if p.Results == "" {
		return nowhere{}, nil
	}
	f, err := os.Create(p.Results)
	if err != nil {
		return nil, fmt.Errorf("--results: %w", err)
	}
	return f, nil
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }
