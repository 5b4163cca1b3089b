package compare

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"pgregory.net/rapid"
)

// replays is how a model judges in a replay under the default settings.
func replays(m *model.Model) func(string) *monitor.Replayed { return monitor.Replays(m, alarm.Default) }

// published returns the results and alerts that a monitor publishes of windows.
func published(m *model.Model, ws []*window.Window) (lines []string) {
	for _, e := range outputs("replay", machine.Everything(m), ws) {
		if r, ok := e.(machine.Result); ok {
			lines = append(lines, string(event.JSON(r.Result)))
		} else if a, ok := e.(machine.Alert); ok {
			lines = append(lines, string(event.JSON(a.Alert)))
		}
	}
	return lines
}

// outputs returns what a monitor of a group publishes of windows.
func outputs(group string, fleet machine.Fleet, ws []*window.Window) (out []machine.Output) {
	o := machine.NewOwner(&machine.Settings{Group: group, Alarm: alarm.Default}, fleet, 0)
	o.Start()
	o.On(machine.Fenced{At: machine.Position{Windows: -1, Features: -1, Commands: -1}}, time.Time{})
	var take func([]machine.Action)
	take = func(actions []machine.Action) {
		for _, a := range actions {
			if b, ok := a.(*machine.Batch); ok {
				out = append(out, b.Events...)
				take(o.On(machine.Published{}, time.Time{}))
			}
		}
	}
	take(o.On(machine.Loaded{}, time.Time{}))
	for i, w := range ws {
		take(o.On(machine.Read{Log: machine.WindowLog, Inputs: []machine.Input{{Offset: int64(i), At: w.End(), Open: func(into *window.Features) error {
			*into = *machinetest.Features(nil, w)
			return nil
		}}}}, w.End()))
	}
	return out
}

// shuffled draws windows of a machine as they may come: with tools, repeats and some too late.
func shuffled(t *rapid.T) (ws []*window.Window) {
	seq := uint64(rapid.IntRange(0, 3).Draw(t, "first"))
	for range rapid.IntRange(1, 4).Draw(t, "tools") {
		tool := rapid.SampledFrom([]string{"T1", "T2", ""}).Draw(t, "tool")
		wornFrom := rapid.IntRange(0, 40).Draw(t, "worn")
		for i := range rapid.IntRange(1, 40).Draw(t, "windows") {
			ws = append(ws, machinetest.At(seq, tool, i >= wornFrom))
			seq++
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "disorder") {
		i, j := rapid.IntRange(0, len(ws)-1).Draw(t, "i"), rapid.IntRange(0, len(ws)-1).Draw(t, "j")
		if rapid.Bool().Draw(t, "again") {
			ws = slices.Insert(ws, j, ws[i])
		} else {
			ws[i], ws[j] = ws[j], ws[i]
		}
	}
	return ws
}

// A replay says what a monitor of a group named replay publishes of the same windows, byte for
// byte, in whichever order they come.
func TestReplayIsWhatAMonitorPublished(t *testing.T) {
	one, three := machinetest.OneValue(t), machinetest.OfThree(t)
	rapid.Check(t, func(t *rapid.T) {
		ws := shuffled(t)
		r := NewReplay([2]*model.Model{one, three}, replays, nil)
		var got [2][]string
		for _, w := range ws {
			f := machinetest.Features(one, w)
			m := r.machines[w.Machine]
			if m == nil {
				m = r.meet(f)
			}
			for s, one := range m {
				result, alerts, _ := one.Judge(f, w.End())
				if result == nil {
					continue
				}
				got[s] = append(got[s], string(event.JSON(result)))
				for _, a := range alerts {
					got[s] = append(got[s], string(event.JSON(a)))
				}
			}
		}
		for s, m := range []*model.Model{one, three} {
			want := published(m, ws)
			if !slices.Equal(got[s], want) {
				t.Fatalf("%s: %d lines, want %d:\n%s\nwant\n%s", modelSide(s), len(got[s]), len(want), strings.Join(got[s], "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// A replay drops repeats, leaves out what a model cannot judge, and says at which wear alarms
// were raised.
func TestReplay(t *testing.T) {
	one := machinetest.OneValue(t)
	r := NewReplay([2]*model.Model{one, one}, replays, nil)
	for i := range uint64(100) {
		w := machinetest.At(i+5, "T1", i >= 50)
		r.Observe(machinetest.Features(one, w), w.End(), float64(i))
		r.Observe(machinetest.Features(one, w), w.End(), float64(i)) // again
	}
	other := foreign(t)
	r.Observe(other, other.End(), nan)
	if r.Judged != 100 || r.Repeats != 100 {
		t.Errorf("%d judged, %d repeats", r.Judged, r.Repeats)
	}
	text := r.Report([2]string{"a", "b"}).text()
	for _, want := range []string{
		"windows   100 that both judged, of 1 machine", "alarms    1 in both (at the same window in 1", "A 54 µm (1 alarm), B 54 µm (1 alarm)",
		"tool T1 was in the spindle when the replay began", "acme/lathe\n  left out: 1 windows: A cannot judge them: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// foreign returns features of another layout.
func foreign(t *testing.T) *window.Features {
	layout, err := signal.NewLayout("other", []signal.Channel{{Name: "power", Kind: signal.Feature, Unit: "W", Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	form, err := window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &window.Features{Form: form, Values: []float32{1}}
	f.Machine, f.Length, f.Quality = "acme/lathe", time.Second, make([]signal.Quality, 1)
	return f
}

// What a replay keeps does not grow with windows.
func TestReplayStaysFlat(t *testing.T) {
	one := machinetest.OneValue(t)
	size := func(n uint64) int {
		r := NewReplay([2]*model.Model{one, one}, replays, nil)
		for i := range n {
			w := machinetest.At(i, "T1", false)
			r.Observe(machinetest.Features(one, w), w.End(), nan)
		}
		bytes := 0
		for _, one := range r.machines[machinetest.Drill] {
			for _, record := range one.Records() {
				bytes += len(record.Value)
			}
		}
		text, err := r.Report([2]string{"a", "b"}).Format(JSON)
		if err != nil {
			t.Fatal(err)
		}
		return bytes + len(text)
	}
	if few, many := size(200), size(5000); many > few+200 {
		t.Errorf("%d bytes after 200 windows, %d after 5000", few, many)
	}
}

// A wear file says at which wear alarms were raised. Rows of recordings are left out.
func TestLabels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wear.csv")
	text := "machine,tool,recording,time,vb_max_um\n" +
		"acme/line1/drill,T1,,2026-11-02T02:00:00Z,0\nacme/line1/drill,T1,,2026-11-02T02:01:40Z,200\n,,run7,,310\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	labels, err := LoadLabels(file, func(w string) { warnings = append(warnings, w) })
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "wear.csv:4: rows that name a recording") {
		t.Errorf("%q", warnings)
	}
	one := machinetest.OneValue(t)
	r := NewReplay([2]*model.Model{one, one}, replays, labels)
	for i := range uint64(100) {
		w := machinetest.At(i, "T1", i >= 50)
		r.Observe(machinetest.Features(one, w), w.End(), nan)
	}
	all := New(nil)
	all.Merge(r.Comparison)
	// The window that raises begins with second 54: 54 % of the way to 200 µm.
	if rep := all.Report([2]string{"a", "b"}); rep.WearUM[sideA] == nil || math.Abs(*rep.WearUM[sideA]-108) > 1e-9 || rep.Worn != [2]int{1, 1} {
		t.Errorf("%s", rep.text())
	}
	if none, err := LoadLabels("", nil); none != nil || err != nil {
		t.Error(none, err)
	}
	if _, err := LoadLabels(file+"x", nil); err == nil {
		t.Error("no error for a file that is not there")
	}
}
