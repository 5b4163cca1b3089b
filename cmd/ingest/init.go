package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest"
)

type initCommand struct {
	cli.NamedMachine `set:"name=machine"`
	cli.FirstConfig  `set:"file=ingest.yaml"`
	Source           string `default:"simulate" enum:"simulate,file,folder,tcp,mqtt" placeholder:"KIND" help:"Where samples come from: simulate, file, folder, tcp or mqtt (default: simulate)."`
}

// sourceTexts are the keys of a source of each kind.
var sourceTexts = map[string]string{
	"simulate": `source:
  kind: simulate          # the simulated gun drill, whose 14 channels need no layout
  tool_life: 80s          # cutting time after which a tool is worn
  seed: 1
`,
	"file": `source:
  kind: file
  file: recording.csv     # CHANGE: the recording; its formats are in docs/reference/formats.md
  speed: 1                # times as fast as the sensor; 0: as fast as possible
`,
	"folder": `source:
  kind: folder
  folder: recordings      # CHANGE: new recordings in it are sent
  pattern: "*"            # names of recordings, such as "*.tdms"
  settle: 10s             # for how long a file must not have changed to be complete
`,
	"tcp": `source:
  kind: tcp
  listen: 127.0.0.1:9110  # clients send frames there: docs/how-to/live-feeds.md
  timeout: 10s            # a client that is silent for longer is disconnected
`,
	"mqtt": `source:
  kind: mqtt
  timeout: 10s            # without samples for longer the source is down
mqtt:
  broker: mqtt://127.0.0.1:1883   # CHANGE: MQTT 5; topics are flank/MACHINE/samples and flank/MACHINE/context
`,
}

// Run writes a configuration that can be used as it is, but for the lines marked CHANGE.
func (f *initCommand) Run(out cli.Output) error {
	if err := event.CheckMachine(f.Machine); err != nil {
		return fmt.Errorf("--machine: %w", err)
	}
	if err := f.CheckBroker(); err != nil {
		return err
	}
	layout, length := fromTrainer(filepath.Dir(f.Config))
	if f.Source == "simulate" {
		layout, length = "", "1s"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by `ingest init`. Every key: docs/reference/ingest.md\n")
	fmt.Fprintf(&b, "machine: %s   # ISA-95: enterprise/site/area/line/machine\n", config.Text(f.Machine))
	fmt.Fprintf(&b, "kafka:\n  brokers: [%s]\n", config.Text(f.Kafka))
	switch {
	case layout != "":
		fmt.Fprintf(&b, "layout: %s\n", layout)
	case f.Source == "simulate":
	default:
		b.WriteString("# layout: layout.yaml     # CHANGE: names the channels, `trainer init` writes one; without it the gun drill's 14 channels\n")
	}
	fmt.Fprintf(&b, "window:\n  length: %s              # the model's: a monitor refuses windows of another length\n", length)
	b.WriteString("spool: flank-data/spool   # windows are kept here until Kafka has them\n")
	b.WriteString("metrics: 127.0.0.1:9101   # for Prometheus\n")
	b.WriteString(sourceTexts[f.Source])
	if err := cli.WriteNew("--config", cli.File{Path: f.Config, Text: b.String()}); err != nil {
		return err
	}
	c, err := ingest.Load(f.Config)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out.Stdout, "wrote     %s: machine %s, source %s, windows of %s\n", f.Config, f.Machine, f.Source, length)
	if layout != "" {
		fmt.Fprintf(out.Stdout, "layout    %s, and window.length of train.yaml\n", layout)
	}
	if n := strings.Count(b.String(), "CHANGE"); n > 0 {
		fmt.Fprintf(out.Stdout, "\nLines to change are marked CHANGE: %d. Then:\n", n)
	} else {
		fmt.Fprintf(out.Stdout, "\nNext:\n")
	}
	_, err = fmt.Fprintf(out.Stdout, "\n  ingest topics apply --config %[1]s   # once; without a broker, start one: standalone --broker-only\n  ingest run --config %[1]s\n", cli.Quote(f.Config))
	return err
}

// fromTrainer returns the layout and the window length of a folder in which `trainer init` wrote
// its files, as far as they are there.
func fromTrainer(dir string) (layout, length string) {
	length = "1s"
	if _, err := os.Stat(filepath.Join(dir, "layout.yaml")); err == nil {
		layout = "layout.yaml"
	}
	var c map[string]any
	if config.Load(filepath.Join(dir, "train.yaml"), &c) != nil {
		return layout, length
	}
	if w, ok := c["window"].(map[string]any); ok {
		if text, ok := w["length"].(string); ok {
			length = text
		}
	}
	return layout, length
}
