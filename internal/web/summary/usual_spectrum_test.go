package summary

import (
	"bytes"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
)

// The usual spectrum of a machine outlives a restart, the last one counts, and it goes with the
// machine.
func TestUsualSpectrum(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	of := func(machine, want string) {
		t.Helper()
		if got, err := s.UsualSpectrum(machine); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", machine, got, err, want)
		}
	}
	keep := func(machine, text string) {
		t.Helper()
		if err := s.KeepUsualSpectrum(machine, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	keep("a", "nothing is known of it")
	of("a", "")
	putResults(t, s, result("a", 0, event.Healthy))
	keep("a", "one")
	keep("a", "two")
	if err := s.KeepUsualSpectrum("a", bytes.Repeat([]byte("x"), maxEvent+1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	s = s.crash(t, dir)
	of("a", "two")
	renamed := alertAt("b", 60, event.Renamed, "")
	renamed.Was = "a"
	putAlerts(t, s, renamed)
	of("b", "two")
	of("a", "")
}
