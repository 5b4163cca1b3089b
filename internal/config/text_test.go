package config

import (
	"testing"
	"time"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{"CV3.S_RMS": "CV3.S_RMS", "acme/line1/mill": "acme/line1/mill", "ax [g]": `"ax [g]"`, "Off": `"Off"`, "1": `"1"`, "": `""`, "-": `"-"`} {
		if got := Text(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Any text is read as it was.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "a", "no", "1e3", "a: b", "#", "\x00\u2028", "µm", "<&>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		var got struct {
			A string
			B []string
		}
		if err := Decode([]byte("a: "+Text(text)+"\nb: ["+Text(text)+"]\n"), "c.yaml", &got); err != nil || got.A != text || len(got.B) != 1 || got.B[0] != text {
			t.Errorf("%q as %s: %q, %v", text, Text(text), got, err)
		}
	})
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Minute: "10m", 50 * time.Hour: "50h", 90 * time.Minute: "1h30m", time.Hour + 30*time.Second: "1h0m30s", 20 * time.Second: "20s", 100 * time.Millisecond: "100ms",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
