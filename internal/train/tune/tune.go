// Package tune chooses when an alarm is raised: k, n and the threshold, by
// replaying labelled tools through pkg/alarm.
//
// Every window that was judged has a score and a label. The lives of tools are
// replayed one after the other, each from its first judged window, under many
// settings; a window is scored once. The alarm passes over windows that are
// out of distribution, as it does in the monitor. Someone acknowledges every alarm at once, so
// that the next one can be raised, and the tool stays in until its record ends.
//
//	turn            the first judged window of a tool that is faulty by its label,
//	                unknown or not; the end of the record of a tool whose faulty
//	                windows were not judged
//	false alarm     an alarm raised by a window that is healthy by its label
//	found           a tool for which an alarm is raised at its turn or later, by a
//	                window that is faulty by its label, or stood at the turn already
//	early           a tool found by an alarm that stood at its turn: that alarm was
//	                false when it was raised, and is counted as such too
//	missed          a tool that turned and was not found
//	delay           cutting time from the start of the turn to the end of the window
//	                that raised the alarm: a window at least; none of an early tool
//	cutting time    the time of judged windows, each for its step: time between them
//	                does not count
//	cutting hour    an hour of cutting time in which the tool is healthy by its
//	                label and the alarm counts the window: only then it can be false
//	transition      the alarm is raised or is over; three within a minute of cutting
//	                time are chattering, and settings with which it happens are not
//	                chosen
//
// The least delay within a [budget] of false alarms is best. What is chosen on some
// tools flatters on these, so a [Choice] also says what becomes of each tool under
// the settings that the others would have chosen.
package tune

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/pkg/alarm"
)

// Life is a tool from its first judged window to its last. A tool without any judged
// window has a life too, if it turned.
type Life struct {
	Tool    string
	Score   []float64 // by window, as model.Verdict has it
	Faulty  []bool    // by window and its label; as long as Score
	Unknown []bool    // by window: it is out of distribution, so the alarm does not count it; nil: it counts all

	// Unjudged is how many windows that are faulty by their label were not judged, and
	// Why says in words what became of them.
	Unjudged int
	Why      string
}

// turn returns the number of the first window that is faulty by its label, the number
// of windows if only windows that were not judged are faulty, or -1.
func (l Life) turn() int {
	if i := slices.Index(l.Faulty, true); i >= 0 || l.Unjudged == 0 {
		return i
	}
	return len(l.Score)
}

// unknown reports whether the alarm passes over a window.
func (l Life) unknown(w int) bool { return l.Unknown != nil && l.Unknown[w] }

// count returns the judged windows of the life, healthy and faulty by their labels.
func (l Life) count() (c count) {
	c.Tool, c.Unjudged, c.Why = l.Tool, l.Unjudged, l.Why
	for w, faulty := range l.Faulty {
		n, unknown := &c.Healthy, &c.UnknownHealthy
		if faulty {
			n, unknown = &c.Faulty, &c.UnknownFaulty
		}
		*n++
		if l.unknown(w) {
			*unknown++
		}
	}
	return c
}

// count says how many windows of a tool were judged, by their labels, and of how many of
// these are out of distribution.
type count struct {
	Tool                    string
	Healthy, UnknownHealthy int
	Faulty, UnknownFaulty   int
	Unjudged                int // faulty windows that were not judged, see Life
	Why                     string
}

// Windows returns how many windows were judged, and how many no alarm counts.
func (c count) Windows() (judged, unknown int) {
	return c.Healthy + c.Faulty, c.UnknownHealthy + c.UnknownFaulty
}

// Turns reports whether the tool turned faulty.
func (c count) Turns() bool { return c.Faulty+c.Unjudged > 0 }

// outcome is what became of one tool under some settings.
type outcome struct {
	falses int // false alarms
	turned bool
	found  bool
	early  bool
	after  int // windows from the turn to the end of the one that found it; 0 if early
	chat   bool
}

// replayer replays lives under one setting after the other.
type replayer struct {
	lives        []Life
	turns        []int
	length, step time.Duration
}

func newReplayer(lives []Life, length, step time.Duration) *replayer {
	r := &replayer{lives: lives, length: length, step: step}
	for _, l := range lives {
		if len(l.Faulty) != len(l.Score) || l.Unknown != nil && len(l.Unknown) != len(l.Score) {
			panic(fmt.Sprintf("tune: tool %s has %d scores, %d labels and %d verdicts", l.Tool, len(l.Score), len(l.Faulty), len(l.Unknown)))
		}
		r.turns = append(r.turns, l.turn())
	}
	return r
}

// replay returns what becomes of each life. The settings must pass Check.
func (r *replayer) replay(s alarm.Settings) []outcome {
	s, err := s.Complete()
	if err != nil {
		panic("tune: " + err.Error())
	}
	out := make([]outcome, len(r.lives))
	for i, l := range r.lives {
		o, turn := &out[i], r.turns[i]
		o.turned = turn >= 0
		var a alarm.State
		var at time.Time
		var before, last time.Time // transitions
		for w, score := range l.Score {
			if w == turn && a.Raised {
				o.found, o.early = true, true
			}
			if l.unknown(w) {
				at = at.Add(r.step)
				continue
			}
			end := at.Add(r.length)
			change := a.Observe(s, false, s.IsFaulty(score), at, end, end)
			at = at.Add(r.step)
			if change == alarm.None {
				continue
			}
			o.chat = o.chat || !before.IsZero() && end.Sub(before) < time.Minute
			before, last = last, end
			if change != alarm.Raised {
				continue
			}
			if _, err := a.Acknowledge(); err != nil {
				panic("tune: " + err.Error()) // it was raised
			}
			switch {
			case !l.Faulty[w]:
				o.falses++
			case !o.found:
				o.found, o.after = true, w-turn+1
			}
		}
		if turn == len(l.Score) && a.Raised {
			o.found, o.early = true, true
		}
	}
	return out
}

// replayAll replays under all settings, several at a time.
func (r *replayer) replayAll(ctx context.Context, settings []alarm.Settings, workers int, progress func(done, total int)) ([][]outcome, error) {
	all := make([][]outcome, len(settings))
	var mu sync.Mutex
	done := 0
	var work errgroup.Group
	work.SetLimit(cmp.Or(workers, runtime.GOMAXPROCS(0)))
	for i, s := range settings {
		work.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			all[i] = r.replay(s)
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, len(settings))
			return nil
		})
	}
	return all, work.Wait()
}
