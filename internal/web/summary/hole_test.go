package summary

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// drilled is a result of a hole of a tool.
func drilled(seq uint64, tool, hole string) *event.Result {
	r := result("m", seq, event.Healthy)
	r.Tool, r.Hole = tool, hole
	return r
}

// shownHoles words the holes of machine m: tool, name, from, to in seconds after t0, windows.
func shownHoles(t *testing.T, s *Store) string {
	t.Helper()
	h, err := s.History("m", t0.Add(-time.Hour), t0.Add(48*time.Hour), ByHole)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, name := range h.Points.Hole {
		all = append(all, fmt.Sprintf("%s %d-%d %d", name, h.Points.T[i]-t0.Unix(), h.Points.End[i]-t0.Unix(), h.Points.Windows[i]))
	}
	return strings.Join(all, ", ")
}

func TestHoles(t *testing.T) {
	late := func(r *event.Result) *event.Result { r.Late = true; return r }
	var nine []*event.Result
	for i := range uint64(9) {
		nine = append(nine, drilled(10+i, "T1", fmt.Sprint("H", i)))
	}
	for name, tc := range map[string]struct {
		results []*event.Result
		want    string
	}{
		"one after the other":       {[]*event.Result{drilled(1, "T1", "H1"), drilled(2, "T1", "H1"), drilled(3, "T1", "H2")}, "H1 1-3 2, H2 3-4 1"},
		"the machine waits within":  {[]*event.Result{drilled(1, "T1", "H1"), drilled(2, "T1", ""), drilled(3, "T1", "H1")}, "H1 1-4 2"},
		"no names":                  {[]*event.Result{drilled(1, "T1", ""), drilled(2, "T1", "")}, ""},
		"names come again":          {[]*event.Result{drilled(1, "T1", "H1"), drilled(2, "T1", "H2"), drilled(3, "T1", "H1")}, "H1 1-2 1, H2 2-3 1, H1 3-4 1"},
		"another tool":              {[]*event.Result{drilled(1, "T1", "H1"), drilled(2, "T2", "H1")}, "H1 1-2 1, H1 2-3 1"},
		"late for the hole before":  {[]*event.Result{drilled(1, "T1", "H1"), drilled(5, "T1", "H2"), late(drilled(2, "T1", "H1"))}, "H1 1-3 2, H2 5-6 1"},
		"late, its hole's first":    {[]*event.Result{drilled(2, "T1", "H1"), late(drilled(1, "T1", "H1"))}, "H1 1-3 2"},
		"late, of a hole not known": {[]*event.Result{drilled(5, "T1", "H2"), late(drilled(1, "T1", "H1")), drilled(6, "T1", "H2")}, "H1 1-2 1, H2 5-7 2"},
		"too late":                  {append(nine, late(drilled(1, "T1", "H0"))), "H0 10-11 1, H1 11-12 1, H2 12-13 1, H3 13-14 1, H4 14-15 1, H5 15-16 1, H6 16-17 1, H7 17-18 1, H8 18-19 1"},
		"a name too long":           {[]*event.Result{drilled(1, "T1", strings.Repeat("H", 300))}, strings.Repeat("H", maxHoleName) + " 1-2 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			for _, r := range tc.results {
				putResults(t, s, r)
				if err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if got := shownHoles(t, s); got != tc.want {
				t.Errorf("holes %q, want %q", got, tc.want)
			}
		})
	}
}

// A name that is cut within a letter is the same name after a restart.
func TestHoleNameIsText(t *testing.T) {
	dir, name := t.TempDir(), "H"+strings.Repeat("ö", 60)
	s := open(t, dir)
	for seq := range uint64(3) {
		putResults(t, s, drilled(1+seq, "T1", name))
		want := fmt.Sprintf("H%s 1-%d %d", strings.Repeat("ö", 49), 2+seq, 1+seq)
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := shownHoles(t, s); got != want {
			t.Errorf("holes %q, want %q", got, want)
		}
		s = s.crash(t, dir)
	}
}

// A history by hole has the sums of each hole. One by time says how many holes there are.
func TestHistoryByHole(t *testing.T) {
	s := open(t, t.TempDir())
	worn := drilled(2, "T1", "H1")
	worn.Verdict, worn.Score, worn.Wear = event.Faulty, 0.75, &event.Wear{WearUM: 120, WearLowUM: 110, WearHighUM: 131.5}
	putResults(t, s, drilled(1, "T1", "H1"), worn, drilled(3, "T1", ""), drilled(70, "T2", "H2"))
	h, err := s.History("m", t0, t0.Add(time.Hour), ByHole)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"machine":"m","from":"2026-11-02T12:00:00Z","to":"2026-11-02T13:00:00Z","step":0,"each":1,"holes":2,"points":{"t":[1793620801,1793620870],"end":[1793620803,1793620871],"hole":["H1","H2"],` +
		`"windows":[2,1],"cutting":[2,1],"healthy":[1,1],"faulty":[1,0],"unknown":[0,0],"learning":[0,0],"not_cutting":[0,0],"sensor_fault":[0,0],"late":[0,0],` +
		`"score_mean":[0.5,0.25],"score_max":[0.75,0.25],"threshold":[0.5,0.5],"wear":[120,null],"wear_low":[110,null],"wear_high":[131.5,null]},` +
		`"tools":[{"tool":"T1","from":"2026-11-02T12:00:01Z","to":"2026-11-02T12:00:03Z","cutting_seconds":3,"wear_um":120},{"tool":"T2","from":"2026-11-02T12:01:10Z","to":"2026-11-02T12:01:11Z","cutting_seconds":1}],` +
		`"alarms":[],"advisories":[],"since":"2026-11-02T12:00:00Z","memory":false}`
	if string(text) != want {
		t.Errorf("history\n%s\nwant\n%s", text, want)
	}
	for to, want := range map[time.Duration]int{time.Hour: 2, time.Minute: 1, time.Second: 0} {
		if h, err := s.History("m", t0, t0.Add(to), auto); err != nil || h.Holes != want || h.Each != 0 || h.Points.Hole != nil {
			t.Errorf("of %v: %d holes, %d each, named %q, want %d holes; %v", to, h.Holes, h.Each, h.Points.Hole, want, err)
		}
	}
}

// More holes than points are summed up, and the oldest are removed when there are too many.
func TestManyHoles(t *testing.T) {
	s := open(t, t.TempDir())
	const extra = 100
	var msgs []Message
	for i := range uint64(maxHoles + extra) {
		msgs = append(msgs, message(drilled(i, "T1", fmt.Sprint("H", i)), int64(i)))
	}
	put(t, s, "results", msgs...)
	read := func() History {
		h, err := s.History("m", t0, t0.Add(24*time.Hour), ByHole)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := read(); h.Holes != maxHoles+extra || h.Each != 11 || len(h.Points.T) > MaxPoints || sum(h.Points.Windows) != maxHoles+extra || h.Points.Hole[1] != "H11" {
		t.Errorf("%d holes, %d each, %d points of %d windows, the second begins with %s", h.Holes, h.Each, len(h.Points.T), sum(h.Points.Windows), h.Points.Hole[1])
	}
	s.pruned = time.Time{}
	if err := s.Tick(); err != nil {
		t.Fatal(err)
	}
	if h := read(); h.Holes != maxHoles || h.Each != 10 || h.Points.Hole[0] != fmt.Sprint("H", extra) {
		t.Errorf("after pruning: %d holes, %d each, the first is %s", h.Holes, h.Each, h.Points.Hole[0])
	}
}

// A file from before there were holes is used. What it holds stays, and holes begin with the next
// window.
func TestFileWithoutHoles(t *testing.T) {
	packed, err := os.Open("testdata/without-holes.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if n, got := windows(t, s, "m"), shownHoles(t, s); n != 2 || got != "" {
		t.Errorf("%d windows, want 2; holes %q, want none", n, got)
	}
	again := drilled(2, "T1", "H1")
	putResults(t, s, again, drilled(3, "T1", "H1"), drilled(4, "T1", "H2"))
	s = s.crash(t, dir) // nothing was written but what queries wrote
	next, _ := s.Begin("results", 0, [16]byte{}, false)
	if next != 2 {
		t.Fatalf("folding goes on at offset %d, want 2", next)
	}
	putResults(t, s, again, drilled(3, "T1", "H1"), drilled(4, "T1", "H2"))
	if n, got := windows(t, s, "m"), shownHoles(t, s); n != 4 || got != "H1 3-4 1, H2 4-5 1" {
		t.Errorf("%d windows, want 4; holes %q, want H1 and H2 of a window each", n, got)
	}
	if a, err := s.Alarms(AlarmFilter{}); err != nil || names(a) != "A-22222222" {
		t.Errorf("%+v, %v", a, err)
	}
}

// Holes follow a machine that is renamed.
func TestHolesOfARenamedMachine(t *testing.T) {
	s := open(t, t.TempDir())
	old := drilled(1, "T1", "H1")
	old.Machine = "old"
	own := drilled(5, "T1", "H2")
	own.Epoch = "00000000000000bb"
	putResults(t, s, old)
	renamed := alertAt("m", 4, event.Renamed, "")
	renamed.Was = "old"
	putAlerts(t, s, renamed)
	putResults(t, s, own)
	next := drilled(6, "T1", "H2")
	next.Epoch = own.Epoch
	putResults(t, s, next)
	if got, want := shownHoles(t, s), "H1 1-2 1, H2 5-7 2"; got != want {
		t.Errorf("holes %q, want %q", got, want)
	}
}
