package alarm

import (
	"encoding/json"
	"math"
	"testing"
)

// What parseCurve accepts can be shown: every point can be, and JSON holds it.
func FuzzCurve(f *testing.F) {
	f.Add([]byte(`{"model":"m","now":{"k":2,"n":3,"threshold":0.5},"chosen":{"k":2,"n":3,"threshold":0.5,"per_hour":0.1,"delay":2}}`))
	f.Add([]byte(`{"now":{"k":5,"n":3,"threshold":0.5},"chosen":{"k":2,"n":3,"threshold":-1}}`))
	f.Add([]byte(`{"hours":true,"now":{"k":2,"n":3,"threshold":0.5},"chosen":{"k":2,"n":3,"threshold":0.5}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseCurve(text)
		if err != nil {
			return
		}
		if _, err := json.Marshal(c); err != nil {
			t.Fatal(err)
		}
		for _, p := range append(c.Points, c.Now, c.Chosen) {
			if p.K > p.N || math.IsNaN(p.Threshold) || p.Delay != nil && *p.Delay < 0 || c.Hours && p.PerHour == nil {
				t.Fatalf("%+v", p)
			}
		}
	})
}
