package summary

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// Windows between cycles that name no tool are of the tool that is in, also after a restart, and do not count as its cutting time.
func TestWindowsBetweenCycles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var seq uint64
	fold := func(tool, life string, v event.Verdict, why string) {
		r := result("m", seq, v)
		r.Tool, r.ToolLife, r.Unknown = tool, life, why
		putResults(t, s, r)
		seq += 30
	}
	fold("", "", event.NotCutting, "") // nothing is in yet
	for range 3 {
		fold("T1", "a", event.Healthy, "")
		fold("", "", event.Unknown, event.NoTool)
		s = flushed(t, s, dir)
		fold("", "", event.NotCutting, "")
		fold("", "", event.SensorFault, "")
	}
	tools, err := s.Tools("m", 0)
	if err != nil || len(tools) != 2 || tools[0].Tool != "T1" || tools[0].Windows != 12 || tools[0].CuttingSeconds != 3 {
		t.Errorf("tools %+v, %v", tools, err)
	}
	h, err := s.History("m", t0, t0.Add(3600e9), auto)
	if err != nil || len(h.Tools) != 1 || h.Tools[0].Tool != "T1" || sum(h.Points.Windows) != 13 {
		t.Errorf("history %+v, %v", h.Tools, err)
	}
	if all, err := s.Machines(); err != nil || all[0].Last.Tool != "T1" || all[0].Last.ToolLife != "a" {
		t.Errorf("last result %+v, %v", all[0].Last, err)
	}
}

// A command that declares a tool new, and the first result of that tool, may come in one millisecond.
func TestNewToolInOneMillisecond(t *testing.T) {
	s := open(t, "")
	first := result("m", 1, event.Healthy)
	putResults(t, s, first)
	a := alertAt("m", 3, event.ToolIsNew, "")
	a.Command, a.ToolLife = "c", "c"
	putAlerts(t, s, a)
	for i := range 2 {
		m := message(result("m", uint64(2+i), event.Healthy), 0)
		m.Result.ToolLife = "c"
		if i == 0 {
			m.At = a.At
		}
		put(t, s, "results", m)
	}
	if tools, err := s.Tools("m", 0); err != nil || len(tools) != 2 || tools[0].Windows != 2 {
		t.Errorf("%+v, %v", tools, err)
	}
}

// An alert whose names are too long for keys of the file does not stop the history.
func TestLongIncident(t *testing.T) {
	s := open(t, "")
	for n := range 10 {
		a := alertAt("m", n, event.Raised, strings.Repeat("A", 32760+n))
		a.ID = "x"
		putAlerts(t, s, a)
		if err := s.Flush(); err != nil {
			t.Fatalf("%d: %v", 32760+n, err)
		}
	}
}

// An advisory that is open is in every later history, however many others came and went since. One that is raised again, as by a
// monitor that has lost its state, ends the one before.
func TestLongAdvisory(t *testing.T) {
	s := open(t, "")
	var id int64
	say := func(kind event.AdvisoryKind, state event.AlertState, since, at int) {
		id++
		a := &event.Advisory{ID: strings.Repeat("x", int(id)), Machine: "m", Kind: kind, State: state, Since: t0.Add(time.Duration(since) * time.Minute), At: t0.Add(time.Duration(at) * time.Minute)}
		put(t, s, "alerts", Message{At: a.At, Offset: id, Advisory: a})
	}
	say(event.DriftAdvisory, event.Raised, 0, 0)
	for i := range 100 {
		say(event.SensorAdvisory, event.Raised, i, i)
		say(event.SensorAdvisory, event.Cleared, i, i+1)
	}
	spans := func(want ...string) {
		t.Helper()
		h, err := s.History("m", t0.Add(3*time.Hour), t0.Add(4*time.Hour), auto)
		var got []string
		for _, a := range h.Advisories {
			got = append(got, fmt.Sprint(a.Kind, " ", a.From.Sub(t0), " ", a.To.IsZero()))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	spans("drift 0s true")
	say(event.DriftAdvisory, event.Raised, 120, 120)
	spans("drift 2h0m0s true")
	say(event.DriftAdvisory, event.Cleared, 120, 130)
	spans()
}
