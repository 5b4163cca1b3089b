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

// ErrRefused is returned for a command that the alarm's state does not allow.
var ErrRefused = errors.New("refused")

// check returns ErrRefused for a mask without a name or a reason.
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
// or until the tool is changed. It replaces an earlier shelf. It returns ErrRefused
// for a mask without a name, a reason or an end, or longer than MaxShelf.
func (a *Alarm) Shelve(m Mask) ([]Change, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	switch length := m.Until.Sub(m.Since); {
	case length <= 0:
		return nil, fmt.Errorf("%w: the end of the shelf must be later than now", ErrRefused)
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
	changes, _ := a.Unshelve()
	return changes
}

// Suppress keeps the alarm from calling until Unsuppress. The plant's own logic does
// this while the alarm means nothing, for example during warm-up.
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
		return nil, fmt.Errorf("%w: it was done already, by %s: %s", ErrRefused, (*at).By, (*at).Reason)
	}
	m.Until = time.Time{}
	*at = &m
	return []Change{c}, nil
}

// unmask takes a mask off. It announces the alarm below if that has not been done.
func (a *Alarm) unmask(at **Mask, c Change) ([]Change, error) {
	if *at == nil {
		return nil, fmt.Errorf("%w: the alarm is not masked in this way", ErrRefused)
	}
	*at = nil
	changes := []Change{c}
	if s := &a.state; s.Silent && !s.Acked && !a.Masked() {
		s.Silent = false
		changes = append(changes, Raised)
		if s.Returned {
			changes = append(changes, Returned)
		}
	}
	return changes, nil
}
