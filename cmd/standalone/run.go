package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/cmd/internal/pages"
	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

const description = `Run all of Flank in one process: an embedded Kafka broker, the gateway, the monitor and a page.

Without further flags it simulates a gun drill, and monitors it with a model that learnt from a labelled
history of 20 simulated tools. The live tools wear out within two minutes each. The model is prepared;
with --fresh it drills the history and trains the model itself. With --replay it sends a recording through the same pipeline instead. With --broker-only
it is the broker for ingest and monitor as separate programs.

The broker is for trying out, on this computer; a plant runs Apache Kafka.`

type flags struct {
	BrokerOnly bool   `help:"Run only the broker, with all topics, for ingest and monitor as separate programs."`
	Once       bool   `help:"Stop when the simulated tool's life or the recording is over, and print a summary as JSON."`
	Replay     string `placeholder:"FILE" help:"Recording to replay instead of the simulated drill. Its windows are of --machine, also if it names another one."`
	cli.Moment
	cli.RecordingLayout
	Model   string `placeholder:"FILE" help:"Model to judge with. Needed with --replay; default for the simulated drill: the one in the data directory, which is the prepared one at first."`
	Fresh   bool   `help:"Drill a labelled history and train the model of the simulated drill from it, in place of the one in the data directory: half a minute on two cores."`
	Results string `placeholder:"FILE" help:"Write every result as a line of JSON, as read from tcm.results.v1."`
	DataDir string `default:"./flank-data" placeholder:"DIR" help:"Holds broker, spool and model; started again, everything goes on where it was (default: ./flank-data)."`
	Page    string `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address of the page (default: 127.0.0.1:8080); 'off' for none."`
	Metrics string `placeholder:"ADDR" help:"Address of /metrics for Prometheus, /livez and /readyz, for example 127.0.0.1:9103; none by default."`
	Broker  string `default:"127.0.0.1:9092" placeholder:"ADDR" help:"Address of the embedded broker, of this computer alone: it asks for no password (default: 127.0.0.1:9092)."`
	cli.Drill
	Speed float64 `placeholder:"X" help:"Times as fast as a live sensor. Default: 1 for the simulated drill, as fast as possible for a recording."`
	cli.VerboseFlag
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Run(ctx, new(flags), "standalone", description, args, stdout, stderr)
}

// Run starts all parts, and ends them when it is done.
func (f *flags) Run(ctx context.Context, out cli.Output) error {
	if err := f.checkBroker(); err != nil {
		return err
	}
	if f.BrokerOnly {
		p := &plant{flags: *f, stdout: out.Stdout, stderr: out.Stderr}
		return p.onlyBroker(ctx)
	}
	faults, err := f.check()
	if err != nil {
		return err
	}
	p := &plant{flags: *f, faults: faults, stdout: out.Stdout, stderr: out.Stderr, log: cli.Logger(out.Stderr, cli.Level(f.Verbose, zerolog.ErrorLevel))}
	defer p.close()
	return p.run(ctx)
}

// check reports flags that cannot be used or do not go together, before a model is trained. It returns the faults.
func (f *flags) check() (faults []sim.Fault, err error) {
	err = cmp.Or(
		config.Wrong(f.Replay != "" && f.Model == "", "--replay needs --model: train one with `trainer fit`"),
		config.Wrong(f.Fresh && f.Model+f.Replay != "", "--fresh trains a model of the simulated drill: leave out --model and --replay"),
		config.Wrong(f.Replay != "" && f.Fault != nil, "--fault goes with the simulated drill, and not with --replay"),
		config.Wrong(f.Replay == "" && f.Layout != "", "--layout goes with --replay: the simulated drill has a layout of its own"),
		config.Wrong(f.Replay == "" && !f.Start.IsZero(), "--start goes with --replay: the simulated drill starts now"),
		config.Wrong(f.Speed < 0, "--speed %v: must be positive", f.Speed))
	if err != nil {
		return nil, err
	}
	if err := event.CheckMachine(f.Machine); err != nil {
		return nil, fmt.Errorf("--machine: %w", err)
	}
	if faults, err = sim.ParseFaults(f.Fault); err == nil {
		err = sim.CheckFaults(signal.GunDrill(), faults)
	}
	if err != nil {
		return nil, fmt.Errorf("--fault: %w", err)
	}
	return faults, nil
}

// checkBroker reports an address of the broker at which everyone on the network could write.
func (f *flags) checkBroker() error {
	if err := broker.CheckAddress(f.Broker); err != nil {
		return fmt.Errorf("--broker: %w", err)
	}
	return nil
}

// plant is everything that runs.
type plant struct {
	flags
	faults         []sim.Fault
	newcomer       bool // this is the first start, or one with --fresh
	stdout, stderr io.Writer
	log            zerolog.Logger

	bus      bus.Config
	model    *model.Model                // see use
	shown    atomic.Pointer[model.Model] // the same, for pages, which ask at any time
	hub      *web.Hub
	evidence *evidence.Store
	history  *summary.Store
	audit    *audit.Writer
	pageURL  string
	closers  []func()
	started  time.Time
}

// job is what is fed to the gateway.
type job struct {
	source    source.Source
	recording string                                                            // identity of a recording, see gateway.Config
	classOf   func(meanUM, maxUM float64, state string) (class int, known bool) // by the rule of the model's labels
	speed     float64
}

func (p *plant) run(ctx context.Context) error {
	p.started = time.Now()
	if err := os.MkdirAll(p.DataDir, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	var err error
	// A model or a recording that cannot be used is reported before anything starts.
	var replay *source.Recording
	if p.Replay != "" {
		if replay, err = p.openReplay(); err != nil {
			return err
		}
	} else {
		m, err := p.givenModel() // the page shows its limit and threshold from the start
		if err != nil {
			return err
		}
		p.use(m)
	}
	broker, err := broker.Start(filepath.Join(p.DataDir, "broker"), p.Broker)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() {
		if err := broker.Close(); err != nil {
			p.log.Warn().Err(err).Msg("the embedded broker did not close cleanly; its next start checks the files")
		}
	})
	p.bus = broker.Config("flank-standalone")
	if p.audit, err = audit.Open(p.bus, "standalone", p.log); err != nil {
		return err
	}
	p.closers = append(p.closers, p.audit.Close)
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

func (p *plant) close() {
	for _, c := range slices.Backward(p.closers) {
		c()
	}
}

// line is the pipeline from a job's source to its results.
type line struct {
	*plant
	job
	gateway *gateway.Gateway
	monitor *monitor.Monitor
	results *history.Collector
	status  *status
	newest  atomic.Pointer[time.Time] // end of the newest window
}

// monitor feeds the job through gateway, broker and monitor until it is over
// or ctx ends, and prints the summary.
func (p *plant) monitor(ctx context.Context, j job) (err error) {
	fmt.Fprintf(p.stderr, "model    %s\n", p.model)
	l, send := &line{plant: p, job: j}, ingest.NewSend()
	if l.gateway, err = gateway.New(gateway.Config{
		Source: j.source, Speed: j.speed, Window: p.model.Window, SpoolDir: filepath.Join(p.DataDir, "spool"),
		Bus: p.bus, Recording: j.recording, SyncEvery: syncEvery(j.speed), OnCut: l.noteCut, OnSent: ingest.ObserveSent(send), Log: p.log,
	}); err != nil {
		return err
	}
	defer l.gateway.Close()
	epoch, first, err := l.gateway.Begin(ctx)
	if err != nil {
		return err
	}
	out, err := p.resultsFile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	l.results = history.NewCollector(monitor.DefaultGroup, p.Machine, window.FormatEpoch(epoch), first, out)
	l.status = newStatus(p)
	cfg := monitor.Config{Model: p.model, Bus: p.bus, Silence: time.Minute, Evidence: p.evidence, EvidenceURL: p.pageURL, OnAudit: p.audit.Record, Log: p.log, Alarm: p.alarm()}
	cfg.Show(p.hub)
	p.closers = append(p.closers, pages.Follow(ctx, p.bus, monitor.DefaultGroup, p.hub, p.history, p.log))
	cfg.OnWindow, cfg.OnAlert, cfg.OnAdvisory = l.status.also(cfg.OnWindow)
	if l.monitor, err = monitor.New(cfg); err != nil {
		return err
	}
	if p.Metrics != "" {
		newest := func() time.Time { return *cmp.Or(l.newest.Load(), new(time.Time)) }
		stop, err := cli.ServeMetrics(p.Metrics, l.monitor.Ready, p.log,
			append(append(l.monitor.Metrics(), cli.AuditMetrics(p.audit)), ingest.GatewayMetrics(p.Machine, l.gateway, send, newest)...)...)
		if err != nil {
			return fmt.Errorf("--%w", err)
		}
		p.closers = append(p.closers, stop)
	}
	return l.run(ctx)
}

// alarm returns the settings of alarms. In a recording, which is replayed faster than it was made, a tool that comes back
// calls at once: Kafka's clock does not say for how long it was away.
func (p *plant) alarm() alarm.Settings {
	s := alarm.Default
	if p.Replay != "" {
		s.ReAlarm = time.Nanosecond
	}
	return s
}

// noteCut notes where the newest window ends, and adds the class of one whose truth is known to
// the results.
func (l *line) noteCut(c source.Cut) {
	if c.Window == nil {
		return
	}
	end := c.Window.End()
	l.newest.Store(&end)
	if class, ok := l.classOf(c.Truth.VBMeanUM, c.Truth.VBMaxUM, c.Truth.State); ok {
		l.results.Truth(c.Window.Seq, min(class, 1))
	}
}

// run runs the parts of the line. Monitor and reader go on until what the gateway
// delivered is judged and read: ctx stops the gateway only. A part that fails stops
// the gateway too.
func (l *line) run(ctx context.Context) error {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	judging, stopJudging := context.WithCancel(lasting)
	defer stopJudging()
	parts, feeding := errgroup.WithContext(ctx)
	settled := make(chan struct{})
	parts.Go(func() error { defer close(settled); return l.monitor.Run(judging) })
	parts.Go(func() error { return l.results.Run(lasting, l.bus) })
	parts.Go(func() error { l.status.run(lasting); return nil })
	err := l.gateway.Run(feeding)
	patience := 20 * time.Second
	if err != nil || feeding.Err() != nil {
		patience = 2 * time.Second
	}
	l.results.Wait(lasting, l.gateway.Stats().Windows, patience)
	// Alerts follow the results of their batch: once the monitor has settled it, all are
	// there.
	stopJudging()
	<-settled
	err = errors.Join(err, l.results.CatchUp(lasting, l.bus, patience), l.results.Flush())
	l.status.close()
	err = l.finish(ctx, err, feeding.Err() == nil)
	stop()
	return errors.Join(err, parts.Wait())
}

// finish prints the summary of a job whose error is err. One that was fed to its end
// is checked; its page stays until ctx ends, unless --once.
func (l *line) finish(ctx context.Context, err error, fed bool) error {
	over := fed && err == nil
	if over {
		l.hub.Status(web.Status{Phase: web.Done, Text: "the recording is over", Fraction: 1})
		if l.results.Summary().Results == l.gateway.Stats().Windows {
			err = l.gateway.Finish() // every result was read: the next replay is a new one
		}
	}
	sum, failed := l.summarize(l.gateway, l.results)
	err = errors.Join(err, failed)
	if !over {
		return err
	}
	if err = errors.Join(err, sum.check()); !l.Once {
		fmt.Fprintln(l.stderr, "The page stays until Ctrl-C.")
		<-ctx.Done()
	}
	return err
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
