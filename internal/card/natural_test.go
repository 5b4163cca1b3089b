package card

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCompareNames(t *testing.T) {
	for name, want := range map[string][]string{
		"numbers":                 {"T1", "T2", "T9", "T10", "T11", "T100"},
		"numbers alone":           {"1", "2", "10", "020", "100"},
		"leading zeros":           {"T2", "T02", "T002", "T3", "T10"},
		"case":                    {"T2", "t2", "t3", "T10"},
		"numbers in the middle":   {"day2-hole9", "day2-hole10", "day10-hole1"},
		"shorter first":           {"", "T", "T1", "T1a", "T1b"},
		"longer than any integer": {"9", "99999999999999999999999998", "99999999999999999999999999"},
		"machines":                {"m1/T2", "m1/T10", "m2/T1"},
		"other letters":           {"Bohrer 2", "Bohrer 10", "Öl 2", "öl 10"},
		"not UTF-8":               {"T", "T\xfe", "T\xff"},
		"digits before letters":   {"2", "A"},
		"zero":                    {"T0", "T00", "T1"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortFunc(got, CompareNames)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// The order is total: sorting gives one result for any order at the start.
func TestCompareNamesIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.StringMatching(`[tT0-9a\xff]{0,4}`)
		a, b, c := names.Draw(t, "a"), names.Draw(t, "b"), names.Draw(t, "c")
		if (CompareNames(a, b) == 0) != (a == b) || CompareNames(a, b) != -CompareNames(b, a) {
			t.Fatalf("%q and %q: %d and %d", a, b, CompareNames(a, b), CompareNames(b, a))
		}
		if CompareNames(a, b) < 0 && CompareNames(b, c) < 0 && CompareNames(a, c) >= 0 {
			t.Fatalf("%q < %q < %q, but not %q < %q", a, b, c, a, c)
		}
	})
}
