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

// ErrRefused is returned for what cannot be done to an alarm in its state.
var ErrRefused = errors.New("refused")

// check reports a mask that nobody could answer for.
func (m Mask) check() error {
	switch {
	case m.By == "":
		return fmt.Errorf("%w: say who it is", ErrRefused)
	case m.Reason == "":
		return fmt.Errorf("%w: give a reason", ErrRefused)
	}
	return nil
}

// Shelve keeps the alarm from calling from now, which is m.Since, until m.Until,
// or until the tool is changed. It replaces a shelf that is there. It reports a
// mask without a name, a reason or an end, and one that is longer than MaxShelf.
func (a *Alarm) Shelve(m Mask) ([]Change, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	switch length := m.Until.Sub(m.Since); {
	case length <= 0:
		return nil, fmt.Errorf("%w: the time to shelve for is over", ErrRefused)
	case length > a.settings.MaxShelf:
		return nil, fmt.Errorf("%w: shelve for at most %v (alarm.max_shelf), not %v", ErrRefused, a.settings.MaxShelf, length.Round(time.Second))
	}
	a.state.Shelf = &m
	return []Change{Shelved}, nil
}

// Unshelve ends a shelf before its time.
func (a *Alarm) Unshelve() ([]Change, error) { return a.unmask(&a.state.Shelf, Unshelved) }

// Expire ends a shelf whose time is over.
func (a *Alarm) Expire(now time.Time) []Change {
	if m := a.state.Shelf; m == nil || now.Before(m.Until) {
		return nil
	}
	told, _ := a.Unshelve()
	return told
}

// Suppress keeps the alarm from calling until Unsuppress: by design of the
// plant, which knows that it means nothing now.
func (a *Alarm) Suppress(m Mask) ([]Change, error) {
	return a.mask(&a.state.Suppression, m, Suppressed)
}

// Unsuppress ends a suppression.
func (a *Alarm) Unsuppress() ([]Change, error) { return a.unmask(&a.state.Suppression, Unsuppressed) }

// Remove takes the alarm out of service, for maintenance, until PutBack.
func (a *Alarm) Remove(m Mask) ([]Change, error) { return a.mask(&a.state.Service, m, OutOfService) }

// PutBack puts the alarm into service again.
func (a *Alarm) PutBack() ([]Change, error) { return a.unmask(&a.state.Service, InService) }

func (a *Alarm) mask(at **Mask, m Mask, c Change) ([]Change, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if *at != nil {
		return nil, fmt.Errorf("%w: it is so already, by %s: %s", ErrRefused, (*at).By, (*at).Reason)
	}
	m.Until = time.Time{}
	*at = &m
	return []Change{c}, nil
}

// unmask takes a mask off, and tells of the alarm below it if nobody was told.
func (a *Alarm) unmask(at **Mask, c Change) ([]Change, error) {
	if *at == nil {
		return nil, fmt.Errorf("%w: it is not so", ErrRefused)
	}
	*at = nil
	told := []Change{c}
	if s := &a.state; s.Silent && !s.Acked && !a.Masked() {
		s.Silent = false
		told = append(told, Raised)
		if s.Returned {
			told = append(told, Returned)
		}
	}
	return told, nil
}
