package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "day.csv")
	if err := os.WriteFile(path, []byte("ax,ay\n1,2\n3,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	layout := filepath.Join(dir, "layout.yaml")
	if err := os.WriteFile(layout, []byte("channels: [{name: a, from: ay, kind: vibration, unit: g, rate: 2, gain: 10}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	plot := filepath.Join(dir, "day.svg")
	see := func(args ...string) (string, error) {
		var out, log strings.Builder
		err := run(t.Context(), append([]string{"inspect"}, args...), &out, &log)
		return out.String(), err
	}
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"plain":       {[]string{path}, []string{"1 line of header", "ax", "ay", "gaps      not known"}},
		"with a rate": {[]string{path, "--rate", "2"}, []string{"channels  2, 1 s"}},
		"with start":  {[]string{path, "--rate", "2", "--start", "2026-11-02T07:00:00+01:00"}, []string{"from 2026-11-02 06:00:00 UTC"}},
		"no start":    {[]string{path, "--layout", layout}, []string{"start     not known, so times are seconds from it"}},
		"with layout": {[]string{path, "--layout", layout, "--plot", plot, "--channel", "a"}, []string{"channels  1, 1 s", "gaps      none", "g", "40", plot}},
	} {
		out, err := see(tc.args...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range tc.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
	}
	if _, err := os.Stat(plot); err != nil {
		t.Error(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such file":        {[]string{filepath.Join(dir, "absent.tdms")}, "absent.tdms"},
		"negative rate":       {[]string{path, "--rate=-1"}, "must be positive"},
		"start in words":      {[]string{path, "--start", "noon"}, `--start: "noon": write a date, time and zone, as 2026-11-02T06:00:00Z`},
		"a plot as PNG":       {[]string{path, "--plot", filepath.Join(dir, "day.png")}, "day.png: plots are SVG: name a file that ends in .svg"},
		"channel but no plot": {[]string{path, "--channel", "ax"}, "give --plot too"},
		"layout of another":   {[]string{path, "--layout", "../../examples/turning/layout.yaml"}, "no column"},
	} {
		if _, err := see(tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
