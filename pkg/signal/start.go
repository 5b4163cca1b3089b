package signal

import (
	"fmt"
	"time"
)

// Start says when recordings began that do not say it themselves. The zero value
// leaves it open: their times count from 1970, so that they are seconds from the
// start.
type Start struct {
	// FileTime takes a file's time of change as the end of its recording, since
	// recorders write a file until the recording ends. At is zero then.
	FileTime bool
	At       time.Time // of the first sample of the first recording
}

// fileTime is how FileTime is written.
const fileTime = "file-time"

// parseStart reads a start as people write it: RFC 3339, or "file-time".
func parseStart(text string) (Start, error) {
	if text == fileTime {
		return Start{FileTime: true}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Start{}, fmt.Errorf("%q: write a date, time and zone, as 2026-11-02T06:00:00Z or 2026-11-02T07:00:00+01:00, or file-time, for which each recording ended when its file was last changed", text)
	}
	if at = at.UTC(); !HasClock(at) || at.Year() > 9999 {
		return Start{}, fmt.Errorf("%q: write a time after September 2001: earlier ones count as seconds from the start of a recording", text)
	}
	return Start{At: at}, nil
}

// UnmarshalText reads what parseStart does. An empty text is the zero Start.
func (s *Start) UnmarshalText(text []byte) (err error) {
	*s = Start{}
	if len(text) > 0 {
		*s, err = parseStart(string(text))
	}
	return err
}

// MarshalText writes what UnmarshalText reads.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns the start as parseStart reads it, or nothing for the zero Start.
func (s Start) String() string {
	switch {
	case s.FileTime:
		return fileTime
	case s.At.IsZero():
		return ""
	}
	return s.At.UTC().Format(time.RFC3339Nano)
}

// IsZero reports whether s leaves the start open.
func (s Start) IsZero() bool { return !s.FileTime && s.At.IsZero() }
