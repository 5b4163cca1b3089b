package machine

import (
	"fmt"
	"hash/crc32"
	"iter"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// alarms are the alarms of a machine's tools, and those that its shadows would have.
type alarms struct {
	state    *State
	set      alarm.Settings // of the deployment, complete
	group    string         // of the monitor
	decision *Decision      // of the event that is being applied
	dirty    *dirty
}

// of returns the alarm of a tool.
func (x *alarms) of(t *Tool) bell {
	return bell{of: x, alarm: &t.Alarm, tool: t, masks: x.state.Masks, group: x.group, inSpindle: t == x.state.inSpindle()}
}

// trial returns what the alarm of a tool would be under a shadow. No one masks it.
func (x *alarms) trial(t *Tool, j *Judging) bell {
	return bell{of: x, alarm: j.Trial, tool: t, group: event.ShadowGroup(x.group, j.Model), inSpindle: t == x.state.inSpindle(), shadow: j.Model}
}

// all returns the alarm of a tool, and what it would be under each shadow.
func (x *alarms) all(t *Tool) iter.Seq[bell] {
	return func(yield func(bell) bool) {
		more := yield(x.of(t))
		for _, j := range t.Judgings {
			more = more && (j.Trial == nil || yield(x.trial(t, j)))
		}
	}
}

// inSpindle returns the alarm of the tool in the spindle, or a normal one if there is no tool.
func (x *alarms) inSpindle() bell {
	if t := x.state.inSpindle(); t != nil {
		return x.of(t)
	}
	return bell{of: x, alarm: new(Alarm), tool: new(Tool), masks: x.state.Masks, group: x.group, inSpindle: true}
}

// wordWithoutTool returns the machine's mask, or normal: the state of the alarm of a spindle without a tool.
func (s *State) wordWithoutTool() string { return new(Alarm).Word(s.Masks) }

// announceAll publishes the alarm of a tool, and the alarms that its shadows would have, if they may call now.
func (x *alarms) announceAll(t *Tool, c cause) {
	for b := range x.all(t) {
		b.announce(c)
	}
}

// expire ends shelves, and the silence of an alarm whose tool has come back, by Kafka's clock: each at its time, and in the
// order of times.
func (x *alarms) expire(now time.Time) {
	for {
		t := x.state.firstShelf()
		b, until := x.firstSilence()
		switch {
		case t != nil && !now.Before(t.Alarm.Shelf.Until) && (b.alarm == nil || !until.Before(t.Alarm.Shelf.Until)):
			x.endShelf(t, now)
		case b.alarm != nil && !now.Before(until):
			x.endSilence(b, until)
		default:
			return
		}
	}
}

// firstShelf returns the tool whose shelf ends first; nil if none has one.
func (s *State) firstShelf() (first *Tool) {
	for _, t := range s.Tools {
		if shelf := t.Alarm.Shelf; shelf != nil && (first == nil || shelf.Until.Before(first.Alarm.Shelf.Until)) {
			first = t
		}
	}
	return first
}

func (x *alarms) endShelf(t *Tool, now time.Time) {
	s := t.Alarm.Over(now)
	tool := int64(crc32.ChecksumIEEE([]byte(t.Name))) % 1e6 // Kafka's time is in milliseconds: below them is room to tell tools apart
	c := x.state.causeWithoutWindow(fmt.Sprintf("/shelf/%d", s.Since.UnixNano()+tool), s.Until)
	c.reason = "expired"
	x.dirty.tool(t)
	b := x.of(t)
	b.publish(b.unmasked(alarm.Unshelved, t.Alarm.State, c))
}

// firstSilence returns the alarm of the tool in the spindle, or what one of its shadows would have, that is to call
// first since it was silent when its tool came back, and when. Without one it has no alarm.
func (x *alarms) firstSilence() (first bell, at time.Time) {
	t := x.state.inSpindle()
	if t == nil {
		return first, at
	}
	for b := range x.all(t) {
		if until, silent := b.alarm.Silent(x.set); silent && !b.quiet() && (first.alarm == nil || until.Before(at)) {
			first, at = b, until
		}
	}
	return first, at
}

// callAtLast announces an alarm in the spindle that may call and never has: a defect has cut the event short that was to announce it.
func (x *alarms) callAtLast(now time.Time) {
	if t := x.state.inSpindle(); t != nil && t.Alarm.Waits() && t.Alarm.Called.IsZero() && !x.of(t).quiet() {
		c := x.state.causeWithoutWindow(fmt.Sprintf("/silent/%d", now.UnixNano()), now)
		c.tool = t.Name
		x.of(t).announce(c)
	}
}

// endSilence announces an alarm that was silent until then.
func (x *alarms) endSilence(b bell, until time.Time) {
	c := x.state.causeWithoutWindow(fmt.Sprintf("/silent/%d", b.alarm.Called.UnixNano()), until)
	c.reason, c.tool = "tool_back", b.tool.Name
	b.announce(c)
}

// takeOutTrials says of a tool that leaves the spindle what that means for the alarms that its shadows would have.
func (x *alarms) takeOutTrials(t *Tool, c cause) {
	c.word = "normal" // no one masks what a shadow says
	for b := range x.all(t) {
		if b.shadow != "" {
			b.publish(b.report(b.alarm.TakeOut(), b.alarm.State, c))
		}
	}
}

// command does to the alarm of a tool what a command wants, or to the masks of the machine, and returns what it
// says.
func (x *alarms) command(t *Tool, c *event.Command, why cause) ([]event.Alert, error) {
	was, masks := t.Alarm.State, &t.Alarm.Masks
	if c.Action.MasksMachine() && c.Tool == "" {
		masks, why.allTools = &x.state.Masks, true
	}
	change := changeOf[c.Action]
	switch c.Action {
	case event.Acknowledge:
		changes, err := t.Alarm.Acknowledge()
		if err != nil {
			return nil, err
		}
		return x.of(t).report(changes, was, why), nil
	case event.Shelve, event.Suppress, event.OutOfService:
		mask := alarm.Mask{By: c.By, Reason: c.Note, Since: why.at, Until: c.Until}
		if latest := why.at.Add(x.set.MaxShelf); mask.Until.After(latest) && c.Until.Sub(c.Issued) <= x.set.MaxShelf {
			mask.Until = latest // it is not too long, the sender's clock is ahead
		}
		if err := masks.Put(x.set, change, mask); err != nil {
			return nil, err
		}
		why.until = mask.Until
		return x.of(t).report([]alarm.Change{change}, was, why), nil
	}
	if err := masks.Take(change); err != nil {
		return nil, x.meantTool(change, masks, err)
	}
	return x.of(t).unmasked(change, was, why), nil
}

// meantTool adds to the error of a mask that is not on the machine the tool on which it is.
func (x *alarms) meantTool(change alarm.Change, masks *alarm.Masks, err error) error {
	for _, o := range x.state.Tools {
		if of := o.Alarm.Masks; masks == &x.state.Masks && of.Take(change) == nil {
			return fmt.Errorf("%w; the alarm of tool %s is: name the tool, --tool %[2]s", err, o.Name)
		}
	}
	return err
}

// byCause is a change of a notice by what changed the alarm too.
func (x *alarms) byCause(c cause, tool string) advised {
	return advised{c.id(x.group), x.group, x.state.Machine, c.at, c.epoch, c.seq, tool, c.model}
}
