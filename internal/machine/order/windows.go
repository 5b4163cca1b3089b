package order

import "slices"

// Windows are the windows that moved a tool, by epoch; the epoch of the last one is the last.
type Windows []inEpoch

type inEpoch struct {
	Epoch string `json:"epoch"`
	Seqs  Seqs   `json:"seqs"`
}

// mostMoved is how many epochs are remembered of a tool: with more, no build finds the beginning of its life.
const mostMoved = 256

// mostVisits is how many intervals of windows are remembered of a tool and an epoch: one for each time that it was in the spindle. Of
// visits before these, builds also see the windows of the tool that came late.
const mostVisits = 16

func (w Windows) Clone() Windows {
	all := slices.Clone(w)
	for i := range all {
		all[i].Seqs = slices.Clone(all[i].Seqs)
	}
	return all
}

// With returns w with the last epoch as it is by now.
func (w Windows) With(last Windows) Windows {
	if len(last) == 0 {
		return w
	}
	return append(slices.DeleteFunc(w, func(e inEpoch) bool { return e.Epoch == last[0].Epoch }), last[0])
}

func (w Windows) Has(epoch string, seq uint64) bool {
	return slices.ContainsFunc(w, func(e inEpoch) bool { return e.Epoch == epoch && e.Seqs.Has(seq) })
}

// Add adds a window. It reports whether another epoch is the last one now.
func (w *Windows) Add(epoch string, seq uint64) (changed bool) {
	i := slices.IndexFunc(*w, func(e inEpoch) bool { return e.Epoch == epoch })
	if changed = i < 0 || i != len(*w)-1; changed {
		in := inEpoch{Epoch: epoch}
		if i >= 0 {
			in = (*w)[i]
			*w = slices.Delete(*w, i, i+1)
		}
		*w = append(*w, in)
		*w = slices.Delete(*w, 0, max(0, len(*w)-mostMoved))
	}
	last := &(*w)[len(*w)-1]
	if last.Seqs.Add(seq); len(last.Seqs) > mostVisits {
		last.Seqs.close(1)
	}
	return changed
}
