package event

import "testing"

func TestParseWear(t *testing.T) {
	for text, want := range map[string]float64{
		"0.34 mm": 340, "0,34mm": 340, "340 µm": 340, " 340um ": 340, "340,5 μm": 340.5, "0 mm": 0, "10mm": 10000,
		"0.34": -1, "": -1, "mm": -1, "340 mm": -1, "-1 um": -1, "1.350,0 um": -1, "0.34 m": -1, "nan mm": -1, "1e400um": -1,
	} {
		um, err := ParseWear(text)
		if (err != nil) != (want < 0) || err == nil && um != want {
			t.Errorf("%q: %v, %v, want %v", text, um, err, want)
		}
	}
}
