package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/route"
)

// Alerts is the part of a configuration that says who else is told of alerts.
type Alerts struct {
	Routes []Route `yaml:"routes"`
}

// Route is a route as it is written.
type Route struct {
	route.Config `yaml:",inline"`
	Kafka        *struct {
		Topic string `yaml:"topic"`
		Kafka `yaml:",inline"`
	} `yaml:"kafka"`
}

// Build returns the routes of the configuration file, of which errors name the
// line. The alerts are at to, group is that of the monitors. With aside they are
// for trying out beside a monitor that uses them.
func (a Alerts) Build(file string, to bus.Config, group string, aside bool, log zerolog.Logger) (all []*route.Route, err error) {
	to.OnRetry = OnRetry(log, "routes wait for the broker")
	opt := route.Options{Bus: to, Group: group, Aside: aside, Log: log, Standing: func(ctx context.Context, partition int) ([]*route.Event, error) {
		return standing(ctx, to, group, partition)
	}}
	var names []string
	for i, r := range a.Routes {
		key := fmt.Sprintf("alerts.routes[%d]", i)
		c := r.Config
		c.Beside(func(path string) string { return config.Beside(file, path) })
		if r.Kafka != nil {
			c.Kafka = &route.Kafka{Topic: r.Kafka.Topic}
			if len(r.Kafka.Brokers) > 0 {
				cluster, err := r.Kafka.Bus(file, to.ClientID)
				if err != nil {
					err = errors.New(strings.TrimPrefix(err.Error(), file+": kafka: ")) // it is another `kafka`
					return nil, config.Locate(file, &config.KeyError{Key: key + ".kafka", Err: err})
				}
				c.Kafka.Cluster = &cluster
			}
		}
		one, err := route.New(c, opt)
		if err == nil && slices.Contains(names, c.Name) {
			err = &config.KeyError{Key: "name", Err: fmt.Errorf("%q: another route has this name already: its position in the alerts is kept under it", c.Name)}
		}
		if err != nil {
			return nil, config.Locate(file, under(key, err))
		}
		names, all = append(names, c.Name), append(all, one)
	}
	return all, nil
}

// under puts the key of an entry before that of an error.
func under(entry string, err error) error {
	var key *config.KeyError
	if errors.As(err, &key) {
		return &config.KeyError{Key: entry + "." + key.Key, Err: key.Err}
	}
	return &config.KeyError{Key: entry, Err: err}
}

// standing returns what the monitors remember, as events.
func standing(ctx context.Context, to bus.Config, group string, partition int) (all []*route.Event, err error) {
	alerts, advisories, err := history.Shown(ctx, to, group, partition)
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
