package spool

import (
	"errors"
	"strings"
	"testing"
)

// A full spool refuses to the byte, gives delivered segments up first, and takes
// records again once there is room.
func TestFullRefuses(t *testing.T) {
	s, _ := mustOpen(t, t.TempDir(), Settings{MaxBytes: 800, fsync: noSync}) // segments of 100 bytes
	const record = headerSize + 12
	for i := range 800 / record {
		mustAppend(t, s, numbered(i, i+1)...)
	}
	if _, err := s.Append([]byte("payload 9999")); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "of 800 bytes") {
		t.Errorf("record %d: %v", 800/record, err)
	}
	sameStrings(t, "records", drain(t, s), numbered(0, 800/record))
	s.Ack(5)
	mustAppend(t, s, numbered(22, 25)...)
	if st := s.Stats(); st.Dropped != 0 || st.Bytes > 800 {
		t.Errorf("%+v", st)
	}
	s.Rewind()
	sameStrings(t, "after 6 were delivered", drain(t, s), numbered(6, 25))
	if _, err := s.Append(make([]byte, 800)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a record larger than the spool: %v", err)
	}
}

// With DropOldest the newest records stay, and what was given up is counted.
func TestFullDropsOldest(t *testing.T) {
	s, _ := mustOpen(t, t.TempDir(), Settings{MaxBytes: 800, DropOldest: true, fsync: noSync})
	mustAppend(t, s, numbered(0, 100)...)
	st := s.Stats()
	if st.Dropped == 0 || st.Acked != st.Dropped || st.Bytes > 800 || st.Pending < 800/(headerSize+12)-3 {
		t.Errorf("%+v", st)
	}
	sameStrings(t, "records", drain(t, s), numbered(int(st.Dropped), 100))
}
