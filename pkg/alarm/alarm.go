// Package alarm turns decisions on single windows into something a person acts
// on.
//
// The condition of an alarm is that k of the last n judged windows of a tool
// are faulty. The condition ends when at most clear of them are. Either must last
// for its hold time, which counts cutting time: windows that were not judged do
// not count. A window is faulty here if its score reaches a threshold. The
// threshold is the model's own decision unless it was tuned. Condition and people
// together move the alarm through the states of ISA-18.2 and IEC 62682:
//
//	normal         there is nothing to do
//	raised         the condition is there, and no one has acknowledged it
//	acknowledged   the condition is there, and someone has acknowledged it
//	returned       the condition has ended, and no one has acknowledged it (latched alarms)
//
// An alarm in any of these states may also be masked: shelved by a person for a
// bounded time, suppressed by the plant, or out of service for maintenance. A
// masked alarm goes on through its states, but Raised, Returned and Reactivated
// are not announced. They are announced when the last mask is taken off.
//
// A [Change] is what is announced. Time is an argument, so a recording replays to
// the same states. docs/concepts/alarms.md draws the states.
package alarm

import (
	"fmt"
	"math/bits"
	"time"
)

// Settings says when an alarm is raised and whether it stays.
type Settings struct {
	K        int           `yaml:"k"`         // faulty windows that raise the alarm; 1 to N
	N        int           `yaml:"n"`         // judged windows that are looked at; 1 to 64
	Clear    int           `yaml:"clear"`     // faulty windows at or below which the condition is over; 0 to K-1
	OnHold   time.Duration `yaml:"on_hold"`   // cutting time for which there must be K of N; 0: the first such window raises
	OffHold  time.Duration `yaml:"off_hold"`  // cutting time for which there must be at most Clear; 0: the first such window ends it
	Latch    bool          `yaml:"latch"`     // stay until acknowledged or the tool is changed, even if the condition is over
	MaxShelf time.Duration `yaml:"max_shelf"` // longest time to shelve for; 0 means Default.MaxShelf

	// Threshold is the score in [0,1] from which on a window counts as faulty; 0
	// means Default.Threshold, the model's own decision.
	Threshold float64 `yaml:"threshold"`
}

// Default is 5 of 8, latched, over after a minute without a faulty window among
// the last 8. With it an alarm cannot chatter: fewer than three times in any
// minute it changes by itself.
var Default = Settings{K: 5, N: 8, OffHold: time.Minute, Latch: true, MaxShelf: 8 * time.Hour, Threshold: 0.5}

const (
	maxHold  = time.Hour
	maxShelf = 7 * 24 * time.Hour
)

// Check reports what is wrong with s.
func (s Settings) Check() error {
	switch {
	case s.N < 1 || s.N > 64:
		return fmt.Errorf("alarm: n is %d: look at 1 to 64 windows, for example 8", s.N)
	case s.K < 1 || s.K > s.N:
		return fmt.Errorf("alarm: k is %d: must be between 1 and n, which is %d", s.K, s.N)
	case s.Clear < 0 || s.Clear >= s.K:
		return fmt.Errorf("alarm: clear is %d: must be between 0 and k-1, which is %d", s.Clear, s.K-1)
	case s.OnHold < 0 || s.OnHold > maxHold:
		return fmt.Errorf("alarm: on_hold is %v: must be between 0s and %v", s.OnHold, maxHold)
	case s.OffHold < 0 || s.OffHold > maxHold:
		return fmt.Errorf("alarm: off_hold is %v: must be between 0s and %v", s.OffHold, maxHold)
	case s.MaxShelf < 0 || s.MaxShelf > maxShelf:
		return fmt.Errorf("alarm: max_shelf is %v: must be between 0s, for %v, and %v", s.MaxShelf, Default.MaxShelf, maxShelf)
	case !(s.Threshold >= 0 && s.Threshold <= 1):
		return fmt.Errorf("alarm: threshold is %v: must be between 0 and 1; %v is the model's own decision", s.Threshold, Default.Threshold)
	}
	return nil
}

// Change is something that happened to an alarm and is announced.
type Change string

// The changes. The first four come from windows. Between two Raised there is
// always a Cleared.
const (
	None        Change = ""
	Raised      Change = "raised"      // the condition is there and someone must act
	Returned    Change = "returned"    // the condition has ended, and the alarm waits to be acknowledged
	Reactivated Change = "reactivated" // it is there again, before it was acknowledged
	Cleared     Change = "cleared"     // a raised alarm is normal again

	Acknowledged Change = "acknowledged"
	Shelved      Change = "shelved"
	Unshelved    Change = "unshelved"
	Suppressed   Change = "suppressed"
	Unsuppressed Change = "unsuppressed"
	OutOfService Change = "out_of_service"
	InService    Change = "in_service"
)

// Alarm is the alarm of one machine. The zero value is not ready; use New. An
// Alarm is not safe for concurrent use.
type Alarm struct {
	settings Settings
	state    State
}

// New returns an alarm that is not raised.
func New(s Settings) (*Alarm, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.MaxShelf == 0 {
		s.MaxShelf = Default.MaxShelf
	}
	if s.Threshold == 0 {
		s.Threshold = Default.Threshold
	}
	return &Alarm{settings: s}, nil
}

// Settings returns the settings of the alarm.
func (a *Alarm) Settings() Settings { return a.settings }

// Count returns how many of the last judged windows, at most N, were faulty,
// and how many there were.
func (a *Alarm) Count() (faulty, of int) {
	of = min(a.state.Judged, a.settings.N)
	return bits.OnesCount64(a.state.Recent & (1<<of - 1)), of
}

// IsFaulty reports whether a window of that score counts as faulty.
func (a *Alarm) IsFaulty(score float64) bool { return score >= a.settings.Threshold }

// Observe takes the decision on the next judged window, which lasted from
// start to end and is faulty as IsFaulty says. It returns the change to announce,
// or None.
func (a *Alarm) Observe(faulty bool, start, end time.Time) Change {
	s := &a.state
	s.Recent <<= 1
	if s.Judged < 64 {
		s.Judged++
	}
	if faulty {
		s.Recent |= 1
	}
	count, _ := a.Count()
	if faulty && count == 1 {
		s.Onset = start
	}
	from := start
	if s.Last.After(start) && s.Last.Before(end) {
		from = s.Last // windows that overlap do not cut twice
	}
	s.Last = end
	if s.Returned && !a.settings.Latch { // it was latched before a restart
		return a.clear()
	}
	standing := s.Raised && !s.Returned
	due, hold := count >= a.settings.K, a.settings.OnHold
	if standing {
		due, hold = count <= a.settings.Clear, a.settings.OffHold
	}
	if !due {
		s.Held = 0
		return None
	}
	if s.Held += end.Sub(from); s.Held < hold {
		return None
	}
	s.Held = 0
	switch {
	case s.Returned:
		s.Returned = false
		return a.announced(Reactivated)
	case !standing:
		s.Raised, s.Since, s.At, s.Silent = true, s.Onset, end, a.Masked()
		return a.announced(Raised)
	case a.settings.Latch && !s.Acked:
		s.Returned = true
		return a.announced(Returned)
	}
	return a.clear()
}

// ChangeTool takes the tool out and puts in a tool of which nothing is known. It does
// nothing if tool is the tool in the spindle.
func (a *Alarm) ChangeTool(tool string) []Change {
	if tool == a.state.Tool {
		return nil
	}
	changes, _ := a.TakeOut()
	return append(changes, a.PutIn(tool, State{})...)
}

// TakeOut takes the tool out of the spindle. It returns the changes to announce and the
// state to give to PutIn when the tool comes back. A raised alarm is announced as
// cleared. A shelf ends: it must not hide an alarm of the next tool. The other masks
// belong to the machine and stay.
func (a *Alarm) TakeOut() (changes []Change, left State) {
	s := &a.state
	if s.Shelf != nil {
		changes = append(changes, Unshelved)
	}
	if s.Raised && !s.Silent {
		changes = append(changes, Cleared)
	}
	left = *s
	left.Shelf, left.Suppression, left.Service, left.Silent = nil, nil, nil, false
	a.state = State{Suppression: s.Suppression, Service: s.Service}
	return changes, left
}

// PutIn puts a tool into the spindle, with the state that TakeOut returned for it, or the
// zero State if nothing is known of the tool. An alarm that was raised is raised again,
// and stays acknowledged if it was.
func (a *Alarm) PutIn(tool string, s State) (changes []Change) {
	s.Tool, s.Shelf, s.Suppression, s.Service, s.Silent = tool, nil, a.state.Suppression, a.state.Service, false
	a.state = s
	if !s.Raised {
		return nil
	}
	if a.state.Silent = a.Masked(); a.state.Silent {
		return nil
	}
	changes = []Change{Raised}
	if s.Returned {
		changes = append(changes, Returned)
	}
	return changes
}

// Acknowledge records that someone knows of the alarm. The same wear does not
// raise it again: its condition must end first. It returns ErrRefused for an alarm
// that is normal or acknowledged already.
func (a *Alarm) Acknowledge() ([]Change, error) {
	s := &a.state
	switch {
	case !s.Raised:
		return nil, fmt.Errorf("%w: no alarm is raised", ErrRefused)
	case s.Acked:
		return nil, fmt.Errorf("%w: it is acknowledged already", ErrRefused)
	}
	changes := []Change{Acknowledged}
	s.Acked = true
	if s.Returned {
		if c := a.clear(); c != None {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// clear makes the alarm normal.
func (a *Alarm) clear() Change {
	s := &a.state
	change := None
	if s.Raised && !s.Silent {
		change = Cleared
	}
	s.Raised, s.Returned, s.Acked, s.Silent, s.Held = false, false, false, false, 0
	s.Since, s.At = time.Time{}, time.Time{}
	return change
}

// announced returns c, or None if the alarm is masked or its Raised was not announced.
func (a *Alarm) announced(c Change) Change {
	if a.Masked() || a.state.Silent {
		return None
	}
	return c
}
