package pages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/bus/buslog"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/route"
)

// Alerts is the part of a configuration that names the routes of alerts.
type Alerts struct {
	Routes []route.Config `yaml:"routes"`
}

// Build returns the routes of the configuration file, of which errors name the
// line. The alerts are at to; group is the group of the monitors. With aside the routes
// are for trying out while a monitor uses them.
func (a Alerts) Build(file string, to bus.Config, group string, aside bool, log zerolog.Logger) (all []*route.Route, err error) {
	to.OnRetry = buslog.OnRetry(log, "the routes wait for the broker")
	opt := route.Options{Bus: to, Group: group, Aside: aside, Log: log, Standing: func(ctx context.Context, partition int) ([]*route.Event, error) {
		return standing(ctx, to, group, partition)
	}}
	var names []string
	for i, c := range a.Routes {
		c.Resolve(file)
		one, err := route.New(c, opt)
		if err == nil && slices.Contains(names, c.Name) {
			one.Close()
			err = &config.KeyError{Key: "name", Err: fmt.Errorf("%q: another route has this name already: its position in the alerts is kept under it", c.Name)}
		}
		if err != nil {
			for _, r := range all {
				r.Close()
			}
			return nil, config.Locate(file, config.Under(fmt.Sprintf("alerts.routes[%d]", i), err))
		}
		names, all = append(names, c.Name), append(all, one)
	}
	return all, nil
}

// standing returns the state that monitors remember, as events.
func standing(ctx context.Context, to bus.Config, group string, partition int) (all []*route.Event, err error) {
	alerts, advisories, err := monitor.Shown(ctx, to, group, partition)
	for _, a := range alerts {
		e, bad := route.Of(a, a.ID, event.AlertType, a.Machine, a.At)
		err = errors.Join(err, bad)
		all = append(all, e)
	}
	for _, a := range advisories {
		e, bad := route.Of(a, a.ID, event.AdvisoryType, a.Machine, a.At)
		err = errors.Join(err, bad)
		all = append(all, e)
	}
	return all, err
}

// RunRoutes runs routes until ctx ends or the returned function is called, which
// waits for them and closes them.
func RunRoutes(ctx context.Context, routes []*route.Route) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, r := range routes {
		wg.Go(func() {
			defer r.Close()
			r.Run(ctx)
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}
