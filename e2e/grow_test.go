//go:build e2e

package e2e

import (
	"os"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
)

// interrupt ends p as Ctrl-C would, and returns when it has ended.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
}

// readAll returns all messages of a topic.
func readAll(t *testing.T, cfg bus.Config, topic string) (msgs []bus.Message) {
	t.Helper()
	if err := bus.ReadTopic(t.Context(), cfg, topic, bus.FirstOffset, false, func(m bus.Message) error {
		msgs = append(msgs, m)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return msgs
}
