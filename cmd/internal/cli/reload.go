package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"sync"
	"syscall"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// Reloading calls run with what load returns, and again whenever the program gets SIGHUP and load returns
// something else, until run ends by itself or ctx ends. A configuration that load refuses is logged, and
// what runs goes on. run must return soon after its context ends, and leave nothing behind that the next
// run needs. Secrets and certificates need no SIGHUP: programs read them again by themselves. A program in
// a terminal ends with it: there SIGHUP says that the terminal is closed.
//
// run calls watch with what says whether it is ready, as soon as it can be asked. Reloading passes that on to
// systemd, if it started the program: there a reload is not the end of the program. A run with another
// configuration that ends with an error before it was ready is logged, and the program goes on with the last
// configuration with which it was ready, or else with its first one: with its value, not with the file. If that
// run too fails before it is ready, Reloading returns both errors.
//
// read is called when the configuration was read again and differs, with the reason why it is not used, or
// nil; and with the error of a run, once the run after it has called watch, or has ended.
func Reloading[C any](ctx context.Context, log zerolog.Logger, load func() (C, error), read func(error), run configured[C]) error {
	hup := make(chan os.Signal, 1)
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
	}
	return reloading(ctx, hup, log, load, read, run)
}

// configured runs a program under a configuration until ctx ends. It calls watch with what says whether the
// program is ready.
type configured[C any] func(ctx context.Context, c C, watch func(ready func() error)) error

func reloading[C any](ctx context.Context, hup <-chan os.Signal, log zerolog.Logger, load func() (C, error), read func(error), run configured[C]) error {
	c, err := load()
	if err != nil {
		return err
	}
	r := &reloader[C]{hup: hup, log: log, load: load, read: read, run: run, service: startService(ctx, log, notifyEvery)}
	defer r.service.stop()
	proven := c       // the program was ready with it, or began with it
	onTrial := false  // c is newer than proven
	var refused error // of the run before, if c is proven again because of it
	for {
		next, ready, err := r.once(ctx, c, refused)
		if ready {
			proven, onTrial, refused = c, false, nil
		}
		switch {
		case next != nil && ctx.Err() == nil && (err == nil || !ready):
			if err != nil {
				log.Warn().Err(err).Msg("the run with the configuration before has failed before it was ready")
			}
			log.Info().Msg("the configuration has changed: going on with the new one")
			c, onTrial, refused = *next, true, nil
		case err != nil && ctx.Err() == nil && onTrial:
			log.Error().Err(err).Msg("the program cannot run with the new configuration: going on with the one before; remove the cause, and send SIGHUP again")
			c, onTrial, refused = proven, false, err
		case err != nil && refused != nil:
			return fmt.Errorf("with the new configuration: %w; with the one before: %w", refused, err)
		default:
			return err
		}
	}
}

// reloader runs a program under one configuration after another.
type reloader[C any] struct {
	hup     <-chan os.Signal
	log     zerolog.Logger
	load    func() (C, error)
	read    func(error)
	run     configured[C]
	service *service
}

// once runs the program until the run ends. It returns the configuration to go on with, nil if the run ended by
// itself, and whether the run has been ready. refused is what read is to be called with, if it is not nil: the
// audit has its topic as soon as the run calls watch.
func (r *reloader[C]) once(ctx context.Context, c C, refused error) (next *C, ready bool, err error) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.service.watch(nil) // the run may have called watch while it ended
	readRefused := sync.OnceFunc(func() {
		if refused != nil {
			r.read(refused)
		}
	})
	defer readRefused()
	ended := make(chan error, 1)
	go func() {
		ended <- r.run(running, c, func(ready func() error) {
			readRefused()
			r.service.watch(ready)
		})
	}()
	for {
		select {
		case err := <-ended:
			return nil, r.service.watch(nil), err
		case <-r.hup:
		}
		readRefused() // the records come in the order of the events
		next, err := r.load()
		switch {
		case err != nil:
			r.log.Error().Err(err).Msg("the new configuration cannot be used: going on with the old one; correct it, and send SIGHUP again")
			r.read(err)
		case reflect.DeepEqual(next, c):
			r.log.Info().Msg("the configuration has not changed")
		default:
			r.read(nil)
			ready := r.service.reload()
			cancel()
			return &next, ready, <-ended
		}
	}
}
