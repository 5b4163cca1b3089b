package buslog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// The log has an outage at once, again each minute and when its reason changes, and
// its end.
func TestOnRetry(t *testing.T) {
	var b bytes.Buffer
	say := OnRetry(zerolog.New(&b), "windows stay in the spool")
	gone, refused := errors.New("gone"), errors.New("refused")
	for i, tc := range []struct {
		err   error
		since time.Duration
		said  string // in the line that is logged; empty for none
	}{
		{gone, 0, "gone"},
		{gone, 2 * time.Second, ""},
		{gone, 59 * time.Second, ""},
		{gone, 61 * time.Second, "windows stay in the spool"},
		{gone, 63 * time.Second, ""},
		{refused, 64 * time.Second, "refused"},
		{refused, 65 * time.Second, ""},
		{nil, 66 * time.Second, "answers again"},
		{nil, 66 * time.Second, ""}, // another connection
		{refused, 0, "refused"},     // another outage
		{gone, 0, "gone"},           // another connection, which got another answer
		{refused, time.Second, ""},
		{gone, time.Second, ""},
		{refused, 60 * time.Second, "refused"},
		{gone, 60 * time.Second, "gone"},
		{nil, 61 * time.Second, "answers again"},
		{nil, 61 * time.Second, ""},
	} {
		b.Reset()
		say(tc.err, tc.since)
		if got := b.String(); tc.said == "" && got != "" || !strings.Contains(got, tc.said) {
			t.Errorf("call %d, %v after %v: logged %q, want %q", i, tc.err, tc.since, got, tc.said)
		}
	}
}
