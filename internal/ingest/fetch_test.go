package ingest

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// Commands that cannot be read are counted each time, and the log says so once a minute: also when it happens again
// after they could be read.
func TestCommandsCannotBeRead(t *testing.T) {
	var log bytes.Buffer
	var f commandFailures
	began := time.Date(2026, 11, 29, 6, 0, 0, 0, time.UTC)
	for i, tc := range []struct {
		after time.Duration
		lines int // so far
	}{
		{0, 1}, {10 * time.Second, 1}, {59 * time.Second, 1}, {time.Minute, 2}, {70 * time.Second, 2}, {30 * 24 * time.Hour, 3},
	} {
		f.failed(errors.New("the right is missing"), began.Add(tc.after), zerolog.New(&log))
		if n := strings.Count(log.String(), "cannot read commands"); n != tc.lines {
			t.Errorf("after %v: %d lines, want %d", tc.after, n, tc.lines)
		}
		if f.n.Load() != uint64(i+1) {
			t.Errorf("after %v: %d failures, want %d", tc.after, f.n.Load(), i+1)
		}
	}
}
