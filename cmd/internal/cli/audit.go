package cli

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/plain"
)

// Audit is the audit of a program that runs. What is recorded before Open, and after Close, is in the log
// alone. The zero Audit is ready but for its program.
type Audit struct {
	Program string // such as monitor
	Log     zerolog.Logger

	mu sync.Mutex
	w  *audit.Writer
}

// Open begins to write to the topic of a plant, until close is called, which sends what waits.
func (a *Audit) Open(cfg bus.Config) (w *audit.Writer, closing func(), err error) {
	if w, err = audit.Open(cfg, a.Program, a.Log); err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	a.w = w
	a.mu.Unlock()
	return w, func() {
		a.mu.Lock()
		a.w = nil
		a.mu.Unlock()
		w.Close()
	}, nil
}

// Record passes a record on. It does not wait.
func (a *Audit) Record(r event.Audit) {
	a.mu.Lock()
	w := a.w
	a.mu.Unlock()
	if w == nil {
		audit.Log(a.Log, r)
		return
	}
	w.Record(r)
}

// Reloaded records that the configuration of a file was read again: err says why the program does not use it.
func (a *Audit) Reloaded(file string, err error) {
	r := event.Audit{Action: event.Reload, Object: file, Actor: event.Actor{Identified: event.BySignal}, Outcome: event.Accepted}
	if err != nil {
		r.Outcome, r.Reason = event.Denied, err.Error()
	}
	a.Record(r)
}

// AuditCommand puts a record of a command in a terminal on the topic, as done by the name that was typed. err is
// what came of the command. What cannot be recorded is a note on stderr: the command has had its effect.
func AuditCommand(ctx context.Context, cfg bus.Config, program, by string, stderr io.Writer, r event.Audit, err error) {
	r.Actor, r.Outcome = audit.Terminal(by), event.Accepted
	if err != nil {
		r.Outcome, r.Reason = event.Denied, err.Error()
	}
	if err := audit.Write(ctx, cfg, program, r); err != nil {
		fmt.Fprintf(stderr, "note: %s has no record of this: %s\n", bus.TopicAudit, plain.Text(err.Error()))
	}
}

// AuditMetrics returns the metrics of a writer, which may be nil, see docs/how-to/audit.md.
func AuditMetrics(w *audit.Writer) metric.Collector {
	return metric.Of(w.Stats, []metric.Metric[audit.Stats]{
		metric.Counter("tcm_audit_accepted_total", "Actions of people that were accepted.", func(s audit.Stats) uint64 { return s.Accepted }),
		metric.Counter("tcm_audit_refused_total", "Actions of people that were refused.", func(s audit.Stats) uint64 { return s.Refused }),
		metric.Counter("tcm_audit_unrecorded_total", "Refused actions without an audit record of their own: they came too fast.", func(s audit.Stats) uint64 { return s.Unrecorded }),
		metric.Counter("tcm_audit_lost_total", "Audit records that are in the log and not on the topic.", func(s audit.Stats) uint64 { return s.Lost }),
	})
}
