package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const description = `Stream the windows of a machine to Kafka.

A window is kept in the spool on disk before it is sent, and leaves it when Kafka has it on all
replicas: while no broker answers, nothing is lost and acquisition goes on.

  ingest topics apply --config examples/gun-drill/ingest.yaml
  ingest run --config examples/gun-drill/ingest.yaml

The topics are made once. Started again, a live source goes on with the next window, and a recording
that was not sent to its end goes on where it was.`

type flags struct {
	Run      runFlags      `cmd:"" help:"Acquire, cut, keep and send until the source ends or Ctrl-C."`
	Inspect  inspectFlags  `cmd:"" help:"Print what is in a recording, and draw it."`
	Simulate simulateFlags `cmd:"" help:"Write recordings of the simulated gun drill, with a wear file, into a folder."`
	Topics   struct {
		Apply topicsFlags `cmd:"" help:"Create the topics that are missing, with the settings they need."`
	} `cmd:"" help:"Prepare the broker."`
	Check checkFlags `cmd:"" help:"Try every step between this machine and the broker, and name the one that fails."`
	Spool struct {
		Ls     spoolFlags  `cmd:"" help:"List the files of the spool and what was delivered of them."`
		Verify spoolFlags  `cmd:"" help:"Read everything in the spool and report damage."`
		Resend resendFlags `cmd:"" help:"Send windows again that a broker has lost; readers drop those they have."`
	} `cmd:"" help:"Look into the spool. 'ingest run' may go on meanwhile."`
}

type runFlags struct {
	Config  string `required:"" placeholder:"FILE" help:"Configuration, see examples/gun-drill/ingest.yaml."`
	Verbose bool   `help:"Log more."`
}

type topicsFlags struct {
	Config      string        `required:"" placeholder:"FILE" help:"Configuration; only 'kafka' is used."`
	Partitions  int           `default:"4" help:"Partitions of each topic: at most so many monitors share the machines (default: 4)."`
	Replication int           `default:"1" help:"Replicas of each partition; 3 on a cluster (default: 1)."`
	Wait        time.Duration `default:"0s" help:"How long to wait for a broker that is still starting."`
}

// settings is ingest.yaml.
type settings struct {
	Machine string       `yaml:"machine"`
	Kafka   cli.Kafka    `yaml:"kafka"`
	Layout  string       `yaml:"layout"` // empty: the gun drill's 14 channels
	Window  windowConfig `yaml:"window"`
	Spool   string       `yaml:"spool"`
	Full    string       `yaml:"spool_full"` // "block" or "drop_oldest"; empty: the first for recordings, the second for live sources
	MiB     int64        `yaml:"spool_mib"`
	Sync    int          `yaml:"spool_sync"` // windows that share one sync to disk; 0: 1, and 64 at speed 0
	Metrics string       `yaml:"metrics"`    // address; empty: none
	Source  sourceConfig `yaml:"source"`
}

type windowConfig struct {
	Length time.Duration `yaml:"length"`
	Hop    time.Duration `yaml:"hop"`
}

type sourceConfig struct {
	Kind  string  `yaml:"kind"`  // "simulate", "file" or "folder"; "csv" is another word for "file"
	File  string  `yaml:"file"`  // of file
	Speed float64 `yaml:"speed"` // times as fast as a live sensor; 0: as fast as possible

	// of folder
	Folder  string        `yaml:"folder"`
	Pattern string        `yaml:"pattern"` // names of recordings, such as "*.tdms"
	Settle  time.Duration `yaml:"settle"`  // for how long a file must not have changed to be complete

	// of simulate
	Seed     uint64        `yaml:"seed"`
	ToolLife time.Duration `yaml:"tool_life"`
	Tools    int           `yaml:"tools"` // 0: until stopped
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f flags
	k, err := cli.Parse(&f, "ingest", description, args, stdout, stderr)
	if k == nil {
		return err
	}
	switch k.Command() {
	case "topics apply":
		return topics(ctx, f.Topics.Apply, stdout)
	case "inspect <file>":
		return inspectFile(ctx, f.Inspect, stdout)
	case "check":
		return check(ctx, f.Check, stdout)
	case "spool ls":
		return listSpool(f.Spool.Ls, stdout)
	case "spool verify":
		return verifySpool(f.Spool.Verify, stdout)
	case "spool resend":
		return resendSpool(ctx, f.Spool.Resend, stdout)
	case "simulate":
		return simulate(ctx, f.Simulate, stdout)
	}
	return ingest(ctx, f.Run, stdout, stderr)
}

func load(path string) (settings, error) {
	c := settings{
		Window: windowConfig{Length: window.DefaultSpec.Length}, Spool: "flank-data/spool", MiB: 8192,
		Source: sourceConfig{Kind: "simulate", Speed: 1, Seed: 1, ToolLife: 80 * time.Second, Pattern: "*", Settle: 10 * time.Second},
	}
	if err := config.Load(path, &c); err != nil {
		return c, err
	}
	_, err := c.Kafka.Bus(path, "")
	return c, err
}

// check reports a value that cannot be meant.
func (c settings) check() error {
	if err := gateway.CheckMachine(c.Machine); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	src := c.Source
	switch {
	case c.MiB < 0:
		return fmt.Errorf("spool_mib: %d: must be the MiB the spool may take, or 0 for what the disk holds", c.MiB)
	case c.Sync < 0:
		return fmt.Errorf("spool_sync: %d: must be the number of windows that share one sync to disk, or 0 for 1, and 64 at speed 0", c.Sync)
	case c.Full != "" && c.Full != "block" && c.Full != "drop_oldest":
		return fmt.Errorf("spool_full: %q: choose block (acquisition waits) or drop_oldest (the oldest windows are given up)", c.Full)
	case !(src.Speed >= 0):
		return fmt.Errorf("source: speed: %v: must be 1 for a live sensor, more for a faster one, or 0 for as fast as possible", src.Speed)
	case src.Kind == "simulate" && src.File != "":
		return fmt.Errorf("source: file: %s would not be read: set source.kind to file, or remove it", src.File)
	case src.Kind == "folder" && (src.Folder == "" || src.Settle <= 0):
		return fmt.Errorf("source: folder %q, settle %v: name the folder to watch, and for how long a file must not have changed, such as 10s", src.Folder, src.Settle)
	case src.Kind == "simulate" && (src.Tools < 0 || src.ToolLife <= 0):
		return fmt.Errorf("source: %d tools with a life of %v: tools must be 0 (until stopped) or more, and tool_life a duration such as 80s", src.Tools, src.ToolLife)
	}
	return nil
}

func topics(ctx context.Context, f topicsFlags, stdout io.Writer) error {
	c, err := load(f.Config)
	if err != nil {
		return err
	}
	cfg, err := c.Kafka.Bus(f.Config, "flank-topics")
	if err != nil {
		return err
	}
	if err := cli.Await(ctx, f.Wait, func(ctx context.Context) error { return bus.Probe(ctx, cfg) }); err != nil {
		return fmt.Errorf("%s: kafka: %w", f.Config, err)
	}
	status, err := bus.Apply(ctx, cfg, f.Partitions, f.Replication)
	for _, s := range status {
		fmt.Fprintln(stdout, s)
	}
	return err
}

func ingest(ctx context.Context, f runFlags, stdout, stderr io.Writer) error {
	c, err := load(f.Config)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("%s: %w", f.Config, err)
	}
	level := zerolog.InfoLevel
	if f.Verbose {
		level = zerolog.DebugLevel
	}
	log := cli.Logger(stderr, level).With().Str("machine", c.Machine).Logger()
	to, err := c.bus(f.Config, log)
	if err != nil {
		return err
	}
	live := &live{machine: c.Machine, bus: to}
	if c.Metrics != "" {
		stop, err := cli.Serve(c.Metrics, "metrics", live.handler(), log)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Config, err)
		}
		defer stop()
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	go cli.WatchCertificates(watching, to, log)
	if c.Source.Kind == "folder" {
		if err := ingestFolder(ctx, f.Config, c, live, log, stdout); err != nil {
			return fmt.Errorf("%s: %w", f.Config, err)
		}
		return nil
	}
	src, recording, err := open(f.Config, c)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: correct the path, which begins at the folder of the configuration", f.Config, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Config, err)
	}
	if closer, ok := src.(io.Closer); ok {
		defer closer.Close()
	}
	gw, err := c.gateway(f.Config, src, recording, to, log)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Config, err)
	}
	defer gw.Close()
	defer live.show(gw)()
	log.Info().Str("layout", src.Layout().Fingerprint()).Stringer("window", c.Window.Length).Msg("ingesting")
	err = gw.Run(ctx)
	s := gw.Stats()
	if err == nil && ctx.Err() == nil {
		err = gw.Finish()
	}
	fmt.Fprintf(stdout, "%d windows cut, %d delivered, %d pending in the spool, %d gaps\n", s.Windows, s.Delivered, s.Pending, s.Gaps)
	return err
}

// bus returns how windows reach Kafka.
func (c settings) bus(file string, log zerolog.Logger) (bus.Config, error) {
	to, err := c.Kafka.Bus(file, "flank-ingest")
	to.OnRetry = cli.OnRetry(log, "broker does not take windows: they stay in the spool")
	return to, err
}

// gateway returns a gateway of a source; recording is its identity if it is one.
func (c settings) gateway(file string, src source.Source, recording string, to bus.Config, log zerolog.Logger) (*gateway.Gateway, error) {
	sync := 1
	if c.Source.Speed == 0 {
		sync = 64
	}
	sync = cmp.Or(c.Sync, sync)
	return gateway.New(gateway.Config{
		Source: source.Pace(src, c.Source.Speed), Window: window.Spec{Length: c.Window.Length, Hop: c.Window.Hop},
		SpoolDir: config.Beside(file, c.Spool), Recording: recording, SyncEvery: sync, Log: log, Bus: to,
		SpoolBytes: c.MiB << 20, DropOldest: c.Full == "drop_oldest" || c.Full == "" && recording == "",
	})
}

// layout returns the layout of recordings, and how they are written.
func (c settings) layout(file string) (*signal.Layout, signal.Recording, error) {
	if c.Layout == "" {
		return signal.GunDrill(), signal.Recording{}, nil
	}
	return signal.LoadLayout(config.Beside(file, c.Layout))
}

// open returns the source that the configuration names, and for a recording
// its identity.
func open(file string, c settings) (source.Source, string, error) {
	switch c.Source.Kind {
	case "simulate":
		if c.Layout != "" {
			return nil, "", errors.New("layout: the simulated drill has its own: remove it, or set source.kind to file")
		}
		src, err := gateway.Simulated(gateway.Simulation{
			Machine: c.Machine, Start: time.Now(), Seed: c.Source.Seed, Life: c.Source.ToolLife, Tools: c.Source.Tools,
		})
		return src, "", err
	case "file", "csv":
		layout, columns, err := c.layout(file)
		if err != nil {
			return nil, "", err
		}
		if c.Source.File == "" {
			return nil, "", errors.New("source: file: name the recording")
		}
		rec := source.Recording{Path: config.Beside(file, c.Source.File), Layout: layout, Columns: columns, Machine: c.Machine}
		id, err := gateway.RecordingID(rec, window.Spec{Length: c.Window.Length, Hop: c.Window.Hop})
		if err != nil {
			return nil, "", err
		}
		src, err := rec.Open()
		return src, id, err
	}
	return nil, "", fmt.Errorf("source: kind %q: choose simulate, file or folder", c.Source.Kind)
}
