package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/pkg/model"
)

// check tries one step after the other and stops at the first that fails. It
// changes nothing but that the folder for evidence is there: a monitor may be
// running.
func check(ctx context.Context, file string, c settings, to bus.Config, stdout io.Writer) error {
	needs := monitor.Needs(c.Group)
	if len(c.Alerts.Routes) > 0 {
		needs.Read = append(needs.Read, bus.TopicAlerts)
	}
	steps, err := bus.Steps(to, needs)
	if err != nil {
		return fmt.Errorf("%s: kafka: %w", file, err)
	}
	var m *model.Model
	machines := 1
	steps = append(steps,
		bus.Step{Name: "model", Run: func(context.Context) (found string, err error) {
			if c.Model == "" {
				return "", fmt.Errorf("%s: model: name the model file, train one with `trainer fit`", file)
			}
			if m, err = model.Load(config.ResolvePath(file, c.Model)); err != nil {
				return "", err
			}
			return m.String(), nil
		}},
		bus.Step{Name: "state", Run: func(ctx context.Context) (string, error) {
			s, err := monitor.CheckState(ctx, monitor.Config{Model: m, Bus: to, Group: c.Group})
			if err != nil {
				return "", err
			}
			machines = max(s.Machines, 1)
			return fmt.Sprintf("%d machines, %d with a reference, %d alarms raised", s.Machines, s.References, s.Alarms), nil
		}},
		bus.Step{Name: "disk", Run: func(ctx context.Context) (string, error) {
			evidence, err := c.Evidence.count(file)
			if err != nil {
				return "", err
			}
			topics, err := diskOfTopics(ctx, to, m, machines)
			return evidence + topics, err
		}},
	)
	routes, err := c.Alerts.Build(file, to, c.Group, true, zerolog.Nop())
	if err != nil {
		return err
	}
	for _, r := range routes {
		defer r.Close()
		one := r.Steps(nil)
		steps = append(steps, bus.Step{Name: "route " + r.Name(), Run: one[len(one)-1].Run})
	}
	return cli.RunSteps(ctx, steps, stdout)
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

// diskOfTopics returns what the topics take on the brokers' disks, with so many machines
// of the model's layout.
func diskOfTopics(ctx context.Context, to bus.Config, m *model.Model, machines int) (string, error) {
	one, err := cli.MachineWrites(m.Layout, m.Window)
	if err != nil {
		return "", err
	}
	status, err := bus.Describe(ctx, to, append(bus.MachineTopics(), bus.TopicDead)...)
	if err != nil {
		return "", err
	}
	return cli.DiskLines(status, slices.Repeat([]cli.Written{one}, machines)), nil
}
