package train

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// cutFeatures returns the features of the windows of drills, one after the other.
func cutFeatures(t *testing.T, drills ...*drill) (all []window.Features) {
	t.Helper()
	form, err := window.NewForm(drillLayout(t), window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := form.NewExtractor()
	for _, d := range drills {
		cut, err := source.NewCutter(d, window.DefaultSpec)
		if err != nil {
			t.Fatal(err)
		}
		for {
			c, err := cut.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Window != nil {
				var f window.Features
				x.Extract(c.Window, &f)
				all = append(all, f)
			}
		}
	}
	return all
}

// readWindows returns what a reader makes of a table, and how many rows it leaves out.
func readWindows(t *testing.T, r *WindowReader, path string) (all []window.Features, left int) {
	t.Helper()
	text, err := table.Meta(path)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := ParseFeatureMeta(text)
	if err != nil {
		t.Fatal(err)
	}
	err = table.Scan(path, func(columns []string) error { return r.Table(meta, columns) }, func(row table.Row) error {
		var w window.Features
		err := r.Read(row, &w)
		if errors.Is(err, ErrOrder) {
			left++
			return nil
		}
		all = append(all, w)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, left
}

func sameNumber(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// A table has the features that a monitor judges: the same numbers, by the same names.
func TestWindowsOfATable(t *testing.T) {
	drills := func() []*drill {
		later := newDrill(nil, "m1", "T2", drillStart.Add(time.Hour), 3)
		later.unplugged = 4
		return []*drill{newDrill(nil, "m1", "T1", drillStart, 2), later}
	}
	made := func() (ds []*drill) {
		for _, d := range drills() {
			d.layout = drillLayout(t)
			ds = append(ds, d)
		}
		return ds
	}
	var inputs []Input
	for _, d := range made() {
		inputs = append(inputs, drillInput(d))
	}
	path := filepath.Join(t.TempDir(), "f.parquet")
	if _, err := WriteFeatures(t.Context(), drillJob(t, wear.Auto, nil, inputs...), FeatureFile{Path: path}); err != nil {
		t.Fatal(err)
	}
	r := NewWindowReader()
	got, left := readWindows(t, r, path)
	want := cutFeatures(t, made()...)
	if len(got) != len(want) || left != 0 {
		t.Fatalf("%d windows, %d left out; want %d", len(got), left, len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Form.Fingerprint() != w.Form.Fingerprint() || g.Machine != w.Machine || g.Tool != w.Tool || g.Hole != w.Hole || g.Level != w.Level ||
			!g.Start.Equal(w.Start) || g.Length != w.Length || g.Seq != uint64(i) || !slices.Equal(g.Quality, w.Quality) ||
			!slices.EqualFunc(g.Values, w.Values, sameNumber) || !slices.EqualFunc(g.Frames, w.Frames, sameNumber) {
			t.Fatalf("window %d:\n%+v\nwant\n%+v", i, g, w)
		}
	}
	// The same rows again are left out.
	if again, left := readWindows(t, r, path); len(again) != 0 || left != len(want) {
		t.Errorf("again: %d windows, %d left out", len(again), left)
	}
}

// Recordings that do not say when they began follow each other.
func TestWindowsWithoutAClock(t *testing.T) {
	r := NewWindowReader()
	meta := new(FeatureMeta)
	meta.Format, meta.Layout.Name = 1, "x"
	meta.Layout.Channels = []signal.Channel{{Name: "rms", Kind: signal.Feature, Rate: 1}}
	meta.Window.LengthNS = time.Second
	if err := r.Table(meta, []string{"rms"}); err != nil {
		t.Fatal(err)
	}
	row := func(recording string, startS float64) (at int64, err error) {
		d := &table.Details{Recording: recording, StartS: startS, Level: nan}
		var w window.Features
		err = r.Read(table.Row{Machine: "m", Tool: "T1", Class: table.NoClass, Features: []float32{1}, Details: d}, &w)
		return w.Start.Unix(), err
	}
	for _, tc := range []struct {
		recording string
		startS    float64
		want      int64 // -1: left out
	}{{"a", 0, 0}, {"a", 1, 1}, {"a", 5, 5}, {"b", 0, 6}, {"b", 2, 8}, {"a", 0, -1}, {"a", 9, 9}, {"c", 20, 20}, {"d", 20, 21}} {
		at, err := row(tc.recording, tc.startS)
		if errors.Is(err, ErrOrder) {
			at, err = -1, nil
		}
		if err != nil || at != tc.want {
			t.Errorf("%s, second %v: %d, %v; want %d", tc.recording, tc.startS, at, err, tc.want)
		}
	}
	if _, err := row("e", nan); err == nil || !strings.Contains(err.Error(), `row 10: no column "start"`) {
		t.Error(err)
	}
}

func TestWindowsRefused(t *testing.T) {
	r := NewWindowReader()
	meta := func(change func(*FeatureMeta)) *FeatureMeta {
		m := new(FeatureMeta)
		m.Layout.Name = "x"
		m.Layout.Channels = []signal.Channel{{Name: "rms", Kind: signal.Feature, Rate: 1}}
		m.Window.LengthNS = time.Second
		change(m)
		return m
	}
	for want, m := range map[string]*FeatureMeta{
		"nothing in the table says": nil,
		"written with --judged":     meta(func(m *FeatureMeta) { m.JudgedOnly = true }),
		"written with --relative":   meta(func(m *FeatureMeta) { m.Relative = "ratio" }),
		"layout":                    meta(func(m *FeatureMeta) { m.Layout.Channels = nil }),
	} {
		if err := r.Table(m, []string{"rms"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	details := func(change func(*table.Details)) *table.Details {
		d := &table.Details{Level: nan}
		change(d)
		return d
	}
	for want, tc := range map[string]struct {
		columns []string
		d       *table.Details
	}{
		"row 1: no columns that begin with window.": {[]string{"rms"}, nil},
		`no column "rms"`:                 {[]string{"power"}, details(func(*table.Details) {})},
		`column "window.quality": "loud"`: {[]string{"rms"}, details(func(d *table.Details) { d.Quality = "loud" })},
	} {
		if err := r.Table(meta(func(*FeatureMeta) {}), tc.columns); err != nil {
			t.Fatal(err)
		}
		var w window.Features
		if err := r.Read(table.Row{Tool: "T", Features: []float32{1}, Details: tc.d}, &w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
