package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/model"
)

type checkCommand struct {
	cli.ConfigFile
}

// Run tries one step after the other and stops at the first that fails. It changes
// nothing except that it creates the folder for evidence: a monitor may be running.
func (f *checkCommand) Run(ctx context.Context, out cli.Output) error {
	c, to, err := loadBus(f.Config)
	if err != nil {
		return err
	}
	if err := c.checkPage(); err != nil {
		return err
	}
	steps, err := bus.Steps(to, c.needs())
	if err != nil {
		return fmt.Errorf("%s: kafka: %w", c.file, err)
	}
	steps = append(steps, c.steps(to)...)
	routes, err := c.Alerts.Build(c.file, to, c.Group, true, zerolog.Nop())
	if err != nil {
		return err
	}
	for _, r := range routes {
		defer r.Close()
		one := r.Steps(nil)
		steps = append(steps, bus.Step{Name: "route " + r.Name(), Run: one[len(one)-1].Run})
	}
	return cli.RunSteps(ctx, steps, out.Stdout)
}

// needs says what the monitor does with Kafka. The page shows what all monitors of the group
// publish, and routes carry it on.
func (c settings) needs() bus.Needs {
	needs := monitor.Needs(c.Group)
	if c.Page.Listen != "" {
		needs.Read = append(needs.Read, bus.TopicResults, bus.TopicShadow)
	}
	if c.Page.Listen != "" || len(c.Alerts.Routes) > 0 {
		needs.Read = append(needs.Read, bus.TopicAlerts)
	}
	return needs
}

// steps returns what must work behind the broker: the model, the state and the disk.
func (c settings) steps(to bus.Config) []bus.Step {
	cfg := monitor.Config{Bus: to, Group: c.Group, Alarm: c.Alarm}
	var set deploy.Set
	var state monitor.StateSummary
	return []bus.Step{
		{Name: "model", Run: func(ctx context.Context) (found string, err error) {
			topic, err := c.deployed(false)
			if err != nil {
				return "", err
			}
			if topic {
				cfg.Keys = c.keys(false)
			} else if cfg.Model, err = model.Load(config.ResolvePath(c.file, c.Model)); err != nil {
				return "", err
			}
			var refused []deploy.Refusal
			if set, refused, err = monitor.Deployed(ctx, cfg); err != nil {
				return "", err
			}
			if !topic {
				return cfg.Model.String(), nil
			}
			return listDeployed(set, refused), nil
		}},
		{Name: "state", Run: func(ctx context.Context) (_ string, err error) {
			if state, err = monitor.CheckState(ctx, cfg, set); err != nil {
				return "", err
			}
			text := fmt.Sprintf("%d machines, %d with a reference, %d alarms raised", state.Machines, state.References, state.Alarms)
			if state.Unwatched > 0 {
				text += fmt.Sprintf("; no model is deployed for %d of them", state.Unwatched)
			}
			if n := edgeOf(state); n > 0 {
				text += fmt.Sprintf("; %d in mode edge: of these the disk step counts no windows, which are sent if sampled or fetched", n)
			}
			return text, nil
		}},
		{Name: "disk", Run: func(ctx context.Context) (string, error) {
			evidence, err := c.Evidence.count(c.file)
			if err != nil {
				return "", err
			}
			topics, err := diskOfTopics(ctx, to, set, state)
			return evidence + c.historyOnDisk() + topics, err
		}},
	}
}

// count says how many alerts have evidence, and how many may have it at most.
func (e evidenceSettings) count(file string) (string, error) {
	store, err := e.open(file)
	if err != nil {
		return "", err
	}
	if store == nil {
		return "no evidence is kept: evidence.dir is not set", nil
	}
	now, most, err := store.Count()
	return fmt.Sprintf("evidence of %d alerts, at most %d, in %s", now, most, config.ResolvePath(file, e.Dir)), err
}

// historyOnDisk says where the history of the page is, and how large, on a line of its own.
func (c settings) historyOnDisk() string {
	const line = "\n            "
	switch {
	case c.Page.Listen == "":
		return ""
	case c.History.Dir == "":
		return line + "the page's history is kept in memory for one day: history.dir is not set"
	}
	name := filepath.Join(config.ResolvePath(c.file, c.History.Dir), summary.File)
	info, err := os.Stat(name)
	if err != nil {
		return line + "history of the page in " + name + ", which is not there yet"
	}
	return fmt.Sprintf("%shistory of the page in %s, %.1f MB", line, name, float64(info.Size())/1e6)
}

// listDeployed says what tcm.models.v1 deploys, a line each.
func listDeployed(set deploy.Set, refused []deploy.Refusal) string {
	text := fmt.Sprintf("%d deployments on %s", len(set.Deployments()), bus.TopicModels)
	for _, d := range set.Deployments() {
		text += fmt.Sprintf("\n            %s, layout %s: %s", d.For, d.Champion.Layout.Name(), d.Champion.ID())
	}
	for _, r := range refused {
		text += "\n            refused: " + r.String()
	}
	return text
}

// edgeOf returns how many machines send features in place of windows.
func edgeOf(state monitor.StateSummary) (n int) {
	for _, of := range state.Edge {
		n += of
	}
	return n
}

// diskOfTopics returns what the topics take on the brokers' disks, with the machines that are
// known, or one of each model's layout.
func diskOfTopics(ctx context.Context, to bus.Config, set deploy.Set, state monitor.StateSummary) (string, error) {
	var machines []cli.Written
	for _, m := range set.Models() {
		one, err := cli.MachineWrites(m.Layout, m.Window)
		if err != nil {
			return "", err
		}
		n := state.By[m]
		if state.Machines == 0 {
			n = 1
		}
		edge := state.Edge[m]
		machines = append(machines, slices.Repeat([]cli.Written{one}, n-edge)...)
		machines = append(machines, slices.Repeat([]cli.Written{one.Sampled(0)}, edge)...)
	}
	status, err := bus.Describe(ctx, to, append(bus.MachineTopics(), bus.TopicDead)...)
	if err != nil {
		return "", err
	}
	return cli.DiskLines(status, machines), nil
}
