package main

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/internal/source/track"
)

// Channels that a file records again later are sessions and not channels; channels of one name that it records at the same
// time, or at another rate, are channels of their own.
func TestOnceEach(t *testing.T) {
	at := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	c := func(group, name string, rate float64, start time.Time) inspect.Channel {
		one := inspect.Channel{Info: track.Info{Group: group, Name: name, Rate: rate, Start: start}}
		one.Count = int64(10 * rate)
		return one
	}
	none := time.Time{}
	for want, channels := range map[string][]inspect.Channel{
		"ax ay":      {c("", "ax", 100, at), c("", "ay", 100, at)},
		"F ax":       {c("1", "1/F", 100, none), c("1", "1/ax", 100, none), c("2", "2/F", 100, none), c("2", "2/ax", 100, none), c("3", "3/F", 100, none)},
		"F":          {c("hole A", "hole A/F", 100, at), c("hole B", "hole B/F", 100, at.Add(10*time.Second))},
		"left/F r/F": {c("left", "left/F", 100, at), c("r", "r/F", 100, at)},
		"1/F 2/F":    {c("1", "1/F", 100, none), c("2", "2/F", 10, none)},
	} {
		var got []string
		for _, one := range onceEach(channels) {
			got = append(got, one.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
