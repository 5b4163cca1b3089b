package machine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/window"
)

// Refusal is the error of Input.Open for a window that is whole and that the model cannot
// judge: its layout or its length is not the model's. The window's headers name its
// machine.
type Refusal struct {
	Machine string
	Epoch   string // 16 hexadecimal digits
	Seq     uint64
	Why     *window.Mismatch

	Layout string         // fingerprint, with Window
	Window *window.Window // its facts, if they are known of features that no model takes: then it moves the tool, as a window of another layout does
}

func (r *Refusal) Error() string { return r.Why.Error() }
func (r *Refusal) Unwrap() error { return r.Why }

// refusedWindow is a window of the machine that the model cannot judge.
type refusedWindow struct {
	*Refusal
	At  time.Time // when Kafka got it
	Now time.Time // by the clock of the monitor
}

// mostRefused is how many machines of a partition may be known by refused windows only.
// Anyone who may write to the topic can invent their names.
const mostRefused = 100

// refusedRule says when windows are refused: from the first one until a window is judged
// that came a minute or more after the last refused one. Two ingesters of one machine may
// send windows of both kinds in turn.
var refusedRule = alarm.Hysteresis{K: 1, N: 1, Hold: time.Minute}

// apply advises that the machine is not watched.
func (w refusedWindow) apply(m *Machine) {
	if m.gone {
		m.gone, m.dirty.slow = false, true
	}
	if w.Window != nil && !m.unjudged() {
		Window{Features: &window.Features{Window: *w.Window}, At: w.At, Now: w.Now, refused: w.Refusal}.apply(m)
		return
	}
	m.alarms.expire(w.At)
	m.refuseWindow(w.Refusal, w.At, w.Now)
}

// refuseWindow advises that the machine is not watched. The windows after it change only what is
// remembered of the reason.
func (m *Machine) refuseWindow(w *Refusal, at, now time.Time) {
	m.dirty.head = true
	if n := m.Notices.of(event.SilenceAdvisory, ""); n != nil {
		c := m.causeWithoutWindow(fmt.Sprintf("/refused/%d", at.UnixNano()), at)
		m.Notices.clear(m.decision, event.SilenceAdvisory, "", m.alarms.byCause(c, m.alarms.inSpindle().tool.Name),
			fmt.Sprintf("%s: windows come again, after %v without, and are refused", event.ShortName(m.Machine), now.Sub(n.Since).Round(time.Second)))
		m.LastWindowAt = now.UTC().Round(0) // by which the next silence is named
	}
	m.waitingSince, m.askedEnd = now, nil // the machine is not silent
	a := m.refuse(true, at, event.Result{
		ID: event.WindowID(m.Machine, w.Epoch, w.Seq) + "/" + m.settings.Group, Group: m.settings.Group, Machine: m.Machine,
		Epoch: w.Epoch, Seq: w.Seq, Tool: m.alarms.inSpindle().tool.Name, Model: m.Model,
	})
	text := fmt.Sprintf("%s: NOT WATCHED, its windows are refused: %s. %s", event.ShortName(m.Machine), w.Why.Text, remedy(w.Why))
	if w.Why.What == NoModel {
		text = fmt.Sprintf("%s: NOT WATCHED, %s. %s", event.ShortName(m.Machine), w.Why.Text, remedy(w.Why))
	}
	m.Notices.of(event.RefusedAdvisory, "").Text = text
	if a != nil {
		a.Text = text
	}
}

// NoModel is the window.Mismatch.What of a window for which no model is deployed.
const NoModel = "no model"

// unjudged reports whether no window of the machine was ever judged: it has no tool before that.
func (s *State) unjudged() bool { return len(s.Tools) == 0 }

// LacksModel reports whether the text of a windows_refused advisory says that nothing but a
// model is missing.
func LacksModel(text string) bool { return strings.HasSuffix(text, deployOne) }

const deployOne = "Deploy one: `trainer promote MODEL --for MACHINE`"

// remedy says what people can do about windows that do not fit.
func remedy(why *window.Mismatch) string {
	switch why.What {
	case NoModel:
		return deployOne
	case window.OtherFeatures:
		return "Deploy a model of this layout for it, or train one"
	case window.OtherLayout:
		return "Give its ingester the layout of the model, or train a model on this one"
	case window.OtherLength:
		return "Set window.length of its ingester to the model's, or train a model on such windows"
	}
	return "Run ingest and monitor of the same release"
}

// accept notes that a window was judged, which Kafka got at that time.
func (m *Machine) accept(at time.Time, r *event.Result) {
	if m.Notices.of(event.RefusedAdvisory, "") == nil {
		return
	}
	if a := m.refuse(false, at, *r); a != nil {
		a.Text = fmt.Sprintf("%s: windows are judged again; those from %s on were refused", event.ShortName(m.Machine), statement.Clock(a.Since))
	}
}

// refuse notes whether the window of r was refused, which Kafka got at that time, and
// returns the advisory on a change.
func (m *Machine) refuse(refused bool, at time.Time, r event.Result) *event.Advisory {
	at = at.UTC()
	r.Start, r.End = at, at
	if n := m.Notices.of(event.RefusedAdvisory, ""); n != nil && n.Last.Before(at) {
		r.Start = n.Last // no window came in between
	}
	return m.Notices.observe(m.decision, event.RefusedAdvisory, "", refused, refusedRule, &r)
}

// refuse lets a machine know of a window that is refused. It reports false for a machine
// of which no window was ever judged if there are too many of them.
func (o *Owner) refuse(b *Batch, e *Refusal, in Input) bool {
	m := o.machines[e.Machine]
	if (m == nil || m.gone) && !o.roomForUnjudged() {
		return false
	}
	if m == nil {
		m = o.meet(e.Machine, b.now)
	}
	o.add(b, m, o.apply(b, m, refusedWindow{e, in.At, b.now}, nil))
	return true
}

// meet returns a machine of which nothing is known.
func (o *Owner) meet(name string, now time.Time) *Machine {
	m, err := newMachine(name, o.settings, &o.models, o.deployedFor(name), now)
	assert(err == nil, "settings are checked when a monitor begins: %v", err)
	o.put(name, m)
	return m
}

// setAside puts a message that is not a window of ours into a batch. The advisory of its
// machine says so, if the machine is known.
func (o *Owner) setAside(b *Batch, in Input, log replyLog, err error) {
	l := Letter{Log: log, Offset: in.Offset, Reason: err.Error(), Err: err}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		repeats := b.Repeats
		l.Advised = o.refuse(b, refusal, in)
		if refusal.Why.What == NoModel { // nothing is wrong with it
			if b.Repeats == repeats {
				b.Unwatched++
			}
			return
		}
	}
	b.Letters = append(b.Letters, l)
}
