package feed

import (
	"testing"

	"github.com/flank-tcm/flank/internal/plain"
)

// A change of context that is taken has names that can be shown, and a speed that is a number.
func FuzzParseChange(f *testing.F) {
	for _, text := range []string{`{"tool": "T08", "hole": "12", "spindle_speed": 1650}`, `{"new": true}`, `{"tool": "T\n8"}`, `{"hole": "\u202e"}`, `{"spindle_speed": 1e999}`, `{"feed_rate": 82.5, "programme": "O1", "material": "42CrMo4"}`, `{"material": "\u001b[2J"}`, `{"feed_rate": -1}`, `[`, `null`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseChange(text)
		if err != nil {
			return
		}
		for _, s := range []*string{c.Tool, c.Hole, c.Programme, c.Material} {
			if s != nil && (plain.Check(*s) != nil || len(*s) > MaxText) {
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
