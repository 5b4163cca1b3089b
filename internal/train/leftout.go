package train

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// cutWindows are windows that were cut already, in the order of machine and time.
type cutWindows interface {
	add(o *observed) error // before sort
	sort() error           // brings them in order
	count() int
	each(visit func(i int, o *observed) error) error // o is lent
	drop(which marks)
	lacking(tools map[tool]int) // of which so many windows from the beginning were not read
}

// inMemory are windows in memory.
type inMemory []observed

func (os *inMemory) add(o *observed) error {
	*os = append(*os, *o)
	return nil
}

func (os *inMemory) sort() error {
	slices.SortFunc(*os, func(a, b observed) int {
		return cmp.Or(cmp.Compare(a.machine, b.machine), a.Start.Compare(b.Start), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.seq, b.seq))
	})
	return nil
}

func (os *inMemory) count() int { return len(*os) }

func (os *inMemory) each(visit func(i int, o *observed) error) error {
	for i := range *os {
		if err := visit(i, &(*os)[i]); err != nil {
			return err
		}
	}
	return nil
}

func (os *inMemory) drop(which marks) {
	kept := make([]observed, 0, len(*os))
	for i, o := range *os {
		if which.of[i] == 0 {
			kept = append(kept, o)
		}
	}
	*os = kept
}

func (os *inMemory) lacking(tools map[tool]int) {
	for i := range *os {
		o := &(*os)[i]
		o.cutOff = tools[tool{o.machine, o.Tool}] > 0
	}
}

// marks says which windows are to be left out, and for each the name of its tool or machine.
type marks struct {
	of    []uint16 // by window: 0 it stays, or a place in names, from 1
	names []string
	index map[string]uint16
}

func newMarks(windows int) marks {
	return marks{of: make([]uint16, windows), index: make(map[string]uint16)}
}

// set marks a window that is not marked. Beyond so many names, which come from spans of time that are all different, the last one counts.
func (k *marks) set(i int, name string) {
	if k.of[i] != 0 {
		return
	}
	at, known := k.index[name]
	if !known {
		if len(k.names) < math.MaxUint16 {
			k.names = append(k.names, name)
		}
		at = uint16(len(k.names))
		k.index[name] = at
	}
	k.of[i] = at
}

// leaveOut drops windows of an input that are cut already, and that must not be learnt from, and notes in the input how many these
// are, and why. If nothing is learnt it leaves tools in whose beginning is missing.
func (in *Input) leaveOut(ws cutWindows, m *model.Model, learns bool) error {
	in.LeftOut = nil
	twice, err := sentTwice(ws, learns)
	if err != nil {
		return err
	}
	in.leave(ws, "sent twice", twice, "these tools sent windows twice, under two epochs, as after a recording was played again with a new spool: %s: each counts once")
	odd, err := ofAnotherHop(ws, m.Window)
	if err != nil {
		return err
	}
	in.leave(ws, "of another hop", odd, fmt.Sprintf("windows do not begin %v after each other: %%s: set window.hop to %[1]v in the ingest.yaml of these machines, or learn from them alone with their hop under `window` in the training configuration", m.Window.Step()))
	if len(in.CutOff) == 0 {
		return nil
	}
	missing := make(map[tool]int)
	for _, c := range in.CutOff {
		missing[tool{c.Machine, c.Tool}] = c.Missing
	}
	ws.lacking(missing)
	cut := newMarks(ws.count())
	if err := ws.each(func(i int, o *observed) error {
		if n := missing[tool{o.machine, o.Tool}]; n > 0 {
			cut.set(i, fmt.Sprintf("%s/%s (up to %d missing)", o.machine, o.Tool, n))
		}
		return nil
	}); err != nil {
		return err
	}
	const remedy = "windows from the beginning of these tools were not read: %s: %s; read them with an earlier --since and with --from auto, or with earlier days of an archive, or leave these tools out"
	if learns && m.Reference.Mode == model.ReferenceOff {
		if len(cut.names) > 0 {
			in.LeftOut = append(in.LeftOut, card.LeftOut{Warning: fmt.Sprintf(remedy, firstTools(slices.Sorted(slices.Values(cut.names))), "before their first measurement their wear is not known")})
		}
		return nil
	}
	if !learns {
		ws = nil // they stay
	}
	in.leave(ws, "of tools without their beginning", cut, fmt.Sprintf(remedy, "%s", "a reference and the line of wear begin with a new tool, so their windows are left out"))
	return nil
}

// leave notes windows that are left out, whose tools or machines are named, and drops them from ws, if that is not nil.
func (in *Input) leave(ws cutWindows, because string, which marks, warning string) {
	n, named := 0, make(map[string]bool)
	for _, k := range which.of {
		if k > 0 {
			n++
			named[which.names[k-1]] = true
		}
	}
	if n == 0 {
		return
	}
	if ws != nil {
		ws.drop(which)
	}
	in.LeftOut = append(in.LeftOut, card.LeftOut{Windows: n, Because: because, Warning: fmt.Sprintf("%d windows: "+warning, n, firstTools(slices.Sorted(maps.Keys(named))))})
}

// sentTwice returns windows, with their tools, that a machine sent under another epoch too. Without features, only times tell.
func sentTwice(ws cutWindows, features bool) (marks, error) {
	out := newMarks(ws.count())
	var same []observed // earlier windows of the machine that begin at the same time
	err := ws.each(func(i int, o *observed) error {
		if len(same) > 0 && (same[0].machine != o.machine || !same[0].Start.Equal(o.Start)) {
			same = same[:0]
		}
		if (features || signal.HasClock(o.Start)) && slices.ContainsFunc(same, func(p observed) bool { return p.epoch != o.epoch && p.Tool == o.Tool && p.sum == o.sum }) {
			out.set(i, o.machine+"/"+o.Tool)
		}
		same = append(same, *o)
		return nil
	})
	return out, err
}

// ofAnotherHop returns windows, with their machines, that begin at another distance from their neighbours than windows of a spec do.
func ofAnotherHop(ws cutWindows, spec window.Spec) (marks, error) {
	type stream struct {
		machine string
		epoch   uint64
	}
	type place struct {
		i     int
		seq   uint64
		start time.Time
	}
	last := make(map[stream]place)
	fits, odd := make([]bool, ws.count()), newMarks(ws.count())
	err := ws.each(func(i int, o *observed) error {
		at := stream{o.machine, o.epoch}
		p, any := last[at]
		last[at] = place{i, o.seq, o.Start}
		if !any || p.seq+1 != o.seq {
			return nil
		}
		hop := o.Start.Sub(p.start).Round(time.Millisecond)
		switch same, other := spec.Follow(hop); {
		case same:
			fits[p.i], fits[i] = true, true
		case other:
			name := fmt.Sprintf("%s (every %v)", o.machine, hop)
			odd.set(p.i, name)
			odd.set(i, name)
		}
		return nil
	})
	for i, fit := range fits {
		if fit {
			odd.of[i] = 0
		}
	}
	return odd, err
}

// sumOf returns a sum of the features of a window, equal for equal ones.
func sumOf(features []float32) uint64 {
	sum := uint64(14695981039346656037) // FNV-1a
	for _, v := range features {
		sum = (sum ^ uint64(math.Float32bits(v))) * 1099511628211
	}
	return sum
}

// leftOut returns what was left out of all inputs.
func leftOut(inputs []Input) (all []card.LeftOut) {
	for i := range inputs {
		all = append(all, inputs[i].LeftOut...)
	}
	return all
}
