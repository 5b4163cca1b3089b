package history

import (
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// A result says what the machine's control said, as far as it is known.
func TestDescribeResult(t *testing.T) {
	for want, r := range map[string]event.Result{
		"model m": {Model: "m"},
		`model m, feed rate 82.5 mm/min, programme "O1\x1b", material "42CrMo4"`: {Model: "m", FeedRate: 82.5, Programme: "O1\x1b", Material: "42CrMo4"},
	} {
		m := bus.Message{Headers: []bus.Header{{Key: "ce_type", Value: []byte(event.ResultType)}}, Value: event.JSON(r)}
		if got := describe(&m); !strings.HasSuffix(got, ", alarm , "+want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
