package alarm

import (
	"errors"
	"fmt"
	"time"
)

// State is everything an alarm remembers. It is plain data, so that it can be
// kept across restarts. A field that an older program did not write has its zero
// value, which means what that program did. The masks are never changed, only replaced.
type State struct {
	Tool   string        `json:"tool,omitempty"`
	Recent uint64        `json:"recent"`          // bit i: was the i-th last judged window faulty?
	Judged int           `json:"judged"`          // windows that Recent holds, at most 64
	Raised bool          `json:"raised"`          // the alarm is not normal
	Since  time.Time     `json:"since,omitzero"`  // start of the first faulty window that led to it
	Onset  time.Time     `json:"onset,omitzero"`  // start of the first faulty window in Recent
	At     time.Time     `json:"at,omitzero"`     // end of the window that raised it
	Acked  bool          `json:"acked,omitempty"` // acknowledged, and the condition has not ended
	Last   time.Time     `json:"last,omitzero"`   // end of the last judged window
	Held   time.Duration `json:"held,omitempty"`  // cutting time for which the next change has been due, in nanoseconds

	Returned bool `json:"returned,omitempty"` // raised, and its condition has ended
	Silent   bool `json:"silent,omitempty"`   // Raised was not announced

	Shelf       *Mask `json:"shelf,omitempty"`
	Suppression *Mask `json:"suppression,omitempty"`
	Service     *Mask `json:"out_of_service,omitempty"`
}

// State returns what the alarm remembers.
func (a *Alarm) State() State { return a.state }

// ErrState is returned by Restore for a state that no alarm can have.
var ErrState = errors.New("alarm: impossible state")

// Restore makes the alarm remember s.
func (a *Alarm) Restore(s State) error {
	switch {
	case s.Judged < 0 || s.Judged > 64 || s.Judged < 64 && s.Recent>>s.Judged != 0:
		return fmt.Errorf("%w: %d windows judged, recent %b", ErrState, s.Judged, s.Recent)
	case s.Held < 0:
		return fmt.Errorf("%w: held for %v", ErrState, s.Held)
	case s.Returned && (!s.Raised || s.Acked), s.Silent && !s.Raised:
		return fmt.Errorf("%w: raised %t, acknowledged %t, returned %t, silent %t", ErrState, s.Raised, s.Acked, s.Returned, s.Silent)
	case s.Shelf != nil && s.Shelf.Until.IsZero():
		return fmt.Errorf("%w: shelved for ever", ErrState)
	}
	if s.Acked && !s.Raised {
		// Older programs announced an acknowledged alarm as cleared.
		s.Raised, s.Silent, s.Since = true, true, s.Onset
	}
	a.state = s
	return nil
}

// Stands reports whether the alarm is in any state but normal, masked or not.
func (a *Alarm) Stands() bool { return a.state.Raised }

// Calls reports whether someone must act now: the alarm is raised, not
// acknowledged, and not masked.
func (a *Alarm) Calls() bool { return a.state.Word() == "raised" }

// Masked reports whether the alarm is shelved, suppressed or out of service.
func (a *Alarm) Masked() bool {
	return a.state.Shelf != nil || a.state.Suppression != nil || a.state.Service != nil
}

// Word returns the state in a word: "normal", "raised", "acknowledged" or
// "returned". For a masked alarm it is "out_of_service", "suppressed" or "shelved",
// the first of these that applies.
func (s State) Word() string {
	switch {
	case s.Service != nil:
		return "out_of_service"
	case s.Suppression != nil:
		return "suppressed"
	case s.Shelf != nil:
		return "shelved"
	}
	return s.Beneath()
}

// Beneath returns the state that the masks hide, in a word as Word does.
func (s State) Beneath() string {
	switch {
	case !s.Raised:
		return "normal"
	case s.Acked:
		return "acknowledged"
	case s.Returned:
		return "returned"
	}
	return "raised"
}
