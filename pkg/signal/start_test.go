package signal

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseStart(t *testing.T) {
	for _, text := range []string{"now", "2026-11-02", "2026-11-02 06:00:00", "2026-11-02T06:00:00", "1970-01-01T00:00:00Z", "2001-09-09T01:46:39Z", "File-Time"} {
		if s, err := parseStart(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q: write a", text)) {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	var s Start
	if err := s.UnmarshalText(nil); err != nil || !s.IsZero() || s.String() != "" {
		t.Errorf("nothing: %v, %v", s, err)
	}
}

func FuzzStart(f *testing.F) {
	for _, text := range []string{"file-time", "2026-11-02T06:00:00Z", "2026-11-02T06:00:00.123456789+14:00", "9999-12-31T23:59:59-14:00", "", "0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStart(text)
		if err != nil {
			return
		}
		if again, err := parseStart(s.String()); err != nil || again != s {
			t.Fatalf("%q is written %q and read %v, %v", text, s, again, err)
		}
		if !s.FileTime && !HasClock(s.At) {
			t.Fatalf("%q has no clock", text)
		}
	})
}
