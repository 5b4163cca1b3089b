package cli

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/web"
)

// Recall shows earlier alerts on a page. A page without them is better than a monitor
// that waits for them, so Recall gives up after ten seconds and logs that.
func Recall(ctx context.Context, cfg bus.Config, group string, hub *web.Hub, log zerolog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	skipped, err := monitor.Recall(ctx, cfg, group, hub)
	if err != nil {
		log.Warn().Err(err).Msg("the page starts without earlier alerts: give the monitor the right Read on tcm.alerts.v1 to show them")
	}
	if skipped > 0 {
		log.Warn().Int("messages", skipped).Msg("the page starts without messages on tcm.alerts.v1 that cannot be read as events")
	}
}
