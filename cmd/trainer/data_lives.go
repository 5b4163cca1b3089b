package main

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// located is what is known of a window on Kafka, also of one that is out of bounds.
type located struct {
	windowKey
	tool  string
	start time.Time
	in    bool // it is within the bounds
}

// lostShare is the share of a tool's windows that may be missing in front of it: a few that were lost while tools were changed
// move its start by less than wear can be measured.
const lostShare = 1. / 20

// note remembers where a window is. Equal names share their memory.
func (r *topicReader) note(w *window.Features, in bool) {
	name := func(s string) string {
		if _, known := r.names[s]; !known {
			r.names[s] = s
		}
		return r.names[s]
	}
	r.places = append(r.places, located{windowKey{name(w.Machine), w.Epoch, w.Seq}, name(w.Tool), w.Start, in})
}

// cutOff returns the tools of which windows from their beginning were not read. The windows of a machine are in the order of its epochs and, in
// an epoch, of their numbers: a tool was new at its first window if the window of the number before was of another tool, or the epoch begins there.
func (r *topicReader) cutOff() []model.CutTool {
	if len(r.files) > 0 {
		return r.cutOffArchived()
	}
	began := make(map[stream]time.Time)
	for _, p := range r.places {
		at := stream{p.machine, p.epoch}
		if t, known := began[at]; !known || p.start.Before(t) {
			began[at] = p.start
		}
	}
	slices.SortFunc(r.places, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.machine, b.machine), began[stream{a.machine, a.epoch}].Compare(began[stream{b.machine, b.epoch}]), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.seq, b.seq))
	})
	r.places = slices.CompactFunc(r.places, func(a, b located) bool { return a.windowKey == b.windowKey })
	used := r.usedBefore()
	lives := make(map[tool]*life)
	for i, p := range r.places {
		next := uint64(0) // number of the window behind the last one
		if i > 0 && r.places[i-1].machine == p.machine && r.places[i-1].epoch == p.epoch {
			next = r.places[i-1].seq + 1
		}
		at := tool{p.machine, p.tool}
		l := lives[at]
		if l == nil {
			l = &life{missing: int(p.seq - next)}
			lives[at] = l
		}
		if p.in {
			l.windows++
		} else if l.windows == 0 {
			l.before++
		}
	}
	return cutTools(lives, used)
}

// stream is an epoch of a machine, in which it numbers its windows.
type stream struct {
	machine string
	epoch   uint64
}

// life is how many windows of a tool there are, how many numbers are missing in front of the first one, and how many windows came before the bounds.
type life struct{ missing, before, windows int }

// cutTools returns the tools of which windows from their beginning were not read. Used are windows before them under another name.
func cutTools(lives map[tool]*life, used map[tool]int) (cut []model.CutTool) {
	for _, at := range slices.SortedFunc(maps.Keys(lives), func(a, b tool) int { return cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.name, b.name)) }) {
		l := lives[at]
		l.before += used[at]
		if at.name != "" && l.windows > 0 && (l.before > 0 || float64(l.missing) > lostShare*float64(l.windows)) {
			cut = append(cut, model.CutTool{Machine: at.machine, Tool: at.name, Missing: l.missing + l.before})
		}
	}
	return cut
}

type tool struct{ machine, name string }

// usedBefore returns how many windows of tools lie under an earlier name of their machine. A monitor goes on with such a tool; its wear and
// its reference did not begin under the new name.
func (r *topicReader) usedBefore() map[tool]int {
	used, there := make(map[tool]int), make(map[tool]bool)
	for _, p := range r.places {
		there[tool{p.machine, p.tool}] = true
	}
	for _, a := range r.lives.Renamed {
		var names []string
		for _, p := range r.places {
			if p.machine == a.Was && p.tool != "" && p.start.Before(a.At) {
				if used[tool{a.Machine, p.tool}]++; there[tool{a.Machine, p.tool}] && !slices.Contains(names, p.tool) {
					names = append(names, p.tool)
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
