package machine

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/machine/statement"
)

const (
	evidenceSpan     = 5 * time.Second  // before and after the window that decided
	evidencePatience = 15 * time.Second // for the windows after it, by our clock
)

// EvidenceJob is evidence that an alert has announced. It is part of the machine's record
// until the event of it is published: the next owner of the partition writes what this one
// could not. The windows are read from Kafka again, so nothing but this is held.
type EvidenceJob struct {
	Name     string       `json:"name"` // of the evidence
	Alert    string       `json:"alert"`
	Incident string       `json:"incident"`
	Model    string       `json:"model"`
	Epoch    string       `json:"epoch"`
	At       time.Time    `json:"at"`
	From     time.Time    `json:"from"`
	To       time.Time    `json:"to"`
	Offset   event.Offset `json:"offset"` // of the first window of the span

	since time.Time // when this monitor first knew of it
}

// check reports a job that no monitor made. Its name becomes part of a path.
func (j EvidenceJob) check(machine string) error {
	if err := evidence.CheckName(j.Name); err != nil {
		return err
	}
	if !strings.HasPrefix(j.Alert, machine+"/") || !j.From.Before(j.To) {
		return fmt.Errorf("evidence %s is of alert %.64q, from %v to %v", j.Name, j.Alert, j.From, j.To)
	}
	return nil
}

// scheduleEvidence adds to the alerts that a window raised where its waveform will be, and
// a job that writes it.
func (s *State) scheduleEvidence(set *Settings, t *Tool, alerts []event.Alert, r *event.Result) {
	if !set.Evidence {
		return
	}
	for i := range alerts {
		a := &alerts[i]
		if len(a.Trace) == 0 {
			continue
		}
		j := EvidenceJob{
			Name: evidence.Name(a.Incident, a.Seq), Alert: a.ID, Incident: a.Incident, Model: a.Model, Epoch: a.Epoch,
			At: a.At, From: a.At.Add(-evidenceSpan), To: a.At.Add(evidenceSpan), Offset: t.Trace[len(t.Trace)-1].Offset,
		}
		if r.Start.Before(j.From) { // windows may be long
			j.From = r.Start
		}
		for _, w := range t.Trace {
			if w.End.After(j.From) {
				j.Offset = w.Offset
				break
			}
		}
		a.Evidence = &event.EvidenceLink{URL: evidence.URL(set.EvidenceURL, j.Name), From: j.From, To: j.To}
		s.Evidence = append(s.Evidence, j)
	}
}

// EvidenceDue returns evidence that is not worth waiting for any longer: the windows after
// the alert are there, or have not come for so long that they will not.
func (m *Machine) EvidenceDue(now time.Time) (EvidenceJob, bool) {
	if m.stopped != "" {
		return EvidenceJob{}, false // it could not take what became of it
	}
	for i := range m.Evidence {
		j := &m.Evidence[i]
		if j.since.IsZero() {
			j.since = now
		}
		n := len(m.Epochs)
		over := n == 0 || m.Epochs[n-1].ID != j.Epoch // no more windows of it
		if over || !m.Newest.Before(j.To) || now.Sub(j.since) >= evidencePatience {
			return *j, true
		}
	}
	return EvidenceJob{}, false
}

// UsualBands returns the power of each band of each channel in the reference of the tool that a
// job is about, as the model that judges the tool knows it; none if that tool's alarm has ended, the model is not
// known, or a defect keeps it from saying so.
func (m *Machine) UsualBands(j EvidenceJob) (all []evidence.Band) {
	i := slices.IndexFunc(m.Tools, func(t *Tool) bool { return t.Alarm.Incident == j.Incident })
	if i < 0 || guard(func() { all = m.judges.models.usualBands(m.Tools[i]) }) != nil {
		return nil // after a defect the next window stops the machine, and says so
	}
	return all
}

func (x *candidates) usualBands(t *Tool) (all []evidence.Band) {
	own, by := t.judging(t.By), x.of(t.By)
	if own == nil || by == nil || len(own.Reference.Center()) != len(by.judge.FeatureNames()) {
		return nil
	}
	channels := by.model.Layout.Channels()
	for k, v := range own.Reference.Center() {
		low, high, channel, ok := by.judge.Band(k)
		if level := 10*float64(v) - 10*math.Log10(high-low); ok && !math.IsNaN(level) && !math.IsInf(level, 0) {
			all = append(all, evidence.Band{Channel: channels[channel].Name, LowHz: low, HighHz: high, DB: math.Round(10*level) / 10})
		}
	}
	return all
}

// EvidenceDone says what became of a job.
type EvidenceDone struct {
	Job      EvidenceJob
	Evidence event.Evidence
}

func (e EvidenceDone) apply(m *Machine) {
	n := len(m.Evidence)
	m.Evidence = slices.DeleteFunc(m.Evidence, func(o EvidenceJob) bool { return o.Alert == e.Job.Alert })
	if len(m.Evidence) == n {
		return // it was published, or its machine was retired
	}
	done := e.Evidence
	done.Group = m.settings.Group
	m.decision.Evidence = &done
}

// About returns the parts of the event that are known before the windows are read.
func (j EvidenceJob) About(machine, url string) (e event.Evidence, text string) {
	e = event.Evidence{
		ID: j.Alert + "/evidence", Alert: j.Alert, Machine: machine, Incident: j.Incident,
		URL: evidence.URL(url, j.Name), From: j.From, To: j.To,
	}
	return e, fmt.Sprintf("%s %s: waveform of %s to %s", event.ShortName(machine), j.Incident, statement.Clock(j.From), statement.Clock(j.To))
}
