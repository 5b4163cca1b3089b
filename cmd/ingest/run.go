package main

import (
	"context"
	"io"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/ingest"
)

const description = `Stream the windows of machines to Kafka.

A window is kept in the spool on disk before it is sent, and leaves it when Kafka has it on all
replicas: while no broker answers, nothing is lost and acquisition goes on.

  ingest topics apply --config examples/gun-drill/ingest.yaml
  ingest run --config examples/gun-drill/ingest.yaml

The topics are made once. Started again, a live source goes on with the next window, and a recording
that was not sent to its end goes on where it was.`

type flags struct {
	Run      runCommand      `cmd:"" help:"Acquire, cut, keep and send until the source ends or Ctrl-C."`
	Inspect  inspectCommand  `cmd:"" help:"Print what is in a recording, and draw it."`
	Simulate simulateCommand `cmd:"" help:"Write recordings of the simulated gun drill, with a wear file, into a folder."`
	Topics   struct {
		Apply applyCommand `cmd:"" help:"Create the topics that are missing, with the settings they need, set what the configuration says under 'retain', and print what they take on disk."`
		Grow  growCommand  `cmd:"" help:"Raise the number of partitions of the topics whose messages go by machine, and move what monitors remember of each machine to the partition of its windows. Stop ingesters and monitors before. If it is interrupted, run it again."`
	} `cmd:"" help:"Prepare the broker."`
	Tool  toolCommand  `cmd:"" help:"Tell the running ingest that a tool was changed or is new, or which hole or speed it is at."`
	Check checkCommand `cmd:"" help:"Try every step between this machine and the broker, and name the one that fails."`
	Spool struct {
		Ls     listCommand   `cmd:"" help:"List the files of the spool and what was delivered of them."`
		Verify verifyCommand `cmd:"" help:"Read everything in the spool and report damage."`
		Resend resendCommand `cmd:"" help:"Send windows again that a broker has lost; readers drop those they have."`
	} `cmd:"" help:"Look into the spool. 'ingest run' may go on meanwhile."`
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
