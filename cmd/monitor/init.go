package main

import (
	"fmt"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
)

type initCommand struct {
	cli.FirstConfig `set:"file=monitor.yaml"`
}

const initText = `# Written by ` + "`monitor init`" + `. Every key: docs/reference/monitor.md
kafka:
  brokers: [%s]
model: model.flank      # from ` + "`trainer fit --model model.flank`" + `
alarm:
  k: 5                  # faulty windows ...
  n: 8                  # ... of this many judged ones raise the alarm: ` + "`trainer tune`" + ` chooses them
  latch: true           # an alarm stays until acknowledged, even if the condition is over
silence: 60s            # time without a window after which a machine is reported as silent
evidence:
  dir: flank-data/evidence   # keeps the waveform around each alert
history:
  dir: flank-data/history    # keeps what the page shows of the past, up to 400 days
page: 127.0.0.1:9102    # page and /metrics
`

// Run writes a configuration that can be used as it is.
func (f *initCommand) Run(out cli.Output) error {
	if err := f.CheckBroker(); err != nil {
		return err
	}
	if err := cli.WriteNew("--config", cli.File{Path: f.Config, Text: fmt.Sprintf(initText, config.Text(f.Kafka))}); err != nil {
		return err
	}
	if _, _, err := loadBus(f.Config); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out.Stdout, "wrote     %[1]s: Kafka at %[2]s, model model.flank\n\nNext:\n\n  monitor check --config %[1]s\n  monitor run --config %[1]s   # page on http://127.0.0.1:9102\n", cli.Quote(f.Config), f.Kafka)
	return err
}
