package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// Flags that several commands have. A tag `set` where a struct is embedded gives what differs.
type (
	// ConfigFile is the flag of the configuration that the program runs with.
	ConfigFile struct {
		Config string `required:"" placeholder:"FILE" help:"Configuration that the program runs with. Most commands need only its key 'kafka'."`
	}
	// OneMachine is the flag of a machine that nothing else says.
	OneMachine struct {
		Machine string `placeholder:"PATH" help:"ISA-95 path of the machine, where neither the configuration nor the data say which it is."`
	}
	// NamedMachine is the flag of a machine that always has a name: the tag `set` gives the last part, "name", of the default one.
	NamedMachine struct {
		Machine string `default:"local/site/area/line/${name}" placeholder:"PATH" help:"ISA-95 path of the machine (default: ${default})."`
	}
	// AlarmID is the argument that names an alarm.
	AlarmID struct {
		ID string `arg:"" help:"Alarm id as 'alerts ls --all' prints it, or a machine: its path or the last part of the path."`
	}
	// Waiting is the flag of how long a command is patient; the tag `set` may give another default, "wait".
	Waiting struct {
		Wait time.Duration `default:"${wait}" help:"How long to wait for a broker, a gateway, or what else is not there yet (default: ${default})."`
	}
	// Drill is the flags of the simulated gun drill.
	Drill struct {
		NamedMachine `set:"name=drill"`
		Fault        []string `placeholder:"FAULT" sep:"none" help:"Fault of the simulated drill, as kind:channel@from+for=size, such as flatline:ch07@30s+10s or gain:thrust@30s=1.25; may be repeated. Kinds: see docs/reference/simulator.md."`
	}
	// Moment is the flag of when recordings began.
	Moment struct {
		Start signal.Start `placeholder:"TIME" help:"When the first recording began, as 2026-11-02T06:00:00Z, where recordings do not say it: each follows the one before. Or file-time: each ended when its file was last changed. Goes before a configuration."`
	}
	// LongRecording is the flag of how much of a long recording is read.
	LongRecording struct {
		All bool `help:"Read all of a long recording, and not its beginning and some pieces."`
	}
	// KeptColumns is the flag of columns that are not left out.
	KeptColumns struct {
		Keep []string `sep:"none" placeholder:"COLUMN" help:"Take this column, also if it seems to count rows or time, to be a setting of each tool, or wear; may be given again."`
	}
	// RateFlag is the flag of the rate of a recording.
	RateFlag struct {
		Rate float64 `placeholder:"HZ" help:"Samples a second, where the recording does not say it."`
	}
	// Person is the flag of who acts.
	Person struct {
		By string `default:"${user}" placeholder:"NAME" help:"Your name. Default: the name of the user."`
	}
	// Why is the flag of a reason that must be given.
	Why struct {
		Reason string `required:"" placeholder:"TEXT" help:"Why."`
	}
	// Remark is the flag of a note.
	Remark struct {
		Note string `placeholder:"TEXT" help:"Why: a note for those who read the history."`
	}
	// VerboseFlag is the flag of the log.
	VerboseFlag struct {
		Verbose bool `help:"Log more."`
	}
	// Machines is the flag that chooses machines.
	Machines struct {
		For string `default:"**" placeholder:"GLOB" help:"Machines, such as acme/spore/bay2/** (default: all)."`
	}
	// WearFile is the flag of the wear that models learn, and that alarms and signals are compared with.
	WearFile struct {
		Wear string `placeholder:"FILE" help:"Wear file, with the labels (docs/how-to/labels.md), instead of the configuration's: models learn them, reports say at which wear alarms were raised, and which were false, and plots show what was measured."`
	}
	// RecordingLayout is the flag of where channels are in a recording.
	RecordingLayout struct {
		Layout string `placeholder:"FILE" help:"Layout of the recording, see examples/turning/layout.yaml."`
	}
	// FeatureTables is the flag of tables that a command takes.
	FeatureTables struct {
		Table []string `sep:"none" placeholder:"FILE" help:"Table of features, .csv, .parquet or .arrow, as 'trainer features' writes them, instead of recordings or of what Kafka has; repeat it or quote a pattern."`
	}
	// Destination is the flag of where a command writes.
	Destination struct {
		Out string `required:"" placeholder:"PATH" help:"Where to write: a file, or a folder, which is made if it is not there."`
	}
	// UsualDestination is the flag of where a command writes: the tag `set` gives the default, "out".
	UsualDestination struct {
		Out string `default:"${out}" placeholder:"PATH" help:"Where to write (default: ${default})."`
	}
	// ModelFile is the argument that names a model.
	ModelFile struct {
		Model string `arg:"" help:"Model file."`
	}
	// Beginning is the flag of when a stretch of time begins.
	Beginning struct {
		Since Instant `placeholder:"TIME" help:"Leave out what is from before this time: 2026-11-16T06:00:00Z, or 24h for so long ago."`
	}
)

// OnlyMachine is the flag of a list about one machine.
type OnlyMachine struct {
	Machine string `placeholder:"PATH" help:"Only this machine: its path or the last part of the path."`
}

// Wants reports whether the list has a machine.
func (f OnlyMachine) Wants(machine string) bool {
	return f.Machine == "" || strings.HasSuffix("/"+machine, "/"+f.Machine)
}

// Called is the command line as it was read. The method Run of a command may take a pointer to it.
type Called = kong.Context

// FirstConfig is the flags of a configuration to begin with: the tag `set` gives its name, "file".
type FirstConfig struct {
	Kafka  string `default:"127.0.0.1:9092" placeholder:"HOST:PORT" help:"Broker (default: ${default})."`
	Config string `default:"${file}" placeholder:"FILE" help:"File to write (default: ${default}). One that is there is not overwritten."`
}

// CheckBroker reports a broker that has no host or port.
func (f FirstConfig) CheckBroker() error {
	if host, port, err := net.SplitHostPort(f.Kafka); err != nil || host == "" || port == "" {
		return fmt.Errorf("--kafka %q: write host:port, such as 127.0.0.1:9092", f.Kafka)
	}
	return nil
}

// Doubted is the flag of a command that asks before it does what may be a mistake.
type Doubted struct {
	Anyway bool `help:"Do it also if it may be a mistake, without a question."`
}

// answers is where a person answers questions. Tests replace it.
var answers io.Reader = os.Stdin

// Ask asks a person in a terminal whether to go on despite these doubts. Without a terminal they are an error that says what to do.
func (f Doubted) Ask(doubts []string, out Output) error {
	if f.Anyway || len(doubts) == 0 {
		return nil
	}
	if file, ok := answers.(*os.File); ok && !term.IsTerminal(int(file.Fd())) {
		return fmt.Errorf("%s: nothing is done: correct it, or give --anyway", strings.Join(doubts, "; "))
	}
	for _, d := range doubts {
		fmt.Fprintln(out.Stderr, plain.Text(d))
	}
	fmt.Fprint(out.Stderr, "Go on anyway? [y/N] ")
	line, _ := bufio.NewReader(answers).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing is done")
	}
	return nil
}

// QuietFlag is the flag of progress.
type QuietFlag struct {
	Quiet bool `help:"Show no progress."`
}

// Progress returns what shows progress on w, unless it is not wanted.
func (f QuietFlag) Progress(w io.Writer) *Progress {
	if f.Quiet {
		w = io.Discard
	}
	return NewProgress(w)
}

// Instant is a time that a person writes, also by how long ago it was.
type Instant struct {
	time.Time
	Text string // as it was written
}

// UnmarshalText reads a time by RFC 3339, or a duration, which it counts back from now.
func (i *Instant) UnmarshalText(text []byte) (err error) {
	i.Text = string(text)
	if ago, wrong := time.ParseDuration(i.Text); wrong == nil && ago >= 0 {
		i.Time = time.Now().Add(-ago)
		return nil
	}
	if i.Time, err = time.Parse(time.RFC3339, i.Text); err != nil {
		return fmt.Errorf("%q: write a time such as 2026-11-16T06:00:00Z, or how long ago it was, such as 24h", text)
	}
	return nil
}

// Span is the flags of a stretch of time.
type Span struct {
	Beginning
	Until Instant `placeholder:"TIME" help:"Leave out what is from this time or later, written like --since (default: now)."`
}

// Bounded reports whether the stretch begins or ends somewhere.
func (f Span) Bounded() bool { return !f.Since.IsZero() || !f.Until.IsZero() }

// PlotFile is the flag of a plot.
type PlotFile struct {
	Plot string `placeholder:"FILE" help:"Draw it to a .svg."`
}

// CheckPlot refuses a file that does not end in .svg. It takes "", where the flag is not given.
func (f PlotFile) CheckPlot() error {
	if f.Plot != "" && !strings.EqualFold(filepath.Ext(f.Plot), ".svg") {
		return fmt.Errorf("--plot %s: plots are SVG: name a file that ends in .svg", f.Plot)
	}
	return nil
}

// Broker is the flags of how to reach Kafka where there is no configuration.
type Broker struct {
	Brokers     []string `name:"kafka" sep:"," placeholder:"HOST:PORT" help:"Broker of Kafka, which has windows, models and results."`
	KafkaConfig string   `placeholder:"FILE" help:"The same from a file whose key kafka is as in monitor.yaml: brokers, tls and sasl."`
}

// Named reports whether a broker is named.
func (f Broker) Named() bool { return len(f.Brokers) > 0 || f.KafkaConfig != "" }

// Bus returns how to reach Kafka, for a client of that name.
func (f Broker) Bus(client string) (bus.Config, error) {
	switch {
	case !f.Named():
		return bus.Config{}, errors.New("name the broker with --kafka, for example --kafka 127.0.0.1:9092, or a file with --kafka-config")
	case f.KafkaConfig == "":
		return bus.Config{Brokers: f.Brokers, ClientID: client}, nil
	case len(f.Brokers) > 0:
		return bus.Config{}, errors.New("--kafka and --kafka-config: give one of them")
	}
	var c struct {
		Kafka bus.Settings `yaml:"kafka"`
	}
	if err := config.Load(f.KafkaConfig, &c); err != nil {
		return bus.Config{}, err
	}
	return c.Kafka.Load(f.KafkaConfig, client)
}

// KafkaPatience is how long Kafka may not answer a command. Tests lower it.
var KafkaPatience = 20 * time.Second

// WithPatience returns a context that ends when Kafka has not answered for KafkaPatience.
func WithPatience(ctx context.Context, cfg *bus.Config) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	cfg.OnRetry = func(err error, since time.Duration) {
		if err != nil && since >= KafkaPatience {
			hint := ": check the address and the network"
			if strings.HasSuffix(err.Error(), "the network") { // it says so itself
				hint = ""
			}
			cancel(fmt.Errorf("no answer from Kafka at %s: %w%s", strings.Join(cfg.Brokers, ", "), err, hint))
		}
	}
	return ctx, cancel
}
