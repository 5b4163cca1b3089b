package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/fetch"
	"github.com/flank-tcm/flank/internal/machine"
)

const (
	fetchPatience = 30 * time.Second // for a gateway that is silent
	fetchWithin   = 5 * time.Minute  // for the windows of evidence, also by a slow link
	fetchWindows  = 1000             // the most windows of evidence
	fetchBytes    = 256 << 20        // and their bytes
)

// fetchEvidence asks the machine's gateway for the windows of evidence. It returns those that
// came, and why there may be others; empty if the gateway says that it sent all.
func (s *partition) fetchEvidence(ctx context.Context, name string, j machine.EvidenceJob) (read reading, why string) {
	now := s.mon.now()
	c := event.Command{
		ID: event.NewCommandID(), Machine: name, Action: event.Fetch, By: s.mon.cfg.Group, Note: "evidence of " + j.Incident, Issued: now, Until: now.Add(fetchWithin),
		Wanted: &event.Wanted{Epoch: j.Epoch, From: j.From, To: j.To, Windows: fetchWindows},
	}
	var windows []bus.Message
	size := 0
	answer, err := fetch.Ask(ctx, s.mon.cfg.Bus, c, s.mon.fetchPatience, func(m bus.Message) error {
		if size += m.Size(); size > fetchBytes {
			return fmt.Errorf("they take more than %d MiB", fetchBytes>>20)
		}
		windows = append(windows, m)
		return nil
	})
	const features = "; Kafka has only features of this machine, and "
	switch {
	case errors.Is(err, fetch.ErrSilent):
		why = fmt.Sprintf("%sits gateway was silent for %v: `ingest fetch` brings the windows while the gateway keeps them", features, s.mon.fetchPatience)
	case err != nil:
		why = fmt.Sprintf("%sthe windows could not be fetched: %v", features, err)
	case answer.Gone || answer.More || answer.Lost > 0 || answer.Windows == 0:
		why = features + "its gateway " + answer.Text
	}
	return func(each func(*bus.Message) error) error {
		for i := range windows {
			if err := each(&windows[i]); err != nil {
				return err
			}
		}
		return nil
	}, why
}
