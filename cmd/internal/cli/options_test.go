package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
)

// An error that names the remedy gets no second one.
func TestPatienceSaysTheRemedyOnce(t *testing.T) {
	for cause, want := range map[string]string{
		"closed": "no answer from Kafka at a:1: closed: check the address and the network",
		"bus: no answer in time: check the broker and the network": "no answer from Kafka at a:1: bus: no answer in time: check the broker and the network",
	} {
		cfg := bus.Config{Brokers: []string{"a:1"}}
		ctx, cancel := WithPatience(t.Context(), &cfg)
		cfg.OnRetry(errors.New(cause), KafkaPatience)
		if err := context.Cause(ctx); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		cancel(nil)
	}
}
