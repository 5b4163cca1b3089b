package train

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train/compare"
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
func readWindows(t *testing.T, r *compare.WindowReader, path string) (all []window.Features, left int) {
	t.Helper()
	text, err := table.Meta(path)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := ParseFeatureMeta(text)
	if err != nil {
		t.Fatal(err)
	}
	err = table.Scan(path, func(columns []string) error { return r.Table(&meta.Origin, columns) }, func(row table.Row) error {
		var w window.Features
		err := r.Read(row, &w)
		if errors.Is(err, compare.ErrOrder) {
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
	r := compare.NewWindowReader()
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
