package main

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// lostShare is the share of a tool's windows that may be missing in front of it: a few that were lost while tools were changed
// move its start by less than wear can be measured.
const lostShare = 1. / 20

// numbers are the windows of a stream.
type numbers struct {
	epoch uint64
	began time.Time
	seqs  event.Seqs
	tools map[string]*first
}

// first is the least number of a tool's windows, how many of them are within the bounds, and how many before.
type first struct {
	seq             uint64
	windows, before int
}

// number remembers the number of a window that was not met before, also of one that is out of bounds, and its tool.
func (r *topicReader) number(w *window.Features) {
	at := stream{w.Machine, w.Epoch}
	n := r.streams[at]
	if n == nil {
		n = &numbers{epoch: w.Epoch, began: w.Start, tools: make(map[string]*first)}
		r.streams[stream{strings.Clone(w.Machine), w.Epoch}] = n
	}
	if w.Start.Before(n.began) {
		n.began = w.Start
	}
	n.seqs.Add(w.Seq, math.MaxInt)
	t := n.tools[w.Tool]
	if t == nil {
		t = &first{seq: w.Seq}
		n.tools[strings.Clone(w.Tool)] = t
	}
	t.seq = min(t.seq, w.Seq)
	switch {
	case r.wants(w.Start):
		t.windows++
	case w.Start.Before(r.from):
		t.before++
	}
	for i, a := range r.lives.Renamed {
		if a.Was == w.Machine && w.Tool != "" && w.Start.Before(a.At) {
			r.used[rename{i, strings.Clone(w.Tool)}]++
		}
	}
}

// missing returns how many numbers in front of one that is there are not.
func (n *numbers) missing(seq uint64) int {
	i := slices.IndexFunc(n.seqs, func(r [2]uint64) bool { return seq <= r[1] })
	switch {
	case n.seqs[i][0] < seq:
		return 0
	case i == 0:
		return int(seq)
	}
	return int(seq - n.seqs[i-1][1] - 1)
}

// cutOff returns the tools of which windows from their beginning were not read. The windows of a machine are in the order of its epochs and, in
// an epoch, of their numbers: a tool was new at its first window if the window of the number before was of another tool, or the epoch begins there.
func (r *topicReader) cutOff() (cut []model.CutTool) {
	lives, from := make(map[tool]*life), make(map[tool]*numbers)
	for s, n := range r.streams {
		for name, t := range n.tools {
			at := tool{s.machine, name}
			if lives[at] == nil {
				lives[at] = new(life)
			}
			l := lives[at]
			l.windows, l.before = l.windows+t.windows, l.before+t.before
			if of := from[at]; of == nil || cmp.Or(n.began.Compare(of.began), cmp.Compare(n.epoch, of.epoch)) < 0 {
				from[at], l.missing = n, n.missing(t.seq)
			}
		}
	}
	used := r.usedBefore(lives)
	for _, at := range slices.SortedFunc(maps.Keys(lives), func(a, b tool) int { return cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.name, b.name)) }) {
		l := lives[at]
		l.before += used[at]
		if at.name != "" && l.windows > 0 && (l.before > 0 || float64(l.missing) > lostShare*float64(l.windows)) {
			cut = append(cut, model.CutTool{Machine: at.machine, Tool: at.name, Missing: l.missing + l.before})
		}
	}
	return cut
}

// stream is an epoch of a machine, in which it numbers its windows.
type stream struct {
	machine string
	epoch   uint64
}

// life is how many windows of a tool there are, how many numbers are missing in front of the first one, and how many windows came before the bounds.
type life struct{ missing, before, windows int }

type tool struct{ machine, name string }

// rename is one of the renamed machines, and a tool that was in before.
type rename struct {
	at   int // in lives.Renamed
	tool string
}

// usedBefore returns how many windows of tools lie under an earlier name of their machine. A monitor goes on with such a tool; its wear and
// its reference did not begin under the new name.
func (r *topicReader) usedBefore(there map[tool]*life) map[tool]int {
	used := make(map[tool]int)
	for i, a := range r.lives.Renamed {
		var names []string
		for of, n := range r.used {
			if at := (tool{a.Machine, of.tool}); of.at == i {
				used[at] += n
				if there[at] != nil {
					names = append(names, of.tool)
				}
			}
		}
		for of, n := range used {
			if of.machine == a.Was {
				used[tool{a.Machine, of.name}] += n
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			r.log.Warn().Str("machine", a.Machine).Str("was", a.Was).Str("tools", card.Some(names)).Msg("the machine was renamed: windows of these tools under the new name are left out, as their wear began under the old one; those under the old name count")
		}
	}
	return used
}
