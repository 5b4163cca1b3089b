package compare

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Recordings that do not say when they began follow each other.
func TestWindowsWithoutAClock(t *testing.T) {
	r := NewWindowReader()
	meta := new(table.Origin)
	meta.Format, meta.Layout.Name = 1, "x"
	meta.Layout.Channels = []signal.Channel{{Name: "rms", Kind: signal.Feature, Rate: 1}}
	meta.Window.LengthNS = time.Second
	if err := r.Table(meta, []string{"rms"}); err != nil {
		t.Fatal(err)
	}
	row := func(recording string, startS float64) (at int64, err error) {
		d := &table.Details{Recording: recording, StartS: startS, Level: math.NaN()}
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
	if _, err := row("e", math.NaN()); err == nil || !strings.Contains(err.Error(), `row 10: no column "start"`) {
		t.Error(err)
	}
}

func TestWindowsRefused(t *testing.T) {
	r := NewWindowReader()
	meta := func(change func(*table.Origin)) *table.Origin {
		m := new(table.Origin)
		m.Layout.Name = "x"
		m.Layout.Channels = []signal.Channel{{Name: "rms", Kind: signal.Feature, Rate: 1}}
		m.Window.LengthNS = time.Second
		change(m)
		return m
	}
	for want, m := range map[string]*table.Origin{
		"nothing in the table says": nil,
		"written with --judged":     meta(func(m *table.Origin) { m.JudgedOnly = true }),
		"written with --relative":   meta(func(m *table.Origin) { m.Relative = "ratio" }),
		"layout":                    meta(func(m *table.Origin) { m.Layout.Channels = nil }),
	} {
		if err := r.Table(m, []string{"rms"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	details := func(change func(*table.Details)) *table.Details {
		d := &table.Details{Level: math.NaN()}
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
		if err := r.Table(meta(func(*table.Origin) {}), tc.columns); err != nil {
			t.Fatal(err)
		}
		var w window.Features
		if err := r.Read(table.Row{Tool: "T", Features: []float32{1}, Details: tc.d}, &w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
