package main

import (
	"testing"
	"time"
)

func TestWhen(t *testing.T) {
	at := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	for want, t0 := range map[string]time.Time{"-": {}, "second 75.5": time.Unix(75, 500e6), at.Local().Format(time.DateTime): at} {
		if got := when(t0); got != want {
			t.Errorf("%v is %q, want %q", t0, got, want)
		}
	}
}
