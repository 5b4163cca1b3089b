package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
)

const (
	ledgerHolds  = 2 * time.Minute  // for how long a ledger says how the source is: gateways send one a minute
	ledgerMisses = 10 * time.Minute // of windows without a ledger, after which nothing is known of losses any more
)

// sourceLedger is what the machine's gateway says of the samples of its source.
type sourceLedger struct {
	*event.SourceLedger
	At time.Time // when Kafka got it
}

// apply advises of samples that are lost. The next result shows the ledger.
func (l sourceLedger) apply(m *Machine) {
	if m.gone {
		return
	}
	m.source, m.unshown = l, &l.Ledger
	n, at := m.Notices.of(event.LossAdvisory, ""), l.At.UTC()
	c := m.causeWithoutWindow(fmt.Sprintf("/ledger/%d", at.UnixNano()), at)
	by := m.alarms.byCause(c, m.alarms.inSpindle().tool.Name)
	switch {
	case len(l.Lost) > 0 && n == nil:
		m.Notices.raise(m.decision, event.LossAdvisory, "", at, at, by, event.ShortName(m.Machine)+": SAMPLES LOST, "+l.losses()+": look at the log of its ingester; docs/concepts/ledger.md says what to do")
		m.Notices.of(event.LossAdvisory, "").Last = at
	case len(l.Lost) > 0:
		n.Last, m.dirty.head = at, true
	case n != nil:
		now := "no more samples are lost than may be"
		if l.Idle > 0 {
			now = "no sample comes any more"
		}
		m.Notices.clear(m.decision, event.LossAdvisory, "", by, fmt.Sprintf("%s: %s; too many were lost from %s on", event.ShortName(m.Machine), now, statement.Clock(n.Since)))
	}
}

// losses says how many samples were lost, and why.
func (l sourceLedger) losses() string {
	all, why := event.SumLost(l.Lost)
	return fmt.Sprintf("%.0f s of the samples of a minute are in no window (%s)", all, strings.ReplaceAll(why, "_", " "))
}

// unheard clears the advisory of lost samples if windows come and ledgers do not: its gateway is one that sends none.
func (m *Machine) unheard(at time.Time, r *event.Result) {
	if n := m.Notices.of(event.LossAdvisory, ""); n != nil && at.Sub(n.Last) > ledgerMisses {
		m.Notices.clear(m.decision, event.LossAdvisory, "", byResult(r), event.ShortName(m.Machine)+": its ingester says nothing of its samples any more; windows come")
	}
}

// whySilent says what the machine's ingester said last of its source, and where to look. It may have stopped since.
func (l sourceLedger) whySilent(now time.Time) string {
	if l.SourceLedger == nil || now.Sub(l.At) > ledgerHolds {
		return "Look at its ingester and sensors"
	}
	said := "Its ingester said at " + statement.Clock(l.At) + " that "
	switch {
	case len(l.Lost) > 0:
		return said + "samples come, and " + l.losses() + ": look at its log"
	case len(l.Silent) > 0:
		return said + "no samples of " + event.RatesText(l.Silent) + " come while others do: look at the sensors of that rate and at what sends their samples"
	case l.Repeating:
		return fmt.Sprintf("%sfor %v only samples had come that came before: restart what sends them", said, time.Duration(l.Idle)*time.Second)
	case l.Idle > 0:
		return fmt.Sprintf("%sno sample had come for %v: look at its sensors and what sends their samples", said, time.Duration(l.Idle)*time.Second)
	}
	return said + "samples come: look whether it still runs, at its log, and at Kafka"
}

// account lets a machine know of a ledger. One that is not known is met only if its samples are lost, or no windows come of
// them: it is silent then.
func (o *Owner) account(b *Batch, in Input) {
	m := o.machines[in.Ledger.Machine]
	if m == nil && (len(in.Ledger.Lost) > 0 || in.Ledger.InWindows == 0) && o.roomForUnjudged() {
		m = o.meet(in.Ledger.Machine, b.now)
	}
	if m != nil {
		o.add(b, m, o.apply(b, m, sourceLedger{in.Ledger, in.At}, nil))
	}
}
