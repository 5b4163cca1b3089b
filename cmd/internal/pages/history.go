package pages

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/internal/web/summary"
)

// OpenHistory opens the history of a group in a folder, or in memory if that is empty. It logs
// when the file was damaged and a new one is filled.
func OpenHistory(dir, group string, log zerolog.Logger) (*summary.Store, error) {
	store, notice, err := summary.Open(dir, group)
	if notice != "" {
		log.Error().Str("event", "history_damaged").Msg(notice)
	}
	return store, err
}

// CloseHistory writes what is left to write.
func CloseHistory(store *summary.Store, log zerolog.Logger) {
	if err := store.Close(); err != nil {
		log.Warn().Err(err).Msg("the last results are not in the history yet: the next start reads them from the topics again")
	}
}

// ShowHistory makes pages show the history of a store.
func ShowHistory(view *web.Config, store *summary.Store) {
	view.History, view.Tools, view.Usual, view.Alarms, view.Alarm, view.ModelUse = store.History, store.Tools, store.Usual, store.Alarms, store.Alarm, store.ModelUse
	view.KeepUsualSpectrum, view.UsualSpectrum = store.KeepUsualSpectrum, store.UsualSpectrum
}

// Remember shows on a page what the store knows of the machines: their last verdicts, alarms and
// advisories. It needs no broker, so a page that is served after it shows the past at once.
func Remember(hub *web.Hub, store *summary.Store, log zerolog.Logger) {
	machines, err := store.Machines()
	if err != nil {
		log.Error().Err(err).Msg("the page starts without the last verdicts of the machines")
	}
	for _, m := range machines {
		hub.Remember(m)
	}
}

// Follow shows earlier alerts of the machines of a group. Then it follows results and alerts for
// page and store. It returns at once and goes on until ctx ends or stop is called, which waits
// for the end.
//
// A page without earlier alerts is better than one that waits for them, so Follow gives up
// reading them after ten seconds and logs that.
func Follow(ctx context.Context, cfg bus.Config, group string, hub *web.Hub, store *summary.Store, log zerolog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		ends := recall(ctx, cfg, group, hub, log)
		follower := &monitor.Follower{Bus: cfg, Group: group, Hub: hub, Store: store, Log: log, Ends: ends}
		follower.Run(ctx)
	})
	return func() { cancel(); wg.Wait() }
}

// recall shows earlier alerts on a page, and returns up to which offsets it read.
func recall(ctx context.Context, cfg bus.Config, group string, hub *web.Hub, log zerolog.Logger) map[int]int64 {
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ends, skipped, err := monitor.Recall(bounded, cfg, group, hub)
	if ctx.Err() != nil {
		return ends // the program ends
	}
	if err != nil {
		log.Warn().Err(err).Msg("the page starts without earlier alerts: give the monitor the right Read on tcm.alerts.v1 to show them")
	}
	if skipped > 0 {
		log.Warn().Int("messages", skipped).Msg("the page starts without messages on tcm.alerts.v1 that cannot be read as events")
	}
	return ends
}
