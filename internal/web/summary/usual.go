package summary

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

// Usual is between which values the channels of a machine were in the windows that the reference
// of a tool is made of.
type Usual struct {
	Windows  int           `json:"windows"`  // of the reference, so far; 0: nothing is known
	Channels []event.Range `json:"channels"` // those that are known; the caller owns them
}

// keptUsual is a Usual as the store keeps it.
type keptUsual struct {
	Usual
	Model string `json:"model,omitempty"` // that makes the reference
}

// foldUsual adds the ranges of a window to what is usual for its tool.
func (x *file) foldUsual(m *machine, life uint32, r *event.Result) error {
	if len(r.Ranges) == 0 {
		return nil
	}
	u := m.usual[life]
	if u == nil {
		u = new(keptUsual)
		// As with rows, what cannot be read begins again.
		if err := x.get(m.id, inUsual, lifeKey(life), func(v []byte) error { _ = json.Unmarshal(v, u); return nil }); err != nil {
			return err
		}
		m.usual[life] = u
	}
	if u.Model != r.Model { // another model makes the reference again
		*u = keptUsual{Model: r.Model}
	}
	u.add(r.Ranges, 1)
	return nil
}

// add adds the ranges of so many windows.
func (u *Usual) add(ranges []event.Range, windows int) {
	u.Windows += windows
	for _, one := range ranges {
		i := slices.IndexFunc(u.Channels, func(r event.Range) bool { return r.Channel == one.Channel })
		if i < 0 {
			u.Channels = append(u.Channels, one)
			continue
		}
		u.Channels[i].Low, u.Channels[i].High = min(u.Channels[i].Low, one.Low), max(u.Channels[i].High, one.High)
	}
}

// Usual returns what is usual for a tool of a machine. It returns ErrNoMachine for a machine that
// the store does not hold.
func (s *Store) Usual(machine, tool string) (Usual, error) {
	id, ok := s.ids()[machine]
	if !ok {
		return Usual{}, ErrNoMachine
	}
	u := Usual{Channels: []event.Range{}}
	err := s.view(func(tx *bbolt.Tx) error {
		tools, usual := bucketOf(tx, id, inTools), bucketOf(tx, id, inUsual)
		if tools == nil || usual == nil {
			return nil
		}
		life := tools.Get(toolKey(tool))
		if life == nil || usual.Get(life) == nil {
			return nil
		}
		if err := json.Unmarshal(usual.Get(life), &u); err != nil {
			return fmt.Errorf("%w: what is usual for a tool: %w", ErrDamaged, err)
		}
		u.Channels = nonNil(u.Channels)
		return nil
	})
	return u, err
}
