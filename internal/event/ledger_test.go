package event

import (
	"strings"
	"testing"
)

// What no gateway writes is refused.
func TestReadSourceLedger(t *testing.T) {
	for text, want := range map[string]string{
		`{"machine":"a/b","received":3}`:                            "",
		`{"machine":"a/b","unused":[{"reason":"gap","samples":3}]}`: "",
		`{"machine":"a/b","lost":[{"reason":"new","seconds":3}]}`:   "",
		`{`:                             "ledger: ",
		`{"received":3}`:                `machine ""`,
		`{"machine":"a\u001b"}`:         "expected the path of a machine",
		`{"machine":"a","seconds":-1}`:  "must not be negative",
		`{"machine":"a","received":-1}`: "ledger: ",
		`{"machine":"a","lost":[{"reason":"gap","seconds":-1}]}`:                                 `"gap": -1 seconds`,
		`{"machine":"a","lost":[{"reason":"gap","seconds":1e30}]}`:                               `"gap": 1e+30 seconds`,
		`{"machine":"a","lost":[{"seconds":1}]}`:                                                 `reason ""`,
		`{"machine":"a","unused":[{"reason":"a\nb","samples":1}]}`:                               "plain text",
		`{"machine":"a","unused":[` + strings.Repeat(`{"reason":"a"},`, 64) + `{"reason":"a"}]}`: "at most 64",
		`{"machine":"` + strings.Repeat("a", maxLedger) + `"}`:                                   "bytes, at most",
	} {
		if _, err := ReadSourceLedger([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadSourceLedger(f *testing.F) {
	f.Add([]byte(`{"machine":"a/b","lost":[{"reason":"gap","seconds":3}]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if l, err := ReadSourceLedger(value); err == nil {
			if _, err := ReadSourceLedger(JSON(l)); err != nil && len(JSON(l)) <= maxLedger {
				t.Errorf("%s: %v", JSON(l), err)
			}
		}
	})
}
