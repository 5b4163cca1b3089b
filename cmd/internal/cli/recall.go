package cli

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/web"
)

// Recall shows a page the alerts of before. A page without them is better than a
// monitor that waits for them, so it gives up after ten seconds, and says so.
func Recall(ctx context.Context, cfg bus.Config, group string, hub *web.Hub, log zerolog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	skipped, err := monitor.Recall(ctx, cfg, group, hub)
	if err != nil {
		log.Warn().Err(err).Msg("the page begins without all alerts of before: give the monitor Read on tcm.alerts.v1 if they are to be shown")
	}
	if skipped > 0 {
		log.Warn().Int("messages", skipped).Msg("messages on tcm.alerts.v1 cannot be read as events, and the page was started without them")
	}
}
