package shift

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// sequence is which windows of an epoch came: all from the first to the last, but
// for the holes.
type sequence struct {
	first, last uint64
	holes       []hole
}

// hole is windows that have not come, from one to another.
type hole struct {
	from, to uint64
	row      *toolRow // that counts them
}

// add notes a hole, unless there is nothing in it.
func (s *sequence) add(h hole) {
	if h.from <= h.to {
		s.holes = append(s.holes, h)
	}
}

// take notes that a window came, whose row is at hand. It reports false for one that
// came before.
func (s *sequence) take(seq uint64, row *toolRow) bool {
	switch {
	case seq > s.last:
		row.Missing += int(seq - s.last - 1)
		s.add(hole{s.last + 1, seq - 1, row})
		s.last = seq
		return true
	case seq < s.first:
		row.Missing += int(s.first - seq - 1)
		s.add(hole{seq + 1, s.first - 1, row})
		s.first = seq
		return true
	}
	i := slices.IndexFunc(s.holes, func(h hole) bool { return h.from <= seq && seq <= h.to })
	if i < 0 {
		return false
	}
	h := s.holes[i]
	h.row.Missing--
	s.holes = slices.Delete(s.holes, i, i+1)
	s.add(hole{h.from, seq - 1, h.row})
	s.add(hole{seq + 1, h.to, h.row})
	return true
}

// Result takes the next result of a machine. It keeps nothing of it.
func (r *Report) Result(e event.Result) {
	if !r.within(e.Start) {
		return
	}
	m := r.machine(e.Machine)
	row := r.row(m, e.Start)
	s := m.epochs[e.Epoch]
	if s == nil {
		m.epochs[e.Epoch] = &sequence{first: e.Seq, last: e.Seq}
	} else if !s.take(e.Seq, row) {
		return
	}
	row.Windows++
	row.Verdicts[e.Verdict]++
	if !slices.Contains(row.Models, e.Model) {
		row.Models = append(row.Models, e.Model)
	}
	cutting := r.cutting(m, &e)
	row.Cutting += cutting
	if e.Late || m.tool == nil && e.Between() {
		return
	}
	t := r.tool(m, &e)
	t.To = e.End
	if e.Unknown != event.NoTool {
		t.Cutting += cutting
	}
	if e.Wear != nil {
		um := e.WearUM
		t.WearUM = &um
	}
}

// tool returns the tool that is in by a result. Windows between cycles that name no tool change none.
func (r *Report) tool(m *machineShift, e *event.Result) *tool {
	if m.tool != nil && (e.Between() || m.tool.Tool == e.Tool && (e.ToolLife == "" || e.ToolLife == m.tool.life)) {
		return m.tool
	}
	whole := m.tool != nil
	if whole {
		m.tool.Changed = true
	}
	if whole && r.cfg.NewTool != nil {
		r.cfg.NewTool(e.Machine, e.Tool, e.ToolLife, e.Start)
	}
	m.tool = &tool{Tool: e.Tool, life: e.ToolLife, From: e.Start, Whole: whole}
	m.Tools = append(m.Tools, m.tool)
	return m.tool
}

// cutting returns the cutting time that a window adds.
func (r *Report) cutting(m *machineShift, e *event.Result) seconds {
	switch e.Verdict {
	case event.Healthy, event.Faulty, event.Unknown, event.Learning:
	default:
		return 0
	}
	from := e.Start
	if !e.Late {
		if m.cut.After(from) && m.cut.Before(e.End) {
			from = m.cut
		}
		m.cut = e.End
	}
	return seconds(max(e.End.Sub(from), 0).Seconds())
}

// span calls fn for each part of a time within the report that lies in one shift.
func (r *Report) span(m *machineShift, from, to time.Time, fn func(*toolRow, time.Duration)) {
	if from.Before(r.cfg.Since) {
		from = r.cfg.Since
	}
	if to.After(r.cfg.Until) {
		to = r.cfg.Until
	}
	for from.Before(to) {
		row := r.row(m, from)
		end := row.End
		if end.After(to) {
			end = to
		}
		fn(row, end.Sub(from))
		from = end
	}
}
