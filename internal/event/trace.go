package event

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// TraceHeader is the name of the header that carries a TraceParent.
const TraceHeader = "traceparent"

// SplitWindowID returns what the id of a window's message, or an id that begins with one, such as
// a result's or an alert's, says of its window. ok is false for other ids.
func SplitWindowID(id string) (machine, epoch string, seq uint64, ok bool) {
	for at := 0; ; { // the first place that can be one: groups come later
		i := strings.IndexByte(id[at:], '/')
		at += i + 1
		epoch, rest, more := strings.Cut(id[at:], "/")
		if i < 0 || !more {
			return "", "", 0, false
		}
		if number, _, _ := strings.Cut(rest, "/"); isEpoch(epoch) {
			if n, err := strconv.ParseUint(number, 10, 64); err == nil {
				return id[:at-1], epoch, n, true
			}
		}
	}
}

func isEpoch(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}

// TraceID returns the id of the trace that all messages about a window have: 32 hexadecimal
// digits, the first half of the SHA-256 of WindowID. It follows from the window's name, so
// that it is the same when the window is sent again, read from a spool of an older release, or
// judged anywhere.
func TraceID(machine, epoch string, seq uint64) string {
	return string(appendTraceID(nil, machine, epoch, seq))
}

func appendTraceID(b []byte, machine, epoch string, seq uint64) []byte {
	var id [256]byte
	sum := sha256.Sum256(appendWindowID(id[:0], machine, epoch, seq))
	return hex.AppendEncode(b, sum[:16])
}

// TraceParent returns the header of W3C Trace Context, level 1, of the message with a type and an
// id about a window: version 00, the window's TraceID, 16 hexadecimal digits that follow from
// type and id, and the flag that the trace is recorded. It is empty if the id does not begin with
// a window's.
func TraceParent(typ, id string) string {
	machine, epoch, seq, ok := SplitWindowID(id)
	if !ok {
		return ""
	}
	var text [256]byte
	sum := sha256.Sum256(append(append(append(text[:0], typ...), '/'), id...))
	b := appendTraceID(append(text[:0], "00-"...), machine, epoch, seq)
	return string(append(hex.AppendEncode(append(b, '-'), sum[:8]), "-01"...))
}
