package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/route"
)

type alertsTest struct {
	Route string `required:"" placeholder:"NAME" help:"Name of the route in the configuration."`
}

// Run sends a test alert straight to the receiver of a route. It does not pass
// tcm.alerts.v1, so other routes do not get it.
func (f *alertsTest) Run(ctx context.Context, a *alertsCommand, out cli.Output) error {
	c, to, err := loadBus(a.Config)
	if err != nil {
		return err
	}
	var names []string
	for i, r := range c.Alerts.Routes {
		if names = append(names, r.Name); r.Name == f.Route {
			c.Alerts.Routes[i].Timeout = min(cmp.Or(r.Timeout, cli.StepPatience), cli.StepPatience)
		}
	}
	if !slices.Contains(names, f.Route) {
		return fmt.Errorf("%s: no route is called %s: there are %q under `alerts: routes:`", c.file, plain.Short(f.Route, 40), names)
	}
	routes, err := c.Alerts.Build(c.file, to, c.Group, true, zerolog.Nop())
	if err != nil {
		return err
	}
	for _, r := range routes {
		defer r.Close()
		if r.Name() == f.Route {
			return cli.RunSteps(ctx, r.Steps(route.TestEvent(event.NewCommandID(), time.Now())), out.Stdout)
		}
	}
	panic("monitor: no route " + f.Route)
}
