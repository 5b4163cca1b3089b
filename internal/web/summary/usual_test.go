package summary

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
)

// What is usual for a tool is from the least to the greatest of the windows of its reference. A
// tool that is put in again keeps it, one that is declared new begins again, and a restart in the
// middle loses nothing.
func TestUsual(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	seq := uint64(0)
	learns := func(tool string, ranges ...event.Range) {
		seq++
		r := result("m", seq, event.Learning)
		r.Tool, r.Ranges = tool, ranges
		putResults(t, s, r)
	}
	one := func(channel string, low, high float32) event.Range {
		return event.Range{Channel: channel, Low: low, High: high}
	}
	is := func(tool, want string) {
		t.Helper()
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		u, err := s.Usual("m", tool)
		if got := fmt.Sprint(u.Windows, u.Channels); err != nil || got != want {
			t.Errorf("usual for %s: %s, %v; want %s", tool, got, err, want)
		}
	}
	learns("T1", one("a", -1, 2), one("b", 5, 6))
	is("T1", "1 [{a -1 2} {b 5 6}]")
	s = s.crash(t, dir)
	learns("T1", one("a", -2, 1), one("c", 0, 0))
	is("T1", "2 [{a -2 2} {b 5 6} {c 0 0}]")
	learns("T2", one("a", 7, 8))
	seq++
	putResults(t, s, result("m", seq, event.Healthy)) // T1 is put in again
	is("T1", "2 [{a -2 2} {b 5 6} {c 0 0}]")
	is("T2", "1 [{a 7 8}]")
	is("T3", "0 []")
	declared := alertAt("m", int(seq)+10, event.ToolIsNew, "")
	declared.Command = "c"
	putAlerts(t, s, declared)
	seq += 20
	learns("T1", one("a", 3, 4))
	is("T1", "1 [{a 3 4}]")
	if _, err := s.Usual("none", "T1"); !errors.Is(err, ErrNoMachine) {
		t.Errorf("a machine that is not known: %v", err)
	}
	renamed := alertAt("other", int(seq)+10, event.Renamed, "")
	renamed.Was = "m"
	putAlerts(t, s, renamed)
	if u, err := s.Usual("other", "T2"); err != nil || fmt.Sprint(u.Channels) != "[{a 7 8}]" {
		t.Errorf("under the new name: %v, %v", u, err)
	}
}

// A model that makes the reference of a tool again, from later windows, begins again: it does not widen the
// range of the model before.
func TestUsualOfModel(t *testing.T) {
	s := open(t, t.TempDir())
	for seq, w := range []struct {
		model string
		high  float32
		want  string
	}{{"old", 2, "1 [{a 0 2}]"}, {"old", 3, "2 [{a 0 3}]"}, {"new", 1, "1 [{a 0 1}]"}, {"new", 2, "2 [{a 0 2}]"}} {
		r := result("m", uint64(seq), event.Learning)
		r.Model, r.Ranges = w.model, []event.Range{{Channel: "a", High: w.high}}
		putResults(t, s, r)
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if u, err := s.Usual("m", "T1"); err != nil || fmt.Sprint(u.Windows, u.Channels) != w.want {
			t.Errorf("window %d: %v, %v; want %s", seq, u, err, w.want)
		}
	}
}
