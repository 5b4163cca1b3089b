package plain_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/plain"
)

func TestName(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "T08": "T08", " T08\t": "T08", "T08\r\n": "T08", "\u00a0T08\u3000": "T08", " \u2003 ": "",
		"Fra\u0308ser 7": "Fräser 7", "Fräser\u00a07": "Fräser 7", "Fräser  7": "Fräser 7", "刀具 7": "刀具 7", "Ø 12,7 – neu": "Ø 12,7 – neu",
	} {
		if got, err := plain.Name(s); got != want || err != nil {
			t.Errorf("Name(%q) = %q, %v, want %q", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		"T\u200b8": "U+200B", "\ufeffT8": "U+FEFF", "T\u00ad8": "U+00AD", "T\u2060": "U+2060", "T\u034f8": "U+034F", "T\u3164": "U+3164", "T8\ufe0f": "U+FE0F",
		"\u2800": "U+2800", "T\x008": "U+0000", "T\n8": "U+000A", "T\u202e8": "U+202E", "\xff": "UTF-8", "T\U000e0020": "U+E0020",
	} {
		if got, err := plain.Name(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Name(%q) = %q, %v, want an error with %s", s, got, err, want)
		}
	}
}

func TestFold(t *testing.T) {
	for _, alike := range [][]string{
		{"5", "05", "005", "５"}, {"Fräser 7", "fräser 7", "FRÄSER 07", "Fräser7"}, {"T08", "t8", "Ｔ８"}, {"0", "00"},
	} {
		for _, s := range alike[1:] {
			if a, b := plain.Fold(alike[0]), plain.Fold(s); a != b {
				t.Errorf("%q folds to %q, %q to %q", alike[0], a, s, b)
			}
		}
	}
	for _, other := range [][2]string{{"5", "50"}, {"T1", "T10"}, {"T1", "T11"}, {"10", "1"}, {"T100", "T1"}, {"Fräser", "Fraser"}, {"T-1", "T1"}} {
		if plain.Fold(other[0]) == plain.Fold(other[1]) {
			t.Errorf("%q and %q fold to %q", other[0], other[1], plain.Fold(other[0]))
		}
	}
}

// FuzzName checks that a name stays as it is once it is one, and is shown as it is.
func FuzzName(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Add("Fra\u0308ser\u00a07\u200b")
	f.Fuzz(func(t *testing.T, s string) {
		name, err := plain.Name(s)
		if err != nil {
			return
		}
		if again, err := plain.Name(name); again != name || err != nil {
			t.Errorf("Name(%q) = %q, and of that %q, %v", s, name, again, err)
		}
		if !utf8.ValidString(name) || plain.Check(name) != nil || strings.TrimSpace(name) != name {
			t.Errorf("Name(%q) = %q", s, name)
		}
		if plain.Fold(name) == "" && strings.Trim(name, " 0") != "" {
			t.Errorf("Fold(%q) is empty", name)
		}
	})
}
