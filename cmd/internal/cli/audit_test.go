package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/internal/testkit/metrictest"
)

// A program records from its start to its end: in the log alone while it has no topic, and on the topic
// else, also over a reload. A command in a terminal records what came of it.
func TestAudit(t *testing.T) {
	t.Parallel()
	broker := brokertest.Start(t)
	cfg := broker.Config("test")
	if _, err := bus.Apply(t.Context(), cfg, 1, 1); err != nil {
		t.Fatal(err)
	}
	var log logtest.Buffer
	a := &Audit{Program: "monitor", Log: zerolog.New(&log)}
	login := event.Audit{Action: event.Login, Actor: event.Actor{Name: "early", Identified: event.ByToken}, Outcome: event.Accepted}
	a.Record(login)
	for range 2 {
		_, closing, err := a.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		a.Reloaded("monitor.yaml", errors.New("monitor.yaml:3: password: hunter2: no such key"))
		a.Reloaded("monitor.yaml", nil)
		closing()
	}
	login.Actor.Name = "late"
	a.Record(login)
	var stderr bytes.Buffer
	AuditCommand(t.Context(), cfg, "trainer", "anna", &stderr, event.Audit{Action: event.PromoteModel, Model: "m1", Object: "acme/**"}, nil)
	AuditCommand(t.Context(), cfg, "trainer", "anna", &stderr, event.Audit{Action: event.RollbackTo}, errors.New("no champion before"))
	var got []string
	if _, err := audit.Read(t.Context(), cfg, time.Time{}, func(r event.Audit) error {
		got = append(got, strings.Join([]string{r.Program, string(r.Action), r.Object, string(r.Outcome), string(r.Actor.Identified), r.Reason}, " "))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	refused, taken := "monitor reload monitor.yaml refused signal monitor.yaml:3: password: [withheld] no such key", "monitor reload monitor.yaml accepted signal "
	want := []string{refused, taken, refused, taken, "trainer promote acme/** accepted terminal ", "trainer rollback  refused terminal no champion before"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || stderr.Len() > 0 {
		t.Errorf("the topic has %q, want %q\n%s", got, want, &stderr)
	}
	for _, want := range []string{`"name":"early"`, `"name":"late"`} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log lacks %s\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "hunter2") || strings.Contains(log.String(), `"id":""`) {
		t.Error(log.String())
	}
}

func TestAuditMetricsAreDocumented(t *testing.T) {
	metrictest.Check(t, "../../../docs/how-to/audit.md", AuditMetrics(nil))
}
