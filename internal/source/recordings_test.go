package source

import (
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/recorded"
	"github.com/flank-tcm/flank/pkg/signal"
)

func load(t *testing.T, path string) (*signal.Layout, signal.Recording) {
	t.Helper()
	l, rec, err := signal.LoadLayout(path)
	if err != nil {
		t.Fatal(err)
	}
	return l, rec
}

func TestExampleLayouts(t *testing.T) {
	turning, rec := load(t, "../../examples/turning/layout.yaml")
	if n := len(turning.Channels()); n != 152 || len(turning.Groups()) != 1 || turning.Groups()[0].Rate != 1 {
		t.Errorf("turning: %d channels, rates %v; want 152 at 1 Hz", n, turning.Groups())
	}
	for _, c := range turning.Channels() {
		if c.Kind != signal.Feature {
			t.Errorf("turning: %v is not a feature", c)
		}
	}
	if want := (signal.Recording{Tool: "tool", VBMax: "Vb"}); !reflect.DeepEqual(rec, want) {
		t.Errorf("turning: recording %+v, want %+v", rec, want)
	}

	milling, rec := load(t, "../../examples/milling/layout.yaml")
	if n := len(milling.Channels()); n != 44 || len(milling.Groups()) != 1 || milling.Groups()[0].Rate != 10 {
		t.Errorf("milling: %d channels, rates %v; want 44 at 10 Hz", n, milling.Groups())
	}
	units := map[string]string{
		"Position": "mm", "Velocity": "mm/s", "Acceleration": "mm/s²", "CurrentFeedback": "A",
		"OutputCurrent": "A", "Voltage": "V", "Power": "kW", "Inertia": "kg·m²",
	}
	for _, c := range milling.Channels() {
		var want string
		for suffix, unit := range units {
			if strings.HasSuffix(c.Name, suffix) {
				want = unit
			}
		}
		if want == "" || c.Unit != want {
			t.Errorf("milling: %v, want unit %q", c, want)
		}
	}
	if want := (signal.Recording{State: "tool_condition"}); !reflect.DeepEqual(rec, want) {
		t.Errorf("milling: recording %+v, want %+v", rec, want)
	}
}

// TestLayoutGrammar reads the example in schemas/layout.md, whose entries a
// reader copies.
func TestLayoutGrammar(t *testing.T) {
	text, err := os.ReadFile("../../schemas/layout.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("schemas/layout.md holds no YAML")
	}
	l, rec, err := signal.ReadLayout(strings.NewReader(example), "layout.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Channels()) != 3 || l.Channels()[2].Name != "torque" || rec.VBMax != "VB" {
		t.Errorf("the example reads as %v, %+v", l.Channels(), rec)
	}
	for _, kind := range []signal.Kind{
		signal.Vibration, signal.Force, signal.Torque, signal.Acoustic, signal.Current, signal.Voltage, signal.Power,
		signal.Position, signal.Velocity, signal.Acceleration, signal.Inertia, signal.Feature,
	} {
		if !strings.Contains(string(text), "`"+string(kind)+"`") {
			t.Errorf("schemas/layout.md does not name kind %s", kind)
		}
	}
}

func TestRecordedTurning(t *testing.T) {
	path := filepath.Join(recorded.Folder(t), "vicomtech-turning", "turning_wear_dev.csv")
	l, rec := load(t, "../../examples/turning/layout.yaml")
	c, err := openTable(path, l, rec, tableOptions{Machine: "lathe"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var tools []string
	faulty, session := 0, int64(-1)
	for {
		b, err := c.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Session != session {
			session = b.Session
			tools = append(tools, b.Tool)
			if b.First != 0 {
				t.Errorf("tool %s starts at %d", b.Tool, b.First)
			}
		}
		for _, tr := range b.Truth {
			if tr.VBMaxUM >= 300 {
				faulty++
			}
		}
	}
	if want := []string{"5", "9", "10", "13", "14", "15", "3", "4", "6"}; !slices.Equal(tools, want) {
		t.Errorf("tools %v, want %v", tools, want)
	}
	// Rows, empty cells and rows of VB ≥ 300 as the README of the data says.
	if s := c.Stats(); s.Rows != 1474 || s.Missing != 856 || len(s.Ignored) != 0 {
		t.Errorf("stats %+v, want 1474 rows, 856 missing, none ignored", s)
	}
	if faulty != 115 {
		t.Errorf("%d rows of VB ≥ 300, want 115", faulty)
	}
}

func TestRecordedMilling(t *testing.T) {
	dir := filepath.Join(recorded.Folder(t), "umich-cnc-mill")
	l, rec := load(t, "../../examples/milling/layout.yaml")
	f, err := os.Open(filepath.Join(dir, "runs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1+13 {
		t.Fatalf("%d runs, want 13", len(runs)-1)
	}
	for _, run := range runs[1:] { // run, file, feed rate, clamp pressure, tool_condition, rows
		c, err := openTable(filepath.Join(dir, run[1]), l, rec, tableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for next := int64(0); ; {
			b, err := c.Next(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.First != next || b.Session != 0 {
				t.Errorf("%s: block at %d of session %d, want %d of 0", run[1], b.First, b.Session, next)
			}
			next += int64(b.Len())
			for _, tr := range b.Truth {
				if tr.State != run[4] {
					t.Fatalf("%s: state %q, want %q", run[1], tr.State, run[4])
				}
			}
		}
		c.Close()
		s := c.Stats()
		if strconv.FormatInt(s.Rows, 10) != run[5] || s.Missing != 0 || len(s.Ignored) != 5 {
			t.Errorf("%s: stats %+v, want %s rows, none missing, 5 columns ignored", run[1], s, run[5])
		}
	}
}

// TestRecordedArrivalTimes reads text without header and ending, with arrival times
// between chunks. The counts come from the README of the data; the last line of each has no end, and may be half written.
func TestRecordedArrivalTimes(t *testing.T) {
	dir := filepath.Join(recorded.Folder(t), "lmas-milling")
	for name, tc := range map[string]struct {
		columns, samples int
		arrivals         int64
		start            string
	}{
		"accel_T0901_303_20xf": {3, 93_050 - 1, 1, "2016-01-07T17:03:41.882Z"},
		"accel_T2503":          {3, 47_029 - 1, 798, "2016-05-26T21:15:16.881Z"},
		"audio_T2503":          {1, 376_239 - 1, 797, "2016-05-26T21:15:16.963Z"},
	} {
		names := []string{"1", "2", "3"}[:tc.columns]
		c, err := openTable(filepath.Join(dir, name), layout(t, 1000, names...), signal.Recording{Header: "none"}, tableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		samples := 0
		for {
			b, err := c.Next(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if at := b.Time.Format(time.RFC3339Nano); samples == 0 && at != tc.start {
				t.Errorf("%s starts at %s, want %s", name, at, tc.start)
			}
			samples += b.Len()
		}
		if got := c.rows.(*cellReader).arrivals; samples != tc.samples || got != tc.arrivals || c.Stats().Missing != 0 {
			t.Errorf("%s: %d samples, %d arrival times, %d missing", name, samples, got, c.Stats().Missing)
		}
	}
}

// Times that start again with each experiment are read if the experiment is the tool, and
// named otherwise; milliseconds are named.
func TestRecordedTimesOfStrangers(t *testing.T) {
	dir := recorded.Folder(t)
	read := func(path string, l *signal.Layout, rec signal.Recording) (tools []string, gaps int, err error) {
		src, err := Recording{Path: path, Layout: l, Columns: rec}.Open()
		if err != nil {
			return nil, 0, err
		}
		defer src.(io.Closer).Close()
		var at time.Time
		next := int64(0)
		for {
			b, err := src.Next(t.Context())
			if err == io.EOF {
				return tools, gaps, nil
			}
			if err != nil {
				return tools, gaps, err
			}
			if len(tools) == 0 || tools[len(tools)-1] != b.Tool {
				tools, next = append(tools, b.Tool), 0
			}
			if b.First != next {
				gaps++
			}
			if !b.Time.After(at) || signal.HasClock(b.Time) {
				t.Fatalf("%s: %v after %v", path, b.Time, at)
			}
			next, at = b.First+int64(b.Len()), b.Time
		}
	}
	uniwear, force := filepath.Join(dir, "uniwear", "uniwear_dev.csv"), layout(t, 2, "force_z")
	tools, gaps, err := read(uniwear, force, signal.Recording{Time: "timestamp", Tool: "experiment_tag"})
	if want := []string{"W1", "W2", "W3", "W5", "W6", "W7", "c1", "c4"}; err != nil || !slices.Equal(tools, want) || gaps != 0 {
		t.Errorf("uniwear: %v, %d gaps, %v", tools, gaps, err)
	}
	if _, _, err := read(uniwear, force, signal.Recording{Time: "timestamp"}); err == nil || !strings.Contains(err.Error(), `"0.0033" starts again, after 2904.5742`) {
		t.Errorf("uniwear without its experiments: %v", err)
	}
	lathe := filepath.Join(dir, "cnc-lathe-mat", "Data_KS-NPC-6FF_0.mat")
	if _, _, err := read(lathe, layout(t, 1000, "Power_MainSpindle"), signal.Recording{Time: "Time"}); err == nil || !strings.Contains(err.Error(), "seems to count milliseconds") {
		t.Errorf("lathe: %v", err)
	}
}
