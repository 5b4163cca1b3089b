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

// leaveOut returns the windows of an input that are cut already, in the order of time, without those that must not be
// learnt from, and notes in the input how many these are, and why. If nothing is learnt it leaves tools in whose beginning is missing.
func (in *Input) leaveOut(os []observed, m *model.Model, learns bool) []observed {
	in.LeftOut = nil
	os = in.drop(os, "sent twice", sentTwice(os, learns), "these tools sent windows twice, under two epochs, as after a recording was played again with a new spool: %s: each counts once")
	os = in.drop(os, "of another hop", ofAnotherHop(os, m.Window), fmt.Sprintf("windows do not begin %v after each other: %%s: set window.hop to %[1]v in the ingest.yaml of these machines, or learn from them alone with their hop under `window` in the training configuration", m.Window.Step()))
	if len(in.CutOff) == 0 {
		return os
	}
	missing := make(map[tool]int)
	for _, c := range in.CutOff {
		missing[tool{c.Machine, c.Tool}] = c.Missing
	}
	names := make(map[string]bool)
	cut := make(map[int]string)
	for i := range os {
		o := &os[i]
		if n := missing[tool{o.machine, o.Tool}]; n > 0 {
			o.cutOff, cut[i] = true, fmt.Sprintf("%s/%s (up to %d missing)", o.machine, o.Tool, n)
			names[cut[i]] = true
		}
	}
	const remedy = "windows from the beginning of these tools were not read: %s: %s; read them with an earlier --since and with --from auto, or with earlier days of an archive, or leave these tools out"
	if !learns || m.Reference.Mode != model.ReferenceOff {
		kept := in.drop(os, "of tools without their beginning", cut, fmt.Sprintf(remedy, "%s", "a reference and the line of wear begin with a new tool, so their windows are left out"))
		if learns {
			return kept
		}
	} else if len(names) > 0 {
		in.LeftOut = append(in.LeftOut, card.LeftOut{Warning: fmt.Sprintf(remedy, firstTools(slices.Sorted(maps.Keys(names))), "before their first measurement their wear is not known")})
	}
	return os
}

// drop returns windows without some of them, by index, whose tools or machines are named.
func (in *Input) drop(os []observed, because string, which map[int]string, warning string) []observed {
	if len(which) == 0 {
		return os
	}
	names := make(map[string]bool)
	kept := make([]observed, 0, len(os)-len(which))
	for i := range os {
		if name, out := which[i]; out {
			names[name] = true
		} else {
			kept = append(kept, os[i])
		}
	}
	in.LeftOut = append(in.LeftOut, card.LeftOut{Windows: len(which), Because: because, Warning: fmt.Sprintf("%d windows: "+warning, len(which), firstTools(slices.Sorted(maps.Keys(names))))})
	return kept
}

// sentTwice returns windows, with their tools, that a machine sent under another epoch too. Without features, only times tell.
func sentTwice(os []observed, features bool) map[int]string {
	out := make(map[int]string)
	for i := range os {
		o := &os[i]
		for k := i - 1; k >= 0 && os[k].machine == o.machine && os[k].Start.Equal(o.Start); k-- {
			p := &os[k]
			if p.epoch != o.epoch && p.Tool == o.Tool && p.sum == o.sum && (features || signal.HasClock(o.Start)) {
				out[i] = o.machine + "/" + o.Tool
				break
			}
		}
	}
	return out
}

// ofAnotherHop returns windows, with their machines, that begin at another distance from their neighbours than windows of a spec do.
func ofAnotherHop(os []observed, spec window.Spec) map[int]string {
	type stream struct {
		machine string
		epoch   uint64
	}
	last := make(map[stream]int)
	fits, odd := make([]bool, len(os)), make(map[int]string)
	for i := range os {
		o := &os[i]
		at := stream{o.machine, o.epoch}
		k, any := last[at]
		last[at] = i
		if !any || os[k].seq+1 != o.seq {
			continue
		}
		hop := o.Start.Sub(os[k].Start).Round(time.Millisecond)
		switch same, other := spec.Follow(hop); {
		case same:
			fits[k], fits[i] = true, true
		case other:
			name := fmt.Sprintf("%s (every %v)", o.machine, hop)
			odd[k], odd[i] = cmp.Or(odd[k], name), name
		}
	}
	maps.DeleteFunc(odd, func(i int, _ string) bool { return fits[i] })
	return odd
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
