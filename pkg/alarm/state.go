package alarm

import (
	"errors"
	"fmt"
	"time"
)

// State is everything that the alarm of one tool remembers. It is plain data, so that it can be
// kept across restarts. The zero value belongs to a tool of which nothing is known.
type State struct {
	Recent  uint64        `json:"recent"`            // bit i: was the i-th last judged window faulty?
	Judged  int           `json:"judged"`            // windows that Recent holds, at most 64
	Unknown uint64        `json:"unknown,omitempty"` // bit i: was the verdict on the i-th last judged window unknown? The caller of Observe sets bit 0
	Raised  bool          `json:"raised,omitempty"`  // the alarm is not normal
	Since   time.Time     `json:"since,omitzero"`    // start of the first faulty window that led to it
	Onset   time.Time     `json:"onset,omitzero"`    // start of the first faulty window in Recent
	At      time.Time     `json:"at,omitzero"`       // end of the window that raised it
	Acked   bool          `json:"acked,omitempty"`   // acknowledged, and the condition has not ended
	Last    time.Time     `json:"last,omitzero"`     // end of the last judged window
	Held    time.Duration `json:"held,omitempty"`    // cutting time for which the next change has been due, in nanoseconds

	Returned  bool      `json:"returned,omitempty"`  // raised, and its condition has ended
	Announced bool      `json:"announced,omitempty"` // Raised was announced, and Cleared was not
	Called    time.Time `json:"called,omitzero"`     // when Raised or Reactivated of this alarm was announced last, by Kafka's clock

	Masks
}

// errState is returned by Check for a state that no alarm can have.
var errState = errors.New("alarm: impossible state")

// Check reports a state that no alarm can have.
func (s *State) Check() error {
	switch {
	case outside(s.Judged, 0, 64) || (s.Recent|s.Unknown)>>s.Judged != 0:
		return fmt.Errorf("%w: %d windows judged, recent %b, unknown %b", errState, s.Judged, s.Recent, s.Unknown)
	case s.Held < 0:
		return fmt.Errorf("%w: held for %v", errState, s.Held)
	case s.Returned && s.Acked, !s.Raised && (s.Returned || s.Announced || s.Acked):
		return fmt.Errorf("%w: raised %t, acknowledged %t, returned %t, announced %t", errState, s.Raised, s.Acked, s.Returned, s.Announced)
	case !s.Shelf.ends():
		return fmt.Errorf("%w: shelved for ever", errState)
	}
	return nil
}

// Word returns the state in a word: "normal", "raised", "acknowledged" or
// "returned". For an alarm that is masked, by itself or with its machine, it is the mask's, see Masks.Word.
func (s *State) Word(machine Masks) string {
	if word := s.Masks.Word(machine); word != "" {
		return word
	}
	return s.Beneath()
}

// Beneath returns the state that the masks hide, in a word as Word does.
func (s *State) Beneath() string {
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
