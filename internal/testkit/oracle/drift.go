package oracle

import (
	"maps"
	"slices"
)

// Drift is what a model knows of the references of the training tools, see docs/algorithm/drift.md.
type Drift struct {
	Tools         int       // of the training
	Center, Scale []float64 // their mean and deviation, by feature; one of no deviation does not count
	Raise, Clear  float64
}

// drifting is what a model has seen of a machine's tools, the oldest one first.
type drifting struct {
	tools []*Window // their first windows
	refs  [][]float32
	there bool
}

// is reports whether there is drift after the last tool, if there was before it or not.
func (d *Drift) is(refs [][]float32, before bool) bool {
	switch f := d.statistic(refs); {
	case len(refs) >= 3 && f >= d.Raise:
		return true
	case f <= d.Clear:
		return false
	}
	return before
}

// statistic returns F of drift.md.
func (d *Drift) statistic(refs [][]float32) float64 {
	var all, squares, sum, count float64
	weight := 1.0
	for range refs {
		all, squares = all+weight, squares+weight*weight
		weight *= 0.8
	}
	for j, scale := range d.Scale {
		if scale == 0 {
			continue
		}
		mean, weight := 0.0, 1.0
		for _, ref := range slices.Backward(refs) {
			if z := (float64(ref[j]) - d.Center[j]) / scale; z == z {
				mean += weight * min(max(z, -10), 10) / all
			}
			weight *= 0.8
		}
		sum, count = sum+mean*mean, count+1
	}
	return sum / (count * (squares/(all*all) + 1/float64(d.Tools)))
}

// drifts takes the reference of a tool that was new into account as soon as the model that judges it has learnt it. What other
// models have seen is remembered while they judge a tool. Only the champion says whether there is drift.
func (m *Machine) drifts(t *tool, w *Window, d *Deployment) {
	i := slices.IndexFunc(t.judgings, func(j *judging) bool {
		return j.model.ID == m.out.Result.Model && len(j.seen) > 0 && j.seen[len(j.seen)-1] == w
	})
	if i < 0 {
		return
	}
	j := t.judgings[i]
	by := j.model
	seen := m.drift[by.ID]
	if by.Drift != nil && j.settled() && len(j.learnt) > 0 && j.complete(t) && (seen == nil || !slices.Contains(seen.tools, t.windows[0])) {
		maps.DeleteFunc(m.drift, func(id string, _ *drifting) bool {
			return !slices.ContainsFunc(m.tools, func(t *tool) bool { return len(t.by) > 0 && t.by[len(t.by)-1].ID == id })
		})
		if seen = m.drift[by.ID]; seen == nil {
			seen = new(drifting)
			if m.drift == nil {
				m.drift = make(map[string]*drifting)
			}
			m.drift[by.ID] = seen
		}
		seen.tools, seen.refs = append(seen.tools, t.windows[0]), append(seen.refs, by.Center(j.learnt))
		seen.there = by.Drift.is(seen.refs, seen.there)
	}
	if by.ID == d.Champion.ID {
		m.when(Drifts, seen != nil && seen.there)
	}
}
