package feed

import (
	"encoding/json"
	"testing"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/schemas"
)

// What the schemas allow is taken, and what they forbid is refused.
func TestContract(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		`{"tool": "T08", "hole": "12", "spindle_speed": 1650.5}`: true,
		`{"hole": ""}`:                true,
		`{"spindle_speed": 0}`:        true,
		`{}`:                          false,
		`{"tool": ""}`:                false,
		`{"tool": 8}`:                 false,
		`{"tool": "a\u0007"}`:         false,
		`{"spindle_speed": -1}`:       false,
		`{"spindle_speed": 1000001}`:  false,
		`{"spindle_speed": "1650"}`:   false,
		`["T08"]`:                     false,
		`{"tool": "Ø8", "hole": "é"}`: true,
	} {
		_, err := parseChange([]byte(text))
		if valid := schemas.Validate(schemas.Context, []byte(text)) == nil; valid != good || (err == nil) != good {
			t.Errorf("context %s: valid %v, taken %v (%v), want both %v", text, valid, err == nil, err, good)
		}
	}
	d := newDecoder(Config{Machine: drill, Layout: signal.GunDrill()})
	for text, good := range map[string]bool{
		`{"session": -1, "first": 0, "time_ns": 1, "channels": {"thrust": [1, null], "torque": [2, -3e2]}}`:                                                                                        true,
		`{"session": 1, "first": 0, "time_ns": 1, "rate": 100, "machine": "` + drill + `", "tool": "T", "hole": "H", "spindle_speed": 3, "channels": {"thrust": [1], "torque": [2], "note": [3]}}`: true,
		`{"first": 0, "time_ns": 1, "channels": {"thrust": [1], "torque": [2]}}`:                                                                                                                   false,
		`{"session": 1, "time_ns": 1, "channels": {"thrust": [1], "torque": [2]}}`:                                                                                                                 false,
		`{"session": 1, "first": 0, "channels": {"thrust": [1], "torque": [2]}}`:                                                                                                                   false,
		`{"session": 1, "first": -1, "time_ns": 1, "channels": {"thrust": [1], "torque": [2]}}`:                                                                                                    false,
		`{"session": 1, "first": 0.5, "time_ns": 1, "channels": {"thrust": [1], "torque": [2]}}`:                                                                                                   false,
		`{"session": 1, "first": 0, "time_ns": 0, "channels": {"thrust": [1], "torque": [2]}}`:                                                                                                     false,
		`{"session": 1, "first": 0, "time_ns": 1, "channels": {"thrust": [], "torque": []}}`:                                                                                                       false,
		`{"session": 1, "first": 0, "time_ns": 1, "channels": {"thrust": ["1"], "torque": ["2"]}}`:                                                                                                 false,
		`{"session": 1, "first": 0, "time_ns": 1, "channels": {}}`:                                                                                                                                 false,
		`{"session": 1, "first": 0, "time_ns": 1}`:                                                                                                                                                 false,
		`{"session": 1, "first": 0, "time_ns": 1, "spindle_speed": -1, "channels": {"thrust": [1], "torque": [2]}}`:                                                                                false,
	} {
		_, err := d.decode([]byte(text))
		if valid := schemas.Validate(schemas.Frame, []byte(text)) == nil; valid != good || (err == nil) != good {
			t.Errorf("frame %s: valid %v, taken %v (%v), want both %v", text, valid, err == nil, err, good)
		}
	}
	// The published example.
	var published struct{ Examples []json.RawMessage }
	if err := json.Unmarshal(schemas.FrameJSON, &published); err != nil || len(published.Examples) == 0 {
		t.Fatal(err)
	}
	for _, text := range published.Examples {
		if _, err := d.decode(text); err != nil || schemas.Validate(schemas.Frame, text) != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
