package cli

import (
	"context"
	"errors"
	"testing"
	"time"

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

// A time is written by RFC 3339, or by how long ago it was.
func TestInstant(t *testing.T) {
	at := time.Date(2026, 11, 16, 6, 0, 0, 0, time.UTC)
	for text, ago := range map[string]time.Duration{"24h": 24 * time.Hour, "0s": 0, "90m": 90 * time.Minute} {
		var i Instant
		before := time.Now()
		if err := i.UnmarshalText([]byte(text)); err != nil || i.Before(before.Add(-ago)) || i.After(time.Now().Add(-ago)) {
			t.Errorf("%s: %v, %v", text, i, err)
		}
	}
	for text, fails := range map[string]bool{"2026-11-16T06:00:00Z": false, "2026-11-16T08:00:00+02:00": false, "": true, "-1h": true, "24": true, "2026-11-16": true} {
		var i Instant
		if err := i.UnmarshalText([]byte(text)); (err != nil) != fails || !fails && !i.Equal(at) {
			t.Errorf("%q: %v, %v", text, i, err)
		}
	}
}

// A list about one machine takes its path, or the last parts of the path.
func TestOnlyMachine(t *testing.T) {
	for name, want := range map[string]bool{"": true, "acme/spore/usk25": true, "spore/usk25": true, "usk25": true, "k25": false, "acme/spore": false} {
		if got := (OnlyMachine{name}).Wants("acme/spore/usk25"); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
