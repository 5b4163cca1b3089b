package wear

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/golden"
)

// TestReadGolden reads a file as people keep it and writes it as we do.
func TestReadGolden(t *testing.T) {
	ms, warnings, err := Load("testdata/wear.csv")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	var out bytes.Buffer
	if err := Write(&out, ms); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "wear.golden.csv", out.String())
}

// TestReadErrors keeps every error and warning in testdata/errors.golden, to be
// read as the person reads it who keeps the file.
func TestReadErrors(t *testing.T) {
	const header = "machine,tool,hole,time,vb_mean_um,vb_max_um,state\n"
	var out strings.Builder
	for _, tc := range []struct {
		name, text string
		warns      bool
	}{
		{name: "empty file", text: ""},
		{name: "semicolons", text: "tool;vb_max_um\nT1;3\n"},
		{name: "column twice", text: "tool,state,Tool\nT1,worn,T1\n"},
		{name: "millimetres in the header", text: "tool,vb_max_mm\nT1,0.3\n"},
		{name: "no tool column", text: "hole,vb_max_um\nH1,3\n"},
		{name: "no wear column", text: "tool,hole\nT1,H1\n"},
		{name: "no tool in a row", text: "tool,vb_max_um\nT1,3\n,4\n"},
		{name: "text in wear", text: "tool,vb_max_um\nT1,much\n"},
		{name: "infinite wear", text: "tool,vb_max_um\nT1,Inf\n"},
		{name: "negative wear", text: "tool,vb_mean_um\nT1,-3\n"},
		{name: "mean above maximum", text: header + "m,T1,H1,,300,200,\n"},
		{name: "time of day", text: header + "m,T1,H1,14:05,,200,\n"},
		{name: "year that RFC 3339 cannot write in UTC", text: header + "m,T1,H1,9999-12-31T23:30:00-01:00,,200,\n"},
		{name: "decimal comma", text: "tool,vb_max_um\nT1,3\nT1,3,5\n"},
		{name: "stray quote", text: "tool,vb_max_um\nT1,3\"\n"},
		{name: "open quote", text: "tool,vb_max_um\nT1,\"3\nT2,4\n"},
		{name: "bad UTF-8", text: "tool,vb_max_um\nT\xff,3\n"},
		{name: "measured twice", text: header + "m,T1,H1,,,200,\nm,T2,H1,,,200,\nm,T1,H1,,,210,\n"},
		{name: "wear falls", text: "tool,vb_mean_um,vb_max_um,time\nT1,20,90,2026-01-31T14:02:00Z\nT2,5,5,\nT1,30,50,2026-01-31T14:01:00Z\nT1,,80,2026-01-31T14:03:00Z\n", warns: true},
		{name: "millimetres by their size", text: "tool,hole,vb_max_um\nT1,1,0.1\nT1,2,0.35\n", warns: true},
	} {
		ms, warnings, err := Read(strings.NewReader(tc.text), "wear.csv")
		fmt.Fprintf(&out, "# %s\n", tc.name)
		switch {
		case tc.warns && (err != nil || len(warnings) == 0 || len(ms) == 0):
			t.Errorf("%s: %d measurements, warnings %q, error %v; want warnings only", tc.name, len(ms), warnings, err)
		case !tc.warns && (err == nil || ms != nil):
			t.Errorf("%s: %d measurements, error %v; want an error only", tc.name, len(ms), err)
		}
		for _, w := range warnings {
			fmt.Fprintln(&out, w)
		}
		if err != nil {
			fmt.Fprintln(&out, err)
		}
		fmt.Fprintln(&out)
	}
	golden.Check(t, "errors.golden", out.String())

	if _, _, err := Load("testdata/absent.csv"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v, want os.ErrNotExist", err)
	}
}

func TestReadWarnsOfNothingUsual(t *testing.T) {
	for name, text := range map[string]string{
		"no rows":                     "tool,state\n",
		"zero wear":                   "tool,hole,vb_max_um\nT1,1,0\nT1,2,0\n",
		"equal wear":                  "tool,hole,vb_max_um\nT1,1,50\nT1,2,50\n",
		"rising by time, not by line": "tool,time,vb_max_um\nT1,2026-01-31T14:02:00Z,80\nT1,2026-01-31T14:01:00Z,50\n",
		"a new tool starts again":     "tool,vb_max_um\nT1,80\nT2,5\n",
		"another machine's tool":      "machine,tool,vb_max_um\na,T1,80\nb,T1,5\n",
	} {
		if _, warnings, err := Read(strings.NewReader(text), "wear.csv"); err != nil || len(warnings) > 0 {
			t.Errorf("%s: warnings %q, error %v", name, warnings, err)
		}
	}
}

// measurements draws measurements of a few tools, each at its own hole and time.
func measurements(t *rapid.T) []Measurement {
	word := rapid.StringMatching(`[A-Za-z0-9 ,"';µ/-]{0,8}`)
	var ms []Measurement
	for i := range rapid.IntRange(0, 20).Draw(t, "n") {
		um := rapid.OneOf(rapid.Just(nan), rapid.Float64Range(0, 1e6))
		m := Measurement{
			Machine:  strings.TrimSpace(word.Draw(t, "machine")),
			Tool:     "T" + strings.TrimSpace(word.Draw(t, "tool")),
			Hole:     fmt.Sprintf("H%d", i),
			VBMeanUM: um.Draw(t, "mean"),
			VBMaxUM:  um.Draw(t, "max"),
			State:    strings.TrimSpace(word.Draw(t, "state")),
		}
		if m.VBMeanUM > m.VBMaxUM {
			m.VBMeanUM, m.VBMaxUM = m.VBMaxUM, m.VBMeanUM
		}
		if rapid.Bool().Draw(t, "timed") {
			m.Time = time.Unix(0, rapid.Int64Range(1, 1<<60).Draw(t, "time")).UTC()
		}
		ms = append(ms, m)
	}
	return ms
}

// equal compares measurements as text, so that NaN equals NaN.
func equal(a, b any) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

func TestReadReturnsWhatWriteWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := measurements(t)
		for _, m := range ms {
			if m.State == "NA" || m.State == "nan" || m.State == "NaN" || m.Machine == "NA" || m.Machine == "nan" || m.Machine == "NaN" {
				t.Skip("not known")
			}
		}
		var out bytes.Buffer
		if err := Write(&out, ms); err != nil {
			t.Fatal(err)
		}
		got, _, err := Read(&out, "wear.csv")
		if err != nil {
			t.Fatal(err)
		}
		if !equal(got, ms) {
			t.Fatalf("read %+v\nwrote %+v", got, ms)
		}
	})
}

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/wear.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("\xef\xbb\xbftool,vb_mean_um\nT1,0.1\n\"T1\n\",0.05"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ms, _, err := Read(bytes.NewReader(text), "wear.csv")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "wear: wear.csv") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		var out bytes.Buffer
		if err := Write(&out, ms); err != nil {
			t.Fatal(err)
		}
		again, _, err := Read(&out, "wear.csv")
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if !equal(again, ms) {
			t.Fatalf("first %+v\nthen  %+v", ms, again)
		}
		for _, m := range ms {
			if m.Tool == "" || m.VBMaxUM < 0 || m.VBMeanUM < 0 || m.VBMeanUM > m.VBMaxUM {
				t.Fatalf("accepted %+v", m)
			}
		}
		for _, mode := range []Mode{HoleEnd, Interpolate} {
			j, err := NewJoin(ms, mode)
			if err != nil {
				continue
			}
			for _, m := range ms {
				j.At(m.Machine, m.Tool, m.Hole, m.Time)
			}
		}
	})
}
