package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// States of a machine.
const (
	waiting = "waiting"
	running = "running"
	failed  = "failed" // it is started again soon, unless it is a recording
	done    = "done"
)

// machine ingests the windows of one machine, and knows how that goes. Its
// methods are safe for concurrent use, but for run.
type machine struct {
	machineConfig
	all    settings
	log    zerolog.Logger
	stdout io.Writer

	mu        sync.Mutex
	setting   *feed.Setting // of a live source; nil before it is opened
	state     string
	problem   error // of failed
	restarts  uint64
	newest    time.Time // end of the newest window
	gw        *gateway.Gateway
	feed      *feed.Feed
	looked    time.Time     // when refused was set
	refused   error         // why the spool cannot be written; nil if it can
	connected time.Time     // when a sender was last connected, or looking began
	before    gateway.Stats // of gateways that are closed
	received  feed.Stats    // of feeds that are closed
}

func newMachine(c settings, m machineConfig, log zerolog.Logger, stdout io.Writer) *machine {
	return &machine{
		machineConfig: m, all: c, stdout: stdout, state: waiting,
		log: log.With().Str("machine", m.Machine).Logger(),
	}
}

// runAll ingests several machines. One that fails is started again, and does not
// stop the others; only a recording that cannot be read stays as it is.
func runAll(ctx context.Context, ms []*machine) error {
	errs := make([]error, len(ms))
	var wg sync.WaitGroup
	for i, m := range ms {
		wg.Go(func() { errs[i] = m.keepRunning(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// backoff is how long a machine that has failed waits, the longer the more often.
func backoff(failures int) time.Duration {
	return min(time.Second<<min(failures, 6), time.Minute)
}

func (m *machine) keepRunning(ctx context.Context) error {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := m.run(ctx)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%s: %w", m.Machine, err)
		if m.Source.Kind == "file" || m.Source.Kind == "csv" || ctx.Err() != nil {
			m.log.Error().Err(err).Msg("the machine is given up; the others go on")
			return err
		}
		if time.Since(began) > 10*time.Minute {
			failures = 0
		}
		wait := backoff(failures)
		m.log.Error().Err(err).Dur("again_ms", wait).Msg("the machine has failed and is started again; the others go on")
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		m.mu.Lock()
		m.restarts++
		m.mu.Unlock()
	}
}

// run ingests until the source has ended or ctx ends.
func (m *machine) run(ctx context.Context) (err error) {
	m.enter(running, nil)
	defer func() {
		if err != nil {
			m.enter(failed, err)
		} else {
			m.enter(done, nil)
		}
	}()
	if m.Source.Kind == "folder" {
		err = m.runFolder(ctx)
	} else {
		err = m.runSource(ctx)
	}
	return err
}

func (m *machine) runSource(ctx context.Context) error {
	src, recording, err := m.open()
	if errors.Is(err, fs.ErrNotExist) && !m.Source.live() {
		return fmt.Errorf("%s: %w: correct the path, which begins at the folder of the configuration", m.all.file, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.all.file, err)
	}
	if closer, ok := src.(io.Closer); ok {
		defer closer.Close()
	}
	if f, ok := src.(*feed.Feed); ok {
		defer m.receive(f)()
		if m.Source.Kind == "tcp" && m.all.MQTT != nil {
			set, err := m.context()
			if err != nil {
				return fmt.Errorf("%s: %w", m.all.file, err)
			}
			f, err := feed.DialMQTT(m.feedConfig(src.Layout(), set), m.mqtt(false))
			if err != nil {
				return fmt.Errorf("%s: mqtt: %w", m.all.file, err)
			}
			defer f.Close()
		}
	}
	gw, err := m.gateway(src, recording)
	if err != nil {
		return fmt.Errorf("%s: %w", m.all.file, err)
	}
	defer m.close(gw)
	ready := m.log.Info().Str("layout", src.Layout().Fingerprint()).Stringer("window", m.Window.Length)
	if f, ok := src.(*feed.Feed); ok {
		ready = ready.Str("address", f.Addr())
	}
	ready.Msg("ingesting")
	err = gw.Run(ctx)
	s := gw.Stats()
	if err == nil && ctx.Err() == nil {
		err = gw.Finish()
	}
	name := ""
	if len(m.all.Machines) > 0 {
		name = m.Machine + ": "
	}
	fmt.Fprintf(m.stdout, "%s%d windows cut, %d delivered, %d pending in the spool, %d gaps\n", name, s.Windows, s.Delivered, s.Pending, s.Gaps)
	return err
}

// gateway opens a gateway of a source; recording is its identity if it is one.
// Close it by m.close.
func (m *machine) gateway(src source.Source, recording string) (*gateway.Gateway, error) {
	sync, speed := 1, m.Source.Speed
	if m.Source.live() {
		speed = 0 // it comes as fast as it comes
	} else if speed == 0 {
		sync = 64
	}
	to, err := m.all.Kafka.Load(m.all.file, "flank-ingest")
	if err != nil {
		return nil, err
	}
	to.OnRetry = cli.OnRetry(m.log, "broker does not take windows: they stay in the spool")
	gw, err := gateway.New(gateway.Config{
		Source: source.Pace(src, speed, source.Clock{}), Window: m.spec(),
		SpoolDir: m.spool(), Recording: recording, SameWindows: m.Source.Kind == "folder", SyncEvery: cmp.Or(m.Sync, sync), Log: m.log, Bus: to,
		SpoolBytes: m.MiB << 20, DropOldest: m.Full == "drop_oldest" || m.Full == "" && recording == "",
		OnCut: m.saw,
	})
	if err == nil {
		m.mu.Lock()
		m.gw = gw
		m.mu.Unlock()
	}
	return gw, err
}

func (m *machine) close(gw *gateway.Gateway) {
	s := gw.Stats()
	gw.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gw = nil
	m.before = m.before.Add(s)
}

// receive notes what is received by f until the function that it returns is called.
func (m *machine) receive(f *feed.Feed) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.feed = f
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		s := f.Stats()
		m.feed = nil
		m.received.Frames += s.Frames
		m.received.Refused += s.Refused
	}
}

func (m *machine) enter(state string, problem error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.problem = state, problem
}

func (m *machine) saw(c source.Cut) {
	if c.Window == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest = c.Window.End()
}

func (m *machine) spec() window.Spec {
	return window.Spec{Length: m.Window.Length, Hop: m.Window.Hop}
}

func (m *machine) spool() string { return config.ResolvePath(m.all.file, m.Spool) }

// open returns the source that the configuration names, and for a recording its
// identity.
func (m *machine) open() (source.Source, string, error) {
	switch m.Source.Kind {
	case "simulate":
		src, err := m.simulated()
		return src, "", err
	case "file", "csv":
		layout, columns, err := m.layout(m.all.file)
		if err != nil {
			return nil, "", err
		}
		if m.Source.File == "" {
			return nil, "", errors.New("source: file: name the recording")
		}
		rec := source.Recording{Path: config.ResolvePath(m.all.file, m.Source.File), Layout: layout, Columns: columns, Machine: m.Machine}
		id, err := gateway.RecordingID(rec, m.spec())
		if err != nil {
			return nil, "", err
		}
		src, err := rec.Open()
		return src, id, err
	case "tcp", "mqtt":
		f, err := m.openFeed()
		if err != nil {
			return nil, "", err
		}
		return f, "", nil
	}
	return nil, "", fmt.Errorf("source: kind %q: choose simulate, file, folder, tcp or mqtt", m.Source.Kind)
}

func (m *machine) simulated() (source.Source, error) {
	if m.Layout != "" {
		return nil, errors.New("layout: the simulated drill has its own: remove it, or set source.kind to file")
	}
	drill, err := gateway.Simulated(gateway.Simulation{
		Machine: m.Machine, Start: time.Now(), Seed: m.Source.Seed, Life: m.Source.ToolLife, Tools: m.Source.Tools,
	})
	if err != nil {
		return nil, err
	}
	faults, err := m.Source.faults()
	if err != nil || len(faults) == 0 {
		return drill, err
	}
	src, err := sim.WithFaults(drill, faults)
	if err != nil {
		return nil, fmt.Errorf("source: faults: %w", err)
	}
	return src, nil
}

func (m *machine) openFeed() (*feed.Feed, error) {
	layout, columns, err := m.layout(m.all.file)
	if err != nil {
		return nil, err
	}
	set, err := m.context()
	if err != nil {
		return nil, err
	}
	cfg := m.feedConfig(layout, set)
	cfg.Columns = columns
	if m.Source.Kind == "mqtt" {
		f, err := feed.DialMQTT(cfg, m.mqtt(true))
		if err != nil {
			return nil, fmt.Errorf("mqtt: %w", err)
		}
		return f, nil
	}
	return feed.ListenTCP(cfg, feed.TCP{Listen: m.Source.Listen, TLS: m.Source.TLS.Resolve(m.all.file)})
}

// mqtt returns the broker for this machine, with the topic of samples or without.
func (m *machine) mqtt(samples bool) feed.MQTT {
	to := m.all.mqtt(m.Machine)
	to.ClientID = "flank-ingest-" + strings.ReplaceAll(m.Machine, "/", "-")
	if samples {
		to.Samples = feed.SamplesTopic(m.all.prefix(), m.Machine)
	}
	return to
}

// contextFile is where a spool keeps what tool is in use.
const contextFile = "context.json"

// feedConfig returns what a feed of this machine is opened with.
func (m *machine) feedConfig(layout *signal.Layout, set *feed.Setting) feed.Config {
	return feed.Config{
		Machine: m.Machine, Layout: layout, Setting: set, Timeout: m.Source.Timeout,
		Notify: func(n feed.Notice) {
			level := zerolog.InfoLevel
			if n.Err != nil {
				level = zerolog.WarnLevel
			}
			m.log.WithLevel(level).Err(n.Err).Str("peer", n.Peer).Msg(n.Text)
		},
	}
}

// context returns what the machine is doing where its samples do not say it; it
// lasts from one feed to the next.
func (m *machine) context() (*feed.Setting, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.setting == nil {
		m.setting, err = feed.OpenSetting(filepath.Join(m.spool(), contextFile))
	}
	return m.setting, err
}
