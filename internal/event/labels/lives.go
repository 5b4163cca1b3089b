package labels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// Lives says which tools people declared new to monitors, and which machines they renamed or retired. Windows do not say so.
type Lives struct {
	Renamed []event.Alert // by time
	lives   map[[2]string][]life
}

type life struct {
	from time.Time
	name string // empty: the machine was retired, and remembers no tools
}

// ReadLives reads them from alerts. Without that topic there are none.
func ReadLives(ctx context.Context, cfg bus.Config) (l Lives, err error) {
	var all []event.Alert
	err = bus.ReadTopic(ctx, cfg, bus.TopicAlerts, bus.FirstOffset, false, func(m bus.Message) error {
		var a event.Alert
		if string(m.Header("ce_type")) == event.AlertType && json.Unmarshal(m.Value, &a) == nil && (a.State == event.Renamed || a.State == event.Retired || a.State == event.ToolIsNew && a.ToolLife != "") {
			all = append(all, a)
		}
		return nil
	})
	if errors.Is(err, bus.ErrNoTopic) {
		err = nil
	}
	return livesOf(all), err
}

func livesOf(all []event.Alert) Lives {
	l, done := Lives{lives: make(map[[2]string][]life)}, make(map[[2]string]bool)
	slices.SortStableFunc(all, func(a, b event.Alert) int { return a.At.Compare(b.At) })
	for _, a := range all {
		if at := [2]string{a.Machine, a.Tool}; a.State == event.ToolIsNew {
			l.lives[at] = append(l.lives[at], life{a.At, a.ToolLife})
			continue
		}
		by := [2]string{a.Machine, a.Command}
		if done[by] {
			continue // another group says so too
		}
		if done[by] = true; a.State == event.Renamed {
			l.Renamed = append(l.Renamed, a)
		}
		for of, were := range l.lives {
			last := were[len(were)-1]
			switch {
			case a.State == event.Retired && of[0] == a.Machine:
				l.lives[of] = append(were, life{from: a.At})
			case a.State == event.Renamed && of[0] == a.Was:
				if last.name == "" && len(were) > 1 { // a rename retires the old name first
					last = were[len(were)-2]
				}
				at := [2]string{a.Machine, of[1]}
				l.lives[at] = append(l.lives[at], life{a.At, last.name})
			}
		}
	}
	return l
}

// Of returns the life of a window that began at a time: the one that its ingester names, or else the one that results have.
func (l Lives) Of(machine, tool, named string, at time.Time) string {
	for _, is := range slices.Backward(l.lives[[2]string{machine, tool}]) {
		if !at.Before(is.from) {
			return cmp.Or(named, is.name)
		}
	}
	return named
}
