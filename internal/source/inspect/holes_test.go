package inspect

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/signal"
)

// twoHoles is a recording of two holes of 8 s at 1 kHz: ax hums at 50 Hz in the
// first and at 200 Hz in the second; the force is 100 N, then 300 N.
func twoHoles(t *testing.T) (path string, opt Options) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "T1.csv")
	var b strings.Builder
	b.WriteString("hole,ax,fz\n")
	for i := range 16_000 {
		hole, f, force := "H1", 50., 100
		if i >= 8000 {
			hole, f, force = "H2", 200, 300
		}
		fmt.Fprintf(&b, "%s,%.5f,%d\n", hole, 2*math.Sin(2*math.Pi*f*float64(i)/1000), force+i%3)
	}
	layoutFile := filepath.Join(dir, "layout.yaml")
	for file, text := range map[string]string{
		path:       b.String(),
		layoutFile: "channels: [{name: ax, kind: vibration, unit: g, rate: 1000}, {name: fz, kind: force, unit: N, rate: 1000}]\nrecording: {hole: hole}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	layout, columns, err := signal.LoadLayout(layoutFile)
	if err != nil {
		t.Fatal(err)
	}
	return path, Options{Layout: layout, Columns: columns}
}

func TestCompareHoles(t *testing.T) {
	path, opt := twoHoles(t)
	h, err := CompareHoles(t.Context(), path, opt, "", "H1", "H2")
	if err != nil {
		t.Fatal(err)
	}
	for k, f := range []float64{50, 200} {
		hole := h.Holes[k]
		peak := 1
		sum := 0.
		for i, p := range hole.Power[1:] {
			sum += p
			if p > hole.Power[peak] {
				peak = i + 1
			}
		}
		if at := float64(peak) * hole.Width; math.Abs(at-f) > hole.Width || math.Abs(sum-2) > 0.01 {
			t.Errorf("%s: peak at %v Hz, want %v; power %v, want 2", hole.Name, at, f, sum)
		}
		if len(hole.Wave) != waveSamples {
			t.Errorf("%s: %d samples of waveform", hole.Name, len(hole.Wave))
		}
	}
	if len(h.Features) != 3 || h.Features[0].Name != "ax.rms" || h.Features[2].Name != "fz.mean" || h.Features[2].Unit != "N" {
		t.Fatalf("features %+v", h.Features)
	}
	for k, want := range [2]float64{101, 301} {
		f := h.Features[2]
		middle := f.Values[k][len(f.Values[k])/2]
		if math.Abs(middle-want) > 1 || f.At[k][0] != 1 || len(f.At[k]) != len(f.Values[k]) {
			t.Errorf("hole %d: mean force %v, want %v; first at %v s", k, middle, want, f.At[k][0])
		}
	}
	if d := h.Features[1]; slices.Equal(d.Values[0], d.Values[1]) {
		t.Errorf("%s is listed as differing most, and does not differ", d.Name)
	}
	to := filepath.Join(t.TempDir(), "holes.svg")
	if err := h.Plot(to, [2]string{"sharp", "blunt"}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(to)
	if err != nil || strings.Count(string(b), "sharp") != 2 || !strings.Contains(string(b), "fz.mean [N]") {
		t.Errorf("%s: %d bytes, %v", to, len(b), err)
	}
}

func TestCompareHolesErrors(t *testing.T) {
	path, opt := twoHoles(t)
	if _, err := CompareHoles(t.Context(), path, opt, "", "H1", "H9"); !errors.Is(err, errHoles) || !strings.Contains(err.Error(), `"H9" is not among "H1", "H2"`) {
		t.Errorf("a hole that is not there: %v", err)
	}
	if _, err := CompareHoles(t.Context(), path, opt, "az", "H1", "H2"); err == nil || !strings.Contains(err.Error(), `"az" is not a channel`) {
		t.Errorf("a channel that is not there: %v", err)
	}
	if _, err := CompareHoles(t.Context(), filepath.Join(t.TempDir(), "absent.csv"), opt, "", "H1", "H2"); err == nil {
		t.Error("a file that is not there")
	}
	h, err := CompareHoles(t.Context(), path, opt, "fz", "H1", "H2")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Plot(filepath.Join(t.TempDir(), "absent", "holes.svg"), [2]string{}); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// Holes of several tools that have one name are not drawn as one.
func TestCompareHolesOfTools(t *testing.T) {
	path, opt := twoHoles(t)
	var b strings.Builder
	b.WriteString("tool,hole,ax,fz\n")
	for i := range 16_000 {
		fmt.Fprintf(&b, "T%d,H%d,%d,%d\n", 1+i/8000, 1+i/4000%2, i%7, i%3)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	opt.Columns.Tool = "tool"
	if h, err := CompareHoles(t.Context(), path, opt, "", "H1", "H2"); err == nil || !strings.Contains(err.Error(), `several tools have a hole "H2": make a file of each tool`) {
		t.Errorf("%+v, %v", h, err)
	}
}
