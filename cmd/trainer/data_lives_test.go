package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Epochs, numbers and windows before the bound tell of which tools the beginning is missing.
func TestToolsWithoutTheirBeginning(t *testing.T) {
	type part struct {
		tool      string
		epoch     uint64
		from, to  uint64 // numbers
		at        int    // seconds
		in        bool
		backwards bool // they come in the other order
	}
	for name, tc := range map[string]struct {
		parts []part
		want  string
	}{
		"from the first":                      {[]part{{"T1", 1, 0, 100, 0, true, false}, {"T2", 1, 100, 200, 100, true, true}}, ""},
		"after a tool before the bound":       {[]part{{"T1", 1, 40, 100, 0, false, false}, {"T2", 1, 100, 200, 100, true, false}}, ""},
		"it was in before the bound":          {[]part{{"T1", 1, 0, 60, 0, false, false}, {"T1", 1, 60, 100, 60, true, false}, {"T2", 1, 100, 200, 100, true, false}}, "T1 60"},
		"nothing is left from before":         {[]part{{"T1", 1, 60, 100, 60, true, false}, {"T2", 1, 100, 200, 100, true, false}}, "T1 60"},
		"a spool that was lost":               {[]part{{"T1", 1, 0, 60, 0, false, false}, {"T1", 2, 0, 40, 60, true, false}}, "T1 60"},
		"another epoch is new":                {[]part{{"T1", 9, 0, 60, 0, true, false}, {"T2", 2, 0, 40, 60, true, false}}, ""},
		"a few were lost at the change":       {[]part{{"T1", 1, 0, 95, 0, true, false}, {"T2", 1, 100, 200, 100, true, false}}, ""},
		"many were lost at the change":        {[]part{{"T1", 1, 0, 90, 0, true, false}, {"T2", 1, 100, 200, 100, true, false}}, "T2 10"},
		"windows without a tool were between": {[]part{{"T1", 1, 0, 90, 0, true, false}, {"", 1, 90, 100, 90, true, false}, {"T2", 1, 100, 200, 100, true, false}}, ""},
		"only before the bound":               {[]part{{"T1", 1, 50, 90, 0, false, false}, {"T2", 1, 90, 190, 90, true, false}}, ""},
		"without clocks":                      {[]part{{"T1", 1, 0, 90, 0, true, false}, {"T2", 1, 90, 190, 0, true, false}}, ""},
		"behind the other bound":              {[]part{{"T1", 1, 0, 90, 0, true, false}, {"T1", 1, 90, 190, 90, false, false}}, ""},
	} {
		r := &topicReader{streams: make(map[stream]*numbers)}
		for _, p := range tc.parts { // the bounds
			if p.in && r.from.IsZero() {
				r.from = time.Unix(int64(p.at), 0)
			}
			if p.in {
				r.to = time.Unix(int64(p.at)+int64(p.to-p.from), 0)
			}
		}
		for _, p := range tc.parts {
			for i := range p.to - p.from {
				if p.backwards {
					i = p.to - p.from - 1 - i
				}
				w := &window.Features{Window: window.Window{Context: signal.Context{Machine: "m", Tool: p.tool}, Epoch: p.epoch, Seq: p.from + i, Start: time.Unix(int64(p.at)+int64(i), 0)}}
				if r.number(w); r.wants(w.Start) != p.in {
					t.Fatalf("%s: %v is within %v and %v: %v", name, w.Start, r.from, r.to, !p.in)
				}
			}
		}
		var got []string
		for _, c := range r.cutOff() {
			got = append(got, fmt.Sprintf("%s %d", c.Tool, c.Missing))
		}
		if s := strings.Join(got, ", "); s != tc.want {
			t.Errorf("%s: %q, want %q", name, s, tc.want)
		}
	}
}

// A tool that was in before its machine was renamed did not begin under the new name.
func TestToolsOfRenamedMachines(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	type part struct {
		machine, tool string
		at, windows   int
	}
	for name, tc := range map[string]struct {
		parts   []part
		renamed []event.Alert
		want    string
	}{
		"no rename":           {[]part{{"old", "T1", 0, 5}, {"new", "T1", 10, 5}}, nil, ""},
		"with the tool in":    {[]part{{"old", "T1", 0, 5}, {"new", "T1", 10, 5}, {"new", "T2", 15, 5}}, []event.Alert{{Machine: "new", Was: "old", At: at(8)}}, "new/T1 5"},
		"twice":               {[]part{{"old", "T1", 0, 5}, {"mid", "T1", 10, 5}, {"new", "T1", 20, 5}}, []event.Alert{{Machine: "mid", Was: "old", At: at(8)}, {Machine: "new", Was: "mid", At: at(18)}}, "mid/T1 5 new/T1 10"},
		"the old name begins": {[]part{{"new", "T1", 10, 5}, {"old", "T1", 20, 5}}, []event.Alert{{Machine: "new", Was: "old", At: at(8)}}, ""},
		"declared new since":  {[]part{{"old", "T1", 0, 5}, {"new", "T1 (life a)", 10, 5}}, []event.Alert{{Machine: "new", Was: "old", At: at(8)}}, ""},
	} {
		var log strings.Builder
		r := &topicReader{streams: make(map[stream]*numbers), used: make(map[rename]int), log: zerolog.New(&log)}
		r.lives.Renamed = tc.renamed
		seq := make(map[string]uint64)
		for _, p := range tc.parts {
			for i := range p.windows {
				w := &window.Features{Window: window.Window{Context: signal.Context{Machine: p.machine, Tool: p.tool}, Epoch: 1, Seq: seq[p.machine], Start: at(p.at + i)}}
				r.number(w)
				seq[p.machine]++
			}
		}
		var got []string
		for _, c := range r.cutOff() {
			got = append(got, fmt.Sprintf("%s/%s %d", c.Machine, c.Tool, c.Missing))
		}
		if s := strings.Join(got, " "); s != tc.want || strings.Contains(log.String(), "was renamed") != (tc.want != "") {
			t.Errorf("%s: %q, want %q; the log says %s", name, s, tc.want, &log)
		}
	}
}
