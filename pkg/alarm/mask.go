package alarm

import (
	"errors"
	"fmt"
	"time"
)

// Mask says who keeps an alarm from calling, why, and until when.
type Mask struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // of a shelf only: the others last until they are taken off
}

// ends reports whether there is no mask, or one that ends.
func (m *Mask) ends() bool { return m == nil || !m.Until.IsZero() }

// Masks are the masks of a tool's alarm, or of all alarms of a machine, which cannot be shelved. The
// masks are never changed, only replaced.
type Masks struct {
	Shelf       *Mask `json:"shelf,omitempty"`
	Suppression *Mask `json:"suppression,omitempty"`
	Service     *Mask `json:"out_of_service,omitempty"`
}

// ErrRefused is returned for a command that the alarm's state does not allow.
var ErrRefused = errors.New("refused")

// On reports whether there is a mask.
func (m Masks) On() bool { return m.Shelf != nil || m.Suppression != nil || m.Service != nil }

// Word names the lowest mask that is on in either, as results do: "out_of_service", "suppressed" or
// "shelved"; empty if none is.
func (m Masks) Word(or Masks) string {
	switch {
	case m.Service != nil || or.Service != nil:
		return string(OutOfService)
	case m.Suppression != nil || or.Suppression != nil:
		return string(Suppressed)
	case m.Shelf != nil || or.Shelf != nil:
		return string(Shelved)
	}
	return ""
}

// Over returns the shelf if its time is over at now, and takes it off; else nil.
func (m *Masks) Over(now time.Time) *Mask {
	s := m.Shelf
	if s == nil || now.Before(s.Until) {
		return nil
	}
	m.Shelf = nil
	return s
}

// Put puts a mask on: c is Shelved, Suppressed or OutOfService. A shelf replaces an earlier one; it
// lasts from by.Since, which is now, until by.Until. The others last until Take. It returns ErrRefused for
// a mask without a name or a reason, for one that is on already, and for a shelf without an end, or
// longer than set.MaxShelf.
func (m *Masks) Put(set Settings, c Change, by Mask) error {
	switch {
	case by.By == "":
		return fmt.Errorf("%w: say who it is", ErrRefused)
	case by.Reason == "":
		return fmt.Errorf("%w: give a reason", ErrRefused)
	}
	at := m.at(c)
	if c == Shelved {
		switch length := by.Until.Sub(by.Since); {
		case length <= 0:
			return fmt.Errorf("%w: the end of the shelf must be later than now", ErrRefused)
		case length > set.MaxShelf:
			return fmt.Errorf("%w: shelve for at most %v (alarm.max_shelf), not %v", ErrRefused, set.MaxShelf, length.Round(time.Second))
		}
	} else if by.Until = (time.Time{}); *at != nil {
		return fmt.Errorf("%w: it was done already, by %s: %s", ErrRefused, (*at).By, (*at).Reason)
	}
	*at = &by
	return nil
}

// Take takes a mask off: c is Unshelved, Unsuppressed or InService. It returns ErrRefused if that
// mask is not on.
func (m *Masks) Take(c Change) error {
	at := m.at(c)
	if *at == nil {
		return fmt.Errorf("%w: the alarm is not masked in this way", ErrRefused)
	}
	*at = nil
	return nil
}

// at returns where the mask is that a change puts on or takes off.
func (m *Masks) at(c Change) **Mask {
	switch c {
	case Shelved, Unshelved:
		return &m.Shelf
	case Suppressed, Unsuppressed:
		return &m.Suppression
	case OutOfService, InService:
		return &m.Service
	}
	panic("alarm: " + string(c) + " is not a change of a mask")
}
