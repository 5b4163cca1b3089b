package monitor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Show makes a page show what the monitor sees: it sets OnWindow, OnAlert, OnAdvisory
// and OnEvidence.
func (c *Config) Show(hub *web.Hub) {
	c.OnWindow = func(w *window.Window, r event.Result) {
		view := web.Window{
			Machine: w.Machine, Tool: w.Tool, Hole: w.Hole, Epoch: w.EpochString(), Seq: w.Seq, Start: w.Start, Quality: faults(c.Model.Layout, r),
		}
		view.Summarize(w.Samples)
		hub.Window(view)
		hub.Result(r)
	}
	c.OnAlert, c.OnAdvisory, c.OnEvidence = hub.Alert, hub.Advisory, hub.Evidence
}

// Recall shows what the topic of alerts holds, so that a page knows after a restart
// what it knew before. What cannot be read as an event is passed over. Errors are
// those of the broker, such as no right to read the topic.
func Recall(ctx context.Context, cfg bus.Config, hub *web.Hub) error {
	err := bus.ReadTopic(ctx, cfg, bus.TopicAlerts, bus.FirstOffset, false, func(m bus.Message) error {
		switch string(m.Header("ce_type")) {
		case event.AlertType:
			recall(m, hub.Alert)
		case event.AdvisoryType:
			recall(m, hub.Advisory)
		case event.EvidenceType:
			recall(m, hub.Evidence)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("monitor: alerts: %w", err)
	}
	return nil
}

func recall[E any](m bus.Message, show func(E)) {
	var e E
	if json.Unmarshal(m.Value, &e) == nil {
		show(e)
	}
}

// Control lets pages that know the token send commands through out.
func Control(out *bus.Producer, token func() (string, error)) *web.Control {
	return &web.Control{Token: token, Send: func(ctx context.Context, c event.Command) error { return SendCommand(ctx, out, c) }}
}

// faults returns what is wrong with each channel beyond what the model has
// learnt to expect of it.
func faults(layout *signal.Layout, r event.Result) []signal.Quality {
	qs := make([]signal.Quality, len(layout.Channels()))
	for _, s := range r.Sensors {
		if q, err := signal.ParseQuality(s.Flags); err == nil {
			qs[layout.Index(s.Channel)] = q
		}
	}
	return qs
}
