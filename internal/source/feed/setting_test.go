package feed

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

// A change of context that is taken has names that can be shown, and a speed that is a number.
func FuzzParseChange(f *testing.F) {
	for _, text := range []string{`{"tool": "T08", "hole": "12", "spindle_speed": 1650}`, `{"new": true}`, `{"tool": "T\n8"}`, `{"hole": "\u202e"}`, `{"spindle_speed": 1e999}`, `{"feed_rate": 82.5, "programme": "O1", "material": "42CrMo4"}`, `{"material": "\u001b[2J"}`, `{"feed_rate": -1}`, `[`, `null`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseChange(text)
		if err != nil {
			return
		}
		for _, s := range []*string{c.Tool, c.Hole, c.Programme, c.Material} {
			if s != nil && (plain.Check(*s) != nil || len(*s) > maxText) {
				t.Fatalf("%q is taken", *s)
			}
		}
		for _, v := range []*float64{c.SpindleSpeed, c.FeedRate} {
			if v != nil && !(*v >= 0) {
				t.Fatalf("a speed of %v is taken", *v)
			}
		}
	})
}

func TestToolsHaveOneName(t *testing.T) {
	t.Parallel()
	set, err := OpenSetting(filepath.Join(t.TempDir(), "context.json"))
	if err != nil {
		t.Fatal(err)
	}
	name := func(tool string) (string, error) {
		c := signal.Context{Tool: tool}
		var err error
		if c.Tool, err = ToolName(tool); err == nil {
			err = set.fill(&c)
		}
		return c.Tool, err
	}
	for _, s := range []struct{ tool, want, err string }{
		{"Fräser 7", "Fräser 7", ""}, {"Fra\u0308ser\u00a07 ", "Fräser 7", ""}, {"0", "", ""}, {"00", "", ""}, {" ", "", ""}, {"5", "5", ""},
		{"05", "05", `tools "5" and "05"`}, {"5", "5", ""}, {"05", "05", ""}, // said once
		{"FRÄSER 07", "FRÄSER 07", `tools "Fräser 7" and "FRÄSER 07"`}, {"T\u200b1", "", "U+200B: remove it"},
	} {
		got, err := name(s.tool)
		if got != s.want && s.err == "" || (err == nil) != (s.err == "") || err != nil && !strings.Contains(err.Error(), s.err) {
			t.Errorf("tool %q: %q, %v, want %q, %q", s.tool, got, err, s.want, s.err)
		}
	}
	for _, none := range []string{"0", "00", " 0 ", "٠", "None", "N/A", "-", "--", "NULL", "unavailable", "?"} {
		if !set.isNoTool(none) {
			t.Errorf("%q is a tool", none)
		}
	}
	set.NoTool = []string{"EMPTY"}
	for tool, want := range map[string]string{"empty": "", "0": "0"} {
		if got, err := name(tool); got != want || err != nil {
			t.Errorf("tool %q: %q, %v, want %q", tool, got, err, want)
		}
	}
}

// TestControlTakesTheToolOut: a placeholder of the control is not the tool before.
func TestControlTakesTheToolOut(t *testing.T) {
	t.Parallel()
	set, err := OpenSetting(filepath.Join(t.TempDir(), "context.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"5", "0", "5"} {
		now, err := set.ApplyControl(Change{Tool: &tool}, Named{Tool: tool})
		if want := strings.Trim(tool, "0"); err != nil || now.Tool != want || set.Context().Tool != want {
			t.Errorf("control says %q: %q, %v, want %q", tool, now.Tool, err, want)
		}
	}
	zero := "0"
	if _, err := set.Apply(Change{Tool: &zero, New: true}); !errors.Is(err, ErrNoTool) {
		t.Errorf("tool 0 declared new: %v", err)
	}
}
