package main

import (
	"context"
	"io"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/ingest"
)

const description = `Stream the windows of machines to Kafka.

Ingest writes a window to the spool on disk before it sends it, and removes it when Kafka has it on
all replicas. While no broker answers, acquisition continues and no window is lost.

  ingest topics apply --config examples/gun-drill/ingest.yaml
  ingest run --config examples/gun-drill/ingest.yaml

The topics are made once. After a restart, a live source continues with the next window, and a
recording that was not sent to its end continues where it stopped.`

type flags struct {
	Init     initCommand     `cmd:"" help:"Write a configuration to begin with."`
	Run      runCommand      `cmd:"" help:"Acquire, cut, store and send windows until the source ends or Ctrl-C."`
	Inspect  inspectCommand  `cmd:"" help:"Print the contents of a recording, and draw it."`
	Simulate simulateCommand `cmd:"" help:"Write recordings of the simulated gun drill, with a wear file, into a folder."`
	Topics   struct {
		Apply applyCommand `cmd:"" help:"Create missing topics with the settings they need, apply 'retain' of the configuration, and print the disk space that topics take."`
		Grow  growCommand  `cmd:"" help:"Raise the number of partitions of the topics that are keyed by machine, and move the state of each machine to the partition of its windows. Stop ingesters and monitors before. If it is interrupted, run it again."`
	} `cmd:"" help:"Prepare the broker."`
	Tool  toolCommand  `cmd:"" help:"Set the tool, hole or speed of a machine at the running ingest, or declare a tool new."`
	Fetch fetchCommand `cmd:"" help:"Fetch raw windows of a machine in mode edge from the spool of its ingest, by way of Kafka."`
	Check checkCommand `cmd:"" help:"Try every step between this computer and the broker, and name the one that fails."`
	Spool struct {
		Ls     listCommand   `cmd:"" help:"List the files of the spool and how much of each is delivered."`
		Verify verifyCommand `cmd:"" help:"Read everything in the spool and report damage."`
		Resend resendCommand `cmd:"" help:"Send windows again that a broker has lost. Readers drop windows they already have."`
	} `cmd:"" help:"Look into the spool. 'ingest run' may keep running."`
}

type runCommand struct {
	Config  string `required:"" placeholder:"FILE" help:"Configuration, see examples/gun-drill/ingest.yaml."`
	Verbose bool   `help:"Log more."`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Run(ctx, new(flags), "ingest", description, args, stdout, stderr)
}

// Run ingests until the sources have ended or Ctrl-C.
func (f *runCommand) Run(ctx context.Context, out cli.Output) error {
	c, err := ingest.Load(f.Config)
	if err != nil {
		return err
	}
	s, err := ingest.New(c, cli.Logger(out.Stderr, cli.Level(f.Verbose, zerolog.InfoLevel)), out.Stdout)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
