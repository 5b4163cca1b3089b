package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/bus/buslog"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/internal/source/machinetool"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/signal"
)

// States of a machine.
const (
	waiting = "waiting" // it has not begun
	running = "running"
	failed  = "failed" // it is started again soon, unless it is a recording
	done    = "done"   // its source has ended
)

// machine ingests the windows of one machine and knows its state. Its methods are safe
// for concurrent use, except run.
type machine struct {
	Machine
	all    Config
	bus    bus.Config
	log    zerolog.Logger
	stdout io.Writer

	mu        sync.Mutex
	setting   *feed.Setting // of a live source; nil before it is opened
	state     string
	problem   error // of failed
	restarts  uint64
	newest    time.Time // end of the newest window
	clock     string    // what is wrong with the sensors' clocks in it
	gw        *gateway.Gateway
	began     time.Time // when gw was opened
	beganWith int64     // bytes in its spool then
	feed      *feed.Feed
	tools     *feed.Feed    // of tools by MQTT, where samples come by TCP
	lookedAt  time.Time     // when refused was set
	refused   error         // why the spool cannot be written; nil if it can
	connected time.Time     // when a sender was last connected, or looking began
	before    gateway.Stats // of gateways that are closed
	received  feed.Stats    // of feeds that are closed
	refusals  [feed.Reasons]source.Seldom
	stopped   uint64   // samples that were not cut when their feed was closed
	losses    losses   // of the last minute
	hour      losses   // of the last hour, one a minute
	came      arrivals // of all samples
	fresh     arrivals // without repeats
	silent    source.Seldom
	losing    source.Seldom
	said      saidLedger
	rate      float64 // samples a second of all channels together; 0 before a source was opened

	control  *machinetool.Follower // of a machine whose control is asked; nil while it is not
	answered machinetool.Stats     // of followers that are closed

	fetcher *gateway.Fetcher // of a machine in mode edge

	looking sync.Mutex
	looks   *look // that is on its way; nil if none is

	onSent func(age time.Duration) // see gateway.Config
}

// arrivals is how many samples had come, and when the last of them did.
type arrivals struct {
	samples uint64
	at      time.Time
}

func (a *arrivals) note(samples uint64, now time.Time) {
	if samples != a.samples || a.at.IsZero() {
		a.samples, a.at = samples, now
	}
}

func newMachine(c Config, m Machine, to bus.Config, log zerolog.Logger, stdout io.Writer) *machine {
	return &machine{
		Machine: m, all: c, bus: to, stdout: stdout, state: waiting,
		log: log.With().Str("machine", m.Path).Logger(),
	}
}

// run ingests until the source has ended or ctx ends.
func (m *machine) run(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			m.enter(failed, err)
		} else {
			m.enter(done, nil)
		}
	}()
	if m.Source.Kind == "folder" {
		return m.runFolder(ctx)
	}
	return m.runSource(ctx)
}

// inFile says which configuration an error is about.
func (m *machine) inFile(err error) error { return fmt.Errorf("%s: %w", m.file, err) }

func (m *machine) runSource(ctx context.Context) error {
	src, recording, err := m.open()
	if errors.Is(err, fs.ErrNotExist) && !m.Source.live() {
		return m.inFile(fmt.Errorf("%w: correct the path, which begins at the folder of the configuration", err))
	}
	if err != nil {
		return m.inFile(err)
	}
	defer source.Close(src)
	starting := m.log.Info().Str("layout", src.Layout().Fingerprint()).Stringer("window", m.Window.Length)
	if f, ok := src.(*feed.Feed); ok {
		defer m.receive(&m.feed, f)()
		hangUp, err := m.hearTools(src.Layout())
		if err != nil {
			return m.inFile(err)
		}
		defer hangUp()
		unfollow, err := m.followControl()
		if err != nil {
			return m.inFile(err)
		}
		defer unfollow()
		starting = starting.Str("address", f.Addr())
	}
	gw, err := m.gateway(src, recording, 0)
	if err != nil {
		return m.inFile(err)
	}
	defer m.close(gw)
	m.enter(running, nil)
	starting.Msg("ingesting")
	err = gw.Run(ctx)
	s := gw.Stats()
	if err == nil && ctx.Err() == nil {
		err = gw.Finish()
	}
	m.summarize("%d windows cut, %d delivered, %d pending in the spool, %d gaps", s.Windows, s.Delivered, s.Pending, s.Gaps)
	return err
}

// hearTools subscribes to the tools of a machine whose samples come by TCP, where there
// is a broker of MQTT. The returned function ends that.
func (m *machine) hearTools(layout *signal.Layout) (hangUp func(), err error) {
	if m.Source.Kind != "tcp" || m.all.MQTT == nil {
		return func() {}, nil
	}
	set, err := m.context()
	if err != nil {
		return nil, err
	}
	f, err := feed.DialMQTT(m.feedConfig(layout, set), m.mqtt(false))
	if err != nil {
		return nil, fmt.Errorf("mqtt: %w", err)
	}
	stop := m.receive(&m.tools, f)
	return func() { f.Close(); stop() }, nil
}

// summarize prints what became of a source, of several machines behind the name of this one.
func (m *machine) summarize(format string, args ...any) {
	if len(m.all.Machines) > 0 {
		format = m.Path + ": " + format
	}
	fmt.Fprintf(m.stdout, format+"\n", args...)
}

// gateway opens a gateway of a source; recording is its identity if it is one, of which
// so many windows were sent before. Close it by m.close.
func (m *machine) gateway(src source.Source, recording string, sent uint64) (*gateway.Gateway, error) {
	sync, speed := 1, m.Source.Speed
	if m.Source.live() {
		speed = 0 // it comes as fast as it comes
	} else if speed == 0 {
		sync = 64
	}
	to := m.bus
	to.OnRetry = buslog.OnRetry(m.log, "the broker does not take windows: they stay in the spool")
	gw, err := gateway.New(gateway.Config{
		Source: src, Speed: speed, Window: m.Spec(),
		SpoolDir: m.SpoolDir(), Machine: m.Path, Recording: recording, Sent: sent, SameWindows: m.Source.Kind == "folder", SyncEvery: cmp.Or(m.Sync, sync), Log: m.log, Bus: to,
		SpoolBytes: m.MiB << 20, DropOldest: m.Full == "drop_oldest" || m.Full == "" && recording == "",
		SpoolOnly: m.all.SpoolOnly, Edge: m.edge(), OnCut: func(c source.Cut) { m.noteWindow(c, src.Layout()) }, OnSent: m.onSent,
	})
	if err == nil {
		m.mu.Lock()
		m.gw, m.began, m.beganWith = gw, time.Now(), gw.Stats().SpoolBytes
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

// receive counts what f receives, which at becomes, until the returned function is called.
func (m *machine) receive(at **feed.Feed, f *feed.Feed) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	samples := at == &m.feed
	if *at = f; samples {
		m.rate = 0
		for _, c := range f.Layout().Channels() {
			m.rate += c.Rate
		}
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		s := f.Stats()
		*at = nil
		s.Senders = 0
		m.received = m.received.Add(s)
		if samples {
			m.stopped += newLedger(m.before, m.received, true, m.stopped).Open // its sender sends them again
		}
	}
}

// feeds returns the feeds that are open, the one of samples last. The caller holds m.mu.
func (m *machine) feeds() []*feed.Feed {
	return slices.DeleteFunc([]*feed.Feed{m.tools, m.feed}, func(f *feed.Feed) bool { return f == nil })
}

func (m *machine) enter(state string, problem error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.problem = state, problem
}

func (m *machine) noteWindow(c source.Cut, layout *signal.Layout) {
	if c.Window == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest, m.clock = c.Window.End(), clockOf(c.Window, layout)
}

// open returns the source that the configuration names, and for a recording its
// identity.
func (m *machine) open() (src source.Source, recording string, err error) {
	switch m.Source.Kind {
	case "simulate":
		src, err = m.simulated()
	case "file", "csv":
		return m.openRecording()
	default: // tcp and mqtt
		src, err = m.openFeed()
	}
	if err != nil {
		return nil, "", err // not a nil feed.Feed as a source
	}
	return src, "", nil
}

// warnOnce returns a function that logs what is odd about recordings, each thing once.
func warnOnce(log zerolog.Logger) func(text string) {
	return source.Once(func(text string) { log.Warn().Msg(text) })
}

func (m *machine) openRecording() (src source.Source, recording string, err error) {
	rec, err := m.recording(warnOnce(m.log))
	if err != nil {
		return nil, "", err
	}
	rec.Path = config.ResolvePath(m.file, m.Source.File)
	if recording, err = gateway.RecordingID(rec, m.Spec()); err != nil {
		return nil, "", err
	}
	src, err = rec.Open()
	return src, recording, err
}

func (m *machine) simulated() (source.Source, error) {
	if m.Layout != "" {
		return nil, errors.New("layout: the simulated drill has its own: remove it, or set source.kind to file")
	}
	drill, err := gateway.Simulated(gateway.Simulation{
		Machine: m.Path, Start: time.Now(), Seed: m.Source.Seed, Life: m.Source.ToolLife, Tools: m.Source.Tools,
	})
	if err != nil {
		return nil, err
	}
	faults, err := m.Source.faults()
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	src, err := sim.WithFaults(drill, faults)
	if err != nil {
		return nil, fmt.Errorf("source: faults: %w", err)
	}
	return src, nil
}

func (m *machine) openFeed() (*feed.Feed, error) {
	layout, columns, err := m.LoadLayout()
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
	return feed.ListenTCP(cfg, feed.TCP{Listen: m.Source.Listen, TLS: m.Source.TLS.Resolve(m.file)})
}

// mqtt returns the broker for this machine, with the topic of samples or without.
func (m *machine) mqtt(samples bool) feed.MQTT {
	to := m.all.Broker(m.Path)
	to.ClientID = m.clientID()
	if samples {
		to.Samples = feed.SamplesTopic(m.all.prefix(), m.Path)
	}
	return to
}

// feedConfig returns what a feed of this machine is opened with.
func (m *machine) feedConfig(layout *signal.Layout, set *feed.Setting) feed.Config {
	return feed.Config{
		Machine: m.Path, Layout: layout, Setting: set, Timeout: m.Source.Timeout,
		Notify: m.notice,
	}
}

// contextFile is where a spool keeps which tool is in use.
const contextFile = "context.json"

// context returns which tool, hole and speed are in use where samples do not name
// them. It lasts from one feed to the next.
func (m *machine) context() (*feed.Setting, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.setting == nil {
		m.setting, err = feed.OpenSetting(filepath.Join(m.SpoolDir(), contextFile))
		if err == nil && m.Context != nil {
			m.setting.NoTool = m.Context.NoTool
		}
	}
	return m.setting, err
}
