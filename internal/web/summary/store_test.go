package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

// A result counts in the minute of its window, once, and a late one in its own minute.
func TestFoldResults(t *testing.T) {
	s := open(t, t.TempDir())
	late := result("m", 3, event.Healthy)
	late.Late = true
	worn := result("m", 61, event.Faulty)
	worn.Wear, worn.Score = &event.Wear{WearUM: 120, WearLowUM: 110, WearHighUM: 131.5}, 0.75
	putResults(t, s, result("m", 1, event.Healthy), result("m", 2, event.NotCutting), worn, result("m", 62, event.Learning), late, worn, result("m", 2, event.NotCutting))
	h, err := s.History("m", t0, t0.Add(time.Hour), auto)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"machine":"m","from":"2026-11-02T12:00:00Z","to":"2026-11-02T13:00:00Z","step":60,"holes":0,"points":{"t":[1793620800,1793620860],"windows":[3,2],"cutting":[2,2],"healthy":[2,0],` +
		`"faulty":[0,1],"unknown":[0,0],"learning":[0,1],"not_cutting":[1,0],"sensor_fault":[0,0],"late":[1,0],"score_mean":[0.25,0.75],"score_max":[0.25,0.75],"threshold":[0.5,0.5],` +
		`"wear":[null,120],"wear_low":[null,110],"wear_high":[null,131.5]},"tools":[{"tool":"T1","from":"2026-11-02T12:00:01Z","to":"2026-11-02T12:01:03Z","cutting_seconds":3,"wear_um":120}],` +
		`"alarms":[],"advisories":[],"since":"2026-11-02T12:00:00Z","memory":false}`
	if string(text) != want {
		t.Errorf("history\n%s\nwant\n%s", text, want)
	}
	machines, err := s.Machines()
	if err != nil || len(machines) != 1 || machines[0].Strip != "hnfl" || machines[0].Last.Seq != 62 || machines[0].Name != "m" {
		t.Errorf("%+v, %v", machines, err)
	}
}

// A sensor without a clock, or with one that is far ahead, gets Kafka's time. A recording of
// another year keeps its own.
func TestClocks(t *testing.T) {
	for name, tc := range map[string]struct{ end, want time.Time }{
		"right":           {t0.Add(-time.Second), t0.Add(-time.Second)},
		"no clock":        {time.Time{}, t0},
		"years ahead":     {t0.AddDate(5, 0, 0), t0},
		"hours ahead":     {t0.Add(3 * time.Hour), t0.Add(3 * time.Hour)},
		"a recording":     {t0.AddDate(-9, 0, 0), t0.AddDate(-9, 0, 0)},
		"beyond any year": {time.Unix(1<<40, 0), t0},
	} {
		r := &event.Result{Start: tc.end.Add(-time.Second), End: tc.end}
		if start, end := spanOf(r, t0); !end.Equal(tc.want) || end.Sub(start) != time.Second {
			t.Errorf("%s: %v to %v, want %v", name, start, end, tc.want)
		}
	}
}

// History chooses a step for which there are rows, and never returns more than MaxPoints.
func TestSteps(t *testing.T) {
	day := 24 * time.Hour
	for _, tc := range []struct {
		ago, width, step, want time.Duration
	}{
		{time.Hour, time.Hour, auto, time.Minute},
		{day, day, auto, time.Minute},
		{2 * day, 2 * day, auto, 2 * time.Minute},
		{14 * day, 14 * day, auto, 15 * time.Minute},
		{20 * day, 20 * day, auto, time.Hour},
		{90 * day, 90 * day, auto, 2 * time.Hour},
		{400 * day, 400 * day, auto, 6 * time.Hour},
		{20 * day, time.Hour, auto, time.Hour}, // minutes are not kept so long
		{20 * day, time.Hour, time.Minute, time.Hour},
		{day, day, 90 * time.Second, 2 * time.Minute},
		{day, day, time.Second, time.Minute},
		{day, day, 90 * time.Minute, 2 * time.Hour},
		{14 * day, 14 * day, time.Minute, 11 * time.Minute},
		{90 * day, 90 * day, time.Hour, 2 * time.Hour},
		{400 * day, 400 * day, time.Minute, 5 * time.Hour},
	} {
		kept := t0.Add(-keepMinutes).Unix()
		from, to := t0.Add(-tc.ago), t0.Add(tc.width-tc.ago)
		got := stepOf(from, to, tc.step, kept)
		if got != int64(tc.want.Seconds()) {
			t.Errorf("%v ago, %v, step %v: %v, want %v", tc.ago, tc.width, tc.step, time.Duration(got)*time.Second, tc.want)
		}
		if n := (to.Unix()-floor(from.Unix(), got)+got-1)/got + 0; n > MaxPoints {
			t.Errorf("%v ago, %v, step %v: %d points", tc.ago, tc.width, tc.step, n)
		}
	}
	s := open(t, "")
	putResults(t, s, result("m", 1, event.Healthy))
	if _, err := s.History("m", t0, t0, auto); err == nil || !strings.Contains(err.Error(), "must end after it begins") {
		t.Errorf("an empty range: %v", err)
	}
	if _, err := s.History("other", t0, t0.Add(1), auto); !errors.Is(err, ErrNoMachine) {
		t.Errorf("another machine: %v", err)
	}
}

// A life ends when the tool is declared new. Its curve has at most maxCurve points, and its
// cutting time counts overlapping windows once.
func TestTools(t *testing.T) {
	s := open(t, t.TempDir())
	var results []*event.Result
	for i := range uint64(3000) {
		r := result("m", i, event.Healthy)
		if r.Score = 0.1; i >= 1500 {
			r.Score = 0.5
		}
		r.End = r.End.Add(time.Second) // windows of two seconds, each second
		r.Wear = &event.Wear{WearUM: float64(i) / 10}
		if i >= 2000 {
			r.Tool = "T2"
		}
		results = append(results, r)
	}
	putResults(t, s, results...)
	declared := alertAt("m", 3010, event.ToolIsNew, "")
	declared.Tool, declared.Command = "T2", "c"
	putAlerts(t, s, declared)
	again := result("m", 3020, event.Healthy)
	again.Tool = "T2"
	putResults(t, s, again)
	tools, err := s.Tools("m", 0)
	if err != nil || len(tools) != 3 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	for i, want := range []struct {
		tool    string
		windows int
		cutting float64
		wear    float64
	}{{"T2", 1, 1, -1}, {"T2", 1000, 1001, 299.9}, {"T1", 2000, 2001, 199.9}} {
		l := tools[i]
		if wear := l.WearUM; l.Tool != want.tool || l.Windows != want.windows || l.CuttingSeconds != want.cutting || (wear == nil) != (want.wear < 0) || wear != nil && *wear != want.wear {
			t.Errorf("life %d: %s, %d windows, %v s, %v", i, l.Tool, l.Windows, l.CuttingSeconds, l.WearUM)
		}
	}
	c := tools[2].Curve
	n := len(c.Cutting)
	if n < maxCurve/2 || n > maxCurve || len(c.Wear) != n || len(c.Score) != n || !slices.IsSorted(c.Cutting) || !slices.IsSorted(c.Wear) || c.Cutting[n-1] != 2001 || math.Abs(c.Score[0]-0.1) > 1e-9 || c.Score[n-1] != 0.5 {
		t.Errorf("curve of %d points: %v", n, c)
	}
	if tools, err = s.Tools("m", 1); err != nil || len(tools) != 1 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}

// An alarm is there from raised to cleared, with everything that happened to it, and its
// neighbours.
func TestAlarms(t *testing.T) {
	s := open(t, t.TempDir())
	raised := alertAt("m", 100, event.Raised, "A-22222222")
	raised.Wear = &event.Wear{WearUM: 210}
	false1 := alertAt("m", 300, event.MarkedFalse, "A-22222222")
	false1.Alarm = "normal"
	putAlerts(t, s, alertAt("m", 1, event.Raised, "A-11111111"), alertAt("m", 50, event.Cleared, "A-11111111"),
		raised, alertAt("m", 110, event.Acknowledged, "A-22222222"), alertAt("m", 200, event.Cleared, "A-22222222"), false1, raised,
		alertAt("other", 250, event.Raised, "A-33333333"))
	e := event.Evidence{ID: "e", Machine: "m", Incident: "A-22222222", Windows: 7}
	put(t, s, "alerts", Message{At: t0.Add(120 * time.Second), Evidence: &e})

	all, err := s.Alarms(AlarmFilter{})
	if err != nil || names(all) != "A-33333333 A-22222222 A-11111111" {
		t.Fatalf("%s, %v", names(all), err)
	}
	a := all[1]
	if a.Machine != "m" || a.State != "normal" || !a.FalseAlarm || a.Of != 8 || a.WearUM == nil || *a.WearUM != 210 || !a.Raised.Equal(t0.Add(100*time.Second)) ||
		!a.Cleared.Equal(t0.Add(200*time.Second)) || len(a.Changes) != 4 {
		t.Errorf("%+v", a)
	}
	if all[0].State != "raised" || !all[0].Cleared.IsZero() {
		t.Errorf("%+v", all[0])
	}
	for want, f := range map[string]AlarmFilter{
		"A-33333333":            {Limit: 1},
		"A-22222222 A-11111111": {Machine: "m"},
		"A-22222222":            {From: t0.Add(60 * time.Second), To: t0.Add(250 * time.Second)},
		"A-11111111":            {Machine: "m", To: t0.Add(100 * time.Second)},
	} {
		if some, err := s.Alarms(f); err != nil || names(some) != want {
			t.Errorf("%+v: %s, %v", f, names(some), err)
		}
	}
	d, err := s.Alarm("A-22222222")
	if err != nil || d.Machine != "m" || len(d.Alerts) != 4 || d.Alerts[1].State != event.Acknowledged || len(d.Evidence) != 1 || d.Evidence[0].Windows != 7 || d.Previous != "A-11111111" || d.Next != "" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := s.Alarm("A-44444444"); !errors.Is(err, ErrNoAlarm) {
		t.Errorf("an alarm that never was: %v", err)
	}
	h, err := s.History("m", t0.Add(70*time.Second), t0.Add(400*time.Second), auto) // the step begins in the second minute
	if err != nil || names(h.Alarms) != "A-22222222" {
		t.Errorf("%s, %v", names(h.Alarms), err)
	}
}

func names(alarms []Alarm) string {
	var all []string
	for _, a := range alarms {
		all = append(all, a.Incident)
	}
	return strings.Join(all, " ")
}

// An advisory is open from raised to cleared.
func TestAdvisories(t *testing.T) {
	s := open(t, t.TempDir())
	advise := func(second int, subject string, state event.AlertState) {
		at := t0.Add(time.Duration(second) * time.Second)
		put(t, s, "alerts", Message{At: at, Advisory: &event.Advisory{
			ID: fmt.Sprint(second), Machine: "m", Kind: event.SensorAdvisory, Subject: subject, State: state, Since: at, At: at,
		}})
	}
	advise(1, "gone", event.Cleared) // its beginning is not known
	advise(10, "ch1", event.Raised)
	advise(20, "ch2", event.Raised)
	advise(700, "ch1", event.Cleared)
	h, err := s.History("m", t0.Add(5*time.Minute), t0.Add(time.Hour), auto)
	if err != nil || len(h.Advisories) != 2 || h.Advisories[0].Subject != "ch1" || !h.Advisories[0].To.Equal(t0.Add(700*time.Second)) || !h.Advisories[1].To.IsZero() {
		t.Errorf("%+v, %v", h.Advisories, err)
	}
	machines, err := s.Machines()
	if err != nil || len(machines) != 1 || len(machines[0].Advisories) != 1 || machines[0].Advisories[0].Subject != "ch2" {
		t.Errorf("%+v, %v", machines, err)
	}
}

// A renamed machine keeps its history under the new name, whichever alert is read first; a
// retired one is gone. Results that are read after such an alert belong to the name of their
// time.
func TestRenameAndRetire(t *testing.T) {
	renamed := alertAt("new", 101, event.Renamed, "")
	renamed.Was = "old"
	retired := alertAt("old", 100, event.Retired, "")
	for name, alerts := range map[string][]*event.Alert{"retired first": {retired, renamed}, "renamed first": {renamed, retired}, "read twice": {retired, renamed, retired, renamed}} {
		s := open(t, "")
		putAlerts(t, s, alertAt("old", 1, event.Raised, "A-22222222"))
		putResults(t, s, result("old", 1, event.Healthy), result("old", 2, event.Healthy))
		putAlerts(t, s, alerts...)
		early := result("new", 105, event.Healthy)
		early.Epoch = "00000000000000bb"
		putResults(t, s, result("old", 3, event.Healthy), early)
		if n := windows(t, s, "new"); n != 4 {
			t.Errorf("%s: %d windows under the new name, want 4", name, n)
		}
		if _, err := s.History("old", t0, t0.Add(time.Hour), auto); !errors.Is(err, ErrNoMachine) {
			t.Errorf("%s: the old name: %v", name, err)
		}
		if a, err := s.Alarms(AlarmFilter{Machine: "new"}); err != nil || names(a) != "A-22222222" || a[0].Machine != "new" {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		putResults(t, s, result("old", 200, event.Healthy)) // another machine under the old name
		if n := windows(t, s, "old"); n != 1 {
			t.Errorf("%s: %d windows of the machine that came back, want 1", name, n)
		}
	}
	s := open(t, t.TempDir())
	putAlerts(t, s, alertAt("old", 1, event.Raised, "A-22222222"))
	putResults(t, s, result("old", 1, event.Healthy))
	putAlerts(t, s, retired)
	s.now = func() time.Time { return t0.Add(2 * time.Hour) }
	if err := s.Tick(); err != nil {
		t.Fatal(err)
	}
	putResults(t, s, result("old", 2, event.Healthy)) // of the time before
	if all, err := s.Machines(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := s.Alarms(AlarmFilter{}); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if text := dump(t, s); strings.Contains(text, "minutes") || strings.Contains(text, "A-22222222") {
		t.Errorf("something is left:\n%s", text)
	}
}

// A machine that monitors have forgotten keeps its history when another one gets its name, under the name with the day.
// Knows tells which names have no machine and no past: their results wait for the alerts.
func TestRenameToANameInUse(t *testing.T) {
	s := open(t, t.TempDir())
	putResults(t, s, result("old", 1, event.Healthy), result("old", 2, event.Healthy))
	own := result("new", 105, event.Faulty)
	own.Epoch = "00000000000000bb"
	if s.Knows("new", t0) {
		t.Error("a new name is known")
	}
	putResults(t, s, own)
	renamed := alertAt("new", 201, event.Renamed, "")
	renamed.Was = "old"
	putAlerts(t, s, renamed)
	if n := windows(t, s, "new"); n != 2 {
		t.Errorf("%d windows, want 2", n)
	}
	before := "new" + t0.Add(201*time.Second).Format(" (until 2006-01-02 15:04:05)")
	if n := windows(t, s, before); n != 1 {
		t.Errorf("%d windows of %s, want 1", n, before)
	}
	for name, want := range map[string]bool{"new": true, "old": false, "other": false} {
		if got := s.Knows(name, t0.Add(time.Hour)); got != want {
			t.Errorf("%s: known %t, want %t", name, got, want)
		}
	}
	if !s.Knows("old", t0) {
		t.Error("what came under the old name before is not known to be of the new one")
	}
}

// So it does if the store has nothing of the machine that gets its name.
func TestRenameOfAnUnknownMachine(t *testing.T) {
	s := open(t, "")
	putResults(t, s, result("new", 1, event.Faulty))
	renamed := alertAt("new", 201, event.Renamed, "")
	renamed.Was = "old"
	putAlerts(t, s, renamed)
	own := result("new", 205, event.Healthy)
	own.Epoch = "00000000000000bb"
	putResults(t, s, own, result("old", 3, event.Healthy)) // that came late
	before := "new" + t0.Add(201*time.Second).Format(" (until 2006-01-02 15:04:05)")
	if now, was := windows(t, s, "new"), windows(t, s, before); now != 2 || was != 1 {
		t.Errorf("%d windows under the name and %d under the name with the day, want 2 and 1", now, was)
	}
}

// A topic that was made again, or that lost its end, is folded from its beginning.
func TestBegin(t *testing.T) {
	s := open(t, t.TempDir())
	one, two := [16]byte{1}, [16]byte{2}
	if _, ok := s.Begin("results", 0, one, false); ok {
		t.Error("an empty store knows an offset")
	}
	if err := s.Fold(Position{"results", 0, one}, 7, nil); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		partition int
		id        [16]byte
		lost, ok  bool
	}{
		"the same topic": {0, one, false, true}, "made again": {0, two, false, false}, "lost its end": {0, one, true, false},
		"id not known": {0, [16]byte{}, false, true}, "another partition": {1, one, false, false},
	} {
		if next, ok := s.Begin("results", tc.partition, tc.id, tc.lost); ok != tc.ok || ok && next != 7 {
			t.Errorf("%s: %d, %v", name, next, ok)
		}
	}
}

// What is too old goes: by the newest window of the machine, so that a recording stays.
func TestPrune(t *testing.T) {
	s := open(t, t.TempDir())
	day := 24 * time.Hour
	at := func(machine string, ago time.Duration, seq uint64) {
		r := result(machine, seq, event.Healthy)
		r.Start, r.End, r.Tool = t0.Add(-ago-time.Second), t0.Add(-ago), fmt.Sprint("T", seq)
		r.Hole = "H1"
		put(t, s, "results", Message{At: t0.Add(-min(ago, 300*day)), Result: r})
	}
	for i, ago := range []time.Duration{500 * day, 390 * day, 20 * day, 14 * day, 0} {
		at("live", ago, uint64(i))
	}
	at("recording", 3000*day, 1)
	at("recording", 2999*day, 2)
	old := alertAt("live", -401*24*3600, event.Raised, "A-OLD")
	putAlerts(t, s, old, alertAt("live", -399*24*3600, event.Raised, "A-NEW"))
	s.pruned = time.Time{}
	if err := s.Tick(); err != nil {
		t.Fatal(err)
	}
	for machine, want := range map[string][4]int{"live": {2, 4, 4, 4}, "recording": {2, 2, 2, 2}} {
		id := s.ids()[machine]
		var got [4]int
		_ = s.file.db.View(func(tx *bbolt.Tx) error {
			for i, name := range [][]byte{inMinutes, inHours, inHoles, inLives} {
				got[i] = bucketOf(tx, id, name).Stats().KeyN
			}
			return nil
		})
		if got != want {
			t.Errorf("%s: %v minutes, hours, holes and tools, want %v", machine, got, want)
		}
	}
	if a, err := s.Alarms(AlarmFilter{}); err != nil || names(a) != "A-NEW" {
		t.Errorf("%s, %v", names(a), err)
	}
	s.now = func() time.Time { return t0.Add(401 * day) }
	if err := s.Tick(); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Machines(); err != nil || len(all) != 0 {
		t.Errorf("machines of which nothing came for a year: %+v, %v", all, err)
	}
}

// A file that another program has open is refused. One that cannot be read is moved aside.
func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	s := open(t, dir)
	putResults(t, s, result("m", 1, event.Healthy))
	if _, _, err := Open(dir, group); !errors.Is(err, errInUse) || !strings.Contains(err.Error(), filepath.Join(dir, File)) || !strings.Contains(err.Error(), "a folder of its own in history.dir") {
		t.Errorf("a second program: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, "trial"); err == nil || !strings.Contains(err.Error(), "history of group tcm-monitor, and this monitor is of group trial") {
		t.Errorf("another group: %v", err)
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, File): 0o600} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
			}
		}
	}
	whole, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	later, _, err := Open(dir, group)
	if err != nil {
		t.Fatal(err)
	}
	if err := later.file.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(inMeta).Put(keyVersion, []byte("2")) }); err != nil {
		t.Fatal(err)
	}
	later.file.db.Close()
	newer, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string][]byte{
		"not a file of ours": []byte(strings.Repeat("no history ", 1000)), "cut short": whole[:3*4096], "of a later release": newer, "half of it zero": append(make([]byte, 8192), whole[8192:]...),
	} {
		if err := os.WriteFile(filepath.Join(dir, File), bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		s, notice, err := Open(dir, group)
		if err != nil || !strings.Contains(notice, "moved to "+filepath.Join(dir, File)+".damaged-") || !strings.Contains(notice, "filling the history again from the topics") {
			t.Errorf("%s: %q, %v", name, notice, err)
			continue
		}
		putResults(t, s, result("m", 1, event.Healthy))
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	aside, err := filepath.Glob(filepath.Join(dir, "*.damaged-*"))
	if err != nil || len(aside) != 1 {
		t.Errorf("%q are left, want the last one; %v", aside, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(filepath.Join(dir, "file"), group); err == nil || !strings.Contains(err.Error(), "folder for the history") {
		t.Errorf("a file in place of the folder: %v", err)
	}
}

// A page of the file that turns bad while it is open is an error, not the end of the program;
// then the history is filled again.
func TestDamageWhileOpen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var results []*event.Result
	for i := range uint64(20_000) {
		results = append(results, result("m", 10*i, event.Healthy))
	}
	putResults(t, s, results...)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.file.path)
	if err != nil {
		t.Fatal(err)
	}
	garbage := slices.Repeat([]byte{0xa5}, int(info.Size())-2*4096)
	f, err := os.OpenFile(s.file.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(garbage, 2*4096); err != nil {
		t.Fatal(err)
	}
	f.Close()
	_, err = s.History("m", t0, t0.Add(100*time.Hour), auto)
	if !errors.Is(err, ErrDamaged) {
		t.Fatalf("History: %v", err)
	}
	notice, err := s.SetAside(err)
	if err != nil || !strings.Contains(notice, ".damaged-") {
		t.Fatal(notice, err)
	}
	if _, ok := s.Begin("results", 0, [16]byte{}, false); ok {
		t.Error("the new file knows an offset")
	}
	putResults(t, s, results[:3]...)
	if n := windows(t, s, "m"); n != 3 {
		t.Errorf("%d windows, want 3", n)
	}
}

// Without a folder a store holds a day, in memory.
func TestInMemory(t *testing.T) {
	s := open(t, "")
	if !s.InMemory() || s.file.path != "" {
		t.Errorf("in memory: %v, %q", s.InMemory(), s.file.path)
	}
	old := result("m", 1, event.Healthy)
	old.Start, old.End = old.Start.Add(-25*time.Hour), old.End.Add(-25*time.Hour)
	putResults(t, s, old, result("m", 2, event.Healthy))
	s.pruned = time.Time{}
	if err := s.Tick(); err != nil {
		t.Fatal(err)
	}
	h, err := s.History("m", t0.Add(-48*time.Hour), t0.Add(time.Hour), auto)
	if err != nil || !h.Memory || sum(h.Points.Windows) != 1 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestKilled ends a program that folds, again and again, with SIGKILL. Every result counts once.
func TestKilled(t *testing.T) {
	const total = 60_000
	if dir := os.Getenv("FLANK_TEST_FOLD"); dir != "" {
		foldUntilKilled(t, dir, total)
		return
	}
	dir := t.TempDir()
	for kill := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
		cmd.Env = append(os.Environ(), "FLANK_TEST_FOLD="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if kill < 3 { // the last one may end
			progress := filepath.Join(dir, "progress")
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if text, err := os.ReadFile(progress); err == nil && len(text) > 4000*(kill+1) {
					break
				}
			}
			_ = cmd.Process.Kill()
			<-ended
			continue
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	h, err := s.History("m", t0, t0.Add(time.Hour*24), time.Hour)
	if err != nil || sum(h.Points.Windows) != total {
		t.Errorf("%d windows, want %d; %v", sum(h.Points.Windows), total, err)
	}
}

// foldUntilKilled folds the results of a machine from where the store left off, and writes the
// file at every hundredth. The file progress grows by a byte for each two results.
func foldUntilKilled(t *testing.T, dir string, total int64) {
	s, _, err := Open(dir, group)
	if err != nil {
		t.Fatal(err)
	}
	s.file.db.NoSync = true
	progress, err := os.OpenFile(filepath.Join(dir, "progress"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	next, _ := s.Begin("results", 0, [16]byte{}, false)
	for ; next < total; next++ {
		if err := s.Fold(Position{Topic: "results"}, next+1, []Message{message(result("m", uint64(next), event.Healthy), next)}); err != nil {
			t.Fatal(err)
		}
		if next%100 == 99 {
			fmt.Fprint(progress, strings.Repeat(".", 50))
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Any bytes are safe to read as a row or a life, and what is read is written the same.
func FuzzRecords(f *testing.F) {
	r := rowOf(result("m", 1, event.Faulty), t0, 7)
	f.Add(r.appendTo(nil))
	l := newLife("T1", 1)
	for i := range uint64(50) {
		one := result("m", i, event.Healthy)
		l.fold(one, one.Start, one.End)
	}
	f.Add(l.appendTo(nil))
	packed, err := pack([]byte(`{"at":1}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	h := hole{name: "H1", from: 1, to: 2, row: r}
	f.Add(h.appendTo(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r row
		if r.parse(b) == nil {
			if again := r.appendTo(nil); string(again) != string(b) {
				t.Errorf("row %x is written as %x", b, again)
			}
			r.add(&r)
		}
		var h hole
		if h.parse(b) == nil {
			if again := h.appendTo(nil); string(again) != string(b) {
				t.Errorf("hole %x is written as %x", b, again)
			}
			h.add(&h)
		}
		var l life
		if l.parse(b) == nil {
			if again := l.appendTo(nil); string(again) != string(b) {
				t.Errorf("life %x is written as %x", b, again)
			}
			l.shown()
			one := result("m", 1, event.Healthy)
			l.fold(one, one.Start, one.End)
		}
		_, _ = unpack(b)
	})
}

// A life ends when results name another one: someone has declared the tool new to its ingester. A
// command that says so, too, does not end it again.
func TestToolLives(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	seq := uint64(0)
	fold := func(name, life string, late bool) {
		r := result(name, seq, event.Healthy)
		r.ToolLife, r.Late, r.Model = life, late, "m"
		r.Ranges = []event.Range{{Channel: "a", Low: float32(seq), High: float32(seq)}}
		seq++
		putResults(t, s, r)
	}
	is := func(name string, want ...int) { // windows of the lives, the newest first
		t.Helper()
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		tools, err := s.Tools(name, 0)
		var got []int
		for _, l := range tools {
			got = append(got, l.Windows)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("lives of %v windows, %v; want %v", got, err, want)
		}
	}
	fold("m", "", false)
	fold("m", "", false)
	is("m", 2)
	fold("m", "a", false)
	s = flushed(t, s, dir)
	fold("m", "a", false)
	fold("m", "", false) // as of another ingester
	is("m", 3, 2)
	if u, err := s.Usual("m", "T1"); err != nil || fmt.Sprint(u.Channels) != "[{a 2 4}]" {
		t.Errorf("usual: %v, %v", u, err)
	}
	s = flushed(t, s, dir)
	byCommand := func() {
		t.Helper()
		a := alertAt("m", int(seq)+1, event.ToolIsNew, "")
		a.Command = "c"
		putAlerts(t, s, a)
	}
	byCommand()
	seq += 2
	fold("m", "a", false)
	fold("m", "a", false)
	is("m", 2, 3, 2)
	byCommand() // and the ingester
	seq += 2
	fold("m", "b", false)
	is("m", 1, 2, 3, 2)
	said := alertAt("m", int(seq)+1, event.ToolIsNew, "") // about the same window, and a little later in Kafka
	putAlerts(t, s, said)
	seq += 2
	fold("m", "b", false)
	is("m", 2, 2, 3, 2)
	old := message(result("m", 1, event.Healthy), 0) // that lay in another partition
	old.Result.ToolLife, old.Result.Epoch = "a", "00000000000000bb"
	put(t, s, "results", old)
	is("m", 3, 2, 3, 2)

	s = flushed(t, s, dir)
	err := s.file.db.Update(func(tx *bbolt.Tx) error { // as an older release has kept it
		id := s.ids()["m"]
		return tx.Bucket(inMachines).Bucket(idKey(id)).DeleteBucket(inCalled)
	})
	if err != nil {
		t.Fatal(err)
	}
	fold("m", "", false)
	fold("m", "c", false)
	is("m", 5, 2, 3, 2)
	fold("m", "d", false)
	is("m", 1, 5, 2, 3, 2)

	renamed := alertAt("other", int(seq)+1, event.Renamed, "")
	renamed.Was = "m"
	seq += 2
	putAlerts(t, s, renamed)
	fold("other", "", true)
	seq += 2
	fold("other", "d", false)
	s = flushed(t, s, dir)
	fold("other", "d", false)
	is("other", 4, 5, 2, 3, 2)
}

// flushed writes what waits, and opens the file again.
func flushed(t *testing.T, s *Store, dir string) *Store {
	t.Helper()
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	return s.crash(t, dir)
}
