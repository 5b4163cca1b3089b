package main

import (
	"context"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
)

const description = `Stream the windows of machines to Kafka.

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
		Apply topicsFlags `cmd:"" help:"Create the topics that are missing, with the settings they need, set what the configuration says under 'retain', and print what they take on disk."`
		Grow  growFlags   `cmd:"" help:"Raise the number of partitions of the topics whose messages go by machine, and move what monitors remember of each machine to the partition of its windows. Stop ingesters and monitors before. If it is interrupted, run it again."`
	} `cmd:"" help:"Prepare the broker."`
	Tool  toolFlags  `cmd:"" help:"Tell the running ingest that a tool was changed or is new, or which hole or speed it is at."`
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

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f flags
	k, err := cli.Parse(&f, "ingest", description, args, stdout, stderr)
	if k == nil {
		return err
	}
	switch k.Command() {
	case "topics apply":
		return applyTopics(ctx, f.Topics.Apply, stdout)
	case "topics grow":
		return growTopics(ctx, f.Topics.Grow, stdout)
	case "inspect <file>":
		return inspectFile(ctx, f.Inspect, stdout)
	case "tool":
		return tellTool(ctx, f.Tool, stdout)
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
	log := cli.Logger(stderr, level)
	out := zerolog.SyncWriter(stdout) // several machines write lines to it
	var ms []*machine
	for _, m := range c.all() {
		ms = append(ms, newMachine(c, m, log, out))
	}
	to, err := c.Kafka.Load(f.Config, "flank-ingest")
	if err != nil {
		return err
	}
	web, err := serve(c, ms, to, log)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Config, err)
	}
	defer web.close()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go cli.WatchCertificates(watching, to, log)
	for _, m := range ms {
		go m.watch(watching)
	}
	if len(ms) == 1 {
		return ms[0].run(ctx)
	}
	return runAll(ctx, ms)
}
