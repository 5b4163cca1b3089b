// Package alarm turns decisions on single windows into something a person acts
// on.
//
// An alarm is raised when k of the last n judged windows of a tool are faulty.
// A latched alarm stays raised until somebody acknowledges it or the tool is
// changed; one that is not latched clears by itself when none of the last n is
// faulty. Windows that were not judged do not count. Time is an argument, so a
// recording replays to the same states.
package alarm

import (
	"errors"
	"fmt"
	"time"
)

// Settings says when an alarm is raised and whether it stays.
type Settings struct {
	K     int  `yaml:"k"`     // faulty windows that raise the alarm; 1 to N
	N     int  `yaml:"n"`     // judged windows that are looked at; 1 to 64
	Latch bool `yaml:"latch"` // stay raised until acknowledged or the tool is changed
}

// Default is 5 of 8, latched.
var Default = Settings{K: 5, N: 8, Latch: true}

// Check reports what is wrong with s.
func (s Settings) Check() error {
	if s.N < 1 || s.N > 64 {
		return fmt.Errorf("alarm: n is %d: look at 1 to 64 windows, for example 8", s.N)
	}
	if s.K < 1 || s.K > s.N {
		return fmt.Errorf("alarm: k is %d: must be between 1 and n, which is %d", s.K, s.N)
	}
	return nil
}

// Change is what happened to an alarm.
type Change int

// The changes.
const (
	None Change = iota
	Raised
	Cleared
)

// State is everything an alarm remembers. It is plain data, so that it can be
// kept across restarts.
type State struct {
	Tool   string    `json:"tool,omitempty"`
	Recent uint64    `json:"recent"`          // bit i: was the i-th last judged window faulty?
	Judged int       `json:"judged"`          // windows that Recent holds, at most 64
	Raised bool      `json:"raised"`          // the alarm stands
	Since  time.Time `json:"since,omitzero"`  // start of the first faulty window that led to it
	Onset  time.Time `json:"onset,omitzero"`  // start of the first of the faulty windows in Recent
	At     time.Time `json:"at,omitzero"`     // end of the window that raised it
	Acked  bool      `json:"acked,omitempty"` // acknowledged while it stood; raised anew only after a healthy spell
}

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
	return &Alarm{settings: s}, nil
}

// Settings returns the settings of the alarm.
func (a *Alarm) Settings() Settings { return a.settings }

// State returns what the alarm remembers.
func (a *Alarm) State() State { return a.state }

// ErrState is returned by Restore for a state that no alarm can have.
var ErrState = errors.New("alarm: impossible state")

// Restore makes the alarm remember s.
func (a *Alarm) Restore(s State) error {
	if s.Judged < 0 || s.Judged > 64 || s.Judged < 64 && s.Recent>>s.Judged != 0 {
		return fmt.Errorf("%w: %d windows judged, recent %b", ErrState, s.Judged, s.Recent)
	}
	a.state = s
	return nil
}

// Raised reports whether the alarm stands.
func (a *Alarm) Raised() bool { return a.state.Raised }

// Count returns how many of the last judged windows, at most N, were faulty,
// and how many there were.
func (a *Alarm) Count() (faulty, of int) {
	of = min(a.state.Judged, a.settings.N)
	for i := range of {
		faulty += int(a.state.Recent >> i & 1)
	}
	return faulty, of
}

// Observe takes the decision on the next judged window, which lasted from
// start to end.
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
	switch {
	case !s.Raised && !s.Acked && count >= a.settings.K:
		s.Raised, s.Since, s.At = true, s.Onset, end
		return Raised
	case count > 0:
		return None
	}
	s.Acked = false
	if s.Raised && !a.settings.Latch {
		a.clear()
		return Cleared
	}
	return None
}

// ChangeTool forgets what was seen of the tool before, if tool is another, and
// clears an alarm that stood for it.
func (a *Alarm) ChangeTool(tool string) Change {
	if tool == a.state.Tool {
		return None
	}
	raised := a.state.Raised
	a.state = State{Tool: tool}
	if raised {
		return Cleared
	}
	return None
}

// Acknowledge clears an alarm that stands. The same wear does not raise it
// again: first, none of N windows may be faulty.
func (a *Alarm) Acknowledge() Change {
	if !a.state.Raised {
		return None
	}
	a.clear()
	a.state.Acked = true
	return Cleared
}

func (a *Alarm) clear() {
	a.state.Raised = false
	a.state.Since, a.state.At = time.Time{}, time.Time{}
}
