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
// An alarm belongs to one tool. It goes on through its states whether or not it may call, but
// Raised, Returned and Reactivated are announced only while the tool is in the spindle and no
// mask is on. Masks are [Masks]: shelved by a person for a bounded time, suppressed by the
// plant, or out of service for maintenance. What was not announced is announced by
// [State.Announce] once the alarm may call.
//
// A [Change] is what is announced. Settings, masks and time are arguments, so a recording
// replays to the same states. docs/concepts/alarms.md draws the states.
package alarm

import (
	"cmp"
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
	ReAlarm  time.Duration `yaml:"re_alarm"`  // after a call, the alarm of a tool that comes back is silent for so long; 0 means Default.ReAlarm

	// Threshold is the score in [0,1] from which on a window counts as faulty; 0
	// means Default.Threshold, the model's own decision.
	Threshold float64 `yaml:"threshold"`
}

// Default is 5 of 8, latched, over after a minute without a faulty window among
// the last 8. With it an alarm cannot chatter: fewer than three times in any
// minute it changes by itself.
var Default = Settings{K: 5, N: 8, OffHold: time.Minute, Latch: true, MaxShelf: 8 * time.Hour, ReAlarm: 10 * time.Minute, Threshold: 0.5}

const (
	maxHold    = time.Hour
	maxShelf   = 7 * 24 * time.Hour
	maxReAlarm = 24 * time.Hour
)

// Check reports what is wrong with s.
func (s Settings) Check() error {
	switch {
	case outside(s.N, 1, 64):
		return fmt.Errorf("alarm: n is %d: look at 1 to 64 windows, for example 8", s.N)
	case outside(s.K, 1, s.N):
		return fmt.Errorf("alarm: k is %d: must be between 1 and n, which is %d", s.K, s.N)
	case outside(s.Clear, 0, s.K-1):
		return fmt.Errorf("alarm: clear is %d: must be between 0 and k-1, which is %d", s.Clear, s.K-1)
	case outside(s.OnHold, 0, maxHold):
		return fmt.Errorf("alarm: on_hold is %v: must be between 0s and %v", s.OnHold, maxHold)
	case outside(s.OffHold, 0, maxHold):
		return fmt.Errorf("alarm: off_hold is %v: must be between 0s and %v", s.OffHold, maxHold)
	case outside(s.MaxShelf, 0, maxShelf):
		return fmt.Errorf("alarm: max_shelf is %v: must be between 0s, for %v, and %v", s.MaxShelf, Default.MaxShelf, maxShelf)
	case outside(s.ReAlarm, 0, maxReAlarm):
		return fmt.Errorf("alarm: re_alarm is %v: must be between 0s, for %v, and %v", s.ReAlarm, Default.ReAlarm, maxReAlarm)
	case outside(s.Threshold, 0, 1):
		return fmt.Errorf("alarm: threshold is %v: must be between 0 and 1; %v is the model's own decision", s.Threshold, Default.Threshold)
	}
	return nil
}

// outside reports whether v is not from low to high.
func outside[T cmp.Ordered](v, low, high T) bool { return !(v >= low && v <= high) }

// Complete returns s with Default's values where 0 means them. It reports what is wrong with s.
// The other functions of this package want settings that are complete.
func (s Settings) Complete() (Settings, error) {
	s.MaxShelf = cmp.Or(s.MaxShelf, Default.MaxShelf)
	s.ReAlarm = cmp.Or(s.ReAlarm, Default.ReAlarm)
	err := s.Check()
	s.Threshold = cmp.Or(s.Threshold, Default.Threshold)
	return s, err
}

// IsFaulty reports whether a window of that score counts as faulty.
func (s Settings) IsFaulty(score float64) bool { return score >= s.Threshold }

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

// Count returns how many of the last judged windows, at most set.N, were faulty,
// and how many there were.
func (s *State) Count(set Settings) (faulty, of int) {
	of = min(s.Judged, set.N)
	return bits.OnesCount64(s.Recent & (1<<of - 1)), of
}

// Unknowns returns of how many of the windows that Count looks at the verdict was unknown.
func (s *State) Unknowns(set Settings) int {
	return bits.OnesCount64(s.Unknown & (1<<min(s.Judged, set.N) - 1))
}

// Observe takes the decision on the tool's next judged window, which lasted from start to end by the
// sensors' clock and came at now by Kafka's. It is faulty as set.IsFaulty says. Quiet: the tool is not in the
// spindle, or a mask is on. It returns the change to announce, or None.
func (s *State) Observe(set Settings, quiet, faulty bool, start, end, now time.Time) Change {
	s.Recent, s.Unknown, s.Judged = s.Recent<<1|bit(faulty), s.Unknown<<1, min(s.Judged+1, 64)
	count, _ := s.Count(set)
	if faulty && count == 1 {
		s.Onset = start
	}
	standing := s.Raised && !s.Returned
	due, hold := count >= set.K, set.OnHold
	if standing {
		due, hold = count <= set.Clear, set.OffHold
	}
	if s.Held += observed(&s.Last, start, end); !due {
		s.Held = 0
	}
	switch {
	case s.Returned && !set.Latch: // it was latched when it returned
		return s.clear()
	case !due || s.Held < hold:
		return None
	}
	s.Held = 0
	return s.turn(set, quiet, end, now)
}

// turn turns an alarm whose condition has come, or has ended, and has been so for long enough.
func (s *State) turn(set Settings, quiet bool, end, now time.Time) Change {
	switch {
	case s.Returned:
		s.Returned = false
		if quiet || !s.Announced {
			return None
		}
		s.Called = now
		return Reactivated
	case !s.Raised:
		s.Raised, s.Since, s.At = true, s.Onset, end
		if quiet {
			return None
		}
		s.Announced, s.Called = true, now
		return Raised
	case set.Latch && !s.Acked:
		s.Returned = true
		if quiet || !s.Announced {
			return None
		}
		return Returned
	}
	return s.clear()
}

// bit is 1 for true.
func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// observed returns how long a window lasted, without what overlaps with the one that ended last. It ends last now.
func observed(last *time.Time, start, end time.Time) time.Duration {
	if last.After(start) && last.Before(end) {
		start = *last
	}
	*last = end
	return end.Sub(start)
}

// Waits reports whether the alarm would call, and was not announced.
func (s *State) Waits() bool { return s.Raised && !s.Acked && !s.Announced }

// Silent returns until when an alarm that is not announced is silent: set.ReAlarm after its last call.
// It returns false for an alarm that has nothing to announce, or has never called.
func (s *State) Silent(set Settings) (until time.Time, silent bool) {
	if !s.Waits() || s.Called.IsZero() {
		return time.Time{}, false
	}
	return s.Called.Add(set.ReAlarm), true
}

// Announce returns what is to be announced of an alarm that may call at now, and that has not been
// announced: Raised, and Returned if its condition has ended. It returns nothing within set.ReAlarm of
// the alarm's last call.
func (s *State) Announce(set Settings, now time.Time) []Change {
	if until, silent := s.Silent(set); !s.Waits() || silent && now.Before(until) {
		return nil
	}
	s.Announced, s.Called = true, now
	if s.Returned {
		return []Change{Raised, Returned}
	}
	return []Change{Raised}
}

// TakeOut is for a tool that leaves the spindle. An alarm that was announced is announced as
// cleared. The alarm itself waits with its tool.
func (s *State) TakeOut() []Change {
	if !s.Announced {
		return nil
	}
	s.Announced = false
	return []Change{Cleared}
}

// Acknowledge records that someone knows of the alarm. The same wear does not
// raise it again: its condition must end first. It returns ErrRefused for an alarm
// that is normal or acknowledged already.
func (s *State) Acknowledge() ([]Change, error) {
	switch {
	case !s.Raised:
		return nil, fmt.Errorf("%w: no alarm is raised", ErrRefused)
	case s.Acked:
		return nil, fmt.Errorf("%w: it is acknowledged already", ErrRefused)
	}
	s.Acked = true
	if s.Returned {
		if c := s.clear(); c != None {
			return []Change{Acknowledged, c}, nil
		}
	}
	return []Change{Acknowledged}, nil
}

// clear makes the alarm normal. Held stays: the condition may be on again, and has been for so long.
func (s *State) clear() Change {
	change := None
	if s.Announced {
		change = Cleared
	}
	s.Raised, s.Returned, s.Acked, s.Announced = false, false, false, false
	s.Since, s.At, s.Called = time.Time{}, time.Time{}, time.Time{}
	return change
}
