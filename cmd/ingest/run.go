package main

import (
	"context"
	"io"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/ingest"
)

// program is the name under which the audit has what this program does.
const program = "ingest"

const description = `Stream the windows of machines to Kafka.

Ingest writes a window to the spool on disk before it sends it, and removes it when Kafka has it on
all replicas. While no broker answers, acquisition continues and no window is lost.

  ingest topics apply --config examples/gun-drill/ingest.yaml
  ingest run --config examples/gun-drill/ingest.yaml

The topics are made once. After a restart, a live source continues with the next window, and a
recording that was not sent to its end continues where it stopped.`

type flags struct {
	Init     initCommand     `cmd:"" help:"Write a configuration to begin with." example:"ingest init --machine acme/spore/bay2/line1/usk25 --kafka kafka1:9092; ingest init --source mqtt --config mqtt.yaml"`
	Run      runCommand      `cmd:"" help:"Acquire, cut, store and send windows until the source ends or Ctrl-C." example:"ingest run --config ingest.yaml; TCM_KAFKA_BROKERS=kafka2:9092 ingest run --config ingest.yaml"`
	Inspect  inspectCommand  `cmd:"" help:"Print the contents of a recording, and draw it." more:"With --layout channels are printed in their units, with the gaps that a gateway would find." example:"ingest inspect run7.tdms; ingest inspect run7.csv --layout layout.yaml --plot run7.svg"`
	Simulate simulateCommand `cmd:"" help:"Write recordings of the simulated gun drill, with a wear file, into a folder." more:"The folder --out is new or empty. It gets files of each tool, their layouts, and wear.csv. A minute is about 300 MB of CSV, 65 MB of the other formats." example:"ingest simulate --out drill; ingest simulate --out drill --format parquet --tools 5 --fault flatline:ch07@30s+10s"`
	Topics   struct {
		Apply applyCommand `cmd:"" help:"Create missing topics with the settings they need, apply 'retain' of the configuration, and print the disk space that topics take." example:"ingest topics apply --config ingest.yaml; ingest topics apply --config ingest.yaml --partitions 64 --replication 3"`
		Grow  growCommand  `cmd:"" help:"Raise the number of partitions of the topics that are keyed by machine, and move the state of each machine to the partition of its windows. Stop ingesters and monitors before. If it is interrupted, run it again." more:"Nothing may run meanwhile, so that each machine's state goes on where its next window comes:\n\n  1. Stop ingesters, or let them only spool: spool_only: true in ingest.yaml. Then nothing that a sensor delivers is lost.\n  2. Let the monitors judge what lies there: the page lists under System what waits. Give evidence 20 s more.\n  3. Stop the monitors, of all groups.\n  4. ingest topics grow --config ingest.yaml --partitions 128\n  5. Start the monitors, then the ingesters without spool_only.\n\nIt refuses before it changes anything, and says which group still runs or has not judged everything. After that it may be interrupted at any moment: run it again with the same number. Until it has ended monitors do not start, and say so. Kafka cannot take partitions away." example:"ingest topics grow --config ingest.yaml --partitions 128"`
	} `cmd:"" help:"Prepare the broker."`
	Tool  toolCommand  `cmd:"" help:"Set the tool, hole or speed of a machine at the running ingest, or declare a tool new." example:"ingest tool --config ingest.yaml --tool T08; ingest tool --config ingest.yaml --machine acme/spore/bay2/line1/usk25 --tool T08 --new"`
	Fetch fetchCommand `cmd:"" help:"Fetch raw windows of a machine in mode edge from the spool of its ingest, by way of Kafka." more:"Times are the sensors' times. While a machine is offline, its command waits on Kafka. The gateway may be silent for --wait." example:"ingest fetch --config ingest.yaml --since 2026-11-02T06:00:00Z --until 2026-11-02T06:05:00Z --out waves"`
	Check checkCommand `cmd:"" help:"Try every step between this computer and the broker, and name the one that fails. Exit codes: 3 dns, 4 tcp, 5 tls, 6 sasl, 7 topics, 8 acl, 9 clock, 10 spool, 11 mqtt, and file, folder and context as the step behind it." example:"ingest check --config ingest.yaml"`
	Spool struct {
		Ls     listCommand   `cmd:"" help:"List the files of the spool and how much of each is delivered." example:"ingest spool ls --config ingest.yaml; ingest spool ls --config ingest.yaml -o json"`
		Verify verifyCommand `cmd:"" help:"Read everything in the spool and report damage." example:"ingest spool verify --config ingest.yaml"`
		Resend resendCommand `cmd:"" help:"Send windows again that a broker has lost. Readers drop windows they already have." more:"It sends what was written since --since, which must be given. Whole segment files are sent." example:"ingest spool resend --config ingest.yaml --since 10m"`
	} `cmd:"" help:"Look into the spool. 'ingest run' may keep running."`
}

type runCommand struct {
	cli.ConfigFile
	cli.VerboseFlag
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Run(ctx, new(flags), program, description, args, stdout, stderr)
}

// Run ingests until the sources have ended or Ctrl-C.
func (f *runCommand) Run(ctx context.Context, out cli.Output) error {
	log := cli.Logger(out.Stderr, cli.Level(f.Verbose, zerolog.InfoLevel))
	record := &cli.Audit{Program: program, Log: log}
	reloaded := func(err error) { record.Reloaded(f.Config, err) }
	return cli.Reloading(ctx, log, f.load, reloaded, func(ctx context.Context, c ingest.Config, watch func(func() error)) error {
		s, err := ingest.New(c, log, out.Stdout)
		if err != nil {
			return err
		}
		to, err := c.Bus("flank-ingest")
		if err != nil {
			return err
		}
		if _, closeAudit, err := record.Open(to); err == nil { // brokers that cannot be used are for Run to report
			defer closeAudit()
		}
		watch(func() error {
			if err := s.Ready(); err != nil {
				return err
			}
			return cli.ReadyNote(s.SpoolOnly())
		})
		return s.Run(ctx)
	})
}

// load returns a configuration that can be used.
func (f *runCommand) load() (ingest.Config, error) {
	c, err := ingest.Load(f.Config)
	if err == nil {
		err = c.Check()
	}
	return c, err
}
